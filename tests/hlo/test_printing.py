"""HLO text: what each part of a message becomes, and what damage does."""

import pytest
from tests.each_row import each_row

from peakline.hlo.messages import ModuleParts
from peakline.hlo.printing import LONG, SHORT, PrintOptions, module_text
from peakline.hlo.printing.proto_text import proto_text
from peakline.hlo.printing.quoting import as_value, quoted, sound_name
from peakline.schema import HloInstructionProto, HloModuleProto, LiteralProto, ShapeProto

F32, S32, PRED, TUPLE, BF16, S4, F8 = 11, 4, 1, 13, 16, 21, 20


def shape_of(kind, *sizes, order=None):
    shape = ShapeProto(element_type=kind, dimensions=sizes)
    shape.is_dynamic_dimension.extend([False] * len(sizes))
    order = range(len(sizes))[::-1] if order is None else order
    shape.layout.minor_to_major.extend(order)
    shape.layout.tail_padding_alignment_in_elements = 1
    return shape


def module_of(*made, name="m"):
    module = HloModuleProto(name=name, entry_computation_id=1)
    one = module.computations.add(id=1, name="main")
    for number, each in enumerate(made, 1):
        one.instructions.add().CopyFrom(each)
        one.instructions[-1].id = number
    one.root_id = len(made)
    return module


def made(opcode, *operands, shape=None, **fields):
    one = HloInstructionProto(name=fields.pop("name", opcode), opcode=opcode, **fields)
    one.operand_ids.extend(operands)
    one.shape.CopyFrom(shape or shape_of(F32))
    return one


def text(module, options=SHORT):
    return "".join(module_text(ModuleParts.of(module), options))


def line(module, options=SHORT):
    """The line of the root."""
    return next(row for row in text(module, options).splitlines() if row.startswith("  ROOT "))


def test_a_program():
    module = module_of(
        made("parameter", name="x", shape=shape_of(F32, 2, 3), parameter_number=0),
        made("parameter", name="y", shape=shape_of(F32, 3), parameter_number=1),
        made("broadcast", 2, name="wide", shape=shape_of(F32, 2, 3), dimensions=[1]),
        made("add", 1, 3, name="sum", shape=shape_of(F32, 2, 3)),
    )
    module.host_program_shape.parameters.add().CopyFrom(shape_of(F32, 2, 3))
    module.host_program_shape.result.CopyFrom(shape_of(F32, 2, 3))
    assert text(module) == (
        "HloModule m, entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{1,0}}\n\n"
        "ENTRY main {\n"
        "  x = f32[2,3]{1,0} parameter(0)\n"
        "  y = f32[3]{0} parameter(1)\n"
        "  wide = f32[2,3]{1,0} broadcast(y), dimensions={1}\n"
        "  ROOT sum = f32[2,3]{1,0} add(x, wide)\n"
        "}\n\n"
    )
    assert "ENTRY %main (x: f32[2,3], y: f32[3]) -> f32[2,3] {\n" in text(module, LONG)
    assert "  ROOT %sum = f32[2,3]{1,0} add(%x, %wide)\n" in text(module, LONG)


@each_row(
    ("values", "sizes", "written"),
    [
        ({"f32s": [1.5]}, (), "1.5"),
        ({"f32s": [0.1, 1 / 3]}, (2,), "{0.1, 0.333333343}"),
        ({"f32s": [float("nan"), float("-inf")]}, (2,), "{nan, -inf}"),
        ({"f32s": [1, 2, 3, 4]}, (2, 2), "{ { 1, 2 }, { 3, 4 } }"),
        ({"f32s": [1, 2]}, (2, 1), "{ {1}, {2} }"),
        ({}, (0,), "{}"),
        ({}, (2, 0), "{ {}, {} }"),
        ({}, (0, 2), "{  }"),
        ({"f32s": [1, 2]}, (1, 1, 1, 2), "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } } } }"),
        ({"f32s": [1]}, (3,), "{...}"),
    ],
)
def test_constants(values, sizes, written):
    one = made("constant", shape=shape_of(F32, *sizes))
    one.literal.CopyFrom(LiteralProto(shape=shape_of(F32, *sizes), **values))
    assert line(module_of(one), LONG).endswith(f" constant({written})")


@each_row(
    ("kind", "values", "written"),
    [
        (PRED, {"preds": [True, False]}, "{1, 0}"),
        (S32, {"s32s": [-1, 7]}, "{-1, 7}"),
        (BF16, {"bf16s": b"\x80\x3f\xcd\x3d"}, "{1, 0.1001}"),
        (S4, {"s4s": b"\x7f"}, "{-1, 7}"),
        (F8, {"f8e4m3fns": b"\x38\xff"}, "{1, -nan}"),
    ],
)
def test_constants_of_other_types(kind, values, written):
    one = made("constant", shape=shape_of(kind, 2))
    one.literal.CopyFrom(LiteralProto(shape=shape_of(kind, 2), **values))
    assert line(module_of(one)).endswith(f" constant({written})")


def test_a_constant_is_written_in_logical_order():
    one = made("constant", shape=shape_of(F32, 2, 3, order=(0, 1)))
    one.literal.CopyFrom(LiteralProto(shape=one.shape, f32s=[1, 4, 2, 5, 3, 6]))
    assert line(module_of(one)).endswith("constant({ { 1, 2, 3 }, { 4, 5, 6 } })")


def test_large_constants_are_left_out_of_the_short_text():
    one = made("constant", shape=shape_of(F32, 11))
    one.literal.CopyFrom(LiteralProto(shape=shape_of(F32, 11), f32s=range(11)))
    assert line(module_of(one)).endswith("constant({...})")
    assert line(module_of(one), LONG).endswith("9, 10})")


@each_row(
    ("shape", "written"),
    [
        ({"element_type": F32, "dimensions": [2]}, "f32[2]{0:T(8,128)S(5)}"),
        ({"element_type": F32}, "f32[]{:T(8,128)S(5)}"),
    ],
)
def test_tiles_and_memory_spaces(shape, written):
    given = ShapeProto(**shape)
    given.layout.minor_to_major.extend(range(len(given.dimensions)))
    given.layout.tiles.add(dimensions=[8, 128])
    given.layout.memory_space = 5
    assert f"= {written} " in line(module_of(made("iota", shape=given, dimensions=[0])))


def test_names_are_made_such_as_the_text_allows():
    assert [sound_name(name) for name in ("a b", "é", "1x", "f32", "__x", "__xla_x", "tuple")] == [
        "a_b", "a_", "_x", "f32_", "a_x", "__xla_x", "tuple",
    ]  # fmt: skip


def test_quotes_and_objects():
    assert quoted('a"\n\x00é') == '"a\\"\\n\\000\\303\\251"'
    assert as_value('{"a": "}"}') == '{"a": "}"}'
    assert as_value('{"a"') == '"{\\"a\\""'
    assert as_value("{} {}") == '"{} {}"'


def test_where_instructions_come_from():
    one = made("iota", shape=shape_of(S32, 3), dimensions=[0])
    one.metadata.op_name, one.metadata.stack_frame_id = 'jit(f)/"x"', 1
    module = module_of(one)
    frames = module.stack_frame_index
    frames.file_names.append("a.py")
    frames.function_names.append("f")
    frames.file_locations.add(file_name_id=1, function_name_id=1, line=3)
    frames.stack_frames.add(file_location_id=1)
    shown = text(module, PrintOptions(metadata=True))
    assert '1 "a.py"\n' in shown
    assert ', metadata={op_name="jit(f)/\\"x\\"" stack_frame_id=1}' in shown
    assert "metadata" not in text(module)


def test_what_is_not_there_is_null():
    assert line(module_of(made("add", 7, 8, name="sum"))) == "  ROOT sum = f32[] add(null , null )"


def test_a_circle_of_operands_and_of_calls_ends():
    first, second = made("add", 2, 2, name="a"), made("add", 1, 1, name="b")
    first.called_computation_ids.append(1)
    assert text(module_of(first, second)).count("\n  ") == 2


def test_a_chain_of_many_needs_no_deep_stack():
    chain = [made("parameter", name="p", parameter_number=0)]
    chain += [made("negate", number, name=f"n{number}") for number in range(1, 20_000)]
    assert text(module_of(*chain)).count("\n") == 20_000 + 5


def test_calls_within_calls_need_no_deep_stack():
    module = HloModuleProto(name="deep", entry_computation_id=5000)
    for number in range(1, 5001):
        one = module.computations.add(id=number, name=f"c{number}", root_id=1)
        each = one.instructions.add(id=1, name=f"i{number}", opcode="call")
        each.shape.element_type = F32
        if number > 1:
            each.called_computation_ids.append(number - 1)
    shown = text(module)
    assert shown.index("\nc1 {") < shown.index("\nc2 {") < shown.index("ENTRY c5000")


@pytest.mark.parametrize("sizes", [(1 << 62, 4), (-1,), (1,) * 99])
def test_sizes_that_are_no_sizes(sizes):
    one = made("constant", shape=ShapeProto(element_type=F32, dimensions=sizes))
    one.literal.shape.CopyFrom(one.shape)
    one.literal.f32s.append(1)
    assert line(module_of(one), LONG).endswith("constant({...})")


def test_a_message_as_text():
    module = module_of(made("iota", shape=shape_of(S32, 3), dimensions=[0]), name='a"é')
    module.schedule.sequences[2].instruction_ids.append(5)
    module.schedule.sequences[1].instruction_ids.append(1)
    shown = "".join(proto_text(module))
    assert shown.startswith('name: "a\\"\\303\\251"\ncomputations {\n  name: "main"\n')
    assert "      element_type: S32\n" in shown
    assert shown.index("key: 1") < shown.index("key: 2")
