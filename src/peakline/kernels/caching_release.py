"""How PyTorch's caching allocator returns memory to the device
(``c10/cuda/CUDACachingAllocator.cpp``: ``garbage_collect_cached_blocks``,
``release_available_cached_blocks``, ``release_cached_blocks``).
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.block_tree import before, lower
    from peakline.kernels.caching_blocks import drop_segment, give_back
    from peakline.kernels.caching_layout import (
        B_ADDRESS,
        B_BORN,
        B_BUFFER,
        B_NEXT,
        B_ORDER,
        B_PREVIOUS,
        B_SEGMENT,
        B_SIZE,
        B_STATE,
        IS_AWAITING,
        IS_FREE,
        LARGE,
        R_MAX_SPLIT,
        S_COMMON,
        S_EXPANDABLE,
        S_HEAD,
        S_HOME,
        S_NEXT,
        S_ROOT,
        T_AWAITING,
        T_EARLY,
        T_FIRST,
        T_RESERVED,
        T_SLACK_THRESHOLD,
        T_THRESHOLD,
        T_USED,
        T_WAITING,
        T_WORK,
    )
    from peakline.kernels.caching_pages import unmap

__all__ = ["collect", "is_expandable", "release_available", "release_cached"]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_expandable(
    block: cython.longlong[:, ::1], segment: cython.longlong[:, ::1], node: cython.longlong
) -> cython.bint:
    """Whether a block belongs to an expandable segment."""
    return segment[block[node, B_SEGMENT], S_EXPANDABLE] != 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_whole(block: cython.longlong[:, ::1], node: cython.longlong) -> cython.bint:
    """Whether a block is all of its segment."""
    return block[node, B_PREVIOUS] == 0 and block[node, B_NEXT] == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def collect(
    block: cython.longlong[:, ::1], segment: cython.longlong[:, ::1], state: cython.longlong[::1]
) -> cython.void:
    """Returns the segments that were free for longest (``garbage_collect_cached_blocks``)."""
    target: cython.longlong = state[T_RESERVED] - state[T_THRESHOLD]
    reclaimed: cython.longlong = 0
    ages: cython.longlong = 0
    count: cython.longlong = 0
    pass_ages: cython.longlong
    pass_count: cython.longlong
    row: cython.longlong
    following: cython.longlong
    node: cython.longlong
    age: cython.longlong
    is_counting: cython.bint = True
    has_freed: cython.bint = True
    if target <= 0:
        state[T_SLACK_THRESHOLD] = min(state[T_SLACK_THRESHOLD], -target)
        return
    while is_counting or (reclaimed < target and has_freed and count > 0):
        has_freed = False
        pass_ages, pass_count = ages, count
        row = state[T_FIRST]
        while row > 0:
            following = segment[row, S_NEXT]
            node = segment[row, S_HEAD]
            state[T_WORK] += 1
            if (
                segment[row, S_COMMON]
                and segment[row, S_ROOT] & LARGE
                and not segment[row, S_EXPANDABLE]
                and block[node, B_STATE] == IS_FREE
                and block[node, B_NEXT] == 0
            ):
                age = block[0 + LARGE, B_BORN] - block[node, B_BORN]
                if is_counting:
                    ages += age
                    count += 1
                elif age * pass_count >= pass_ages:
                    has_freed = True
                    reclaimed += block[node, B_SIZE]
                    ages -= age
                    count -= 1
                    drop_segment(block, segment, state, row)
            row = following
        if is_counting:
            is_counting, has_freed = False, True
    if reclaimed >= target:
        state[T_SLACK_THRESHOLD] = min(state[T_SLACK_THRESHOLD], reclaimed - target)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def release_available(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    rules: cython.const[cython.longlong][::1],
    root: cython.longlong,
    size: cython.longlong,
) -> cython.bint:
    """Returns free segments that may not be split, until ``size`` bytes of them are returned
    (``release_available_cached_blocks``); whether there were enough.
    """
    least: cython.longlong = max(size, rules[R_MAX_SPLIT])
    released: cython.longlong = 0
    node: cython.longlong = lower(block, root, least, -1, 0, 0)
    other: cython.longlong
    if node > 0 and not is_expandable(block, segment, node) and _is_whole(block, node):
        drop_segment(block, segment, state, block[node, B_SEGMENT])
        return True
    node = before(block, root, least, -1, 0, 0)
    while released < least and node > 0 and block[node, B_SIZE] >= rules[R_MAX_SPLIT]:
        state[T_WORK] += 1
        other = before(
            block, root, block[node, B_SIZE], block[node, B_ORDER], block[node, B_ADDRESS], node
        )
        if not is_expandable(block, segment, node) and _is_whole(block, node):
            released += block[node, B_SIZE]
            drop_segment(block, segment, state, block[node, B_SEGMENT])
        node = other
    return released >= least


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def release_cached(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    rules: cython.const[cython.longlong][::1],
    roots: cython.longlong,
    node_of: cython.int[::1],
) -> cython.void:
    """Ends the wait for other streams, and returns all that is free and of the common pool in whole
    segments or pages (``release_cached_blocks``).

    ``node_of`` becomes -1 for buffers whose end of waiting is still to come.
    """
    node: cython.longlong
    row: cython.longlong
    following: cython.longlong
    if state[T_WAITING] > 0:
        for node in range(roots, state[T_USED]):
            state[T_WORK] += 1
            if block[node, B_STATE] == IS_AWAITING:
                state[T_AWAITING] -= block[node, B_SIZE]
                state[T_WAITING] -= 1
                state[T_EARLY] += 1
                node_of[block[node, B_BUFFER]] = -1
                give_back(block, segment, state, node)
    row = state[T_FIRST]
    while row > 0:
        state[T_WORK] += 1
        following = segment[row, S_NEXT]
        node = segment[row, S_HEAD]
        if not segment[row, S_COMMON] and block[segment[row, S_HOME], B_BUFFER] == 0:
            # A private pool that is in use.
            pass
        elif segment[row, S_EXPANDABLE]:
            while node > 0:
                state[T_WORK] += 1
                if block[node, B_STATE] == IS_FREE:
                    node = unmap(block, segment, state, rules, node)
                node = block[node, B_NEXT] if node > 0 else 0
        elif block[node, B_STATE] == IS_FREE and _is_whole(block, node):
            drop_segment(block, segment, state, row)
        row = following
