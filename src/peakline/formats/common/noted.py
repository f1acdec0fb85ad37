"""A reader with something to say before its first table: what was lost while opening the file."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from peakline.tables.columns import Columns
from peakline.tables.reader import Reader, Warnings


@dataclass(frozen=True)
class Note:
    """One entry for the warnings: a fixed word, one line for a person, how often."""

    kind: str
    detail: str
    count: int


class NotedReader:
    """The `Reader` ``reader``, whose first reading also counts ``notes``."""

    def __init__(self, reader: Reader, notes: Sequence[Note]) -> None:
        self._reader, self._notes = reader, list(notes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        while self._notes:
            note = self._notes.pop(0)
            warnings.add(note.kind, note.detail, note.count)
        return self._reader.read(table, warnings, columns)
