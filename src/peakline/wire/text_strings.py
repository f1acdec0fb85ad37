"""String literals of the protobuf text format: their bytes, with the escapes resolved."""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.wire.text_layout import BAD_ESCAPE, DONE, NEED_ROOM, NO_STRING, OPEN_STRING
from peakline.wire.text_tokens import eight_bytes, hex_digit, is_blank, skip_blanks

__all__ = ["copy_string"]

U = np.uint64  # for indices: an unsigned one needs no check for counting from the end


_ONES = U(0x0101010101010101)
_TOPS = U(0x8080808080808080)
_BACKSLASHES = U(92) * _ONES
_NEWLINES = U(10) * _ONES


@nb.njit(nogil=True, forceinline=True)
def _zeros(eight):  # type: ignore[no-untyped-def]
    """Not zero if one of the eight bytes is."""
    return (eight - _ONES) & ~eight & _TOPS


@nb.njit(nogil=True)
def _code_point(text, i, end, digits):  # type: ignore[no-untyped-def]
    """The number that ``digits`` hexadecimal digits give, -1 where there are fewer."""
    value = np.int64(0)
    if end - i < digits:
        return np.int64(-1)
    for k in range(digits):
        digit = hex_digit(text[U(i + k)])
        if digit < 0:
            return np.int64(-1)
        value = value * 16 + digit
    return value


@nb.njit(nogil=True)
def _unescape(text, i, end, out, o):  # type: ignore[no-untyped-def]
    """Write what the escape behind the backslash at ``i`` stands for.

    Returns the position behind it (-1: no escape) and the bytes written in all. At most four
    bytes are written.
    """
    bad = (np.int64(-1), o)
    i += 1
    if i >= end:
        return bad
    c = np.int64(text[U(i)])
    i += 1
    byte = np.int64(-1)
    if 48 <= c <= 55:
        byte = c - 48
        stop = min(end, i + 2)
        while i < stop and 48 <= text[U(i)] <= 55:
            byte = byte * 8 + np.int64(text[U(i)]) - 48
            i += 1
        if byte > 255:
            return bad
    elif c == 120 or c == 88:  # x X
        stop = min(end, i + 2)
        digit = np.int64(0)
        while i < stop:
            digit = hex_digit(text[U(i)])
            if digit < 0:
                break
            byte = max(byte, np.int64(0)) * 16 + digit
            i += 1
        if byte < 0:
            return bad
    elif c == 117 or c == 85:  # u U
        digits = 4 if c == 117 else 8
        point = _code_point(text, i, end, digits)
        i += digits
        if 0xD800 <= point < 0xDC00 and end - i > 2 and text[U(i)] == 92:
            # The first half of a pair: the second must follow in the same form or the other.
            digits = 4 if text[U(i + 1)] == 117 else 8
            low = np.int64(-1)
            if text[U(i + 1)] == 117 or text[U(i + 1)] == 85:
                low = _code_point(text, i + 2, end, digits)
            if 0xDC00 <= low < 0xE000:
                point = 0x10000 + ((point - 0xD800) << 10) + low - 0xDC00
                i += 2 + digits
        if point < 0 or point > 0x10FFFF or 0xD800 <= point < 0xE000:
            return bad
        if point < 0x80:
            byte = point
        else:
            more = 1 if point < 0x800 else 2 if point < 0x10000 else 3
            first = 0xC0 if more == 1 else 0xE0 if more == 2 else 0xF0
            out[U(o)] = np.uint8(first | (point >> (6 * more)))
            for k in range(more - 1, -1, -1):
                o += 1
                out[U(o)] = np.uint8(0x80 | ((point >> (6 * k)) & 0x3F))
            return np.int64(i), o + 1
    elif c == 110:
        byte = np.int64(10)
    elif c == 116:
        byte = np.int64(9)
    elif c == 114:
        byte = np.int64(13)
    elif c == 92 or c == 34 or c == 39 or c == 63:  # \ " ' ?
        byte = c
    elif c == 97:
        byte = np.int64(7)
    elif c == 98:
        byte = np.int64(8)
    elif c == 102:
        byte = np.int64(12)
    elif c == 118:
        byte = np.int64(11)
    else:
        return bad
    out[U(o)] = np.uint8(byte)
    return np.int64(i), o + 1


@nb.njit(nogil=True, forceinline=True)
def copy_string(text, i, end, classes, out, o):  # type: ignore[no-untyped-def]
    """Write the bytes of the string literals from ``i`` on, which belong together.

    Returns a code, the position behind them (or of the error) and the bytes written in all. At
    least 16 bytes of ``out`` stay free.
    """
    limit = out.size - 24
    if i >= end or (text[U(i)] != 34 and text[U(i)] != 39):
        return NO_STRING, i, o
    while True:
        quote = text[U(i)]
        quotes = U(quote) * _ONES
        i += 1
        while True:
            if i >= end:
                return OPEN_STRING, i, o
            if o >= limit:
                return NEED_ROOM, i, o
            if i + 8 <= end:
                # Eight bytes at once, if none of them is a quote, a backslash or a line's end.
                eight = eight_bytes(text, i)
                special = _zeros(eight ^ quotes) | _zeros(eight ^ _BACKSLASHES)
                if not special | _zeros(eight ^ _NEWLINES):
                    for k in range(8):
                        out[U(o + k)] = np.uint8((eight >> U(8 * k)) & U(0xFF))
                    o += 8
                    i += 8
                    continue
            c = text[U(i)]
            if c == quote:
                break
            if c == 92:
                after, o = _unescape(text, i, end, out, o)
                if after < 0:
                    return BAD_ESCAPE, i, o
                i = after
            elif c == 10:
                return OPEN_STRING, i, o
            else:
                out[U(o)] = c
                o += 1
                i += 1
        i += 1
        if i < end and text[U(i)] == 32:
            i += 1
        if is_blank(text, i, end, classes):
            i = skip_blanks(text, i, end, classes)
        if i >= end or (text[U(i)] != 34 and text[U(i)] != 39):
            return DONE, i, o
