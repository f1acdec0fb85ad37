"""PyTorch's caching allocator replayed: requests and frees in, addresses out.

The rules are those of ``c10/cuda/CUDACachingAllocator.cpp`` in pytorch/pytorch. The state is a few
arrays that the caller owns, so that a replay can be stopped, copied and resumed anywhere.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.caching_blocks import (
        drop_segment,
        give_back,
        keep_in_set,
        new_segment,
        split,
        take_out,
    )
    from peakline.kernels.caching_layout import (
        ALLOCATE,
        B_ADDRESS,
        B_BUFFER,
        B_NEXT,
        B_SEGMENT,
        B_SIZE,
        B_STATE,
        CAPTURE_BEGINS,
        CAPTURE_ENDS,
        EMPTY_CACHE,
        FREE,
        FREE_COMPLETED,
        FREE_REQUESTED,
        GRANULE,
        IS_AWAITING,
        IS_FREE,
        IS_LIVE,
        IS_UNMAPPED,
        LARGE,
        MOST_WORK,
        POOL_IS_LEFT,
        R_EXPANDABLE,
        R_MAX_SPLIT,
        RELEASE,
        ROOTS,
        S_BASE,
        S_EXPANDABLE,
        S_HEAD,
        S_NEXT,
        S_SIZE,
        SMALL,
        SPARE_BLOCKS,
        SPARE_SEGMENTS,
        T_AWAITING,
        T_BLOCKS,
        T_CAPTURES,
        T_EARLY,
        T_EXPANDABLE,
        T_FAILED,
        T_FIRST,
        T_GROWN,
        T_HINT,
        T_IN_USE,
        T_LIMIT,
        T_MISSES,
        T_PEAK_IN_USE,
        T_RESERVED,
        T_SEGMENTS,
        T_STRANGE,
        T_UNPLACED,
        T_WAITING,
        T_WORK,
        UNMAP,
    )
    from peakline.kernels.caching_pages import unmap
    from peakline.kernels.caching_release import release_cached
    from peakline.kernels.caching_search import allocate, rounded

__all__ = ["advance", "settle"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _block_at(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    address: cython.longlong,
) -> cython.longlong:
    """The block that has an address, 0 for none."""
    row: cython.longlong = state[T_FIRST]
    node: cython.longlong = 0
    while row > 0 and not 0 <= address - segment[row, S_BASE] < segment[row, S_SIZE]:
        state[T_WORK] += 1
        row = segment[row, S_NEXT]
    if row > 0:
        node = segment[row, S_HEAD]
    while node > 0 and address - block[node, B_ADDRESS] >= block[node, B_SIZE]:
        state[T_WORK] += 1
        node = block[node, B_NEXT]
    return node


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    rules: cython.const[cython.longlong][::1],
    home: cython.const[cython.int][::1],
    lane: cython.longlong,
    requested: cython.longlong,
    address: cython.longlong,
    taken: cython.longlong,
) -> cython.longlong:
    """Serves a request at the address that is recorded for it, in a segment that begins at the hint
    where it is recorded that one of ``taken`` bytes was taken; 0 where the address is not free.
    """
    size: cython.longlong = rounded(rules, requested)
    root: cython.longlong = lane * ROOTS + (LARGE if size > SMALL else 0)
    node: cython.longlong = _block_at(block, segment, state, address)
    rest: cython.longlong
    if (
        node == 0
        and not rules[R_EXPANDABLE]
        and state[T_HINT] >= 0
        and 0 <= address - state[T_HINT] < taken
        and taken <= state[T_LIMIT] - state[T_RESERVED]
    ):
        node = new_segment(block, segment, state, rules, home, root, taken, False)
        if node > 0:
            keep_in_set(block, segment, node)
    if node == 0 or block[node, B_STATE] != IS_FREE:
        return 0
    rest = block[node, B_ADDRESS] + block[node, B_SIZE] - address
    if rest < size:
        return 0
    take_out(block, segment, node)
    if address > block[node, B_ADDRESS]:
        rest = address - block[node, B_ADDRESS]
        rest = split(block, state, node, rest, IS_FREE)
        keep_in_set(block, segment, node)
        node = rest
    rest = block[node, B_SIZE] - size
    if rest >= GRANULE and (
        size <= SMALL or rules[R_EXPANDABLE] or (size < rules[R_MAX_SPLIT] and rest > SMALL)
    ):
        keep_in_set(block, segment, split(block, state, node, size, IS_FREE))
    block[node, B_STATE] = IS_LIVE
    return node


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _give_up(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    rules: cython.const[cython.longlong][::1],
    node: cython.longlong,
    grown: cython.longlong,
) -> cython.void:
    """Undoes what `allocate` did, as far as it matters: what it took goes back to the device."""
    give_back(block, segment, state, node)
    if grown > 0 and not rules[R_EXPANDABLE] and block[node, B_NEXT] == 0:
        drop_segment(block, segment, state, block[node, B_SEGMENT])
        state[T_GROWN] = 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _returned(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    rules: cython.const[cython.longlong][::1],
    address: cython.longlong,
    is_page: cython.bint,
) -> cython.void:
    """What the recording says was returned: a segment, or pages."""
    node: cython.longlong = _block_at(block, segment, state, address)
    row: cython.longlong = block[node, B_SEGMENT]
    if node == 0 or block[node, B_STATE] != IS_FREE or (segment[row, S_EXPANDABLE] != 0) != is_page:
        state[T_STRANGE] += 1
    elif is_page:
        unmap(block, segment, state, rules, node)
    elif segment[row, S_HEAD] == node and block[node, B_NEXT] == 0:
        drop_segment(block, segment, state, row)
    else:
        state[T_STRANGE] += 1


def settle(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    first: cython.longlong,
    last: cython.longlong,
) -> None:
    """Puts those of the blocks ``first`` to ``last`` that are free or unmapped into their sets.

    Their neighbours, segments and states are set, none of them is in a set, and their rows are not
    those of roots.
    """
    node: cython.longlong
    with cython.nogil:
        for node in range(first, last):
            if block[node, B_STATE] == IS_FREE or block[node, B_STATE] == IS_UNMAPPED:
                keep_in_set(block, segment, node)


def advance(
    kind: cython.const[cython.uchar][::1],
    subject: cython.const[cython.longlong][::1],
    first: cython.longlong,
    last: cython.longlong,
    lane: cython.const[cython.int][::1],
    requested: cython.const[cython.longlong][::1],
    home: cython.const[cython.int][::1],
    rules: cython.const[cython.longlong][::1],
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    node_of: cython.int[::1],
    address: cython.longlong[::1],
    size_of: cython.longlong[::1],
    grown: cython.longlong[::1],
    recorded: cython.const[cython.longlong][::1],
    hint: cython.const[cython.longlong][::1],
    taken: cython.const[cython.longlong][::1],
    returned: cython.const[cython.longlong][::1],
) -> int:
    """Replays the events ``first`` to ``last``: gives ``last``, the one whose request failed (then
    ``state[T_FAILED]`` is it too), or the one at which it stopped because rows of blocks or
    segments get scarce or `MOST_WORK` is done; at least one event is replayed where rows suffice.

    ``kind`` is one of `peakline.kernels.caching_layout`, ``subject`` a buffer, a lane for a pool
    that is left, or for what was returned a row of ``returned``, which has addresses. Of each
    buffer: ``lane``, ``requested`` (bytes), and ``node_of``, its block (0: none, -1: its wait was
    ended early). ``home`` names for each lane the first one of its pool, that of the common pool is
    0; ``rules`` has the fields ``R_``, ``block``, ``segment`` and ``state`` those with ``B_``,
    ``S_`` and ``T_``.

    Where they have elements, one per buffer: ``address``, ``size_of`` and ``grown`` become where
    its block is, how large, and how much was taken from the device for it; ``recorded`` is where it
    must be moved to (-1: unknown), ``hint`` and ``taken`` are the address and size of the segment
    that was taken for it (-1 and 0: none). Events that fit none before are counted as strange.
    """
    n: cython.longlong = first
    buffers: cython.longlong = node_of.shape[0]
    roots: cython.longlong = home.shape[0] * ROOTS
    what: cython.longlong
    buffer: cython.longlong
    node: cython.longlong
    needed: cython.longlong
    with cython.nogil:
        while n < last:
            needed = SPARE_BLOCKS
            if state[T_EXPANDABLE] > 0 or rules[R_EXPANDABLE]:
                needed += 2 * state[T_BLOCKS]
            if (
                block.shape[0] - roots - state[T_BLOCKS] < needed
                or segment.shape[0] - 1 - state[T_SEGMENTS] < SPARE_SEGMENTS
                or state[T_WORK] > MOST_WORK
            ):
                break
            state[T_WORK] += 1
            what = kind[n]
            buffer = subject[n]
            if what == EMPTY_CACHE:
                release_cached(block, segment, state, rules, roots, node_of)
                n += 1
                continue
            if what == CAPTURE_BEGINS or what == CAPTURE_ENDS:
                state[T_CAPTURES] = max(
                    state[T_CAPTURES] + (1 if what == CAPTURE_BEGINS else -1), 0
                )
                n += 1
                continue
            if what == POOL_IS_LEFT:
                if 0 <= buffer < home.shape[0] and home[buffer] != home[0]:
                    node = home[buffer] * ROOTS
                    block[node, B_BUFFER] = block[node + LARGE, B_BUFFER] = 1
                else:
                    state[T_STRANGE] += 1
                n += 1
                continue
            if what == RELEASE or what == UNMAP:
                if 0 <= buffer < returned.shape[0]:
                    _returned(block, segment, state, rules, returned[buffer], what == UNMAP)
                else:
                    state[T_STRANGE] += 1
                n += 1
                continue
            if (
                buffer < 0
                or buffer >= buffers
                or requested[buffer] <= 0
                or lane[buffer] < 0
                or lane[buffer] >= home.shape[0]
            ):
                state[T_STRANGE] += 1
                n += 1
                continue
            node = node_of[buffer]
            if what == ALLOCATE:
                if node > 0:
                    state[T_STRANGE] += 1
                    n += 1
                    continue
                if node < 0:
                    state[T_EARLY] -= 1
                state[T_HINT] = hint[buffer] if buffer < hint.shape[0] else -1
                state[T_GROWN] = 0
                node = allocate(
                    block, segment, state, rules, home, node_of, lane[buffer], requested[buffer]
                )
                if (
                    buffer < recorded.shape[0]
                    and recorded[buffer] >= 0
                    and (node == 0 or block[node, B_ADDRESS] != recorded[buffer])
                ):
                    state[T_MISSES] += 1
                    if node > 0:
                        _give_up(block, segment, state, rules, node, state[T_GROWN])
                    node = _put(
                        block, segment, state, rules, home, lane[buffer], requested[buffer],
                        recorded[buffer], taken[buffer] if buffer < taken.shape[0] else 0,
                    )  # fmt: skip
                    if node == 0:
                        state[T_UNPLACED] += 1
                        node = allocate(
                            block, segment, state, rules, home, node_of, lane[buffer],
                            requested[buffer],
                        )  # fmt: skip
                state[T_HINT] = -1
                if node == 0:
                    state[T_FAILED] = n
                    break
                node_of[buffer] = cython.cast(cython.int, node)
                block[node, B_BUFFER] = buffer
                state[T_IN_USE] += block[node, B_SIZE]
                state[T_PEAK_IN_USE] = max(state[T_PEAK_IN_USE], state[T_IN_USE])
                if buffer < address.shape[0]:
                    address[buffer] = block[node, B_ADDRESS]
                if buffer < size_of.shape[0]:
                    size_of[buffer] = block[node, B_SIZE]
                if buffer < grown.shape[0]:
                    grown[buffer] = state[T_GROWN]
            elif what == FREE and node > 0 and block[node, B_STATE] == IS_LIVE:
                state[T_IN_USE] -= block[node, B_SIZE]
                node_of[buffer] = 0
                give_back(block, segment, state, node)
            elif what == FREE_REQUESTED and node > 0 and block[node, B_STATE] == IS_LIVE:
                state[T_IN_USE] -= block[node, B_SIZE]
                state[T_AWAITING] += block[node, B_SIZE]
                state[T_WAITING] += 1
                block[node, B_STATE] = IS_AWAITING
            elif what == FREE_COMPLETED and node > 0 and block[node, B_STATE] == IS_AWAITING:
                state[T_AWAITING] -= block[node, B_SIZE]
                state[T_WAITING] -= 1
                node_of[buffer] = 0
                give_back(block, segment, state, node)
            elif what == FREE_COMPLETED and node < 0:
                state[T_EARLY] -= 1
                node_of[buffer] = 0
            else:
                state[T_STRANGE] += 1
            n += 1
    return n
