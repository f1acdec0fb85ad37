"""A walk over the opcodes of a pickle, before anything is made of them."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.pickle_layout import (
        A_LENGTH_1,
        A_LENGTH_4,
        A_LINE,
        A_NO_OPCODE,
        A_TWO_LINES,
        E_ADDITEMS,
        E_APPEND,
        E_COLLECT,
        E_COLLECT_DICT,
        E_COLLECT_SET,
        E_DUP,
        E_GET,
        E_MARK,
        E_MEMOIZE,
        E_NAME,
        E_NOTHING,
        E_POP,
        E_POP_MARK,
        E_PUSH_CONTAINER,
        E_PUSH_SCALAR,
        E_PUT,
        E_SETITEM,
        E_SETITEMS,
        E_STOP,
        E_TUPLE1,
        E_TUPLE2,
        E_TUPLE3,
        S_CUT,
        S_DAMAGED,
        S_FULL,
        S_NAME,
        S_WHOLE,
        SLACK,
        V_NO_KEY,
        V_SCALAR,
    )

__all__ = ["scan"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _number(
    data: cython.const[cython.uchar][::1], at: cython.longlong, size: cython.longlong
) -> cython.longlong:
    """A little-endian number; one beyond 63 bits becomes the largest."""
    most: cython.longlong = 0x7FFFFFFFFFFFFFFF
    value: cython.longlong = 0
    byte: cython.longlong
    place: cython.longlong
    for place in range(size):
        byte = data[at + place]
        if place == 7 and byte > 127:
            return most
        value |= byte << (8 * place)
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _decimal(
    data: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """A decimal number, -1 for anything else."""
    value: cython.longlong = 0
    place: cython.longlong
    digit: cython.longlong
    if at == end or end - at > 12:
        return -1
    for place in range(at, end):
        digit = data[place]
        digit -= 48
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_wide(
    code: cython.int,
    data: cython.const[cython.uchar][::1],
    first: cython.longlong,
    length: cython.longlong,
) -> cython.bint:
    """Whether the opcode pushes a whole number beyond 64 bits (of decimal ones, about): as many of
    them as one likes have the same hash.
    """
    if code == 0x8A or code == 0x8B:
        return length > 9 or (length == 9 and data[first + 8] != 0)
    return (code == 0x49 or code == 0x4C) and length > 21


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scan(
    data: cython.const[cython.uchar][::1],
    argument: cython.const[cython.schar][::1],
    effect: cython.const[cython.schar][::1],
    stack: cython.uchar[::1],
    marks: cython.longlong[::1],
    memo: cython.uchar[::1],
) -> tuple[cython.longlong, cython.longlong]:
    """See `scan`."""
    size: cython.longlong = data.shape[0]
    top: cython.longlong = 0
    marked: cython.longlong = 0
    stored: cython.longlong = 0
    at: cython.longlong = 0
    begin: cython.longlong
    first: cython.longlong
    length: cython.longlong
    width: cython.longlong
    lines: cython.longlong
    bottom: cython.longlong
    below: cython.longlong
    index: cython.longlong
    count: cython.longlong
    k: cython.longlong
    code: cython.int
    form: cython.int
    what: cython.int
    kind: cython.int
    while at < size:
        begin = at
        code = data[at]
        at += 1
        form = argument[code]
        if form == A_NO_OPCODE:
            return S_DAMAGED, begin
        first = at
        length = 0
        if form >= 0:
            length = form
        elif form == A_LINE or form == A_TWO_LINES:
            lines = 1 if form == A_LINE else 2
            while at < size:
                if data[at] == 10:
                    lines -= 1
                at += 1
                if lines == 0:
                    break
            if lines:
                return S_CUT, begin
            length = at - 1 - first
        else:
            width = 1 if form == A_LENGTH_1 else (4 if form == A_LENGTH_4 else 8)
            if at + width > size:
                return S_CUT, begin
            length = _number(data, at, width)
            if width == 4 and length >> 31 != 0 and (code == 0x8B or code == 0x54):
                return S_DAMAGED, begin  # these lengths are signed
            at += width
            first = at
        if form != A_LINE and form != A_TWO_LINES:
            if length > size - at:
                return S_CUT, begin
            at += length

        what = effect[code]
        bottom = marks[marked - 1] if marked > 0 else 0
        index = 0
        if what == E_GET or what == E_PUT:
            if form == A_LINE:
                index = _decimal(data, first, first + length)
            else:
                index = _number(data, first, length)
        if what == E_PUSH_SCALAR or what == E_PUSH_CONTAINER or what == E_DUP or what == E_GET:
            kind = V_SCALAR
            if what == E_PUSH_CONTAINER or _is_wide(code, data, first, length):
                kind = V_NO_KEY
            elif what == E_DUP:
                if top <= bottom:
                    return S_DAMAGED, begin
                kind = stack[top - 1]
            elif what == E_GET:
                if index < 0 or index >= memo.shape[0] or memo[index] == 0:
                    return S_DAMAGED, begin
                kind = memo[index] - 1
            if top == stack.shape[0]:
                return S_FULL, begin
            stack[top] = kind
            top += 1
        elif what == E_MARK:
            if marked == marks.shape[0]:
                return S_FULL, begin
            marks[marked] = top
            marked += 1
        elif what == E_PUT or what == E_MEMOIZE:
            if top <= bottom:
                return S_DAMAGED, begin
            if what == E_MEMOIZE:
                index = stored
            # The memo is an array: an index far from the others would make it huge.
            if index < 0 or index > 2 * stored + SLACK:
                return S_DAMAGED, begin
            if index >= memo.shape[0]:
                return S_FULL, begin
            if memo[index] == 0:
                stored += 1
            memo[index] = stack[top - 1] + 1
        elif what == E_APPEND or what == E_POP:
            if what == E_POP and top == bottom and marked > 0:
                marked -= 1
                continue
            # An append needs its list below it.
            if top - bottom < (2 if what == E_APPEND else 1):
                return S_DAMAGED, begin
            top -= 1
        elif what == E_SETITEM:
            if top - bottom < 3 or stack[top - 2] == V_NO_KEY:
                return S_DAMAGED, begin
            top -= 2
        elif what == E_TUPLE1 or what == E_TUPLE2 or what == E_TUPLE3:
            count = what - E_TUPLE1 + 1
            if top - bottom < count:
                return S_DAMAGED, begin
            top -= count - 1
            stack[top - 1] = V_NO_KEY
        elif what == E_STOP:
            if top != 1 or marked > 0:
                return S_DAMAGED, begin
            return S_WHOLE, at
        elif what >= E_NAME:
            return what - E_NAME + S_NAME, begin
        elif what != E_NOTHING:
            # What is left takes all down to the mark.
            if marked == 0:
                return S_DAMAGED, begin
            marked -= 1
            if what == E_SETITEMS or what == E_COLLECT_DICT:
                if (top - bottom) & 1:
                    return S_DAMAGED, begin
                k = bottom
                while k < top:
                    if stack[k] == V_NO_KEY:
                        return S_DAMAGED, begin
                    k += 2
            elif what == E_ADDITEMS or what == E_COLLECT_SET:
                for k in range(bottom, top):
                    if stack[k] == V_NO_KEY:
                        return S_DAMAGED, begin
            top = bottom
            below = marks[marked - 1] if marked > 0 else 0
            if what == E_COLLECT or what == E_COLLECT_DICT or what == E_COLLECT_SET:
                if top == stack.shape[0]:
                    return S_FULL, begin
                stack[top] = V_NO_KEY
                top += 1
            elif what != E_POP_MARK and top <= below:
                return S_DAMAGED, begin
    return S_CUT, size


def scan(
    data: cython.const[cython.uchar][::1],
    argument: cython.const[cython.schar][::1],
    effect: cython.const[cython.schar][::1],
    stack: cython.uchar[::1],
    marks: cython.longlong[::1],
    memo: cython.uchar[::1],
) -> tuple[int, int]:
    """How the scan ended (an S number), and the position of the opcode it is about, or after STOP.

    Follows what is on the stack as far as needed to know that unpickling can neither take more
    memory than the file's size explains (lengths, memo indices) nor hash a container, which is
    recursive and has no limit, or numbers beyond 64 bits, which may all have the same hash.
    ``argument`` and ``effect`` say of each of 256 opcodes how it is
    written and what it does. ``stack``, ``marks`` and ``memo`` (given as 0) are room for what lies
    there; S_FULL where it is too small: call again with more.
    """
    status: cython.longlong
    at: cython.longlong
    with cython.nogil:
        status, at = _scan(data, argument, effect, stack, marks, memo)
    return status, at
