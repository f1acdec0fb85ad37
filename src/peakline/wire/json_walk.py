"""Walking one JSON value (RFC 8259): where it ends, and where its wanted members lie.

More is accepted than the standard allows, as profilers write it: commas before a closing bracket,
NaN and Infinity, control characters in strings, bytes that are no UTF-8.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.wire.json_kinds import (
    ABSENT,
    ARRAY,
    ESCAPED,
    FALSE,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TRUE,
)
from peakline.wire.json_numbers import microseconds

__all__ = [
    "BAD",
    "CUT",
    "KEY_MIX",
    "MAX_DEPTH",
    "OK",
    "skip_space",
    "string_end",
    "token",
    "walk",
]

U = np.uint64  # also for indices: an unsigned one needs no check for counting from the end

MAX_DEPTH = 512
"""Open brackets within one object; a deeper one is damage."""

OK, CUT, BAD = 0, 1, 2
"""What a walk ends with: a whole value, the end of the bytes, what is no JSON."""

KEY_MIX = 0x9E3779B97F4A7C15
"""Spreads the beginnings of keys over the table of wanted ones (an odd multiplier)."""

QUOTE, BACKSLASH, COMMA, COLON = 34, 92, 44, 58
OPEN_ARRAY, CLOSE_ARRAY, OPEN, CLOSE = 91, 93, 123, 125

# What the walk expects next.
_KEY, _VALUE, _ITEM, _AFTER = 0, 1, 2, 3

_SORT = np.zeros(256, np.uint8)  # 1: only in literals, 2: in numbers too
_SORT[ord("a") : ord("z") + 1] = _SORT[ord("A") : ord("Z") + 1] = 1
_SORT[[ord(c) for c in "+-.0123456789eE"]] = 2


@nb.njit(forceinline=True)
def string_end(buf, at, end):  # type: ignore[no-untyped-def]
    """The closing quote of the string whose first byte is ``at`` (-1: cut), and if it escapes."""
    escaped = False
    while at < end:
        byte = buf[U(at)]
        if byte == QUOTE:
            return at, escaped
        if byte == BACKSLASH:
            escaped = True
            at += 1
        at += 1
    return np.int64(-1), escaped


@nb.njit(forceinline=True)
def skip_space(buf, at, end):  # type: ignore[no-untyped-def]
    """The first byte from ``at`` on that is no blank (or other control character)."""
    while at < end and buf[U(at)] <= 32:
        at += 1
    return at


@nb.njit(cache=True, nogil=True)
def _hex(byte):  # type: ignore[no-untyped-def]
    if 48 <= byte <= 57:
        return np.int64(byte) - 48
    byte |= 32
    if 97 <= byte <= 102:
        return np.int64(byte) - 87
    return np.int64(-1)


@nb.njit(cache=True, nogil=True)
def _unescape(buf, start, length, out):  # type: ignore[no-untyped-def]
    """Write the string's bytes; -1 when ``out`` is too small or it is not simply decoded."""
    at, end, size = start, start + length, 0
    while at < end:
        if size + 3 > out.size:
            return -1
        byte = np.int64(buf[U(at)])
        at += 1
        if byte == BACKSLASH:
            byte = np.int64(buf[U(at)])
            at += 1
            if byte == 117:  # u
                if at + 4 > end:
                    return -1
                point = np.int64(0)
                for k in range(4):
                    digit = _hex(buf[U(at + k)])
                    if digit < 0:
                        return -1
                    point = point * 16 + digit
                at += 4
                if 0xD800 <= point < 0xE000:
                    return -1
                if point >= 0x800:
                    out[size] = 0xE0 | point >> 12
                    out[size + 1] = 0x80 | (point >> 6 & 0x3F)
                    out[size + 2] = 0x80 | (point & 0x3F)
                    size += 3
                    continue
                if point >= 0x80:
                    out[size] = 0xC0 | point >> 6
                    out[size + 1] = 0x80 | (point & 0x3F)
                    size += 2
                    continue
                byte = point
            elif byte == 98:
                byte = np.int64(8)
            elif byte == 102:
                byte = np.int64(12)
            elif byte == 110:
                byte = np.int64(10)
            elif byte == 114:
                byte = np.int64(13)
            elif byte == 116:
                byte = np.int64(9)
        out[size] = byte
        size += 1
    return size


@nb.njit(forceinline=True)
def _word(buf, at):  # type: ignore[no-untyped-def]
    """Eight bytes, little endian: one load once compiled."""
    return (
        U(buf[U(at)]) | U(buf[U(at + 1)]) << U(8)
        | U(buf[U(at + 2)]) << U(16) | U(buf[U(at + 3)]) << U(24)
        | U(buf[U(at + 4)]) << U(32) | U(buf[U(at + 5)]) << U(40)
        | U(buf[U(at + 6)]) << U(48) | U(buf[U(at + 7)]) << U(56)
    )  # fmt: skip


@nb.njit(forceinline=True)
def _beginning(buf, start, length):  # type: ignore[no-untyped-def]
    """The first eight bytes of a key as a number, zeros behind a shorter one."""
    if start + 8 <= buf.size:
        word = _word(buf, start)
        if length < 8:
            word &= (U(1) << U(8 * length)) - U(1)
        return word
    word = U(0)
    for k in range(min(length, np.int64(8))):
        word |= U(buf[U(start + k)]) << U(8 * k)
    return word


@nb.njit(forceinline=True)
def _find(buf, start, length, parent, slots, keys, pool):  # type: ignore[no-untyped-def]
    """The column of a key within the column ``parent`` (-1: the object itself), or -1."""
    word = _beginning(buf, start, length)
    column = np.int64(slots[((word + U(parent + 1)) * U(KEY_MIX)) >> U(56)])
    while column >= 0:
        row = U(column)
        if U(keys[row, 5]) == word and keys[row, 2] == length and keys[row, 0] == parent:
            at = keys[row, 1]
            k = np.int64(8)
            while k < length and buf[U(start + k)] == pool[U(at + k)]:
                k += 1
            if k >= length:
                return column
        column = np.int64(keys[row, 3])
    return column


@nb.njit(forceinline=True)
def token(buf, at, end):  # type: ignore[no-untyped-def]
    """Where the number or literal that begins at ``at`` ends, and its kind: ABSENT for neither."""
    first = buf[U(at)] if at < end else np.uint8(0)
    numeric = (48 <= first <= 57) or first == 45
    stop = at
    while stop < end:
        sort = _SORT[U(buf[U(stop)])]
        if sort == 0:
            break
        numeric &= sort == 2
        stop += 1
    if numeric:
        return stop, NUMBER
    return stop, _literal(buf, at, stop - at)


@nb.njit(cache=True, nogil=True)
def _literal(buf, start, length):  # type: ignore[no-untyped-def]
    if length == 0:
        return ABSENT
    first = buf[U(start)]
    if first == 45 and length > 1:
        start += 1
        length -= 1
        first = buf[U(start)] & 0xDF  # only Infinity and NaN, in capitals or not
    if length == 4 and first == 116:  # true
        if buf[U(start + 1)] == 114 and buf[U(start + 2)] == 117 and buf[U(start + 3)] == 101:
            return TRUE
    elif length == 5 and first == 102:  # false
        if buf[U(start + 1)] == 97 and buf[U(start + 2)] == 108 and buf[U(start + 4)] == 101:
            return FALSE
    elif length == 4 and first == 110:  # null
        if buf[U(start + 1)] == 117 and buf[U(start + 2)] == 108 and buf[U(start + 3)] == 108:
            return NULL
    elif length == 3:  # nan, inf
        a, b, c = first | 32, buf[U(start + 1)] | 32, buf[U(start + 2)] | 32
        if (a == 110 and b == 97 and c == 110) or (a == 105 and b == 110 and c == 102):
            return NUMBER
    elif length == 8 and (first | 32) == 105 and buf[U(start + 7)] == 121:  # Infinity
        return NUMBER
    return ABSENT


@nb.njit(forceinline=True)
def _forget(row_kinds, column, keys):  # type: ignore[no-untyped-def]
    """A key occurs again: what its first value held does not count."""
    if row_kinds[column] != ABSENT:
        for other in range(keys.shape[0]):
            if keys[other, 0] == column:
                row_kinds[other] = ABSENT


@nb.njit(forceinline=True)
def _note_time(buf, start, stop, row_times, row_states, time):  # type: ignore[no-untyped-def]
    whole, millionths, row_states[time] = microseconds(buf, start, stop)
    row_times[time, 0], row_times[time, 1] = whole, millionths


@nb.njit(cache=True, nogil=True)
def walk(  # type: ignore[no-untyped-def]
    buf, at, end, slots, keys, pool, stack, scratch,
    row_kinds, row_starts, row_lengths, row_times, row_states,
):  # fmt: skip
    """Walk the value at ``at``, an object or array; note the wanted members of an object.

    Returns how it ended, where, and for a bad one from where to search for the next object.
    """
    first = buf[U(at)]
    in_object = first == OPEN
    stack[0] = in_object
    depth = np.int64(1)
    expect = _KEY if in_object else _ITEM
    top = np.int64(-1)  # column of the member being read, at depth 1
    column = np.int64(-1)  # column of the value that comes next
    outer = inner = np.int64(-1)  # columns whose container is open, at depth 1 and 2
    last_string = at + 1
    noting = in_object and keys.shape[0] > 0
    at += 1
    while True:
        while at < end and buf[U(at)] <= 32:
            at += 1
        if at >= end:
            return CUT, at, last_string
        byte = buf[U(at)]
        if expect == _AFTER:
            if byte == COMMA:
                expect = _KEY if in_object else _ITEM
                at += 1
                continue
            if byte != (CLOSE if in_object else CLOSE_ARRAY):
                return BAD, at, last_string
        if byte == QUOTE:
            last_string = at + 1
            start = at + 1
            stop, escaped = string_end(buf, start, end)
            if stop < 0:
                return CUT, end, last_string
            at = stop + 1
            if expect == _KEY:
                if noting and depth <= 2:
                    column = np.int64(-1)
                    parent = np.int64(-1) if depth == 1 else top
                    if depth == 1 or parent >= 0:
                        if escaped:
                            size = _unescape(buf, start, stop - start, scratch)
                            if size >= 0:
                                column = _find(
                                    scratch, np.int64(0), size, parent, slots, keys, pool
                                )
                        else:
                            column = _find(buf, start, stop - start, parent, slots, keys, pool)
                    if depth == 1:
                        top = column
                while at < end and buf[U(at)] <= 32:
                    at += 1
                if at >= end:
                    return CUT, at, last_string
                if buf[U(at)] != COLON:
                    return BAD, at, last_string
                at += 1
                expect = _VALUE
                continue
            if column >= 0:
                _forget(row_kinds, column, keys)
                row_kinds[column] = ESCAPED if escaped else STRING
                row_starts[column] = start
                row_lengths[column] = stop - start
                time = keys[column, 4]
                if time >= 0:
                    _note_time(buf, start, stop, row_times, row_states, time)
                column = np.int64(-1)
            expect = _AFTER
            continue
        if (byte == CLOSE and in_object and expect != _VALUE) or (
            byte == CLOSE_ARRAY and not in_object
        ):
            depth -= 1
            at += 1
            if depth == 0:
                return OK, at, last_string
            in_object = stack[depth - 1] != 0
            if depth == 1 and outer >= 0:
                row_lengths[outer] = at - row_starts[outer]
                outer = np.int64(-1)
            elif depth == 2 and inner >= 0:
                row_lengths[inner] = at - row_starts[inner]
                inner = np.int64(-1)
            expect = _AFTER
            continue
        if expect == _KEY:
            return BAD, at, last_string
        if byte == OPEN or byte == OPEN_ARRAY:
            if depth >= stack.size:
                return BAD, at, at
            in_object = byte == OPEN
            if column >= 0:
                _forget(row_kinds, column, keys)
                row_kinds[column] = OBJECT if in_object else ARRAY
                row_starts[column] = at
                if depth == 1:
                    outer = column
                else:
                    inner = column
                column = np.int64(-1)
            stack[depth] = in_object
            depth += 1
            at += 1
            expect = _KEY if in_object else _ITEM
            continue
        start = at
        at, kind = token(buf, start, end)
        if at >= end:
            return CUT, at, last_string
        if kind == ABSENT:
            return BAD, start, last_string
        if column >= 0:
            _forget(row_kinds, column, keys)
            row_kinds[column] = kind
            row_starts[column] = start
            row_lengths[column] = at - start
            time = keys[column, 4]
            if time >= 0:
                _note_time(buf, start, at, row_times, row_states, time)
            column = np.int64(-1)
        expect = _AFTER
