"""How PyTorch's caching allocator serves a request
(``c10/cuda/CUDACachingAllocator.cpp``: ``malloc`` and what it calls).
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.block_tree import after, lower
    from peakline.kernels.caching_blocks import keep_in_set, new_segment, split, take_out
    from peakline.kernels.caching_layout import (
        B_BORN,
        B_NEXT,
        B_PREVIOUS,
        B_SIZE,
        B_STATE,
        GRANULE,
        INTERVALS,
        IS_FREE,
        IS_LIVE,
        IS_UNMAPPED,
        LARGE,
        LEAST_LARGE,
        R_CAPTURED,
        R_DIVIDES,
        R_DIVISIONS,
        R_EXPANDABLE,
        R_LARGE,
        R_LARGEST,
        R_MAX_SPLIT,
        R_ROUNDING,
        R_THROWS,
        R_UNLIMITED,
        ROOTS,
        SMALL,
        SMALL_SEGMENT,
        T_ALLOWED,
        T_CAPTURES,
        T_LIMIT,
        T_RESERVED,
        T_SLACK_ALLOWED,
        T_THRESHOLD,
        T_THROWN,
        T_WORK,
        UNMAPPED,
    )
    from peakline.kernels.caching_pages import map_pages
    from peakline.kernels.caching_release import (
        collect,
        is_expandable,
        release_available,
        release_cached,
    )

__all__ = ["allocate", "rounded"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def rounded(
    rules: cython.const[cython.longlong][::1], requested: cython.longlong
) -> cython.longlong:
    """The bytes that a block for a request must have (``round_size``)."""
    power: cython.longlong = 0
    divisions: cython.longlong
    step: cython.longlong
    down: cython.longlong
    if requested < GRANULE:
        return GRANULE
    if requested > rules[R_LARGEST]:
        # More than any limit, and sums with it do not overflow.
        return 2 * rules[R_LARGEST]
    if rules[R_DIVIDES]:
        while requested >> (power + 1) > 0:
            power += 1
        divisions = rules[R_DIVISIONS + min(max(power - 20, 0), INTERVALS - 1)]
        if divisions > 1 and requested > GRANULE * divisions:
            step = 1
            step <<= power
            if step == requested:
                return requested
            while divisions > 1:
                divisions >>= 1
                step >>= 1
            down = requested // step * step
            return requested if down == requested else down + step
    return (requested + GRANULE - 1) // GRANULE * GRANULE


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _extent(block: cython.longlong[:, ::1], node: cython.longlong) -> cython.longlong:
    """What a block of an expandable segment can grow to."""
    following: cython.longlong = block[node, B_NEXT]
    if following > 0 and block[following, B_STATE] == IS_UNMAPPED:
        return block[node, B_SIZE] + block[following, B_SIZE]
    return block[node, B_SIZE]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    rules: cython.const[cython.longlong][::1],
    root: cython.longlong,
    size: cython.longlong,
) -> cython.longlong:
    """The free block that is taken for ``size`` bytes, out of its set; 0 for none."""
    node: cython.longlong = lower(block, root, size, -1, 0, 0)
    following: cython.longlong
    if node > 0 and is_expandable(block, segment, node):
        if rules[R_EXPANDABLE]:
            # One that cannot grow is the smallest: those that follow have as many bytes or more.
            while (
                is_expandable(block, segment, node) and _extent(block, node) > block[node, B_SIZE]
            ):
                following = after(block, root, node)
                if following == 0 or _extent(block, following) >= _extent(block, node):
                    break
                state[T_WORK] += 1
                node = following
        else:
            while node > 0 and is_expandable(block, segment, node):
                state[T_WORK] += 1
                node = after(block, root, node)
    if node == 0:
        return 0
    if size < rules[R_MAX_SPLIT]:
        if block[node, B_SIZE] >= rules[R_MAX_SPLIT]:
            return 0
    elif block[node, B_SIZE] - size >= rules[R_ROUNDING]:
        return 0
    take_out(block, segment, node)
    return node


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _expand(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    rules: cython.const[cython.longlong][::1],
    home: cython.const[cython.int][::1],
    root: cython.longlong,
    size: cython.longlong,
) -> cython.longlong:
    """Maps what is missing for ``size`` bytes at the lowest address that has room for them: gives
    the free block, out of its set, or 0 (``try_allocate_expandable_block``).
    """
    result: cython.longlong = 0
    start: cython.longlong
    node: cython.longlong
    room: cython.longlong
    hole: cython.longlong = lower(block, root + UNMAPPED, 0, -1, 0, 0)
    while hole > 0 and result == 0:
        start = hole
        if block[hole, B_PREVIOUS] > 0 and block[block[hole, B_PREVIOUS], B_STATE] == IS_FREE:
            start = block[hole, B_PREVIOUS]
        node, room = start, 0
        while node > 0 and room < size:
            state[T_WORK] += 1
            if block[node, B_STATE] != IS_FREE and block[node, B_STATE] != IS_UNMAPPED:
                break
            room += block[node, B_SIZE]
            node = block[node, B_NEXT]
        if room >= size:
            result = start
        hole = after(block, root + UNMAPPED, hole)
    if result == 0:
        result = new_segment(block, segment, state, rules, home, root, 0, True)
        if result == 0:
            return 0
        keep_in_set(block, segment, result)
    if block[result, B_STATE] == IS_UNMAPPED and not map_pages(
        block, segment, state, rules, result, min(block[result, B_SIZE], size)
    ):
        return 0
    while block[result, B_SIZE] < size:
        node = block[result, B_NEXT]
        if node == 0 or block[node, B_STATE] != IS_UNMAPPED:
            # More than a whole range of addresses, which is more than the device has.
            return 0
        room = min(size - block[result, B_SIZE], block[node, B_SIZE])
        if not map_pages(block, segment, state, rules, node, room):
            return 0
        result = node
    take_out(block, segment, result)
    return result


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _take(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    rules: cython.const[cython.longlong][::1],
    home: cython.const[cython.int][::1],
    root: cython.longlong,
    size: cython.longlong,
) -> cython.longlong:
    """Takes memory from the device for ``size`` bytes: gives a free block of at least so many, out
    of its set, or 0 where a limit forbids it (``alloc_block``).
    """
    taken: cython.longlong = SMALL_SEGMENT
    if size >= LEAST_LARGE:
        taken = (size + SMALL_SEGMENT - 1) // SMALL_SEGMENT * SMALL_SEGMENT
    elif size > SMALL:
        taken = rules[R_LARGE]
    if state[T_ALLOWED] >= 0:
        if taken > state[T_ALLOWED] - state[T_RESERVED]:
            return 0
        state[T_SLACK_ALLOWED] = min(
            state[T_SLACK_ALLOWED], state[T_ALLOWED] - state[T_RESERVED] - taken
        )
    if rules[R_EXPANDABLE]:
        return _expand(block, segment, state, rules, home, root, size)
    if taken > state[T_LIMIT] - state[T_RESERVED]:
        state[T_THROWN] = rules[R_THROWS]
        return 0
    return new_segment(block, segment, state, rules, home, root, taken, False)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def allocate(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    rules: cython.const[cython.longlong][::1],
    home: cython.const[cython.int][::1],
    node_of: cython.int[::1],
    lane: cython.longlong,
    requested: cython.longlong,
) -> cython.longlong:
    """Serves a request of one lane: gives its block, which is live then, 0 where it fails."""
    size: cython.longlong = rounded(rules, requested)
    root: cython.longlong = lane * ROOTS
    common: cython.bint = home[lane] == home[0]
    node: cython.longlong
    rest: cython.longlong
    if size > SMALL:
        root += LARGE
    if state[T_THRESHOLD] >= 0:
        block[home[lane] * ROOTS + (root & LARGE), B_BORN] += 1
    node = _find(block, segment, state, rules, root, size)
    if node == 0:
        state[T_THROWN] = 0
        if state[T_THRESHOLD] >= 0:
            collect(block, segment, state)
        node = _take(block, segment, state, rules, home, root, size)
        if (
            node == 0
            and not state[T_THROWN]
            and rules[R_MAX_SPLIT] < rules[R_UNLIMITED]
            and release_available(block, segment, state, rules, root, size)
        ):
            node = _take(block, segment, state, rules, home, root, size)
        if (
            node == 0
            and not state[T_THROWN]
            and (common or not rules[R_CAPTURED])
            and state[T_CAPTURES] == 0
        ):
            release_cached(block, segment, state, rules, home.shape[0] * ROOTS, node_of)
            node = _take(block, segment, state, rules, home, root, size)
        if node == 0:
            return 0
    rest = block[node, B_SIZE] - size
    if rest >= GRANULE and (
        root & LARGE == 0 or rules[R_EXPANDABLE] or (size < rules[R_MAX_SPLIT] and rest > SMALL)
    ):
        keep_in_set(block, segment, split(block, state, node, size, IS_FREE))
    block[node, B_STATE] = IS_LIVE
    return node
