"""Lines of text around numbers, written into one buffer."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64, unsigned64
    from peakline.kernels.viewer_layout import (
        MICROSECONDS,
        MICROSECONDS_UNLESS_ZERO,
        NUMBER,
        SIGNED_UNLESS_ZERO,
        TEXT,
        UNSIGNED_UNLESS_ZERO,
    )

__all__ = ["measure_lines", "write_lines"]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _size_of(value: cython.ulonglong) -> cython.longlong:
    """How many digits a number has."""
    digits: cython.longlong = 1
    while value >= 10_000:
        value //= 10_000
        digits += 4
    if value >= 1000:
        return digits + 3
    if value >= 100:
        return digits + 2
    return digits + 1 if value >= 10 else digits


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    text: cython.const[cython.uchar][::1],
    first: cython.longlong,
    end: cython.longlong,
    out: cython.uchar[::1],
    at: cython.longlong,
) -> cython.longlong:
    """Copy a piece to ``out[at]``; returns the place behind it."""
    k: cython.longlong
    for k in range(end - first):
        out[at + k] = text[first + k]
    return at + end - first


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _write_number(
    value: cython.ulonglong, out: cython.uchar[::1], at: cython.longlong
) -> cython.longlong:
    """Write the digits of a number; returns the place behind them."""
    end: cython.longlong = at + _size_of(value)
    behind: cython.longlong = end
    rest: cython.ulonglong
    pair: cython.int
    while value >= 100:
        rest = value // 100
        pair = value - rest * 100
        out[behind - 1] = 48 + pair % 10
        out[behind - 2] = 48 + pair // 10
        behind -= 2
        value = rest
    if value >= 10:
        out[behind - 1] = 48 + value % 10
        value //= 10
        behind -= 1
    out[behind - 1] = 48 + value
    return end


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _write_microseconds(
    value: cython.ulonglong, out: cython.uchar[::1], at: cython.longlong
) -> cython.longlong:
    """Write picoseconds as microseconds; returns the place behind them."""
    whole: cython.ulonglong = value // 1_000_000
    rest: cython.ulonglong = value - whole * 1_000_000
    place: cython.longlong = 6
    at = _write_number(whole, out, at)
    out[at] = 46
    while place > 0:
        out[at + place] = 48 + rest % 10
        rest //= 10
        place -= 1
    return at + 7


def measure_lines(
    values: cython.const[cython.longlong][:, ::1],
    gaps: cython.const[cython.longlong][:, ::1],
    bounds: cython.const[cython.longlong][::1],
    lengths: cython.longlong[::1],
) -> None:
    """Add up the bytes of each line; see `write_lines`."""
    gap: cython.longlong
    row: cython.longlong
    kind: cython.longlong
    first: cython.longlong
    around: cython.longlong
    value: cython.longlong
    at: cython.longlong
    size: cython.ulonglong
    with cython.nogil:
        for gap in range(gaps.shape[0]):
            kind, first = gaps[gap, 0], gaps[gap, 1]
            around = bounds[first + 2] - bounds[first]
            for row in range(lengths.shape[0]):
                value = values[gap, row]
                if kind == TEXT:
                    at = first + 2 + value
                    lengths[row] += around + bounds[at + 1] - bounds[at]
                elif kind == MICROSECONDS or kind == MICROSECONDS_UNLESS_ZERO:
                    if value != 0 or kind == MICROSECONDS:
                        size = unsigned64(value)
                        if value < 0:
                            size = low64(0 - size)
                            lengths[row] += 1
                        lengths[row] += around + _size_of(size // 1_000_000) + 7
                elif value < 0 and kind != UNSIGNED_UNLESS_ZERO:
                    lengths[row] += around + 1 + _size_of(low64(0 - unsigned64(value)))
                elif value != 0 or kind == NUMBER:
                    lengths[row] += around + _size_of(unsigned64(value))


def write_lines(
    values: cython.const[cython.longlong][:, ::1],
    gaps: cython.const[cython.longlong][:, ::1],
    text: cython.const[cython.uchar][::1],
    bounds: cython.const[cython.longlong][::1],
    starts: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
) -> None:
    """Write line ``r`` at ``out[starts[r]]``: gap by gap what is before it, its value, and what
    is after it.

    Piece ``p`` is ``text[bounds[p] : bounds[p + 1]]``. A gap is its kind and the first of its
    pieces: before, after, and the texts to choose from. ``values`` are by gap and row.
    """
    gap: cython.longlong
    row: cython.longlong
    kind: cython.longlong
    first: cython.longlong
    value: cython.longlong
    at: cython.longlong
    chosen: cython.longlong
    size: cython.ulonglong
    with cython.nogil:
        for row in range(starts.shape[0]):
            at = starts[row]
            for gap in range(gaps.shape[0]):
                kind, first, value = gaps[gap, 0], gaps[gap, 1], values[gap, row]
                if value == 0 and kind >= SIGNED_UNLESS_ZERO:
                    continue
                at = _copy(text, bounds[first], bounds[first + 1], out, at)
                if kind == TEXT:
                    chosen = first + 2 + value
                    at = _copy(text, bounds[chosen], bounds[chosen + 1], out, at)
                else:
                    size = unsigned64(value)
                    if value < 0 and kind != UNSIGNED_UNLESS_ZERO:
                        out[at] = 45
                        at += 1
                        size = low64(0 - size)
                    if kind == MICROSECONDS or kind == MICROSECONDS_UNLESS_ZERO:
                        at = _write_microseconds(size, out, at)
                    else:
                        at = _write_number(size, out, at)
                at = _copy(text, bounds[first + 1], bounds[first + 2], out, at)
