"""The dump of a BFC allocator: header, bins, regions with their chunks, sums, statistics.

Nothing distinguishes old and new wordings: every part is looked for in every line.
Source: ``bfc_allocator.cc``, in tensorflow/tensorflow until 2022 and in openxla/xla since.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from peakline.formats.oom_report.report import (
    NODE,
    SIZE,
    ListedBuffer,
    Report,
    Reports,
    agrees,
    element_bytes,
    parse_size,
)
from peakline.text import source_text

_HEADER = re.compile(
    rf"(?:Allocator \((?P<name>[^()]*)\) )?[rR]an out of memory trying to allocate (?P<size>{SIZE})"
    r"(?: \(rounded to (?P<rounded>\d{1,18})\))?(?P<rest>.*)"
)
_REQUESTED_BY = re.compile(rf"requested by op ({NODE})")
_DUMP = re.compile(r"BFCAllocator dump for ([\w.:/-]+)")
_BIN = re.compile(r"Bin \((\d{1,18})\):.{0,3}Total Chunks: (\d{1,18})")
_REGION = re.compile(r"Next region of size (\d{1,18})\b")
_CHUNK = re.compile(r"\b(Chunk|InUse|Free) +at (?:0x)?([0-9A-Fa-f]{1,16})\b(.*)")
_OF_SIZE = re.compile(r"\bof size (\d{1,18})\b")
_BY_OP = re.compile(rf"\bby op ({NODE})")
_SUM = re.compile(rf"Sum Total of in-use chunks: ({SIZE})")
_POOL = re.compile(
    rf"(?:Total (?:size|bytes) in pool|total_region_allocated_bytes_): ({SIZE})"
    rf" memory_limit_: ({SIZE})"
)
_STATS = "Stats:"
_STAT = re.compile(
    r"\b(Limit|InUse|MaxInUse|NumAllocs|MaxAllocSize|Reserved|PeakReserved|LargestFreeBlock)"
    rf": +({SIZE})"
)
_OCCUPANCY = re.compile(r"(?<![*x_])[*x_]{100}(?![*x_])")
_TENSOR = re.compile(
    r"OOM when allocating tensor (?:with |of )?shape ?\[([0-9, ]*)\](?: and type (\w+))?"
    rf"(?: on ({NODE}) by allocator ({NODE}))?"
)
_SUMMARY = re.compile(r"\b(\d{1,9}) Chunks of size (\d{1,18}) totalling")
_GRAPH_NODE = re.compile(
    rf"\[\[(?:Node: ({NODE}) = \w+(?:\[(?:.{{0,400}}?\bT=DT_(\w+))?)?"
    rf"|\{{\{{node ({NODE})\}}\}}|node ({NODE})(?: \(defined at ([^()]{{1,400}}):(\d{{1,9}})\))?)"
)
_CAUSED_BY = re.compile(r"Caused by op u?'([^']{1,400})', defined at:")
_FRAME = re.compile(r'(?:^|\s)File "([^"]{1,1000})", line (\d{1,9})\b')
_LIBRARY = re.compile(r"(?:^|/)(?:site-packages|dist-packages|tensorflow|keras|lib/python[\d.]*)/")
_FRAMES = 200
"""So many lines may a stack have, its code lines too."""
_DEVICE = re.compile(r"Found device (\d{1,4}) with properties")
_MEMORY = re.compile(
    rf"totalMemory: ({SIZE}) +freeMemory: ({SIZE})"
    rf"|^\s*(?:Total memory: ({SIZE})|Free memory: ({SIZE}))"
)
_OF_DEVICE = re.compile(r"^GPU_(\d{1,4})_bfc$")
_MOST_CHUNKS = 1 << 20
_USAGE = re.compile(rf"Current usage from device: ({NODE}), allocator: ({NODE})")
_USED_BY = re.compile(rf"^\s*({SIZE}) from ({NODE})\s*$")
_REMAINING = re.compile(rf"^\s*Remaining \d+ nodes with ({SIZE})")
_BROKEN = re.compile(r"\b(?:InUse|Free|Chunk)(?: +at)?(?: (?:0x)?[0-9A-Fa-f]*)?(?: \w+)?\s*$")
_MOST_OPEN = 32
"""So many dumps of a stream may lack their end at a time: one of each allocator, and some that
broke off.
"""


def user_frame(line: str) -> str:
    """File and line of a stack's frame, empty for one of a library and for any other line."""
    match = _FRAME.search(line)
    if match is None or _LIBRARY.search(match[1]) or match[1].startswith("<"):
        return ""
    return source_text(match[1], int(match[2]))


class BfcDumps:
    """Reads lines of dumps into reports.

    An allocator writes a dump while it holds its lock, but two allocators may write at once.
    ``stream`` separates them where the log's prefix names the thread; else chunks are
    assigned by their addresses, which follow each other, and the rest by what is still missing.
    """

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._open: dict[str, list[Report]] = {}
        self._current: Report | None = None
        self._stats: Report | None = None
        self._using: Report | None = None
        self._tensors: set[tuple[str | None, str | None, str]] = set()
        self._stack: Report | None = None
        self._frames = 0
        self._device = ""
        self._devices: dict[str, list[int | None]] = {}

    def line(self, line: str, stream: str, time_ns: int | None) -> bool:
        """Read one line; False when it belongs to no dump."""
        using: Report | None = self._using
        self._using = None
        if " at " in line and (match := _CHUNK.search(line)):
            return self._chunk(match, stream, time_ns)
        if using is not None and self._used(using, line):
            return True
        for literal, pattern, read in (
            ("of size", _REGION, self._region),
            ("Total Chunks", _BIN, self._bin),
            ("an out of memory trying", _HEADER, self._header),
            ("BFCAllocator dump", _DUMP, self._dump),
            ("Sum Total", _SUM, self._sum),
            ("memory_limit_", _POOL, self._pool),
            ("OOM when", _TENSOR, self._tensor),
            ("Chunks of size", _SUMMARY, self._summary),
            ("[[", _GRAPH_NODE, self._node),
            ("Caused by op", _CAUSED_BY, self._caused_by),
            ("with properties", _DEVICE, self._found_device),
            ("emory: ", _MEMORY, self._device_memory),
            ("Current usage", _USAGE, self._usage),
        ):
            if literal in line and (match := pattern.search(line)):
                return read(match, stream, time_ns)
        if self._stack is not None and self._frame(self._stack, line):
            return True
        return self._after(line, stream)

    # Which dump a line belongs to.

    def _among(self, stream: str) -> list[Report]:
        """The dumps of ``stream`` that are not at their end; a strange stream is the latest one."""
        there = self._open.get(stream)
        if there is None:
            there = [] if self._current is None else [self._current]
        return [report for report in there if not report.has_stats and not report.ended]

    def _pick(self, stream: str, fits: Callable[[Report], bool]) -> Report | None:
        there = self._among(stream)
        if self._current in there and (len(there) == 1 or fits(self._current)):
            return self._current
        if not there:
            return None
        self._current = ([report for report in there if fits(report)] or there)[-1]
        return self._current

    def _owner(self, stream: str, address: int, size: int) -> Report | None:
        """The dump that a chunk belongs to: it follows the last one, or begins a region."""
        there = self._among(stream)
        if len(there) > 1:
            following = [r for r in there if r.chunks.next_address == address]
            fresh = [r for r in there if r.chunks.may_begin_with(size)]
            near = sorted(fresh, key=lambda r: r.chunks.distance(address))
            if chosen := following + near:
                self._current = chosen[0]
                return chosen[0]
        return self._pick(stream, lambda _: True)

    def _begin(self, allocator: str, stream: str, time_ns: int | None) -> Report:
        """A new dump; what was open of the same allocator ends unfinished."""
        report = self._reports.new(allocator, time_ns)
        report.is_dump = True
        number = _OF_DEVICE.match(allocator)
        total, start = self._devices.get(number[1] if number else "", (None, None))
        if total is not None and start is not None:
            report.capacity = total
            report.add_part("free_at_start", start)
        others = [r for r in self._among(stream) if r.allocator not in {allocator, ""}]
        self._open[stream] = [*others[1 - _MOST_OPEN :], report]
        self._current = report
        return report

    # The parts, in the order of a dump.

    def _header(self, match: re.Match[str], stream: str, time_ns: int | None) -> bool:
        if match["rest"].startswith(" with freed"):
            # The caller can do with less: no failure.
            return False
        allocator = match["name"]
        if allocator is None:
            # The earliest writers gave the request after the dump, and no name.
            report = self._reports.latest()
            if report is None or not report.is_dump or report.began:
                report = self._begin("", stream, time_ns)
        else:
            report = self._begin(allocator, stream, time_ns)
        report.began = True
        report.requested_text = match["size"]
        report.requested = parse_size(match["size"])
        if match["rounded"]:
            report.rounded = int(match["rounded"])
        if by := _REQUESTED_BY.search(match["rest"]):
            report.op = by[1]
        return True

    def _dump(self, match: re.Match[str], stream: str, time_ns: int | None) -> bool:
        allocator = match[1]
        waiting = [
            r for r in self._among(stream) if r.allocator == allocator and not (r.bins or r.chunks)
        ]
        self._current = waiting[-1] if waiting else self._begin(allocator, stream, time_ns)
        return True

    def _bin(self, match: re.Match[str], stream: str, time_ns: int | None) -> bool:
        lower, count = int(match[1]), int(match[2])

        def lacks(report: Report) -> bool:
            return not len(report.chunks) and lower > report.last_bin

        def expects(report: Report) -> bool:
            return lacks(report) and lower == 2 * (report.last_bin or lower // 2)

        is_next = any(expects(report) for report in self._among(stream))
        report = self._pick(stream, expects if is_next else lacks)
        if report is None or not lacks(report):
            report = self._begin("", stream, time_ns)
        report.bins[lower] = count
        return True

    def _region(self, match: re.Match[str], stream: str, time_ns: int | None) -> bool:
        report = self._pick(stream, lambda r: r.chunks.region_is_full)
        report = report or self._begin("", stream, time_ns)
        report.chunks.begin_region(int(match[1]))
        return True

    def _chunk(self, match: re.Match[str], stream: str, time_ns: int | None) -> bool:
        size_match = _OF_SIZE.search(match[3])
        if size_match is None:
            return self._cut(stream)
        address, size = int(match[2], 16), int(size_match[1])
        report = self._owner(stream, address, size) or self._begin("", stream, time_ns)
        by = _BY_OP.search(match[3])
        report.chunks.add(address, size, by and by[1], in_use=match[1] != "Free")
        return True

    def _cut(self, stream: str) -> bool:
        report = self._pick(stream, lambda _: True)
        if report is None:
            return False
        report.cut += 1
        return True

    def _summary(self, match: re.Match[str], stream: str, time_ns: int | None) -> bool:
        """So many chunks in use of one size: all there is where the list itself was cut."""
        report = self._pick(stream, lambda r: not r.sum_text) or self._begin("", stream, time_ns)
        count, size = int(match[1]), int(match[2])
        if count + sum(count for count, _ in report.summary) <= _MOST_CHUNKS:
            report.summary.append((count, size))
        return True

    def _sum(self, match: re.Match[str], stream: str, time_ns: int | None) -> bool:
        def fits(report: Report) -> bool:
            return not report.sum_text and agrees(report.chunks.total(in_use=True), match[1])

        report = self._pick(stream, fits) or self._begin("", stream, time_ns)
        report.sum_text = match[1]
        return True

    def _pool(self, match: re.Match[str], stream: str, _time_ns: int | None) -> bool:
        report = self._pick(stream, lambda r: bool(r.sum_text) and not r.pool_text)
        if report is None:
            return False
        report.pool_text = match[1]
        report.pool, report.limit = parse_size(match[1]), parse_size(match[2])
        return True

    def _after(self, line: str, stream: str) -> bool:
        """Statistics, the occupancy line, and lines that break off."""
        if self._current is None:
            return False
        if _STATS in line:
            report = self._pick(stream, lambda r: bool(r.sum_text) and not r.has_stats)
            self._stats = report
            if report is not None:
                report.has_stats = True
            return report is not None
        if self._stats is not None and (match := _STAT.search(line)):
            self._stat(self._stats, match[1], match[2])
            return True
        if _OCCUPANCY.search(line):
            there = self._open.get(stream, [self._current])
            done = [r for r in there if r.has_stats and not r.ended] or there[-1:]
            for report in done[:1]:
                report.ended = True
            self._open[stream] = [r for r in there if not r.ended]
            self._stats = None
            return True
        if ("InUse" in line or "Free" in line or "Chunk" in line) and _BROKEN.search(line):
            return self._cut(stream)
        return False

    @staticmethod
    def _stat(report: Report, name: str, text: str) -> None:
        if name == "Limit":
            report.limit = parse_size(text)
        elif name == "InUse":
            report.in_use = parse_size(text)
        elif name == "MaxInUse":
            report.peak, report.peak_text = parse_size(text), text

    # What the op and the executor say of the failure, often more than once.

    def _tensor(self, match: re.Match[str], _stream: str, time_ns: int | None) -> bool:
        sizes, data_type, device, allocator = match.groups()
        shape = f"[{', '.join(sizes.replace(',', ' ').split())}]"
        report = self._reports.latest(allocator)
        if report is None and allocator is not None:
            # A dump whose beginning is missing has not said whose it is.
            report = self._reports.latest("")
        if report is None or not report.may_be_for(data_type, shape):
            if (allocator, data_type, shape) in self._tensors:
                return True
            report = self._reports.new(allocator or "", time_ns)
            report.began = report.ended = True
        self._tensors.add((allocator, data_type, shape))
        if allocator and not report.allocator:
            self._reports.rename(report, allocator)
        report.device = device
        report.name_tensor(data_type, shape)
        return True

    def _node(self, match: re.Match[str], _stream: str, _time_ns: int | None) -> bool:
        """The node of a graph: its name, and in old wordings the type of what it computes."""
        report = self._reports.latest()
        if report is None or report.shape is None:
            return False
        old, kind, *newer, file, line = match.groups()
        name = old or newer[0] or newer[1]
        if report.op is None:
            report.op = name
        if kind and report.data_type is None and report.requested_text:
            size = element_bytes(kind.lower(), report.shape)
            if size is not None and agrees(size, report.requested_text):
                report.name_tensor(kind.lower(), report.shape)
        if file and report.source is None:
            report.source = source_text(file, int(line))
        return True

    def _caused_by(self, match: re.Match[str], _stream: str, _time_ns: int | None) -> bool:
        report = self._reports.latest()
        if report is None or report.shape is None or report.op not in {None, match[1]}:
            return False
        report.op = match[1]
        self._stack, self._frames = (report if report.source is None else Report()), _FRAMES
        return True

    def _frame(self, report: Report, line: str) -> bool:
        """A line of the stack that made the op; its innermost frame of the program counts."""
        match = _FRAME.search(line)
        self._frames -= 1
        if match is None:
            if self._frames <= 0 or not line.startswith(" "):
                self._stack = None
            return False
        report.source = user_frame(line) or report.source
        return True

    # What the device had when TensorFlow began.

    def _found_device(self, match: re.Match[str], _stream: str, _time_ns: int | None) -> bool:
        self._device = match[1]
        self._devices[match[1]] = [None, None]
        return True

    def _device_memory(self, match: re.Match[str], _stream: str, _time_ns: int | None) -> bool:
        if not self._device:
            return False
        total, free, alone_total, alone_free = match.groups()
        sizes = self._devices[self._device]
        for place, text in enumerate((total or alone_total, free or alone_free)):
            if text:
                sizes[place] = parse_size(text)
        return True

    def _usage(self, match: re.Match[str], _stream: str, time_ns: int | None) -> bool:
        device, allocator = match[1], match[2]
        report = self._reports.latest(allocator)
        if report is None or report.device not in {None, device}:
            report = self._reports.new(allocator, time_ns)
            report.ended = True
        report.device = device
        # Exceptions repeat the list.
        self._using = Report() if report.usage else report
        return True

    def _used(self, report: Report, line: str) -> bool:
        if match := _USED_BY.match(line):
            report.usage.append(ListedBuffer(parse_size(match[1]), match[2]))
        elif match := _REMAINING.match(line):
            report.usage.append(ListedBuffer(parse_size(match[1]), None))
        else:
            return False
        self._using = report
        return True
