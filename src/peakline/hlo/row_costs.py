"""What every instruction of a program costs, of a large one too: what is the same is counted once.

The rules are those of `peakline.hlo.cost`. Of a million instructions few differ in what a rule
looks at: opcode, attributes, the shapes of result and operands, and what is called. Equal
instructions are found by a hash of that, equal computations by one of their instructions and how
these are linked, both of 64 bits.

XLA's own count takes one turn of a loop. Where the compiler knew how many there are, it says so in
the loop's configuration (``known_trip_count`` of ``WhileLoopBackendConfig``, xla/xla_data.proto):
a whole run is counted with them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, BoolArray, Int64Array, UInt64Array
from peakline.hlo.cost import NOTHING, Cost, Costing
from peakline.hlo.cost_rules import prepare
from peakline.hlo.program import UNCOUNTED, Made, Program, Sum, most_places
from peakline.tables.once import once
from peakline.tables.programs import INSTRUCTIONS
from peakline.wire import Interner, Plan, Spans, WireTable, decode

if TYPE_CHECKING:
    from peakline.schema import HloInstructionProto
    from peakline.tables import Profile
    from peakline.tables.programs import Programs

_PLACED = ("tuple_index", "parameter_number")
"""What matters only inside a fusion."""
_CALLED = ("custom_call_target", "backend_config")
_ATTRIBUTES = {
    "custom-call": _CALLED,
    "fusion": ("fusion_kind",),
    "while": ("backend_config",),
    "get-tuple-element": _PLACED,
    "parameter": _PLACED,
    "convolution": ("window", "convolution_dimension_numbers", "feature_group_count",
                    "batch_group_count"),
    "dot": ("dot_dimension_numbers",),
    "scaled-dot": ("dot_dimension_numbers",),
    "ragged-dot": ("ragged_dot_dimension_numbers",),
    "fft": ("fft_length",),
    "transpose": ("dimensions",),
    "reduce-window": ("window",),
    "select-and-scatter": ("window",),
}  # fmt: skip
"""Attributes that a rule looks at, by opcode. A library's convolution is a custom call."""
_OF_LIBRARIES = _ATTRIBUTES["convolution"]
_DEEPEST = 1000
"""Calls within calls; what lies deeper, as in a circle, counts as costing nothing."""


@dataclass(frozen=True, eq=False)
class RowCosts:
    """Costs of one execution per instruction, in the order of ``hlo_instructions``.

    ``distinct`` are the costs that occur, ``code`` says which of them are an instruction's;
    ``total`` is that of the entry computation; ``guessed`` counts instructions that were not as
    they should be and cost nothing here.
    """

    flops: AnyArray
    transcendentals: AnyArray
    bytes_accessed: AnyArray
    total: Cost
    guessed: int
    code: Int64Array
    distinct: Sequence[Cost]


@once
def row_costs(profile: Profile, number: int) -> RowCosts:
    """The costs of a program of the profile."""
    programs = profile.programs()
    if programs is None:
        raise IndexError(number)
    return count_rows(programs, number)


def count_rows(programs: Programs, number: int) -> RowCosts:
    """As `row_costs`, counted anew."""
    return Counting(programs, number).counted_rows()


@cache
def _plan(fields: tuple[str, ...]) -> Plan:
    return Plan(schema.shape("xla.HloInstructionProto"), fields)


class Counting(Costing):
    """The work on one program. Computations and instructions are known by their rows."""

    def __init__(self, programs: Programs, number: int) -> None:
        self.guessed = 0
        self.sums: dict[int, Sum] = {}
        self._buffer = programs.data(number)
        self._instructions = programs.parts(number, ())[INSTRUCTIONS]
        self._spans = self._instructions.spans("@span")
        self._read_instructions(programs, number)
        self._read_links(programs, number)
        self._program = Program({}, {}, self._entry, is_gpu=self.is_gpu)
        self._program.places = most_places(self._operand.size)
        self._stubs: dict[int, Made] = {}
        self._representative = np.arange(self._root.size)
        """Of each computation that is called the first that is the same."""
        self._hash(programs, number)

    def _read_instructions(self, programs: Programs, number: int) -> None:
        wanted = {"opcode", "shape", "layout", "computation_id"}
        listed = programs.read(number, "hlo_instructions", wanted)
        result = programs.read(number, "hlo_computations", frozenset())
        self._of: AnyArray = listed.array("computation_id").astype(np.int32)
        self._opcode = listed.names("opcode")
        self._bounds = _starts(self._of, result.rows)
        self._root = np.where(result.is_valid("root_id"), result.array("root_id"), -1)
        entries = np.flatnonzero(result.array("is_entry"))
        self._entry = int(entries[0]) if entries.size else -1
        shape, layout = (listed.names(name).codes for name in ("shape", "layout"))
        both = shape.astype(np.int64) * (int(layout.max(initial=0)) + 2) + layout + 1
        is_small = both.max(initial=0) <= np.iinfo(np.int32).max
        self._shape: AnyArray = both.astype(np.int32) if is_small else both

    def _read_links(self, programs: Programs, number: int) -> None:
        links = programs.read(number, "hlo_operands")
        data = ~links.array("is_control")
        self._operand = links.array("operand_id")[data].astype(np.int32)
        self._user = links.array("instruction_id")[data].astype(np.int32)
        calls = programs.read(number, "hlo_calls")
        self._caller, self._callee = calls.array("instruction_id"), calls.array("computation_id")
        self._operands_of = _starts(self._user, self._of.size)
        self._calls_of = _starts(self._caller, self._of.size)

    def _hash(self, programs: Programs, number: int) -> None:
        """What each instruction is in itself, as a number, and how it is linked to others."""
        rows = self._of.size
        own = _mix(self._opcode.codes, self._shape)
        inside = own.copy()
        for opcode, fields in _ATTRIBUTES.items():
            some = np.flatnonzero(self._opcode.codes == self._opcode.code_of(opcode))
            if some.size:
                inside[some] = _mix(own[some], self._attributes(some, opcode, fields))
                if fields is not _PLACED:
                    own[some] = inside[some]
        # Attributes lie everywhere in the program: what follows needs few of its bytes.
        programs.release(number)
        place = np.arange(rows, dtype=np.int32) - self._bounds[self._of]
        rank = np.arange(self._user.size, dtype=np.int32) - self._operands_of[self._user]
        self._key = _mix(own, _sums(self._user, _mix(rank, self._shape[self._operand]), rows))
        """Per instruction a hash of what its rule looks at."""
        del own
        self._linked = _mix(
            inside, place, _sums(self._user, _mix(rank, place[self._operand]), rows)
        )
        """Per instruction a hash of what it is in its computation."""
        is_root = self._root >= 0
        self._same = np.zeros(self._root.size, np.uint64)
        """Per computation a hash of all of it."""
        self._same[is_root] = _mix(place[self._root[is_root]])

    def _attributes(self, some: Int64Array, opcode: str, fields: tuple[str, ...]) -> UInt64Array:
        """A hash of attributes of some instructions of an opcode."""
        if opcode == "custom-call":
            fields = (*fields, *_OF_LIBRARIES)
        known, lists = self._instructions.columns, dict[str, WireTable]()
        columns = {field: known[field].take(some) for field in fields if field in known}
        if len(columns) < len(fields):
            decoded = decode(self._buffer, _plan(fields), self._spans.take(some))
            columns, lists = decoded[""].columns, decoded.tables
        result: list[AnyArray] = []
        for field in fields:
            column = columns.get(field)
            if isinstance(column, Spans):
                result.append(Interner().add(self._buffer, column))
            elif isinstance(column, np.ndarray):
                result.append(column)
            else:
                listed = lists[field]
                each = _mix(_ranks(listed.parent), listed.array("value"))
                result.append(_sums(listed.parent, each, some.size))
        return _mix(*result)

    def _levels(self) -> Int64Array:
        """Per computation how many calls deep what it calls goes; what calls itself is at the end
        of the deepest.
        """
        above = self._of[self._caller]
        levels = np.zeros(self._root.size, np.int64)
        for _ in range(_DEEPEST):
            deeper = np.zeros_like(levels)
            np.maximum.at(deeper, above, levels[self._callee] + 1)
            if (deeper == levels).all():
                break
            levels = deeper
        return levels

    def counted_rows(self) -> RowCosts:
        """The costs of the program."""
        levels = self._levels()
        code = np.zeros(self._of.size, np.int64)
        known: dict[int, int] = {}
        costs: list[Made] = []
        called, fused = self._mark_called()
        for level in np.unique(levels).tolist():
            rows = np.flatnonzero(levels[self._of] == level)
            self._add_calls(rows)
            keys, first, place = np.unique(self._key[rows], return_index=True, return_inverse=True)
            many = np.bincount(place)
            numbers = []
            for key, row, count in zip(
                keys.tolist(), rows[first].tolist(), many.tolist(), strict=True
            ):
                if key not in known:
                    known[key] = len(costs)
                    costs.append(self._count_one(row, count))
                numbers.append(known[key])
            code[rows] = np.array(numbers, np.int64)[place]
            self._add_computations(np.flatnonzero(called & (levels == level)), code, costs, fused)
        return self._answer(code, costs)

    def _mark_called(self) -> tuple[BoolArray, BoolArray]:
        """Which computations are called, and which of them are the inside of a fusion."""
        called, fused = (np.zeros(self._root.size, np.bool_) for _ in range(2))
        called[self._callee] = True
        fusion = self._opcode.codes[self._caller] == self._opcode.code_of("fusion")
        fused[self._callee[fusion]] = True
        return called, fused

    def _add_calls(self, rows: Int64Array) -> None:
        """Take into the hashes of instructions what they call."""
        low, high = self._calls_of[rows], self._calls_of[rows + 1]
        callers = rows[high > low]
        if callers.size:
            inside = np.zeros(self._of.size, np.bool_)
            inside[callers] = True
            calls = np.flatnonzero(inside[self._caller])
            more = _sums(
                self._caller[calls],
                _mix(_ranks(self._caller)[calls], self._same[self._callee[calls]]),
                self._of.size,
            )[callers]
            self._key[callers] = _mix(self._key[callers], more)
            self._linked[callers] = _mix(self._linked[callers], more)
        np.add.at(self._same, self._of[rows], self._linked[rows])

    def _proto(self, row: int) -> HloInstructionProto:
        from google.protobuf.message import DecodeError

        opcode = self._opcode[row] or ""
        try:
            if opcode != "constant":
                return schema.HloInstructionProto.FromString(self._spans.bytes(self._buffer, row))
            # Without its value, which may be gigabytes.
            made = schema.HloInstructionProto(opcode=opcode)
            shape = decode(self._buffer, _plan(("shape",)), self._spans.take(np.array([row])))[""]
            made.shape.ParseFromString(shape.spans("shape").bytes(self._buffer, 0))
        except DecodeError:
            self.guessed += 1
            made = schema.HloInstructionProto(opcode=opcode)
        return made

    def _made(self, row: int) -> Made:
        made = Made(self._proto(row))
        low, high = self._calls_of[row : row + 2].tolist()
        made.calls = self._representative[self._callee[low:high]].tolist()
        return made

    def _count_one(self, row: int, times: int) -> Made:
        """One of ``times`` equal instructions, by the shapes of its operands."""
        made = self._made(row)
        low, high = self._operands_of[row : row + 2].tolist()
        for operand in self._operand[low:high].tolist():
            shape = int(self._shape[operand])
            if shape not in self._stubs:
                self._stubs[shape] = Made(self._proto(operand))
            made.operands.append(self._stubs[shape])
        self._count(made, times)
        return made

    def _count(self, made: Made, times: int) -> None:
        prepare(made)
        try:
            self.count(made, self._program, self._entry)
        except UNCOUNTED:
            made.flops = made.transcendentals = made.bytes = 0.0
            self.guessed += times

    def _add_computations(
        self, computations: Int64Array, code: Int64Array, costs: list[Made], fused: BoolArray
    ) -> None:
        """The sums of computations that are called, and of fusions how their parts are linked."""
        inside = fused[computations]
        key = _mix(self._same[computations], inside)
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        self._representative[computations] = computations[first[place]]
        for row in computations[first].tolist():
            low, high = self._bounds[row : row + 2].tolist()
            numbers, many = np.unique(code[low:high], return_counts=True)
            self.sums[row] = total = Sum()
            for number, times in zip(numbers.tolist(), many.tolist(), strict=True):
                self.add_to(total, costs[number], self._program, times)
            if fused[row]:
                self._add_graph(row)

    def _add_graph(self, computation: int) -> None:
        low, high = self._bounds[computation : computation + 2].tolist()
        parts = [self._made(row) for row in range(low, high)]
        links = slice(self._operands_of[low], self._operands_of[high])
        for user, operand in zip(
            self._user[links].tolist(), self._operand[links].tolist(), strict=True
        ):
            parts[user - low].operands.append(parts[operand - low])
            parts[operand - low].users.append(parts[user - low])
        for part in parts:
            self._count(part, 0)
        root = int(self._root[computation])
        self._program.computations[computation] = parts
        if parts:
            self._program.roots[computation] = parts[root - low] if root >= 0 else parts[-1]

    def _answer(self, code: Int64Array, costs: list[Made]) -> RowCosts:
        result = [self.cost(made) for made in costs]
        columns = [
            np.array([getattr(one, name) for one in result], np.float64)[code]
            if result
            else np.zeros(0)
            for name in ("flops", "transcendentals", "bytes_accessed")
        ]
        low, high = self._bounds[self._entry : self._entry + 2].tolist() if result else (0, 0)
        numbers, many = np.unique(code[low:high], return_counts=True)
        total = [0.0] * len(NOTHING)
        for number, times in zip(numbers.tolist(), many.tolist(), strict=True):
            total = [one + times * more for one, more in zip(total, result[number], strict=True)]
        return RowCosts(
            columns[0], columns[1], columns[2], Cost(*total), self.guessed, code, result
        )


def _mix(*columns: AnyArray) -> UInt64Array:
    """A hash per row of the numbers of several columns (the finaliser of SplitMix64)."""
    result = np.zeros(columns[0].size, np.uint64)
    for column in columns:
        result += column.astype(np.uint64)
        result *= np.uint64(0x9E3779B97F4A7C15)
        result ^= result >> np.uint64(30)
        result *= np.uint64(0xBF58476D1CE4E5B9)
        result ^= result >> np.uint64(27)
        result *= np.uint64(0x94D049BB133111EB)
        result ^= result >> np.uint64(31)
    return result


def _sums(at: AnyArray, hashes: UInt64Array, rows: int) -> UInt64Array:
    """The sums of the hashes of each row; ``at`` ascends."""
    result = np.zeros(rows, np.uint64)
    if at.size:
        first = np.flatnonzero(np.append(True, at[1:] != at[:-1]))
        result[at[first]] = np.add.reduceat(hashes, first)
    return result


def _starts(parents: AnyArray, rows: int) -> AnyArray:
    """Where the entries of each of ``rows`` begin, and at the end how many there are; parents
    ascend.
    """
    return np.append(0, np.cumsum(np.bincount(parents, minlength=rows))).astype(np.int32)


def _ranks(parents: AnyArray) -> AnyArray:
    """The place of every entry among those of its parent; parents ascend."""
    return np.arange(parents.size) - np.searchsorted(parents, parents)


_MOST_TURNS = 2**40


@dataclass(frozen=True)
class ExecutedCost:
    """``flops``, ``bytes_accessed`` and ``transcendentals`` of a run; ``is_least`` where it has a
    loop of which nothing says how many turns it takes: one counts.
    """

    flops: float
    bytes_accessed: float
    transcendentals: float
    is_least: bool


class _Executed(Counting):
    """Counts each turn of a loop."""

    is_least = False

    def count(self, made: Made, program: Program, computation: int) -> None:
        """As the others, but for loops."""
        super().count(made, program, computation)
        if made.opcode == "while":
            turns = turns_of(made.proto)
            self.is_least |= turns is None
            if turns is not None and turns != 1:
                more = Sum()
                more.add(made, turns)
                made.flops, made.transcendentals = more.flops, more.transcendentals
                made.bytes, made.read, made.out = more.bytes, more.read, more.out


def turns_of(loop: HloInstructionProto) -> int | None:
    """How many turns a loop takes; None where it does not say."""
    try:
        config = json.loads(loop.backend_config or b"{}")
        known = config.get("known_trip_count") or {}
        turns = known.get("n")
        return None if turns is None else min(max(int(turns), 0), _MOST_TURNS)
    except (ValueError, OverflowError, AttributeError, TypeError, RecursionError):
        return None


@once
def executed_cost(profile: Profile, number: int) -> ExecutedCost:
    """What a run of a program of the profile costs."""
    programs = profile.programs()
    if programs is None:
        raise IndexError(number)
    counting = _Executed(programs, number)
    total = counting.counted_rows().total
    return ExecutedCost(total.flops, total.bytes_accessed, total.transcendentals, counting.is_least)
