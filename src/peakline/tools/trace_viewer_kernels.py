"""The compiled parts of the step timeline: its lanes and arrows, and writing lines of text."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

__all__ = [
    "MICROSECONDS",
    "MICROSECONDS_UNLESS_ZERO",
    "NUMBER",
    "SIGNED_UNLESS_ZERO",
    "TEXT",
    "UNSIGNED_UNLESS_ZERO",
    "assign_lanes",
    "follow_inputs",
    "measure_lines",
    "write_lines",
]

U = np.uint64  # also for indices: an unsigned one needs no check for counting from the end

(
    TEXT,
    NUMBER,
    MICROSECONDS,
    SIGNED_UNLESS_ZERO,
    UNSIGNED_UNLESS_ZERO,
    MICROSECONDS_UNLESS_ZERO,
) = range(6)
"""What a gap in a line holds: a text by its number, the digits of a number, or microseconds with
six decimals of a number of picoseconds."""


@nb.njit(cache=True, nogil=True)
def assign_lanes(
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    first_of_device: npt.NDArray[np.int64],
    lane: npt.NDArray[np.int64],
) -> None:  # pragma: no cover - compiled
    """Fill ``lane``: the first whose last execution ended before this one starts, else a new one.

    Per device (rows ``first_of_device[d]`` up to the next) lane 0 is free from time 1 on, as in
    TensorFlow's timeline.
    """
    for device in range(first_of_device.size - 1):
        ends = np.zeros(16, np.int64)
        used = 1
        for row in range(first_of_device[device], first_of_device[device + 1]):
            found = used
            for number in range(used):
                if start[row] > ends[number]:
                    found = number
                    break
            if found == used:
                if used == ends.size:
                    larger = np.zeros(2 * used, np.int64)
                    larger[:used] = ends
                    ends = larger
                used += 1
            ends[found] = end[row]
            lane[row] = found


@nb.njit(cache=True, nogil=True)
def follow_inputs(  # type: ignore[no-untyped-def]
    told, pid, lane, end, first_input, inputs, from_pid, from_lane, last_use, row_of, tensor_of
):
    """Every execution uses its inputs until just before its end; an input that was made on
    another lane is an arrow.

    The inputs of row ``r`` are ``inputs[first_input[told[r]] : first_input[told[r] + 1]]``.
    Raises ``last_use``, fills row and tensor of the arrows and returns how many there are.
    """
    arrows = 0
    for row in range(told.size):
        for k in range(first_input[told[row]], first_input[told[row] + 1]):
            tensor = inputs[k]
            last_use[tensor] = max(last_use[tensor], end[row] - 1)
            if from_lane[tensor] != lane[row] or from_pid[tensor] != pid[row]:
                row_of[arrows] = row
                tensor_of[arrows] = tensor
                arrows += 1
    return arrows


@nb.njit(forceinline=True)
def _size_of(value):  # type: ignore[no-untyped-def]
    """How many digits a number has."""
    digits = 1
    while value >= U(10_000):
        value //= U(10_000)
        digits += 4
    if value >= U(1000):
        return digits + 3
    if value >= U(100):
        return digits + 2
    return digits + 1 if value >= U(10) else digits


@nb.njit(forceinline=True)
def _copy(text, first, end, out, at):  # type: ignore[no-untyped-def]
    length = end - first
    for k in range(length):
        out[U(at + k)] = text[U(first + k)]
    return at + length


@nb.njit(forceinline=True)
def _write_number(value, out, at):  # type: ignore[no-untyped-def]
    end = at + _size_of(value)
    behind = end
    while value >= U(100):
        rest = value // U(100)
        pair = value - rest * U(100)
        out[U(behind - 1)] = np.uint8(U(48) + pair % U(10))
        out[U(behind - 2)] = np.uint8(U(48) + pair // U(10))
        behind -= 2
        value = rest
    if value >= U(10):
        out[U(behind - 1)] = np.uint8(U(48) + value % U(10))
        value //= U(10)
        behind -= 1
    out[U(behind - 1)] = np.uint8(U(48) + value)
    return end


@nb.njit(forceinline=True)
def _write_microseconds(value, out, at):  # type: ignore[no-untyped-def]
    whole = value // U(1_000_000)
    rest = value - whole * U(1_000_000)
    at = _write_number(whole, out, at)
    out[U(at)] = np.uint8(46)
    for place in range(6, 0, -1):
        out[U(at + place)] = np.uint8(U(48) + rest % U(10))
        rest //= U(10)
    return at + 7


@nb.njit(cache=True, nogil=True)
def measure_lines(values, gaps, bounds, lengths):  # type: ignore[no-untyped-def]
    """Add up the bytes of each line; see `write_lines`."""
    for gap in range(gaps.shape[0]):
        kind, first = gaps[gap, 0], gaps[gap, 1]
        around = bounds[U(first + 2)] - bounds[U(first)]
        for row in range(lengths.size):
            value = values[gap, row]
            if kind == TEXT:
                at = U(first + 2 + value)
                lengths[row] += around + bounds[at + U(1)] - bounds[at]
            elif kind == MICROSECONDS or kind == MICROSECONDS_UNLESS_ZERO:
                if value != 0 or kind == MICROSECONDS:
                    size = U(0) - U(value) if value < 0 else U(value)
                    lengths[row] += around + (value < 0) + _size_of(size // U(1_000_000)) + 7
            elif value < 0 and kind != UNSIGNED_UNLESS_ZERO:
                lengths[row] += around + 1 + _size_of(U(0) - U(value))
            elif value != 0 or kind == NUMBER:
                lengths[row] += around + _size_of(U(value))


@nb.njit(cache=True, nogil=True)
def write_lines(values, gaps, text, bounds, starts, out):  # type: ignore[no-untyped-def]
    """Write line ``r`` at ``out[starts[r]]``: gap by gap what is before it, its value, and what
    is after it.

    Piece ``p`` is ``text[bounds[p] : bounds[p + 1]]``. A gap is its kind and the first of its
    pieces: before, after, and the texts to choose from. ``values`` are by gap and row.
    """
    for row in range(starts.size):
        at = starts[row]
        for gap in range(gaps.shape[0]):
            kind, first, value = gaps[gap, 0], gaps[gap, 1], values[gap, row]
            if value == 0 and kind >= SIGNED_UNLESS_ZERO:
                continue
            after = bounds[U(first + 1)]
            at = _copy(text, bounds[U(first)], after, out, at)
            if kind == TEXT:
                chosen = U(first + 2 + value)
                at = _copy(text, bounds[chosen], bounds[chosen + U(1)], out, at)
            elif kind == MICROSECONDS or kind == MICROSECONDS_UNLESS_ZERO:
                if value < 0:
                    out[U(at)] = np.uint8(45)
                    at += 1
                size = U(0) - U(value) if value < 0 else U(value)
                at = _write_microseconds(size, out, at)
            elif value < 0 and kind != UNSIGNED_UNLESS_ZERO:
                out[U(at)] = np.uint8(45)
                at = _write_number(U(0) - U(value), out, at + 1)
            else:
                at = _write_number(U(value), out, at)
            at = _copy(text, after, bounds[U(first + 2)], out, at)
