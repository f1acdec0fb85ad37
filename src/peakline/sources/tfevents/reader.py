"""Events files (``events.out.tfevents.*``): graphs, and one traced run per tag."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from peakline.errors import DamagedError
from peakline.profile.columns import Columns
from peakline.profile.reader import Warnings
from peakline.sources.files import SourceFile
from peakline.sources.run_metadata.tables import RunTables
from peakline.sources.tfevents.events import read_events

__all__ = ["EventsFileReader"]


class EventsFileReader:
    """All runs and graphs of an events file; summaries are passed over."""

    def __init__(self, file: SourceFile, form: str = "tfevents") -> None:
        self.format = form
        self._file = file
        self._events = read_events(file.buffer)
        if not self._events.records:
            raise DamagedError(f"{file.path}: no whole record of an events file is left", 0)
        self._tables = RunTables(file.buffer, self._events.runs, graphs=self._events.graphs)
        self._told = False

    @property
    def path(self) -> str:
        """What was opened."""
        return self._file.path

    @property
    def host(self) -> str:
        """The host of a session's file; the content names none."""
        return self._file.host

    @property
    def tables(self) -> frozenset[str]:
        """The tables that this file has something for."""
        return self._tables.names

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        if not self._told:
            self._told = True
            self._warn(warnings)
        return self._tables.read(table, warnings, columns)

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

    def duration_ps(self) -> int:
        """From the first start of an execution to the last end."""
        return self._tables.duration_ps()

    def close(self) -> None:
        """Release the file."""
        self._file.close()
