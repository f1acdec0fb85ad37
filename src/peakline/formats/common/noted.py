"""A reader with something to say before its first table: what was lost while opening the file."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from peakline.tables.columns import Columns
from peakline.tables.reader import Reader, Warnings

__all__ = ["Note", "NotedReader"]


@dataclass(frozen=True)
class Note:
    """One entry for the warnings: a fixed word, one line for a person, how often."""

    kind: str
    detail: str
    count: int


class NotedReader:
    """``reader``, whose first reading also counts ``notes``."""

    def __init__(self, reader: Reader, notes: Sequence[Note]) -> None:
        self._reader, self._notes = reader, list(notes)

    @property
    def format(self) -> str:
        """The format of the file."""
        return self._reader.format

    @property
    def path(self) -> str:
        """What was opened."""
        return self._reader.path

    @property
    def host(self) -> str:
        """The host the profile came from."""
        return self._reader.host

    @property
    def tables(self) -> frozenset[str]:
        """The tables this file can fill."""
        return self._reader.tables

    def has_rows(self, table: str) -> bool | None:
        """Whether a table has a row; None when only reading tells."""
        look = getattr(self._reader, "has_rows", None)
        found: bool | None = None if look is None else look(table)
        return found

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        while self._notes:
            note = self._notes.pop(0)
            warnings.add(note.kind, note.detail, note.count)
        return self._reader.read(table, warnings, columns)

    def duration_ps(self) -> int:
        """Until the end of the last event."""
        return self._reader.duration_ps()

    def close(self) -> None:
        """Release the file."""
        self._reader.close()
