"""Writing protobuf messages: numbers and spans of bytes, put where they belong."""

from __future__ import annotations

import cython

__all__ = ["number_sizes", "put_numbers", "put_spans"]


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
    place: cython.longlong
    k: cython.longlong
    with cython.nogil:
        for row in range(first.shape[0]):
            place = at[row]
            for k in range(first[row], end[row]):
                out[place] = data[k]
                place += 1
            at[row] = place
