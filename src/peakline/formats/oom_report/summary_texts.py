"""What frameworks print of a memory that did not run out.

Sources: ``torch/cuda/memory.py`` (``memory_summary``) in pytorch/pytorch;
``deepspeed/runtime/utils.py`` (``see_memory_usage``); ``megatron/training/utils``
(``report_memory``).
"""

from __future__ import annotations

import re

from peakline.formats.oom_report.report import SIZE, Report, Reports, parse_size

_SUMMARY = re.compile(r"PyTorch ([A-Z]{3,5}) memory summary, device ID (\d{1,4})")
_OOMS = re.compile(r"\b[A-Z]{3,5} OOMs: (\d{1,9})\b.{0,40}?\b\w{2,12}alloc retries: (\d{1,9})")
_ROW = re.compile(
    rf"(Allocated|Active|Requested|[A-Z]{{3,5}} reserved|Non-releasable) memory *\| *({SIZE})"
    rf" *\| *({SIZE})"
)
_DEEPSPEED = re.compile(rf"\bMA ({SIZE}) +Max_MA ({SIZE}) +CA ({SIZE}) +Max_CA ({SIZE})")
_LABEL = re.compile(r"see_memory_usage\] (.{1,200})$")
_MEGATRON = re.compile(
    r"(?:\[Rank (\d{1,6})\] )?(?:\(([^()]{1,80})\) )?memory \(MB\) \| allocated: ([\d.]{1,20})"
    r" \| max allocated: ([\d.]{1,20}) \| reserved: ([\d.]{1,20}) \| max reserved: ([\d.]{1,20})"
)
_LINES = 60

ANNOUNCING = (
    b" memory summary, device ID", b"  Max_MA ", b"see_memory_usage] ", b"memory (MB) | allocated",
)  # fmt: skip


class SummaryTexts:
    """Reads summaries into reports that stand only where nothing failed."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._made: dict[str, Report] = {}
        self._current: Report | None = None
        self._left = 0
        self._label = ""

    def line(self, line: str, _time_ns: int | None) -> bool:
        """Read one line; False when it belongs to no summary."""
        if "memory summary" in line and (match := _SUMMARY.search(line)):
            self._current = self._report(f"{match[1].lower()}:{match[2]}")
            self._left = _LINES
            return True
        if self._left:
            self._left -= 1
            if self._current is not None and self._row(self._current, line):
                return True
        if "memory_usage] " in line and "Max_MA" not in line and (match := _LABEL.search(line)):
            self._label = match[1].strip()
        if "Max_MA" in line and (match := _DEEPSPEED.search(line)):
            self._peak("cuda", self._label, [parse_size(text) for text in match.groups()])
            return True
        if "memory (MB)" in line and (match := _MEGATRON.search(line)):
            rank, label, *sizes = match.groups()
            name = "cuda" if rank is None else f"cuda, rank {rank}"
            self._peak(name, label or "", [parse_size(f"{text}MB") for text in sizes])
            return True
        return False

    def finish(self) -> None:
        """Summaries beside a failure say more of its device, and are none themselves."""
        made = set(self._made.values())
        failed = [report for report in self._reports.all if report not in made]
        if not failed:
            return
        for report in made:
            self._reports.remove(report)
            for other in failed:
                if other.allocator == report.allocator:
                    for part in report.parts:
                        other.add_part(part.name, part.size, part.subject)

    def _report(self, allocator: str) -> Report:
        report = self._made.get(allocator)
        if report is None:
            report = self._made[allocator] = self._reports.new(allocator, None)
            report.kind, report.began, report.ended = "summary", True, True
        else:
            # A later table of the same device says the newer state.
            report.parts.clear()
        return report

    def _row(self, report: Report, line: str) -> bool:
        if match := _OOMS.search(line):
            report.message = f"{match[1]} out-of-memory errors, {match[2]} retries"
            return True
        match = _ROW.search(line)
        if match is None:
            return False
        name, now, peak = match[1], parse_size(match[2]), parse_size(match[3])
        if name == "Allocated":
            report.in_use, report.peak = now, peak
            report.add_part("peak_allocated", peak)
        elif name.endswith("reserved"):
            report.pool = now
            report.add_part("peak_reserved", peak)
        elif name == "Non-releasable":
            report.add_part("non_releasable", now)
        return True

    def _peak(self, allocator: str, label: str, sizes: list[int]) -> None:
        """Of many lines the one with the most."""
        now, most, pool, most_pool = sizes
        known = self._made.get(allocator)
        if known is not None and (known.peak or 0) >= most:
            return
        report = self._report(allocator)
        report.in_use, report.peak, report.pool = now, most, pool
        report.op = label or None
        report.add_part("peak_allocated", most)
        report.add_part("peak_reserved", most_pool)
