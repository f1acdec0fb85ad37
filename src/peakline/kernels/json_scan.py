"""Objects of an array of JSON (RFC 8259), and members of an object.

More is accepted than the standard allows, as profilers write it: commas before a closing bracket,
NaN and Infinity, control characters in strings, bytes that are no UTF-8.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64, unsigned64
    from peakline.kernels.json_kinds import (
        ABSENT,
        ARRAY,
        ESCAPED,
        FALSE,
        NULL,
        NUMBER,
        OBJECT,
        STRING,
        TRUE,
    )
    from peakline.kernels.json_layout import (
        AFTER,
        AT_ITEM,
        AT_KEY,
        AT_VALUE,
        BACKSLASH,
        BAD,
        CLOSE,
        CLOSE_ARRAY,
        COLON,
        COMMA,
        CUT,
        DONE,
        END,
        EVENTS,
        FULL,
        IN_ARRAY,
        IN_LINES,
        IN_OBJECT,
        IN_ROOT,
        MORE,
        MOST_TRIES,
        OK,
        OPEN,
        OPEN_ARRAY,
        QUOTE,
        S_AT,
        S_BIG,
        S_CUT,
        S_DAMAGED,
        S_FIRST,
        S_MODE,
        S_NEED,
        S_ROOT,
        S_ROOTS,
        S_ROWS,
        S_TRIES,
        SEARCH,
        START,
    )
    from peakline.kernels.json_numbers import note_time

__all__ = ["members", "scan"]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _string_end(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> tuple[cython.longlong, cython.bint]:
    """The closing quote of the string whose first byte is ``at`` (-1: cut), and if it escapes."""
    escaped: cython.bint = False
    byte: cython.uchar
    while at < end:
        byte = buf[at]
        if byte == QUOTE:
            return at, escaped
        if byte == BACKSLASH:
            escaped = True
            at += 1
        at += 1
    return -1, escaped


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _skip_space(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """The first byte from ``at`` on that is no blank (or other control character)."""
    while at < end and buf[at] <= 32:
        at += 1
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _hex(byte: cython.int) -> cython.int:
    """The value of a hexadecimal digit, -1 for another byte."""
    if byte >= 48 and byte <= 57:
        return byte - 48
    byte |= 32
    if byte >= 97 and byte <= 102:
        return byte - 87
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _unescape(
    buf: cython.const[cython.uchar][::1],
    start: cython.longlong,
    length: cython.longlong,
    out: cython.uchar[::1],
) -> cython.longlong:
    """Write the string's bytes; -1 when ``out`` is too small or it is not simply decoded."""
    at: cython.longlong = start
    end: cython.longlong = start + length
    size: cython.longlong = 0
    k: cython.longlong
    byte: cython.int
    point: cython.int
    digit: cython.int
    while at < end:
        if size + 3 > out.shape[0]:
            return -1
        byte = buf[at]
        at += 1
        if byte == BACKSLASH:
            byte = buf[at]
            at += 1
            if byte == 117:  # u
                if at + 4 > end:
                    return -1
                point = 0
                for k in range(4):
                    digit = _hex(buf[at + k])
                    if digit < 0:
                        return -1
                    point = point * 16 + digit
                at += 4
                if point >= 0xD800 and point < 0xE000:
                    return -1
                if point >= 0x800:
                    out[size] = 0xE0 | point >> 12
                    out[size + 1] = 0x80 | (point >> 6 & 0x3F)
                    out[size + 2] = 0x80 | (point & 0x3F)
                    size += 3
                    continue
                if point >= 0x80:
                    out[size] = 0xC0 | point >> 6
                    out[size + 1] = 0x80 | (point & 0x3F)
                    size += 2
                    continue
                byte = point
            elif byte == 98:
                byte = 8
            elif byte == 102:
                byte = 12
            elif byte == 110:
                byte = 10
            elif byte == 114:
                byte = 13
            elif byte == 116:
                byte = 9
        out[size] = byte
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _beginning(
    buf: cython.const[cython.uchar][::1], start: cython.longlong, length: cython.longlong
) -> cython.ulonglong:
    """The first eight bytes of a key as a number, zeros behind a shorter one."""
    word: cython.ulonglong = 0
    k: cython.longlong
    for k in range(min(8, length)):
        word |= low64(buf[start + k]) << (8 * k)
    return word


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _find(
    buf: cython.const[cython.uchar][::1],
    start: cython.longlong,
    length: cython.longlong,
    parent: cython.longlong,
    slots: cython.const[cython.short][::1],
    keys: cython.const[cython.longlong][:, ::1],
    pool: cython.const[cython.uchar][::1],
) -> cython.longlong:
    """The column of a key within the column ``parent`` (-1: the object itself), or -1."""
    mix: cython.ulonglong = 0x9E3779B97F4A7C15  # json_layout.KEY_MIX
    word: cython.ulonglong = _beginning(buf, start, length)
    column: cython.longlong = slots[low64((word + unsigned64(parent + 1)) * mix) >> 56]
    at: cython.longlong
    k: cython.longlong
    while column >= 0:
        if (
            unsigned64(keys[column, 5]) == word
            and keys[column, 2] == length
            and keys[column, 0] == parent
        ):
            at = keys[column, 1]
            k = 8
            while k < length and buf[start + k] == pool[at + k]:
                k += 1
            if k >= length:
                return column
        column = keys[column, 3]
    return column


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _literal(
    buf: cython.const[cython.uchar][::1], start: cython.longlong, length: cython.longlong
) -> cython.int:
    """The kind of a literal; ABSENT for what is none."""
    first: cython.int
    a: cython.int
    b: cython.int
    c: cython.int
    if length == 0:
        return ABSENT
    first = buf[start]
    if first == 45 and length > 1:
        start += 1
        length -= 1
        first = buf[start] & 0xDF  # only Infinity and NaN, in capitals or not
    if length == 4 and first == 116:  # true
        if buf[start + 1] == 114 and buf[start + 2] == 117 and buf[start + 3] == 101:
            return TRUE
    elif length == 5 and first == 102:  # false
        if buf[start + 1] == 97 and buf[start + 2] == 108 and buf[start + 4] == 101:
            return FALSE
    elif length == 4 and first == 110:  # null
        if buf[start + 1] == 117 and buf[start + 2] == 108 and buf[start + 3] == 108:
            return NULL
    elif length == 3:  # nan, inf
        a, b, c = first | 32, buf[start + 1] | 32, buf[start + 2] | 32
        if (a == 110 and b == 97 and c == 110) or (a == 105 and b == 110 and c == 102):
            return NUMBER
    elif length == 8 and (first | 32) == 105 and buf[start + 7] == 121:  # Infinity
        return NUMBER
    return ABSENT


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _token(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> tuple[cython.longlong, cython.int]:
    """Where the number or literal that begins at ``at`` ends, and its kind: ABSENT for neither."""
    stop: cython.longlong = at
    byte: cython.int = 0
    numeric: cython.bint
    if at < end:
        byte = buf[at]
    numeric = (byte >= 48 and byte <= 57) or byte == 45
    while stop < end:
        byte = buf[stop]
        # What a number may have: digits, + - . and e.
        if not (
            (byte >= 48 and byte <= 57)
            or byte == 43
            or byte == 45
            or byte == 46
            or byte | 32 == 101
        ):
            byte |= 32
            if byte < 97 or byte > 122:
                break
            numeric = False
        stop += 1
    if numeric:
        return stop, NUMBER
    return stop, _literal(buf, at, stop - at)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _forget(
    kinds: cython.uchar[:, ::1],
    row: cython.longlong,
    column: cython.longlong,
    keys: cython.const[cython.longlong][:, ::1],
) -> cython.void:
    """A key occurs again: what its first value held does not count."""
    other: cython.longlong
    if kinds[row, column] != ABSENT:
        for other in range(keys.shape[0]):
            if keys[other, 0] == column:
                kinds[row, other] = ABSENT


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _pass_over(
    buf: cython.const[cython.uchar][::1],
    at: cython.longlong,
    end: cython.longlong,
    stack: cython.uchar[::1],
) -> tuple[cython.int, cython.longlong]:
    """How the value at ``at``, an object or array in which nothing is wanted, ends, and where."""
    in_object: cython.bint = buf[at] == OPEN
    expect: cython.int = AT_KEY if in_object else AT_ITEM
    depth: cython.longlong = 1
    start: cython.longlong
    kind: cython.int
    byte: cython.int
    escaped: cython.bint
    stack[0] = in_object
    at += 1
    while True:
        at = _skip_space(buf, at, end)
        if at >= end:
            return CUT, at
        byte = buf[at]
        if expect == AFTER:
            if byte == COMMA:
                expect = AT_KEY if in_object else AT_ITEM
                at += 1
                continue
            if byte != (CLOSE if in_object else CLOSE_ARRAY):
                return BAD, at
        if byte == QUOTE:
            at, escaped = _string_end(buf, at + 1, end)
            if at < 0:
                return CUT, end
            at += 1
            if expect == AT_KEY:
                at = _skip_space(buf, at, end)
                if at >= end:
                    return CUT, at
                if buf[at] != COLON:
                    return BAD, at
                at += 1
                expect = AT_VALUE
            else:
                expect = AFTER
            continue
        if (byte == CLOSE and in_object and expect != AT_VALUE) or (
            byte == CLOSE_ARRAY and not in_object
        ):
            depth -= 1
            at += 1
            if depth == 0:
                return OK, at
            in_object = stack[depth - 1] != 0
            expect = AFTER
            continue
        if expect == AT_KEY:
            return BAD, at
        if byte == OPEN or byte == OPEN_ARRAY:
            if depth >= stack.shape[0]:
                return BAD, at
            in_object = byte == OPEN
            stack[depth] = in_object
            depth += 1
            at += 1
            expect = AT_KEY if in_object else AT_ITEM
            continue
        start = at
        at, kind = _token(buf, start, end)
        if at >= end:
            return CUT, at
        if kind == ABSENT:
            return BAD, start
        expect = AFTER


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walk(
    buf: cython.const[cython.uchar][::1],
    at: cython.longlong,
    end: cython.longlong,
    slots: cython.const[cython.short][::1],
    keys: cython.const[cython.longlong][:, ::1],
    pool: cython.const[cython.uchar][::1],
    stack: cython.uchar[::1],
    scratch: cython.uchar[::1],
    row: cython.longlong,
    kinds: cython.uchar[:, ::1],
    starts: cython.int[:, ::1],
    lengths: cython.int[:, ::1],
    times: cython.longlong[:, :, ::1],
    states: cython.uchar[:, ::1],
) -> tuple[cython.int, cython.longlong, cython.longlong]:
    """Walk the object at ``at`` and note its wanted members in ``row``.

    Returns how it ended, where, and for a bad one from where to search for the next object.
    """
    in_object: cython.bint = True
    expect: cython.int = AT_KEY
    depth: cython.longlong = 1
    top: cython.longlong = -1  # column of the member being read, at depth 1
    column: cython.longlong = -1  # column of the value that comes next
    outer: cython.longlong = -1  # columns whose container is open, at depth 1 and 2
    inner: cython.longlong = -1
    last_string: cython.longlong = at + 1
    noting: cython.bint = keys.shape[0] > 0
    start: cython.longlong
    stop: cython.longlong
    size: cython.longlong
    parent: cython.longlong
    time: cython.longlong
    kind: cython.int
    byte: cython.int
    escaped: cython.bint
    stack[0] = True
    at += 1
    while True:
        while at < end and buf[at] <= 32:
            at += 1
        if at >= end:
            return CUT, at, last_string
        byte = buf[at]
        if expect == AFTER:
            if byte == COMMA:
                expect = AT_KEY if in_object else AT_ITEM
                at += 1
                continue
            if byte != (CLOSE if in_object else CLOSE_ARRAY):
                return BAD, at, last_string
        if byte == QUOTE:
            last_string = at + 1
            start = at + 1
            stop, escaped = _string_end(buf, start, end)
            if stop < 0:
                return CUT, end, last_string
            at = stop + 1
            if expect == AT_KEY:
                if noting and depth <= 2:
                    column = -1
                    parent = -1 if depth == 1 else top
                    if depth == 1 or parent >= 0:
                        if escaped:
                            size = _unescape(buf, start, stop - start, scratch)
                            if size >= 0:
                                column = _find(scratch, 0, size, parent, slots, keys, pool)
                        else:
                            column = _find(buf, start, stop - start, parent, slots, keys, pool)
                    if depth == 1:
                        top = column
                while at < end and buf[at] <= 32:
                    at += 1
                if at >= end:
                    return CUT, at, last_string
                if buf[at] != COLON:
                    return BAD, at, last_string
                at += 1
                expect = AT_VALUE
                continue
            if column >= 0:
                _forget(kinds, row, column, keys)
                kinds[row, column] = ESCAPED if escaped else STRING
                starts[row, column] = start
                lengths[row, column] = stop - start
                time = keys[column, 4]
                if time >= 0:
                    note_time(buf, start, stop, times, states, row, time)
                column = -1
            expect = AFTER
            continue
        if (byte == CLOSE and in_object and expect != AT_VALUE) or (
            byte == CLOSE_ARRAY and not in_object
        ):
            depth -= 1
            at += 1
            if depth == 0:
                return OK, at, last_string
            in_object = stack[depth - 1] != 0
            if depth == 1 and outer >= 0:
                lengths[row, outer] = at - starts[row, outer]
                outer = -1
            elif depth == 2 and inner >= 0:
                lengths[row, inner] = at - starts[row, inner]
                inner = -1
            expect = AFTER
            continue
        if expect == AT_KEY:
            return BAD, at, last_string
        if byte == OPEN or byte == OPEN_ARRAY:
            if depth >= stack.shape[0]:
                return BAD, at, at
            in_object = byte == OPEN
            if column >= 0:
                _forget(kinds, row, column, keys)
                kinds[row, column] = OBJECT if in_object else ARRAY
                starts[row, column] = at
                if depth == 1:
                    outer = column
                else:
                    inner = column
                column = -1
            stack[depth] = in_object
            depth += 1
            at += 1
            expect = AT_KEY if in_object else AT_ITEM
            continue
        start = at
        at, kind = _token(buf, start, end)
        if at >= end:
            return CUT, at, last_string
        if kind == ABSENT:
            return BAD, start, last_string
        if column >= 0:
            _forget(kinds, row, column, keys)
            kinds[row, column] = kind
            starts[row, column] = start
            lengths[row, column] = at - start
            time = keys[column, 4]
            if time >= 0:
                note_time(buf, start, at, times, states, row, time)
            column = -1
        expect = AFTER


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_events_key(
    buf: cython.const[cython.uchar][::1], start: cython.longlong, length: cython.longlong
) -> cython.bint:
    """Whether the key is ``traceEvents``."""
    return (
        length == 11
        and buf[start] == 116
        and buf[start + 1] == 114
        and buf[start + 2] == 97
        and buf[start + 3] == 99
        and buf[start + 4] == 101
        and buf[start + 5] == 69
        and buf[start + 6] == 118
        and buf[start + 7] == 101
        and buf[start + 8] == 110
        and buf[start + 9] == 116
        and buf[start + 10] == 115
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _key(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> tuple[cython.int, cython.longlong, cython.longlong, cython.bint, cython.longlong]:
    """The key that begins at ``at``: status, first byte, length, if it escapes, and its value."""
    stop: cython.longlong
    value: cython.longlong
    escaped: cython.bint
    if buf[at] != QUOTE:
        return BAD, at, 0, False, at
    stop, escaped = _string_end(buf, at + 1, end)
    if stop < 0:
        return CUT, at, 0, False, at
    value = _skip_space(buf, stop + 1, end)
    if value < end and buf[value] != COLON:
        return BAD, at + 1, 0, False, value
    value = _skip_space(buf, value + 1, end)
    return (CUT if value >= end else OK), at + 1, stop - at - 1, escaped, value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _value(
    buf: cython.const[cython.uchar][::1],
    at: cython.longlong,
    end: cython.longlong,
    stack: cython.uchar[::1],
    is_last: cython.bint,
) -> tuple[cython.int, cython.int, cython.longlong, cython.longlong, cython.longlong]:
    """The value at ``at``: status, kind, first byte, end, and where to read on."""
    first: cython.int = buf[at]
    stop: cython.longlong
    status: cython.int
    kind: cython.int
    escaped: cython.bint
    if first == QUOTE:
        stop, escaped = _string_end(buf, at + 1, end)
        if stop < 0:
            return CUT, ABSENT, at, at, at
        return OK, (ESCAPED if escaped else STRING), at + 1, stop, stop + 1
    if first == OPEN or first == OPEN_ARRAY:
        status, stop = _pass_over(buf, at, end, stack)
        return status, (OBJECT if first == OPEN else ARRAY), at, stop, stop
    stop, kind = _token(buf, at, end)
    if stop >= end and not is_last:
        return CUT, ABSENT, at, stop, stop
    return (BAD if kind == ABSENT else OK), kind, at, stop, stop


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _damage(state: cython.longlong[::1], base: cython.longlong, at: cython.longlong) -> cython.void:
    """Count a damaged place."""
    state[S_DAMAGED] += 1
    if state[S_FIRST] < 0:
        state[S_FIRST] = base + at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _candidate(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """The next brace that a key follows, or one at the end of the buffer; ``end`` if none."""
    inside: cython.longlong
    while at < end:
        if buf[at] == OPEN:
            inside = _skip_space(buf, at + 1, end)
            if inside >= end or buf[inside] == QUOTE:
                return at
        at += 1
    return end


def scan(
    buf: cython.const[cython.uchar][::1],
    end: cython.longlong,
    is_last: cython.bint,
    base: cython.longlong,
    most: cython.longlong,
    anchor: cython.longlong,
    state: cython.longlong[::1],
    slots: cython.const[cython.short][::1],
    keys: cython.const[cython.longlong][:, ::1],
    pool: cython.const[cython.uchar][::1],
    stack: cython.uchar[::1],
    scratch: cython.uchar[::1],
    kinds: cython.uchar[:, ::1],
    starts: cython.int[:, ::1],
    lengths: cython.int[:, ::1],
    times: cython.longlong[:, :, ::1],
    time_states: cython.uchar[:, ::1],
    offsets: cython.longlong[::1],
    sizes: cython.longlong[::1],
    roots: cython.longlong[:, ::1],
) -> int:
    """Read on in ``buf[:end]``, whose first byte is byte ``base`` of the file.

    Fills a row per object of the events' array and one of ``roots`` per other member of the
    outermost object. ``anchor`` is the column by which an object is known when searching for
    the next one after damage; an unfinished object of more than ``most`` bytes is given up.
    Returns why it stops: MORE, FULL or DONE.
    """
    at: cython.longlong = state[S_AT]
    mode: cython.longlong = state[S_MODE]
    rows: cython.longlong = 0
    members_found: cython.longlong = 0
    reason: cython.int = MORE
    stop: cython.longlong
    again: cython.longlong
    key: cython.longlong
    key_length: cython.longlong
    value: cython.longlong
    after: cython.longlong
    column: cython.longlong
    status: cython.int
    kind: cython.int
    byte: cython.int
    escaped: cython.bint
    state[S_NEED] = 0
    with cython.nogil:
        while True:
            if mode == END:
                at = _skip_space(buf, at, end)
                if at >= end:
                    break
                byte = buf[at]
                if byte == OPEN or byte == OPEN_ARRAY:
                    mode = START
                elif byte == 0:
                    at += 1
                else:
                    _damage(state, base, at)
                    mode = SEARCH
                continue
            if mode == START:
                at = _skip_space(buf, at, end)
                if at >= end:
                    break
                byte = buf[at]
                if byte == 0xEF or byte == 0xBB or byte == 0xBF:  # the byte order mark
                    at += 1
                elif byte == OPEN_ARRAY:
                    state[S_ROOT] = IN_ARRAY
                    mode = EVENTS
                    at += 1
                elif byte == OPEN and state[S_ROOT] == IN_LINES:
                    mode = EVENTS
                elif byte == OPEN:
                    state[S_ROOT] = IN_OBJECT
                    mode = IN_ROOT
                    at += 1
                else:
                    _damage(state, base, at)
                    mode = SEARCH
                continue
            if mode == IN_ROOT:
                while at < end and (buf[at] <= 32 or buf[at] == COMMA):
                    at += 1
                if at >= end:
                    break
                byte = buf[at]
                if byte == CLOSE:
                    mode = END
                    at += 1
                    continue
                status, key, key_length, escaped, value = _key(buf, at, end)
                stop = value
                kind = ABSENT
                after = at
                if status == OK:
                    if buf[value] == OPEN_ARRAY and _is_events_key(buf, key, key_length):
                        mode = EVENTS
                        at = value + 1
                        continue
                    status, kind, value, stop, after = _value(buf, value, end, stack, is_last)
                if status == OK:
                    if members_found == roots.shape[0]:
                        # This member is read again.
                        reason = FULL
                        break
                    roots[members_found, 0], roots[members_found, 1] = key, key_length
                    roots[members_found, 2] = kind
                    roots[members_found, 3], roots[members_found, 4] = value, stop - value
                    members_found += 1
                    at = after
                    continue
                if status == BAD:
                    _damage(state, base, stop)
                    mode = SEARCH
                    at = stop
                    continue
                if end - at > most:
                    state[S_BIG] += 1
                    mode = SEARCH
                    at = value
                    continue
                if is_last:
                    state[S_CUT] = base + at
                    mode = SEARCH
                    at = value
                    continue
                state[S_NEED] = 1
                break
            if rows == kinds.shape[0]:
                reason = FULL
                break
            if mode == EVENTS:
                while at < end and (buf[at] <= 32 or buf[at] == COMMA):
                    at += 1
                if at >= end:
                    break
                byte = buf[at]
                if byte == CLOSE_ARRAY and state[S_ROOT] != IN_LINES:
                    mode = IN_ROOT if state[S_ROOT] == IN_OBJECT else END
                    at += 1
                    continue
                if byte != OPEN:
                    stop, kind = _token(buf, at, end)
                    if stop >= end and not is_last:
                        break
                    _damage(state, base, at)
                    # A literal is passed over; after anything else the nesting is not known.
                    if stop > at:
                        at = stop
                    else:
                        mode = SEARCH
                    continue
            else:
                at = _candidate(buf, at, end)
                if at >= end:
                    break
            for column in range(keys.shape[0]):
                kinds[rows, column] = ABSENT
            for column in range(times.shape[1]):
                time_states[rows, column] = 0
            status, stop, again = _walk(
                buf, at, end, slots, keys, pool, stack, scratch,
                rows, kinds, starts, lengths, times, time_states,
            )  # fmt: skip
            if status == OK:
                if mode == SEARCH and kinds[rows, anchor] != STRING:
                    at = stop
                    continue
                if state[S_CUT] >= 0:
                    # What the end seemed to cut was damaged before: whole events follow it.
                    state[S_DAMAGED] += 1
                    if state[S_FIRST] < 0 or state[S_FIRST] > state[S_CUT]:
                        state[S_FIRST] = state[S_CUT]
                    state[S_CUT] = -1
                state[S_TRIES] = 0
                mode = EVENTS
                offsets[rows] = base + at
                sizes[rows] = stop - at
                rows += 1
                at = stop
                continue
            if status == BAD:
                if mode == EVENTS:
                    _damage(state, base, at)
                    mode = SEARCH
                at = max(at + 1, again)
                continue
            if is_last or end - at > most:
                if is_last and state[S_CUT] < 0:
                    state[S_CUT] = base + at
                if mode == EVENTS:
                    if not is_last:
                        state[S_BIG] += 1
                    mode = SEARCH
                # It may have swallowed what follows: look inside, but not again and again.
                state[S_TRIES] += 1
                at = end if state[S_TRIES] > MOST_TRIES else at + 1
                continue
            state[S_NEED] = 1
            break
    if is_last and reason == MORE and at >= end:
        reason = DONE
    state[S_MODE], state[S_AT] = mode, at
    state[S_ROWS], state[S_ROOTS] = rows, members_found
    return reason


def members(
    buf: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    lengths: cython.const[cython.longlong][::1],
    stack: cython.uchar[::1],
    parents: cython.longlong[::1],
    kinds: cython.uchar[:, ::1],
    places: cython.longlong[:, ::1],
) -> int:
    """List the members of whole objects: kind and place of key and value.

    Returns how many there are, which may be more than there was room for.
    """
    count: cython.longlong = 0
    room: cython.longlong = parents.shape[0]
    row: cython.longlong
    at: cython.longlong
    end: cython.longlong
    key: cython.longlong
    key_length: cython.longlong
    value: cython.longlong
    stop: cython.longlong
    status: cython.int
    kind: cython.int
    escaped: cython.bint
    with cython.nogil:
        for row in range(starts.shape[0]):
            at = starts[row] + 1
            end = starts[row] + lengths[row]
            while True:
                while at < end and (buf[at] <= 32 or buf[at] == COMMA):
                    at += 1
                if at >= end:
                    break
                status, key, key_length, escaped, value = _key(buf, at, end)
                if status != OK:
                    break
                status, kind, value, stop, at = _value(buf, value, end, stack, False)
                if status != OK:
                    break
                if count < room:
                    parents[count] = row
                    kinds[count, 0] = ESCAPED if escaped else STRING
                    kinds[count, 1] = kind
                    places[count, 0], places[count, 1] = key, key_length
                    places[count, 2], places[count, 3] = value, stop - value
                count += 1
    return count
