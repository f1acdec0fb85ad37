"""Sequential kernels over events: pairs of begin and end, what encloses what, arrows."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["compact", "enclose", "hash_spans", "number_arrows", "pair"]

U = np.uint64  # also for indices: an unsigned one needs no check for counting from the end

_MOST_OPEN = 256
"""How many open events an end is compared with; an endless file must not make it slow."""


@nb.njit(forceinline=True)
def _mixed(value):  # type: ignore[no-untyped-def]
    value = (value ^ (value >> U(30))) * U(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> U(27))) * U(0x94D049BB133111EB)
    return value ^ (value >> U(31))


@nb.njit(cache=True, nogil=True)
def hash_spans(buf, starts, lengths, has, keys):  # type: ignore[no-untyped-def]
    """Mix the bytes of each span that is there into ``keys``."""
    for row in range(starts.size):
        key = keys[U(row)]
        if has[U(row)]:
            at = np.int64(starts[U(row)])
            word, count = U(0), 0
            for k in range(lengths[U(row)]):
                word = (word << U(8)) | U(buf[U(at + k)])
                count += 1
                if count == 8:
                    key = _mixed(key ^ word)
                    word, count = U(0), 0
            key = _mixed(key ^ word) + U(lengths[U(row)])
        keys[U(row)] = _mixed(key)


@nb.njit(cache=True, nogil=True)
def pair(order, group, is_end, name, partner):  # type: ignore[no-untyped-def]
    """Find the begin of every end: the innermost open one of its group and name.

    ``order`` sorts the rows by group, then time. An end without a name (-1) takes the innermost.
    ``partner`` (given as -1) is the row of the other; what lies within a begin that ended stays
    open.
    """
    stack = np.empty(order.size, np.int64)
    depth = np.int64(0)
    if order.size == 0:
        return
    current = group[order[0]]
    for row in order:
        if group[row] != current:
            current = group[row]
            depth = np.int64(0)
        if not is_end[row]:
            stack[depth] = row
            depth += 1
            continue
        place = depth - 1
        lowest = max(np.int64(0), depth - _MOST_OPEN)
        while place >= lowest and name[row] >= 0 and name[stack[place]] != name[row]:
            place -= 1
        if place < lowest:
            continue
        partner[row] = stack[place]
        partner[stack[place]] = row
        for k in range(place, depth - 1):
            stack[k] = stack[k + 1]
        depth -= 1


@nb.njit(cache=True, nogil=True)
def enclose(order, line, start, end, moment_order, moment_line, moment, parent, owner):  # type: ignore[no-untyped-def]
    """The innermost event around each event (``parent``) and each moment (``owner``), or -1.

    ``order`` sorts the events by line, start, and outer before inner; ``moment_order`` the moments
    by line and time. An event encloses the moments from its start to its end, both included;
    where one ends and the next begins, the next one does.
    """
    stack = np.empty(order.size, np.int64)
    depth = np.int64(0)
    current = np.int64(-1)
    at = np.int64(0)
    for m in moment_order:
        here, now = moment_line[m], moment[m]
        if here != current:
            current = np.int64(here)
            depth = np.int64(0)
            while at < order.size and line[order[at]] < here:
                at += 1
        while at < order.size and line[order[at]] == here and start[order[at]] <= now:
            event = order[at]
            while (
                depth
                and end[stack[depth - 1]] <= start[event]
                and (start[stack[depth - 1]] < start[event])
            ):
                depth -= 1
            parent[event] = stack[depth - 1] if depth else -1
            stack[depth] = event
            depth += 1
            at += 1
        while depth and end[stack[depth - 1]] < now:
            depth -= 1
        owner[m] = stack[depth - 1] if depth else -1


@nb.njit(cache=True, nogil=True)
def number_arrows(order, key, phase, flow):  # type: ignore[no-untyped-def]
    """Number the arrows: the ends of one share a key, and a begin after an end is a new one.

    ``order`` sorts by key, then time.
    """
    arrow = np.int64(-1)
    ended = False
    if order.size == 0:
        return
    last = key[order[0]]
    for row in order:
        begins = phase[row] == 115  # s
        if arrow < 0 or key[row] != last or (begins and ended):
            arrow += 1
            ended = False
        last = key[row]
        ended |= phase[row] == 102  # f
        flow[row] = arrow


@nb.njit(cache=True, nogil=True)
def compact(buf, starts, lengths, out, out_starts, out_lengths):  # type: ignore[no-untyped-def]
    """Copy JSON texts without the blanks between their tokens."""
    size = np.int64(0)
    for row in range(starts.size):
        out_starts[U(row)] = size
        at = np.int64(starts[U(row)])
        end = at + lengths[U(row)]
        quoted = False
        while at < end:
            byte = buf[U(at)]
            at += 1
            if byte <= 32 and not quoted:
                continue
            out[U(size)] = byte
            size += 1
            if byte == 34:
                quoted = not quoted
            elif byte == 92 and quoted and at < end:
                out[U(size)] = buf[U(at)]
                size += 1
                at += 1
        out_lengths[U(row)] = size - out_starts[U(row)]
