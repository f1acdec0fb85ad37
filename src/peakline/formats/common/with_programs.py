"""A file read together with the compiled programs of another: a dump beside a log or a profile."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, cast

from peakline.errors import InputError
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
