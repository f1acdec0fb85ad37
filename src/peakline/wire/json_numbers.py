"""Kernels that turn the text of JSON numbers into machine numbers without rounding on the way."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = [
    "TIME_ABSENT",
    "TIME_BAD",
    "TIME_OK",
    "TIME_RANGE",
    "floats",
    "integers",
    "microseconds",
]

U = np.uint64  # also for indices: an unsigned one needs no check for counting from the end

TIME_ABSENT, TIME_OK, TIME_BAD, TIME_RANGE = range(4)
"""No such member; a time; not a number; a number beyond 2.3e18."""

_DECIMALS = 6
_MILLION = 10**6
_WEIGHTS = np.array([10**k for k in range(5, -1, -1)])
_MOST_TENTH = 2**61 // 10
_MOST_EXPONENT = 1 << 30


@nb.njit(forceinline=True)
def _trimmed(buf, at, stop):  # type: ignore[no-untyped-def]
    """Without blanks at either end: a quoted number may have some."""
    while at < stop and buf[U(at)] <= 32:
        at += 1
    while stop > at and buf[U(stop - 1)] <= 32:
        stop -= 1
    return at, stop


@nb.njit(cache=True, nogil=True)
def _parts(buf, at, stop):  # type: ignore[no-untyped-def]
    """The digits' end, how many stand before the point, and the exponent; -1: not a number."""
    whole, digits = np.int64(0), np.int64(0)
    seen_point = False
    while at < stop:
        byte = buf[U(at)]
        if 48 <= byte <= 57:
            digits += 1
            if not seen_point:
                whole += 1
        elif byte == 46 and not seen_point:
            seen_point = True
        else:
            break
        at += 1
    end = at
    if digits == 0:
        return np.int64(-1), whole, np.int64(0)
    exponent = np.int64(0)
    if at < stop:
        if buf[U(at)] | 32 != 101:  # e
            return np.int64(-1), whole, exponent
        at += 1
        minus = False
        if at < stop and (buf[U(at)] == 45 or buf[U(at)] == 43):
            minus = buf[U(at)] == 45
            at += 1
        if at >= stop:
            return np.int64(-1), whole, exponent
        while at < stop:
            byte = np.int64(buf[U(at)])
            if byte < 48 or byte > 57:
                return np.int64(-1), whole, exponent
            exponent = min(exponent * 10 + byte - 48, np.int64(_MOST_EXPONENT))
            at += 1
        if minus:
            exponent = -exponent
    return end, whole, exponent


@nb.njit(cache=True, nogil=True)
def microseconds(buf, start, stop):  # type: ignore[no-untyped-def]
    """A decimal number as its floor, millionths (0 to 999999), and a TIME state.

    Exact to six decimals; further ones are rounded, halves away from zero.
    """
    at, stop = _trimmed(buf, start, stop)
    minus = False
    if at < stop and (buf[U(at)] == 45 or buf[U(at)] == 43):
        minus = buf[U(at)] == 45
        at += 1
    end, before, exponent = _parts(buf, at, stop)
    if end < 0:
        return np.int64(0), np.int64(0), TIME_BAD
    left = before + exponent  # digits that are still to come before the point
    whole, millionths = np.int64(0), np.int64(0)
    while at < end and left >= -_DECIMALS:
        digit = np.int64(buf[U(at)]) - 48
        at += 1
        if digit < 0:  # the point
            continue
        if left > 0:
            if whole > _MOST_TENTH:
                return np.int64(0), np.int64(0), TIME_RANGE
            whole = whole * 10 + digit
        elif left > -_DECIMALS:
            millionths += digit * _WEIGHTS[-left]
        elif digit >= 5:
            millionths += 1
        left -= 1
    if whole > 0:
        while left > 0:
            if whole > _MOST_TENTH:
                return np.int64(0), np.int64(0), TIME_RANGE
            whole *= 10
            left -= 1
    if millionths == _MILLION:
        whole, millionths = whole + 1, np.int64(0)
    if minus:
        whole = -whole
        if millionths > 0:
            whole, millionths = whole - 1, _MILLION - millionths
    return whole, millionths, TIME_OK


@nb.njit(cache=True, nogil=True)
def integers(buf, starts, lengths, has, out, good):  # type: ignore[no-untyped-def]
    """Integers (also beyond int64, up to uint64, then wrapped); ``good`` where one was there."""
    for row in range(starts.size):
        out[U(row)] = 0
        good[U(row)] = False
        if not has[U(row)]:
            continue
        at, stop = _trimmed(
            buf, np.int64(starts[U(row)]), np.int64(starts[U(row)]) + lengths[U(row)]
        )
        minus = at < stop and buf[U(at)] == 45
        at += minus
        value, fine = U(0), at < stop
        while at < stop and fine:
            digit = U(buf[U(at)]) - U(48)
            fine = digit <= U(9) and (
                value < U(1844674407370955161)
                or (value == U(1844674407370955161) and digit <= U(5))
            )
            value = value * U(10) + digit
            at += 1
        if fine and not (minus and value > U(1 << 63)):
            out[U(row)] = -np.int64(value) if minus else np.int64(value)
            good[U(row)] = True


_POWERS = np.array([10.0**k for k in range(23)])


@nb.njit(cache=True, nogil=True)
def floats(buf, starts, lengths, out, state):  # type: ignore[no-untyped-def]
    """Doubles: TIME_OK where the value is exact to the last bit, else TIME_BAD (a harder case).

    A number of at most 2^53 scaled by at most 10^22 needs one correctly rounded operation.
    """
    for row in range(starts.size):
        at, stop = _trimmed(
            buf, np.int64(starts[U(row)]), np.int64(starts[U(row)]) + lengths[U(row)]
        )
        out[U(row)] = 0.0
        state[U(row)] = TIME_BAD
        minus = at < stop and buf[U(at)] == 45
        at += minus
        end, whole, exponent = _parts(buf, at, stop)
        if end < 0 or end - at > 18:
            continue
        value, power = U(0), exponent + whole
        while at < end:
            if buf[U(at)] != 46:
                value = value * U(10) + U(buf[U(at)]) - U(48)
                power -= 1
            at += 1
        if value > U(1 << 53) or power > 22 or power < -22:
            continue
        number = float(value)
        number = number * _POWERS[power] if power >= 0 else number / _POWERS[-power]
        out[U(row)] = -number if minus else number
        state[U(row)] = TIME_OK
