"""What the readers of all formats have in common: the file, and how they report damage."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Set as AbstractSet
from typing import Any

from peakline.errors import DamagedError
from peakline.formats.common.files import SourceFile
from peakline.tables.columns import Columns
from peakline.tables.reader import Reader, Warnings
from peakline.wire import Damage


class FileReader(Reader):
    """A `Reader` of one file, which it closes; ``form`` is the format's name."""

    def __init__(self, file: SourceFile, form: str) -> None:
        self.format, self.path = form, file.path
        self._file = file

    @property
    def stored_bytes(self) -> int:
        """As `SourceFile.stored_bytes`."""
        return self._file.stored_bytes

    def check(self) -> None:
        """As `SourceFile.check`."""
        self._file.check()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def _nothing_whole(self, damage: Damage, what: str = "nothing whole is left") -> DamagedError:
        """What to raise where ``damage`` left nothing of use."""
        offset = damage.first_offset
        return DamagedError(f"{self.path}: damaged at offset {offset}; {what}", offset)


class ReportingReader(FileReader):
    """A `FileReader` that knows what is lost before its first table is read, or with it."""

    _is_reported = False

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table; the first reading counts what is lost."""
        result = self._table(table, columns)
        if not self._is_reported:
            self._is_reported = True
            self._report(warnings)
        return result

    @abstractmethod
    def _table(self, table: str, columns: AbstractSet[str] | None) -> Columns:
        """One table, with at least ``columns``."""

    @abstractmethod
    def _report(self, warnings: Warnings) -> None:
        """Count what is lost."""


def warn_of_damage(warnings: Warnings, damage: Damage, places: int | None = None) -> None:
    """Count the places of ``damage``, or so many of them."""
    warnings.add(
        "damaged",
        f"first at offset {damage.first_offset}; {damage.skipped_bytes} bytes skipped",
        damage.places if places is None else places,
    )


def warn_of_cut(warnings: Warnings, missing_bytes: int, size: int) -> None:
    """Count that a file of ``size`` bytes ends before its content does."""
    much = f"{missing_bytes} bytes" if missing_bytes else "in a field,"
    warnings.add(
        "truncated",
        f"the file ends {much} before its content does "
        f"(cut at offset {size}); answered from what is whole",
    )


class NotedReader:
    """The `Reader` ``reader``, whose first reading also counts what was lost at its opening."""

    def __init__(self, reader: Reader, losses: Warnings) -> None:
        self._reader, self._losses = reader, losses.entries()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        while self._losses:
            kind, count, detail = self._losses.pop(0)
            warnings.add(kind, detail, count)
        return self._reader.read(table, warnings, columns)
