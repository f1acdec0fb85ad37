"""Values of fields in the wire format: what fits, and its bytes."""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.wire.text_layout import (
    DIGIT,
    DONE,
    DOUBLE,
    ENUM,
    FIXED32,
    FIXED64,
    H_OWNER,
    H_VALUE,
    H_WIDTH,
    IDENTIFIER,
    INT32,
    NO_BOOL,
    SFIXED32,
    SFIXED64,
    SINT32,
    SINT64,
    UINT32,
    UINT64,
    X_OUT,
    X_WIDTH,
)
from peakline.wire.text_tokens import (
    read_integer,
)

__all__ = [
    "close_length",
    "in_range",
    "is_value",
    "put_float",
    "put_integer",
    "put_little",
    "put_varint",
    "read_bool",
    "starts_with",
]

U = np.uint64  # for indices: an unsigned one needs no check for counting from the end

_TRUE = tuple(b"true")
_FALSE = tuple(b"false")


@nb.njit(nogil=True, forceinline=True)
def put_varint(out, o, value):  # type: ignore[no-untyped-def]
    """Write ``value`` (uint64) at ``o``; where it ends."""
    while value >= U(0x80):
        out[U(o)] = np.uint8(value & U(0x7F)) | np.uint8(0x80)
        value >>= U(7)
        o += 1
    out[U(o)] = np.uint8(value)
    return o + 1


@nb.njit(nogil=True, forceinline=True)
def put_little(out, o, value, size):  # type: ignore[no-untyped-def]
    """Write the low ``size`` bytes of ``value`` (uint64) at ``o``; where they end."""
    for k in range(size):
        out[U(o + k)] = np.uint8((value >> U(8 * k)) & U(0xFF))
    return o + size


@nb.njit(nogil=True, forceinline=True)
def close_length(out, at, o, fixes, fixed):  # type: ignore[no-untyped-def]
    """Write the length of what lies from ``at + 1`` to ``o`` at ``at``; where it ends now."""
    length = o - at - 1
    if length < 0x80:
        out[U(at)] = np.uint8(length)
        return o
    more, rest = np.int64(0), length >> 7
    while rest:
        more += 1
        rest >>= 7
    # From the end on, eight bytes at a time: all are read before the first is written.
    k = o
    while k - 8 > at:
        k -= 8
        eight = U(0)
        for n in range(8):
            eight |= U(out[U(k + n)]) << U(8 * n)
        put_little(out, k + more, eight, 8)
    while k - 1 > at:
        k -= 1
        out[U(k + more)] = out[U(k)]
    put_varint(out, at, U(length))
    while fixed > 0 and fixes[U((fixed - 1) * X_WIDTH + X_OUT)] > at:
        fixed -= 1
        fixes[U(fixed * X_WIDTH + X_OUT)] += more
    return o + more


@nb.njit(nogil=True, forceinline=True)
def starts_with(text, i, end, word):  # type: ignore[no-untyped-def]
    """Whether the bytes of ``word`` (a tuple) stand at ``i``."""
    if end - i < len(word):
        return False
    for k in range(len(word)):  # noqa: SIM110 (all() would make a generator)
        if text[U(i + k)] != word[k]:
            return False
    return True


@nb.njit(nogil=True)
def read_bool(text, i, end, classes):  # type: ignore[no-untyped-def]
    """Code, position behind it, and 0 or 1."""
    if i < end and classes[text[U(i)]] & DIGIT:
        code, stop, value, _ = read_integer(text, i, end, classes)
        if code == DONE and value <= U(1):
            return DONE, stop, value
        return NO_BOOL, i, U(0)
    stop = i
    while stop < end and classes[text[U(stop)]] & IDENTIFIER:
        stop += 1
    length = stop - i
    if length == 1 and (text[U(i)] == 116 or text[U(i)] == 102):
        return DONE, stop, U(1 if text[U(i)] == 116 else 0)
    # The first letter may be a capital one.
    if length == 4 and text[U(i)] | 32 == 116 and starts_with(text, i + 1, stop, _TRUE[1:]):
        return DONE, stop, U(1)
    if length == 5 and text[U(i)] | 32 == 102 and starts_with(text, i + 1, stop, _FALSE[1:]):
        return DONE, stop, U(0)
    return NO_BOOL, i, U(0)


@nb.njit(nogil=True)
def is_value(owner, number, hashes):  # type: ignore[no-untyped-def]
    """Whether the enum ``owner`` has a value of this number."""
    for slot in range(0, hashes.size, H_WIDTH):
        if hashes[U(slot + H_OWNER)] == owner and hashes[U(slot + H_VALUE)] == number:
            return True
    return False


@nb.njit(nogil=True, forceinline=True)
def in_range(kind, value, negative):  # type: ignore[no-untyped-def]
    """Whether a magnitude and sign fit an integer field."""
    if kind == INT32 or kind == SINT32 or kind == SFIXED32 or kind == ENUM:
        return value <= U(0x80000000 if negative else 0x7FFFFFFF)
    if kind == UINT32 or kind == FIXED32:
        return value <= U(0 if negative else 0xFFFFFFFF)
    if kind == UINT64 or kind == FIXED64:
        return not negative or value == U(0)
    return value <= (U(1 << 63) if negative else U((1 << 63) - 1))


@nb.njit(nogil=True, forceinline=True)
def put_integer(out, o, kind, value, negative):  # type: ignore[no-untyped-def]
    """Write a number that fits its field."""
    bits = U(0) - value if negative else value
    if kind == SINT32 or kind == SINT64:
        return put_varint(out, o, (value << U(1)) - U(1) if negative else value << U(1))
    if kind == FIXED32 or kind == SFIXED32:
        return put_little(out, o, bits, 4)
    if kind == FIXED64 or kind == SFIXED64:
        return put_little(out, o, bits, 8)
    return put_varint(out, o, bits)


@nb.njit(nogil=True)
def put_float(out, o, kind, value, negative, fixes, at):  # type: ignore[no-untyped-def]
    """Write the bits of a number in the size of its kind; ``fixes[at]`` is used to get them."""
    if negative:
        value = -value
    if kind == DOUBLE:
        fixes.view(np.float64)[U(at)] = value
        return put_little(out, o, U(fixes[U(at)]), 8)
    fixes.view(np.float32)[U(2 * at)] = np.float32(value)
    return put_little(out, o, U(fixes.view(np.uint32)[U(2 * at)]), 4)
