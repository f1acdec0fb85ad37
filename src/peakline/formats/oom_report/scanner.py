"""Finds reports in a log of any size, block by block."""

from __future__ import annotations

import re

import numpy as np

from peakline.arrays import UInt8Array
from peakline.deadline import check_deadline
from peakline.formats.oom_report import engine_texts, kernel_texts, line_texts, summary_texts
from peakline.formats.oom_report.bfc import BfcDumps, user_frame
from peakline.formats.oom_report.program_texts import ProgramTexts
from peakline.formats.oom_report.report import Reports, first_stamp, thread_of
from peakline.formats.oom_report.tables import OomReports
from peakline.formats.oom_report.torch_texts import TorchTexts
from peakline.formats.oom_report.wrapping import readings, without_prefix
from peakline.formats.op_table import lines as printed_tables
from peakline.kernels.literals import next_hit
from peakline.wire import Buffer, as_buffer


class Literals:
    """What announces a report, searched for in one pass: the cost of a log that reports nothing.

    Literals of at least three bytes, prepared for `next_hit`.
    """

    def __init__(self, *literals: bytes) -> None:
        self._least = least = min(map(len, literals))
        self._text = np.frombuffer(b"".join(literals), np.uint8)
        self._bounds = np.cumsum([0, *map(len, literals)]).astype(np.int64)
        self._shift = np.full(1 << 15, least - 2, np.uint8)
        self._chain = np.full(1 << 15, -1, np.int32)
        self._following = np.full(len(literals), -1, np.int32)
        for number, literal in enumerate(literals):
            for end in range(2, least):
                key = (literal[end - 2] << 10 ^ literal[end - 1] << 5 ^ literal[end]) & 0x7FFF
                self._shift[key] = min(int(self._shift[key]), least - 1 - end)
            self._following[number] = self._chain[key]
            self._chain[key] = number

    def find(self, data: UInt8Array, start: int) -> int:
        """Where the first of the literals begins in ``data[start:]``, or -1."""
        return next_hit(
            data, start, self._shift, self._least, self._text, self._bounds, self._chain,
            self._following,
        )  # fmt: skip


_ANNOUNCING = Literals(
    b"ut of memory",
    b"OOM when allocating ",
    b"BFCAllocator dump",
    b"Total Chunks: ",
    b"Next region of size ",
    b"InUse at ",
    b"Chunk at ",
    b"Free  at ",
    b"Free at 0x",
    b"Sum Total of in-use",
    b" Chunks of size ",
    b"with properties:",
    b"Current usage from device",
    b"ttempting to allocate ",
    b"ttempting to reserve ",
    b"exceeding available bytes: ",
    b"you tried to allocate ",
    b"Failed to allocate request",
    b"required for HLO temporaries",
    b"would exceed memory (size=",
    b"exceeded scoped ",
    b"hbm usage >= ",
    b'   File "',
    b'\n  File "',
    b"Traceback (most",
    *line_texts.ANNOUNCING,
    *engine_texts.ANNOUNCING,
    *kernel_texts.ANNOUNCING,
    *summary_texts.ANNOUNCING,
    *printed_tables.ANNOUNCING,
)
"""What a line has that begins or continues a report; other lines are not looked at, unless a
report has just been read whose next lines have nothing of the kind."""

_ATTENTION = 200
"""So many lines are looked at after one that belongs to a report."""

_LONGEST = 1 << 20
"""A line's end is not waited for beyond this: it is no line of a report."""

_NEAR = 1 << 12
"""So many bytes may lie between the last frame of a stack and its error."""
_ENDS = 2
_NEWLINE = 10
_LARGEST_PASTE = 1 << 21
"""What is larger is no paste whose lines a screen has broken."""

_YEAR = re.compile(r"\b(20\d\d)-\d\d-\d\d[ T]\d\d:")


def _last_line_end(array: Buffer) -> int:
    """How much of ``array`` is whole lines; all of it where a line is too long to be one."""
    for size in (1 << 12, _LONGEST):
        tail = array[max(array.size - size, 0) :].tobytes()
        end = max(tail.rfind(b"\n"), tail.rfind(b"\r")) + 1
        if end:
            return array.size - len(tail) + end
    return array.size if array.size > _LONGEST else 0


class OomScanner:
    """Takes the blocks of a log in order (`feed`), then gives the reports in it (`finish`)."""

    def __init__(self, *, joins: bool = True) -> None:
        """``joins``: a text that fits into a paste is also read with its lines put together."""
        self._paste: bytearray | None = bytearray() if joins else None
        self._reports = Reports()
        self._bfc = BfcDumps(self._reports)
        self._torch = TorchTexts(self._reports)
        self._program = ProgramTexts(self._reports)
        self._engine = engine_texts.EngineTexts(self._reports)
        self._kernel = kernel_texts.KernelTexts(self._reports)
        self._summary = summary_texts.SummaryTexts(self._reports)
        self._lines = line_texts.LineTexts(self._reports)
        self.printed = printed_tables.PrintedTables()
        """The tables of profilers between the reports."""
        self._rest = b""
        self._attention = 0
        self._year = 1970
        self._stream, self._lead = "", ""
        self._place, self._frame = 0, (-_NEAR, "")

    def feed(self, block: UInt8Array | bytes) -> None:
        """Read the next block, which may begin and end anywhere."""
        array = as_buffer(block)
        if self._paste is not None:
            if len(self._paste) + array.size <= _LARGEST_PASTE:
                self._paste += array.tobytes()
            else:
                self._paste = None
        end = _last_line_end(array)
        if end == 0 and len(self._rest) + array.size <= _LONGEST:
            self._rest += array.tobytes()
            return
        begin = 0
        if self._rest:
            # Only the line that the last block began is put together.
            head = array[:_LONGEST].tobytes()
            begin = head.find(b"\n") + 1 or min(end, len(head))
            self._read(as_buffer(self._rest + head[:begin]))
        end = max(begin, end)
        self._read(array[begin:end])
        self._rest = array[end:].tobytes()

    def finish(self) -> OomReports:
        """The log is over."""
        self._read(as_buffer(self._rest))
        self._rest = b""
        known = len(self._reports.all)
        self._torch.finish()
        self._name_sources(known, self._place)
        self._program.finish()
        self._lines.finish()
        self._summary.finish()
        self._engine.finish()
        reports = OomReports(self._reports.all)
        paste, self._paste = self._paste, None
        return reports if paste is None else self._joined(paste, reports)

    def _joined(self, paste: bytearray, best: OomReports) -> OomReports:
        """The reading that most is known from: as the text is, or with its lines put together."""
        for width, ends, text in readings(paste.decode("utf-8", "replace")):
            check_deadline()
            scanner = OomScanner(joins=False)
            scanner.feed(text.encode())
            reports = scanner.finish()
            # Of two that say as much, a number that a column cuts is the wrong one; lines of one
            # length that each report a failure are not broken.
            is_as_good = (
                ends >= _ENDS
                and reports.known == best.known
                and reports.reports >= best.reports
                and reports.facts != best.facts
            )
            if ends < _ENDS and best.known and reports.reports > best.reports:
                # One line is the longest in any text.
                continue
            if reports.known > best.known or is_as_good:
                best = reports
                best.width = width
        return best

    def _read(self, array: Buffer) -> None:
        """Whole lines."""
        if self._attention == 0 and _ANNOUNCING.find(array, 0) < 0:
            self._place += array.size
            return
        data, at = array.tobytes(), 0
        while at < len(data):
            if self._attention == 0:
                # The line's end before a frame of a stack announces it.
                hit = _ANNOUNCING.find(array, max(at - 1, 0))
                if hit < 0:
                    self._place += len(data)
                    return
                hit += data[hit] == _NEWLINE
                at = max(at, data.rfind(b"\n", at, hit) + 1)
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            # A progress bar overwrites its line: each state of it is a line of its own.
            for piece in data[at : min(end, at + _LONGEST)].split(b"\r"):
                if piece:
                    self._line(piece.decode("utf-8", "replace"), self._place + at)
            at = end + 1
        self._place += len(data)

    def _line(self, line: str, place: int = 0) -> None:
        known = len(self._reports.all)
        self._read_line(line)
        if 'File "' in line and (frame := user_frame(line)):
            self._frame = place, frame
        elif "Traceback (most" in line:
            self._frame = -_NEAR, ""
        self._name_sources(known, place)

    def _name_sources(self, known: int, place: int) -> None:
        for report in self._reports.all[known:]:
            # A stack is written before its error.
            if report.source is None and self._frame[1] and place - self._frame[0] <= _NEAR:
                report.source = self._frame[1]

    def _read_line(self, line: str) -> None:
        stamp = first_stamp(line, self._year)
        time_ns = None
        if stamp is not None:
            start, time_ns = stamp
            if year := _YEAR.search(line, start, start + 20):
                self._year = int(year[1])
            self._lead = line[:start]
            self._stream = f"{self._lead}\0{thread_of(line)}"
        line = without_prefix(line)
        if (
            self._bfc.line(line, self._stream, time_ns)
            or self._torch.line(line, time_ns)
            or self._kernel.line(line, time_ns)
            or self._engine.line(line, time_ns)
            or self._summary.line(line, time_ns)
            or self.printed.line(line)
            or self._lines.line(line, time_ns)
            or self._program.line(line, time_ns)
        ):
            self._attention = _ATTENTION
            return
        self._lines.mentions(line)
        self._attention -= bool(self._attention)

    @property
    def mention(self) -> str:
        """A line that speaks of memory that ran out in words that no reader knows, else empty."""
        return self._lines.mention
