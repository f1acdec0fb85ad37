"""Compiled programs: what is read of them, and damage."""

from tests.analysis.timing.programs import Maker, f32
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder

from peakline.hlo.modules import category_of, modules_of, read_module, shape_text


def a_module():
    made = Maker()
    inner = made.computation("fused")
    x = made.add(inner, "parameter", f32(8))
    made.add(inner, "tanh", f32(8), x, name="tanh.1")
    main = made.computation("main")
    arg = made.add(main, "parameter", f32(8), name="x")
    fusion = made.add(
        main, "fusion", f32(8), arg, name="loop_fusion", calls=(inner,), fusion_kind="kLoop"
    )
    fusion.metadata.op_name = "jit(f)/tanh"
    fusion.metadata.source_file, fusion.metadata.source_line = "model.py", 7
    return made


def test_instructions_by_name():
    module = read_module(a_module().data, "jit_f(17)")
    assert (module.name, module.program_id, module.entry) == ("jit_f", 17, "main")
    assert module.roots() == ("x", "loop_fusion")
    fusion = module.instructions["loop_fusion"]
    assert (fusion.opcode, fusion.category, fusion.shape) == ("fusion", "loop fusion", "f32[8]{0}")
    assert (fusion.operands, fusion.calls) == (("x",), ("fused",))
    assert (fusion.op_name, fusion.source) == ("jit(f)/tanh", "model.py:7")
    assert module.instructions["tanh.1"].computation == "fused"
    assert module.unknown == 0


@each_row(
    ("opcode", "fields", "category"),
    [
        ("add", {}, "non-fusion elementwise"),
        ("constant", {}, "non-fusion elementwise"),
        ("copy", {}, "data formatting"),
        ("dot", {}, "dot"),
        ("fusion", {"fusion_kind": "kOutput"}, "output fusion"),
        ("convolution", {}, "convolution"),
        ("all-reduce-start", {}, "all-reduce-start"),
    ],
)
def test_categories_are_those_of_xla(opcode, fields, category):
    made = Maker()
    assert category_of(made.add(made.computation("main"), opcode, f32(1), **fields), {}) == category


def test_a_dilated_convolution_has_a_category_of_its_own():
    made = Maker()
    instruction = made.add(made.computation("main"), "convolution", f32(1))
    instruction.window.dimensions.add(base_dilation=2, window_dilation=1)
    assert category_of(instruction, {}) == "convolution base-dilated"


def test_the_text_of_a_tuple():
    made = Maker()
    shape = made.add(made.computation("main"), "tuple", ("TUPLE", ())).shape
    for part in (f32(2, 3, kind="BF16"), f32()):
        made.fill(shape.tuple_shapes.add(), part)
    shape.tuple_shapes.add(element_type=17)
    assert shape_text(shape) == "(bf16[2,3]{1,0}, f32[], token[])"


def test_what_names_nothing_is_counted():
    made = a_module()
    instruction = made.proto.hlo_module.computations[1].instructions[1]
    instruction.operand_ids.append(999)
    instruction.called_computation_ids.append(998)
    assert read_module(made.data).unknown == 2


def test_damaged_programs_are_warnings(opened):
    space = SpaceBuilder()
    metadata = space.plane("/host:metadata")
    lost = a_module()
    lost.proto.hlo_module.computations[1].instructions[1].operand_ids.append(999)
    for name, data in (("jit_f(1)", lost.data), ("jit_g(2)", b"\x0a\xff\xff")):
        entry = metadata.message.event_metadata[metadata.event_id(name)]
        metadata.add_stats(entry, {"Hlo Proto": data})
    profile = opened(space)
    assert [module.program_id for module in modules_of(profile)] == [1]
    told = {warning.kind: warning.count for warning in profile.warnings}
    assert told == {"hlo_reference": 1, "hlo_unreadable": 1}
