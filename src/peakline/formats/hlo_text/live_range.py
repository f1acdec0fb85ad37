"""XLA's text of when values are live (``-live-range.txt``), as the heap of an assignment's text.

``HloLiveRange::ToString`` in openxla/xla (``xla/hlo/utils/hlo_live_range.cc``) writes the order of
the instructions, and of each value the first and the last place at which it is live.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from peakline.deadline import checked
from peakline.formats.hlo_text.assignment import Allocation, Assigned
from peakline.formats.hlo_text.packing import Value

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
    found = LiveRanges()
    for line in text.split(b"\n"):
        if (value := _RANGE.fullmatch(line)) is not None:
            index = tuple(int(one[:18]) for one in value[2][1:-1].split(b",") if one)
            found.ranges[value[1], index] = int(value[3]), int(value[4])
        elif (place := _PLACE.fullmatch(line)) is not None:
            found.instructions[int(place[1])] = place[2]
    return found


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
        found = live.ranges.get((value.name, value.index))
        if found is not None and found[0] <= found[1]:
            begins.setdefault(found[0], []).append(value)
            ends.setdefault(found[1], []).append(value)
            last[value.number] = found[1]
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
        found = np.flatnonzero(overlap & (self._end > value.offset))
        numbers: list[int] = self._numbers[found[np.argsort(self._came[found])]].tolist()
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
