"""Finds the records of a memory log in text and writes them in the log's binary form.

A record begins with a token and ends with its line, or where the next token is. So every byte is
looked at a fixed number of times, whatever the text holds.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import unsigned64, word64
    from peakline.kernels.log_prefix import read_prefix
    from peakline.kernels.text_layout import (
        C_CUT,
        C_FLOOR,
        C_MALFORMED,
        C_OUT,
        C_POSITION,
        C_RECORDS,
        C_UNDATED,
        C_UNKNOWN_MESSAGES,
        C_WITH_TIME,
        DONE,
        F_CHILD,
        F_KIND,
        F_TAG,
        F_TAG_BYTES,
        F_WIDTH,
        K_CLOSE,
        K_LIST,
        K_OWNER,
        MESSAGE,
        NEED_ROOM,
        NO_LIST,
        NO_TIME,
        ROOM,
        S_DEPTH,
        S_ERROR_AT,
        S_LIST,
        S_OUT,
        S_POSITION,
        S_REDACTED,
        S_UNKNOWN,
        WITH_DATE,
    )
    from peakline.kernels.text_scan import (
        close_length,
        identifier_end,
        look_up,
        put_varint,
        scan_message,
        skip_blanks,
    )

__all__ = ["find_byte", "rfind_byte", "scan_log"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find(
    text: cython.const[cython.uchar][::1],
    i: cython.longlong,
    end: cython.longlong,
    byte: cython.uchar,
) -> cython.longlong:
    """See `find_byte`."""
    while i < end and text[i] != byte:
        i += 1
    return i


def find_byte(
    text: cython.const[cython.uchar][::1],
    i: cython.longlong,
    end: cython.longlong,
    byte: cython.uchar,
) -> int:
    """Where ``byte`` is found first in ``text[i:end]``, ``end`` if nowhere."""
    with cython.nogil:
        i = _find(text, i, end, byte)
    return i


def rfind_byte(
    text: cython.const[cython.uchar][::1], end: cython.longlong, byte: cython.uchar
) -> int:
    """Where ``byte`` is found last before ``end``, -1 if nowhere."""
    i: cython.longlong = end - 1
    with cython.nogil:
        while i >= 0 and text[i] != byte:
            i -= 1
    return i


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find_token(
    text: cython.const[cython.uchar][::1],
    i: cython.longlong,
    end: cython.longlong,
    shifts: cython.const[cython.uchar][::1],
) -> cython.longlong:
    """Where the token, ``__LOG_MEMORY__``, is found first, ``end`` if nowhere.

    ``shifts`` says by how much the ten bytes of its inner part can be shifted, given the byte under
    its end (Horspool); 0 for its last byte. Underscores are common in other text, capital letters
    are not.
    """
    first: cython.ulonglong = 0x454D5F474F4C5F5F  # __LOG_ME
    second: cython.ulonglong = 0x5F5F59524F4D454D  # MEMORY__
    last: cython.longlong = i + 11
    stop: cython.longlong = end - 2
    shift: cython.longlong
    while True:
        # A loop of its own, as the next position does not depend on what was read here.
        while last < stop and shifts[text[last]] == 10:
            last += 10
        if last >= stop:
            return end
        shift = shifts[text[last]]
        if shift == 0:
            if word64(text, last - 11) == first and word64(text, last - 5) == second:
                return last - 11
            shift = 10
        last += shift


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_message(
    text: cython.const[cython.uchar][::1], i: cython.longlong, end: cython.longlong
) -> cython.bint:
    """Whether a name of a message stands at ``i``: all begin with ``MemoryLog``."""
    beginning: cython.ulonglong = 0x6F4C79726F6D654D
    return end - i >= 9 and word64(text, i) == beginning and text[i + 8] == 103


def scan_log(
    text: cython.const[cython.uchar][::1],
    end: cython.longlong,
    classes: cython.const[cython.uchar][::1],
    shifts: cython.const[cython.uchar][::1],
    fields: cython.const[cython.longlong][::1],
    hashes: cython.const[cython.longlong][::1],
    names: cython.const[cython.uchar][::1],
    state: cython.longlong[::1],
    stack: cython.longlong[::1],
    seen: cython.ulonglong[:, ::1],
    out: cython.uchar[::1],
    fixes: cython.longlong[::1],
    counts: cython.longlong[::1],
    prefix: cython.longlong[::1],
) -> bool:
    """Scan whole lines from C_POSITION on; False when it stopped for more room in ``out``.

    ``fields`` and the other tables are those of MemoryLogRecord, with the names of the messages
    as aliases; ``shifts`` is for the search of the token (a number per byte). ``state`` counts
    unknown fields and redacted values. ``prefix`` is room for three numbers.
    """
    token: cython.longlong
    following: cython.longlong
    i: cython.longlong
    name: cython.longlong
    name_end: cython.longlong
    field: cython.longlong
    first: cython.longlong
    content: cython.longlong
    o: cython.longlong
    k: cython.longlong
    at: cython.longlong
    line_end: cython.longlong
    unknown: cython.longlong
    redacted: cython.longlong
    tag: cython.longlong
    missing: cython.longlong = -0x4000000000000000
    code: cython.int
    opening: cython.bint
    whole: cython.bint = True
    with cython.nogil:
        token = _find_token(text, counts[C_POSITION], end, shifts)
        while token < end:
            following = _find_token(text, token + 14, end, shifts)
            i = skip_blanks(text, token + 14, following, classes)
            name = i
            i = identifier_end(text, i, following, classes)
            name_end = i
            i = skip_blanks(text, i, following, classes)
            opening = i < following and (text[i] == 123 or text[i] == 60)
            field = missing
            if opening and _is_message(text, name, name_end):
                field = look_up(text, name, name_end, 0, hashes, names, missing)
                if field == missing or fields[field * F_WIDTH + F_KIND] != MESSAGE:
                    counts[C_UNKNOWN_MESSAGES] += 1
                    counts[C_FLOOR] = name_end
                    token = following
                    continue
            if field == missing:
                # The token alone, or a record cut in its name.
                if i >= following or text[i] == 10:
                    counts[C_CUT] += 1
                else:
                    counts[C_MALFORMED] += 1
                counts[C_FLOOR] = name_end
                token = following
                continue

            first = counts[C_OUT]
            content = first
            unknown, redacted = state[S_UNKNOWN], state[S_REDACTED]
            code, o = NEED_ROOM, first
            if out.shape[0] - o > 2 * ROOM:
                read_prefix(text, counts[C_FLOOR], token, prefix)
                out[o] = 0x0A
                o += 2
                if prefix[1] != 0:
                    out[o] = 0x08
                    o = put_varint(out, o + 1, unsigned64(prefix[1]))
                if prefix[2] != 0:
                    out[o] = 0x10
                    o = put_varint(out, o + 1, unsigned64(prefix[2]))
                tag = fields[field * F_WIDTH + F_TAG]
                for k in range(fields[field * F_WIDTH + F_TAG_BYTES]):
                    out[o] = (tag >> (8 * k)) & 0xFF
                    o += 1
                content = o
                state[S_POSITION], state[S_OUT] = i + 1, o + 1
                state[S_DEPTH], state[S_LIST] = 0, NO_LIST
                stack[K_OWNER] = fields[field * F_WIDTH + F_CHILD]
                stack[K_CLOSE] = 125 if text[i] == 123 else 62
                stack[K_LIST] = NO_LIST
                for k in range(seen.shape[1]):
                    seen[0, k] = 0
                code = scan_message(
                    text, following, classes, fields, hashes, names, state, stack, seen, out, fixes
                )
            if code == DONE:
                o = close_length(out, content, state[S_OUT], fixes, 0)
                counts[C_OUT] = close_length(out, first + 1, o, fixes, 0)
                counts[C_RECORDS] += 1
                if prefix[0] != NO_TIME:
                    counts[C_WITH_TIME] += 1
                    if prefix[0] != WITH_DATE:
                        counts[C_UNDATED] += 1
                counts[C_FLOOR] = state[S_POSITION]
            else:
                state[S_UNKNOWN], state[S_REDACTED] = unknown, redacted
                if code == NEED_ROOM:
                    counts[C_POSITION] = token
                    whole = False
                    break
                counts[C_FLOOR] = token + 14
                # Cut by the end of its line, or by another record on the same one.
                at = state[S_ERROR_AT]
                line_end = _find(text, at, following, 10)
                if at >= line_end or (line_end == following and following < end):
                    counts[C_CUT] += 1
                else:
                    counts[C_MALFORMED] += 1
            token = following
    if whole:
        counts[C_POSITION] = end
    return whole
