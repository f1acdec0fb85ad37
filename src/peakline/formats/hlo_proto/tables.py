"""`ProgramTables`: the tables of any number of compiled programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.formats.hlo_proto.buffers import Assignment, read_heap_events
from peakline.formats.hlo_proto.frames import read_frames
from peakline.formats.hlo_proto.instructions import (
    read_calls,
    read_computations,
    read_instructions,
    read_operands,
)
from peakline.formats.hlo_proto.source import ProgramSource, StoredProgram, Strings
from peakline.tables.columns import Column, Columns, Names
from peakline.tables.programs import Programs
from peakline.tables.reader import Warnings
from peakline.tables.tables import TABLES, columns_of_rows, empty_columns, whole_table
from peakline.wire import Buffer, Damage, Decoded

P = ParamSpec("P")
T = TypeVar("T")
MOST_PROGRAMS = 1 << 10
"""So many programs of a profile are read. Each costs some milliseconds, however small it is."""

_READ: dict[str, Callable[[ProgramSource, AbstractSet[str] | None], Columns]] = {
    "hlo_modules": lambda source, _: _module(source),
    "hlo_computations": lambda source, columns: read_computations(source, columns),  # noqa: PLW0108
    "hlo_instructions": lambda source, columns: read_instructions(source, columns),  # noqa: PLW0108
    "hlo_operands": lambda source, _: read_operands(source),
    "hlo_calls": lambda source, _: read_calls(source),
    "hlo_frames": lambda source, _: read_frames(source),
    "hlo_buffers": lambda source, _: source.once(Assignment).buffers(),
    "hlo_heap_events": lambda source, _: read_heap_events(source),
}
_ROW_NUMBERS = {
    "computation_id": "computations",
    "instruction_id": "instructions",
    "operand_id": "instructions",
    "root_id": "instructions",
    "stack_id": "stacks",
    "buffer_id": "buffers",
}
"""Columns that are row numbers, and of what."""
_MOST_SMALL, _SMALL_BYTES = 2048, 8 << 10
"""So many programs of so many bytes are held: programs of a single op often come in hundreds, and
opening each takes longer than what it holds.
"""


def _alone(
    method: Callable[Concatenate[ProgramTables, P], T],
) -> Callable[Concatenate[ProgramTables, P], T]:
    """The method, for one thread at a time: programs share their texts and shapes."""

    @wraps(method)
    def alone(self: ProgramTables, /, *args: P.args, **named: P.kwargs) -> T:
        with self._lock:
            return method(self, *args, **named)

    return alone


class ProgramTables(Programs):
    """The tables of programs; each is decoded when it is read, program after program. Several
    threads may read: questions to one profile come side by side.
    """

    __retained__ = "_strings _last _small"

    def __init__(self, programs: Sequence[StoredProgram], left_out: int = 0) -> None:
        self._programs, self.left_out = programs, left_out
        self._strings = Strings()
        self._lock = RLock()
        self._last: tuple[int, ProgramSource] | None = None
        self._small: dict[int, ProgramSource] = {}
        self._filled: dict[str, bool] = {}
        self.damage: dict[int, Damage] = {}
        """By program the worst that reading it met."""
        self._losses: dict[tuple[str, int, str], int] = {}
        self._reported: set[tuple[str, int, str]] = set()

    def joined(self, others: ProgramTables) -> ProgramTables:
        """These programs, and of ``others`` those that are not among them: by name and number, or
        by name where one has no number. Their bytes come from where they came before.
        """
        result = list(self._programs)
        known: dict[str, set[int | None]] = {}

        def enter(one: StoredProgram) -> bool:
            """Whether it is a new one, which from now on is known."""
            # In the name of a file some characters of a program's stand for others.
            numbers = known.setdefault(re.sub(r"[\W_]+", "", one.name), set())
            is_new = not numbers.intersection((one.program_id, None))
            is_new = is_new and not (one.program_id is None and numbers)
            numbers.add(one.program_id)
            return is_new

        for one in result:
            enter(one)
        result += filter(enter, others._programs)
        over = max(len(result) - max(len(self._programs), MOST_PROGRAMS), 0)
        return ProgramTables(result[: len(result) - over], self.left_out + others.left_out + over)

    def __len__(self) -> int:
        return len(self._programs)

    @_alone
    def name(self, number: int) -> str:
        """What the file calls a program, without its id; else as it calls itself."""
        return self._programs[number].name or self._source(number).head.name

    def program_id(self, number: int) -> int | None:
        """The number by which events name it."""
        return self._programs[number].program_id

    @_alone
    def data(self, number: int) -> Buffer:
        """The bytes of its HloProto."""
        return self._source(number).buffer

    @_alone
    def release(self, number: int) -> None:
        """Give the memory of its bytes back."""
        self._source(number).release()

    @_alone
    def read(self, number: int, table: str, columns: AbstractSet[str] | None = None) -> Columns:
        """The rows of one program of a table."""
        return self._read(self._source(number), number, table, columns)

    @_alone
    def instructions(self, number: int, rows: Int64Array, columns: AbstractSet[str]) -> Columns:
        """Some rows of ``hlo_instructions`` of one program."""
        return read_instructions(self._source(number), columns, rows)

    @_alone
    def parts(self, number: int, paths: Sequence[str]) -> Decoded:
        """The structure of the module, the assignment, and what the paths name beside them."""
        source = self._source(number)
        result = source.parts(*paths)
        source.release()
        return result

    @_alone
    def table(self, table: str, warnings: Warnings, columns: AbstractSet[str] | None) -> Columns:
        """The rows of all programs of a table."""
        parts = []
        bases = dict.fromkeys(_ROW_NUMBERS.values(), 0)
        for number in range(len(self)):
            source = self._source(number)
            part = self._read(source, number, table, columns)
            data: dict[str, Column] = dict(part)
            if "module_id" in whole_table(table):
                data["module_id"] = np.full(part.rows, number, np.int64)
            for name, of in _ROW_NUMBERS.items():
                if name in data:
                    data[name] = part.array(name) + bases[of]
            parts.append(Columns(data, part.valid))
            bases["computations"] += source.computation_ids.count
            bases["instructions"] += source.ids.count
            bases["stacks"] += len(source.stacks)
            if table == "hlo_buffers":
                bases["buffers"] += part.rows
        self._warn(warnings)
        return _joined(table, parts)

    @_alone
    def has_rows(self, table: str) -> bool:
        """Whether a program has a row of a table; looked for once."""
        if table not in self._filled:
            self._filled[table] = any(self._rows(number, table) for number in range(len(self)))
        return self._filled[table]

    def _rows(self, number: int, table: str) -> int:
        """How many rows one program has of a table."""
        if table == "hlo_instructions":
            return self._source(number).ids.count
        return self.read(number, table, frozenset()).rows

    def _source(self, number: int) -> ProgramSource:
        """The program, the same again where it is held: several tables need the same of it."""
        held = self._small.get(number)
        if held is not None:
            return held
        last = self._last
        if last is None or last[0] != number:
            last = self._last = number, ProgramSource(self._programs[number], self._strings)
        if len(self._small) < _MOST_SMALL and last[1].buffer.size <= _SMALL_BYTES:
            self._small[number] = last[1]
        return last[1]

    def _read(
        self, source: ProgramSource, number: int, table: str, columns: AbstractSet[str] | None
    ) -> Columns:
        result = _READ[table](source, columns)
        self.damage[number] = max(
            self.damage.get(number, Damage()), source.damage, key=lambda one: one.places
        )
        for (kind, what), count in source.losses.items():
            self._losses[kind, number, what] = count
        source.release()
        return result

    def _warn(self, warnings: Warnings) -> None:
        """Count what was lost, each loss once."""
        self.report(warnings)
        for (kind, number, what), count in self._losses.items():
            if (kind, number, what) not in self._reported:
                self._reported.add((kind, number, what))
                warnings.add(kind, _DETAILS[kind], count)
        for number, damage in self.damage.items():
            if damage and ("hlo_damaged", number, "") not in self._reported:
                self._reported.add(("hlo_damaged", number, ""))
                warnings.add("hlo_damaged", _DETAILS["hlo_damaged"])


_DETAILS = {
    "hlo_damaged": "compiled programs that are damaged: answered from what is whole",
    "hlo_reference": "operands, calls and buffers of compiled programs that name nothing",
    "hlo_frames": "call stacks of instructions whose outermost frames are left out",
    "hlo_heap": "events of a compiled program's heap that do not fit those before",
}


def _module(source: ProgramSource) -> Columns:
    """Table ``hlo_modules`` of one program: a row."""
    head, stored, table = source.head, source.stored, source.computations
    sums = source.once(Assignment).sums() if head.is_assigned else {}
    entry = np.array([source.entry])
    entry_name = table.spans("name").take(entry).texts(source.buffer) if table.rows else [""]
    facts = {
        "name": head.name or stored.name,
        "program_id": stored.program_id,
        "backend": stored.backend or None,
        "entry": entry_name[0],
        "computations": table.rows,
        "instructions": source.ids.count,
        "is_scheduled": bool((source.schedule >= 0).any()),
        "generated_code_bytes": source.code_bytes or None,
        **sums,
    }
    row = [facts.get(column.name) for column in TABLES["hlo_modules"].columns]
    result = columns_of_rows("hlo_modules", [row])
    data = {name: column for name, column in result.items() if name in _STORED}
    return Columns(data, {name: mask for name, mask in result.valid.items() if name in data})


_STORED = frozenset(
    "name program_id backend entry computations instructions is_scheduled argument_bytes "
    "output_bytes alias_bytes temporary_bytes constant_bytes thread_local_bytes "
    "generated_code_bytes host_bytes".split()
)
"""Columns of ``hlo_modules`` that a program itself gives."""


def _joined(table: str, parts: Sequence[Columns]) -> Columns:
    """The rows of all parts; texts of a column have one numbering, or are numbered anew."""
    if not parts:
        return empty_columns(table)
    data: dict[str, Column] = {}
    valid: dict[str, BoolArray] = {}
    for name in parts[0]:
        columns = [part[name] for part in parts]
        if isinstance(columns[0], Names):
            data[name] = _one_numbering([column for column in columns if isinstance(column, Names)])
            continue
        data[name] = np.concatenate([column for column in columns if not isinstance(column, Names)])
        if any(name in part.valid for part in parts):
            valid[name] = np.concatenate([part.is_valid(name) for part in parts])
    return Columns(data, valid)


def _one_numbering(parts: Sequence[Names]) -> Names:
    last = parts[-1].values
    if all(part.values is last for part in parts):
        return Names(np.concatenate([part.codes for part in parts]), last)
    numbers: dict[str, int] = {}
    codes = []
    for part in parts:
        of = [numbers.setdefault(text, len(numbers)) for text in part.values]
        codes.append(np.array([*of, -1], np.int32)[part.codes])
    return Names(np.concatenate(codes), list(numbers))
