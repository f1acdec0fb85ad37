"""The events of an XLine, as columns: what `wire_walk` finds, without a table to guide it.

Whatever a profiler does not write (groups, tags of more than a byte, another wire type, a length
that reaches too far) ends the decoding before the event that has it: the general walk takes over
there, and says what is damaged.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64, lowest_bit, signed64, word64
    from peakline.kernels.line_layout import (
        A_EVENTS,
        A_MEMORY,
        A_POSITION,
        A_STATS,
        ALL_STATS,
        DONE,
        F_DISPLAY,
        F_DISPLAY_LENGTH,
        F_ID,
        F_NAME,
        F_NAME_LENGTH,
        F_TIME,
        FULL,
        NO_EVENTS,
        NO_STATS,
        NOT_WANTED,
        ODD,
        OPEN,
        SHORT,
    )
    from peakline.kernels.xplane_numbers import K_ALLOCATION, K_DEALLOCATION

__all__ = ["decode"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _slowly(
    buf: cython.const[cython.uchar][::1], i: cython.longlong, end: cython.longlong
) -> tuple[cython.ulonglong, cython.longlong]:
    """As `_number`, byte by byte."""
    bits: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    while i < end and shift < 70:
        byte = buf[i]
        i += 1
        bits = low64(bits | (byte & 0x7F) << shift)
        if byte < 0x80:
            return bits, i
        shift += 7
    return bits, end + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _number(
    buf: cython.const[cython.uchar][::1], i: cython.longlong, end: cython.longlong
) -> tuple[cython.ulonglong, cython.longlong]:
    """The number at ``i``, and where it ends: behind ``end`` if it does not end before, or takes
    more than ten bytes.

    Where there is room, eight bytes at once: a branch per byte is guessed wrong too often.
    """
    bits: cython.ulonglong
    stops: cython.ulonglong
    byte: cython.ulonglong
    highs: cython.ulonglong = 0x80808080
    if i < end and buf[i] < 0x80:
        bits = buf[i]
        return bits, i + 1
    if i + 10 > buf.shape[0]:
        return _slowly(buf, i, end)
    highs |= highs << 32
    bits = word64(buf, i)
    stops = ~bits & highs
    if stops != 0:
        # The bits up to the first byte that is the last of the number.
        stops &= low64(0 - stops)
        bits &= low64(stops << 1) - 1
        i += (lowest_bit(stops) + 1) >> 3
    else:
        i += 8
    # Seven bits of every byte, side by side.
    highs = 0x007F007F
    highs |= highs << 32
    bits = (bits & highs) | (bits >> 1 & highs << 7)
    highs = 0x00003FFF
    highs |= highs << 32
    bits = (bits & highs) | (bits >> 2 & highs << 14)
    highs = 0x0FFFFFFF
    bits = (bits & highs) | (bits >> 4 & highs << 28)
    if stops == 0:
        byte = buf[i]
        i += 1
        bits |= (byte & 0x7F) << 56
        if byte >= 0x80:
            byte = buf[i]
            i += 1
            bits = low64(bits | (byte & 0x7F) << 63)
            if byte >= 0x80:
                i = end + 1
    return bits, i if i <= end else end + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _after_unknown(
    buf: cython.const[cython.uchar][::1],
    tag: cython.longlong,
    i: cython.longlong,
    end: cython.longlong,
) -> cython.longlong:
    """Where a field that nobody requests ends; behind ``end`` if that cannot be said."""
    size: cython.ulonglong
    room: cython.ulonglong = end - i
    if 8 <= tag < 0x80:
        if tag & 7 == 0:
            size, i = _number(buf, i, end)
            return i
        if tag & 7 == 1 and room >= 8:
            return i + 8
        if tag & 7 == 5 and room >= 4:
            return i + 4
        if tag & 7 == 2:
            size, i = _number(buf, i, end)
            if i <= end:
                room = end - i
                if size <= room:
                    return i + signed64(size)
    return end + 1


def decode(
    buf: cython.const[cython.uchar][::1],
    base: cython.longlong,
    have: cython.longlong,
    end: cython.longlong,
    kind_of: cython.const[cython.uchar][::1],
    roles: cython.const[cython.uchar][::1],
    which: cython.longlong,
    at: cython.longlong[::1],
    facts: cython.longlong[::1],
    begins: cython.longlong[::1],
    ids: cython.longlong[::1],
    kinds: cython.uchar[::1],
    case: cython.uchar[::1],
    bits: cython.longlong[::1],
    duration: cython.longlong[::1],
    stat_event: cython.int[::1],
    stat_id: cython.longlong[::1],
    stat_role: cython.uchar[::1],
    stat_case: cython.uchar[::1],
    stat_bits: cython.longlong[::1],
    stat_length: cython.int[::1],
) -> int:
    """Decode the fields of one line from ``buf[at[A_POSITION]]`` on.

    ``buf[:have]`` are the bytes from offset ``base`` of the file; the line ends at ``end``, which
    may lie behind them. Returns DONE at the end of the line, SHORT where a field is not there as a
    whole, FULL when the columns are, and ODD before a field that only the general walk can judge.

    An event's row: its metadata's id, which ``kind_of`` makes a kind of (0 where it is no index),
    field number and value of the oneof ``data`` (0 and 0 where not set), and the duration. Unless
    ``begins`` is empty it gets the offset in the file at which each event's field begins. A stat's
    row: its event's, its id, the role that ``roles`` makes of it, and field number, value and
    length of the oneof ``value``; texts and bytes are offsets in the file.

    ``which`` says whether events are passed over (NO_EVENTS), or their stats (NO_STATS), or whether
    stats are read where their role is not NOT_WANTED (SOME_STATS), or all (ALL_STATS).

    ``at`` counts rows of events and stats, and events that allocate or free memory; in and out.
    ``facts`` gets what the line says about itself.
    """
    i: cython.longlong
    row: cython.longlong
    stat: cython.longlong
    memory: cython.longlong
    field: cython.longlong
    limit: cython.longlong
    event_end: cython.longlong
    stat_end: cython.longlong
    first_stat: cython.longlong
    tag: cython.longlong
    number: cython.ulonglong
    room: cython.ulonglong
    value: cython.ulonglong
    stat_number: cython.longlong
    length: cython.longlong
    value_case: cython.uchar
    role: cython.uchar
    kind: cython.uchar
    event_id: cython.longlong
    event_case: cython.uchar
    event_bits: cython.longlong
    event_duration: cython.longlong
    rows: cython.longlong = ids.shape[0]
    stat_rows: cython.longlong = stat_event.shape[0]
    known_ids: cython.longlong = kind_of.shape[0]
    known_stats: cython.longlong = roles.shape[0]
    with_begins: cython.bint = begins.shape[0] > 0
    code: cython.int = OPEN
    with cython.nogil:
        i, row, stat, memory = at[A_POSITION], at[A_EVENTS], at[A_STATS], at[A_MEMORY]
        limit = min(have, end)
        while code == OPEN:
            field = i
            if i >= end:
                code = DONE
                break
            if i >= limit:
                code = SHORT
                break
            tag = buf[i]
            i += 1
            if tag & 7 == 2:
                number, i = _number(buf, i, limit)
                if i > limit:
                    i, code = field, SHORT if limit < end else ODD
                    break
                room = end - i
                if number > room or tag < 8 or tag >= 0x80:
                    i, code = field, ODD
                    break
                event_end = i + signed64(number)
                if event_end > limit:
                    i, code = field, SHORT
                    break
                if tag != 0x22 or which == NO_EVENTS:
                    if tag == 0x12:
                        facts[F_NAME], facts[F_NAME_LENGTH] = base + i, signed64(number)
                    elif tag == 0x5A:
                        facts[F_DISPLAY], facts[F_DISPLAY_LENGTH] = base + i, signed64(number)
                    i = event_end
                    continue
            elif tag == 0x08 or tag == 0x18:
                number, i = _number(buf, i, limit)
                if i > limit:
                    i, code = field, SHORT if limit < end else ODD
                elif tag == 0x08:
                    facts[F_ID] = signed64(number)
                else:
                    facts[F_TIME] = signed64(number)
                continue
            else:
                i = _after_unknown(buf, tag, i, limit)
                if i > limit:
                    i, code = field, SHORT if limit < end else ODD
                continue

            # An event.
            if row >= rows:
                i, code = field, FULL
                break
            if with_begins:
                begins[row] = base + field
            first_stat = stat
            event_id, event_case, event_bits, event_duration = 0, 0, 0, 0
            while i < event_end:
                tag = buf[i]
                i += 1
                if tag == 0x22 and which != NO_STATS:
                    number, i = _number(buf, i, event_end)
                    if i > event_end:
                        break
                    room = event_end - i
                    if number > room:
                        i = event_end + 1
                        break
                    stat_end = i + signed64(number)
                    stat_number, value_case, value, length = 0, 0, 0, 0
                    while i < stat_end:
                        tag = buf[i]
                        i += 1
                        if tag == 0x08:
                            number, i = _number(buf, i, stat_end)
                            stat_number = signed64(number)
                        elif tag == 0x18 or tag == 0x20 or tag == 0x38:
                            value, i = _number(buf, i, stat_end)
                            value_case, length = tag >> 3, 0
                        elif tag == 0x2A or tag == 0x32:
                            number, i = _number(buf, i, stat_end)
                            if i > stat_end:
                                break
                            room = stat_end - i
                            if number > room:
                                i = stat_end + 1
                                break
                            value_case, value, length = tag >> 3, base + i, signed64(number)
                            i += length
                        elif tag == 0x11 and stat_end - i >= 8:
                            value_case, value, length = 2, word64(buf, i), 0
                            i += 8
                        else:
                            i = _after_unknown(buf, tag, i, stat_end)
                            if tag < 0x40:
                                # A field of the message, in another wire type.
                                i = stat_end + 1
                    if i != stat_end:
                        i = event_end + 1
                        break
                    role = NOT_WANTED
                    if 0 <= stat_number < known_stats:
                        role = roles[stat_number]
                    if role != NOT_WANTED or which == ALL_STATS:
                        if stat >= stat_rows:
                            code = FULL
                            break
                        stat_event[stat] = row
                        stat_id[stat] = stat_number
                        stat_role[stat] = role
                        stat_case[stat] = value_case
                        stat_bits[stat] = signed64(value)
                        stat_length[stat] = length
                        stat += 1
                elif tag == 0x08:
                    number, i = _number(buf, i, event_end)
                    event_id = signed64(number)
                elif tag == 0x10 or tag == 0x28:
                    number, i = _number(buf, i, event_end)
                    event_bits, event_case = signed64(number), tag >> 3
                elif tag == 0x18:
                    number, i = _number(buf, i, event_end)
                    event_duration = signed64(number)
                else:
                    i = _after_unknown(buf, tag, i, event_end)
                    if tag < 0x30 and tag != 0x22:
                        i = event_end + 1
            if code == FULL or i != event_end:
                if code != FULL or first_stat == 0:
                    # FULL with nothing before it: one event has more stats than there is room for.
                    code = ODD
                i, stat = field, first_stat
                break
            kind = 0
            if 0 <= event_id < known_ids:
                kind = kind_of[event_id]
            memory += kind == K_ALLOCATION or kind == K_DEALLOCATION
            ids[row] = event_id
            kinds[row] = kind
            case[row] = event_case
            bits[row] = event_bits
            duration[row] = event_duration
            row += 1
        at[A_POSITION], at[A_EVENTS], at[A_STATS], at[A_MEMORY] = i, row, stat, memory
    return code
