"""Regions of the best-fit allocator: taken from the system as it grows, and returned."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bfc_chunks import absorb, drop_chunk, new_chunk
    from peakline.kernels.bfc_layout import (
        ADDRESS,
        APART_BITS,
        COALESCING,
        DESCENDING,
        DIFFERENT,
        FAILED,
        GROWTH,
        LAST_BASE,
        LIMIT,
        NEXT,
        NO_ROOM,
        OWNER,
        POOL,
        POOL_PEAK,
        PREVIOUS,
        REGION_ADDRESS,
        REGION_FIRST,
        REGION_LAST,
        REGION_SIZE,
        REGIONS,
        RUNNING,
        SIZE,
        SLACK,
        TAIL,
        TAKEN,
    )
    from peakline.kernels.block_tree import insert, remove

__all__: list[str] = []


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def tighten(state: cython.longlong[::1], margin: cython.longlong) -> cython.void:
    state[SLACK] = min(state[SLACK], margin)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def add_region(
    c: cython.longlong[:, ::1],
    regions: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    base: cython.longlong,
    size: cython.longlong,
) -> cython.longlong:
    """A new region, one free chunk; its number, or -1 where there is no room."""
    k: cython.longlong = new_chunk(c, state)
    number: cython.longlong = state[REGIONS]
    before: cython.longlong
    at: cython.longlong
    if k == 0:
        return -1
    if state[COALESCING]:
        for at in range(number):
            if regions[at, REGION_SIZE] > 0 and (
                regions[at, REGION_ADDRESS] + regions[at, REGION_SIZE] == base
            ):
                before = regions[at, REGION_LAST]
                c[k, ADDRESS] = base
                c[k, SIZE] = size
                c[k, PREVIOUS] = before
                c[k, NEXT] = 0
                c[k, OWNER] = 2 * at
                c[before, NEXT] = k
                regions[at, REGION_SIZE] += size
                regions[at, REGION_LAST] = k
                if c[before, OWNER] & 1 == 0:
                    remove(c, 0, before)
                    absorb(c, regions, state, before, k)
                    k = before
                insert(c, 0, k)
                return at
    # The number of one that was returned serves again.
    for at in range(number):
        if regions[at, REGION_SIZE] == 0:
            number = at
            break
    if number == state[REGIONS]:
        if number >= regions.shape[0] - 1:
            drop_chunk(c, state, k)
            return -1
        state[REGIONS] += 1
    regions[number, REGION_ADDRESS] = base
    regions[number, REGION_SIZE] = size
    regions[number, REGION_FIRST] = k
    regions[number, REGION_LAST] = k
    c[k, ADDRESS] = base
    c[k, SIZE] = size
    c[k, PREVIOUS] = 0
    c[k, NEXT] = 0
    c[k, OWNER] = 2 * number
    insert(c, 0, k)
    return number


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def overlaps(
    regions: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    base: cython.longlong,
    size: cython.longlong,
) -> cython.bint:
    at: cython.longlong
    for at in range(state[REGIONS]):
        if (
            regions[at, REGION_ADDRESS] < base + size
            and base < regions[at, REGION_ADDRESS] + regions[at, REGION_SIZE]
        ):
            return True
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def extend(
    c: cython.longlong[:, ::1],
    regions: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    wanted: cython.longlong,
    base: cython.longlong,
    bases: cython.const[cython.longlong][::1],
) -> cython.longlong:
    """Take one more region; RUNNING where it is there, FAILED where the limit forbids it.

    ``base`` is where it lies, -1 where that is not known.
    """
    available: cython.longlong = (state[LIMIT] - state[POOL]) & ~255
    most: cython.longlong = 1 << 61
    if wanted > available:
        return FAILED
    is_doubled: cython.bint = False
    growth: cython.longlong = state[GROWTH]
    while growth != 0 and wanted > growth:
        growth *= 2
        is_doubled = True
    is_capped: cython.bint = growth == 0 or growth > available
    size: cython.longlong = available if is_capped else growth
    if growth != 0 and not is_doubled and growth < most:
        growth *= 2
    is_known: cython.bint = base >= 0
    if not is_known:
        if state[TAKEN] < bases.shape[0]:
            base = bases[state[TAKEN]]
        else:
            base = cython.cast(cython.longlong, 1) << APART_BITS
            base = state[LAST_BASE] - base if state[DESCENDING] else state[LAST_BASE] + base
    elif overlaps(regions, state, base, size):
        return DIFFERENT
    # Where the pool has a part that depends on the limit, what is left of the limit does not.
    depends: cython.bint = state[TAIL] == 0
    number: cython.longlong = add_region(c, regions, state, base, size)
    if number < 0:
        return NO_ROOM
    state[LAST_BASE] = base
    state[TAKEN] += 1
    if depends:
        tighten(state, available - (wanted if is_capped else size))
        if is_capped:
            state[TAIL] = regions[number, REGION_LAST]
    state[GROWTH] = growth
    state[POOL] += size
    state[POOL_PEAK] = max(state[POOL_PEAK], state[POOL])
    return RUNNING


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def collect(
    c: cython.longlong[:, ::1],
    regions: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    wanted: cython.longlong,
) -> cython.bint:
    """Return all regions that are free, where that makes enough room; whether it did."""
    total: cython.longlong = 0
    at: cython.longlong
    k: cython.longlong
    for at in range(state[REGIONS]):
        k = regions[at, REGION_FIRST]
        if regions[at, REGION_SIZE] > 0 and c[k, NEXT] == 0 and c[k, OWNER] & 1 == 0:
            total += regions[at, REGION_SIZE]
    room: cython.longlong = state[LIMIT] - state[POOL] + total
    if total == 0 or wanted > room:
        return False
    k = state[TAIL]
    if k == 0 or (c[k, PREVIOUS] == 0 and c[k, OWNER] & 1 == 0):
        tighten(state, room - wanted)
    for at in range(state[REGIONS]):
        k = regions[at, REGION_FIRST]
        if regions[at, REGION_SIZE] > 0 and c[k, NEXT] == 0 and c[k, OWNER] & 1 == 0:
            remove(c, 0, k)
            drop_chunk(c, state, k)
            state[POOL] -= regions[at, REGION_SIZE]
            regions[at, REGION_SIZE] = 0
            if state[TAIL] == k:
                state[TAIL] = 0
    return True
