"""The best-fit allocator with coalescing of TensorFlow and XLA: one event after the other.

Written from the behaviour of ``BFCAllocator`` (openxla/xla,
``xla/tsl/framework/bfc_allocator.cc``): requests are rounded to 256 bytes; the smallest free chunk
that is large enough is taken, of equal ones that with the lowest address; its low part is used
where it is split.

Chunks, regions and what else changes lie in arrays (`bfc_layout`), so that a copy of them is the
allocator at that moment.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bfc_chunks import best, new_chunk, release, split_limit, take
    from peakline.kernels.bfc_layout import (
        ADDRESS,
        COLLECTING,
        COMPARING,
        DIFFERENT,
        FAILED,
        IN_USE,
        LEARNED,
        LIMIT,
        NEXT,
        NO_ROOM,
        OWNER,
        PEAK,
        POOL,
        PREVIOUS,
        REGION_SIZE,
        RUNNING,
        SIZE,
        SLACK,
        STATUS,
        TAIL,
        UNMATCHED,
    )
    from peakline.kernels.bfc_regions import collect, extend, tighten
    from peakline.kernels.block_tree import insert, remove

__all__ = ["advance", "grant", "shrink"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _note_choice(
    c: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    k: cython.longlong,
    wanted: cython.longlong,
    fraction: cython.double,
) -> cython.void:
    """With how much less of the limit chunk ``k`` would still be chosen, and split or not."""
    tail: cython.longlong = state[TAIL]
    size: cython.longlong = c[k, SIZE]
    most: cython.longlong = split_limit(state[LIMIT], fraction)
    margin: cython.longlong = state[SLACK]
    if k == tail:
        if size >= 2 * wanted or size - wanted >= most:
            margin = size - min(2 * wanted, wanted + most)
        else:
            margin = size - wanted
    elif tail != 0 and c[tail, OWNER] & 1 == 0 and c[tail, SIZE] >= wanted:
        margin = c[tail, SIZE] - size - (0 if c[k, ADDRESS] < c[tail, ADDRESS] else 1)
    if fraction > 0 and size < 2 * wanted and size - wanted < most:
        # Less of the limit makes less of what may remain: then it would be split.
        margin = min(
            margin,
            state[LIMIT]
            - cython.cast(cython.longlong, cython.cast(cython.double, size - wanted + 1) / fraction)
            - 2,
        )
    tighten(state, max(margin, 0))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _allocate(
    c: cython.longlong[:, ::1],
    regions: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    wanted: cython.longlong,
    recorded: cython.longlong,
    bases: cython.const[cython.longlong][::1],
    fraction: cython.double,
) -> cython.longlong:
    """The chunk for a request, 0 with a status where there is none.

    ``recorded`` is where it went, -1 where that is not known.
    """
    k: cython.longlong = best(c, wanted)
    is_base: cython.bint = False
    status: cython.longlong
    if k == 0:
        status = extend(c, regions, state, wanted, recorded, bases)
        if status == FAILED and state[COLLECTING] and collect(c, regions, state, wanted):
            status = extend(c, regions, state, wanted, recorded, bases)
        if status != RUNNING:
            state[STATUS] = status
            return 0
        is_base = recorded >= 0
        k = best(c, wanted)
    if recorded >= 0 and c[k, ADDRESS] != recorded:
        state[STATUS] = DIFFERENT
        return 0
    _note_choice(c, state, k, wanted, fraction)
    if not take(c, regions, state, k, wanted, fraction):
        state[STATUS] = NO_ROOM
        return 0
    state[LEARNED] += is_base
    return k


def advance(
    events: cython.const[cython.longlong][::1],
    first: cython.longlong,
    last: cython.longlong,
    size: cython.const[cython.longlong][::1],
    recorded: cython.const[cython.longlong][::1],
    bases: cython.const[cython.longlong][::1],
    fraction: cython.double,
    chunk: cython.longlong[::1],
    placed: cython.longlong[::1],
    granted: cython.longlong[::1],
    c: cython.longlong[:, ::1],
    regions: cython.longlong[:, ::1],
    state: cython.longlong[::1],
) -> int:
    """Do the events from ``first`` to before ``last``; returns where it stopped, and
    ``state[STATUS]`` says why.

    An event is the number of a buffer that is allocated, or ``~number`` of one that is freed.
    ``size`` is what a buffer requests, ``recorded`` where it went (compared where
    ``state[COMPARING]``; -1: not known), ``chunk`` what it has (0: nothing). Of each allocation
    the address and the size of its chunk are written to ``placed`` and ``granted``, as far as
    these reach. ``bases`` is where the first regions lie, where no recording says it. A request
    that fails, or goes elsewhere than recorded, has changed nothing but the pool.
    """
    at: cython.longlong = first
    buffer: cython.longlong
    k: cython.longlong
    wanted: cython.longlong
    where: cython.longlong
    most: cython.longlong = cython.cast(cython.longlong, 1) << 60
    with cython.nogil:
        state[STATUS] = RUNNING
        while at < last:
            buffer = events[at]
            if buffer < 0:
                buffer = ~buffer
                k = chunk[buffer] if buffer < chunk.shape[0] else 0
                if k == 0:
                    state[UNMATCHED] += 1
                else:
                    chunk[buffer] = 0
                    release(c, regions, state, k)
                at += 1
                continue
            if buffer >= chunk.shape[0] or buffer >= size.shape[0] or chunk[buffer] != 0:
                state[UNMATCHED] += 1
                at += 1
                continue
            wanted = size[buffer]
            if wanted <= 0:
                # Nothing is allocated for nothing.
                at += 1
                continue
            wanted = (min(wanted, most) + 255) & ~255
            where = -1
            if state[COMPARING] and buffer < recorded.shape[0]:
                where = recorded[buffer]
            k = _allocate(c, regions, state, wanted, where, bases, fraction)
            if k == 0:
                break
            chunk[buffer] = k
            if buffer < placed.shape[0]:
                placed[buffer] = c[k, ADDRESS]
            if buffer < granted.shape[0]:
                granted[buffer] = c[k, SIZE]
            state[PEAK] = max(state[PEAK], state[IN_USE])
            at += 1
    return at


def grant(
    c: cython.longlong[:, ::1],
    regions: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    k: cython.longlong,
    address: cython.longlong,
    wanted: cython.longlong,
    fraction: cython.double,
) -> int:
    """The chunk of a block that went elsewhere than the rules say: free chunk ``k``, or where that
    is 0, one at ``address`` outside of all regions. Returns 0 where there is no room for more.
    """
    outside: cython.longlong = regions.shape[0] - 1
    with cython.nogil:
        if k == 0:
            k = new_chunk(c, state)
            if k != 0:
                c[k, ADDRESS] = address
                c[k, SIZE] = wanted
                c[k, PREVIOUS] = 0
                c[k, NEXT] = 0
                c[k, OWNER] = 2 * outside + 1
                state[IN_USE] += wanted
        elif not take(c, regions, state, k, wanted, fraction):
            k = 0
        state[PEAK] = max(state[PEAK], state[IN_USE])
    return k


def shrink(
    c: cython.longlong[:, ::1],
    regions: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    by: cython.longlong,
) -> None:
    """The same moment under a limit that is smaller by so many bytes, at most the slack."""
    k: cython.longlong = state[TAIL]
    is_free: cython.bint
    with cython.nogil:
        state[LIMIT] -= by
        state[SLACK] -= by
        if k != 0:
            is_free = c[k, OWNER] & 1 == 0
            if is_free:
                remove(c, 0, k)
            c[k, SIZE] -= by
            regions[c[k, OWNER] >> 1, REGION_SIZE] -= by
            state[POOL] -= by
            if is_free:
                insert(c, 0, k)
            else:
                state[IN_USE] -= by
