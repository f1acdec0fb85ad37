"""Plain-text logs: memory records, out-of-memory reports and tables of profilers among whatever
else was printed.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from peakline.deadline import checked
from peakline.errors import UnknownFormatError
from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import ReportingReader
from peakline.formats.memory_log.records import Collector, record_plan
from peakline.formats.memory_log.tables import TABLES, MemoryLogTables
from peakline.formats.oom_report.scanner import OomScanner
from peakline.safe_text import cut_middle, one_line
from peakline.tables.columns import Columns
from peakline.tables.rank_facts import RankFacts
from peakline.tables.reader import Warnings
from peakline.wire import Buffer, decode
from peakline.wire.log_lines import LogCounts, MemoryLogScanner

_RANK = re.compile(rb"\[rank(\d{1,7})\]:")
"""The global rank, as PyTorch puts it before tracebacks (``torch/distributed/distributed_c10d.py``)
and before what its modules log (``torch/_logging/_internal.py``). What torchrun puts before lines
(``[default3]:``) is the rank on one machine.
"""


class LogReader(ReportingReader):
    """One log, read once, block by block.

    ``format`` is ``memory_log`` when it has memory records, else ``oom_report``, else ``op_table``.
    With the first two, the buffers are those of the records. Raises UnknownFormatError when it has
    none of them.
    """

    __retained__ = "_file _reports _content _printed"

    def __init__(self, file: SourceFile, form: str = "log") -> None:
        super().__init__(file, form)
        scanner, reports, collector = MemoryLogScanner(), OomScanner(), Collector()
        ranks: set[int] = set()
        for block in checked(file.blocks_of_whole(), 1):
            if len(ranks) < 2:
                ranks |= {int(match[1]) for match in _RANK.finditer(bytes(block))}
            _collect(collector, scanner.feed(block))
            reports.feed(block)
        _collect(collector, scanner.finish())
        self._ranks = ranks
        self._counts = scanner.counts
        self._reports, self._printed = reports.finish(), reports.printed
        self._content: MemoryLogTables | None = None
        if collector.records:
            self._content = MemoryLogTables(collector.finish())
            self.format = "memory_log"
        elif self._reports.reports:
            self.format = "oom_report"
        elif self._printed.rows:
            self.format = "op_table"
        else:
            raise UnknownFormatError(_nothing(file.path, form, self._counts, reports))
        # What is written to the log from now on is nothing to what was read.
        file.check()
        file.close()

    @property
    def rank_facts(self) -> RankFacts:
        """The rank that PyTorch puts before its lines, where it is one alone."""
        return RankFacts(rank=next(iter(self._ranks)) if len(self._ranks) == 1 else None)

    @property
    def tables(self) -> frozenset[str]:
        """The tables of the memory records, and those of the reports that do not clash."""
        printed = self._printed.tables if self._printed.rows else frozenset()
        if self._content is None:
            return printed | (self._reports.tables if self.format != "op_table" else frozenset())
        if not self._reports.reports:
            return TABLES | printed
        return TABLES | printed | (self._reports.tables - {"buffers"})

    def _report(self, warnings: Warnings) -> None:
        _report(self._counts, warnings)
        warnings.add("truncated", self._file.unpacking_error, bool(self._file.unpacking_error))
        self._reports.report(warnings)
        self._printed.report(warnings)
        if self._content is not None:
            self._content.report(warnings)

    def _table(self, table: str, columns: AbstractSet[str] | None) -> Columns:
        if table in self._printed.tables:
            return self._printed.read(table)
        if self._content is not None and table in TABLES:
            return self._content.read(table, columns)
        return self._reports.read(table)

    def duration_ps(self) -> int:
        """From the first memory record to the last, else until the last report."""
        if self._content is not None:
            return self._content.duration_ps()
        if self.format == "op_table":
            return 0
        return int(self._reports.read("oom_reports").array("time_ps").max(initial=0))


class LogProbe:
    """Whether a log has anything to read, found out while its blocks pass by."""

    def __init__(self) -> None:
        self._records, self._reports = MemoryLogScanner(), OomScanner()
        self._is_found = False

    def feed(self, block: bytes) -> None:
        """Look at the next block, which may begin and end anywhere."""
        if not self._is_found:
            self._records.feed(block)
            self._reports.feed(block)
            self._is_found = self._records.counts.records > 0

    def finish(self) -> bool:
        """The log is over: whether it has a record, a report or a table that is read."""
        if self._is_found:
            return True
        self._records.finish()
        reports = self._reports.finish().reports
        return self._records.counts.records > 0 or reports > 0 or bool(self._reports.printed.rows)


_MENTION = 160


def _collect(collector: Collector, wire: Buffer) -> None:
    if wire.size:
        collector.add(decode(wire, record_plan()).tables, wire)


def _nothing(path: str, form: str, counts: LogCounts, reports: OomScanner) -> str:
    broken = counts.cut + counts.malformed
    cut = f" ({broken} of its lines begin one and are cut or damaged)" if broken else ""
    mention = reports.mention
    if mention:
        return (
            f"{path}: memory ran out by this {form}, in words that Peakline does not read: "
            f"{cut_middle(one_line(mention), _MENTION)!r}; and no __LOG_MEMORY__ record{cut}"
        )
    return (
        f"{path}: nothing that Peakline reads in this {form}: no __LOG_MEMORY__ record{cut} and "
        "no out-of-memory report"
    )


def _report(counts: LogCounts, warnings: Warnings) -> None:
    """What the scanner could not turn into records."""
    unknown = f"fields that log_memory.proto lacks, the first is {counts.first_unknown_field}"
    for kind, count, detail in (
        ("cut_lines", counts.cut, "memory records whose line is cut or mixed with another"),
        ("malformed_lines", counts.malformed, "memory records that are no text format"),
        ("too_long_lines", counts.too_long, "lines too long to be one of a log"),
        ("unknown_messages", counts.unknown_messages, "records that log_memory.proto lacks"),
        ("unknown_fields", counts.unknown_fields, unknown),
        ("redacted", counts.redacted, "values printed as [REDACTED], taken as absent"),
    ):
        warnings.add(kind, detail, count)
