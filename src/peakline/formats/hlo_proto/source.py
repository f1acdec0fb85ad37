"""Programs of XLA as they are stored: each is an ``HloProto`` (``xla/service/hlo.proto``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from typing import TypeVar, cast

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, Int32Array, Int64Array
from peakline.formats.graph_def.source import broken_fields, submessages
from peakline.formats.hlo_proto.shapes import Shapes
from peakline.formats.hlo_proto.stack_index import STACK_PATHS, StackIndex
from peakline.tables.columns import Names
from peakline.wire import Buffer, Damage, Decoded, Interner, Plan, Spans, WireTable, decode

_MODULE = "hlo_module"
COMPUTATIONS = f"{_MODULE}.computations"
INSTRUCTIONS = f"{COMPUTATIONS}.instructions"
_CODE = "metadata.size_of_generated_code_in_bytes"
_SEQUENCES = f"{_MODULE}.schedule.sequences"
_STRUCTURE = (
    *(f"{_MODULE}.{name}" for name in ("name", "entry_computation_name", "entry_computation_id")),
    *STACK_PATHS,
    *(f"{COMPUTATIONS}.{name}" for name in ("name", "id", "root_id", "is_fusion_computation")),
    *(f"{INSTRUCTIONS}.{name}" for name in (
        "@span", "id", "opcode", "shape", "operand_ids", "control_predecessor_ids",
        "called_computation_ids", "parameter_number", "tuple_index", "fusion_kind", _CODE)),
    f"{_SEQUENCES}.key",
    f"{_SEQUENCES}.value.instruction_ids",
)  # fmt: skip
_OWN_NAMES = "name"
ASSIGNMENT = "buffer_assignment"
VALUES = f"{ASSIGNMENT}.logical_buffers"
ALLOCATIONS = f"{ASSIGNMENT}.buffer_allocations"
ASSIGNED = f"{ALLOCATIONS}.assigned"
_PLACES = (
    *(f"{VALUES}.{name}" for name in (
        "id", "size", "color", "defined_at.instruction_id", "defined_at.instruction_name",
        "defined_at.shape_index")),
    *(f"{ALLOCATIONS}.{name}" for name in (
        "index", "size", "color", "is_thread_local", "is_tuple", "is_entry_computation_parameter",
        "is_constant", "parameter_number", "is_parameter_aliased_with_output", "maybe_live_out")),
    *(f"{ASSIGNED}.{name}" for name in ("logical_buffer_id", "offset", "size")),
)  # fmt: skip
Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class StoredProgram:
    """One program, and what is known of it outside its bytes.

    ``name`` is what the file calls it, ``program_id`` the number by which events name it, if the
    file says so, ``backend`` cpu, gpu, tpu or empty. ``load`` gives the bytes of the HloProto,
    ``release`` the memory back in which they are: they come again when they are needed.
    """

    name: str
    program_id: int | None
    backend: str
    load: Callable[[], Buffer]
    release: Callable[[], None] | None = None


class Strings:
    """The texts and shapes that the programs of a file share."""

    __retained__ = "_texts shapes"

    def __init__(self) -> None:
        self._texts: dict[str, Interner] = {}
        self.shapes = Shapes()

    def of(self, column: str) -> Interner:
        """The distinct texts of a column."""
        return self._texts.setdefault(column, Interner())


_PARTS = {_MODULE: ("xla.HloModuleProto", 1), ASSIGNMENT: ("xla.BufferAssignmentProto", 3)}
"""The fields of an HloProto: their messages and numbers."""


@cache
def _plan(part: str, paths: tuple[str, ...]) -> Plan:
    # A computation stays where one of its instructions is damaged, whatever is read of it.
    below = COMPUTATIONS.removeprefix(f"{part}.")
    containers = ("", below) if any(path.startswith(f"{below}.") for path in paths) else ("",)
    return Plan(schema.shape(_PARTS[part][0]), paths, containers=containers)


class ProgramSource:
    """One program while its tables are made. What several of them need is decoded once."""

    __retained__ = (
        "buffer head structure places opcodes shapes ids computation_ids roots stacks schedule "
        "_made"
    )

    def __init__(self, stored: StoredProgram, strings: Strings) -> None:
        self.stored, self.strings = stored, strings
        self.buffer = stored.load()
        self.damage = Damage()
        """The worst that one of the decodings met."""
        self.losses: dict[tuple[str, str], int] = {}
        """How much of it names nothing or fits nothing, by kind of warning and by what it is."""
        self._made: dict[Callable[[ProgramSource], object], object] = {}

    @cached_property
    def _spans(self) -> dict[str, Spans]:
        """Where the module and the assignment lie, as far as the bytes go."""
        result, size = {}, int(self.buffer.size)
        for part, (_, field) in _PARTS.items():
            _, spans, missing = submessages(self.buffer, [0], [size], field)
            result[part] = the_one(spans, missing)
            if missing:
                self.damage += Damage(1, 0, size, missing)
        self.damage += broken_fields(self.buffer, "xla.HloProto", _MODULE)
        return result

    def decode(self, *paths: str) -> Decoded:
        """What the paths name: of the module, of the assignment or of both."""
        tables: dict[str, WireTable] = {}
        for part, spans in self._spans.items():
            mine = tuple(path[len(part) + 1 :] for path in paths if path.startswith(f"{part}."))
            if not mine:
                continue
            result = decode(self.buffer, _plan(part, mine), spans)
            tables |= {f"{part}.{path}" if path else part: t for path, t in result.tables.items()}
            self.damage = max(self.damage, result.damage, key=lambda damage: damage.places)
        return Decoded(self.buffer, tables)

    def parts(self, *paths: str) -> Decoded:
        """What the paths name of the assignment, beside `structure` and `places`."""
        parts = self.structure, self.places, self.decode(*paths)
        return Decoded(self.buffer, dict(chain.from_iterable(p.tables.items() for p in parts)))

    def release(self) -> None:
        """Give the memory of its bytes back until they are needed again."""
        if self.stored.release is not None:
            self.stored.release()

    def once(self, make: Callable[[ProgramSource], Made]) -> Made:
        """What ``make`` makes of the program, the first time that it is needed."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast("Made", self._made[make])

    def names(self, column: str, spans: Spans, *, empty: bool = True) -> Names:
        """Texts of a column; an empty one is null where there can be none that is ``empty``."""
        result = self.strings.of(column)
        codes = result.add(self.buffer, spans)
        if not empty:
            codes[spans.length == 0] = -1
        # Of a large program nearly each instruction has its own name, and few are shown.
        return Names(codes, result.texts() if column == _OWN_NAMES else result.values)

    @cached_property
    def head(self) -> ModuleHead:
        """What the module says of itself."""
        module = self.structure[_MODULE]
        name, entry = (
            (module.spans(field).texts(self.buffer) or [""])[0]
            for field in ("name", "entry_computation_name")
        )
        number = int(module.array("entry_computation_id").sum())
        return ModuleHead(name, entry, number, len(self._spans[ASSIGNMENT]) > 0)

    @cached_property
    def entry(self) -> int:
        """The row of the computation that the program begins with, -1 without any: that of its
        number, else of its name, else the last.
        """
        table = self.computations
        fits = table.array("id") == self.head.entry_id
        if not fits.any():
            names = table.spans("name").texts(self.buffer)
            fits = np.array([name == self.head.entry_name for name in names], np.bool_)
        rows = np.flatnonzero(fits)
        return int(rows[0]) if rows.size else table.rows - 1

    @cached_property
    def structure(self) -> Decoded:
        """What nearly every table needs of the module, from one pass over it."""
        return self.decode(*_STRUCTURE)

    @cached_property
    def places(self) -> Decoded:
        """The values of the assignment, its allocations, and which lie where."""
        return self.decode(*_PLACES)

    @property
    def computations(self) -> WireTable:
        """Numbers and names of the computations."""
        return self.structure[COMPUTATIONS]

    @cached_property
    def opcodes(self) -> Names:
        """The opcode of every instruction."""
        return self.names("opcode", self.structure[INSTRUCTIONS].spans("opcode"))

    @cached_property
    def shapes(self) -> Int32Array:
        """The shape of every instruction, as a place in those of `strings`."""
        spans = self.structure[INSTRUCTIONS].spans("shape")
        return self.strings.shapes.add(self.buffer, spans)

    @property
    def code_bytes(self) -> int:
        """Size of the generated code, as far as the instructions say it."""
        sizes = self.structure[f"{INSTRUCTIONS}.metadata"].array(_CODE[9:]).astype(np.int64)
        return max(int(sizes.sum()), 0)

    @cached_property
    def ids(self) -> Places:
        """The rows of instructions by their number."""
        table = self.structure[INSTRUCTIONS]
        return Places(table.parent, table.array("id").astype(np.int64, copy=False))

    @cached_property
    def roots(self) -> Int64Array:
        """The instruction that is the result of each computation, -1 where it names none."""
        table = self.computations
        return self.ids.rows(np.arange(table.rows), table.array("root_id").astype(np.int64))

    @cached_property
    def stacks(self) -> StackIndex:
        """The call stacks of the module."""
        return StackIndex(self.structure)

    def called(self, calls: WireTable) -> Int64Array:
        """The computation of every call, -1 where it names none."""
        numbers = calls.array("value").astype(np.int64)
        return self.computation_ids.anywhere(numbers)

    def operands(self, listed: WireTable) -> Int64Array:
        """The instruction that every operand names, of the same computation; -1 for none."""
        return self.ids.rows(self.ids.group[listed.parent], listed.array("value").astype(np.int64))

    def first_operand(self, rows: Int64Array) -> Int64Array:
        """The first operand of each of some instructions, -1 for one without."""
        listed = self.structure[f"{INSTRUCTIONS}.operand_ids"]
        at = np.searchsorted(listed.parent, rows)
        result = np.full(rows.size, -1, np.int64)
        has = np.flatnonzero(np.append(listed.parent, -1)[at] == rows)
        numbers = listed.array("value").astype(np.int64)[at[has]]
        result[has] = self.ids.rows(self.ids.group[rows[has]], numbers)
        return result

    @cached_property
    def computation_ids(self) -> Places:
        """The rows of computations by their number."""
        table = self.computations
        return Places(np.zeros(table.rows, np.int32), table.array("id").astype(np.int64))

    @cached_property
    def schedule(self) -> Int32Array:
        """Per instruction its place in the order of its computation, -1 without one."""
        decoded = self.structure
        entries, values = decoded[_SEQUENCES], decoded[f"{_SEQUENCES}.value"]
        listed = decoded[f"{_SEQUENCES}.value.instruction_ids"]
        of = self.computation_ids.rows(
            np.zeros(listed.rows, np.int32),
            entries.array("key").astype(np.int64)[values.parent[listed.parent]],
        )
        rows = self.ids.rows(of, listed.array("value").astype(np.int64))
        places = np.full(self.ids.count, -1, np.int32)
        order = np.arange(listed.rows) - np.searchsorted(listed.parent, listed.parent)
        places[rows[rows >= 0]] = order[rows >= 0]
        return places


def the_one(spans: Spans, missing: int) -> Spans:
    """Of several messages where one belongs the last, unless it is ``missing`` bytes; or none."""
    last = len(spans) - (2 if missing and len(spans) > 1 else 1)
    return spans.take(np.arange(len(spans))[max(last, 0) :][:1])


@dataclass(frozen=True)
class ModuleHead:
    """Name, entry computation by name and by number, and whether there is a buffer assignment."""

    name: str
    entry_name: str
    entry_id: int
    is_assigned: bool


class Places:
    """Where things are that have numbers, each in its group: ``group`` and ``number`` per row."""

    __retained__ = "group number _order _sorted"

    def __init__(self, group: AnyArray, number: Int64Array) -> None:
        self.count = int(number.size)
        self.group, self.number = group, number
        # By number, then group; of two that are the same the first row counts.
        self._order = np.argsort(number, kind="stable").astype(np.int32)
        self._sorted = number[self._order]
        self._is_distinct = bool((self._sorted[1:] != self._sorted[:-1]).all())
        if not self._is_distinct:
            self._order = np.lexsort((np.arange(number.size), group, number)).astype(np.int32)

    def anywhere(self, number: Int64Array) -> Int64Array:
        """The first row of each number, whatever its group; -1 where there is none."""
        if not self.count:
            return np.full(number.size, -1, np.int64)
        at = np.minimum(np.searchsorted(self._sorted, number), self.count - 1)
        return np.where(self._sorted[at] == number, self._order[at], np.int64(-1))

    def rows(self, group: AnyArray, number: Int64Array) -> Int64Array:
        """The row of each number in its group, -1 where there is none."""
        result = self.anywhere(number)
        if not self.count:
            return result
        if not self._is_distinct and self.count:
            low = np.searchsorted(self._sorted, number)
            high = np.searchsorted(self._sorted, number, side="right")
            groups = self.group[self._order]
            # Few share one number: one step after the other through those that do.
            while (more := (low < high) & (groups[np.minimum(low, self.count - 1)] < group)).any():
                low += more
            result = np.where(
                low < high, self._order[np.minimum(low, self.count - 1)], np.int64(-1)
            )
        fits = self.group[result] == group
        return np.where((result >= 0) & fits, result, -1)
