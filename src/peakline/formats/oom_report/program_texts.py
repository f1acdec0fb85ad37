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
    rf"|Failed to allocate request for {_S})"
)
_TPU = re.compile(rf"Ran out of memory in memory space (\w+)(?:.{{0,2000}}?Used {_S} of {_S} \w+)?")
_TPU_RUN = re.compile(
    # A few sentences lie between; without a bound a hostile line costs the square of its length.
    rf"Attempting to (?:allocate|reserve) {_S}.{{0,500}}?There are {_S} free"
    r"(?:.*?\((\w+)\))?"
)
_TPU_CORES = re.compile(
    rf"TensorCore Hbm usage: {_S}, SparseCore Hbm usage:? {_S}, exceeding available bytes: {_S}"
)
_LOADING = re.compile(r"Error loading program '([^']{1,1000})'")
# Whatever a launcher or a logger puts before every line.
_BUFFER = re.compile(rf"(?:^|\s)(?:Buffer \d+:\s*$|\d+\. Size: {_S}\s*$)")
_FIELD = re.compile(
    r"(?:^|\s)(Size|Operator|XLA [Ll]abel|Shape|Entry Parameter Subshape|Unpadded size"
    r"|Allocation type): ?(.*)"
)
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_SOURCE = re.compile(r'source_file="((?:[^"\\]|\\.)*)"(?:.{0,100}?\bsource_line=(\d{1,9}))?')
_SHAPE = re.compile(r"\b[^\Wa-z]*+([a-z]\w*+)\[([\d,]*+)\]")


def _may_be_program(line: str) -> bool:
    return "memory" in line or "llocate" in line or "exceeding available" in line


_LIST_ENDS = 60
"""A list of buffers has other lines in it, but not so many in a row."""


class ProgramTexts:
    """XLA programs that did not fit, when they were run or when they were compiled."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._target: Report | None = None
        self._fields: dict[str, str] = {}
        self._left = 0

    def line(self, line: str, time_ns: int | None) -> bool:
        """Read one line; False when it belongs to no such message."""
        result: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], int | None], Report]], ...]
        result = (
            (_XLA, self._run),
            (_TPU, self._compile),
            (_TPU_CORES, self._cores),
            (_TPU_RUN, self._attempt),
        )
        for pattern, read in result:
            if _may_be_program(line) and (match := pattern.search(line)):
                self.finish()
                report = read(match, time_ns)
                # Who catches an error prints it again.
                self._target = Report() if report.program else report
                self._left = _LIST_ENDS
                return True
        if self._target is None:
            return False
        if match := _BUFFER.search(line):
            self._buffer()
            self._fields = {"Size": match[1]} if match[1] else {"": ""}
        elif self._fields and (match := _FIELD.search(line)):
            self._fields.setdefault(match[1], match[2].rstrip())
        else:
            self._left -= 1
            if self._left == 0:
                self.finish()
            return False
        self._left = _LIST_ENDS
        return True

    def finish(self) -> None:
        """The list is over."""
        self._buffer()
        self._target, self._left = None, 0

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
        shape = _SHAPE.search(parameter or fields.get("Shape", ""))
        data_type = shape[1] if shape else None
        dimensions = f"[{shape[2].replace(',', ', ')}]" if shape else None
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

    def _run(self, match: re.Match[str], time_ns: int | None) -> Report:
        text = match[1] or match[2]
        size = parse_size(text)
        for report in reversed(self._reports.all[-8:]):
            # The allocator has reported the same request, or the error is printed again.
            if report.requested == size or report.rounded == -(-size // 256) * 256:
                report.requested = size
                return report
        report = self._reports.new("", time_ns)
        report.requested, report.requested_text = size, text
        report.began = report.ended = True
        return report

    def _compile(self, match: re.Match[str], time_ns: int | None) -> Report:
        space, used, limit = match.groups()
        return self._once(space, parse_size(used) if used else None, time_ns, limit=limit)

    def _cores(self, match: re.Match[str], time_ns: int | None) -> Report:
        tensor, sparse, limit = match.groups()
        return self._once("hbm", parse_size(tensor) + parse_size(sparse), time_ns, limit=limit)

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
