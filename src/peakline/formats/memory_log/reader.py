"""Memory logs in binary form: files of peakline.MemoryLog, as `peakline.record` writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import ReportingReader, warn_of_cut, warn_of_damage
from peakline.formats.memory_log.records import Collector, record_plan
from peakline.formats.memory_log.tables import TABLES, MemoryLogTables
from peakline.tables.columns import Columns
from peakline.tables.reader import Warnings
from peakline.wire import Buffer, Damage, WireTable, decode, stream

_AT_ONCE = 4 << 20
"""Up to this size the whole file is decoded at once: the pieces would cost more than the rest."""


class MemoryLogReader(ReportingReader):
    """One binary memory log, read once into columns.

    Raises DamagedError when no record can be read.
    """

    __retained__ = "_file _content"

    tables = TABLES

    def __init__(self, file: SourceFile, form: str = "memory_log") -> None:
        super().__init__(file, form)
        self._size = file.buffer.size
        self._damage = Damage()
        collector = Collector()
        for tables, damage, position in _parts(file.buffer):
            self._damage += damage
            collector.add(tables, file.buffer)
            file.release(position)
        self._unknown = collector.unknown
        if not collector.records and self._damage:
            raise self._nothing_whole(self._damage, "no record is whole")
        self._content = MemoryLogTables(collector.finish())
        # What is written to the log from now on is nothing to what was read.
        file.check()
        file.close()

    def _table(self, table: str, columns: AbstractSet[str] | None) -> Columns:
        return self._content.read(table, columns)

    def duration_ps(self) -> int:
        """From the first record to the last."""
        return self._content.duration_ps()

    def _report(self, warnings: Warnings) -> None:
        damage = self._damage
        if damage.missing_bytes:
            warn_of_cut(warnings, damage.missing_bytes, self._size)
        warn_of_damage(warnings, damage, damage.places - bool(damage.missing_bytes))
        warnings.add(
            "unknown_messages",
            "records of a kind that log_memory.proto does not have",
            self._unknown,
        )
        self._content.report(warnings)


def _parts(buffer: Buffer) -> Iterator[tuple[Mapping[str, WireTable], Damage, int]]:
    """The log part by part: tables, what was damaged, how far the file has been read."""
    if buffer.size <= _AT_ONCE:
        whole = decode(buffer, record_plan())
        yield whole.tables, whole.damage, buffer.size
        return
    for part in stream(buffer, record_plan()):
        yield part.tables, part.damage, part.position
