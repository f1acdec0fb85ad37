"""Blocks and segments of PyTorch's caching allocator: split, merged, taken and returned
(``c10/cuda/CUDACachingAllocator.cpp``: ``try_merge_blocks``, ``free_block``, ``release_block``).
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.block_tree import insert, remove
    from peakline.kernels.caching_layout import (
        B_ADDRESS,
        B_BORN,
        B_BUFFER,
        B_KEY,
        B_NEXT,
        B_ORDER,
        B_PREVIOUS,
        B_SEGMENT,
        B_SIZE,
        B_STATE,
        IS_FREE,
        IS_SPARE,
        IS_UNMAPPED,
        LARGE,
        R_HIGHEST,
        R_LARGE_RANGE,
        R_REGISTERED,
        R_SMALL_RANGE,
        ROOTS,
        S_BASE,
        S_COMMON,
        S_EXPANDABLE,
        S_HEAD,
        S_HOME,
        S_MAPPED,
        S_NEXT,
        S_ORDER,
        S_PREVIOUS,
        S_ROOT,
        S_SIZE,
        SMALL_SEGMENT,
        T_BLOCKS,
        T_CURSOR,
        T_EXPANDABLE,
        T_FIRST,
        T_GROWN,
        T_HINT,
        T_LIMIT,
        T_ORDER,
        T_PEAK_RESERVED,
        T_RESERVED,
        T_RETURNED,
        T_SEGMENT_SPARE,
        T_SEGMENTS,
        T_SEGMENTS_USED,
        T_SLACK,
        T_SPARE,
        T_STEP,
        T_TAKEN,
        T_USED,
        T_WORK,
        UNMAPPED,
    )

__all__ = [
    "drop_segment",
    "give_back",
    "grow",
    "keep_in_set",
    "merge",
    "new_segment",
    "split",
    "take_out",
]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _root_of(
    block: cython.longlong[:, ::1], segment: cython.longlong[:, ::1], node: cython.longlong
) -> cython.longlong:
    """The set in which a block is while nobody has it."""
    root: cython.longlong = segment[block[node, B_SEGMENT], S_ROOT]
    return root + UNMAPPED if block[node, B_STATE] == IS_UNMAPPED else root


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def keep_in_set(
    block: cython.longlong[:, ::1], segment: cython.longlong[:, ::1], node: cython.longlong
) -> cython.void:
    """Puts a free or unmapped block into its set: its age begins."""
    if block[node, B_STATE] == IS_UNMAPPED:
        # In order of addresses alone.
        block[node, B_KEY] = block[node, B_ORDER] = 0
    else:
        block[node, B_KEY] = block[node, B_SIZE]
        block[node, B_ORDER] = segment[block[node, B_SEGMENT], S_ORDER]
    block[node, B_BORN] = block[segment[block[node, B_SEGMENT], S_HOME], B_BORN]
    insert(block, _root_of(block, segment, node), node)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def take_out(
    block: cython.longlong[:, ::1], segment: cython.longlong[:, ::1], node: cython.longlong
) -> cython.void:
    """Takes a free or unmapped block out of its set."""
    remove(block, _root_of(block, segment, node), node)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _new_block(block: cython.longlong[:, ::1], state: cython.longlong[::1]) -> cython.longlong:
    """A row for a block; the caller has seen to it that there is one."""
    node: cython.longlong = state[T_SPARE]
    if node > 0:
        state[T_SPARE] = block[node, B_NEXT]
    else:
        node = state[T_USED]
        state[T_USED] += 1
    state[T_BLOCKS] += 1
    block[node, B_BUFFER] = -1
    return node


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _drop_block(
    block: cython.longlong[:, ::1], state: cython.longlong[::1], node: cython.longlong
) -> cython.void:
    block[node, B_STATE] = IS_SPARE
    block[node, B_NEXT] = state[T_SPARE]
    state[T_SPARE] = node
    state[T_BLOCKS] -= 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def split(
    block: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    node: cython.longlong,
    size: cython.longlong,
    is_what: cython.longlong,
) -> cython.longlong:
    """Cuts a block that is in no set behind ``size`` bytes, fewer than it has: gives the new block
    behind it, whose state is ``is_what``, in no set either.
    """
    rest: cython.longlong = _new_block(block, state)
    following: cython.longlong = block[node, B_NEXT]
    block[rest, B_ADDRESS] = block[node, B_ADDRESS] + size
    block[rest, B_SIZE] = block[node, B_SIZE] - size
    block[rest, B_SEGMENT] = block[node, B_SEGMENT]
    block[rest, B_STATE] = is_what
    block[rest, B_PREVIOUS] = node
    block[rest, B_NEXT] = following
    if following > 0:
        block[following, B_PREVIOUS] = rest
    block[node, B_NEXT] = rest
    block[node, B_SIZE] = size
    return rest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def merge(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    node: cython.longlong,
) -> cython.void:
    """Joins a free or unmapped block, in no set, with its neighbours of the same kind."""
    kind: cython.longlong = block[node, B_STATE]
    near: cython.longlong = block[node, B_PREVIOUS]
    further: cython.longlong
    if near > 0 and block[near, B_STATE] == kind:
        take_out(block, segment, near)
        further = block[near, B_PREVIOUS]
        block[node, B_ADDRESS] = block[near, B_ADDRESS]
        block[node, B_SIZE] += block[near, B_SIZE]
        block[node, B_PREVIOUS] = further
        if further > 0:
            block[further, B_NEXT] = node
        else:
            segment[block[node, B_SEGMENT], S_HEAD] = node
        _drop_block(block, state, near)
    near = block[node, B_NEXT]
    if near > 0 and block[near, B_STATE] == kind:
        take_out(block, segment, near)
        further = block[near, B_NEXT]
        block[node, B_SIZE] += block[near, B_SIZE]
        block[node, B_NEXT] = further
        if further > 0:
            block[further, B_PREVIOUS] = node
        _drop_block(block, state, near)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def give_back(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    node: cython.longlong,
) -> cython.void:
    """A block that somebody had becomes free, joined with free neighbours."""
    block[node, B_STATE] = IS_FREE
    block[node, B_BUFFER] = -1
    merge(block, segment, state, node)
    keep_in_set(block, segment, node)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def new_segment(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    rules: cython.const[cython.longlong][::1],
    home: cython.const[cython.int][::1],
    root: cython.longlong,
    size: cython.longlong,
    expandable: cython.bint,
) -> cython.longlong:
    """A segment with one block, which is in no set: gives the block, 0 where no addresses are left.

    An expandable one has a range of addresses without memory. The address is the recorded one
    where there is a hint, else above or below those used so far, or in the lowest gap.
    """
    base: cython.longlong = state[T_HINT]
    before: cython.longlong = 0
    following: cython.longlong
    room: cython.longlong
    row: cython.longlong
    node: cython.longlong
    lane: cython.longlong = root // ROOTS
    if expandable:
        size = rules[R_LARGE_RANGE] if root & LARGE else rules[R_SMALL_RANGE]
    if base >= 0 and base <= rules[R_HIGHEST] - size:
        before = 0
    elif state[T_STEP] == 0:
        # The lowest gap: segments are in order of their addresses then.
        base = state[T_CURSOR]
        following = state[T_FIRST]
        while following > 0 and segment[following, S_BASE] - base < size:
            state[T_WORK] += 1
            before = following
            base = max(base, segment[following, S_BASE] + segment[following, S_SIZE])
            base = (base + SMALL_SEGMENT - 1) // SMALL_SEGMENT * SMALL_SEGMENT
            following = segment[following, S_NEXT]
        if base > rules[R_HIGHEST] - size:
            return 0
    else:
        room = (size + SMALL_SEGMENT - 1) // SMALL_SEGMENT * SMALL_SEGMENT
        if state[T_STEP] < 0 and state[T_CURSOR] < room:
            # Nothing is left below: go on at the very top.
            state[T_CURSOR] = rules[R_HIGHEST]
        if state[T_STEP] > 0 and state[T_CURSOR] > rules[R_HIGHEST] - room:
            return 0
        if state[T_STEP] < 0:
            state[T_CURSOR] -= room
        base = state[T_CURSOR]
        if state[T_STEP] > 0:
            state[T_CURSOR] += room
    row = state[T_SEGMENT_SPARE]
    if row > 0:
        state[T_SEGMENT_SPARE] = segment[row, S_NEXT]
    else:
        row = state[T_SEGMENTS_USED]
        state[T_SEGMENTS_USED] += 1
    state[T_SEGMENTS] += 1
    node = _new_block(block, state)
    block[node, B_ADDRESS] = base
    block[node, B_SIZE] = size
    block[node, B_PREVIOUS] = block[node, B_NEXT] = 0
    block[node, B_SEGMENT] = row
    block[node, B_STATE] = IS_UNMAPPED if expandable else IS_FREE
    segment[row, S_BASE] = base
    segment[row, S_SIZE] = size
    segment[row, S_HEAD] = node
    segment[row, S_ROOT] = root
    segment[row, S_HOME] = home[lane] * ROOTS + (root & LARGE)
    segment[row, S_COMMON] = home[lane] == home[0]
    segment[row, S_EXPANDABLE] = expandable
    segment[row, S_MAPPED] = 0 if expandable else size
    following = segment[before, S_NEXT] if before > 0 else state[T_FIRST]
    if rules[R_REGISTERED]:
        state[T_ORDER] += 1
        segment[row, S_ORDER] = state[T_ORDER]
    else:
        segment[row, S_ORDER] = 0
    segment[row, S_PREVIOUS] = before
    segment[row, S_NEXT] = following
    if following > 0:
        segment[following, S_PREVIOUS] = row
    if before > 0:
        segment[before, S_NEXT] = row
    else:
        state[T_FIRST] = row
    if expandable:
        state[T_EXPANDABLE] += 1
    else:
        grow(state, size)
    return node


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def grow(state: cython.longlong[::1], size: cython.longlong) -> cython.void:
    """Counts memory taken from the device, and what the limit leaves besides."""
    state[T_RESERVED] += size
    state[T_GROWN] += size
    state[T_TAKEN] += 1
    state[T_PEAK_RESERVED] = max(state[T_PEAK_RESERVED], state[T_RESERVED])
    state[T_SLACK] = min(state[T_SLACK], state[T_LIMIT] - state[T_RESERVED])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def drop_segment(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    row: cython.longlong,
) -> cython.void:
    """Returns a segment whose only block is free, or unmapped, and in its set."""
    node: cython.longlong = segment[row, S_HEAD]
    before: cython.longlong = segment[row, S_PREVIOUS]
    behind: cython.longlong = segment[row, S_NEXT]
    take_out(block, segment, node)
    _drop_block(block, state, node)
    if before > 0:
        segment[before, S_NEXT] = behind
    else:
        state[T_FIRST] = behind
    if behind > 0:
        segment[behind, S_PREVIOUS] = before
    state[T_RESERVED] -= segment[row, S_MAPPED]
    if segment[row, S_EXPANDABLE]:
        state[T_EXPANDABLE] -= 1
    else:
        state[T_RETURNED] += 1
    state[T_SEGMENTS] -= 1
    segment[row, S_HEAD] = 0
    segment[row, S_NEXT] = state[T_SEGMENT_SPARE]
    state[T_SEGMENT_SPARE] = row
