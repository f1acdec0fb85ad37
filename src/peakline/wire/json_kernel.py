"""The kernels of `json_events`: objects of an array, members of an object."""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.wire.json_kinds import ABSENT, ARRAY, ESCAPED, OBJECT, STRING
from peakline.wire.json_walk import (
    BAD,
    CLOSE,
    CLOSE_ARRAY,
    COLON,
    COMMA,
    CUT,
    OK,
    OPEN,
    OPEN_ARRAY,
    QUOTE,
    skip_space,
    string_end,
    token,
    walk,
)

__all__ = ["DONE", "FULL", "MORE", "members", "scan"]

U = np.uint64  # also for indices: an unsigned one needs no check for counting from the end

# Why `scan` stops: it needs more bytes, or room for rows, or everything is read.
MORE, FULL, DONE = 0, 1, 2

# Entries of the state vector.
S_MODE = 0
S_AT = 1  # next byte to look at
S_ROOT = 2  # what holds the events: one of the IN constants
S_ROWS = 3
S_ROOTS = 4  # members of the outermost object in the output
S_DAMAGED = 5  # places
S_FIRST = 6  # offset of the first, -1 when there is none
S_CUT = 7  # offset of the object that the end cuts, -1 when there is none
S_TRIES = 8  # unfinished objects that the search after the end has passed
S_BIG = 9  # objects given up because of their size
S_NEED = 10  # 1 when what lies from S_AT on is the beginning of something unfinished
S_WIDTH = 11

IN_ARRAY, IN_OBJECT, IN_LINES = 0, 1, 2

# Modes.
START, IN_ROOT, EVENTS, SEARCH, END = range(5)

_MOST_TRIES = 8
"""Unfinished objects in which whole ones are looked for."""

_EVENTS_KEY = np.frombuffer(b"traceEvents", np.uint8)


@nb.njit(cache=True, nogil=True)
def _is_events_key(buf, start, length):  # type: ignore[no-untyped-def]
    k = 0
    while k < min(length, _EVENTS_KEY.size) and buf[U(start + k)] == _EVENTS_KEY[U(k)]:
        k += 1
    return k == length == _EVENTS_KEY.size


@nb.njit(forceinline=True)
def _key(buf, at, end):  # type: ignore[no-untyped-def]
    """The key that begins at ``at``: status, first byte, length, if it escapes, and its value."""
    none = np.int64(0)
    if buf[U(at)] != QUOTE:
        return BAD, at, none, False, at
    stop, escaped = string_end(buf, at + 1, end)
    if stop < 0:
        return CUT, at, none, False, at
    value = skip_space(buf, stop + 1, end)
    if value < end and buf[U(value)] != COLON:
        return BAD, at + 1, none, False, value
    value = skip_space(buf, value + 1, end)
    return (CUT if value >= end else OK), at + 1, stop - at - 1, escaped, value


@nb.njit(cache=True, nogil=True)
def _value(buf, at, end, stack, is_last):  # type: ignore[no-untyped-def]
    """The value at ``at``: status, kind, first byte, end, and where to read on."""
    first = buf[U(at)]
    if first == QUOTE:
        stop, escaped = string_end(buf, at + 1, end)
        if stop < 0:
            return CUT, ABSENT, at, at, at
        return OK, (ESCAPED if escaped else STRING), at + 1, stop, stop + 1
    if first == OPEN or first == OPEN_ARRAY:
        # Nothing inside is wanted.
        no_bytes, no_ints = np.zeros(0, np.uint8), np.zeros(0, np.int32)
        status, stop, _ = walk(
            buf, at, end, np.zeros(0, np.int16), np.zeros((0, 6), np.int64), no_bytes, stack,
            no_bytes, no_bytes, no_ints, no_ints, np.zeros((0, 2), np.int64), no_bytes,
        )  # fmt: skip
        return status, (OBJECT if first == OPEN else ARRAY), at, stop, stop
    stop, kind = token(buf, at, end)
    if stop >= end and not is_last:
        return CUT, ABSENT, at, stop, stop
    return (BAD if kind == ABSENT else OK), kind, at, stop, stop


@nb.njit(forceinline=True)
def _damage(state, base, at):  # type: ignore[no-untyped-def]
    state[S_DAMAGED] += 1
    if state[S_FIRST] < 0:
        state[S_FIRST] = base + at


@nb.njit(forceinline=True)
def _candidate(buf, at, end):  # type: ignore[no-untyped-def]
    """The next brace that a key follows, or one at the end of the buffer; ``end`` if none."""
    while at < end:
        if buf[U(at)] == OPEN:
            inside = skip_space(buf, at + 1, end)
            if inside >= end or buf[U(inside)] == QUOTE:
                return at
        at += 1
    return end


@nb.njit(cache=True, nogil=True)
def scan(  # type: ignore[no-untyped-def]
    buf, end, is_last, base, most, anchor, state, slots, keys, pool, stack, scratch,
    kinds, starts, lengths, times, time_states, offsets, sizes, roots,
):  # fmt: skip
    """Read on in ``buf[:end]``, whose first byte is byte ``base`` of the file.

    Fills a row per object of the events' array and one of ``roots`` per other member of the
    outermost object. ``anchor`` is the column by which an object is known when searching for
    the next one after damage; an unfinished object of more than ``most`` bytes is given up.
    """
    at = state[S_AT]
    mode = state[S_MODE]
    rows = np.int64(0)
    members_found = np.int64(0)
    reason = MORE
    state[S_NEED] = 0
    while True:
        if mode == END:
            at = skip_space(buf, at, end)
            if at >= end:
                break
            byte = buf[U(at)]
            if byte == OPEN or byte == OPEN_ARRAY:
                mode = START
            elif byte == 0:
                at += 1
            else:
                _damage(state, base, at)
                mode = SEARCH
            continue
        if mode == START:
            at = skip_space(buf, at, end)
            if at >= end:
                break
            byte = buf[U(at)]
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
            while at < end and (buf[U(at)] <= 32 or buf[U(at)] == COMMA):
                at += 1
            if at >= end:
                break
            byte = buf[U(at)]
            if byte == CLOSE:
                mode = END
                at += 1
                continue
            status, key, key_length, _, value = _key(buf, at, end)
            stop = value
            kind = ABSENT
            after = at
            if status == OK:
                if buf[U(value)] == OPEN_ARRAY and _is_events_key(buf, key, key_length):
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
            while at < end and (buf[U(at)] <= 32 or buf[U(at)] == COMMA):
                at += 1
            if at >= end:
                break
            byte = buf[U(at)]
            if byte == CLOSE_ARRAY and state[S_ROOT] != IN_LINES:
                mode = IN_ROOT if state[S_ROOT] == IN_OBJECT else END
                at += 1
                continue
            if byte != OPEN:
                stop, _ = token(buf, at, end)
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
        status, stop, again = walk(
            buf, at, end, slots, keys, pool, stack, scratch,
            kinds[rows], starts[rows], lengths[rows], times[rows], time_states[rows],
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
            at = max(again, at + 1)
            continue
        if is_last or end - at > most:
            if is_last and state[S_CUT] < 0:
                state[S_CUT] = base + at
            if mode == EVENTS:
                state[S_BIG] += not is_last
                mode = SEARCH
            # It may have swallowed what follows: look inside, but not again and again.
            state[S_TRIES] += 1
            at = end if state[S_TRIES] > _MOST_TRIES else at + 1
            continue
        state[S_NEED] = 1
        break
    if is_last and reason == MORE and at >= end:
        reason = DONE
    state[S_MODE], state[S_AT] = mode, at
    state[S_ROWS], state[S_ROOTS] = rows, members_found
    return reason


@nb.njit(cache=True, nogil=True)
def members(buf, starts, lengths, stack, parents, kinds, places):  # type: ignore[no-untyped-def]
    """List the members of whole objects: kind and place of key and value.

    Returns how many there are, which may be more than there was room for.
    """
    count = np.int64(0)
    room = parents.size
    for row in range(starts.size):
        at = starts[U(row)] + 1
        end = starts[U(row)] + lengths[U(row)]
        while True:
            while at < end and (buf[U(at)] <= 32 or buf[U(at)] == COMMA):
                at += 1
            if at >= end:
                break
            status, key, key_length, escaped, value = _key(buf, at, end)
            if status != OK:
                break
            status, kind, value, stop, at = _value(buf, value, end, stack, is_last=False)
            if status != OK:
                break
            if count < room:
                parents[U(count)] = row
                kinds[U(count), 0] = ESCAPED if escaped else STRING
                kinds[U(count), 1] = kind
                places[U(count), 0], places[U(count), 1] = key, key_length
                places[U(count), 2], places[U(count), 3] = value, stop - value
            count += 1
    return count
