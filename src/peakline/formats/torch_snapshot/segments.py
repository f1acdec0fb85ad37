"""The segments of a snapshot and the blocks that fill them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array, UInt64Array
from peakline.formats.torch_snapshot.stacks import Stacks
from peakline.formats.torch_snapshot.unpickle import Bad, dicts, integers, texts
from peakline.tables.columns import Columns, Names

STATES = ("free", "in_use", "awaiting_free")
FREE, IN_USE = 0, 1
_STATE_OF = {
    "inactive": 0,
    "active_allocated": 1,
    "active_awaiting_free": 2,
    "active_pending_free": 2,
}
"""The Python and the C++ spellings."""

_COMMON_POOL = (0, 0)


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments and their blocks as columns; ``block_segment`` is a block's row in the segments.

    ``stack`` is -1 where a block has none. ``unknown_states`` counts blocks that are taken as
    free because their state has an unknown name.
    """

    allocator: Int32Array
    address: UInt64Array
    total: Int64Array
    allocated: Int64Array
    active: Int64Array
    requested: Int64Array
    stream: Int64Array
    kind: list[str]
    pool: list[str]
    is_expandable: BoolArray
    block_segment: Int64Array
    block_address: UInt64Array
    block_size: Int64Array
    block_requested: Int64Array
    block_state: Int32Array
    stack: Int64Array
    unknown_states: int
    uncovered: int
    """Segments whose blocks do not add up to their size."""

    def table(self, allocators: list[str]) -> Columns:
        """The ``segments`` table."""
        return Columns(
            {
                "segment_id": np.arange(self.total.size, dtype=np.int64),
                "allocator": Names(self.allocator, allocators),
                "address": self.address,
                "total_bytes": self.total,
                "allocated_bytes": self.allocated,
                "active_bytes": self.active,
                "requested_bytes": self.requested,
                "stream": self.stream,
                "segment_type": Names.encode(self.kind),
                "pool": Names.encode(self.pool),
                "is_expandable": self.is_expandable,
            }
        )

    def blocks(self) -> Columns:
        """The ``blocks`` table."""
        return Columns(
            {
                "segment_id": self.block_segment,
                "address": self.block_address,
                "bytes": self.block_size,
                "requested_bytes": self.block_requested,
                "state": Names(self.block_state, STATES),
                "stack_id": self.stack,
            },
            # What was last requested of a free block is no request now.
            {"requested_bytes": self.block_state != FREE, "stack_id": self.stack >= 0},
        )


def read_segments(
    segments: list[dict[Any, Any]], allocators: Int32Array, stacks: Stacks, most_blocks: int
) -> Segments:
    """Columns of ``segments``, whose allocator numbers are ``allocators``.

    Old snapshots leave out block addresses, and have a ``history`` instead of frames and the
    requested size. Raises Bad for fields of the wrong kind, and for more than ``most_blocks``
    blocks (what the file's size allows).
    """
    parts = [segment.get("blocks") for segment in segments]
    # Before they are looked at: segments may share one list.
    if sum(len(part) for part in parts if isinstance(part, list)) > most_blocks:
        raise Bad("segments share their blocks")
    lists = [dicts(part, "'blocks'") for part in parts]
    counts = np.array([len(blocks) for blocks in lists], np.int64)
    rows = [block for blocks in lists for block in blocks]
    segment = np.repeat(np.arange(len(lists), dtype=np.int64), counts)
    size = integers(rows, "size")
    address, total = integers(segments, "address"), integers(segments, "total_size")
    ends = np.cumsum(size)
    starts = np.concatenate([[0], ends])[np.cumsum(counts) - counts]
    place = address[segment] + (ends - size) - starts[segment]
    has = np.array(["address" in row for row in rows], np.bool_)
    place[has] = integers([row for row in rows if "address" in row], "address")

    history = [_history(row) for row in rows]
    requested = np.where(
        [past is not None for past in history],
        integers([past or {} for past in history], "real_size", 0),
        integers(rows, "requested_size", -1),
    )
    names = texts(rows, "state")
    state = np.array([_STATE_OF.get(name, FREE) for name in names], np.int32)
    covered = np.zeros(total.size, np.int64)
    np.add.at(covered, segment, size)
    used = np.zeros((2, total.size), np.int64)
    for row, states in enumerate(((IN_USE,), (IN_USE, 2))):
        np.add.at(used[row], segment, np.where(np.isin(state, states), size, 0))
    request = np.zeros(total.size, np.int64)
    asking = np.where(requested < 0, size, requested)
    np.add.at(request, segment, np.where(state == FREE, 0, asking))
    return Segments(
        allocator=allocators,
        address=address.view(np.uint64),
        total=total,
        allocated=_stated(segments, "allocated_size", used[0]),
        active=_stated(segments, "active_size", used[1]),
        requested=_stated(segments, "requested_size", request),
        stream=integers(segments, "stream", 0),
        kind=texts(segments, "segment_type"),
        pool=[_pool(segment.get("segment_pool_id")) for segment in segments],
        is_expandable=np.array([bool(s.get("is_expandable")) for s in segments], np.bool_),
        block_segment=segment,
        block_address=place.view(np.uint64),
        block_size=size,
        block_requested=asking,
        block_state=state,
        stack=stacks.number(
            [
                row.get("frames") if past is None else past.get("frames")
                for row, past in zip(rows, history, strict=True)
            ]
        ),
        unknown_states=sum(name not in _STATE_OF for name in names),
        uncovered=int((covered != total).sum()),
    )


def _history(block: dict[Any, Any]) -> dict[Any, Any] | None:
    """The latest allocation of a block of an old snapshot."""
    history = block.get("history")
    if isinstance(history, list) and history and isinstance(history[0], dict):
        return history[0]
    return None


def _stated(segments: list[dict[Any, Any]], name: str, summed: Int64Array) -> Int64Array:
    """What the segments say, and the sum over their blocks where they do not."""
    has = np.array([name in segment for segment in segments], np.bool_)
    return np.where(has, integers(segments, name, 0), summed)


def _pool(value: object) -> str:
    if not isinstance(value, (tuple, list)) or not all(isinstance(n, int) for n in value[:2]):
        return ""
    numbers = tuple(value[:2])
    return "" if numbers == _COMMON_POOL else ", ".join(map(str, numbers))
