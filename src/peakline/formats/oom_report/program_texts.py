"""XLA programs that did not fit, when they were run or compiled: XLA, JAX, TPU.

Every part is looked for by itself, since each may be missing. Sources: ``buffer_assignment.cc``,
``pjrt_stream_executor_client.cc`` in openxla/xla.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from peakline.formats.oom_report.report import (
    SIZE,
    ListedBuffer,
    Report,
    Reports,
    agrees,
    element_bytes,
    parse_size,
)
from peakline.text import source_text

_S = f"({SIZE})"
_XLA = re.compile(
    rf"\b(?:Out of memory (?:while trying to allocate|allocating) {_S}"
    rf"|Failed to allocate request for {_S}(?: \((\d{{1,19}})B\))?"
    r"(?: on device ordinal (\d{1,4}))?)"
)
_TEMPORARIES = re.compile(
    rf"total memory required for HLO temporaries \({_S}\) exceeds available (\w+) \({_S}\)"
    r"(?:.{0,80}?HLO module: ([\w.\-]{1,200}))?"
)
_WOULD_EXCEED = re.compile(
    r"Allocation \(size=(\d{1,19})\) would exceed memory \(size=(\d{1,19})\)"
    r"(?: :: \S{1,80}(?: \[shape = '([^']{0,400})')?(?:, space=(\w+))?"
    r"(?:.{0,80}?tag = '([^']{1,400})')?)?"
)
_SCOPED = re.compile(
    rf"Scoped allocation with size {_S} and limit {_S} exceeded scoped (\w+) limit"
)
_HEADLESS = re.compile(rf"Total (\w+) usage >= {_S}:")
_TPU = re.compile(rf"Ran out of memory in memory space (\w+)(?:.{{0,2000}}?Used {_S} of {_S} \w+)?")
_TPU_RUN = re.compile(
    # A few sentences lie between; without a bound a hostile line costs the square of its length.
    rf"Attempting to (?:allocate|reserve) {_S}.{{0,500}}?There are {_S} free"
    r"(?:.*?\((\w+)\))?"
)
_TPU_CORES = re.compile(
    rf"TensorCore Hbm usage: {_S}, SparseCore Hbm usage:? {_S}, exceeding available bytes: {_S}"
)
# What a program needs, in sections of one size a line.
_SECTIONS = (
    ("stats", re.compile(r"BufferAssignment stats:")),
    ("usage", re.compile(rf"Total \w+ usage >= {_S}:")),
    ("requirement", re.compile(rf"Program \w+ requirement {_S}:")),
    ("capacity", re.compile(rf"HBM capacity {_S}:")),
    ("persistent", re.compile(r"Persistent allocations include")),
)
_EXACT = r"(?: +\( *(-?[\d,]{1,26}) bytes\))?"
_ROW = re.compile(
    rf"(?:^|\s)([A-Za-z][\w\-]*(?: \w+){{0,3}}?(?:\([^()]{{1,60}}\)| \([^()]{{1,60}}\))?):?"
    rf" +{_S}{_EXACT}(?: \((\d{{1,3}}\.\d)% utilization(?:: Unpadded \({_S}\))?)?"
)
_ROWS = {
    "stats": {
        "parameter allocation": "parameters", "constant allocation": "constants",
        "maybe_live_out allocation": "outputs", "preallocated temp allocation": "temporaries",
        "total allocation": "total", "total fragmentation": "fragmentation",
    },
    "usage": {"reserved": "reserved", "program": "program", "arguments": "arguments",
              "heap allocations": "heap"},
    "requirement": {"global": "global", "scoped": "scoped", "HLO temp": "temporaries",
                    "overlays": "overlays", "stack": "stack"},
    "capacity": {"Top-of-Memory reserved": "reserved", "Currently allocated": "in_use",
                 "Program requirement": "requested"},
    "persistent": {"arguments": "arguments", "output": "outputs"},
}  # fmt: skip
"""What the rows of a section are called here; others are left out."""
_OUTPUT = re.compile(rf"Output size {_S}; shares {_S} with arguments")
_MAX_FREE = re.compile(rf"Max free chunk +{_S}")
_LOADING = re.compile(r"Error loading program '([^']{1,1000})'")
# Whatever a launcher or a logger puts before every line.
_BUFFER = re.compile(rf"(?:^|\s)(?:Buffer \d+:\s*$|\d+\. Size: {_S}\s*$)")
_FIELD = re.compile(
    r"(?:^|\s)(Size|Operator|XLA [Ll]abel|Shape|Entry Parameter Subshape|Unpadded size"
    r"|Extra memory due to padding|Allocation type): ?(.*)"
)
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_SOURCE = re.compile(r'source_file="((?:[^"\\]|\\.)*)"(?:.{0,100}?\bsource_line=(\d{1,9}))?')
_LAYOUT = re.compile(r"\{[^{}]{0,200}\}")
_SHAPE = re.compile(r"\b[^\Wa-z]*+([a-z]\w*+)\[([\d,]*+)\]")


def _may_be_program(line: str) -> bool:
    return "memory" in line or "llocat" in line or "exceeding available" in line


_EXCEEDED = re.compile(rf"Exceeded \w+ capacity by {_S}")
_SUBJECT = 200


def _typed(text: str) -> tuple[str | None, str | None]:
    """Type and dimensions of a shape such as ``f32[2,3]{1,0}``. A tuple is a table of pointers,
    and none of its elements.
    """
    if text.lstrip().startswith("("):
        return "tuple", _LAYOUT.sub("", text.strip())[:_SUBJECT]
    shape = _SHAPE.search(text)
    return (shape[1], f"[{shape[2].replace(',', ', ')}]") if shape else (None, None)


_LIST_ENDS = 60
"""A list of buffers has other lines in it, but not so many in a row."""


class ProgramTexts:
    """XLA programs that did not fit, when they were run or when they were compiled."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._target: Report | None = None
        self._fields: dict[str, str] = {}
        self._left = 0
        self._section = ""
        self._listed: set[Report] = set()

    def line(self, line: str, time_ns: int | None) -> bool:
        """Read one line; False when it belongs to no such message."""
        result: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], int | None], Report]], ...]
        result = (
            (_XLA, self._run),
            (_TEMPORARIES, self._temporaries),
            (_WOULD_EXCEED, self._would_exceed),
            (_SCOPED, self._scoped),
            (_TPU, self._compile),
            (_TPU_CORES, self._cores),
            (_TPU_RUN, self._attempt),
        )
        for pattern, read in result:
            if _may_be_program(line) and (match := pattern.search(line)):
                self.finish()
                report = read(match, time_ns)
                # Who catches an error prints it again.
                self._target = Report() if report in self._listed else report
                self._left = _LIST_ENDS
                self._once_more(line, report)
                return True
        if self._target is None:
            match = _HEADLESS.search(line) if "usage >= " in line else None
            if match is None:
                return False
            self._target, self._left = self._headless(match, time_ns), _LIST_ENDS
        if match := _BUFFER.search(line):
            self._buffer()
            self._fields = {"Size": match[1]} if match[1] else {"": ""}
        elif self._fields and (match := _FIELD.search(line)):
            self._fields.setdefault(match[1], match[2].rstrip())
        elif not self._total(self._target, line):
            self._left -= 1
            if self._left == 0:
                self.finish()
            return False
        self._left = _LIST_ENDS
        return True

    @staticmethod
    def _once_more(line: str, report: Report) -> None:
        """What the first line says beside the request."""
        if report.kind == "program" and (match := _EXCEEDED.search(line)):
            report.add_part("exceeded", parse_size(match[1]))

    def _total(self, report: Report, line: str) -> bool:
        """One line of what the program needs in all."""
        for name, pattern in _SECTIONS:
            if match := pattern.search(line):
                self._buffer()
                self._section = name
                if name == "usage":
                    report.add_part("total", parse_size(match[1]))
                elif name == "requirement":
                    report.add_part("program", parse_size(match[1]))
                elif name == "capacity":
                    report.limit = report.capacity = parse_size(match[1])
                return True
        if match := _OUTPUT.search(line):
            report.add_part("outputs", parse_size(match[1]))
            return True
        if match := _MAX_FREE.search(line):
            report.largest_free = parse_size(match[1])
            return True
        rows = _ROWS.get(self._section, {})
        match = _ROW.search(line) if rows else None
        if match is None:
            return False
        label = match[1].partition("(")[0].strip()
        part = rows.get(label)
        if part is None:
            return False
        exact = match[3] and int(match[3].replace(",", "") or 0)
        size = exact or parse_size(match[2])
        report.exact += bool(exact)
        if part == "requested":
            report.requested = size
        elif part == "in_use":
            report.in_use = size
        else:
            report.add_part(part, size)
        if match[4] and part == "temporaries":
            unpadded = parse_size(match[5]) if match[5] else round(size * float(match[4]) / 100)
            report.add_part("unpadded", unpadded, "temporaries")
        return True

    def finish(self) -> None:
        """The list is over."""
        self._buffer()
        if self._target is not None and (self._target.program or self._section):
            self._listed.add(self._target)
        self._target, self._left, self._section = None, 0, ""

    def _buffer(self) -> None:
        fields, self._fields = self._fields, {}
        size = re.match(SIZE, fields.get("Size", ""))
        if self._target is None or size is None:
            return
        label = fields.get("XLA Label") or fields.get("XLA label", "")
        # A compiler's label has the operator too, cut where it is long.
        operator = fields.get("Operator") or label
        op, source = _OP_NAME.search(operator), _SOURCE.search(operator)
        name = op[1] if op else label.partition(" = ")[0].removeprefix("%")
        if source:
            line = int(source[2]) if source[2] else None
            name = f"{name} {source_text(source[1], line)}".strip()
        parameter = fields.get("Entry Parameter Subshape")
        data_type, dimensions = _typed(parameter or fields.get("Shape", ""))
        number = len(self._target.program) + 1
        unpadded = re.match(SIZE, fields.get("Unpadded size", ""))
        extra = re.match(SIZE, fields.get("Extra memory due to padding", ""))
        if unpadded is not None:
            padding = parse_size(size[0]) - parse_size(unpadded[0])
            padding = parse_size(extra[0]) if extra else padding
            subject = f"{number}. {data_type or ''}{dimensions or ''} {name}".strip()
            if padding > 0:
                self._target.add_part("padding", padding, subject[:_SUBJECT])
        exact = element_bytes(data_type or "", dimensions or "")
        self._target.program.append(
            ListedBuffer(
                exact if exact and agrees(exact, size[0]) else parse_size(size[0]),
                name or None,
                fields.get("Allocation type") or ("parameter" if parameter else None),
                data_type,
                dimensions,
            )
        )

    def _headless(self, match: re.Match[str], time_ns: int | None) -> Report:
        """The list without its first line: what is needed, and not what there is."""
        report = self._reports.latest(match[1])
        if report is None or report in self._listed or report.is_dump:
            report = self._reports.new(match[1], time_ns)
            report.kind, report.ended = "program", True
            report.requested = parse_size(match[2])
        return report

    def _temporaries(self, match: re.Match[str], time_ns: int | None) -> Report:
        need, space, limit, module = match.groups()
        report = self._once(space.lower(), parse_size(need), time_ns, limit=limit)
        report.kind, report.op = "program", report.op or (module and module.rstrip("."))
        report.add_part("temporaries", parse_size(need))
        return report

    def _would_exceed(self, match: re.Match[str], time_ns: int | None) -> Report:
        size, limit, shape, space, tag = match.groups()
        report = self._once(space or "", parse_size(size), time_ns, limit=limit)
        report.op = report.op or tag
        if shape:
            report.data_type, report.shape = _typed(shape)
        return report

    def _scoped(self, match: re.Match[str], time_ns: int | None) -> Report:
        size, limit, space = match.groups()
        report = self._once(space, parse_size(size), time_ns, limit=limit)
        report.kind = "program"
        return report

    def _run(self, match: re.Match[str], time_ns: int | None) -> Report:
        text = match[1] or match[2]
        size = int(match[3]) if match[3] else parse_size(text)
        for report in reversed(self._reports.all[-8:]):
            # The allocator has reported the same request, or the error is printed again.
            if report.requested == size or report.rounded == -(-size // 256) * 256:
                report.requested, report.device = size, report.device or match[4]
                # The driver's word of it before is the same failure.
                report.kind = report.message = None
                return report
        report = self._reports.new("", time_ns)
        report.requested, report.requested_text = size, text
        report.device = match[4]
        report.began = report.ended = True
        return report

    def _compile(self, match: re.Match[str], time_ns: int | None) -> Report:
        space, used, limit = match.groups()
        report = self._once(space, parse_size(used) if used else None, time_ns, limit=limit)
        report.kind = "program"
        return report

    def _cores(self, match: re.Match[str], time_ns: int | None) -> Report:
        tensor, sparse, limit = match.groups()
        size = parse_size(tensor) + parse_size(sparse)
        report = self._once("hbm", size, time_ns, limit=limit)
        report.kind = "program"
        report.add_part("tensor_core", parse_size(tensor))
        report.add_part("sparse_core", parse_size(sparse))
        return report

    def _attempt(self, match: re.Match[str], time_ns: int | None) -> Report:
        size, free, space = match.groups()
        report = self._once(space or "", parse_size(size), time_ns, device_free=free)
        program = _LOADING.search(match.string, max(match.start() - 1100, 0), match.start())
        report.op = report.op or (program[1] if program else None)
        return report

    def _once(
        self,
        allocator: str,
        size: int | None,
        time_ns: int | None,
        *,
        limit: str | None = None,
        device_free: str | None = None,
    ) -> Report:
        last = self._reports.latest(allocator)
        if last is not None and last.requested == size and not last.is_dump:
            return last
        report = self._reports.new(allocator, time_ns)
        report.requested = size
        report.limit = parse_size(limit) if limit else None
        report.device_free = parse_size(device_free) if device_free else None
        report.began, report.ended = True, size is not None
        return report
