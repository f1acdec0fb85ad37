"""The text of JSON numbers becomes machine numbers, without rounding on the way."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64, signed64
    from peakline.kernels.json_layout import TIME_BAD, TIME_OK, TIME_RANGE

__all__ = ["floats", "integers"]

Places = cython.fused_type(cython.int, cython.longlong)
"""Starts and lengths of texts."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _trimmed(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, stop: cython.longlong
) -> tuple[cython.longlong, cython.longlong]:
    """Without blanks at either end: a quoted number may have some."""
    while at < stop and buf[at] <= 32:
        at += 1
    while stop > at and buf[stop - 1] <= 32:
        stop -= 1
    return at, stop


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _parts(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, stop: cython.longlong
) -> tuple[cython.longlong, cython.longlong, cython.longlong]:
    """The digits' end, how many stand before the point, and the exponent; -1: not a number."""
    whole: cython.longlong = 0
    digits: cython.longlong = 0
    exponent: cython.longlong = 0
    end: cython.longlong
    byte: cython.int
    seen_point: cython.bint = False
    minus: cython.bint = False
    while at < stop:
        byte = buf[at]
        if byte >= 48 and byte <= 57:
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
        return -1, whole, 0
    if at < stop:
        if buf[at] | 32 != 101:  # e
            return -1, whole, exponent
        at += 1
        if at < stop and (buf[at] == 45 or buf[at] == 43):
            minus = buf[at] == 45
            at += 1
        if at >= stop:
            return -1, whole, exponent
        while at < stop:
            byte = buf[at]
            if byte < 48 or byte > 57:
                return -1, whole, exponent
            exponent = exponent * 10 + byte - 48
            if exponent >> 30 != 0:
                exponent = 1 << 30
            at += 1
        if minus:
            exponent = -exponent
    return end, whole, exponent


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _microseconds(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, stop: cython.longlong
) -> tuple[cython.longlong, cython.longlong, cython.int]:
    """A decimal number as its floor, millionths (0 to 999999), and a TIME state.

    Exact to six decimals; further ones are rounded, halves away from zero.
    """
    most: cython.longlong = 230584300921369395  # a tenth of 2^61
    end: cython.longlong
    left: cython.longlong
    exponent: cython.longlong
    whole: cython.longlong = 0
    millionths: cython.longlong = 0
    weight: cython.longlong
    k: cython.longlong
    digit: cython.int
    minus: cython.bint = False
    at, stop = _trimmed(buf, at, stop)
    if at < stop and (buf[at] == 45 or buf[at] == 43):
        minus = buf[at] == 45
        at += 1
    end, left, exponent = _parts(buf, at, stop)
    if end < 0:
        return 0, 0, TIME_BAD
    left += exponent  # digits that are still to come before the point
    while at < end and left >= -6:
        digit = buf[at]
        digit -= 48
        at += 1
        if digit < 0:  # the point
            continue
        if left > 0:
            if whole > most:
                return 0, 0, TIME_RANGE
            whole = whole * 10 + digit
        elif left > -6:
            weight = 100_000
            for k in range(-left):
                weight //= 10
            millionths += digit * weight
        elif digit >= 5:
            millionths += 1
        left -= 1
    if whole > 0:
        while left > 0:
            if whole > most:
                return 0, 0, TIME_RANGE
            whole *= 10
            left -= 1
    if millionths == 1_000_000:
        whole, millionths = whole + 1, 0
    if minus:
        whole = -whole
        if millionths > 0:
            whole, millionths = whole - 1, 1_000_000 - millionths
    return whole, millionths, TIME_OK


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def note_time(
    buf: cython.const[cython.uchar][::1],
    start: cython.longlong,
    stop: cython.longlong,
    times: cython.longlong[:, :, ::1],
    states: cython.uchar[:, ::1],
    row: cython.longlong,
    time: cython.longlong,
) -> cython.void:
    """Write a decimal number as whole microseconds and picoseconds beyond them, and its state."""
    whole: cython.longlong
    millionths: cython.longlong
    state: cython.int
    whole, millionths, state = _microseconds(buf, start, stop)
    times[row, time, 0], times[row, time, 1] = whole, millionths
    states[row, time] = state


def integers(
    buf: cython.const[cython.uchar][::1],
    starts: cython.const[Places][:],
    lengths: cython.const[Places][:],
    has: cython.const[cython.uchar][::1],
    out: cython.longlong[::1],
    good: cython.uchar[::1],
) -> None:
    """Integers (also beyond int64, up to uint64, then wrapped); ``good`` where one was there."""
    row: cython.longlong
    at: cython.longlong
    stop: cython.longlong
    digit: cython.int
    value: cython.ulonglong
    most: cython.ulonglong = 1844674407370955161
    one: cython.ulonglong = 1
    minus: cython.bint
    fine: cython.bint
    with cython.nogil:
        for row in range(starts.shape[0]):
            out[row] = 0
            good[row] = False
            if not has[row]:
                continue
            at = starts[row]
            at, stop = _trimmed(buf, at, at + lengths[row])
            minus = at < stop and buf[at] == 45
            if minus:
                at += 1
            value, fine = 0, at < stop
            while at < stop and fine:
                digit = buf[at]
                digit -= 48
                fine = (
                    digit >= 0 and digit <= 9 and (value < most or (value == most and digit <= 5))
                )
                if fine:
                    value = value * 10 + digit
                at += 1
            if fine and not (minus and value > one << 63):
                out[row] = signed64(low64(0 - value)) if minus else signed64(value)
                good[row] = True


def floats(
    buf: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][:],
    lengths: cython.const[cython.longlong][:],
    out: cython.double[::1],
    state: cython.uchar[::1],
) -> None:
    """Doubles: TIME_OK where the value is exact to the last bit, else TIME_BAD (a harder case).

    A number of at most 2^53 scaled by at most 10^22 needs one correctly rounded operation.
    """
    row: cython.longlong
    at: cython.longlong
    stop: cython.longlong
    end: cython.longlong
    power: cython.longlong
    exponent: cython.longlong
    k: cython.longlong
    value: cython.longlong
    number: cython.double
    scale: cython.double
    minus: cython.bint
    with cython.nogil:
        for row in range(starts.shape[0]):
            at, stop = _trimmed(buf, starts[row], starts[row] + lengths[row])
            out[row] = 0.0
            state[row] = TIME_BAD
            minus = at < stop and buf[at] == 45
            if minus:
                at += 1
            end, power, exponent = _parts(buf, at, stop)
            if end < 0 or end - at > 18:
                continue
            value = 0
            power += exponent
            while at < end:
                if buf[at] != 46:
                    value = value * 10 + buf[at] - 48
                    power -= 1
                at += 1
            if (value - 1) >> 53 > 0 or power > 22 or power < -22:
                continue
            scale = 1.0  # powers of ten up to 10^22 are exact
            for k in range(power if power >= 0 else -power):
                scale *= 10.0
            number = value
            number = number * scale if power >= 0 else number / scale
            out[row] = -number if minus else number
            state[row] = TIME_OK
