"""Where the values of a compiled program lie, as its buffer assignment says it.

The tables ``hlo_buffers`` and ``hlo_heap_events`` say what values are; this also what stands in
the message and in no table: allocations in whole, layouts of tuples, columns of source lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.formats.hlo_proto.buffers import RowsByNumber, flag_of, indices_of, kinds_of
from peakline.formats.hlo_proto.shapes import Shapes
from peakline.formats.hlo_proto.source import ALLOCATIONS, ASSIGNED, ASSIGNMENT, VALUES
from peakline.formats.hlo_proto.stack_index import StackIndex
from peakline.tables.columns import Names
from peakline.tables.programs import INSTRUCTIONS
from peakline.wire import Buffer, Interner, Plan, WireTable, decode

if TYPE_CHECKING:
    from peakline.formats.hlo_proto.shapes import Shape
    from peakline.tables.programs import Programs


_NOWHERE = ":-1:-1"
_MOST_DIGITS = 12
_MOST_CALLS, _LONGEST_FILE = 200, 1000
"""A text of calls names so many, and of a longer name of a file the begin."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line, and the calls that led to it: ``FILE:LINE:COLUMN``, innermost first, a line each."""

    file: str
    line: int
    stack: str


class SourceLines:
    """The lines of one program, with its call stacks (``GetSourceInfo`` in
    ``xprof/utils/hlo_module_utils.cc``).
    """

    def __init__(self, index: StackIndex) -> None:
        self._index = index
        self._stacks: dict[int, str] = {}
        self._known: dict[tuple[str, int, int], SourceLine | None] = {}

    def line(self, file: str, line: int, frame: int) -> SourceLine | None:
        """The line that the metadata of an instruction names, else the innermost of the call stack
        ``frame`` (from 1 on); None where neither names a file.
        """
        key = file, line, frame
        if key not in self._known:
            stack = self._stack(frame)
            result = SourceLine(file, line, stack) if file else _innermost(stack)
            self._known[key] = result
        return self._known[key]

    def _stack(self, frame: int) -> str:
        if frame not in self._stacks:
            places = self._index.calls(frame)
            self._stacks[frame] = "\n".join(
                _NOWHERE
                if place is None
                else f"{place.file[:_LONGEST_FILE]}:{place.line}:{place.column}"
                for place in islice(places, _MOST_CALLS)
            )
        return self._stacks[frame]


def _innermost(stack: str) -> SourceLine | None:
    parts = stack.split("\n", 1)[0].split(":")
    if len(parts) == 1 or not parts[0]:
        return None
    is_number = parts[1].removeprefix("-").isdecimal() and len(parts[1]) < _MOST_DIGITS
    return SourceLine(parts[0], int(parts[1]) if is_number else 0, stack)


_TRACES = f"{ASSIGNMENT}.heap_simulator_traces"
_EVENTS = f"{_TRACES}.events"
_PATHS = tuple(
    f"{_EVENTS}.{name}"
    for name in ("kind", "buffer_id", "instruction_name", "share_with_canonical_id")
)
CATEGORIES = ("Parameter", "Output", "Thread-local", "Constant", "Temporary")
"""What an allocation is for, in XProf's words: those of
`peakline.formats.hlo_proto.buffers.KINDS`."""


@dataclass(frozen=True, eq=False)
class Allocations:
    """Allocations by their number: sizes in bytes, the memory space, what they are for (a place in
    `CATEGORIES`).

    ``first`` is of each the first of its `Values`, and at the end how many of these there are.
    """

    number: Int64Array
    bytes: Int64Array
    space: Int64Array
    is_parameter: BoolArray
    is_live_out: BoolArray
    is_thread_local: BoolArray
    is_tuple: BoolArray
    category: Int64Array
    first: Int64Array

    def values(self, rows: AnyArray) -> tuple[Int64Array, Int64Array]:
        """The rows of the values that lie in some allocations, one allocation after the other, and
        for each the place of its allocation in ``rows``.
        """
        begin, end = self.first[rows], self.first[rows + 1]
        return _ranges(begin, end), np.repeat(np.arange(rows.size), end - begin)

    @cached_property
    def is_indefinite(self) -> BoolArray:
        """Which allocations hold their memory from the beginning to the end."""
        result: BoolArray = self.category != len(CATEGORIES) - 1
        return result


@dataclass(frozen=True, eq=False)
class Values:
    """Values in the order of the allocations they lie in; sizes and offsets in bytes.

    ``instruction`` is a row of `Placement.instructions`, -1 where a value names none. ``path`` is
    the place in the instruction's result, a row of ``paths``, of which the first is all of it.
    ``own`` is the row that counts for a value: of several with one number the last, -1 where the
    program has none of that number.
    """

    number: Int64Array
    allocation: Int64Array
    offset: Int64Array
    assigned_bytes: Int64Array
    bytes: Int64Array
    space: Int64Array
    instruction: Int64Array
    path: Int64Array
    paths: list[tuple[int, ...]]
    own: Int64Array


@dataclass(frozen=True, eq=False)
class Events:
    """One simulated heap: what happens (the ``kind`` as in ``peakline.kernels.heap_layout``) to
    which value, at which instruction (a row of `Placement.event_names`).

    ``value`` and ``shared_with`` are rows of `Values` that count, -1 for those without a place.
    """

    kind: Int64Array
    value: Int64Array
    shared_with: Int64Array
    instruction: Int64Array


@dataclass(frozen=True, eq=False)
class Instructions:
    """The instructions that define values; ``op_name`` is what the framework calls each, -1 where
    it has no metadata. ``shape`` and ``line`` are rows of ``shapes`` and ``lines``.
    """

    name: Names
    opcode: Names
    op_name: Names
    shape: Int64Array
    shapes: list[Shape]
    line: Int64Array
    lines: list[SourceLine | None]


@dataclass(frozen=True, eq=False)
class Placement:
    """The buffer assignment of one program; ``name`` and ``entry`` are the module's.

    ``heaps`` are the simulated heaps, in the order of the file; some may be empty. ``event_names``
    has the instruction of each event of all of them.
    """

    name: str
    entry: str
    allocations: Allocations
    values: Values
    instructions: Instructions
    heaps: list[Events]
    event_names: Names

    @classmethod
    def of(cls, programs: Programs, number: int) -> Placement:
        """That of one program."""
        read = _Reader(programs, number)
        result = cls(
            read.name, read.entry, read.allocations, read.values, read.instructions, read.heaps,
            read.event_names,
        )  # fmt: skip
        programs.release(number)
        return result


class _Reader:
    """The parts of a `Placement`, from the message, which is not held any longer than this."""

    def __init__(self, programs: Programs, number: int) -> None:
        self.data: Buffer = programs.data(number)
        self._programs, self._number = programs, number
        self._decoded = programs.parts(number, _PATHS)
        module = self._decoded["hlo_module"]
        self.name, self.entry = (
            "".join(module.spans(field).texts(self.data)[-1:])
            for field in ("name", "entry_computation_name")
        )

    @cached_property
    def allocations(self) -> Allocations:
        """Every allocation, of several with one number the last."""
        table, rows = self._decoded[ALLOCATIONS], self._order
        parents = self._decoded[ASSIGNED].parent
        counts = np.bincount(parents, minlength=table.rows)[rows]
        return Allocations(
            number=_numbers(table, "index", rows),
            bytes=_numbers(table, "size", rows),
            space=_numbers(table, "color", rows),
            is_parameter=flag_of(table, "is_entry_computation_parameter")[rows],
            is_live_out=flag_of(table, "maybe_live_out")[rows],
            is_thread_local=flag_of(table, "is_thread_local")[rows],
            is_tuple=flag_of(table, "is_tuple")[rows],
            category=kinds_of(table)[rows],
            first=np.append(0, np.cumsum(counts)),
        )

    @cached_property
    def _order(self) -> Int64Array:
        """The rows of the allocations by their number."""
        number = self._decoded[ALLOCATIONS].array("index")[::-1]
        return number.size - 1 - np.unique(number, return_index=True)[1]

    @cached_property
    def _assigned(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Of every place of a value, by allocation: its row, its allocation, the value's number."""
        assigned = self._decoded[ASSIGNED]
        bounds = np.searchsorted(assigned.parent, [self._order, self._order + 1])
        rows = _ranges(bounds[0], bounds[1])
        allocation = np.repeat(np.arange(self._order.size), bounds[1] - bounds[0])
        return rows, allocation, _numbers(assigned, "logical_buffer_id", rows)

    @cached_property
    def values(self) -> Values:
        """Every value in every allocation."""
        assigned, table = self._decoded[ASSIGNED], self._decoded[VALUES]
        rows, allocation, number = self._assigned
        value = RowsByNumber(_numbers(table, "id")).rows_of(number)
        sizes, spaces = (np.append(_numbers(table, name), 0)[value] for name in ("size", "color"))
        path, paths = self._paths
        return Values(
            number=number,
            allocation=allocation,
            offset=_numbers(assigned, "offset", rows),
            assigned_bytes=_numbers(assigned, "size", rows),
            bytes=sizes,
            space=spaces,
            instruction=np.append(self._definers[0], -1)[value],
            path=np.append(path, 0)[value],
            paths=paths,
            own=np.where(value >= 0, RowsByNumber(number).rows_of(number), -1),
        )

    @cached_property
    def _paths(self) -> tuple[Int64Array, list[tuple[int, ...]]]:
        """Where in its instruction's result each value is, as a row of the distinct places."""
        numbers: dict[tuple[int, ...], int] = {(): 0}
        path = np.zeros(self._decoded[VALUES].rows, np.int64)
        for row, index in indices_of(self._decoded).items():
            path[row] = numbers.setdefault(index, len(numbers))
        return path, list(numbers)

    @cached_property
    def _definers(self) -> tuple[Int64Array, Int64Array]:
        """Per value the place of its instruction among those that define some, -1 for none; and the
        rows of these in the program.

        Files of before 2022 name the instruction by its name.
        """
        places = self._decoded[f"{VALUES}.defined_at"]
        known = RowsByNumber(_numbers(self._decoded[INSTRUCTIONS], "id"))
        row = known.rows_of(places.array("instruction_id"))
        named = (row < 0) & (places.spans("instruction_name").length > 0)
        if named.any():
            texts = self._programs.read(self._number, "hlo_instructions", {"name"}).names("name")
            by_name = {name: at for at, name in enumerate(texts.to_list())}
            names = places.spans("instruction_name").take(named).texts(self.data)
            row[named] = [by_name.get(name, -1) for name in names]
        used, place = np.unique(row, return_inverse=True)
        lacking = int(used.size > 0 and used[0] < 0)
        result = np.full(self._decoded[VALUES].rows, -1, np.int64)
        result[places.parent] = place - lacking
        return result, used[lacking:]

    @cached_property
    def instructions(self) -> Instructions:
        """The instructions that define values."""
        spans = self._decoded[INSTRUCTIONS].spans("@span").take(self._definers[1])
        decoded = decode(self.data, _instruction_plan(), spans)
        head, meta = decoded[""], decoded["metadata"]
        shapes = Shapes()
        shape = shapes.add(self.data, head.spans("shape"))
        op_name, ops = np.full(head.rows, -1, np.int32), _texts(self.data, meta, "op_name")
        op_name[meta.parent] = ops.codes
        line = np.zeros(head.rows, np.int64)
        line[meta.parent], lines = self._lines(meta)
        return Instructions(
            name=_texts(self.data, head, "name"),
            opcode=_texts(self.data, head, "opcode"),
            op_name=Names(op_name, ops.values),
            shape=shape.astype(np.int64),
            shapes=shapes.shapes,
            line=line,
            lines=lines,
        )

    def _lines(self, meta: WireTable) -> tuple[Int64Array, list[SourceLine | None]]:
        """Which line of the user's program each metadata names, as a row of these; the first is
        none.
        """
        files = _texts(self.data, meta, "source_file")
        codes = files.codes.astype(np.int64)
        for name in ("source_line", "stack_frame_id"):
            known, place = np.unique(meta.array(name), return_inverse=True)
            codes = np.unique(codes * known.size + place, return_inverse=True)[1]
        first = np.unique(codes, return_index=True)[1]
        lines = SourceLines(StackIndex(self._decoded))
        rows = zip(
            files.codes[first].tolist(),
            meta.array("source_line")[first].tolist(),
            meta.array("stack_frame_id")[first].tolist(),
            strict=True,
        )
        return codes + 1, [None, *(lines.line(files.values[file], *where) for file, *where in rows)]

    @cached_property
    def event_names(self) -> Names:
        """The instruction of each event of every heap."""
        return _texts(self.data, self._decoded[_EVENTS], "instruction_name")

    @cached_property
    def heaps(self) -> list[Events]:
        """The simulated heaps, in the order of the file; some may be empty."""
        table = self._decoded[_EVENTS]
        bounds = np.searchsorted(table.parent, np.arange(self._decoded[_TRACES].rows + 1)).tolist()
        own, by_number = np.append(self.values.own, -1), RowsByNumber(self._assigned[2])
        columns = (
            _numbers(table, "kind"),
            *(
                own[by_number.rows_of(table.array(name))]
                for name in ("buffer_id", "share_with_canonical_id")
            ),
            self.event_names.codes.astype(np.int64),
        )
        return [
            Events(*(column[begin:end] for column in columns)) for begin, end in pairwise(bounds)
        ]


@cache
def _instruction_plan() -> Plan:
    meta = ("op_name", "source_file", "source_line", "stack_frame_id")
    return Plan(
        schema.shape("xla.HloInstructionProto"),
        ("name", "opcode", "shape", *(f"metadata.{name}" for name in meta)),
    )


def _numbers(table: WireTable, name: str, rows: AnyArray | slice = slice(None)) -> Int64Array:
    return table.array(name)[rows].astype(np.int64)


def _texts(buffer: Buffer, table: WireTable, name: str) -> Names:
    result = Interner()
    return Names(result.add(buffer, table.spans(name)), result.texts())


def _ranges(begin: AnyArray, end: AnyArray) -> Int64Array:
    """The numbers of all ranges, one after the other."""
    sizes = end - begin
    shift = np.repeat(begin - np.cumsum(sizes) + sizes, sizes)
    result: Int64Array = np.arange(int(sizes.sum())) + shift
    return result
