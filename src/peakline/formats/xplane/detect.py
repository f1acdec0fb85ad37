"""Does a file hold an XSpace? Decided from the wire types of its first fields."""

from __future__ import annotations

from peakline.wire import Buffer

_VARINT, _LENGTH = 0, 2
_SPACE = {1: _LENGTH, 2: _LENGTH, 3: _LENGTH, 4: _LENGTH}
_PLANE = {1: _VARINT, 2: _LENGTH, 3: _LENGTH, 4: _LENGTH, 5: _LENGTH, 6: _LENGTH}
_PLANES, _PLANE_NAME = 1, 2
_PLANE_NAMES = (b"/host:", b"/device:")
_LOOK = 64
_MANY = 16


def why_not_xspace(buffer: Buffer) -> str | None:
    """None if ``buffer`` starts like an XSpace, else why it does not."""
    if _is_text(buffer):
        return "a text file"
    fields = first_fields(buffer, 0, buffer.size)
    if not fields:
        return "no protobuf message"
    for number, wire, start, length in fields:
        if _SPACE.get(number) != wire:
            return "another protobuf message than XSpace" if number else "no protobuf message"
        if number != 1:
            if not _is_line_of_text(buffer, start, length):
                return "another protobuf message than XSpace"
            continue
        for inner, inner_wire, at, size in first_fields(
            buffer, start, min(start + length, buffer.size)
        ):
            named = inner == 2 and inner_wire == _LENGTH
            if _PLANE.get(inner) != inner_wire or (
                named and not _is_line_of_text(buffer, at, size)
            ):
                return "another protobuf message than XSpace"
    return None


def names_its_planes(buffer: Buffer) -> bool:
    """Whether the first plane of what looks like an XSpace has a name that only planes have."""
    for number, _, start, length in first_fields(buffer, 0, buffer.size)[:1]:
        if number == _PLANES:
            inside = first_fields(buffer, start, min(start + length, buffer.size))
            for inner, _, at, size in inside:
                if inner == _PLANE_NAME:
                    return buffer[at : at + size].tobytes().startswith(_PLANE_NAMES)
    return False


def reads_cleanly(buffer: Buffer) -> bool:
    """Whether the top-level fields follow one another to the very end."""
    at = 0
    while at < buffer.size:
        tag, at = varint(buffer, at, buffer.size)
        if at < 0 or _SPACE.get(tag >> 3) != tag & 7:
            return False
        length, at = varint(buffer, at, buffer.size)
        if at < 0 or length > buffer.size - at:
            return False
        at += length
    return True


def went_through_text(buffer: Buffer) -> bool:
    """Whether the bytes look like a binary file that was decoded and encoded as text: what was
    no UTF-8 has become U+FFFD, many times.
    """
    head = buffer[: 1 << 20].tobytes()
    return not _is_text(buffer) and head.count("\ufffd".encode()) >= _MANY


def _is_text(buffer: Buffer) -> bool:
    head = buffer[:512].tobytes()
    if any(byte < 9 or 13 < byte < 32 for byte in head):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4
    return True


def _is_line_of_text(buffer: Buffer, start: int, length: int) -> bool:
    """Whether a string that is there as a whole is UTF-8 without control characters."""
    text = buffer[start : start + length].tobytes()
    if len(text) < length:
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return not any(byte < 32 and byte not in b"\t\n\r" for byte in text)


def first_fields(buffer: Buffer, at: int, end: int) -> list[tuple[int, int, int, int]]:
    """Number, wire type, start and length of the first fields; ends quietly where bytes do.

    What is no field at all has number 0.
    """
    result: list[tuple[int, int, int, int]] = []
    while 0 <= at < end and len(result) < _LOOK:
        tag, at = varint(buffer, at, end)
        if at == _ENDED:
            break
        wire, length, start = tag & 7, 0, at
        if at != _BROKEN:
            if wire == _VARINT:
                _, at = varint(buffer, at, end)
            elif wire == _LENGTH:
                length, at = varint(buffer, at, end)
                start, at = at, at + length if at >= 0 else at
            else:
                at = at + _FIXED[wire] if wire in _FIXED else _BROKEN
        if at == _ENDED:
            break
        result.append((tag >> 3 if at != _BROKEN else 0, wire, start, length))
    return result


_ENDED, _BROKEN = -1, -2
_FIXED = {1: 8, 5: 4}


def varint(buffer: Buffer | bytes, at: int, end: int) -> tuple[int, int]:
    """Value and new position: `_ENDED` when the bytes end, `_BROKEN` when it is too long."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            return 0, _ENDED
        byte = int(buffer[at])
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    return 0, _BROKEN
