"""Whether an XSpace has any event, or any memory event: looked for only until one is found.

`may_name_memory_events` needs no reader: the names of memory events stand letter by letter in
the metadata of a plane, so a file without these letters there has none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from peakline.deadline import check_deadline
from peakline.errors import ForbiddenError
from peakline.formats.common.files import Opener, SourceFile, open_to_read
from peakline.formats.common.format import Glance
from peakline.formats.xplane.detect import names_its_planes
from peakline.formats.xplane.line_parts import Lookup
from peakline.formats.xplane.line_reader import LineReader
from peakline.formats.xplane.names import EVENT_KINDS
from peakline.formats.xplane.outline import (
    PLANE_ID,
    PLANE_NAME,
    OddError,
    Outline,
    Piece,
    field,
    head_fields,
    planes,
)
from peakline.kernels.xplane_numbers import EventKind
from peakline.tables.program_tables import PROGRAM_TABLES
from peakline.wire import as_buffer

SNAPSHOTS = "memory_snapshots"
TABLES = frozenset(
    (
        "planes", "lines", "events", "event_stats", "steps", "allocator_events", "module_runs",
        "event_types", "event_type_stats", "plane_stats", SNAPSHOTS, *PROGRAM_TABLES,
    )
)  # fmt: skip
"""What an XSpace can fill; memory_snapshots only with a host plane."""
MEMORY_TABLES = frozenset(("allocator_events", "memory_snapshots"))
"""The tables that only memory events fill."""

_MEMORY = frozenset((EventKind.ALLOCATION, EventKind.DEALLOCATION))
_BLOCK = 1 << 20
_HEAD = 1 << 16
"""Read at once; lines that begin behind it cost a read each."""
_NAME = 1 << 9
"""Enough for the name of the first plane."""
_MEMORY_NAMES = tuple(name.encode() for name, kind in EVENT_KINDS.items() if kind in _MEMORY)
_GPU = b"/device:GPU:"
_METADATA = b"/host:metadata"
"""The plane that holds compiled programs."""


def has_events(file: SourceFile, outline: Outline) -> bool:
    """Whether a line of any plane has an event."""
    return any(
        part.ids.size
        for plane in outline.with_lines
        for part in LineReader(file, plane.lines).parts()
    )


def has_memory_events(file: SourceFile, outline: Outline) -> bool:
    """Whether the host plane has a memory event.

    Where the plane's metadata names none, no line is looked at.
    """
    plane = outline.host_plane
    if plane is None:
        return False
    names = plane.event_names.items()
    kinds = {
        number: EVENT_KINDS[name] for number, name in names if EVENT_KINDS.get(name) in _MEMORY
    }
    return bool(kinds) and any(
        part.memory for part in LineReader(file, plane.lines, kinds=Lookup(kinds)).parts()
    )


def may_name_memory_events(path: str, opener: Opener | None = None) -> bool:
    """False when the local file ``path`` is surely a plain XSpace that names no memory event.

    Costs a tenth of a millisecond where `read_outline` takes several: lines, which hold nearly
    all bytes, are passed over, and of the rest nothing is decoded. True, too, for what is
    compressed, damaged, cannot be read, or may have another format.
    """
    return bool(names_in(path, _MEMORY_NAMES, opener, first=True))


def names_in(
    path: str, names: Iterable[bytes], opener: Opener | None = None, *, first: bool = False
) -> frozenset[bytes]:
    """Which of ``names`` may stand in the metadata of the local file ``path``, also as a part of
    another name; with ``first`` one that is found is enough.

    As cheap as `may_name_memory_events`, and all of them where that cannot say.
    """
    wanted, result = frozenset(names), set[bytes]()
    overlap = max(map(len, wanted), default=1) - 1

    def look(piece: Piece, size: int) -> bool:
        for at, end in _metadata(piece, size):
            for block in _blocks(piece, at, end, overlap):
                result.update(name for name in wanted - result if name in block)
                if result == wanted or (first and result):
                    return False
        return False

    return wanted if _may(path, opener, look) else frozenset(result)


def may_have_gpus(path: str, opener: Opener | None = None) -> bool:
    """False when the local file ``path`` is surely a plain XSpace without a plane of a GPU.

    As cheap as `may_name_memory_events`, and true where that is.
    """
    return _may(path, opener, lambda piece, size: _has_plane(piece, size, _GPU))


def may_hold_programs(path: str, opener: Opener | None = None) -> bool:
    """False when the local file ``path`` is surely a plain XSpace without compiled programs.

    As cheap as `may_name_memory_events`, and true where that is.
    """
    return _may(path, opener, lambda piece, size: _has_plane(piece, size, _METADATA))


def _missing_tables(path: str, opener: Opener | None) -> frozenset[str]:
    has_memory = may_name_memory_events(path, opener)
    has_programs = may_hold_programs(path, opener)
    return (frozenset() if has_memory else MEMORY_TABLES) | (
        frozenset() if has_programs else PROGRAM_TABLES
    )


def _names_in(path: str, names: Iterable[str], opener: Opener | None) -> frozenset[str]:
    result = names_in(path, (name.encode() for name in names), opener)
    return frozenset(name.decode() for name in result)


GLANCE = Glance(TABLES, _missing_tables, _names_in, may_have_gpus)


def _may(path: str, opener: Opener | None, look: Callable[[Piece, int], bool]) -> bool:
    try:
        with os.fdopen((opener or open_to_read)(path), "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            head = os.pread(file.fileno(), min(size, _HEAD), 0)

            def piece(at: int, most: int) -> bytes:
                if at + most <= len(head):
                    return head[at : at + most]
                return os.pread(file.fileno(), most, at)

            if not names_its_planes(as_buffer(head[:_NAME])):
                return True
            return look(piece, size)
    except (OSError, OddError, ForbiddenError):
        # Opening it says why.
        return True


def _metadata(piece: Piece, size: int) -> Iterator[tuple[int, int]]:
    """From where to where in each plane something else than lines stands."""
    for start, end in planes(piece, size):
        after = _after_lines(piece, start, end)
        if after < end:
            yield after, end


def _has_plane(piece: Piece, size: int, name: bytes) -> bool:
    """Whether the name of a plane begins so."""
    return any(_is_named(piece, *at, name) for at in planes(piece, size))


def _is_named(piece: Piece, at: int, end: int, name: bytes) -> bool:
    """Whether the name of a plane, which stands behind its id, begins so."""
    while at < end:
        tag, value, after = field(piece, at)
        if tag == PLANE_NAME:
            return piece(after, min(value, len(name))) == name
        if tag != PLANE_ID:
            # No name, or at an odd place.
            raise OddError
        at = after
    return False


def _after_lines(piece: Piece, at: int, end: int) -> int:
    """Where a plane's id, name and lines end, which are written before its metadata."""
    for *_, after in head_fields(piece, at, end):
        at = after
    return at


def _blocks(piece: Piece, at: int, end: int, overlap: int) -> Iterator[bytes]:
    """The bytes between, a block at a time; a block begins with the last ``overlap`` bytes of the
    one before.
    """
    while at < end:
        check_deadline()
        block = piece(at, min(_BLOCK, end - at))
        if not block:
            raise OddError  # cut short in the meantime
        yield block
        if at + len(block) >= end:
            return
        at += max(len(block) - overlap, 1)
