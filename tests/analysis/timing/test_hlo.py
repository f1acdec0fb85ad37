"""Compiled programs: what is read of them, damage, and which XLA takes back from their messages."""

from tests.analysis.timing.programs import Maker, f32
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder

from peakline.formats.hlo_proto.source import StoredProgram
from peakline.formats.hlo_proto.tables import ProgramTables
from peakline.hlo.messages import ModuleParts
from peakline.hlo.modules import Module, category_of, modules_of
from peakline.wire import as_buffer
from peakline.xprof.rules.programs import is_sound


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


def module_of(data):
    """A program, and what it reports as lost."""
    lost = []
    stored = StoredProgram("jit_f", 17, "", lambda: as_buffer(data))
    return Module(ProgramTables([stored]), 0, lambda *entry: lost.append(entry)), lost


def test_instructions_by_name():
    module, lost = module_of(a_module().data)
    fusion = module.instructions["loop_fusion"]
    assert (fusion.opcode, fusion.category, fusion.operands) == ("fusion", "loop fusion", ("x",))
    assert (fusion.op_name, fusion.source) == ("jit(f)/tanh", "model.py:7")
    assert module.instructions["tanh.1"].opcode == "tanh"
    assert lost == []


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


def test_what_names_nothing_is_counted():
    made = a_module()
    instruction = made.proto.hlo_module.computations[1].instructions[1]
    instruction.operand_ids.append(999)
    instruction.called_computation_ids.append(998)
    module, lost = module_of(made.data)
    assert len(module.instructions) == 4
    assert [(kind, count) for kind, _, count in lost] == [("hlo_reference", 2)]


def test_damaged_programs_are_warnings(opened):
    space = SpaceBuilder()
    metadata = space.plane("/host:metadata")
    lost = a_module()
    lost.proto.hlo_module.computations[1].instructions[1].operand_ids.append(999)
    for name, data in (("jit_f(1)", lost.data), ("jit_g(2)", b"\x0a\xff\xff")):
        entry = metadata.message.event_metadata[metadata.event_id(name)]
        metadata.add_stats(entry, {"Hlo Proto": data})
    profile = opened(space)
    found = {module.program_id: len(module.instructions) for module in modules_of(profile)}
    assert found == {1: 4, 2: 0}
    told = {warning.kind: warning.count for warning in profile.warnings}
    assert told == {"hlo_reference": 1, "hlo_unreadable": 1}


def program():
    """A call of a computation, and what is done with its result."""
    made = Maker()
    inner = made.computation("inner")
    made.add(inner, "negate", f32(4), made.add(inner, "parameter", f32(4)))
    main = made.computation("main")
    x = made.add(main, "parameter", f32(4))
    made.add(main, "copy", f32(4), made.add(main, "call", f32(4), x, calls=(inner,)))
    module = made.proto.hlo_module
    module.host_program_shape.result.element_type = 11
    return module


def last(module):
    return module.computations[-1].instructions[-1]


def test_a_whole_program():
    assert is_sound(ModuleParts.of(program()))


@each_row(
    "damage",
    [
        lambda module: module.ClearField("host_program_shape"),
        lambda module: setattr(module, "entry_computation_id", 99),
        lambda module: module.computations.add(name="empty", id=77),
        lambda module: module.computations.reverse(),
        lambda module: module.computations[-1].instructions.reverse(),
        lambda module: setattr(module.computations[-1], "root_id", 99),
        lambda module: setattr(last(module), "opcode", "unheard_of"),
        lambda module: setattr(last(module), "name", module.computations[0].instructions[0].name),
        lambda module: setattr(last(module), "id", last(module).operand_ids[0]),
        lambda module: last(module).ClearField("shape"),
        lambda module: last(module).operand_ids.append(99),
        lambda module: last(module).control_predecessor_ids.append(99),
        lambda module: last(module).called_computation_ids.append(99),
        lambda module: setattr(module.computations[0].instructions[0], "parameter_number", 1),
    ],
)
def test_what_it_refuses(damage):
    module = program()
    damage(module)
    assert not is_sound(ModuleParts.of(module))
