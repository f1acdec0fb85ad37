"""A file read together with compiled programs of others: a dump, or what XProf wrote beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any, cast

from peakline.errors import InputError
from peakline.formats.common.files import SourceFile
from peakline.formats.hlo_dump.listing import named
from peakline.formats.hlo_dump.reader import DumpReader
from peakline.formats.hlo_proto.tables import ProgramTables
from peakline.tables.columns import Columns
from peakline.tables.program_tables import PROGRAM_TABLES
from peakline.tables.programs import Programs
from peakline.tables.reader import Reader, Warnings


def with_programs(reader: Reader, other: Reader) -> Reader:
    """``reader`` with the programs of ``other`` in place of its own.

    Raises InputError where ``other`` has none, and closes it.
    """
    if not other.programs():
        other.close()
        raise InputError(
            f"{other.path}: no compiled programs; a directory that "
            "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_proto' wrote has them"
        )
    return cast("Reader", _WithPrograms(reader, other))


def with_programs_beside(
    reader: Reader, paths: Sequence[str], open_file: Callable[[str], SourceFile] = SourceFile
) -> Reader:
    """``reader`` with its programs, and with those in the files ``paths`` that it does not hold.

    They are read when they are wanted; one that cannot be is counted as a warning.
    """
    return cast("Reader", _WithMore(reader, DumpReader(reader.path, named(paths), open_file)))


class _WithPrograms:
    """The `Reader` ``reader``, whose programs are those of ``other``, even where it has some."""

    __retained__ = "_reader _other"

    def __init__(self, reader: Reader, other: Reader) -> None:
        self._reader, self._other = reader, other
        self.tables = reader.tables | (other.tables & PROGRAM_TABLES)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def _of(self, table: str) -> Reader:
        return self._other if table in PROGRAM_TABLES else self._reader

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        return self._of(table).read(table, warnings, columns)

    def has_rows(self, table: str) -> bool | None:
        """As `Reader.has_rows`."""
        return self._of(table).has_rows(table)

    def forget(self, table: str) -> None:
        """As `Reader.forget`."""
        self._of(table).forget(table)

    def programs(self) -> Programs | None:
        """The programs of the other file."""
        return self._other.programs()

    def check(self) -> None:
        """As `Reader.check`, of both files."""
        self._reader.check()
        self._other.check()

    def close(self) -> None:
        """Release both files."""
        try:
            self._reader.close()
        finally:
            self._other.close()


class _WithMore(_WithPrograms):
    """The `Reader` ``reader`` with its own programs and those of ``other``, each once."""

    __retained__ = "_reader _other _joined"

    def __init__(self, reader: Reader, other: DumpReader) -> None:
        super().__init__(reader, other)
        self._dumped = other
        self._is_noted = False

    @cached_property
    def _joined(self) -> ProgramTables:
        own = self._reader.programs()
        more = self._dumped.programs()
        return own.joined(more) if isinstance(own, ProgramTables) else more

    def programs(self) -> Programs:
        """All programs, the file's own first."""
        return self._joined

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        self._note(warnings)
        if table not in PROGRAM_TABLES:
            return self._reader.read(table, warnings, columns)
        result = self._joined.table(table, warnings, columns)
        self._dumped.report(warnings)
        return result

    def _note(self, warnings: Warnings) -> None:
        """Say of a file without events that its programs are all that there is."""
        if not self._is_noted and self._reader.has_rows("events") is False:
            name = self._reader.path.rpartition("/")[2]
            count = len(self._joined)
            what = f"{count} compiled program{'' if count == 1 else 's'} beside it"
            warnings.add("no_events", f"{name} has no events; read are the {what}")
        self._is_noted = True

    def has_rows(self, table: str) -> bool | None:
        """As `Reader.has_rows`."""
        return (self._joined if table in PROGRAM_TABLES else self._reader).has_rows(table)
