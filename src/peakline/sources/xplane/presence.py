"""Whether an XSpace has any event, or any memory event: looked for only until one is found.

`may_name_memory_events` needs no reader: the names of memory events stand letter by letter in
the metadata of a plane, so a file without these letters there has none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

from peakline import schema
from peakline.deadline import check_deadline
from peakline.sources.xplane.detect import first_fields, names_its_planes
from peakline.sources.xplane.names import EVENT_KINDS, EventKind
from peakline.sources.xplane.outline import Outline
from peakline.wire import Buffer, Plan, Spans, WireTable, as_buffer, decode, stream

__all__ = [
    "MEMORY_TABLES",
    "has_events",
    "has_memory_events",
    "may_have_gpus",
    "may_name_memory_events",
]

MEMORY_TABLES = frozenset(("allocator_events", "memory_snapshots"))
"""The tables that only memory events fill."""

_MEMORY = frozenset((EventKind.ALLOCATION, EventKind.DEALLOCATION))
_EVENTS = 4
"""XLine.events."""
_SMALL = 1 << 20
"""Lines of so many bytes are decoded together at once, longer ones piece by piece."""
_BLOCK = 1 << 20
_HEAD = 1 << 16
"""Read at once; lines that begin behind it cost a read each."""
_NAME = 1 << 9
"""Enough for the name of the first plane."""
_MEMORY_NAMES = tuple(name.encode() for name, kind in EVENT_KINDS.items() if kind in _MEMORY)
_SPACE = b"\x0a\x12\x1a\x22"
"""The tags of an XSpace's fields: planes, errors, warnings, hostnames."""
_PLANES = 0x0A
_PLANE_ID, _PLANE_HEAD = 0x08, b"\x12\x1a"
"""The tags of a plane's id, and of its name and lines."""
_VARINT_BYTES = 10
_GPU = b"/device:GPU:"

_Piece = Callable[[int, int], bytes]
"""The bytes from a place on, so many at most."""


def has_events(outline: Outline) -> bool:
    """Whether a line of any plane has an event."""
    return any(_has_event(outline.buffer, plane.lines) for plane in outline.planes)


def _has_event(buffer: Buffer, lines: Spans) -> bool:
    starts, lengths = lines.start.tolist(), lines.length.tolist()
    for start, length in zip(starts, lengths, strict=True):
        # Events stand behind a handful of other fields.
        if any(field[0] == _EVENTS for field in first_fields(buffer, start, start + length)):
            return True
    return any(events.rows for events in _events(buffer, lines))


def has_memory_events(outline: Outline) -> bool:
    """Whether the host plane has a memory event.

    Where the plane's metadata names none, no line is looked at.
    """
    plane = outline.host_plane
    if plane is None:
        return False
    ids = [number for number, name in plane.event_names.items() if EVENT_KINDS.get(name) in _MEMORY]
    return bool(ids) and any(
        np.isin(events.array("metadata_id"), ids).any()
        for events in _events(outline.buffer, plane.lines)
    )


def _events(buffer: Buffer, lines: Spans) -> Iterator[WireTable]:
    """The events of all lines, some at a time."""
    lengths = lines.length.astype(np.int64)
    small = np.flatnonzero((lengths > 0) & (lengths <= _SMALL))
    batches = np.cumsum(lengths[small]) // _SMALL
    for batch in np.unique(batches):
        yield decode(buffer, _plan(), lines.take(small[batches == batch]))["events"]
    for large in np.flatnonzero(lengths > _SMALL):
        for part in stream(buffer, _plan(), lines.take(np.array([large]))):
            yield part.tables["events"]


@cache
def _plan() -> Plan:
    return Plan(schema.descriptor("tensorflow.profiler.XLine"), ("events.metadata_id",))


def may_name_memory_events(path: str) -> bool:
    """False when the local file ``path`` is surely a plain XSpace that names no memory event.

    Costs a tenth of a millisecond where `read_outline` takes several: lines, which hold nearly
    all bytes, are passed over, and of the rest nothing is decoded. True, too, for what is
    compressed, damaged, cannot be read, or may have another format.
    """
    return _may(
        path, lambda piece, size: any(_names_memory(piece, *at) for at in _metadata(piece, size))
    )


def may_have_gpus(path: str) -> bool:
    """False when the local file ``path`` is surely a plain XSpace without a plane of a GPU.

    As cheap as `may_name_memory_events`, and true where that is.
    """
    return _may(path, lambda piece, size: any(_is_gpu(piece, *at) for at in _planes(piece, size)))


def _may(path: str, look: Callable[[_Piece, int], bool]) -> bool:
    try:
        with Path(path).open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            head = os.pread(file.fileno(), min(size, _HEAD), 0)

            def piece(at: int, most: int) -> bytes:
                if at + most <= len(head):
                    return head[at : at + most]
                return os.pread(file.fileno(), most, at)

            if not names_its_planes(as_buffer(head[:_NAME])):
                return True
            return look(piece, size)
    except (OSError, _OddError):
        return True


class _OddError(Exception):
    """Not the bytes of a whole XSpace."""


def _planes(piece: _Piece, size: int) -> Iterator[tuple[int, int]]:
    """From where to where each plane goes."""
    at = 0
    while at < size:
        tag, length, start = _field(piece, at)
        end = start + length
        if end > size or tag not in _SPACE:
            raise _OddError
        if tag == _PLANES:
            yield start, end
        at = end


def _metadata(piece: _Piece, size: int) -> Iterator[tuple[int, int]]:
    """From where to where in each plane something else than lines stands."""
    for start, end in _planes(piece, size):
        after = _after_lines(piece, start, end)
        if after < end:
            yield after, end


def _is_gpu(piece: _Piece, at: int, end: int) -> bool:
    """Whether a plane, whose name stands behind its id, is that of a GPU."""
    while at < end:
        tag, value, after = _field(piece, at)
        if tag == _PLANE_HEAD[0]:
            return piece(after, min(value, len(_GPU))) == _GPU
        if tag != _PLANE_ID:
            # No name, or at an odd place.
            raise _OddError
        at = after
    return False


def _after_lines(piece: _Piece, at: int, end: int) -> int:
    """Where a plane's id, name and lines end, which are written before its metadata."""
    while at < end:
        tag, value, after = _field(piece, at)
        if tag == _PLANE_ID:
            at = after
        elif tag in _PLANE_HEAD:
            at = after + value
        else:
            return at
    if at > end:
        raise _OddError
    return at


def _field(piece: _Piece, at: int) -> tuple[int, int, int]:
    """The tag at ``at``, the number that follows it, and where that ends."""
    head = piece(at, 1 + _VARINT_BYTES)
    value = 0
    for index in range(1, len(head)):
        byte = head[index]
        value |= (byte & 0x7F) << (7 * index - 7)
        if byte < 0x80:
            return head[0], value, at + index + 1
    raise _OddError


def _names_memory(piece: _Piece, at: int, end: int) -> bool:
    """Whether a memory event's name stands somewhere between; a block at a time."""
    overlap = max(map(len, _MEMORY_NAMES)) - 1
    while at < end:
        check_deadline()
        block = piece(at, min(_BLOCK, end - at))
        if not block:
            raise _OddError  # cut short in the meantime
        if any(name in block for name in _MEMORY_NAMES):
            return True
        if at + len(block) >= end:
            return False
        at += max(len(block) - overlap, 1)
    return False
