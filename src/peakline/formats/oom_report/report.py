"""One report as it is being read, whoever wrote it, and what its lines look like.

No pattern looks at the log's own prefix: launchers and loggers put any text before a line, and
some put text after it. Sources: ``bfc_allocator.cc`` in openxla/xla and, for the older wordings,
in tensorflow/tensorflow; ``HumanReadableNumBytes`` in ``numbers.cc``.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from datetime import UTC, datetime

SIZE = r"(?<!\d)-?\d{1,20}+(?:\.\d{1,9}+)?+(?: ?(?:bytes|B|[KMGTPE](?:iB|B)?)\b)?"
"""A size: ``2.00MiB``, ``15.38 MiB``, ``63.80G``, ``0 bytes``, or a plain number of bytes."""

NODE = r"[A-Za-z0-9._/][A-Za-z0-9_>./:\-]*"
"""The name of an op, a node, a device or an allocator."""

LARGEST = 1 << 62
"""No size is larger: what a damaged text says beyond it must still fit into 64 bits."""

ABSENT = 1 << 60
"""Sizes from here on are a writer's word for not known: drivers give 2^64 - 1 for it."""

_SIZE = re.compile(r"(-?\d{1,20}(?:\.\d{1,9})?) ?(?:([KMGTPE])(?:i?B)?|B|bytes)?")
_UNITS = "KMGTPE"


def parse_size(text: str) -> int:
    """Bytes of a size that `SIZE` matches; every unit is a power of 1024, as all writers mean."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"no size: {text!r}")
    power = _UNITS.index(match[2]) + 1 if match[2] else 0
    if "." not in match[1]:
        size = int(match[1]) << (10 * power)
    else:
        size = round(float(match[1]) * float(1 << (10 * power)))
    return max(-LARGEST, min(size, LARGEST))


def human(size: int) -> str:
    """A size as the runtime's ``HumanReadableNumBytes`` spells it."""
    if size < 0:
        return f"-{human(-size)}"
    if size < 1024:
        return f"{size}B"
    value, unit = size / 1024, 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    # KiB have one decimal, larger units two.
    return f"{value:.{1 if unit == 0 else 2}f}{_UNITS[unit]}iB"


def agrees(size: int, text: str) -> bool:
    """Whether ``size`` is what ``text`` says, to the digits that it has."""
    return text in {human(size), str(size)} or parse_size(text) == size


_ELEMENT_BYTES = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "int8": 1, "uint8": 1, "int16": 2,
    "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "bool": 1, "complex64": 8,
    "complex128": 16, "qint8": 1, "quint8": 1, "qint16": 2, "quint16": 2, "qint32": 4,
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "s8": 1, "s16": 2, "s32": 4, "s64": 8, "u8": 1,
    "u16": 2, "u32": 4, "u64": 8, "pred": 1, "c64": 8, "c128": 16,
}  # fmt: skip
"""By the names of TensorFlow and of XLA."""


def element_bytes(data_type: str, shape: str) -> int | None:
    """Bytes of a tensor such as ``float`` and ``[512, 1024]``; None for a type without a size."""
    each = _ELEMENT_BYTES.get(data_type)
    if each is None:
        return None
    for dimension in re.findall(r"\d{1,19}", shape):
        each *= int(dimension)
    return each if each <= LARGEST else None


# The time of a line.

_STAMP = re.compile(
    r"(?P<iso>\d{4}-\d\d-\d\d)[ T](?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
    r"|\b[IWEF]0000 00:00:(?P<epoch>\d{9,11})\.(?P<epoch_fraction>\d{1,9})\b"
    r"|\b[IWEF](?P<month>\d\d)(?P<day>\d\d) (?P<glog>\d\d:\d\d:\d\d)\.(?P<glog_fraction>\d{1,9})"
)
_THREAD = re.compile(r"\b[IWEF]\d{4} \d\d:\d\d:[\d.]+\s+(\d+) ")
_SEARCHED = 400
"""A prefix is at the start; the rest of a long line need not be searched for one."""

Stamp = tuple[int, int]
"""Where the first time of a line begins, and its nanoseconds since the epoch (UTC assumed)."""


def first_stamp(line: str, year: int) -> Stamp | None:
    """The first time in ``line``; ``year`` is for writers that leave it out."""
    match = _STAMP.search(line, 0, _SEARCHED)
    if match is None:
        return None
    try:
        if match["epoch"]:
            seconds, fraction = int(match["epoch"]), match["epoch_fraction"]
        else:
            day = match["iso"] or f"{year}-{match['month']}-{match['day']}"
            clock = match["clock"] or match["glog"]
            fraction = match["fraction"] or match["glog_fraction"] or "0"
            moment = datetime.fromisoformat(f"{day} {clock}").replace(tzinfo=UTC)
            seconds = int(moment.timestamp())
    except ValueError:
        return None
    return match.start(), seconds * 10**9 + int(fraction.ljust(9, "0"))


def thread_of(line: str) -> str:
    """The thread that wrote ``line``, empty where the prefix does not say it."""
    match = _THREAD.search(line, 0, _SEARCHED)
    return match[1] if match else ""


@dataclass(frozen=True, slots=True)
class ListedBuffer:
    """One line of a list of buffers: what a report says held the memory."""

    size: int
    op: str | None
    kind: str | None = None
    data_type: str | None = None
    shape: str | None = None


class Chunks:
    """The chunk list of one dump. ``stated`` holds each region's size, None where it was cut."""

    __retained__ = "region address size in_use totals ops stated filled"

    def __init__(self) -> None:
        self.region = array("q")
        self.address = array("Q")
        self.size = array("q")
        self.in_use = bytearray()
        self.totals = [0, 0]
        """Bytes of the free chunks, and of those in use."""
        self.ops: dict[int, str] = {}
        self.stated: list[int | None] = []
        self.filled: list[int] = []
        self.next_address: int | None = None
        """Where the next chunk of the region must lie; None where its first is yet to come."""
        self.tells_regions = False
        """Whether the writer names regions (since TensorFlow 1.13)."""

    def __len__(self) -> int:
        return len(self.address)

    @property
    def region_is_full(self) -> bool:
        """Whether the region being listed has all its chunks, so that another may begin."""
        return not self.stated or self.stated[-1] is None or self.filled[-1] >= self.stated[-1]

    def may_begin_with(self, size: int) -> bool:
        """Whether the region being listed has no chunk yet and room for one of ``size``."""
        room = self.stated[-1] if self.stated else None
        return self.next_address is None and (room is None or room >= size)

    def distance(self, address: int) -> int:
        """How far ``address`` lies from the last chunk; very far where there is none."""
        return abs(self.address[-1] - address) if self.address else 1 << 64

    def begin_region(self, size: int | None) -> None:
        """The line ``Next region of size``."""
        self.stated.append(size)
        self.tells_regions |= size is not None
        self.filled.append(0)
        self.next_address = None

    def add(self, address: int, size: int, op: str | None, *, in_use: bool) -> None:
        """One chunk line."""
        moved = self.next_address is not None and address != self.next_address
        if not self.stated or (moved and not self.tells_regions):
            self.begin_region(None)
        if op:
            self.ops[len(self.address)] = op
        self.region.append(len(self.stated) - 1)
        self.address.append(address)
        self.size.append(size)
        self.in_use.append(in_use)
        self.totals[in_use] += size
        self.filled[-1] += size
        self.next_address = address + size

    def total(self, *, in_use: bool) -> int:
        """Bytes of the chunks in use, or of the free ones."""
        return self.totals[in_use]

    def largest_free(self) -> int:
        """The largest free chunk, 0 when there is none."""
        free = (s for s, used in zip(self.size, self.in_use, strict=True) if not used)
        return max(free, default=0)


@dataclass(frozen=True, slots=True)
class Part:
    """One more size that a report gives: ``name`` is a fixed word, ``subject`` which one it is."""

    name: str
    size: int
    subject: str | None = None


@dataclass(slots=True, eq=False)
class Report:
    """What is known of one failed allocation. Sizes are bytes; ``*_text`` is how they were written.

    ``kind`` says what ran out (`peakline.tables`), ``capacity`` is the whole device, ``source``
    the line of the program, ``message`` the text of a report that has few numbers. ``began`` and
    ``ended``: its first and its last line were there. ``cut`` counts lines of it that are not
    whole.
    """

    allocator: str = ""
    time_ns: int | None = None
    requested: int | None = None
    requested_text: str = ""
    rounded: int | None = None
    op: str | None = None
    device: str | None = None
    data_type: str | None = None
    shape: str | None = None
    limit: int | None = None
    pool: int | None = None
    in_use: int | None = None
    peak: int | None = None
    peak_text: str = ""
    free: int | None = None
    device_free: int | None = None
    largest_free: int | None = None
    capacity: int | None = None
    kind: str | None = None
    source: str | None = None
    message: str | None = None
    parts: list[Part] = field(default_factory=list)
    sum_text: str = ""
    pool_text: str = ""
    chunks: Chunks = field(default_factory=Chunks)
    bins: dict[int, int] = field(default_factory=dict)
    """Chunks of every bin, by the bin's lower size."""
    summary: list[tuple[int, int]] = field(default_factory=list)
    """Chunks in use by size: how many, bytes each."""
    usage: list[ListedBuffer] = field(default_factory=list)
    """Tensors of the running step, by op: part of what is in use."""
    program: list[ListedBuffer] = field(default_factory=list)
    """The largest buffers of the XLA program that failed."""
    is_dump: bool = False
    began: bool = False
    has_stats: bool = False
    ended: bool = False
    cut: int = 0
    exact: int = 0
    """Sizes that the text has to the byte beside a rounded one."""

    def add_part(self, name: str, size: int | None, subject: str | None = None) -> None:
        """One more size, unless the report has it already or it is none."""
        known = {(part.name, part.subject) for part in self.parts}
        if size is not None and size < ABSENT and (name, subject) not in known:
            self.parts.append(Part(name, size, subject))

    def name_tensor(self, data_type: str | None, shape: str) -> None:
        """The tensor that was to be allocated; it may give the request's exact size."""
        self.data_type, self.shape = data_type, shape
        size = element_bytes(data_type or "", shape)
        if size is not None and (self.requested is None or agrees(size, self.requested_text)):
            self.requested = size

    @property
    def last_bin(self) -> int:
        """The lower size of the last bin, which is the largest; 0 without any."""
        return next(reversed(self.bins), 0)

    def may_be_for(self, data_type: str | None, shape: str) -> bool:
        """Whether the failed request can have been for such a tensor."""
        if self.shape is not None:
            return False
        size = element_bytes(data_type or "", shape)
        return size is None or not self.requested_text or agrees(size, self.requested_text)


class Reports:
    """All reports of a log, in order, and the latest of every allocator."""

    def __init__(self) -> None:
        self.all: list[Report] = []
        self._latest: dict[str, Report] = {}

    def new(self, allocator: str, time_ns: int | None) -> Report:
        """Begin a report."""
        report = Report(allocator, time_ns)
        self.all.append(report)
        self._latest[allocator] = report
        return report

    def latest(self, allocator: str | None = None) -> Report | None:
        """The latest report, of the named allocator if one is given."""
        if allocator is None:
            return self.all[-1] if self.all else None
        return self._latest.get(allocator)

    def remove(self, report: Report) -> None:
        """Take a report back."""
        self.all = [one for one in self.all if one is not report]

    def rename(self, report: Report, allocator: str) -> None:
        """Give a report the allocator's name that only a later line gave."""
        report.allocator = allocator
        self._latest[allocator] = report
