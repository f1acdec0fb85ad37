"""Graphs on the wire: fields of a message, inputs of nodes, and keys of maps."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64, unsigned64

__all__ = ["field_spans", "last_of_key", "parse_inputs"]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> tuple[cython.ulonglong, cython.longlong]:
    """The number at ``at`` and where it ends; -1 for the latter when it is broken."""
    value: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    while at < end and shift < 70:
        byte = buf[at]
        at += 1
        value = low64(value | (byte & 0x7F) << shift)
        shift += 7
        if byte < 0x80:
            return value, at
    return 0, -1


def field_spans(
    buf: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    number: cython.longlong,
    parent: cython.longlong[::1],
    start: cython.longlong[::1],
    length: cython.longlong[::1],
) -> tuple[int, int]:
    """Where the length-delimited field ``number`` lies in each message.

    A value that reaches beyond its message is cut there, and the message's walk ends with it, as
    it does at the first broken byte. Stores as many as there is room for; returns how many there
    are, and by how many bytes the last cut one was too long.
    """
    result: cython.longlong = 0
    missing: cython.longlong = 0
    row: cython.longlong
    at: cython.longlong
    end: cython.longlong
    wire: cython.int
    tag: cython.ulonglong
    size: cython.ulonglong
    left: cython.ulonglong
    one: cython.ulonglong = 1
    wanted: cython.ulonglong = unsigned64(number)
    with cython.nogil:
        for row in range(starts.shape[0]):
            at, end = starts[row], ends[row]
            while at < end:
                tag, at = _varint(buf, at, end)
                if at < 0:
                    break
                wire = tag & 7
                if wire == 0:
                    size, at = _varint(buf, at, end)
                    if at < 0:
                        break
                elif wire == 1:
                    at += 8
                elif wire == 5:
                    at += 4
                elif wire == 2:
                    size, at = _varint(buf, at, end)
                    if at < 0:
                        break
                    left = end - at
                    if size > left:
                        missing = min(one << 62, size - left)
                        size = left
                    if tag >> 3 == wanted:
                        if result < start.shape[0]:
                            parent[result] = row
                            start[result] = at
                            length[result] = size
                        result += 1
                    at += size
                else:
                    break
    return result, missing


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _digits(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """The number that ``buf[at:end]`` spells; -1 when it is none, or too large for an output."""
    value: cython.longlong = 0
    byte: cython.int
    if at >= end:
        return -1
    while at < end:
        byte = buf[at]
        if byte < 48 or byte > 57:
            return -1
        value = value * 10 + byte - 48
        if value >> 31 != 0:
            return -1
        at += 1
    return value


def parse_inputs(
    buf: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    lengths: cython.const[cython.longlong][::1],
    in_function: cython.bint,
    source_start: cython.longlong[::1],
    source_length: cython.longlong[::1],
    output: cython.int[::1],
    control: cython.uchar[::1],
    argument_start: cython.longlong[::1],
    argument_length: cython.longlong[::1],
    usual: cython.uchar[::1],
) -> None:
    """Take apart ``node``, ``node:k``, ``^node``, and in functions ``node:argument:k``.

    A text that is none of these stays whole as the source, with output 0. ``argument_length`` is
    -1 without an argument; ``usual`` says that the parts alone give back the text.
    """
    row: cython.longlong
    start: cython.longlong
    length: cython.longlong
    end: cython.longlong
    at: cython.longlong
    colons: cython.longlong
    first: cython.longlong
    second: cython.longlong
    number: cython.longlong
    with cython.nogil:
        for row in range(starts.shape[0]):
            start, length = starts[row], lengths[row]
            end = start + length
            source_start[row], source_length[row] = start, length
            output[row], control[row], usual[row] = 0, False, False
            argument_start[row], argument_length[row] = start, -1
            if length == 0:
                continue
            colons, first, second = 0, end, end
            for at in range(start, end):
                if buf[at] == 58:  # :
                    colons += 1
                    if colons == 1:
                        first = at
                    elif colons == 2:
                        second = at
            if buf[start] == 94:  # ^
                if length > 1 and colons == 0:
                    source_start[row], source_length[row] = start + 1, length - 1
                    output[row], control[row], usual[row] = -1, True, True
            elif colons == 0:
                usual[row] = True
            elif first == start:
                continue
            elif colons == 1:
                number = _digits(buf, first + 1, end)
                if number >= 0:
                    source_length[row], output[row] = first - start, number
                    usual[row] = buf[first + 1] != 48
                elif in_function and first + 1 < end:
                    source_length[row] = first - start
                    argument_start[row], argument_length[row] = first + 1, end - first - 1
            elif colons == 2 and in_function and first + 1 < second:
                number = _digits(buf, second + 1, end)
                if number >= 0:
                    source_length[row], output[row] = first - start, number
                    argument_start[row], argument_length[row] = first + 1, second - first - 1
                    usual[row] = buf[second + 1] != 48 or end == second + 2


def last_of_key(
    parents: cython.const[cython.longlong][::1],
    codes: cython.const[cython.longlong][::1],
    latest: cython.longlong[::1],
    keep: cython.uchar[::1],
) -> None:
    """Which map entries count: of those of one parent with one key, the last.

    The rows of a parent are neighbours. ``latest`` holds -1 per key code.
    """
    row: cython.longlong
    before: cython.longlong
    with cython.nogil:
        for row in range(parents.shape[0]):
            before = latest[codes[row]]
            if before >= 0 and parents[before] == parents[row]:
                keep[before] = False
            latest[codes[row]] = row
            keep[row] = True
