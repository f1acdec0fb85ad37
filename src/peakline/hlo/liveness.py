"""What a program without a buffer assignment needs, from the order of its instructions alone.

A result is live from the instruction that makes it to the last one that uses it or what stands for
it: tuples and their parts, bitcasts, loops and what they carry hold no memory of their own
(``xla/service/hlo_dataflow_analysis.cc``). An instruction that computes element by element, or
updates a slice, writes over an operand that nothing needs any more, if that has room. How XLA packs
what is live, and what else it shares, is not known: the peak is computed, and can be off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from peakline import schema
from peakline.formats.hlo_proto.categories import ELEMENTWISE
from peakline.formats.hlo_proto.element_types import width_of
from peakline.wire import Plan, decode

if TYPE_CHECKING:
    from peakline.arrays import AnyArray, UInt8Array
    from peakline.tables.programs import Programs

_SAME = frozenset(
    "add-dependency after-all all-gather-done all-reduce-done async-done async-update bitcast "
    "collective-permute-done copy-done domain opt-barrier optimization-barrier recv-done send-done "
    "while".split()
)
"""Opcodes whose result is their first operand."""
_IN_PLACE = ELEMENTWISE | {"dynamic-update-slice", "scatter"}
_INSIDE = frozenset(("while", "call", "conditional", "async-start"))
"""Opcodes whose called computations need memory while they run."""
_WANTED = frozenset(
    ("opcode", "shape", "layout", "computation_id", "schedule_index", "fusion_kind", "tuple_index")
)
_ALIASES = "hlo_module.input_output_alias.entries"
_ELSEWHERE = re.compile(r"S\([1-9]")
"""What is not in the device's main memory."""
_ARRAY = re.compile(r"([a-z]\w*)\[([\d,<=]*)\]")
_MOST_BYTES = 2**62
Place: TypeAlias = "int | list[Place]"
"""The row that holds a result, or those of a tuple's parts; -1 for nothing."""


@dataclass
class Need:
    """What a computation needs beside what it is given: ``bytes`` at most at one time, and the rows
    that hold memory then, with their sizes. ``parameters`` and ``constants`` are those of the entry
    computation, which hold memory all the time; ``outputs`` are the rows that make its results.
    """

    bytes: int = 0
    live: list[tuple[int, int]] = field(default_factory=list)
    parameters: list[tuple[int, int]] = field(default_factory=list)
    constants: list[tuple[int, int]] = field(default_factory=list)
    outputs: frozenset[int] = frozenset()

    @property
    def whole_bytes(self) -> int:
        """What the program needs at most at one time."""
        always = sum(size for _, size in (*self.parameters, *self.constants))
        return min(self.bytes + always, _MOST_BYTES)


def compute_need(programs: Programs, number: int) -> Need | None:
    """What a program needs; None where nothing gives the order of its entry's instructions."""
    walk = _Walk(programs, number)
    return walk.need() if walk.is_ordered else None


class _Walk:
    def __init__(self, programs: Programs, number: int) -> None:
        table = programs.read(number, "hlo_instructions", _WANTED)
        computations = programs.read(number, "hlo_computations", frozenset())
        links = programs.read(number, "hlo_operands")
        data = ~links.array("is_control")
        calls = programs.read(number, "hlo_calls")
        self._opcode = [opcode or "" for opcode in table.names("opcode").to_list()]
        shapes = table.names("shape")
        sizes = np.array([*map(_bytes, shapes.values), 0])[shapes.codes]
        elsewhere = table.names("layout").per_row(_ELSEWHERE.search, np.bool_)
        self._size: list[int] = np.where(elsewhere, 0, sizes).tolist()
        self._fusion = table.names("fusion_kind").to_list()
        self._part: list[int] = table.array("tuple_index").tolist()
        of = table.array("computation_id")
        order = np.lexsort((table.array("schedule_index"), of))
        bounds = np.searchsorted(of[order], np.arange(computations.rows + 1)).tolist()
        self._order, self._bounds = order, bounds
        self._operands = _Groups(
            links.array("instruction_id")[data], links.array("operand_id")[data]
        )
        self._calls = _Groups(calls.array("instruction_id"), calls.array("computation_id"))
        known = computations.is_valid("root_id")
        self._root: list[int] = np.where(known, computations.array("root_id"), -1).tolist()
        entries = np.flatnonzero(computations.array("is_entry")).tolist()
        self._entry = entries[0] if entries else -1
        scheduled = computations.array("is_scheduled")
        self.is_ordered = bool(entries) and bool(scheduled[self._entry])
        self._inside: dict[int, Need] = {}
        self._donated = _donated(programs.data(number))

    def need(self) -> Need:
        """What the entry computation needs, what it calls included."""
        waiting, seen = [(self._entry, False)], set[int]()
        while waiting:
            computation, is_ready = waiting.pop()
            if is_ready:
                self._inside[computation] = self._sweep(computation)
            elif computation not in seen:
                seen.add(computation)
                waiting.append((computation, True))
                for row in self._rows(computation):
                    if self._opcode[row] in _INSIDE:
                        waiting += [(callee, False) for callee in self._calls.of(row)]
        return self._inside[self._entry]

    def _rows(self, computation: int) -> list[int]:
        rows: list[int] = self._order[
            self._bounds[computation] : self._bounds[computation + 1]
        ].tolist()
        return rows

    def _sweep(self, computation: int) -> Need:
        """Go through the instructions in order."""
        rows, is_entry = self._rows(computation), computation == self._entry
        places: dict[int, Place] = {}
        last: dict[int, int] = {}
        for at, row in enumerate(rows):
            places[row] = self._place(row, places)
            for operand in self._operands.of(row):
                if self._opcode[row] not in ("tuple", "get-tuple-element"):
                    last.update(dict.fromkeys(_flat(places.get(operand, -1)), at))
        result = places.get(self._root[computation], rows[-1] if rows else -1)
        found, results = Need(), set(_flat(result))
        size = {row: self._size[row] for row in rows if places[row] == row}
        fixed = {row for row in size if self._opcode[row] in ("parameter", "constant")}
        if is_entry:
            for opcode, part in (("parameter", found.parameters), ("constant", found.constants)):
                part += [(row, size[row]) for row in size if self._opcode[row] == opcode]
            found.outputs = frozenset(results - fixed)
            # A donated parameter's memory is taken over; other results stay to the end.
            fixed |= {row for index in self._donated for row in _flat(_part(result, index))}
            last.update(dict.fromkeys(results, len(rows)))
        else:
            # The caller holds the memory of what it gets back.
            fixed |= results
        self._fill(rows, places, size, last, fixed, found)
        return found

    def _fill(
        self, rows: Sequence[int], places: dict[int, Place], size: dict[int, int],
        last: dict[int, int], fixed: set[int], found: Need,
    ) -> None:  # fmt: skip
        """The most that is live of what is neither given nor given back."""
        ends: dict[int, list[int]] = {}
        live: dict[int, int] = {}
        total = 0
        for at, row in enumerate(rows):
            if places[row] == row and row not in fixed:
                reused = self._written_over(row, at, places, live, last)
                if reused is not None:
                    total -= live.pop(reused)
                live[row] = size[row]
                total += size[row]
                ends.setdefault(last.get(row, at), []).append(row)
            inside = max(
                (self._inside[callee] for callee in self._calls.of(row) if callee in self._inside),
                key=lambda need: need.bytes,
                default=None,
            )
            here = total + (inside.bytes if inside is not None else 0)
            if here > found.bytes:
                found.bytes = here
                found.live = [*live.items(), *(inside.live if inside is not None else ())]
            for gone in ends.pop(at, ()):
                total -= live.pop(gone, 0)

    def _written_over(
        self, row: int, at: int, places: dict[int, Place], live: dict[int, int],
        last: dict[int, int],
    ) -> int | None:  # fmt: skip
        """An operand whose memory the result takes over."""
        is_loop = self._opcode[row] == "fusion" and self._fusion[row] == "kLoop"
        if not (is_loop or self._opcode[row] in _IN_PLACE):
            return None
        for operand in self._operands.of(row):
            place = places.get(operand, -1)
            if isinstance(place, list):
                continue
            if last.get(place) == at and live.get(place, -1) == self._size[row]:
                return place
        return None

    def _place(self, row: int, places: dict[int, Place]) -> Place:
        opcode, operands = self._opcode[row], self._operands.of(row)
        if opcode == "tuple":
            return [places.get(operand, -1) for operand in operands]
        if opcode in _SAME:
            return places.get(operands[0], -1) if operands else -1
        if opcode == "get-tuple-element" and operands:
            whole = places.get(operands[0], -1)
            part = self._part[row]
            if isinstance(whole, list):
                return whole[part] if 0 <= part < len(whole) else -1
            return whole
        return row


def _part(place: Place, index: Sequence[int]) -> Place:
    """The part of a tuple at a path."""
    for number in index:
        if not isinstance(place, list) or not 0 <= number < len(place):
            return -1
        place = place[number]
    return place


def _donated(data: UInt8Array) -> list[tuple[int, ...]]:
    """Where in the program's result a parameter's memory is taken over
    (``HloInputOutputAliasProto``).
    """
    entries = f"{_ALIASES}.output_shape_index"
    decoded = decode(data, _plan(), None)
    indices: list[list[int]] = [[] for _ in range(decoded[_ALIASES].rows)]
    listed = decoded[entries]
    for row, number in zip(listed.parent.tolist(), listed.array("value").tolist(), strict=True):
        indices[row].append(number)
    return [tuple(index) for index in indices]


@cache
def _plan() -> Plan:
    return Plan(schema.shape("xla.HloProto"), (f"{_ALIASES}.@", f"{_ALIASES}.output_shape_index"))


def _flat(place: Place) -> Iterator[int]:
    """The rows of a place, -1 left out."""
    waiting = [place]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif one >= 0:
            yield one


def _bytes(shape: str) -> int:
    """Bytes of all arrays of a shape."""
    total = 0
    for kind, sizes in _ARRAY.findall(shape):
        count = 1
        for size in sizes.replace("<=", "").split(","):
            count = min(count * int(size or 1), _MOST_BYTES)
        total = min(total + count * width_of(kind), _MOST_BYTES)
    return total


class _Groups:
    """What belongs to each row; ``owner`` ascends."""

    def __init__(self, owner: AnyArray, value: AnyArray) -> None:
        rows = int(owner.max(initial=-1)) + 2
        self._first: list[int] = np.searchsorted(owner, np.arange(rows)).tolist()
        self._value: list[int] = value.tolist()

    def of(self, row: int) -> list[int]:
        """The values of a row."""
        if row + 1 >= len(self._first):
            return []
        return self._value[self._first[row] : self._first[row + 1]]
