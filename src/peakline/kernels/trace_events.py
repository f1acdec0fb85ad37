"""Events of a Chrome trace: pairs of begin and end, what encloses what, arrows."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64
    from peakline.kernels.trace_layout import MOST_OPEN

__all__ = ["compact", "enclose", "hash_spans", "number_arrows", "pair"]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mixed(value: cython.ulonglong) -> cython.ulonglong:
    """The finaliser of splitmix64."""
    one: cython.ulonglong = 0xBF58476D1CE4E5B9
    two: cython.ulonglong = 0x94D049BB133111EB
    value = low64((value ^ (value >> 30)) * one)
    value = low64((value ^ (value >> 27)) * two)
    return value ^ (value >> 31)


def hash_spans(
    buf: cython.const[cython.uchar][::1],
    starts: cython.const[cython.int][::1],
    lengths: cython.const[cython.int][::1],
    has: cython.const[cython.uchar][::1],
    keys: cython.ulonglong[::1],
) -> None:
    """Mix the bytes of each span that is there into ``keys``."""
    row: cython.longlong
    at: cython.longlong
    k: cython.longlong
    count: cython.int
    key: cython.ulonglong
    word: cython.ulonglong
    length: cython.ulonglong
    with cython.nogil:
        for row in range(starts.shape[0]):
            key = keys[row]
            if has[row]:
                at = starts[row]
                length = lengths[row]
                word, count = 0, 0
                for k in range(lengths[row]):
                    word = (word << 8) | buf[at + k]
                    count += 1
                    if count == 8:
                        key = _mixed(key ^ word)
                        word, count = 0, 0
                key = low64(_mixed(key ^ word) + length)
            keys[row] = _mixed(key)


def pair(
    order: cython.const[cython.longlong][::1],
    group: cython.const[cython.ulonglong][::1],
    is_end: cython.const[cython.uchar][::1],
    name: cython.const[cython.int][::1],
    partner: cython.longlong[::1],
    stack: cython.longlong[::1],
) -> None:
    """Find the begin of every end: the innermost open one of its group and name.

    ``order`` sorts the rows by group, then time. An end without a name (-1) takes the innermost.
    ``partner`` (given as -1) is the row of the other; what lies within a begin that ended stays
    open. ``stack`` is room for a number per row.
    """
    depth: cython.longlong = 0
    k: cython.longlong
    n: cython.longlong
    row: cython.longlong
    place: cython.longlong
    lowest: cython.longlong
    current: cython.ulonglong = 0
    with cython.nogil:
        for n in range(order.shape[0]):
            row = order[n]
            if n == 0 or group[row] != current:
                current = group[row]
                depth = 0
            if not is_end[row]:
                stack[depth] = row
                depth += 1
                continue
            place = depth - 1
            # An end is compared with so many open events: an endless file must not make it slow.
            lowest = depth - MOST_OPEN
            lowest = max(lowest, 0)
            while place >= lowest and name[row] >= 0 and name[stack[place]] != name[row]:
                place -= 1
            if place < lowest:
                continue
            partner[row] = stack[place]
            partner[stack[place]] = row
            for k in range(place, depth - 1):
                stack[k] = stack[k + 1]
            depth -= 1


def enclose(
    order: cython.const[cython.longlong][::1],
    line: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    moment_order: cython.const[cython.longlong][::1],
    moment_line: cython.const[cython.longlong][::1],
    moment: cython.const[cython.longlong][::1],
    parent: cython.longlong[::1],
    owner: cython.longlong[::1],
    stack: cython.longlong[::1],
) -> None:
    """The innermost event around each event (``parent``) and each moment (``owner``), or -1.

    ``order`` sorts the events by line, start, and outer before inner; ``moment_order`` the moments
    by line and time. An event encloses the moments from its start to its end, both included;
    where one ends and the next begins, the next one does. ``stack`` is room for a number per event.
    """
    depth: cython.longlong = 0
    at: cython.longlong = 0
    k: cython.longlong
    m: cython.longlong
    here: cython.longlong
    now: cython.longlong
    event: cython.longlong
    top: cython.longlong
    current: cython.longlong = 0
    with cython.nogil:
        for k in range(moment_order.shape[0]):
            m = moment_order[k]
            here, now = moment_line[m], moment[m]
            if k == 0 or here != current:
                current = here
                depth = 0
                while at < order.shape[0] and line[order[at]] < here:
                    at += 1
            while at < order.shape[0] and line[order[at]] == here and start[order[at]] <= now:
                event = order[at]
                while depth > 0:
                    top = stack[depth - 1]
                    if not (end[top] <= start[event] and start[top] < start[event]):
                        break
                    depth -= 1
                parent[event] = stack[depth - 1] if depth > 0 else -1
                stack[depth] = event
                depth += 1
                at += 1
            while depth > 0 and end[stack[depth - 1]] < now:
                depth -= 1
            owner[m] = stack[depth - 1] if depth > 0 else -1


def number_arrows(
    order: cython.const[cython.longlong][::1],
    key: cython.const[cython.ulonglong][::1],
    phase: cython.const[cython.uchar][::1],
    flow: cython.longlong[::1],
) -> None:
    """Number the arrows: the ends of one share a key, and a begin after an end is a new one.

    ``order`` sorts by key, then time.
    """
    arrow: cython.longlong = -1
    k: cython.longlong
    row: cython.longlong
    last: cython.ulonglong = 0
    ended: cython.bint = False
    begins: cython.bint
    with cython.nogil:
        for k in range(order.shape[0]):
            row = order[k]
            begins = phase[row] == 115  # s
            if k == 0 or key[row] != last or (begins and ended):
                arrow += 1
                ended = False
            last = key[row]
            if phase[row] == 102:  # f
                ended = True
            flow[row] = arrow


def compact(
    buf: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    lengths: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
    out_starts: cython.longlong[::1],
    out_lengths: cython.longlong[::1],
) -> None:
    """Copy JSON texts without the blanks between their tokens."""
    size: cython.longlong = 0
    row: cython.longlong
    at: cython.longlong
    end: cython.longlong
    byte: cython.uchar
    quoted: cython.bint
    with cython.nogil:
        for row in range(starts.shape[0]):
            out_starts[row] = size
            at = starts[row]
            end = at + lengths[row]
            quoted = False
            while at < end:
                byte = buf[at]
                at += 1
                if byte <= 32 and not quoted:
                    continue
                out[size] = byte
                size += 1
                if byte == 34:
                    quoted = not quoted
                elif byte == 92 and quoted and at < end:
                    out[size] = buf[at]
                    size += 1
                    at += 1
            out_lengths[row] = size - out_starts[row]
