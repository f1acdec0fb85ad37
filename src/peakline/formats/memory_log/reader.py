"""Memory logs in binary form: files of peakline.MemoryLog, as `peakline.record` writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from peakline.errors import DamagedError
from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import FileReader
from peakline.formats.memory_log.records import Collector, record_plan
from peakline.formats.memory_log.tables import TABLES, MemoryLogTables
from peakline.tables.columns import Columns
from peakline.tables.reader import Warnings
from peakline.wire import Buffer, Damage, WireTable, decode, stream

_AT_ONCE = 4 << 20
"""Up to this size the whole file is decoded at once: the pieces would cost more than the rest."""


class MemoryLogReader(FileReader):
    """One binary memory log, read once and kept as columns.

    Raises DamagedError when no record can be read.
    """

    __retained__ = "_file _content"

    tables = TABLES

    def __init__(self, file: SourceFile, form: str = "memory_log") -> None:
        super().__init__(file, form)
        self._size = file.buffer.size
        self._told = False
        self._damage = Damage()
        collector = Collector()
        for tables, damage, position in _parts(file.buffer):
            self._damage += damage
            collector.add(tables, file.buffer)
            file.release(position)
        self._unknown = collector.unknown
        if not collector.records and self._damage:
            raise DamagedError(
                f"{file.path}: damaged at offset {self._damage.first_offset}; no record is whole",
                self._damage.first_offset,
            )
        self._content = MemoryLogTables(collector.finish())

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        if not self._told:
            self._told = True
            self._report(warnings)
            self._content.report(warnings)
        return self._content.read(table, columns)

    def duration_ps(self) -> int:
        """From the first record to the last."""
        return self._content.duration_ps()

    def _report(self, warnings: Warnings) -> None:
        damage, places = self._damage, self._damage.places
        if damage.missing_bytes:
            places -= 1
            warnings.add(
                "truncated",
                f"the file ends {damage.missing_bytes} bytes before its content does "
                f"(cut at offset {self._size}); answered from what is whole",
            )
        warnings.add(
            "damaged",
            f"first at offset {damage.first_offset}; {damage.skipped_bytes} bytes skipped",
            places,
        )
        warnings.add(
            "unknown_messages",
            "records of a kind that log_memory.proto does not have",
            self._unknown,
        )


def _parts(buffer: Buffer) -> Iterator[tuple[Mapping[str, WireTable], Damage, int]]:
    """The log part by part: tables, what was damaged, how far the file has been read."""
    if buffer.size <= _AT_ONCE:
        whole = decode(buffer, record_plan())
        yield whole.tables, whole.damage, buffer.size
        return
    for part in stream(buffer, record_plan()):
        yield part.tables, part.damage, part.position
