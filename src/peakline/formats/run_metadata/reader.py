"""RunMetadata and StepStats files: one traced run each; and what every file of runs holds."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import FileReader
from peakline.formats.run_metadata.runs import Run
from peakline.formats.run_metadata.tables import RunTables
from peakline.tables.columns import Columns
from peakline.tables.rank_facts import RankFacts
from peakline.tables.reader import Warnings


class RunsFile(FileReader):
    """A file of traced runs, whose tables are those of its runs."""

    def __init__(self, file: SourceFile, tables: RunTables, form: str) -> None:
        super().__init__(file, form)
        self._tables = tables

    @property
    def host(self) -> str:
        """The host of a session's file; the content names none."""
        return self._file.host

    @property
    def rank_facts(self) -> RankFacts:
        """The task of the cluster whose devices are recorded."""
        return self._tables.rank_facts()

    @property
    def tables(self) -> frozenset[str]:
        """The tables that this file has something for."""
        return self._tables.names

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        return self._tables.read(table, warnings, columns)

    def duration_ps(self) -> int:
        """From the first start of an execution to the last end."""
        return self._tables.duration_ps()


class RunMetadataReader(RunsFile):
    """One run. A table is decoded when it is read, and only as far as it needs."""

    __retained__ = "_file _tables"

    def __init__(self, file: SourceFile, form: str = "run_metadata") -> None:
        run = Run("run 0", 0, 0, file.buffer.size)
        tables = RunTables(file.buffer, [run], form)
        super().__init__(file, tables, form)
        is_empty = tables.names <= {"steps", "traced_runs"}
        damage = tables.damage
        if is_empty and damage:
            raise self._nothing_whole(damage)
