"""Which programs XLA takes back from their messages."""

from tests.analysis.timing.programs import Maker, f32
from tests.each_row import each_row

from peakline.xprof.rules.programs import is_sound


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
    assert is_sound(program())


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
    assert not is_sound(module)
