"""Compiled programs that no compiler writes: samples with random changes against the format."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from peakline.schema import HloProto

HUGE = (2**62, 2**63 - 1, -(2**63), -1, 2**40)
NAMES = ("", "add", "a<b>&\"c'", "naïve\n", "x" * 300)
Change = Callable[[Random, HloProto], None]


def mutated(rng: Random, proto: HloProto, changes: int) -> HloProto:
    """A copy with so many changes."""
    made = HloProto()
    made.CopyFrom(proto)
    for _ in range(changes):
        rng.choice(CHANGES)(rng, made)
    return made


def _shuffled(rng: Random, repeated: Any) -> None:
    listed = [type(one).FromString(one.SerializeToString()) for one in repeated]
    rng.shuffle(listed)
    del repeated[:]
    repeated.extend(listed)


def _instruction(rng: Random, proto: HloProto) -> Any:
    filled = [one for one in proto.hlo_module.computations if one.instructions]
    if not filled:
        filled = [proto.hlo_module.computations.add(name="made", id=77)]
        filled[0].instructions.add(name="made", opcode="add", id=78)
    return rng.choice(rng.choice(filled).instructions)


def _some(rng: Random, repeated: Any) -> Any:
    return rng.choice(repeated) if repeated else repeated.add()


def _number(rng: Random, proto: HloProto) -> int:
    """The number of an instruction, or of none."""
    return rng.choice((_instruction(rng, proto).id, 0, 10**12, *HUGE))


def _computation(rng: Random, proto: HloProto) -> int:
    return rng.choice((_some(rng, proto.hlo_module.computations).id, 0, 10**12, *HUGE))


# Structure.


def _order_of_computations(rng: Random, proto: HloProto) -> None:
    _shuffled(rng, proto.hlo_module.computations)


def _order_of_instructions(rng: Random, proto: HloProto) -> None:
    _shuffled(rng, _some(rng, proto.hlo_module.computations).instructions)


def _operand(rng: Random, proto: HloProto) -> None:
    one = _instruction(rng, proto)
    field = rng.choice((one.operand_ids, one.control_predecessor_ids))
    field.insert(rng.randrange(len(field) + 1), _number(rng, proto))


def _call(rng: Random, proto: HloProto) -> None:
    """A call of anything, also of what calls it."""
    one = _instruction(rng, proto)
    one.opcode = rng.choice(("while", "call", "conditional", "fusion", "reduce", "async-start"))
    one.called_computation_ids.extend(_computation(rng, proto) for _ in range(rng.randrange(4)))


def _name(rng: Random, proto: HloProto) -> None:
    _instruction(rng, proto).name = rng.choice((_instruction(rng, proto).name, *NAMES))


def _id(rng: Random, proto: HloProto) -> None:
    _instruction(rng, proto).id = _number(rng, proto)


def _id_of_computation(rng: Random, proto: HloProto) -> None:
    _some(rng, proto.hlo_module.computations).id = _computation(rng, proto)


def _entry(rng: Random, proto: HloProto) -> None:
    module = proto.hlo_module
    module.entry_computation_id = _computation(rng, proto)
    module.entry_computation_name = rng.choice((_some(rng, module.computations).name, *NAMES))


def _root(rng: Random, proto: HloProto) -> None:
    _some(rng, proto.hlo_module.computations).root_id = _number(rng, proto)


def _opcode(rng: Random, proto: HloProto) -> None:
    one = _instruction(rng, proto)
    one.opcode = rng.choice(("", "bitcast-convert", "convolution", "parameter", "odd", "copy",
                             "get-tuple-element", "fusion", "constant"))  # fmt: skip
    one.fusion_kind = rng.choice(("", "kLoop", "kCustom", "kOdd"))
    one.parameter_number, one.tuple_index = rng.choice(HUGE), rng.choice(HUGE)
    for _ in range(rng.randrange(3)):
        one.window.dimensions.add(base_dilation=rng.randrange(3), window_dilation=rng.randrange(3))


def _schedule(rng: Random, proto: HloProto) -> None:
    sequences = proto.hlo_module.schedule.sequences
    roll = rng.random()
    if roll < 0.2:
        proto.hlo_module.ClearField("schedule")
    elif roll < 0.4 and sequences:
        del sequences[rng.choice(sorted(sequences))]
    else:
        numbers = sequences[_computation(rng, proto)].instruction_ids
        numbers.insert(rng.randrange(len(numbers) + 1), _number(rng, proto))


def _shape(rng: Random, proto: HloProto) -> None:
    shape = _instruction(rng, proto).shape
    for _ in range(rng.randrange(20)):
        if rng.random() < 0.5:
            shape.element_type = 13
            shape = shape.tuple_shapes.add()
    shape.element_type = rng.choice((1, 2, 4, 11, 14, 15, 16, 17, 21, 32, 35, 63, 99))
    shape.dimensions[:] = [rng.choice((0, 3, 5, *HUGE)) for _ in range(rng.randrange(4))]
    shape.is_dynamic_dimension[:] = [rng.random() < 0.5 for _ in range(rng.randrange(4))]
    if rng.random() < 0.5:
        shape.layout.minor_to_major[:] = [rng.choice((0, 1, 7)) for _ in range(rng.randrange(3))]
        shape.layout.memory_space = rng.choice((0, 1, 5))
        shape.layout.element_size_in_bits = rng.choice((0, 1, 4, 12))
        shape.layout.tiles.add(dimensions=[rng.choice((8, 128, -(2**63)))])


def _stacks(rng: Random, proto: HloProto) -> None:
    """Frames that lead in circles or nowhere."""
    index = proto.hlo_module.stack_frame_index
    index.file_names.append(rng.choice(("a.py", "/x/site-packages/b.py", "c.cc", "")))
    index.function_names.append("f")
    index.file_locations.add(
        file_name_id=rng.randrange(-1, 5), function_name_id=rng.randrange(3), line=rng.randrange(9)
    )
    count = len(index.stack_frames) + 2
    index.stack_frames.add(
        file_location_id=rng.randrange(-1, 4), parent_frame_id=rng.randrange(-1, count)
    )
    for _ in range(3):
        meta = _instruction(rng, proto).metadata
        meta.stack_frame_id = rng.randrange(-1, count + 1)
        meta.source_file = rng.choice(("", "", "own.py"))


# Memory.


def _value(rng: Random, proto: HloProto) -> None:
    values = proto.buffer_assignment.logical_buffers
    one = _some(rng, values)
    roll = rng.randrange(5)
    if roll == 0:
        one.size = rng.choice((0, *HUGE))
    elif roll == 1:
        one.id = rng.choice((_some(rng, values).id, *HUGE))
    elif roll == 2:
        # As files of before 2022 name it.
        one.defined_at.Clear()
        one.defined_at.instruction_name = _instruction(rng, proto).name
    elif roll == 3:
        one.ClearField("defined_at")
    else:
        one.defined_at.instruction_id = _number(rng, proto)
        one.defined_at.shape_index.append(rng.choice((0, 1, 99, -1)))


def _allocation(rng: Random, proto: HloProto) -> None:
    allocations = proto.buffer_assignment.buffer_allocations
    one = _some(rng, allocations)
    flag = rng.choice("is_thread_local is_entry_computation_parameter is_constant maybe_live_out "
                      "is_parameter_aliased_with_output".split())  # fmt: skip
    setattr(one, flag, not getattr(one, flag))
    one.color = rng.choice((0, 0, 0, 1, 5))
    one.parameter_number = rng.choice((0, 3, *HUGE))
    if rng.random() < 0.3:
        one.size = rng.choice((0, *HUGE))
    if rng.random() < 0.3:
        one.index = rng.choice((_some(rng, allocations).index, 10**9))


def _assigned(rng: Random, proto: HloProto) -> None:
    assignment = proto.buffer_assignment
    one = _some(rng, assignment.buffer_allocations)
    number = rng.choice((_some(rng, assignment.logical_buffers).id, 10**9))
    one.assigned.add(logical_buffer_id=number, offset=rng.choice((0, 64, *HUGE)))


def _order_of_allocations(rng: Random, proto: HloProto) -> None:
    _shuffled(rng, proto.buffer_assignment.buffer_allocations)


def _events(rng: Random, proto: HloProto) -> None:
    """Events that fit nothing, in a heap or in a new one."""
    assignment = proto.buffer_assignment
    traces = assignment.heap_simulator_traces
    trace = traces.add() if rng.random() < 0.2 else _some(rng, traces)
    values = [value.id for value in assignment.logical_buffers] or [3]
    for _ in range(rng.randrange(1, 6)):
        trace.events.add(
            kind=rng.choice((0, 1, 2, 2, 3, 99)),
            buffer_id=rng.choice((*rng.sample(values, 1), *rng.sample(values, 1), 10**9)),
            share_with_canonical_id=rng.choice((*rng.sample(values, 1), 10**9)),
            instruction_name=rng.choice((_instruction(rng, proto).name, *NAMES)),
            computation_name=rng.choice(NAMES),
        )
    if rng.random() < 0.5:
        _shuffled(rng, trace.events)


def _same_heap(rng: Random, proto: HloProto) -> None:
    traces = proto.buffer_assignment.heap_simulator_traces
    traces.add().CopyFrom(_some(rng, traces))


def _nothing_assigned(_rng: Random, proto: HloProto) -> None:
    proto.ClearField("buffer_assignment")


CHANGES: tuple[Change, ...] = (
    _order_of_computations, _order_of_instructions, _operand, _call, _call, _name, _id,
    _id_of_computation, _entry, _root, _opcode, _schedule, _shape, _stacks, _value, _value,
    _allocation, _assigned, _order_of_allocations, _events, _events, _same_heap, _nothing_assigned,
)  # fmt: skip
