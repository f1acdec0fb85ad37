"""Kernels of the graph source: fields of a message, inputs of nodes, and keys of maps."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["field_spans", "last_of_key", "parse_inputs", "positions"]

U = np.uint64  # also for indices: an unsigned one needs no check for counting from the end

_CARET, _COLON, _ZERO, _NINE = ord("^"), ord(":"), ord("0"), ord("9")
_MOST_OUTPUT = (1 << 31) - 1


@nb.njit(forceinline=True)
def _varint(buf, at, end):  # type: ignore[no-untyped-def]
    """The number at ``at`` and where it ends; -1 for the latter when it is broken."""
    value, shift = U(0), U(0)
    while at < end and shift < U(70):
        byte = buf[U(at)]
        at += 1
        value |= U(byte & 0x7F) << shift
        shift += U(7)
        if byte < 0x80:
            return value, at
    return U(0), np.int64(-1)


@nb.njit(cache=True, nogil=True)
def field_spans(buf, starts, ends, number, parent, start, length):  # type: ignore[no-untyped-def]
    """Where the length-delimited field ``number`` lies in each message.

    A value that reaches beyond its message is cut there, and the message's walk ends with it, as
    it does at the first broken byte. Stores as many as there is room for; returns how many there
    are, and by how many bytes the last cut one was too long.
    """
    found, missing = np.int64(0), np.int64(0)
    for row in range(starts.size):
        at, end = starts[U(row)], ends[U(row)]
        while at < end:
            tag, at = _varint(buf, at, end)
            if at < 0:
                break
            wire = tag & U(7)
            if wire == U(0):
                _, at = _varint(buf, at, end)
                if at < 0:
                    break
            elif wire == U(1):
                at += 8
            elif wire == U(5):
                at += 4
            elif wire == U(2):
                size, at = _varint(buf, at, end)
                if at < 0:
                    break
                left = U(end - at)
                if size > left:
                    missing = np.int64(min(size - left, U(1 << 62)))
                    size = left
                if tag >> U(3) == U(number):
                    if found < start.size:
                        parent[U(found)] = row
                        start[U(found)] = at
                        length[U(found)] = np.int64(size)
                    found += 1
                at += np.int64(size)
            else:
                break
    return found, missing


@nb.njit(forceinline=True)
def _digits(buf, at, end):  # type: ignore[no-untyped-def]
    """The number that ``buf[at:end]`` spells; -1 when it is none, or too large for an output."""
    if at >= end:
        return np.int64(-1)
    value = np.int64(0)
    while at < end:
        byte = buf[U(at)]
        if byte < _ZERO or byte > _NINE:
            return np.int64(-1)
        value = value * 10 + (np.int64(byte) - _ZERO)
        if value > _MOST_OUTPUT:
            return np.int64(-1)
        at += 1
    return value


@nb.njit(cache=True, nogil=True)
def parse_inputs(  # type: ignore[no-untyped-def]
    buf, starts, lengths, in_function,
    source_start, source_length, output, control, argument_start, argument_length, usual,
):  # fmt: skip
    """Take apart ``node``, ``node:k``, ``^node``, and in functions ``node:argument:k``.

    A text that is none of these stays whole as the source, with output 0. ``argument_length`` is
    -1 without an argument; ``usual`` tells that the parts alone give back the text.
    """
    for row in range(starts.size):
        start, length = starts[U(row)], lengths[U(row)]
        end = start + length
        source_start[U(row)], source_length[U(row)] = start, length
        output[U(row)], control[U(row)], usual[U(row)] = 0, False, False
        argument_start[U(row)], argument_length[U(row)] = start, -1
        if length == 0:
            continue
        colons, first, second = 0, end, end
        for at in range(start, end):
            if buf[U(at)] == _COLON:
                colons += 1
                if colons == 1:
                    first = at
                elif colons == 2:
                    second = at
        if buf[U(start)] == _CARET:
            if length > 1 and colons == 0:
                source_start[U(row)], source_length[U(row)] = start + 1, length - 1
                output[U(row)], control[U(row)], usual[U(row)] = -1, True, True
        elif colons == 0:
            usual[U(row)] = True
        elif first == start:
            continue
        elif colons == 1:
            number = _digits(buf, first + 1, end)
            if number >= 0:
                source_length[U(row)], output[U(row)] = first - start, number
                usual[U(row)] = buf[U(first + 1)] != _ZERO
            elif in_function and first + 1 < end:
                source_length[U(row)] = first - start
                argument_start[U(row)], argument_length[U(row)] = first + 1, end - first - 1
        elif colons == 2 and in_function and first + 1 < second:
            number = _digits(buf, second + 1, end)
            if number >= 0:
                source_length[U(row)], output[U(row)] = first - start, number
                argument_start[U(row)], argument_length[U(row)] = first + 1, second - first - 1
                usual[U(row)] = buf[U(second + 1)] != _ZERO or end == second + 2


@nb.njit(cache=True, nogil=True)
def positions(parents, out):  # type: ignore[no-untyped-def]
    """The place of every row among those of its parent; the rows of a parent are neighbours."""
    place = np.int64(0)
    for row in range(parents.size):
        place = place + 1 if row > 0 and parents[U(row)] == parents[U(row - 1)] else np.int64(0)
        out[U(row)] = place


@nb.njit(cache=True, nogil=True)
def last_of_key(parents, codes, latest, keep):  # type: ignore[no-untyped-def]
    """Which map entries count: of those of one parent with one key, the last.

    The rows of a parent are neighbours. ``latest`` holds -1 per key code.
    """
    for row in range(parents.size):
        before = latest[U(codes[U(row)])]
        if before >= 0 and parents[U(before)] == parents[U(row)]:
            keep[U(before)] = False
        latest[U(codes[U(row)])] = row
        keep[U(row)] = True
