"""Finds the records of a memory log in text and writes them in the log's binary form.

A record begins with a token and ends with its line, or where the next token is. So every byte is
looked at a fixed number of times, whatever the text holds.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.wire.log_prefix import NO_TIME, WITH_DATE, read_prefix
from peakline.wire.text_kernel import ROOM, scan_text
from peakline.wire.text_layout import (
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
    S_DEPTH,
    S_ERROR_AT,
    S_LIST,
    S_OUT,
    S_POSITION,
    S_REDACTED,
    S_UNKNOWN,
)
from peakline.wire.text_tokens import NOT_FOUND, identifier_end, look_up, skip_blanks
from peakline.wire.text_values import close_length, put_varint, starts_with

__all__ = [
    "C_CUT",
    "C_FLOOR",
    "C_MALFORMED",
    "C_OUT",
    "C_POSITION",
    "C_RECORDS",
    "C_UNDATED",
    "C_UNKNOWN_MESSAGES",
    "C_WIDTH",
    "C_WITH_TIME",
    "find_byte",
    "rfind_byte",
    "scan_log",
]

# Entries of the vector of positions and counts.
(
    C_POSITION,
    C_FLOOR,  # before this, nothing belongs to the next record's prefix
    C_OUT,
    C_RECORDS,
    C_CUT,
    C_MALFORMED,
    C_UNKNOWN_MESSAGES,
    C_WITH_TIME,
    C_UNDATED,
    C_WIDTH,
) = range(10)

U = np.uint64  # for indices: an unsigned one needs no check for counting from the end

_TOKEN = np.frombuffer(b"__LOG_MEMORY__", np.uint8)
_LENGTH = _TOKEN.size
_MESSAGE = tuple(b"MemoryLog")
"""How the names of the messages begin."""

_INNER = _TOKEN[2:-2]
"""Underscores are common in other text, capital letters are not."""
_SHIFTS = np.full(256, _INNER.size, np.uint8)
_SHIFTS[_INNER] = np.arange(_INNER.size - 1, -1, -1)
"""By how much the inner part can be shifted, given the byte under its end (Horspool); 0: its last
byte."""


@nb.njit(cache=True, nogil=True)
def find_byte(text, i, end, byte):  # type: ignore[no-untyped-def]
    """Where ``byte`` is found first, ``end`` if nowhere."""
    while i < end and text[U(i)] != byte:
        i += 1
    return i


@nb.njit(cache=True, nogil=True)
def rfind_byte(text, end, byte):  # type: ignore[no-untyped-def]
    """Where ``byte`` is found last before ``end``, -1 if nowhere."""
    i = end - 1
    while i >= 0 and text[U(i)] != byte:
        i -= 1
    return i


@nb.njit(nogil=True)
def _find_token(text, i, end):  # type: ignore[no-untyped-def]
    """Where the token is found first, ``end`` if nowhere."""
    last, stop = i + _LENGTH - 3, end - 2
    while True:
        # A loop of its own, as the next position does not depend on what was read here.
        while last < stop and _SHIFTS[text[U(last)]] == _INNER.size:
            last += _INNER.size
        if last >= stop:
            return end
        shift = np.int64(_SHIFTS[text[U(last)]])
        if shift == 0:
            same = True
            for k in range(_LENGTH):
                if text[U(last + 2 - k)] != _TOKEN[U(_LENGTH - 1 - k)]:
                    same = False
                    break
            if same:
                return last + 3 - _LENGTH
            shift = np.int64(_INNER.size)
        last += shift


@nb.njit(cache=True, nogil=True)
def scan_log(text, end, classes, fields, hashes, names, state, stack, seen, out, fixes, counts):  # type: ignore[no-untyped-def]
    """Scan whole lines from C_POSITION on; False when it stopped for more room in ``out``.

    ``fields`` and the other tables are those of MemoryLogRecord, with the names of the messages
    as aliases. ``state`` counts unknown fields and redacted values.
    """
    token = _find_token(text, counts[C_POSITION], end)
    while token < end:
        following = _find_token(text, token + _LENGTH, end)
        i = skip_blanks(text, token + _LENGTH, following, classes)
        name = i
        i = identifier_end(text, i, following, classes)
        name_end = i
        i = skip_blanks(text, i, following, classes)
        opening = i < following and (text[U(i)] == 123 or text[U(i)] == 60)
        field = np.int64(NOT_FOUND)
        if opening and starts_with(text, name, name_end, _MESSAGE):
            field = look_up(text, name, name_end, np.int64(0), hashes, names)
            if field == NOT_FOUND or fields[U(field * F_WIDTH + F_KIND)] != MESSAGE:
                counts[C_UNKNOWN_MESSAGES] += 1
                counts[C_FLOOR] = name_end
                token = following
                continue
        if field == NOT_FOUND:
            # The token alone, or a record cut in its name.
            if i >= following or text[U(i)] == 10:
                counts[C_CUT] += 1
            else:
                counts[C_MALFORMED] += 1
            counts[C_FLOOR] = name_end
            token = following
            continue

        first = counts[C_OUT]
        unknown, redacted = state[S_UNKNOWN], state[S_REDACTED]
        code, o = NEED_ROOM, first
        if out.size - o > 2 * ROOM:
            known, time, thread = read_prefix(text, counts[C_FLOOR], token)
            out[U(o)] = 0x0A
            o += 2
            if time != 0:
                out[U(o)] = 0x08
                o = put_varint(out, o + 1, U(time))
            if thread != 0:
                out[U(o)] = 0x10
                o = put_varint(out, o + 1, U(thread))
            tag = fields[U(field * F_WIDTH + F_TAG)]
            for k in range(fields[U(field * F_WIDTH + F_TAG_BYTES)]):
                out[U(o)] = np.uint8((tag >> (8 * k)) & 0xFF)
                o += 1
            content = o
            state[S_POSITION], state[S_OUT] = i + 1, o + 1
            state[S_DEPTH], state[S_LIST] = 0, NO_LIST
            stack[K_OWNER] = fields[U(field * F_WIDTH + F_CHILD)]
            stack[K_CLOSE] = 125 if text[U(i)] == 123 else 62
            stack[K_LIST] = NO_LIST
            for k in range(seen.shape[1]):
                seen[0, k] = 0
            code = scan_text(
                text, following, classes, fields, hashes, names, state, stack, seen, out, fixes
            )
        if code == DONE:
            o = close_length(out, content, state[S_OUT], fixes, np.int64(0))
            counts[C_OUT] = close_length(out, first + 1, o, fixes, np.int64(0))
            counts[C_RECORDS] += 1
            counts[C_WITH_TIME] += known != NO_TIME
            counts[C_UNDATED] += known != NO_TIME and known != WITH_DATE
            counts[C_FLOOR] = state[S_POSITION]
        else:
            state[S_UNKNOWN], state[S_REDACTED] = unknown, redacted
            if code == NEED_ROOM:
                counts[C_POSITION] = token
                return False
            counts[C_FLOOR] = token + _LENGTH
            # Cut by the end of its line, or by another record on the same one.
            at = state[S_ERROR_AT]
            line_end = find_byte(text, at, following, np.uint8(10))
            if at >= line_end or (line_end == following and following < end):
                counts[C_CUT] += 1
            else:
                counts[C_MALFORMED] += 1
        token = following
    counts[C_POSITION] = end
    return True
