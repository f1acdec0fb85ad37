"""A walk over the opcodes of a pickle, before anything is made of them."""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.sources.torch_snapshot.opcodes import Argument, Effect, Status

__all__ = ["scan"]

_SCALAR = np.uint8(0)
_CONTAINER = np.uint8(1)
_SLACK = 1024

_LINE, _TWO_LINES = int(Argument.LINE), int(Argument.TWO_LINES)
_LENGTH_1, _LENGTH_4, _LENGTH_8 = (
    int(Argument.LENGTH_1),
    int(Argument.LENGTH_4),
    int(Argument.LENGTH_8),
)
_NO_OPCODE = int(Argument.NO_OPCODE)
(
    _NOTHING, _PUSH_SCALAR, _PUSH_CONTAINER, _MARK, _POP, _POP_MARK, _DUP, _APPEND, _APPENDS,
    _SETITEM, _SETITEMS, _COLLECT, _COLLECT_DICT, _COLLECT_SET, _ADDITEMS, _TUPLE1, _TUPLE2,
    _TUPLE3, _PUT, _MEMOIZE, _GET, _STOP, _NAME, _EXTENSION, _OUT_OF_BAND, _BUILD,
) = (int(effect) for effect in Effect)  # fmt: skip
_WHOLE, _CUT, _DAMAGED = int(Status.WHOLE), int(Status.CUT), int(Status.DAMAGED)
_WANTS = int(Status.NAME) - _NAME


@nb.njit(cache=True, nogil=True)
def _number(data, at, size):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A little-endian number; one beyond 63 bits becomes the largest."""
    value = np.int64(0)
    for place in range(size):
        byte = np.int64(data[at + place])
        if place == 7 and byte > 127:
            return np.int64(2**63 - 1)
        value |= byte << (8 * place)
    return value


@nb.njit(cache=True, nogil=True)
def _decimal(data, at, end):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A decimal number, -1 for anything else."""
    value = np.int64(0)
    if at == end or end - at > 12:
        return np.int64(-1)
    for place in range(at, end):
        digit = np.int64(data[place]) - 48
        if digit < 0 or digit > 9:
            return np.int64(-1)
        value = value * 10 + digit
    return value


@nb.njit(cache=True, nogil=True)
def _larger(array):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    grown = np.zeros(2 * array.size, array.dtype)
    grown[: array.size] = array
    return grown


@nb.njit(cache=True, nogil=True)
def scan(data, argument, effect):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A `Status`, and the position of the opcode it is about, or after STOP.

    Follows what is on the stack as far as needed to know that unpickling can neither take more
    memory than the file's size explains (lengths, memo indices) nor hash a container: that is
    recursive and has no limit.
    """
    stack = np.zeros(1024, np.uint8)
    top = 0
    marks = np.zeros(64, np.int64)
    marked = 0
    memo = np.full(1024, 2, np.uint8)  # 2: nothing stored
    stored = 0
    at = 0
    while at < data.size:
        begin = at
        code = data[at]
        at += 1
        form = argument[code]
        if form == _NO_OPCODE:
            return _DAMAGED, begin
        first = at
        length = np.int64(0)
        if form >= 0:
            length = np.int64(form)
        elif form == _LINE or form == _TWO_LINES:
            lines = 1 if form == _LINE else 2
            while at < data.size:
                lines -= data[at] == 10
                at += 1
                if lines == 0:
                    break
            if lines:
                return _CUT, begin
            length = at - 1 - first
        else:
            width = 1 if form == _LENGTH_1 else 4 if form == _LENGTH_4 else 8
            if at + width > data.size:
                return _CUT, begin
            length = _number(data, at, width)
            if width == 4 and length >= 2**31 and (code == 0x8B or code == 0x54):
                return _DAMAGED, begin  # these lengths are signed
            first = at = at + width
        if form != _LINE and form != _TWO_LINES:
            if length > data.size - at:
                return _CUT, begin
            at += length

        what = effect[code]
        bottom = marks[marked - 1] if marked else 0
        if what == _PUSH_SCALAR or what == _PUSH_CONTAINER or what == _DUP or what == _GET:
            kind = _SCALAR if what == _PUSH_SCALAR else _CONTAINER
            if what == _DUP:
                if top <= bottom:
                    return _DAMAGED, begin
                kind = stack[top - 1]
            elif what == _GET:
                index = (
                    _decimal(data, first, first + length)
                    if form == _LINE
                    else _number(data, first, length)
                )
                if index < 0 or index >= memo.size or memo[index] == 2:
                    return _DAMAGED, begin
                kind = memo[index]
            if top == stack.size:
                stack = _larger(stack)
            stack[top] = kind
            top += 1
        elif what == _MARK:
            if marked == marks.size:
                marks = _larger(marks)
            marks[marked] = top
            marked += 1
        elif what == _PUT or what == _MEMOIZE:
            if top <= bottom:
                return _DAMAGED, begin
            index = np.int64(stored)
            if what == _PUT:
                index = (
                    _decimal(data, first, first + length)
                    if form == _LINE
                    else _number(data, first, length)
                )
            # The memo is an array: an index far from the others would make it huge.
            if index < 0 or index > 2 * stored + _SLACK:
                return _DAMAGED, begin
            while index >= memo.size:
                old = memo.size
                memo = _larger(memo)
                memo[old:] = 2
            stored += memo[index] == 2
            memo[index] = stack[top - 1]
        elif what == _APPEND or what == _POP:
            if what == _POP and top == bottom and marked:
                marked -= 1
                continue
            # An append needs its list below it.
            if top - bottom < (2 if what == _APPEND else 1):
                return _DAMAGED, begin
            top -= 1
        elif what == _SETITEM:
            if top - bottom < 3 or stack[top - 2] == _CONTAINER:
                return _DAMAGED, begin
            top -= 2
        elif what == _TUPLE1 or what == _TUPLE2 or what == _TUPLE3:
            count = what - _TUPLE1 + 1
            if top - bottom < count:
                return _DAMAGED, begin
            top -= count - 1
            stack[top - 1] = _CONTAINER
        elif what == _STOP:
            if top != 1 or marked:
                return _DAMAGED, begin
            return _WHOLE, at
        elif what >= _NAME:
            return what + _WANTS, begin
        elif what != _NOTHING:
            # What is left takes all down to the mark.
            if marked == 0:
                return _DAMAGED, begin
            marked -= 1
            if what == _SETITEMS or what == _COLLECT_DICT:
                if (top - bottom) % 2:
                    return _DAMAGED, begin
                for key in range(bottom, top, 2):
                    if stack[key] == _CONTAINER:
                        return _DAMAGED, begin
            elif what == _ADDITEMS or what == _COLLECT_SET:
                for item in range(bottom, top):
                    if stack[item] == _CONTAINER:
                        return _DAMAGED, begin
            top = bottom
            below = marks[marked - 1] if marked else 0
            if what == _COLLECT or what == _COLLECT_DICT or what == _COLLECT_SET:
                if top == stack.size:
                    stack = _larger(stack)
                stack[top] = _CONTAINER
                top += 1
            elif what != _POP_MARK and top <= below:
                return _DAMAGED, begin
    return _CUT, data.size
