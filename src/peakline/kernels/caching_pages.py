"""Pages of expandable segments, mapped and unmapped
(``c10/cuda/CUDACachingAllocator.cpp``: ``map_block``, ``unmap_block``).
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.caching_blocks import (
        drop_segment,
        grow,
        keep_in_set,
        merge,
        split,
        take_out,
    )
    from peakline.kernels.caching_layout import (
        B_ADDRESS,
        B_NEXT,
        B_PREVIOUS,
        B_SEGMENT,
        B_SIZE,
        B_STATE,
        IS_FREE,
        IS_UNMAPPED,
        LARGE,
        R_LARGE,
        S_BASE,
        S_MAPPED,
        S_ROOT,
        SMALL_SEGMENT,
        T_LIMIT,
        T_RESERVED,
        T_RETURNED,
    )

__all__ = ["map_pages", "page_bytes", "unmap"]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def page_bytes(rules: cython.const[cython.longlong][::1], root: cython.longlong) -> cython.longlong:
    """What is mapped at once of an expandable segment with this root."""
    return rules[R_LARGE] if root & LARGE else SMALL_SEGMENT


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def map_pages(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    rules: cython.const[cython.longlong][::1],
    node: cython.longlong,
    size: cython.longlong,
) -> cython.bint:
    """Maps the first ``size`` bytes, in whole pages, of an unmapped block in its set, which becomes
    a free one in its set, joined with its neighbours; False where the limit has no room.
    """
    row: cython.longlong = block[node, B_SEGMENT]
    page: cython.longlong = page_bytes(rules, segment[row, S_ROOT])
    mapped: cython.longlong = min((size + page - 1) // page * page, block[node, B_SIZE])
    if mapped > state[T_LIMIT] - state[T_RESERVED]:
        return False
    take_out(block, segment, node)
    if mapped < block[node, B_SIZE]:
        keep_in_set(block, segment, split(block, state, node, mapped, IS_UNMAPPED))
    block[node, B_STATE] = IS_FREE
    merge(block, segment, state, node)
    keep_in_set(block, segment, node)
    segment[row, S_MAPPED] += mapped
    grow(state, mapped)
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def unmap(
    block: cython.longlong[:, ::1],
    segment: cython.longlong[:, ::1],
    state: cython.longlong[::1],
    rules: cython.const[cython.longlong][::1],
    node: cython.longlong,
) -> cython.longlong:
    """Returns the whole pages of a free block of an expandable segment; what is left of it at both
    ends stays free. The segment goes with its last page.

    Gives the block that is unmapped, the given one where it has no whole page, 0 where the segment
    went.
    """
    row: cython.longlong = block[node, B_SEGMENT]
    page: cython.longlong = page_bytes(rules, segment[row, S_ROOT])
    start: cython.longlong = block[node, B_ADDRESS] - segment[row, S_BASE]
    first: cython.longlong = (start + page - 1) // page * page
    last: cython.longlong = (start + block[node, B_SIZE]) // page * page
    middle: cython.longlong = node
    if last <= first:
        return node
    take_out(block, segment, node)
    if first > start:
        middle = split(block, state, node, first - start, IS_UNMAPPED)
        keep_in_set(block, segment, node)
    if last - first < block[middle, B_SIZE]:
        keep_in_set(block, segment, split(block, state, middle, last - first, IS_FREE))
    block[middle, B_STATE] = IS_UNMAPPED
    merge(block, segment, state, middle)
    keep_in_set(block, segment, middle)
    segment[row, S_MAPPED] -= last - first
    state[T_RESERVED] -= last - first
    state[T_RETURNED] += 1
    if block[middle, B_PREVIOUS] == 0 and block[middle, B_NEXT] == 0:
        drop_segment(block, segment, state, row)
        return 0
    return middle
