"""The one scanner for protobuf text: it writes the wire bytes of the same message.

Guided by the tables of `peakline.wire.text_tables`, so that every message is read by this one
function. A sub-message's length is not known before its end: one byte is left for it, and a
longer one moves the content up. Positions and open messages live in arrays, so that a scan can
stop (for a larger output, for instance) and go on where it was.

Nothing outside ``text[:end]`` is read, every step moves on in the text, and nothing is written
without room for it: no input can crash, hang, or write outside. What reads can fail with a code of
`peakline.kernels.text_layout` and where it happened.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import (
        bits_double,
        double_bits,
        float_bits,
        low64,
        put_word64,
        signed64,
        word64,
    )
    from peakline.kernels.text_layout import (
        BAD_ESCAPE,
        BLANK,
        BOOL,
        COMMENT,
        DIGIT,
        DONE,
        DOUBLE,
        ENUM,
        F_CHILD,
        F_CLOSED,
        F_IMPLICIT,
        F_KIND,
        F_REPEATED,
        F_SLOT,
        F_TAG,
        F_TAG_BYTES,
        F_WIDTH,
        FIXED32,
        FIXED64,
        FLOAT,
        H_LENGTH,
        H_OWNER,
        H_START,
        H_VALUE,
        H_WIDTH,
        IDENTIFIER,
        IDENTIFIER_START,
        INT32,
        K_AT,
        K_CLOSE,
        K_LIST,
        K_OWNER,
        K_WIDTH,
        MAX_DEPTH,
        MESSAGE,
        NEED_FIXES,
        NEED_ROOM,
        NO_BOOL,
        NO_COLON,
        NO_ENUM,
        NO_INTEGER,
        NO_LIST,
        NO_NAME,
        NO_NUMBER,
        NO_OPENING,
        NO_SEPARATOR,
        NO_STRING,
        NO_VALUE,
        NOT_ENDED,
        NOT_REPEATED,
        NUMBER,
        OPEN_STRING,
        OUT_OF_RANGE,
        ROOM,
        S_DEPTH,
        S_ERROR_AT,
        S_FIXES,
        S_LIST,
        S_OUT,
        S_POSITION,
        S_REDACTED,
        S_UNKNOWN,
        S_UNKNOWN_AT,
        S_UNKNOWN_LENGTH,
        SFIXED32,
        SFIXED64,
        SINT32,
        SINT64,
        SKIPPED,
        SKIPPED_LIST,
        STRING,
        TOO_DEEP,
        TWICE,
        UINT32,
        UINT64,
        WRONG_END,
        X_LENGTH,
        X_NEGATIVE,
        X_OUT,
        X_SIZE,
        X_START,
        X_WIDTH,
    )

__all__ = ["scan_text"]

# Blanks, names and numbers.


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_blank(
    text: cython.const[cython.uchar][::1],
    i: cython.longlong,
    end: cython.longlong,
    classes: cython.const[cython.uchar][::1],
) -> cython.bint:
    """Whether there is something for `skip_blanks` to skip. Mostly there is not."""
    return i < end and classes[text[i]] & (BLANK | COMMENT) != 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def skip_blanks(
    text: cython.const[cython.uchar][::1],
    i: cython.longlong,
    end: cython.longlong,
    classes: cython.const[cython.uchar][::1],
) -> cython.longlong:
    """The first position that is neither blank nor in a comment."""
    spaces: cython.ulonglong = 0x2020202020202020
    c: cython.int
    while i < end:
        c = text[i]
        if classes[c] & BLANK:
            i += 1
            while i + 8 <= end and word64(text, i) == spaces:
                i += 8
        elif c == 35:  # #
            while i < end and text[i] != 10:
                i += 1
        else:
            break
    return i


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def identifier_end(
    text: cython.const[cython.uchar][::1],
    i: cython.longlong,
    end: cython.longlong,
    classes: cython.const[cython.uchar][::1],
) -> cython.longlong:
    """Where the letters, digits and underscores from ``i`` on end."""
    while i < end and classes[text[i]] & IDENTIFIER:
        i += 1
    return i


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def look_up(
    text: cython.const[cython.uchar][::1],
    start: cython.longlong,
    stop: cython.longlong,
    owner: cython.longlong,
    hashes: cython.const[cython.longlong][::1],
    names: cython.const[cython.uchar][::1],
    missing: cython.longlong,
) -> cython.longlong:
    """The value of a name of ``owner`` (not empty), ``missing`` if there is none.

    The hash is that of `peakline.wire.text_tables.name_hash`.
    """
    of_owner: cython.longlong = 0x9E3779B1
    of_length: cython.longlong = 0x85EBCA6B
    of_first: cython.longlong = 0xC2B2AE35
    of_middle: cython.longlong = 0x27D4EB2F
    of_last: cython.longlong = 0x165667B1
    length: cython.longlong = stop - start
    mask: cython.longlong = hashes.shape[0] // H_WIDTH - 1
    mixed: cython.longlong = owner * of_owner + length * of_length + text[start] * of_first
    slot: cython.longlong
    at: cython.longlong
    name: cython.longlong
    k: cython.longlong
    same: cython.bint
    mixed += text[start + (length >> 1)] * of_middle + text[stop - 1] * of_last
    slot = (mixed ^ (mixed >> 17)) & mask
    while True:
        at = slot * H_WIDTH
        if hashes[at + H_OWNER] < 0:
            return missing
        if hashes[at + H_OWNER] == owner and hashes[at + H_LENGTH] == length:
            name, same, k = hashes[at + H_START], True, 0
            while same and k + 8 <= length:
                same = word64(text, start + k) == word64(names, name + k)
                k += 8
            while same and k < length:
                same = text[start + k] == names[name + k]
                k += 1
            if same:
                return hashes[at + H_VALUE]
        slot = (slot + 1) & mask


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _hex_digit(c: cython.int) -> cython.int:
    """What a hexadecimal digit stands for, -1 for another character."""
    if c >= 48 and c <= 57:
        return c - 48
    c |= 32
    if c >= 97 and c <= 102:
        return c - 87
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_integer(
    text: cython.const[cython.uchar][::1],
    i: cython.longlong,
    end: cython.longlong,
    classes: cython.const[cython.uchar][::1],
) -> tuple[cython.int, cython.longlong, cython.ulonglong, cython.bint]:
    """A decimal, octal or hexadecimal integer, perhaps behind a minus sign.

    Returns a code, the position behind it (or of the error), the magnitude and whether it is
    negative.
    """
    start: cython.longlong = i
    first: cython.longlong
    safe: cython.longlong
    value: cython.ulonglong = 0
    most: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    digit: cython.int
    negative: cython.bint = False
    if i < end and text[i] == 45:
        negative = True
        i = skip_blanks(text, i + 1, end, classes)
    if i >= end or not classes[text[i]] & DIGIT:
        return NO_INTEGER, start, value, negative
    if text[i] == 48 and i + 1 < end and text[i + 1] | 32 == 120:
        i += 2
        first = i
        while i < end:
            digit = _hex_digit(text[i])
            if digit < 0:
                break
            if value >> 60 != 0:
                return OUT_OF_RANGE, start, value, negative
            value = (value << 4) | digit
            i += 1
        if i == first:
            return NO_INTEGER, start, value, negative
    elif text[i] == 48:
        while i < end and text[i] >= 48 and text[i] <= 55:
            if value >> 61 != 0:
                return OUT_OF_RANGE, start, value, negative
            digit = text[i]
            value = (value << 3) | (digit - 48)
            i += 1
    else:
        safe = i + 19
        while i < end:
            digit = text[i]
            digit -= 48
            if digit < 0 or digit > 9:
                break
            if i >= safe and value > (most - digit) // 10:
                return OUT_OF_RANGE, start, value, negative
            value = value * 10 + digit
            i += 1
    if i < end and classes[text[i]] & NUMBER:
        return NO_INTEGER, start, value, negative
    return DONE, i, value, negative


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_word(
    text: cython.const[cython.uchar][::1], i: cython.longlong, stop: cython.longlong
) -> cython.int:
    """1 where the letters up to ``stop`` are ``inf`` or ``infinity``, 2 for ``nan``, else 0.

    An ``f`` may stand behind them.
    """
    length: cython.longlong = stop - i
    a: cython.int
    b: cython.int
    c: cython.int
    if length < 3:
        return 0
    a, b, c = text[i] | 32, text[i + 1] | 32, text[i + 2] | 32
    if length == 3 or (length == 4 and text[stop - 1] | 32 == 102):
        if a == 110 and b == 97 and c == 110:
            return 2
        return a == 105 and b == 110 and c == 102
    if length == 8 or (length == 9 and text[stop - 1] | 32 == 102):
        if not (a == 105 and b == 110 and c == 102):
            return 0
        a, b, c = text[i + 3] | 32, text[i + 4] | 32, text[i + 5] | 32
        if not (a == 105 and b == 110 and c == 105):
            return 0
        return text[i + 6] | 32 == 116 and text[i + 7] | 32 == 121
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_float(
    text: cython.const[cython.uchar][::1],
    i: cython.longlong,
    end: cython.longlong,
    classes: cython.const[cython.uchar][::1],
) -> tuple[
    cython.int, cython.longlong, cython.double, cython.bint, cython.longlong, cython.longlong
]:
    """A floating-point number, or a decimal integer.

    Returns a code, the position behind it (or of the error), the value, whether it is negative,
    and, where the value needs more care than this, which part of the text has the digits (its
    length is 0 otherwise).
    """
    start: cython.longlong = i
    stop: cython.longlong
    first: cython.longlong
    k: cython.longlong
    digits: cython.longlong = 0
    exponent: cython.longlong = 0
    power: cython.longlong = 0
    one: cython.ulonglong = 1
    exact: cython.ulonglong = one << 53
    infinite: cython.ulonglong = 0x7FF0000000000000
    no_number: cython.ulonglong = 0x7FF8000000000000
    mantissa: cython.ulonglong = 0
    word: cython.int
    digit: cython.int
    value: cython.double
    scale: cython.double = 1.0
    negative: cython.bint = False
    inexact: cython.bint = False
    minus: cython.bint
    if i < end and text[i] == 45:
        negative = True
        i = skip_blanks(text, i + 1, end, classes)
    if i >= end:
        return NO_NUMBER, start, 0.0, negative, 0, 0
    if classes[text[i]] & IDENTIFIER_START:
        stop = i
        while stop < end and classes[text[stop]] & NUMBER:
            stop += 1
        word = _read_word(text, i, stop)
        if word == 1:
            return DONE, stop, bits_double(infinite), negative, 0, 0
        if word == 2:
            return DONE, stop, bits_double(no_number), negative, 0, 0
        return NO_NUMBER, start, 0.0, negative, 0, 0
    first = i
    while i < end and classes[text[i]] & DIGIT:
        if mantissa < exact:
            digit = text[i]
            mantissa = mantissa * 10 + (digit - 48)
        else:
            inexact = True
        digits += 1
        i += 1
    if digits > 1 and text[first] == 48:
        return NO_NUMBER, start, 0.0, negative, 0, 0
    if i < end and text[i] == 46:
        i += 1
        while i < end and classes[text[i]] & DIGIT:
            if mantissa < exact:
                digit = text[i]
                mantissa = mantissa * 10 + (digit - 48)
                exponent -= 1
            else:
                inexact = True
            digits += 1
            i += 1
    if digits == 0:
        return NO_NUMBER, start, 0.0, negative, 0, 0
    if i < end and text[i] | 32 == 101:
        i += 1
        minus = i < end and text[i] == 45
        if i < end and (text[i] == 45 or text[i] == 43):
            i += 1
        if i >= end or not classes[text[i]] & DIGIT:
            return NO_NUMBER, start, 0.0, negative, 0, 0
        while i < end and classes[text[i]] & DIGIT:
            digit = text[i]
            power = power * 10 + digit - 48
            power = min(power, 99999999)
            i += 1
        exponent += -power if minus else power
    stop = i
    if i < end and text[i] | 32 == 102:
        i += 1
    if i < end and classes[text[i]] & NUMBER:
        return NO_NUMBER, start, 0.0, negative, 0, 0
    if mantissa == 0:
        return DONE, i, 0.0, negative, 0, 0
    # Both factors are exact (powers of ten are up to 10^22), so the one rounding is the right one.
    if not inexact and mantissa <= exact and exponent >= -22 and exponent <= 22:
        value = mantissa
        for k in range(exponent if exponent >= 0 else -exponent):
            scale *= 10.0
        value = value * scale if exponent >= 0 else value / scale
        return DONE, i, value, negative, 0, 0
    return DONE, i, 1.0, negative, first, stop - first


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _skip_value(
    text: cython.const[cython.uchar][::1],
    i: cython.longlong,
    end: cython.longlong,
    classes: cython.const[cython.uchar][::1],
) -> tuple[cython.int, cython.longlong]:
    """Pass over a string, a number or a name. Returns a code and the position behind it."""
    start: cython.longlong
    first: cython.longlong
    quote: cython.int
    c: cython.int
    if i < end and (text[i] == 34 or text[i] == 39):
        while True:
            quote = text[i]
            i += 1
            while True:
                if i >= end or text[i] == 10:
                    return OPEN_STRING, i
                c = text[i]
                i += 1
                if c == quote:
                    break
                if c == 92:
                    if i >= end or text[i] == 10:
                        return OPEN_STRING, i
                    i += 1
            i = skip_blanks(text, i, end, classes)
            if i >= end or (text[i] != 34 and text[i] != 39):
                return DONE, i
    start = i
    if i < end and text[i] == 45:
        i = skip_blanks(text, i + 1, end, classes)
    first = i
    while i < end and classes[text[i]] & NUMBER:
        i += 1
    if i == first:
        return NO_VALUE, start
    return DONE, i


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_redacted(
    text: cython.const[cython.uchar][::1], i: cython.longlong, end: cython.longlong
) -> cython.bint:
    """Whether ``[REDACTED]`` stands at ``i``."""
    beginning: cython.ulonglong = 0x455443414445525B
    if end - i < 10:
        return False
    return word64(text, i) == beginning and text[i + 8] == 68 and text[i + 9] == 93


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_marker(
    text: cython.const[cython.uchar][::1], i: cython.longlong, end: cython.longlong
) -> cython.bint:
    """Whether ``goo.gle/`` stands at ``i``."""
    marker: cython.ulonglong = 0x2F656C672E6F6F67
    return end - i >= 8 and word64(text, i) == marker


# Strings.


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _zeros(eight: cython.ulonglong) -> cython.ulonglong:
    """Not zero if one of the eight bytes is."""
    ones: cython.ulonglong = 0x0101010101010101
    tops: cython.ulonglong = 0x8080808080808080
    return low64(eight - ones) & ~eight & tops


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _code_point(
    text: cython.const[cython.uchar][::1],
    i: cython.longlong,
    end: cython.longlong,
    digits: cython.longlong,
) -> cython.longlong:
    """The number that ``digits`` hexadecimal digits give, -1 where there are fewer."""
    value: cython.longlong = 0
    k: cython.longlong
    digit: cython.int
    if end - i < digits:
        return -1
    for k in range(digits):
        digit = _hex_digit(text[i + k])
        if digit < 0:
            return -1
        value = value * 16 + digit
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _unescape(
    text: cython.const[cython.uchar][::1],
    i: cython.longlong,
    end: cython.longlong,
    out: cython.uchar[::1],
    o: cython.longlong,
) -> tuple[cython.longlong, cython.longlong]:
    """Write what the escape behind the backslash at ``i`` stands for.

    Returns the position behind it (-1: no escape) and the bytes written in all. At most four
    bytes are written.
    """
    c: cython.int
    byte: cython.int = -1
    digit: cython.int
    stop: cython.longlong
    digits: cython.longlong
    point: cython.longlong
    low: cython.longlong
    more: cython.longlong
    first: cython.longlong
    i += 1
    if i >= end:
        return -1, o
    c = text[i]
    i += 1
    if c >= 48 and c <= 55:
        byte = c - 48
        stop = min(i + 2, end)
        while i < stop and text[i] >= 48 and text[i] <= 55:
            digit = text[i]
            byte = byte * 8 + digit - 48
            i += 1
        if byte > 255:
            return -1, o
    elif c == 120 or c == 88:  # x X
        stop = min(i + 2, end)
        while i < stop:
            digit = _hex_digit(text[i])
            if digit < 0:
                break
            byte = (max(0, byte)) * 16 + digit
            i += 1
        if byte < 0:
            return -1, o
    elif c == 117 or c == 85:  # u U
        digits = 4 if c == 117 else 8
        point = _code_point(text, i, end, digits)
        i += digits
        if point >= 0xD800 and point < 0xDC00 and end - i > 2 and text[i] == 92:
            # The first half of a pair: the second must follow in the same form or the other.
            digits = 4 if text[i + 1] == 117 else 8
            low = -1
            if text[i + 1] == 117 or text[i + 1] == 85:
                low = _code_point(text, i + 2, end, digits)
            if low >= 0xDC00 and low < 0xE000:
                point = 0x10000 + ((point - 0xD800) << 10) + low - 0xDC00
                i += 2 + digits
        if point < 0 or point > 0x10FFFF or (point >= 0xD800 and point < 0xE000):
            return -1, o
        if point >= 0x80:
            more = 1 if point < 0x800 else (2 if point < 0x10000 else 3)
            first = 0xC0 if more == 1 else (0xE0 if more == 2 else 0xF0)
            out[o] = first | (point >> (6 * more))
            while more > 0:
                more -= 1
                o += 1
                out[o] = 0x80 | ((point >> (6 * more)) & 0x3F)
            return i, o + 1
        byte = point
    elif c == 110:
        byte = 10
    elif c == 116:
        byte = 9
    elif c == 114:
        byte = 13
    elif c == 92 or c == 34 or c == 39 or c == 63:  # \ " ' ?
        byte = c
    elif c == 97:
        byte = 7
    elif c == 98:
        byte = 8
    elif c == 102:
        byte = 12
    elif c == 118:
        byte = 11
    else:
        return -1, o
    out[o] = byte
    return i, o + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _copy_string(
    text: cython.const[cython.uchar][::1],
    i: cython.longlong,
    end: cython.longlong,
    classes: cython.const[cython.uchar][::1],
    out: cython.uchar[::1],
    o: cython.longlong,
) -> tuple[cython.int, cython.longlong, cython.longlong]:
    """Write the bytes of the string literals from ``i`` on, which belong together.

    Returns a code, the position behind them (or of the error) and the bytes written in all. At
    least 16 bytes of ``out`` stay free.
    """
    ones: cython.ulonglong = 0x0101010101010101
    backslashes: cython.ulonglong = 0x5C5C5C5C5C5C5C5C
    newlines: cython.ulonglong = 0x0A0A0A0A0A0A0A0A
    quotes: cython.ulonglong
    eight: cython.ulonglong
    limit: cython.longlong = out.shape[0] - 24
    after: cython.longlong
    quote: cython.int
    c: cython.int
    if i >= end or (text[i] != 34 and text[i] != 39):
        return NO_STRING, i, o
    while True:
        quote = text[i]
        quotes = quote * ones
        i += 1
        while True:
            if i >= end:
                return OPEN_STRING, i, o
            if o >= limit:
                return NEED_ROOM, i, o
            if i + 8 <= end:
                # Eight bytes at once, if none of them is a quote, a backslash or a line's end.
                eight = word64(text, i)
                if (
                    _zeros(eight ^ quotes) | _zeros(eight ^ backslashes) | _zeros(eight ^ newlines)
                ) == 0:
                    put_word64(out, o, eight)
                    o += 8
                    i += 8
                    continue
            c = text[i]
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
                out[o] = c
                o += 1
                i += 1
        i += 1
        if i < end and text[i] == 32:
            i += 1
        if _is_blank(text, i, end, classes):
            i = skip_blanks(text, i, end, classes)
        if i >= end or (text[i] != 34 and text[i] != 39):
            return DONE, i, o


# Values on the wire.


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_varint(
    out: cython.uchar[::1], o: cython.longlong, value: cython.ulonglong
) -> cython.longlong:
    """Write ``value`` at ``o``; where it ends."""
    while value >= 0x80:
        out[o] = (value & 0x7F) | 0x80
        value >>= 7
        o += 1
    out[o] = value
    return o + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_little(
    out: cython.uchar[::1], o: cython.longlong, value: cython.ulonglong, size: cython.longlong
) -> cython.longlong:
    """Write the low ``size`` bytes of ``value`` at ``o``; where they end."""
    k: cython.longlong
    for k in range(size):
        out[o + k] = (value >> (8 * k)) & 0xFF
    return o + size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def close_length(
    out: cython.uchar[::1],
    at: cython.longlong,
    o: cython.longlong,
    fixes: cython.longlong[::1],
    fixed: cython.longlong,
) -> cython.longlong:
    """Write the length of what lies from ``at + 1`` to ``o`` at ``at``; where it ends now."""
    length: cython.longlong = o - at - 1
    more: cython.longlong = 0
    rest: cython.longlong
    k: cython.longlong
    if length < 0x80:
        out[at] = length
        return o
    rest = length >> 7
    while rest:
        more += 1
        rest >>= 7
    # From the end on, eight bytes at a time: all are read before the first is written.
    k = o
    while k - 8 > at:
        k -= 8
        put_word64(out, k + more, word64(out, k))
    while k - 1 > at:
        k -= 1
        out[k + more] = out[k]
    put_varint(out, at, length)
    while fixed > 0 and fixes[(fixed - 1) * X_WIDTH + X_OUT] > at:
        fixed -= 1
        fixes[fixed * X_WIDTH + X_OUT] += more
    return o + more


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_bool(
    text: cython.const[cython.uchar][::1],
    i: cython.longlong,
    end: cython.longlong,
    classes: cython.const[cython.uchar][::1],
) -> tuple[cython.int, cython.longlong, cython.int]:
    """Code, position behind it, and 0 or 1."""
    code: cython.int
    stop: cython.longlong
    length: cython.longlong
    value: cython.ulonglong
    negative: cython.bint
    rest: cython.bint
    first: cython.int
    if i < end and classes[text[i]] & DIGIT:
        code, stop, value, negative = _read_integer(text, i, end, classes)
        if code == DONE and value <= 1:
            return DONE, stop, value
        return NO_BOOL, i, 0
    stop = i
    while stop < end and classes[text[stop]] & IDENTIFIER:
        stop += 1
    length = stop - i
    if length == 1 and (text[i] == 116 or text[i] == 102):
        return DONE, stop, text[i] == 116
    if length != 4 and length != 5:
        return NO_BOOL, i, 0
    # The first letter may be a capital one.
    first = text[i] | 32
    if length == 4:
        rest = text[i + 1] == 114 and text[i + 2] == 117 and text[i + 3] == 101
        if first == 116 and rest:
            return DONE, stop, 1
        return NO_BOOL, i, 0
    rest = text[i + 1] == 97 and text[i + 2] == 108 and text[i + 3] == 115 and text[i + 4] == 101
    if first == 102 and rest:
        return DONE, stop, 0
    return NO_BOOL, i, 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_value(
    owner: cython.longlong, number: cython.longlong, hashes: cython.const[cython.longlong][::1]
) -> cython.bint:
    """Whether the enum ``owner`` has a value of this number."""
    slot: cython.longlong = 0
    while slot < hashes.shape[0]:
        if hashes[slot + H_OWNER] == owner and hashes[slot + H_VALUE] == number:
            return True
        slot += H_WIDTH
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _in_range(kind: cython.longlong, value: cython.ulonglong, negative: cython.bint) -> cython.bint:
    """Whether a magnitude and sign fit an integer field."""
    one: cython.ulonglong = 1
    if kind == INT32 or kind == SINT32 or kind == SFIXED32 or kind == ENUM:
        return value <= (one << 31 if negative else (one << 31) - 1)
    if kind == UINT32 or kind == FIXED32:
        return value <= (0 if negative else (one << 32) - 1)
    if kind == UINT64 or kind == FIXED64:
        return not negative or value == 0
    return value <= (one << 63 if negative else (one << 63) - 1)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_integer(
    out: cython.uchar[::1],
    o: cython.longlong,
    kind: cython.longlong,
    value: cython.ulonglong,
    negative: cython.bint,
) -> cython.longlong:
    """Write a number that fits its field; where it ends."""
    bits: cython.ulonglong = low64(0 - value) if negative else value
    if kind == SINT32 or kind == SINT64:
        bits = low64(value << 1)
        return put_varint(out, o, bits - 1 if negative and value != 0 else bits)
    if kind == FIXED32 or kind == SFIXED32:
        return _put_little(out, o, bits, 4)
    if kind == FIXED64 or kind == SFIXED64:
        return _put_little(out, o, bits, 8)
    return put_varint(out, o, bits)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_float(
    out: cython.uchar[::1],
    o: cython.longlong,
    kind: cython.longlong,
    value: cython.double,
    negative: cython.bint,
) -> cython.longlong:
    """Write the bits of a number in the size of its kind; where they end."""
    if negative:
        value = -value
    if kind == DOUBLE:
        return _put_little(out, o, double_bits(value), 8)
    return _put_little(out, o, float_bits(value), 4)


# The scanner.


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def scan_message(
    text: cython.const[cython.uchar][::1],
    end: cython.longlong,
    classes: cython.const[cython.uchar][::1],
    fields: cython.const[cython.longlong][::1],
    hashes: cython.const[cython.longlong][::1],
    names: cython.const[cython.uchar][::1],
    state: cython.longlong[::1],
    stack: cython.longlong[::1],
    seen: cython.ulonglong[:, ::1],
    out: cython.uchar[::1],
    fixes: cython.longlong[::1],
) -> cython.int:
    """See `scan_text`."""
    i: cython.longlong = state[S_POSITION]
    o: cython.longlong = state[S_OUT]
    depth: cython.longlong = state[S_DEPTH]
    open_list: cython.longlong = state[S_LIST]
    owner: cython.longlong = stack[depth * K_WIDTH + K_OWNER]
    close: cython.longlong = stack[depth * K_WIDTH + K_CLOSE]
    limit: cython.longlong = out.shape[0] - ROOM
    most_fixes: cython.longlong = fixes.shape[0] // X_WIDTH
    words: cython.longlong = seen.shape[1]
    error_at: cython.longlong = -1
    one: cython.ulonglong = 1
    code: cython.int = DONE
    mark_i: cython.longlong = i
    mark_o: cython.longlong = o
    field: cython.longlong
    name_at: cython.longlong
    name_end: cython.longlong
    value_at: cython.longlong
    result: cython.longlong
    at: cython.longlong
    slot: cython.longlong
    kind: cython.longlong
    child: cython.longlong
    first: cython.longlong
    enum: cython.longlong
    number: cython.longlong
    missing: cython.longlong = -0x4000000000000000  # no field and no enum has this number
    digits: cython.longlong
    length: cython.longlong
    fix: cython.longlong
    k: cython.longlong
    magnitude: cython.ulonglong
    amount: cython.double
    c: cython.int
    byte: cython.int
    truth: cython.int
    value: cython.bint
    colon: cython.bint
    opening: cython.bint
    listed: cython.bint
    given: cython.bint
    negative: cython.bint
    while True:
        # What is read from here on is read again after a stop for room.
        mark_i, mark_o = i, o
        if o > limit or state[S_FIXES] >= most_fixes:
            code = NEED_ROOM if o > limit else NEED_FIXES
            break
        if i < end and text[i] == 32:
            i += 1
        if _is_blank(text, i, end, classes):
            i = skip_blanks(text, i, end, classes)
        field, value = open_list, True
        name_at = i
        if open_list == NO_LIST:
            if i >= end:
                if depth > 0 or close < 256:
                    code, error_at = NOT_ENDED, i
                break
            c = text[i]
            if c == close:
                # The message ends here.
                i += 1
                if depth == 0:
                    break
                if owner != SKIPPED:
                    o = close_length(out, stack[depth * K_WIDTH + K_AT], o, fixes, state[S_FIXES])
                open_list = stack[depth * K_WIDTH + K_LIST]
                depth -= 1
                owner = stack[depth * K_WIDTH + K_OWNER]
                close = stack[depth * K_WIDTH + K_CLOSE]
                value = False
            else:
                # A field's name.
                field = SKIPPED_LIST
                if classes[c] & IDENTIFIER_START:
                    i = identifier_end(text, i + 1, end, classes)
                    if owner != SKIPPED:
                        result = look_up(text, name_at, i, owner, hashes, names, missing)
                        if result != missing:
                            field = result
                        elif i - name_at == 3 and _is_marker(text, name_at, end):
                            # A mark that debug strings are no stable format; not a field.
                            i = identifier_end(text, name_at + 8, end, classes)
                            continue
                elif classes[c] & DIGIT:
                    i = identifier_end(text, i, end, classes)
                elif c == 91:
                    # An extension, or the type in an Any: what it is cannot be known.
                    while i < end and text[i] != 93:
                        byte = text[i]
                        if byte < 32 and not classes[byte] & BLANK:
                            break
                        if byte == 34 or byte == 35 or byte == 60 or byte == 123 or byte == 125:
                            break
                        i += 1
                    if i >= end or text[i] != 93:
                        code, error_at = NO_NAME, name_at
                        break
                    i += 1
                else:
                    code, error_at = NO_NAME, i
                    if c == 125 or c == 62:  # } >
                        code = WRONG_END
                    break
                name_end = i
                if _is_blank(text, i, end, classes):
                    i = skip_blanks(text, i, end, classes)
                colon = i < end and text[i] == 58
                if colon:
                    i += 1
                    if i < end and text[i] == 32:
                        i += 1
                    if _is_blank(text, i, end, classes):
                        i = skip_blanks(text, i, end, classes)
                opening = i < end and (text[i] == 123 or text[i] == 60)
                listed = i < end and text[i] == 91
                if field == SKIPPED_LIST:
                    if owner != SKIPPED:
                        if state[S_UNKNOWN] == 0:
                            state[S_UNKNOWN_AT] = name_at
                            state[S_UNKNOWN_LENGTH] = name_end - name_at
                        state[S_UNKNOWN] += 1
                    if not colon and not opening and not listed:
                        code, error_at = NO_COLON, i
                        break
                else:
                    at = field * F_WIDTH
                    if not colon and fields[at + F_KIND] != MESSAGE:
                        code, error_at = NO_COLON, i
                        break
                    slot = fields[at + F_SLOT]
                    if slot >= 0 and (seen[depth, slot >> 6] >> (slot & 63)) & 1:
                        code, error_at = TWICE, name_at
                        break
                if listed and _is_redacted(text, i, end):
                    state[S_REDACTED] += 1
                    i += 10
                    value = False
                elif listed:
                    if field >= 0 and not fields[field * F_WIDTH + F_REPEATED]:
                        code, error_at = NOT_REPEATED, i
                        break
                    i = skip_blanks(text, i + 1, end, classes)
                    if i < end and text[i] == 93:
                        i += 1
                        value = False
                    else:
                        open_list = field
                        continue
        elif i < end and text[i] == 91 and _is_redacted(text, i, end):
            state[S_REDACTED] += 1
            i += 10
            value = False

        if value:
            kind = fields[field * F_WIDTH + F_KIND] if field >= 0 else STRING
            if i < end and (text[i] == 123 or text[i] == 60):
                if kind == MESSAGE or field < 0:
                    # A message begins.
                    if depth + 1 >= MAX_DEPTH:
                        code, error_at = TOO_DEEP, i
                        break
                    child = SKIPPED
                    if field >= 0:
                        at = field * F_WIDTH
                        child = fields[at + F_CHILD]
                        slot = fields[at + F_SLOT]
                        if slot >= 0:
                            seen[depth, slot >> 6] |= one << (slot & 63)
                        put_word64(out, o, fields[at + F_TAG])
                        o += fields[at + F_TAG_BYTES] + 1
                    close = 125 if text[i] == 123 else 62
                    owner = child
                    i += 1
                    depth += 1
                    stack[depth * K_WIDTH + K_OWNER] = owner
                    stack[depth * K_WIDTH + K_CLOSE] = close
                    stack[depth * K_WIDTH + K_AT] = o - 1
                    stack[depth * K_WIDTH + K_LIST] = open_list
                    open_list = NO_LIST
                    for k in range(words):
                        seen[depth, k] = 0
                    continue
            elif kind == MESSAGE:
                code, error_at = NO_OPENING, i
                break
            if field < 0:
                code, i = _skip_value(text, i, end, classes)
                if code != DONE:
                    error_at = i
                    break
            else:
                at = field * F_WIDTH
                put_word64(out, o, fields[at + F_TAG])
                o += fields[at + F_TAG_BYTES]
                given = True  # whether the value differs from an absent one
                if kind == STRING:
                    first = o
                    code, i, o = _copy_string(text, i, end, classes, out, o + 1)
                    if code == NEED_ROOM:
                        break
                    given = o > first + 1
                    o = close_length(out, first, o, fixes, 0)
                elif kind == ENUM and i < end and classes[text[i]] & IDENTIFIER_START:
                    value_at = i
                    i = identifier_end(text, i, end, classes)
                    enum = fields[at + F_CHILD]
                    number = look_up(text, value_at, i, enum, hashes, names, missing)
                    if i < end and (text[i] == 43 or text[i] == 45):
                        code, i = NO_ENUM, value_at
                    elif number == missing:
                        # A newer value. In a list it keeps its place, as zero.
                        if state[S_UNKNOWN] == 0:
                            state[S_UNKNOWN_AT] = value_at
                            state[S_UNKNOWN_LENGTH] = i - value_at
                        state[S_UNKNOWN] += 1
                        if fields[at + F_REPEATED]:
                            o = put_varint(out, o, 0)
                        else:
                            o, given = mark_o, False
                    else:
                        given = number != 0
                        o = put_varint(out, o, low64(number))
                elif kind == BOOL:
                    code, i, truth = _read_bool(text, i, end, classes)
                    given = truth != 0
                    o = put_varint(out, o, truth)
                elif kind == FLOAT or kind == DOUBLE:
                    code, i, amount, negative, digits, length = _read_float(text, i, end, classes)
                    given = amount != 0.0 or negative
                    fix, value_at = state[S_FIXES] * X_WIDTH, o
                    o = _put_float(out, o, kind, amount, negative)
                    if length > 0:
                        fixes[fix + X_OUT] = value_at
                        fixes[fix + X_START] = digits
                        fixes[fix + X_LENGTH] = length
                        fixes[fix + X_SIZE] = 8 if kind == DOUBLE else 4
                        fixes[fix + X_NEGATIVE] = 1 if negative else 0
                        state[S_FIXES] += 1
                else:
                    value_at = i
                    code, i, magnitude, negative = _read_integer(text, i, end, classes)
                    if code == DONE and not _in_range(kind, magnitude, negative):
                        code, i = OUT_OF_RANGE, value_at
                    elif code == DONE and kind == ENUM:
                        number = signed64(low64(0 - magnitude) if negative else magnitude)
                        if fields[at + F_CLOSED] and not _is_value(
                            fields[at + F_CHILD], number, hashes
                        ):
                            code, i = NO_ENUM, value_at
                    given = magnitude != 0
                    o = _put_integer(out, o, kind, magnitude, negative)
                if code != DONE:
                    error_at = i
                    break
                slot = fields[at + F_SLOT]
                if slot >= 0:
                    if given or not fields[at + F_IMPLICIT]:
                        seen[depth, slot >> 6] |= one << (slot & 63)
                    else:
                        o = mark_o

        # Behind a value.
        if i < end and text[i] == 32:
            i += 1
        if _is_blank(text, i, end, classes):
            i = skip_blanks(text, i, end, classes)
        if open_list != NO_LIST:
            if i < end and text[i] == 44:
                i += 1
                continue
            if i >= end or text[i] != 93:
                code, error_at = NO_SEPARATOR, i
                break
            i = skip_blanks(text, i + 1, end, classes)
            open_list = NO_LIST
        if i < end and (text[i] == 44 or text[i] == 59):
            i += 1

    if code == NEED_ROOM or code == NEED_FIXES:
        i, o = mark_i, mark_o
    state[S_POSITION], state[S_OUT], state[S_DEPTH], state[S_LIST] = i, o, depth, open_list
    state[S_ERROR_AT] = error_at
    return code


def scan_text(
    text: cython.const[cython.uchar][::1],
    end: cython.longlong,
    classes: cython.const[cython.uchar][::1],
    fields: cython.const[cython.longlong][::1],
    hashes: cython.const[cython.longlong][::1],
    names: cython.const[cython.uchar][::1],
    state: cython.longlong[::1],
    stack: cython.longlong[::1],
    seen: cython.ulonglong[:, ::1],
    out: cython.uchar[::1],
    fixes: cython.longlong[::1],
) -> int:
    """Scan from ``state`` on until the root ends; the reason why it stopped.

    ``seen`` holds presence bits, one row per open message. ``fixes`` takes the numbers whose
    digits need Python's conversion; S_FIXES counts them, and the caller applies them.
    """
    code: cython.int
    with cython.nogil:
        code = scan_message(
            text, end, classes, fields, hashes, names, state, stack, seen, out, fixes
        )
    return code
