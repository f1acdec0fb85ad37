"""Compiled programs with made-up buffer assignments: every kind of allocation, shapes of every
kind, heaps that share, revive and chain; and damaged ones.
"""

from __future__ import annotations

import random
from typing import Any

from peakline.schema import HloProto

ALLOC, FREE, SHARE = range(3)
F32, BF16, S32, PRED, S4, TUPLE, TOKEN = 11, 16, 4, 1, 21, 13, 17
WIDTHS = {F32: 4, BF16: 2, S32: 4, PRED: 1, S4: 1, TOKEN: 0}
FLAGS = (
    {"is_entry_computation_parameter": True},
    {"maybe_live_out": True},
    {"is_entry_computation_parameter": True, "maybe_live_out": True},
    {"is_constant": True},
    {"is_thread_local": True},
    {"is_tuple": True, "maybe_live_out": True},
)
NAMES = ("dot", "add.<b>", 'quoted"name', "back\\slash", "é漢字", "fusion`${x}", "while")


def odd_program(seed: int, *, damage: bool = False) -> HloProto:
    """A program of its own for every seed; with ``damage`` its heaps may break every rule."""
    return _Maker(random.Random(seed), damage=damage).made()


def with_heap(events: list[tuple[int, ...]], sizes: list[int]) -> HloProto:
    """A program of one temporary allocation with a value for each size, numbered from 1; an event
    is (kind, value) or (SHARE, value, shared with).
    """
    proto = HloProto()
    proto.hlo_module.name = "made"
    computation = proto.hlo_module.computations.add(name="main", id=1)
    assignment = proto.buffer_assignment
    allocation = assignment.buffer_allocations.add(index=0, size=sum(sizes))
    offset = 0
    for number, size in enumerate(sizes, 1):
        made = computation.instructions.add(name=f"i{number}", opcode="add", id=number)
        made.shape.element_type, made.shape.dimensions[:] = PRED, [size]
        value = assignment.logical_buffers.add(id=number, size=size)
        value.defined_at.instruction_id = number
        allocation.assigned.add(logical_buffer_id=number, offset=offset, size=size)
        offset += size
    _add_events(assignment.heap_simulator_traces.add(), events, {})
    return proto


def _add_events(trace: Any, events: list[tuple[int, ...]], names: dict[int, str]) -> None:
    for kind, value, *other in events:
        made = trace.events.add(kind=kind, buffer_id=value)
        made.instruction_name = names.get(value, f"at{len(trace.events)}")
        if other:
            made.share_with_canonical_id = other[0]


class _Maker:
    """One program in the making."""

    def __init__(self, chance: random.Random, *, damage: bool) -> None:
        self._chance, self._damage = chance, damage
        self._proto = HloProto()
        self._names: dict[int, str] = {}

    def made(self) -> HloProto:
        chance, module = self._chance, self._proto.hlo_module
        module.name, module.entry_computation_name = f"odd_{chance.randrange(99)}", "main"
        index = module.stack_frame_index
        index.file_names.extend(["a.py", "dir/b.py"])
        for line in range(1, 5):
            index.file_locations.add(file_name_id=line % 3, line=line, column=2 * line)
            index.stack_frames.add(file_location_id=line, parent_frame_id=line - 1)
        computation = module.computations.add(name="main", id=1)
        for number in range(1, chance.randrange(8, 40)):
            self._add_instruction(computation, number)
        self._place()
        return self._proto

    def _add_instruction(self, computation: Any, number: int) -> None:
        chance = self._chance
        made = computation.instructions.add(id=number, opcode=chance.choice(["add", "fusion"]))
        made.name = f"{chance.choice(NAMES)}.{number}"
        self._shape(made.shape, 0)
        if chance.random() < 0.7:
            made.metadata.op_name = f"jit(f)/{chance.choice(NAMES)}"
            made.metadata.stack_frame_id = chance.randrange(6)
            if chance.random() < 0.3:
                made.metadata.source_file, made.metadata.source_line = "own.py", number

    def _shape(self, shape: Any, depth: int) -> None:
        chance = self._chance
        if depth < 3 and chance.random() < 0.25:
            shape.element_type = TUPLE
            for _ in range(chance.randrange(8)):
                self._shape(shape.tuple_shapes.add(), depth + 1)
            return
        shape.element_type = chance.choice(list(WIDTHS))
        if shape.element_type == TOKEN:
            return
        rank = chance.randrange(4)
        shape.dimensions[:] = [chance.choice([1, 3, 64, 100]) for _ in range(rank)]
        shape.is_dynamic_dimension[:] = [rank == 2 and chance.random() < 0.2 for _ in range(rank)]
        layout = shape.layout
        layout.minor_to_major[:] = chance.sample(range(rank), rank)
        layout.memory_space = chance.choice([0, 0, 1])
        if shape.element_type == S4 and chance.random() < 0.5:
            layout.element_size_in_bits = 4
        if rank > 1 and chance.random() < 0.3:
            layout.tiles.add(dimensions=[8, 128])

    def _place(self) -> None:
        chance, assignment = self._chance, self._proto.buffer_assignment
        values: list[tuple[int, int]] = []
        for made in self._proto.hlo_module.computations[0].instructions:
            for path in self._paths(made.shape):
                value = assignment.logical_buffers.add(id=3 * len(values) + 7)
                value.size = chance.choice([4, 512, 16_383, 16_384, 70_000, 2**21])
                value.defined_at.instruction_id, value.defined_at.shape_index[:] = made.id, path
                values.append((value.id, value.size))
                self._names[value.id] = made.name
        chance.shuffle(values)
        index = 0
        while values:
            count = chance.randrange(1, 14)
            some, values = values[:count], values[count:]
            colour = chance.choice([0, 0, 0, 1, 5])
            is_temporary = chance.random() < 0.4
            flags = {} if is_temporary else chance.choice(FLAGS)
            allocation = assignment.buffer_allocations.add(index=index, color=colour, **flags)
            index += chance.choice([1, 1, 2])
            offset = 0
            for number, size in some:
                allocation.assigned.add(logical_buffer_id=number, offset=offset, size=size)
                offset += size
            allocation.size = offset
            for one in assignment.logical_buffers:
                if any(one.id == number for number, _ in some):
                    one.color = colour
            if is_temporary and chance.random() < 0.8:
                trace = assignment.heap_simulator_traces.add(buffer_allocation_index=99)
                _add_events(trace, self._events([number for number, _ in some]), self._names)

    def _paths(self, shape: Any) -> list[list[int]]:
        """Some places within a shape."""
        result: list[list[int]] = [[]]
        for number, part in enumerate(shape.tuple_shapes):
            if self._chance.random() < 0.6:
                result.extend([number, *path] for path in self._paths(part))
        return result

    def _events(self, numbers: list[int]) -> list[tuple[int, ...]]:
        """A heap in which each value is there once, alone or in the memory of another."""
        chance = self._chance
        waiting, live, freed = list(numbers), list[int](), list[int]()
        events: list[tuple[int, ...]] = []
        while waiting or (live and chance.random() < 0.8):
            roll = chance.random()
            if waiting and (roll < 0.4 or not (live or freed)):
                number = waiting.pop()
                events.append((ALLOC, number))
                live.append(number)
            elif waiting and roll < 0.6:
                number = waiting.pop()
                events.append((SHARE, number, chance.choice(live + freed[-1:])))
                live.append(number)
            elif live:
                number = live.pop(chance.randrange(len(live)))
                events.append((FREE, number))
                freed = [number]
        if self._damage:
            for _ in range(chance.randrange(4)):
                other = chance.choice([*numbers, 10**6])
                kind = chance.choice([ALLOC, FREE, FREE, 3])
                events.insert(chance.randrange(len(events) + 1), (kind, other))
        return events
