"""The kernel's report of a process that it killed for its memory, in any log or prefix.

The lines before the verdict have the group's limit and the table of tasks: the victim need not be
who holds most. Source: ``mm/oom_kill.c`` and ``mm/memcontrol.c`` in torvalds/linux.
"""

from __future__ import annotations

import re

from peakline.formats.oom_report.report import Report, Reports

_KILLED = re.compile(r"\b[Kk]ill(?:ed)? process (\d{1,9}),? (?:UID \d{1,9},? )?\(([^()]{0,64})\)")
_FIELD = re.compile(r"\b(total-vm|anon-rss|file-rss|shmem-rss):([\d,]{1,20})kB")
_USAGE = re.compile(r"\bmemory: usage (\d{1,16})kB, limit (\d{1,17})kB")
_CONSTRAINT = re.compile(r"constraint=CONSTRAINT_(\w{1,20})")
_GROUP = re.compile(r"\boom_memcg=([^,\s]{1,400})")
_INVOKED = re.compile(r"(\S.{0,60}?) invoked oom-killer: ")
_TASK = re.compile(
    r"\[ *(\d{1,9})\] +(\d{1,10}) +(\d{1,9}) +(\d{1,16}) +(\d{1,16})"
    r"((?: +-?\d{1,19}){2,9}) +(\S.{0,60}?)\s*$"
)
_PAGE = 4096
_MOST_TASKS = 5
_NO_LIMIT = 1 << 52
_LINES = 400

ANNOUNCING = (b"illed process ", b"Kill process ", b"invoked oom-killer", b"oom-kill:",
              b"memory: usage ")  # fmt: skip


class KernelTexts:
    """Reads the lines of the kernel's killer into reports, one a process."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._known: dict[str, Report] = {}
        self._begin()
        self._left = 0

    def _begin(self) -> None:
        self._usage: tuple[int, int] | None = None
        self._constraint, self._group = "", ""
        self._tasks: list[tuple[int, str]] = []

    def line(self, line: str, time_ns: int | None) -> bool:
        """Read one line; False when it is none of the killer's."""
        if "invoked oom-killer" in line and _INVOKED.search(line):
            self._begin()
            self._left = _LINES
            return True
        if "memory: usage" in line and (match := _USAGE.search(line)):
            self._usage = int(match[1]) << 10, int(match[2]) << 10
            self._left = _LINES
            return True
        if "constraint=" in line and (match := _CONSTRAINT.search(line)):
            self._constraint = match[1]
            if group := _GROUP.search(line):
                self._group = group[1]
            return True
        if "ill" in line and " process " in line and (match := _KILLED.search(line)):
            return self._killed(match, line, time_ns)
        if self._left:
            self._left -= 1
            if "[" in line and (match := _TASK.search(line)):
                self._tasks.append((int(match[5]) * _PAGE, f"{match[7]} (pid {match[1]})"))
                return True
        return False

    def _killed(self, match: re.Match[str], line: str, time_ns: int | None) -> bool:
        process, name = match.groups()
        fields = {
            name: int(size.replace(",", "") or 0) << 10 for name, size in _FIELD.findall(line)
        }
        report = self._known.get(process)
        if report is None:
            report = self._known[process] = self._reports.new("host", time_ns)
            report.op = f"{name} (pid {process})"
            report.began = report.ended = True
            is_group = self._constraint == "MEMCG" or "cgroup out of memory" in line
            report.kind = "host_limit" if is_group else "host_full"
            report.message = line.strip()[:300]
            report.device = self._group or None
            if self._usage is not None and is_group:
                report.in_use = self._usage[0]
                report.limit = self._usage[1] if self._usage[1] < _NO_LIMIT else None
            for size, task in sorted(self._tasks, reverse=True)[:_MOST_TASKS]:
                report.add_part("process", size, task)
        for field, part in (
            ("anon-rss", "anonymous"), ("file-rss", "file_pages"),
            ("shmem-rss", "shared_memory"), ("total-vm", "virtual"),
        ):  # fmt: skip
            report.add_part(part, fields.get(field))
        self._left = 0
        return True
