"""Where the fields of an XSpace lie, from their tags and lengths alone.

Nothing is decoded. What no profiler writes is left to those who decode all: `OddError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from peakline.deadline import check_deadline
from peakline.formats.common.files import SourceFile
from peakline.wire import Buffer, Spans, as_buffer
from peakline.wire.tables import varint

_SPACE = b"\x0a\x12\x1a\x22"
"""The tags of an XSpace's fields: planes, errors, warnings, hostnames."""
_PLANES = 0x0A
PLANE_ID, PLANE_NAME, _PLANE_LINES = 0x08, 0x12, 0x1A
"""The tags of the fields of a plane that are written before its metadata."""
_VARINT_BYTES = 10
_MOST_COPIED = 64 << 20
"""Metadata that is larger (whole programs) is better not copied."""

Piece = Callable[[int, int], bytes]
"""The bytes from a place on, so many at most."""


class OddError(Exception):
    """Not the bytes of a whole XSpace, in the usual order."""


def field(piece: Piece, at: int) -> tuple[int, int, int]:
    """The tag at ``at``, the number that follows it, and where that ends."""
    head = piece(at, 1 + _VARINT_BYTES)
    value = 0
    for index in range(1, len(head)):
        byte = head[index]
        value |= (byte & 0x7F) << (7 * index - 7)
        if byte < 0x80:
            return head[0], value, at + index + 1
    raise OddError


def fields(piece: Piece, size: int) -> Iterator[tuple[int, int, int]]:
    """The fields of an XSpace: tag, and from where to where its content goes."""
    at = 0
    while at < size:
        tag, length, start = field(piece, at)
        at = start + length
        if at > size or tag not in _SPACE:
            raise OddError
        yield tag, start, at


def planes(piece: Piece, size: int) -> Iterator[tuple[int, int]]:
    """From where to where each plane goes."""
    for tag, start, end in fields(piece, size):
        if tag == _PLANES:
            yield start, end


def head_fields(piece: Piece, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The id, name and lines of a plane that stand before anything else: tag, where the content
    begins (of a number: where it ends), and where the field ends.
    """
    while at < end:
        tag, value, start = field(piece, at)
        if tag in (PLANE_NAME, _PLANE_LINES):
            at = start + value
        elif tag == PLANE_ID:
            at = start
        else:
            return
        if at > end:
            raise OddError
        yield tag, start, at


def without_lines(
    file: SourceFile, most_planes: int, most_lines: int
) -> tuple[Buffer, list[Spans]] | None:
    """The XSpace with no line in front of the metadata of its planes, and where these lines are.

    None for one that is odd, or of which too much would be left, and for more planes or lines.
    """
    left, lines, size = bytearray(), list[Spans](), file.size

    def piece(at: int, most: int) -> bytes:
        most = min(most, size - at)
        if at + most <= len(file.head):
            return file.head[at : at + most]
        return file.read(at, most).tobytes()

    try:
        for tag, start, end in fields(piece, size):
            check_deadline()
            content, after, spans = bytearray(), start, list[tuple[int, int]]()
            for inner, begin, stop in head_fields(piece, start, end) if tag == _PLANES else ():
                if inner == _PLANE_LINES:
                    spans.append((begin, stop - begin))
                else:
                    content += piece(after, stop - after)
                after = stop
            most_lines -= len(spans)
            too_many = len(lines) == most_planes or most_lines < 0
            if too_many or len(left) + len(content) + end - after > _MOST_COPIED:
                return None
            content += piece(after, end - after)
            left += bytes([tag]) + varint(len(content)) + content
            if tag == _PLANES:
                columns = np.array(spans, np.int64).reshape(-1, 2)
                lines.append(Spans(columns[:, 0], columns[:, 1]))
    except OddError:
        return None
    return as_buffer(left), lines
