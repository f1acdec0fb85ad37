"""What a program without a buffer assignment needs, from the order of its instructions alone.

A value is an array that an instruction makes, of several results each. It is live from there to the
last instruction that uses it or what stands for it: tuples and their parts, bitcasts, loops and
what they carry, the ends of copies and collectives, and what a custom call or a fusion says that it
writes into an operand (``output_to_operand_aliasing``), hold no memory of their own
(``xla/service/hlo_dataflow_analysis.cc``). An instruction that computes element by element, or
updates or sorts what it is given, writes over an operand of the same size that nothing needs any
more (``CanShareOperandBufferWithUser`` there), also over a donated parameter, until the result is
made that has its memory. How XLA packs what is live, and what else it shares, is not known: the
peak is computed, and can be off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from peakline import schema
from peakline.formats.hlo_proto.categories import ELEMENTWISE
from peakline.formats.hlo_proto.shapes import MOST_BYTES, Shape, Shapes
from peakline.tables.programs import INSTRUCTIONS
from peakline.wire import Decoded, Plan, decode

if TYPE_CHECKING:
    from peakline.arrays import AnyArray, Int64Array
    from peakline.tables.columns import Columns
    from peakline.tables.programs import Programs

_SAME = frozenset(
    "add-dependency all-reduce-done async-update bitcast domain opt-barrier optimization-barrier "
    "recv-done send-done while".split()
)
"""Opcodes whose result is their first operand."""
_STARTS = {
    "copy-start": (0, 1), "all-gather-start": (1, 0), "async-start": (1, 0),
    "collective-permute-start": (1, 0), "recv": (0, -1), "send": (-1, 0),
}  # fmt: skip
"""Which part of the result is new, and which stands for the operand; the rest holds no memory."""
_DONE = {
    "copy-done": 0, "all-gather-done": 1, "async-done": 1, "collective-permute-done": 1,
}  # fmt: skip
"""Opcodes whose result is that part of their operand."""
_OVER_ONE = {"dynamic-update-slice": 0, "scatter": 0, "triangular-solve": 1}
"""Opcodes that write over that operand only."""
_INSIDE = frozenset(("while", "call", "conditional", "async-start"))
"""Opcodes whose called computations need memory while they run."""
_WANTED = frozenset(
    "opcode computation_id schedule_index fusion_kind tuple_index parameter_number".split()
)
_ALIASES = "hlo_module.input_output_alias.entries"
_PARAMETER = "parameter_shape_index"
_INTO = f"{INSTRUCTIONS}.output_operand_aliasing"
_OUTPUT = "output_shape_index"
_NOWHERE = (-1,)
Path: TypeAlias = tuple[int, ...]
Place: TypeAlias = "int | list[Place]"
"""The number of the value that lies there, or those of a tuple's parts; -1 for nothing."""
_NO_PLACES: Mapping[Path, Place] = {}


class Value(NamedTuple):
    """An array: the row of the instruction that makes it, where in its result, bytes, shape."""

    row: int
    path: Path
    bytes: int
    shape: str


@dataclass
class Need:
    """What a computation needs beside what it is given: ``bytes`` at most at one time, and the
    values that hold memory then. ``parameters`` are those of the entry computation, ``constants``
    those of every computation that runs: they hold memory all the time. ``outputs`` are results,
    ``inner`` is what a called computation needs beside ``live``. ``curve`` has of each computation
    that runs its instructions in order, and what each needs while it runs, what is called left out.
    """

    bytes: int = 0
    live: list[Value] = field(default_factory=list)
    parameters: list[Value] = field(default_factory=list)
    constants: list[Value] = field(default_factory=list)
    outputs: frozenset[Value] = frozenset()
    inner: Need | None = None
    curve: dict[int, tuple[Int64Array, Int64Array]] = field(default_factory=dict)

    @property
    def whole_bytes(self) -> int:
        """What the program needs at most at one time."""
        always = sum(value.bytes for value in (*self.parameters, *self.constants))
        return min(self.bytes + always, MOST_BYTES)


def compute_need(programs: Programs, number: int) -> Need | None:
    """What a program needs; None where nothing gives the order of its entry's instructions."""
    computations = programs.read(number, "hlo_computations", frozenset())
    entries = np.flatnonzero(computations.array("is_entry"))
    if not (entries.size and computations.array("is_scheduled")[entries[0]]):
        return None
    return _Walk(programs, number, computations, int(entries[0])).need()


class _Walk:
    def __init__(self, programs: Programs, number: int, computations: Columns, entry: int) -> None:
        table = programs.read(number, "hlo_instructions", _WANTED)
        links = programs.read(number, "hlo_operands")
        is_data = ~links.array("is_control")
        calls = programs.read(number, "hlo_calls")
        self._opcode = [opcode or "" for opcode in table.names("opcode").to_list()]
        self._fusion = table.names("fusion_kind").to_list()
        self._part: list[int] = table.array("tuple_index").tolist()
        self._number: list[int] = table.array("parameter_number").tolist()
        of = table.array("computation_id")
        order = np.lexsort((table.array("schedule_index"), of))
        bounds = np.searchsorted(of[order], np.arange(computations.rows + 1)).tolist()
        self._order, self._bounds = order, bounds
        self._operands = _Groups(
            links.array("instruction_id")[is_data], links.array("operand_id")[is_data]
        )
        self._calls = _Groups(calls.array("instruction_id"), calls.array("computation_id"))
        known = computations.is_valid("root_id")
        self._root: list[int] = np.where(known, computations.array("root_id"), -1).tolist()
        self._entry = entry
        self._values: list[Value] = []
        self._constants: list[Value] = []
        self._inside: dict[int, Need] = {}
        self._curves: dict[int, tuple[Int64Array, Int64Array]] = {}
        data, shapes = programs.data(number), Shapes()
        spans = programs.parts(number, ())[INSTRUCTIONS].spans("shape")
        self._shape: list[int] = shapes.add(data, spans).tolist()
        self._shapes = shapes.shapes
        decoded = decode(data, _plan())
        self._donated = _donated(decoded)
        self._into = _written_into(decoded)

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
        result = self._inside[self._entry]
        result.constants = self._constants
        result.curve = self._curves
        while result.inner is not None:
            result.live += result.inner.live
            result.inner = result.inner.inner
        return result

    def _rows(self, computation: int) -> list[int]:
        rows: list[int] = self._order[
            self._bounds[computation] : self._bounds[computation + 1]
        ].tolist()
        return rows

    def _sweep(self, computation: int) -> Need:
        """Go through the instructions in order."""
        rows, is_entry = self._rows(computation), computation == self._entry
        first = len(self._values)
        places: dict[int, Place] = {}
        made: list[range] = []
        last: dict[int, int] = {}
        tuples: dict[int, tuple[list[Place], int]] = {}
        for at, row in enumerate(rows):
            before = len(self._values)
            places[row] = self._place(row, places)
            made.append(range(before, len(self._values)))
            if self._opcode[row] not in ("tuple", "get-tuple-element"):
                for operand in self._operands.of(row):
                    place = places.get(operand, -1)
                    if isinstance(place, list):
                        tuples.pop(id(place), None)
                        tuples[id(place)] = place, at
                    elif place >= 0:
                        last[place] = at
        # Those used last come first: what is in one of them is not needed longer in others.
        seen = set[int]()
        for listed, at in reversed(tuples.values()):
            for one in _flat(listed, seen):
                last[one] = max(last.get(one, at), at)
        result = places.get(self._root[computation], places[rows[-1]] if rows else -1)
        matches, results = Need(), set(_flat(result))
        own = range(first, len(self._values))
        given = {one for one in own if self._opcode[self._values[one].row] == "parameter"}
        lasting = {one for one in own if self._opcode[self._values[one].row] == "constant"}
        self._constants += [self._values[one] for one in sorted(lasting)]
        fixed = given | lasting
        if is_entry:
            matches.parameters = [self._values[one] for one in sorted(given)]
            matches.outputs = frozenset(self._values[one] for one in results - fixed)
            # A donated parameter's memory is taken over; other results stay to the end.
            seen = set()
            fixed |= {one for at, _ in self._donated for one in _flat(_part(result, at), seen)}
            last.update(dict.fromkeys(results, len(rows)))
        else:
            # The caller holds the memory of what it gets back.
            fixed |= results
        makes = {value: at for at, values in enumerate(made) for value in values}
        lent: dict[int, tuple[int, int]] = {}
        of_result = {parameter: at for at, parameter in self._donated}
        for one in given if is_entry else ():
            row, path, size, _ = self._values[one]
            then = _part(result, of_result.get((self._number[row], path), _NOWHERE))
            if isinstance(then, int) and then in makes and then != one:
                lent[one] = size, makes[then]
        curve = self._fill(rows, made, places, last, fixed, lent, matches)
        self._curves[computation] = np.array(rows, np.int64), np.array(curve, np.int64)
        return matches

    def _fill(
        self, rows: Sequence[int], made: Sequence[range], places: dict[int, Place],
        last: dict[int, int], fixed: set[int], lent: dict[int, tuple[int, int]],
        result: Need,
    ) -> list[int]:  # fmt: skip
        """The most that is live of what is neither given nor given back, nor lies in what is
        ``lent``: by the value in it, memory of others that may be written over, and until when.
        Returns what is live at each instruction, what it calls left out.
        """
        ends: dict[int, list[int]] = {}
        live: dict[int, int] = {}
        begun: list[tuple[int, int]] = []
        gone: dict[int, int] = {}
        total, peak, curve = 0, -1, list[int]()
        for at, row in enumerate(rows):
            over = self._ending(row, at, places, live, lent, last) if made[at] else {}
            for value in made[at]:
                if value in fixed:
                    continue
                size = self._values[value].bytes
                reused = self._written_over(value, over, live, lent, last.get(value, at))
                if reused in lent:
                    lent[value] = lent.pop(reused)
                    continue
                if reused is not None:
                    total -= live.pop(reused)
                    gone[reused] = at
                live[value] = size
                begun.append((value, at))
                total += size
                ends.setdefault(last.get(value, at), []).append(value)
            inside = max(
                (self._inside[callee] for callee in self._calls.of(row) if callee in self._inside),
                key=lambda need: need.bytes,
                default=None,
            )
            curve.append(total)
            here = total + (inside.bytes if inside is not None else 0)
            if here > result.bytes:
                result.bytes, result.inner, peak = here, inside, at
            for value in ends.pop(at, ()):
                if value in live:
                    total -= live.pop(value)
                    gone[value] = at + 1
        result.live = [
            self._values[value] for value, at in begun if at <= peak < gone.get(value, len(rows))
        ]
        return curve

    def _ending(
        self, row: int, at: int, places: dict[int, Place], live: dict[int, int],
        lent: dict[int, tuple[int, int]], last: dict[int, int],
    ) -> dict[tuple[int, int], list[int]]:  # fmt: skip
        """By their bytes the operands whose memory the results of an instruction may take over; of
        a sort also by the number of the result.
        """
        opcode, operands = self._opcode[row], self._operands.of(row)
        if opcode in _OVER_ONE:
            operands = operands[_OVER_ONE[opcode] : _OVER_ONE[opcode] + 1]
        elif opcode != "sort":
            if opcode not in ELEMENTWISE and (opcode, self._fusion[row]) != ("fusion", "kLoop"):
                return {}
            operands = list(dict.fromkeys(operands))
        result: dict[tuple[int, int], list[int]] = {}
        for number, operand in enumerate(operands):
            place = places.get(operand, -1)
            if isinstance(place, list) or last.get(place) != at:
                continue
            size = live[place] if place in live else lent.get(place, (-1, -1))[0]
            result.setdefault((size, number if opcode == "sort" else -1), []).append(place)
        return result

    def _written_over(
        self, value: int, over: dict[tuple[int, int], list[int]], live: dict[int, int],
        lent: dict[int, tuple[int, int]], until: int,
    ) -> int | None:  # fmt: skip
        """An operand of those whose memory the value takes over, which it needs ``until`` then."""
        row, path, size, _ = self._values[value]
        number = (path[0] if path else 0) if self._opcode[row] == "sort" else -1
        listed = over.get((size, number), [])
        for at, place in enumerate(listed):
            if place in live or lent.get(place, (-1, -1))[1] >= until:
                return listed.pop(at)
        return None

    # Where results lie.

    def _place(self, row: int, places: dict[int, Place]) -> Place:
        opcode = self._opcode[row]
        operands = [places.get(operand, -1) for operand in self._operands.of(row)]
        if opcode == "tuple":
            return operands
        if opcode in _SAME:
            return operands[0] if operands else -1
        if opcode == "get-tuple-element" or opcode in _DONE:
            part = _DONE.get(opcode, self._part[row])
            return _part(operands[0], (part,)) if operands else -1
        shape = self._shapes[self._shape[row]]
        if opcode in _STARTS and shape.kind == "tuple":
            return self._started(row, shape, operands)
        into = {
            path: _part(operands[number], part)
            for path, number, part in self._into.get(row, ())
            if 0 <= number < len(operands)
        }
        return self._new(row, (), shape, into)

    def _started(self, row: int, shape: Shape, operands: list[Place]) -> Place:
        """What an asynchronous start gives: what it makes, and its operands."""
        new, same = _STARTS[self._opcode[row]]
        parts: list[Place] = [-1 for _ in shape.parts]
        for number, part in enumerate(shape.parts):
            if number == new:
                parts[number] = self._new(row, (number,), part)
            elif number == same and operands:
                parts[number] = operands if part.kind == "tuple" else operands[0]
        return parts

    def _new(
        self, row: int, path: Path, shape: Shape, into: Mapping[Path, Place] = _NO_PLACES
    ) -> Place:
        """What an instruction makes, but what lies where it writes ``into``."""
        there = into.get(path, -1)
        if there != -1 and isinstance(there, list) == (shape.kind == "tuple"):
            return there
        if shape.kind == "tuple":
            return [self._new(row, (*path, n), part, into) for n, part in enumerate(shape.parts)]
        is_elsewhere = shape.layout is not None and shape.layout.memory_space
        size = 0 if is_elsewhere else shape.bytes
        self._values.append(Value(row, path, size, shape.text))
        return len(self._values) - 1


def _part(place: Place, index: Sequence[int]) -> Place:
    """The part of a tuple at a path."""
    for number in index:
        if not isinstance(place, list) or not 0 <= number < len(place):
            return -1
        place = place[number]
    return place


def _donated(decoded: Decoded) -> list[tuple[Path, tuple[int, Path]]]:
    """Where in the program's result a parameter's memory is taken over, and which part of which
    parameter (``HloInputOutputAliasProto``).
    """
    outputs, parameters = (_paths(decoded, _ALIASES, name) for name in (_OUTPUT, _PARAMETER))
    numbers = decoded[_ALIASES].array("parameter_number").tolist()
    return [*zip(outputs, zip(numbers, parameters, strict=True), strict=True)]


def _written_into(decoded: Decoded) -> dict[int, list[tuple[Path, int, Path]]]:
    """By instruction, which part of its result lies in which operand, and there in which part
    (``HloInstructionProto.output_operand_aliasing``).
    """
    result: dict[int, list[tuple[Path, int, Path]]] = {}
    listed = decoded[_INTO]
    outputs, parts = (_paths(decoded, _INTO, name) for name in (_OUTPUT, "operand_shape_index"))
    numbers = listed.array("operand_index").tolist()
    for row, *alias in zip(listed.parent.tolist(), outputs, numbers, parts, strict=True):
        result.setdefault(row, []).append((alias[0], alias[1], alias[2]))
    return result


def _paths(decoded: Decoded, message: str, field: str) -> list[Path]:
    """The numbers of a repeated field, by message."""
    result: list[list[int]] = [[] for _ in range(decoded[message].rows)]
    listed = decoded[f"{message}.{field}"]
    for row, number in zip(listed.parent.tolist(), listed.array("value").tolist(), strict=True):
        result[row].append(number)
    return [*map(tuple, result)]


@cache
def _plan() -> Plan:
    names = [f"{_ALIASES}.{name}" for name in ("parameter_number", _OUTPUT, _PARAMETER)]
    names += [f"{_INTO}.{name}" for name in (_OUTPUT, "operand_index", "operand_shape_index")]
    return Plan(schema.shape("xla.HloProto"), names)


def _flat(place: Place, seen: set[int] | None = None) -> Iterator[int]:
    """The values of a place, -1 left out. Tuples may hold one another many times; what is in those
    that were ``seen`` before is left out.
    """
    waiting, seen = [place], set[int]() if seen is None else seen
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            if id(one) not in seen:
                seen.add(id(one))
                waiting += one
        elif one >= 0:
            yield one


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
