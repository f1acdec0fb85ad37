"""Chunks of the best-fit allocator: the free ones, splitting and merging.

Free chunks are in order of size and address (`peakline.kernels.block_tree`, with chunk 0 for the
root): the bins of the original divide chunks by size and are searched upwards, which is the same
order.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bfc_layout import (
        ADDRESS,
        FREE_SLOT,
        IN_USE,
        LIMIT,
        NEXT,
        NEXT_SLOT,
        OWNER,
        PREVIOUS,
        PRIORITY,
        RANDOM,
        REGION_LAST,
        SIZE,
        TAIL,
    )
    from peakline.kernels.block_tree import insert, lower, remove

__all__: list[str] = []


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def best(c: cython.longlong[:, ::1], wanted: cython.longlong) -> cython.longlong:
    """The first free chunk of at least ``wanted`` bytes, 0 where there is none."""
    return lower(c, 0, wanted, -1, 0, 0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def new_chunk(c: cython.longlong[:, ::1], state: cython.longlong[::1]) -> cython.longlong:
    """The number of a new chunk, 0 where there is no room for more."""
    k: cython.longlong = state[FREE_SLOT]
    if k != 0:
        state[FREE_SLOT] = c[k, NEXT]
    elif state[NEXT_SLOT] < c.shape[0]:
        k = state[NEXT_SLOT]
        state[NEXT_SLOT] += 1
        # Any numbers will do, as long as they do not follow the order of the chunks.
        state[RANDOM] = (state[RANDOM] * 1103515245 + 12345) & 0x7FFFFFFF
        c[k, PRIORITY] = state[RANDOM]
    return k


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def drop_chunk(
    c: cython.longlong[:, ::1], state: cython.longlong[::1], k: cython.longlong
) -> cython.void:
    c[k, NEXT] = state[FREE_SLOT]
    c[k, SIZE] = 0
    state[FREE_SLOT] = k


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def split_limit(limit: cython.longlong, fraction: cython.double) -> cython.longlong:
    """What may remain of a chunk at most without being split off."""
    result: cython.longlong = 1 << 27
    if fraction > 0:
        result = cython.cast(cython.longlong, fraction * cython.cast(cython.double, limit))
    return result


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def take(
    c: cython.longlong[:, ::1],
    regions: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    k: cython.longlong,
    wanted: cython.longlong,
    fraction: cython.double,
) -> cython.bint:
    """Use a free chunk, which is split where much would remain; whether there was room for it."""
    remove(c, 0, k)
    size: cython.longlong = c[k, SIZE]
    if size >= 2 * wanted or size - wanted >= split_limit(state[LIMIT], fraction):
        rest: cython.longlong = new_chunk(c, state)
        if rest == 0:
            insert(c, 0, k)
            return False
        c[k, SIZE] = wanted
        c[rest, ADDRESS] = c[k, ADDRESS] + wanted
        c[rest, SIZE] = size - wanted
        c[rest, OWNER] = c[k, OWNER]
        c[rest, PREVIOUS] = k
        c[rest, NEXT] = c[k, NEXT]
        if c[k, NEXT] != 0:
            c[c[k, NEXT], PREVIOUS] = rest
        else:
            regions[c[k, OWNER] >> 1, REGION_LAST] = rest
        c[k, NEXT] = rest
        if state[TAIL] == k:
            state[TAIL] = rest
        insert(c, 0, rest)
    c[k, OWNER] |= 1
    state[IN_USE] += c[k, SIZE]
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def absorb(
    c: cython.longlong[:, ::1],
    regions: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    k: cython.longlong,
    after: cython.longlong,
) -> cython.void:
    """The chunk behind ``k`` becomes a part of it; neither is in the tree."""
    c[k, SIZE] += c[after, SIZE]
    c[k, NEXT] = c[after, NEXT]
    if c[after, NEXT] != 0:
        c[c[after, NEXT], PREVIOUS] = k
    else:
        regions[c[k, OWNER] >> 1, REGION_LAST] = k
    if state[TAIL] == after:
        state[TAIL] = k
    drop_chunk(c, state, after)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def release(
    c: cython.longlong[:, ::1],
    regions: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    k: cython.longlong,
) -> cython.void:
    """A chunk is free, and one with its free neighbours."""
    c[k, OWNER] &= ~1
    state[IN_USE] -= c[k, SIZE]
    other: cython.longlong = c[k, NEXT]
    if other != 0 and c[other, OWNER] & 1 == 0:
        remove(c, 0, other)
        absorb(c, regions, state, k, other)
    other = c[k, PREVIOUS]
    if other != 0 and c[other, OWNER] & 1 == 0:
        remove(c, 0, other)
        absorb(c, regions, state, other, k)
        k = other
    insert(c, 0, k)
