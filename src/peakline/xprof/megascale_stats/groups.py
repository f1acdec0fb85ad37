"""How many devices exchange data in a collective: ``DcnCollectiveInfoProto``, field by field.

The message is ``plugin/xprof/protobuf/dcn_collective_info.proto`` of openxla/xprof.
"""

from __future__ import annotations

from collections.abc import Iterator

_GROUPS, _PAIRS, _ENDPOINTS = 2, 3, 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST = 10
"""Bytes of a number."""


def group_size(content: bytes) -> int:
    """The endpoints of the first group; 1 where there are pairs, 0 where nothing is known."""
    first: bytes | None = None
    for number, value in _fields(content):
        if number == _PAIRS:
            return 1
        if number == _GROUPS and first is None:
            first = value
    return sum(number == _ENDPOINTS for number, _ in _fields(first or b""))


def _fields(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of the messages in ``content``, up to where it is damaged."""
    at = 0
    while at < len(content):
        tag, at = _number(content, at)
        number, kind = tag >> 3, tag & 7
        size = 0
        if kind == _VARINT:
            _, at = _number(content, at)
        elif kind == _BYTES:
            size, at = _number(content, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            return
        if at + size > len(content):
            return
        if kind == _BYTES:
            yield number, content[at : at + size]
        at += size


def _number(content: bytes, at: int) -> tuple[int, int]:
    """The number at ``at``, and where it ends: behind the content where it is cut."""
    value = 0
    for place in range(_LONGEST):
        if at + place >= len(content):
            break
        byte = content[at + place]
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value, at + place + 1
    return 0, len(content) + 1
