"""XLA's text of a buffer assignment as BufferAssignmentProto, in the forms that it had.

``xla/service/buffer_assignment.cc`` in openxla/xla writes it: ``BufferAllocation::ToString`` what
begins with ``BufferAssignment:``, ``HloValue::ToString`` the values behind ``Used values:``, which
newer versions write into a file of their own. The text has no lifetimes: a third file
(``-live-range.txt``) has them. ``HloLiveRange::ToString`` (``xla/hlo/utils/hlo_live_range.cc``)
writes the order of the instructions there, and of each value the first and the last place at which
it is live.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from peakline.deadline import checked
from peakline.errors import InputError
from peakline.formats.hlo_text.packing import Value, pack
from peakline.formats.hlo_text.shapes import element_types
from peakline.tables.reader import Warnings

BEGINNINGS = (b"BufferAssignment:", b"Total bytes used: ", b"Memory Space: ")
"""What an assignment, the values of one or a report of older versions, and a report begin with."""

_ALLOCATION = re.compile(rb"\s*allocation (\d{1,18}): (?:0x[0-9a-f]+, )?size (\d{1,18})\b(.*):\s*")
_VALUE = re.compile(
    rb"\s+value: <(\d{1,18}) ([^\s{}]+)(\{[\d,]*\})?((?: \([a-z]+\))*) @(-?\d{1,18})> "
    rb"\(size=(\d{1,18}),offset=(\d{1,18})\): (.*\S)\s*"
)
_OLD_VALUE = re.compile(
    rb"\s+(?:%?)([^\s\[\]]+)\[([\d,]*)\]\(#(\d{1,18})(?: @(-?\d{1,18}))?\) "
    rb"\[(\d{1,18}),(\d{1,18})\]: (.*\S)\s*"
)
_COLOR = re.compile(rb", color (-?\d{1,18})")
_PARAMETER = re.compile(
    rb", parameter (\d{1,18})(?:, shape \|.*?\|)?(?: at ShapeIndex (\{[\d,]*\}))?"
)
_FROM = re.compile(rb" from instruction: (.*)")
_TOTAL = re.compile(rb"Total bytes used: (\d{1,18})")


@dataclass
class Assigned:
    """A value in an allocation: ``name`` is its instruction's, ``index`` the place in its tuple."""

    number: int
    name: bytes
    index: tuple[int, ...]
    color: int
    size: int
    offset: int
    shape: bytes


@dataclass
class Allocation:
    """One allocation; ``parameter`` is None for what is no parameter of the entry."""

    index: int
    size: int
    color: int = 0
    parameter: int | None = None
    parameter_index: tuple[int, ...] = ()
    flags: frozenset[str] = frozenset()
    values: list[Assigned] = field(default_factory=list)


@dataclass
class Assignment:
    """What the text says. ``instructions`` are the lines of HLO text that it has of values."""

    allocations: list[Allocation] = field(default_factory=list)
    instructions: list[bytes] = field(default_factory=list)


_FLAGS = {
    b", constant": "is_constant", b", thread-local": "is_thread_local",
    b", maybe-live-out": "maybe_live_out",
}  # fmt: skip


def read_assignment(text: bytes, warnings: Warnings) -> Assignment:
    """The allocations of a ``-buffer-assignment.txt``, or the values of the other file.

    Lines that are not understood are counted. Raises InputError where there is neither.
    """
    result = Assignment()
    total = said = strange = 0
    is_of_values = False
    lines = text.split(b"\n")
    for number, line in enumerate(checked(lines, 4096)):
        if not line.strip() or (not number and line.startswith(BEGINNINGS[0])):
            continue
        if (one := _ALLOCATION.fullmatch(line)) is not None:
            result.allocations.append(_allocation(one))
            total += int(one[2])
        elif (of_total := _TOTAL.match(line)) is not None:
            said, is_of_values = int(of_total[1]), True
        elif (source := _FROM.match(line)) is not None:
            result.instructions.append(source[1])
        elif is_of_values:
            # Positions and uses are in the module.
            continue
        elif (value := _value(line)) is not None and result.allocations:
            result.allocations[-1].values.append(value)
        elif line.strip() != BEGINNINGS[0]:
            strange += 1
    if not result.allocations:
        if not result.instructions:
            raise InputError("no allocation in the text of a buffer assignment")
        warnings.add("hlo_allocations", "values without their allocations, which another file has")
    warnings.add("hlo_lines", "lines of a buffer assignment that are not understood", strange)
    if is_of_values and result.allocations and said != total:
        warnings.add("truncated", f"allocations of {total} bytes of {said} that the text counts")
    return result


def _allocation(result: re.Match[bytes]) -> Allocation:
    return described(int(result[1]), int(result[2]), result[3])


def described(index: int, size: int, more: bytes) -> Allocation:
    """The allocation that a line describes by ``more``, which comes behind its size."""
    # Shapes stand between bars.
    flags = re.sub(rb"\|[^|]*\|", b"", more)
    made = Allocation(index, size)
    color = _COLOR.search(flags)
    made.color = int(color[1]) if color else 0
    parameter = _PARAMETER.search(more)
    if parameter is not None:
        made.parameter = int(parameter[1])
        made.parameter_index = _index(parameter[2])
    made.flags = frozenset(name for word, name in _FLAGS.items() if word in flags)
    return made


def _value(line: bytes) -> Assigned | None:
    result = _VALUE.fullmatch(line)
    if result is not None:
        number, name, index, _, color, size, offset, shape = result.groups()
        return Assigned(int(number), name, _index(index), int(color), int(size), int(offset), shape)
    result = _OLD_VALUE.fullmatch(line)
    if result is None:
        return None
    name, index, number, color, offset, size, shape = result.groups()
    place = _index(b"{%b}" % index)
    return Assigned(int(number), name, place, int(color or 0), int(size), int(offset), shape)


def _index(text: bytes | None) -> tuple[int, ...]:
    return tuple(int(one[:18]) for one in (text or b"{}")[1:-1].split(b",") if one)


def assignment_proto(
    result: Assignment,
    ids: dict[bytes, int],
    warnings: Warnings,
    traces: Sequence[Mapping[str, Value]] = (),
) -> bytes:
    """BufferAssignmentProto of an assignment to instructions with these ``ids`` by name.

    A value of no such instruction has its name instead, as old files do, and is counted.
    """
    logical: dict[int, bytes] = {}
    allocations: list[bytes] = []
    unknown: set[bytes] = set()
    for one in checked(result.allocations, 1024):
        for value in one.values:
            if value.number not in logical:
                if value.name not in ids:
                    unknown.add(value.name)
                logical[value.number] = _logical(value, one, ids.get(value.name))
        allocations.append(_allocation_proto(one))
    warnings.add(
        "hlo_reference", "values of a buffer assignment whose instruction is missing", len(unknown)
    )
    fields: dict[str, Value] = {
        "logical_buffers": [logical[number] for number in sorted(logical)],
        "buffer_allocations": [*allocations],
        "heap_simulator_traces": [*traces],
    }
    return pack("xla.BufferAssignmentProto", fields)


def _logical(value: Assigned, allocation: Allocation, identity: int | None) -> bytes:
    place: dict[str, Value] = {"shape_index": [*value.index]}
    if identity is None:
        place["instruction_name"] = value.name
    else:
        place["instruction_id"] = identity
    color = value.color or allocation.color
    fields: dict[str, Value] = {
        "id": value.number, "size": value.size, "defined_at": place, "color": color,
    }  # fmt: skip
    return pack("xla.LogicalBufferProto", fields)


def _allocation_proto(one: Allocation) -> bytes:
    assigned: list[Value] = [
        {
            "logical_buffer_id": value.number,
            "offset": value.offset,
            "size": value.size,
            "element_type": _element_type(value.shape),
        }
        for value in one.values
    ]
    fields: dict[str, Value] = {
        "index": one.index,
        "size": one.size,
        "is_tuple": _is_tuple(one),
        "color": one.color,
        **dict.fromkeys(sorted(one.flags), 1),
        "assigned": assigned,
    }
    if one.parameter is not None:
        fields |= {
            "is_entry_computation_parameter": 1,
            "parameter_number": one.parameter,
            "parameter_shape_index": [*one.parameter_index],
            # A parameter is live out where an output shares its buffer.
            "is_parameter_aliased_with_output": "maybe_live_out" in one.flags,
        }
    return pack("xla.BufferAllocationProto", fields)


def _is_tuple(one: Allocation) -> bool:
    """Whether XLA gave a tuple's table of pointers an allocation of its own.

    It does so for all but parameters and what is local to a thread. Of temporary memory that holds
    other values too, the text does not say what it began as.
    """
    if one.parameter is not None or "is_thread_local" in one.flags:
        return False
    return bool(one.values) and all(value.shape.startswith(b"(") for value in one.values)


def _element_type(shape: bytes) -> int:
    if shape.startswith(b"("):
        return element_types()[b"tuple"]
    return element_types().get(shape.partition(b"[")[0], 0)


_PLACE = re.compile(rb"    (\d{1,9}):(\S+)")
_RANGE = re.compile(rb"    ([^\s{}]+)(\{[\d,]*\}):(\d{1,9})-(\d{1,9})")
_DEALLOCATION, _SHARE = 1, 2
Key = tuple[bytes, tuple[int, ...]]
"""A value: the name of its instruction, and where in the result."""


@dataclass
class LiveRanges:
    """The instructions by their place, and of each value its first and its last place."""

    instructions: dict[int, bytes] = field(default_factory=dict)
    ranges: dict[Key, tuple[int, int]] = field(default_factory=dict)


def read_live_ranges(text: bytes) -> LiveRanges:
    """What the text says; of lines that are neither there is nothing."""
    result = LiveRanges()
    for line in text.split(b"\n"):
        if (value := _RANGE.fullmatch(line)) is not None:
            index = tuple(int(one[:18]) for one in value[2][1:-1].split(b",") if one)
            result.ranges[value[1], index] = int(value[3]), int(value[4])
        elif (place := _PLACE.fullmatch(line)) is not None:
            result.instructions[int(place[1])] = place[2]
    return result


def heap_trace(allocation: Allocation, live: LiveRanges) -> dict[str, Value]:
    """HeapSimulatorTrace of an allocation of temporaries, of its values whose ranges are known.

    A value whose memory another takes over ends before that begins; one that lies in memory which
    is still in use shares it.
    """
    is_lasting = allocation.parameter is not None or allocation.flags
    begins: dict[int, list[Assigned]] = {}
    ends: dict[int, list[Assigned]] = {}
    last: dict[int, int] = {}
    for value in () if is_lasting else allocation.values:
        result = live.ranges.get((value.name, value.index))
        if result is not None and result[0] <= result[1]:
            begins.setdefault(result[0], []).append(value)
            ends.setdefault(result[1], []).append(value)
            last[value.number] = result[1]
    events: list[Value] = []
    held = _Held(last)
    for place in checked(sorted(begins.keys() | ends.keys()), 256):
        named: dict[str, Value] = {"instruction_name": live.instructions.get(place, b"")}
        for value in begins.get(place, ()):
            still = None
            for number in held.below(value):
                if last[number] == place:
                    events.append({"kind": _DEALLOCATION, "buffer_id": number, **named})
                    held.remove(number)
                elif still is None:
                    still = number
            event: dict[str, Value] = {"buffer_id": value.number, **named}
            if still is not None:
                event |= {"kind": _SHARE, "share_with_canonical_id": still}
            events.append(event)
            held.add(value)
        gone = [one.number for one in ends.get(place, ()) if held.remove(one.number)]
        events += ({"kind": _DEALLOCATION, "buffer_id": number, **named} for number in gone)
    return {"events": events, "buffer_allocation_index": allocation.index}


class _Held:
    """The values that are in memory, of those with ``numbers``, in the order in which they came."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = np.array([*numbers], np.int64)
        self._at = {number: at for at, number in enumerate(self._numbers.tolist())}
        self._begin, self._end, self._came = np.zeros((3, self._numbers.size), np.int64)
        self._count = 0

    def below(self, value: Assigned) -> list[int]:
        """The numbers of those that overlap with ``value``."""
        overlap = self._begin < value.offset + value.size
        result = np.flatnonzero(overlap & (self._end > value.offset))
        numbers: list[int] = self._numbers[result[np.argsort(self._came[result])]].tolist()
        return numbers

    def add(self, value: Assigned) -> None:
        at = self._at[value.number]
        if not self._came[at]:
            self._count += 1
            self._came[at] = self._count
        self._begin[at], self._end[at] = value.offset, value.offset + value.size

    def remove(self, number: int) -> bool:
        """Whether it was there."""
        at = self._at[number]
        was_there = bool(self._came[at])
        self._begin[at] = self._end[at] = self._came[at] = 0
        return was_there
