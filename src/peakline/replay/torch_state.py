"""The state of a model of PyTorch's caching allocator: built, and read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array
from peakline.kernels import caching_allocator
from peakline.kernels import caching_layout as layout
from peakline.replay.torch_events import CachingStart

MOST_PRIORITY = 1 << 62
"""Random numbers that balance the ordered sets are below."""


@dataclass(frozen=True, eq=False)
class CachingBlocks:
    """Segments in order of their addresses, and their blocks: ``segment`` is a block's segment,
    ``state`` one of `peakline.kernels.caching_layout`, ``buffer`` who has it (-1: nobody).

    Unmapped parts of expandable segments are blocks too.
    """

    base: Int64Array
    size: Int64Array
    lane: Int32Array
    is_large: BoolArray
    is_expandable: BoolArray
    segment: Int64Array
    address: Int64Array
    bytes: Int64Array
    state: Int64Array
    buffer: Int64Array


def built(
    start: CachingStart, home: Int32Array, random: np.random.Generator
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Rows of blocks and segments, and the counts of both, for a sound state."""
    state = np.zeros(layout.STATE_FIELDS, np.int64)
    roots = layout.ROOTS * home.size
    base, size = start.base, start.size
    count = base.size
    # The gaps between blocks are blocks too: from each block's end, or its segment's begin.
    owner = np.searchsorted(base, start.address, side="right") - 1
    edges = np.concatenate([base, start.address + start.bytes])
    edge_owner = np.concatenate([np.arange(count), owner])
    by = np.lexsort((edges, edge_owner))
    edges, edge_owner = edges[by], edge_owner[by]
    following = np.append(start.address, 0)[np.arange(edges.size) - edge_owner]
    is_end = np.append(edge_owner[1:] != edge_owner[:-1], True)[: edges.size]
    gap_end = np.where(is_end, (base + size)[edge_owner], following)
    gaps = np.flatnonzero(gap_end > edges)
    none = np.full(gaps.size, -1, np.int64)
    address = np.concatenate([start.address, edges[gaps]])
    pieces = np.zeros((address.size, layout.BLOCK_FIELDS), np.int64)
    pieces[:, layout.B_ADDRESS] = address
    pieces[:, layout.B_SIZE] = np.concatenate([start.bytes, gap_end[gaps] - edges[gaps]])
    pieces[:, layout.B_STATE] = np.concatenate([start.state, none * 0 + layout.IS_FREE])
    pieces[:, layout.B_BUFFER] = np.concatenate([start.buffer, none])
    pieces[:, layout.B_SEGMENT] = np.concatenate([owner, edge_owner[gaps]]) + 1
    pieces = pieces[np.argsort(address, kind="stable")]
    used = roots + len(pieces)
    block = np.zeros((used, layout.BLOCK_FIELDS), np.int64)
    block[roots:] = pieces
    block[:, layout.B_PRIORITY] = random.integers(0, MOST_PRIORITY, used)
    rows = np.arange(roots, used)
    is_same = pieces[1:, layout.B_SEGMENT] == pieces[:-1, layout.B_SEGMENT]
    block[rows[1:][is_same], layout.B_PREVIOUS] = rows[:-1][is_same]
    block[rows[:-1][is_same], layout.B_NEXT] = rows[1:][is_same]
    is_head = np.ones(len(pieces), np.bool_)
    is_head[1:] = ~is_same
    segment = np.zeros((count + 1, layout.SEGMENT_FIELDS), np.int64)
    table = segment[1:]
    table[:, layout.S_BASE], table[:, layout.S_SIZE] = base, size
    table[:, layout.S_HEAD] = rows[is_head]
    large = start.is_large * layout.LARGE
    table[:, layout.S_ROOT] = start.lane * layout.ROOTS + large
    table[:, layout.S_HOME] = home[start.lane] * layout.ROOTS + large
    table[:, layout.S_EXPANDABLE] = start.is_expandable
    unmapped = np.zeros(count, np.int64)
    is_unmapped = pieces[:, layout.B_STATE] == layout.IS_UNMAPPED
    at = pieces[is_unmapped, layout.B_SEGMENT] - 1
    np.add.at(unmapped, at, pieces[is_unmapped, layout.B_SIZE])
    table[:, layout.S_MAPPED] = size - unmapped
    table[:, layout.S_PREVIOUS] = np.arange(count)
    table[:, layout.S_NEXT] = np.append(np.arange(2, count + 1), 0)[:count]
    table[:, layout.S_COMMON] = home[start.lane] == home[0]
    is_live = pieces[:, layout.B_STATE] == layout.IS_LIVE
    is_awaiting = pieces[:, layout.B_STATE] == layout.IS_AWAITING
    state[layout.T_USED], state[layout.T_BLOCKS] = used, len(pieces)
    state[layout.T_SEGMENTS_USED], state[layout.T_SEGMENTS] = count + 1, count
    state[layout.T_FIRST] = min(count, 1)
    state[layout.T_RESERVED] = state[layout.T_PEAK_RESERVED] = table[:, layout.S_MAPPED].sum()
    state[layout.T_IN_USE] = state[layout.T_PEAK_IN_USE] = pieces[is_live, layout.B_SIZE].sum()
    state[layout.T_AWAITING] = pieces[is_awaiting, layout.B_SIZE].sum()
    state[layout.T_WAITING] = is_awaiting.sum()
    state[layout.T_EXPANDABLE] = start.is_expandable.sum()
    caching_allocator.settle(block, segment, roots, used)
    return block, segment, state


def blocks_of(block: Int64Array, segment: Int64Array, used: int, roots: int) -> CachingBlocks:
    """All blocks in the first ``used`` rows, ``roots`` of which are none."""
    rows = block[roots:used]
    rows = rows[rows[:, layout.B_STATE] != layout.IS_SPARE]
    numbers, of = np.unique(rows[:, layout.B_SEGMENT], return_inverse=True)
    table = segment[numbers]
    order = np.argsort(table[:, layout.S_BASE], kind="stable")
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    of = place[of.reshape(-1)]
    table = table[order]
    by = np.lexsort((rows[:, layout.B_ADDRESS], of))
    rows, of = rows[by], of[by]
    return CachingBlocks(
        table[:, layout.S_BASE],
        table[:, layout.S_SIZE],
        (table[:, layout.S_ROOT] // layout.ROOTS).astype(np.int32),
        table[:, layout.S_ROOT] & layout.LARGE != 0,
        table[:, layout.S_EXPANDABLE] != 0,
        of,
        rows[:, layout.B_ADDRESS],
        rows[:, layout.B_SIZE],
        rows[:, layout.B_STATE],
        rows[:, layout.B_BUFFER],
    )
