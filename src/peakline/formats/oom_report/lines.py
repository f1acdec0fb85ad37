"""What the lines of a report look like, and how sizes and times are spelled in them.

No pattern looks at the log's own prefix: launchers and loggers put any text before a line, and
some put text after it. Sources: ``bfc_allocator.cc`` in openxla/xla and, for the older wordings,
in tensorflow/tensorflow; ``HumanReadableNumBytes`` in ``numbers.cc``.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

SIZE = r"(?<!\d)-?\d{1,20}+(?:\.\d{1,9}+)?+(?: ?(?:bytes|B|[KMGTPE](?:iB|B)?)\b)?"
"""A size: ``2.00MiB``, ``15.38 MiB``, ``63.80G``, ``0 bytes``, or a plain number of bytes."""

NODE = r"[A-Za-z0-9._/][A-Za-z0-9_>./:\-]*"
"""The name of an op, a node, a device or an allocator."""

LARGEST = 1 << 62
"""No size is larger: what a damaged text says beyond it must still fit into 64 bits."""

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
