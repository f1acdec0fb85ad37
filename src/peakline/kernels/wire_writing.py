"""Writing protobuf messages and JSON: numbers and spans of bytes, put where they belong."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import copy_bytes, low64, unsigned64

__all__ = ["decimal_sizes", "number_sizes", "put_decimals", "put_numbers", "put_spans"]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _magnitude(value: cython.longlong) -> cython.ulonglong:
    return low64(0 - unsigned64(value)) if value < 0 else unsigned64(value)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _digits(value: cython.ulonglong) -> cython.longlong:
    """How many digits a number has in base 10."""
    count: cython.longlong = 1
    while value >= 10:
        value //= 10
        count += 1
    return count


def number_sizes(
    values: cython.const[cython.ulonglong][::1],
    present: cython.const[cython.uchar][::1],
    around: cython.longlong,
    sizes: cython.longlong[::1],
) -> None:
    """Add to ``sizes`` what each varint takes, and ``around`` for its tag, where ``present``."""
    row: cython.longlong
    value: cython.ulonglong
    with cython.nogil:
        for row in range(values.shape[0]):
            if present[row]:
                value = values[row]
                sizes[row] += around + 1
                while value >= 128:
                    value >>= 7
                    sizes[row] += 1


def put_numbers(
    values: cython.const[cython.ulonglong][::1],
    present: cython.const[cython.uchar][::1],
    tag: cython.const[cython.uchar][::1],
    out: cython.uchar[::1],
    at: cython.longlong[::1],
) -> None:
    """Write tag and varint of each row at ``at``, where ``present``, and move ``at`` behind it."""
    row: cython.longlong
    place: cython.longlong
    k: cython.longlong
    value: cython.ulonglong
    with cython.nogil:
        for row in range(values.shape[0]):
            if present[row]:
                place = at[row]
                for k in range(tag.shape[0]):
                    out[place] = tag[k]
                    place += 1
                value = values[row]
                while value >= 128:
                    out[place] = (value & 127) | 128
                    value >>= 7
                    place += 1
                out[place] = value
                at[row] = place + 1


def put_spans(
    data: cython.const[cython.uchar][::1],
    first: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
    at: cython.longlong[::1],
) -> None:
    """Copy ``data[first:end]`` of each row to ``at``, and move ``at`` behind it."""
    row: cython.longlong
    length: cython.longlong
    with cython.nogil:
        for row in range(first.shape[0]):
            length = end[row] - first[row]
            copy_bytes(data, first[row], out, at[row], length)
            at[row] += length


def decimal_sizes(
    values: cython.const[cython.longlong][::1],
    present: cython.const[cython.uchar][::1],
    sizes: cython.longlong[::1],
) -> None:
    """Add to ``sizes`` the characters of each number in base 10, where ``present``."""
    row: cython.longlong
    with cython.nogil:
        for row in range(values.shape[0]):
            if present[row]:
                sizes[row] += _digits(_magnitude(values[row]))
                if values[row] < 0:
                    sizes[row] += 1


def put_decimals(
    values: cython.const[cython.longlong][::1],
    present: cython.const[cython.uchar][::1],
    out: cython.uchar[::1],
    at: cython.longlong[::1],
) -> None:
    """Write each number in base 10 at ``at``, where ``present``, and move ``at`` behind it."""
    row: cython.longlong
    place: cython.longlong
    k: cython.longlong
    value: cython.ulonglong
    with cython.nogil:
        for row in range(values.shape[0]):
            if present[row]:
                place = at[row]
                if values[row] < 0:
                    out[place] = 45  # minus
                    place += 1
                value = _magnitude(values[row])
                place += _digits(value)
                at[row] = place
                # From the last digit to the first.
                for k in range(_digits(value)):
                    out[place - 1 - k] = 48 + value % 10
                    value //= 10
