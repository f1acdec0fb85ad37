"""Reading the tokens of the protobuf text format: blanks, names and numbers.

Every function takes the text and its end and never reads behind it. Those that can fail answer
with a code of `peakline.wire.text_layout` and where it happened.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.wire.text_layout import (
    BLANK,
    COMMENT,
    DIGIT,
    DONE,
    H_LENGTH,
    H_OWNER,
    H_START,
    H_VALUE,
    H_WIDTH,
    IDENTIFIER,
    IDENTIFIER_START,
    NO_INTEGER,
    NO_NUMBER,
    NO_VALUE,
    NUMBER,
    OPEN_STRING,
    OUT_OF_RANGE,
    name_hash,
)

__all__ = [
    "NOT_FOUND",
    "eight_bytes",
    "hex_digit",
    "identifier_end",
    "is_blank",
    "look_up",
    "read_float",
    "read_integer",
    "skip_blanks",
    "skip_value",
]

U = np.uint64  # for indices: an unsigned one needs no check for counting from the end

NOT_FOUND = -(1 << 62)

_hash = nb.njit(name_hash)
_TENS = 10.0 ** np.arange(23)  # exact, as doubles are up to 10**22
_MOST = U(0xFFFFFFFFFFFFFFFF)
_EXACT = U(1 << 53)
_SPACES = U(0x2020202020202020)


@nb.njit(nogil=True, forceinline=True)
def eight_bytes(text, i):  # type: ignore[no-untyped-def]
    """The eight bytes at ``i`` as one number, the first one lowest: compiled to one load."""
    value = U(0)
    for k in range(8):
        value |= U(text[U(i + k)]) << U(8 * k)
    return value


@nb.njit(nogil=True, forceinline=True)
def is_blank(text, i, end, classes):  # type: ignore[no-untyped-def]
    """Whether there is something for `skip_blanks` to skip. Mostly there is not."""
    return i < end and classes[text[U(i)]] & (BLANK | COMMENT) != 0


@nb.njit(nogil=True)
def skip_blanks(text, i, end, classes):  # type: ignore[no-untyped-def]
    """The first position that is neither blank nor in a comment."""
    while i < end:
        c = text[U(i)]
        if classes[c] & BLANK:
            i += 1
            while i + 8 <= end and eight_bytes(text, i) == _SPACES:
                i += 8
        elif c == 35:  # #
            while i < end and text[U(i)] != 10:
                i += 1
        else:
            break
    return i


@nb.njit(nogil=True, forceinline=True)
def identifier_end(text, i, end, classes):  # type: ignore[no-untyped-def]
    """Where the letters, digits and underscores from ``i`` on end."""
    while i < end and classes[text[U(i)]] & IDENTIFIER:
        i += 1
    return i


@nb.njit(nogil=True, forceinline=True)
def look_up(text, start, stop, owner, hashes, names):  # type: ignore[no-untyped-def]
    """The value of a name of ``owner`` (not empty), NOT_FOUND if there is none."""
    length = stop - start
    mask = hashes.size // H_WIDTH - 1
    slot = mask & _hash(  # type: ignore[call-arg]
        owner,
        length,
        np.int64(text[U(start)]),
        np.int64(text[U(start + (length >> 1))]),
        np.int64(text[U(stop - 1)]),
    )
    while True:
        at = slot * H_WIDTH
        if hashes[U(at + H_OWNER)] < 0:
            return np.int64(NOT_FOUND)
        if hashes[U(at + H_OWNER)] == owner and hashes[U(at + H_LENGTH)] == length:
            name, same = hashes[U(at + H_START)], True
            k = np.int64(0)
            while same and k + 8 <= length:
                same = eight_bytes(text, start + k) == eight_bytes(names, name + k)
                k += 8
            while same and k < length:
                same = text[U(start + k)] == names[U(name + k)]
                k += 1
            if same:
                return hashes[U(at + H_VALUE)]
        slot = (slot + 1) & mask


@nb.njit(nogil=True, forceinline=True)
def hex_digit(c):  # type: ignore[no-untyped-def]
    """What a hexadecimal digit stands for, -1 for another character."""
    if 48 <= c <= 57:
        return np.int64(c) - 48
    c |= 32
    if 97 <= c <= 102:
        return np.int64(c) - 87
    return np.int64(-1)


@nb.njit(nogil=True, forceinline=True)
def read_integer(text, i, end, classes):  # type: ignore[no-untyped-def]
    """A decimal, octal or hexadecimal integer, perhaps behind a minus sign.

    Returns a code, the position behind it (or of the error), the magnitude and whether it is
    negative.
    """
    start, negative, value = i, False, U(0)
    if i < end and text[U(i)] == 45:
        negative = True
        i = skip_blanks(text, i + 1, end, classes)
    if i >= end or not classes[text[U(i)]] & DIGIT:
        return NO_INTEGER, start, value, negative
    if text[U(i)] == 48 and i + 1 < end and text[U(i + 1)] | 32 == 120:
        i += 2
        first, digits = i, np.int64(0)
        while i < end:
            digit = hex_digit(text[U(i)])
            if digit < 0:
                break
            if value >> U(60):
                return OUT_OF_RANGE, start, value, negative
            value = (value << U(4)) | U(digit)
            digits += 1
            i += 1
        if i == first:
            return NO_INTEGER, start, value, negative
    elif text[U(i)] == 48:
        while i < end and 48 <= text[U(i)] <= 55:
            if value >> U(61):
                return OUT_OF_RANGE, start, value, negative
            value = (value << U(3)) | U(text[U(i)] - 48)
            i += 1
    else:
        safe = i + 19
        while i < end:
            digit = U(text[U(i)]) - U(48)
            if digit > U(9):
                break
            if i >= safe and value > (_MOST - digit) // U(10):
                return OUT_OF_RANGE, start, value, negative
            value = value * U(10) + digit
            i += 1
    if i < end and classes[text[U(i)]] & NUMBER:
        return NO_INTEGER, start, value, negative
    return DONE, i, value, negative


@nb.njit(nogil=True)
def _is_word(text, i, stop, word):  # type: ignore[no-untyped-def]
    """Whether the letters up to ``stop`` are ``word``, perhaps with an ``f`` behind it."""
    length = stop - i
    if length != len(word) and not (length == len(word) + 1 and text[U(stop - 1)] | 32 == 102):
        return False
    for k in range(len(word)):  # noqa: SIM110 (all() would make a generator)
        if text[U(i + k)] | 32 != word[k]:
            return False
    return True


_INF = tuple(b"inf")
_INFINITY = tuple(b"infinity")
_NAN = tuple(b"nan")


@nb.njit(nogil=True)
def read_float(text, i, end, classes):  # type: ignore[no-untyped-def]
    """A floating-point number, or a decimal integer.

    Returns a code, the position behind it (or of the error), the value, whether it is negative,
    and, where the value needs more care than this, which part of the text has the digits (its
    length is 0 otherwise).
    """
    start, negative, zero = i, False, np.int64(0)
    if i < end and text[U(i)] == 45:
        negative = True
        i = skip_blanks(text, i + 1, end, classes)
    failed = (NO_NUMBER, start, 0.0, negative, zero, zero)
    if i >= end:
        return failed
    if classes[text[U(i)]] & IDENTIFIER_START:
        stop = i
        while stop < end and classes[text[U(stop)]] & NUMBER:
            stop += 1
        if _is_word(text, i, stop, _INF) or _is_word(text, i, stop, _INFINITY):
            return DONE, stop, np.inf, negative, zero, zero
        if _is_word(text, i, stop, _NAN):
            return DONE, stop, np.nan, negative, zero, zero
        return failed
    first, mantissa, digits, exponent = i, U(0), 0, np.int64(0)
    inexact = False
    while i < end and classes[text[U(i)]] & DIGIT:
        if mantissa < _EXACT:
            mantissa = mantissa * U(10) + U(text[U(i)] - 48)
        else:
            inexact = True
        digits += 1
        i += 1
    if digits > 1 and text[U(first)] == 48:
        return failed
    if i < end and text[U(i)] == 46:
        i += 1
        while i < end and classes[text[U(i)]] & DIGIT:
            if mantissa < _EXACT:
                mantissa = mantissa * U(10) + U(text[U(i)] - 48)
                exponent -= 1
            else:
                inexact = True
            digits += 1
            i += 1
    if digits == 0:
        return failed
    if i < end and text[U(i)] | 32 == 101:
        i += 1
        minus = i < end and text[U(i)] == 45
        if i < end and (text[U(i)] == 45 or text[U(i)] == 43):
            i += 1
        if i >= end or not classes[text[U(i)]] & DIGIT:
            return failed
        power = np.int64(0)
        while i < end and classes[text[U(i)]] & DIGIT:
            power = min(power * 10 + np.int64(text[U(i)]) - 48, np.int64(99999999))
            i += 1
        exponent += -power if minus else power
    stop = i
    if i < end and text[U(i)] | 32 == 102:
        i += 1
    if i < end and classes[text[U(i)]] & NUMBER:
        return failed
    if mantissa == U(0):
        return DONE, i, 0.0, negative, zero, zero
    # Both factors are exact, so that the one rounding is the right one.
    if not inexact and mantissa <= _EXACT and -22 <= exponent <= 22:
        value = np.float64(mantissa)
        if exponent < 0:
            value /= _TENS[-exponent]
        else:
            value *= _TENS[exponent]
        return DONE, i, value, negative, zero, zero
    return DONE, i, 1.0, negative, first, stop - first


@nb.njit(nogil=True)
def skip_value(text, i, end, classes):  # type: ignore[no-untyped-def]
    """Pass over a string, a number or a name. Returns a code and the position behind it."""
    if i < end and (text[U(i)] == 34 or text[U(i)] == 39):
        while True:
            quote = text[U(i)]
            i += 1
            while True:
                if i >= end or text[U(i)] == 10:
                    return OPEN_STRING, i
                c = text[U(i)]
                i += 1
                if c == quote:
                    break
                if c == 92:
                    if i >= end or text[U(i)] == 10:
                        return OPEN_STRING, i
                    i += 1
            i = skip_blanks(text, i, end, classes)
            if i >= end or (text[U(i)] != 34 and text[U(i)] != 39):
                return DONE, i
    start = i
    if i < end and text[U(i)] == 45:
        i = skip_blanks(text, i + 1, end, classes)
    first = i
    while i < end and classes[text[U(i)]] & NUMBER:
        i += 1
    if i == first:
        return NO_VALUE, start
    return DONE, i
