"""The one scanner for protobuf text: it writes the wire bytes of the same message.

Guided by the tables of `peakline.wire.text_layout`, so that every message is read by this one
function. A sub-message's length is not known before its end: one byte is left for it, and a
longer one moves the content up. Positions and open messages live in arrays, so that a scan can
stop (for a larger output, for instance) and go on where it was.

Nothing outside ``text[:end]`` is read, every step moves on in the text, and nothing is written
without room for it: no input can crash, hang, or write outside.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.wire.text_layout import (
    BLANK,
    BOOL,
    DIGIT,
    DONE,
    DOUBLE,
    ENUM,
    F_CHILD,
    F_CLOSED,
    F_IMPLICIT,
    F_KIND,
    F_REPEATED,
    F_SLOT,
    F_TAG,
    F_TAG_BYTES,
    F_WIDTH,
    FLOAT,
    IDENTIFIER_START,
    K_AT,
    K_CLOSE,
    K_LIST,
    K_OWNER,
    K_WIDTH,
    MAX_DEPTH,
    MESSAGE,
    NEED_FIXES,
    NEED_ROOM,
    NO_COLON,
    NO_ENUM,
    NO_LIST,
    NO_NAME,
    NO_OPENING,
    NO_SEPARATOR,
    NOT_ENDED,
    NOT_REPEATED,
    OUT_OF_RANGE,
    S_DEPTH,
    S_ERROR_AT,
    S_FIXES,
    S_LIST,
    S_OUT,
    S_POSITION,
    S_REDACTED,
    S_UNKNOWN,
    S_UNKNOWN_AT,
    S_UNKNOWN_LENGTH,
    SKIPPED,
    SKIPPED_LIST,
    STRING,
    TOO_DEEP,
    TWICE,
    WRONG_END,
    X_LENGTH,
    X_NEGATIVE,
    X_OUT,
    X_SIZE,
    X_START,
    X_WIDTH,
)
from peakline.wire.text_strings import (
    copy_string,
)
from peakline.wire.text_tokens import (
    NOT_FOUND,
    identifier_end,
    is_blank,
    look_up,
    read_float,
    read_integer,
    skip_blanks,
    skip_value,
)
from peakline.wire.text_values import (
    close_length,
    in_range,
    is_value,
    put_float,
    put_integer,
    put_little,
    put_varint,
    read_bool,
    starts_with,
)

__all__ = ["ROOM", "scan_text"]

U = np.uint64  # for indices: an unsigned one needs no check for counting from the end
ROOM = 64
"""Bytes that one field needs at most, the content of strings aside."""

_REDACTED = tuple(b"[REDACTED]")
_MARKER = tuple(b"goo.gle/")


@nb.njit(cache=True, nogil=True)
def scan_text(text, end, classes, fields, hashes, names, state, stack, seen, out, fixes):  # type: ignore[no-untyped-def]
    """Scan from ``state`` on until the root ends; the reason why it stopped.

    ``seen`` holds presence bits, one row per open message. ``fixes`` takes the numbers whose
    digits need Python's conversion; S_FIXES counts them, and the caller applies them.
    """
    i, o, depth = state[S_POSITION], state[S_OUT], state[S_DEPTH]
    open_list = state[S_LIST]
    owner, close = stack[U(depth * K_WIDTH + K_OWNER)], stack[U(depth * K_WIDTH + K_CLOSE)]
    limit, most_fixes = out.size - ROOM, fixes.size // X_WIDTH
    words = seen.shape[1]
    code, error_at = DONE, np.int64(-1)
    while True:
        # What is read from here on is read again after a stop for room.
        mark_i, mark_o = i, o
        if o > limit or state[S_FIXES] >= most_fixes:
            code = NEED_ROOM if o > limit else NEED_FIXES
            break
        if i < end and text[U(i)] == 32:
            i += 1
        if is_blank(text, i, end, classes):
            i = skip_blanks(text, i, end, classes)
        field, value = open_list, True
        name_at = i
        if open_list == NO_LIST:
            if i >= end:
                if depth > 0 or close < 256:
                    code, error_at = NOT_ENDED, i
                break
            c = np.int64(text[U(i)])
            if c == close:
                # The message ends here.
                i += 1
                if depth == 0:
                    break
                if owner != SKIPPED:
                    o = close_length(
                        out, stack[U(depth * K_WIDTH + K_AT)], o, fixes, state[S_FIXES]
                    )
                open_list = stack[U(depth * K_WIDTH + K_LIST)]
                depth -= 1
                owner = stack[U(depth * K_WIDTH + K_OWNER)]
                close = stack[U(depth * K_WIDTH + K_CLOSE)]
                value = False
            else:
                # A field's name.
                field = np.int64(SKIPPED_LIST)
                if classes[c] & IDENTIFIER_START:
                    i = identifier_end(text, i + 1, end, classes)
                    if owner != SKIPPED:
                        found = look_up(text, name_at, i, owner, hashes, names)
                        if found != NOT_FOUND:
                            field = found
                        elif i - name_at == 3 and starts_with(text, name_at, end, _MARKER):
                            # A mark that debug strings are no stable format; not a field.
                            i = identifier_end(text, name_at + len(_MARKER), end, classes)
                            continue
                elif classes[c] & DIGIT:
                    i = identifier_end(text, i, end, classes)
                elif c == 91:
                    # An extension, or the type in an Any: what it is cannot be known.
                    while i < end and text[U(i)] != 93:
                        byte = text[U(i)]
                        if byte < 32 and not classes[byte] & BLANK:
                            break
                        if byte == 34 or byte == 35 or byte == 60 or byte == 123 or byte == 125:
                            break
                        i += 1
                    if i >= end or text[U(i)] != 93:
                        code, error_at = NO_NAME, name_at
                        break
                    i += 1
                else:
                    code, error_at = NO_NAME, i
                    if c == 125 or c == 62:  # } >
                        code = WRONG_END
                    break
                name_end = i
                if is_blank(text, i, end, classes):
                    i = skip_blanks(text, i, end, classes)
                colon = i < end and text[U(i)] == 58
                if colon:
                    i += 1
                    if i < end and text[U(i)] == 32:
                        i += 1
                    if is_blank(text, i, end, classes):
                        i = skip_blanks(text, i, end, classes)
                opening = i < end and (text[U(i)] == 123 or text[U(i)] == 60)
                listed = i < end and text[U(i)] == 91
                if field == SKIPPED_LIST:
                    if owner != SKIPPED:
                        if state[S_UNKNOWN] == 0:
                            state[S_UNKNOWN_AT] = name_at
                            state[S_UNKNOWN_LENGTH] = name_end - name_at
                        state[S_UNKNOWN] += 1
                    if not colon and not opening and not listed:
                        code, error_at = NO_COLON, i
                        break
                else:
                    at = field * F_WIDTH
                    if not colon and fields[U(at + F_KIND)] != MESSAGE:
                        code, error_at = NO_COLON, i
                        break
                    slot = fields[U(at + F_SLOT)]
                    if slot >= 0 and seen[depth, slot >> 6] >> U(slot & 63) & U(1):
                        code, error_at = TWICE, name_at
                        break
                if listed and starts_with(text, i, end, _REDACTED):
                    state[S_REDACTED] += 1
                    i += len(_REDACTED)
                    value = False
                elif listed:
                    if field >= 0 and not fields[U(field * F_WIDTH + F_REPEATED)]:
                        code, error_at = NOT_REPEATED, i
                        break
                    i = skip_blanks(text, i + 1, end, classes)
                    if i < end and text[U(i)] == 93:
                        i += 1
                        value = False
                    else:
                        open_list = field
                        continue
        elif i < end and text[U(i)] == 91 and starts_with(text, i, end, _REDACTED):
            state[S_REDACTED] += 1
            i += len(_REDACTED)
            value = False

        if value:
            kind = fields[U(field * F_WIDTH + F_KIND)] if field >= 0 else np.int64(STRING)
            if i < end and (text[U(i)] == 123 or text[U(i)] == 60):
                if kind == MESSAGE or field < 0:
                    # A message begins.
                    if depth + 1 >= MAX_DEPTH:
                        code, error_at = TOO_DEEP, i
                        break
                    child = np.int64(SKIPPED)
                    if field >= 0:
                        at = field * F_WIDTH
                        child = fields[U(at + F_CHILD)]
                        slot = fields[U(at + F_SLOT)]
                        if slot >= 0:
                            seen[depth, slot >> 6] |= U(1) << U(slot & 63)
                        put_little(out, o, U(fields[U(at + F_TAG)]), 8)
                        o += fields[U(at + F_TAG_BYTES)] + 1
                    close = np.int64(125 if text[U(i)] == 123 else 62)
                    owner = child
                    i += 1
                    depth += 1
                    stack[U(depth * K_WIDTH + K_OWNER)] = owner
                    stack[U(depth * K_WIDTH + K_CLOSE)] = close
                    stack[U(depth * K_WIDTH + K_AT)] = o - 1
                    stack[U(depth * K_WIDTH + K_LIST)] = open_list
                    open_list = np.int64(NO_LIST)
                    for k in range(words):
                        seen[depth, k] = U(0)
                    continue
            elif kind == MESSAGE:
                code, error_at = NO_OPENING, i
                break
            if field < 0:
                code, i = skip_value(text, i, end, classes)
                if code != DONE:
                    error_at = i
                    break
            else:
                at = field * F_WIDTH
                put_little(out, o, U(fields[U(at + F_TAG)]), 8)
                o += fields[U(at + F_TAG_BYTES)]
                given = True  # whether the value differs from an absent one
                if kind == STRING:
                    first = o
                    code, i, o = copy_string(text, i, end, classes, out, o + 1)
                    if code == NEED_ROOM:
                        break
                    given = o > first + 1
                    o = close_length(out, first, o, fixes, np.int64(0))
                elif kind == ENUM and i < end and classes[text[U(i)]] & IDENTIFIER_START:
                    value_at = i
                    i = identifier_end(text, i, end, classes)
                    enum = fields[U(at + F_CHILD)]
                    number = look_up(text, value_at, i, enum, hashes, names)
                    if i < end and (text[U(i)] == 43 or text[U(i)] == 45):
                        code, i = NO_ENUM, value_at
                    elif number == NOT_FOUND:
                        # A newer value. In a list it keeps its place, as zero.
                        if state[S_UNKNOWN] == 0:
                            state[S_UNKNOWN_AT] = value_at
                            state[S_UNKNOWN_LENGTH] = i - value_at
                        state[S_UNKNOWN] += 1
                        if fields[U(at + F_REPEATED)]:
                            o = put_varint(out, o, U(0))
                        else:
                            o, given = mark_o, False
                    else:
                        given = number != 0
                        o = put_varint(out, o, U(number))
                elif kind == BOOL:
                    code, i, truth = read_bool(text, i, end, classes)
                    given = truth != U(0)
                    o = put_varint(out, o, truth)
                elif kind == FLOAT or kind == DOUBLE:
                    code, i, number, negative, digits, length = read_float(text, i, end, classes)
                    given = number != 0.0 or negative
                    fix, value_at = state[S_FIXES] * X_WIDTH, o
                    o = put_float(out, o, kind, number, negative, fixes, fix)
                    if length > 0:
                        fixes[U(fix + X_OUT)] = value_at
                        fixes[U(fix + X_START)] = digits
                        fixes[U(fix + X_LENGTH)] = length
                        fixes[U(fix + X_SIZE)] = 8 if kind == DOUBLE else 4
                        fixes[U(fix + X_NEGATIVE)] = 1 if negative else 0
                        state[S_FIXES] += 1
                else:
                    value_at = i
                    code, i, magnitude, negative = read_integer(text, i, end, classes)
                    if code == DONE and not in_range(kind, magnitude, negative):
                        code, i = OUT_OF_RANGE, value_at
                    elif code == DONE and kind == ENUM:
                        number = np.int64(U(0) - magnitude if negative else magnitude)
                        if fields[U(at + F_CLOSED)] and not is_value(
                            fields[U(at + F_CHILD)], number, hashes
                        ):
                            code, i = NO_ENUM, value_at
                    given = magnitude != U(0)
                    o = put_integer(out, o, kind, magnitude, negative)
                if code != DONE:
                    error_at = i
                    break
                slot = fields[U(at + F_SLOT)]
                if slot >= 0:
                    if given or not fields[U(at + F_IMPLICIT)]:
                        seen[depth, slot >> 6] |= U(1) << U(slot & 63)
                    else:
                        o = mark_o

        # Behind a value.
        if i < end and text[U(i)] == 32:
            i += 1
        if is_blank(text, i, end, classes):
            i = skip_blanks(text, i, end, classes)
        if open_list != NO_LIST:
            if i < end and text[U(i)] == 44:
                i += 1
                continue
            if i >= end or text[U(i)] != 93:
                code, error_at = NO_SEPARATOR, i
                break
            i = skip_blanks(text, i + 1, end, classes)
            open_list = np.int64(NO_LIST)
        if i < end and (text[U(i)] == 44 or text[U(i)] == 59):
            i += 1

    if code == NEED_ROOM or code == NEED_FIXES:
        i, o = mark_i, mark_o
    state[S_POSITION], state[S_OUT], state[S_DEPTH], state[S_LIST] = i, o, depth, open_list
    state[S_ERROR_AT] = error_at
    return code
