"""Events files (``events.out.tfevents.*``): graphs, and one traced run per tag."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from peakline.errors import DamagedError
from peakline.formats.common.files import SourceFile
from peakline.formats.run_metadata.reader import RunsFile
from peakline.formats.run_metadata.tables import RunTables
from peakline.formats.tfevents.events import read_events
from peakline.tables.columns import Columns
from peakline.tables.reader import Warnings


class EventsFileReader(RunsFile):
    """All runs and graphs of an events file; summaries are passed over."""

    __retained__ = "_events _file _tables"

    def __init__(self, file: SourceFile, form: str = "tfevents") -> None:
        self._events = read_events(file.buffer)
        if not self._events.records:
            raise DamagedError(f"{file.path}: no whole record of an events file is left", 0)
        tables = RunTables(file.buffer, self._events.runs, graphs=self._events.graphs)
        super().__init__(file, tables, form)
        self._told = False

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        if not self._told:
            self._told = True
            self._warn(warnings)
        return super().read(table, warnings, columns)

    def _warn(self, warnings: Warnings) -> None:
        events = self._events
        warnings.add(
            "bad_checksum",
            f"records whose checksum is wrong are left out; the first at offset {events.first_bad}",
            events.bad_checksums,
        )
        if events.missing_bytes:
            warnings.add(
                "truncated",
                f"the file ends {events.missing_bytes} bytes before its last record does; "
                "answered from what is whole",
            )
        damage = events.damage
        warnings.add(
            "damaged",
            f"first at offset {damage.first_offset}; {damage.skipped_bytes} bytes skipped",
            damage.places,
        )
