"""What is replayed through a model of PyTorch's caching allocator, and the state it begins in."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array, UInt8Array
from peakline.kernels.caching_layout import ALLOCATE

HIGHEST = 1 << 62
"""Addresses lie below."""


def _none() -> Int64Array:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class CachingEvents:
    """Events in order: ``kind`` is one of `peakline.kernels.caching_layout`, ``subject`` the number
    of a buffer (for what was returned, a row of ``returned``, which are addresses).

    Of each buffer: ``requested`` (bytes) and ``lane``, a row of ``lane_pool`` and ``lane_stream``;
    pool 0 is the common one, which the first lane belongs to. What a recording knows besides, of
    each buffer, for a proof: ``address`` (-1: unknown), and the address and size of the segment
    that was taken for it, ``segment_base`` (-1: none) and ``segment_bytes`` (all that was taken,
    pages of expandable segments too).
    """

    kind: UInt8Array
    subject: Int64Array
    requested: Int64Array
    lane: Int32Array
    lane_pool: Int64Array
    lane_stream: Int64Array
    returned: Int64Array = field(default_factory=_none)
    address: Int64Array = field(default_factory=_none)
    segment_base: Int64Array = field(default_factory=_none)
    segment_bytes: Int64Array = field(default_factory=_none)

    def __len__(self) -> int:
        return int(self.kind.size)

    @classmethod
    def of(
        cls,
        kind: AnyArray,
        subject: AnyArray,
        requested: AnyArray,
        stream: AnyArray,
        pool: AnyArray | None = None,
        lanes: AnyArray | None = None,
    ) -> CachingEvents:
        """Events of buffers with these requests, streams and pools (any numbers; 0 is the common
        pool, which all use where there is none given). ``lanes`` are further pairs of a pool and a
        stream, a row each.
        """
        stream = np.asarray(stream).astype(np.int64)
        pool = np.zeros(stream.size, np.int64) if pool is None else np.asarray(pool, np.int64)
        first = int(stream[pool == 0][0]) if (pool == 0).any() else 0
        more = np.zeros((0, 2), np.int64) if lanes is None else np.asarray(lanes, np.int64)
        pools, pool_of = np.unique(np.concatenate([pool, more[:, 0], [0]]), return_inverse=True)
        streams, stream_of = np.unique(
            np.concatenate([stream, more[:, 1], [first]]), return_inverse=True
        )
        used, of = np.unique(pool_of * streams.size + stream_of, return_inverse=True)
        lane_pool, lane_stream = pools[used // streams.size], streams[used % streams.size]
        # The first lane is one of the common pool, whatever numbers others have.
        order = np.argsort(lane_pool != 0, kind="stable")
        place = np.empty(order.size, np.int32)
        place[order] = np.arange(order.size)
        return cls(
            np.ascontiguousarray(kind, np.uint8),
            np.ascontiguousarray(subject, np.int64),
            np.ascontiguousarray(requested, np.int64),
            place[of[: stream.size]],
            lane_pool[order],
            lane_stream[order],
        )

    def homes(self) -> Int32Array:
        """Of each lane the first one of the same pool."""
        _, first, of = np.unique(self.lane_pool, return_index=True, return_inverse=True)
        return first[of.reshape(-1)].astype(np.int32)

    def preceded_by(self, buffers: AnyArray) -> CachingEvents:
        """The same events behind requests of these buffers."""
        buffers = np.asarray(buffers, np.int64)
        return CachingEvents(
            np.concatenate([np.full(buffers.size, ALLOCATE, np.uint8), self.kind]),
            np.concatenate([buffers, self.subject]),
            self.requested, self.lane, self.lane_pool, self.lane_stream, self.returned,
            self.address, self.segment_base, self.segment_bytes,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class CachingStart:
    """The state of an allocator: its segments, and the blocks in them that are not free.

    A segment is ``base`` and ``size`` (bytes), its ``lane``, whether it is of the large pool and
    whether it is expandable: then it is a range of addresses, and blocks that are unmapped say
    where there is no memory. ``state`` of a block is one of `peakline.kernels.caching_layout`,
    ``buffer`` whose it is (-1 for none).
    """

    base: Int64Array
    size: Int64Array
    lane: Int32Array
    is_large: BoolArray
    is_expandable: BoolArray
    address: Int64Array
    bytes: Int64Array
    buffer: Int64Array
    state: Int64Array

    @classmethod
    def empty(cls) -> CachingStart:
        """Nothing taken yet."""
        none, no = _none(), np.zeros(0, np.bool_)
        return cls(none, none, np.zeros(0, np.int32), no, no, none, none, none, none)

    def sound(self, buffers: int, lanes: int) -> tuple[CachingStart, int]:
        """Without segments and blocks that overlap others, lie outside, or have no size; and how
        many those are.
        """
        segments = np.argsort(self.base, kind="stable")
        base, size = self.base[segments], self.size[segments]
        is_good = _apart(base, size) & (self.lane[segments] >= 0) & (self.lane[segments] < lanes)
        segments = segments[is_good]
        base, size = base[is_good], size[is_good]
        blocks = np.argsort(self.address, kind="stable")
        address, length = self.address[blocks], self.bytes[blocks]
        place = np.searchsorted(base, address, side="right") - 1
        inside = (place >= 0) & _apart(address, length)
        room = np.append(base + size, 0)[place] - address
        inside &= length <= room
        buffer = self.buffer[blocks]
        inside &= (buffer >= -1) & (buffer < buffers)
        _, first = np.unique(np.where(inside, buffer, -1), return_index=True)
        is_first = np.zeros(buffer.size, np.bool_)
        is_first[first] = True
        inside &= is_first | (buffer < 0)
        blocks = blocks[inside]
        lost = self.base.size - segments.size + self.address.size - blocks.size
        return CachingStart(
            base, size, self.lane[segments], self.is_large[segments], self.is_expandable[segments],
            self.address[blocks], self.bytes[blocks], self.buffer[blocks], self.state[blocks],
        ), lost  # fmt: skip


def _apart(at: Int64Array, size: Int64Array) -> BoolArray:
    """Which of some ranges, in order of ``at``, are in bounds and begin behind all before."""
    good = (at >= 0) & (at <= HIGHEST) & (size > 0) & (size <= HIGHEST - np.clip(at, 0, HIGHEST))
    end = np.where(good, at, 0) + np.where(good, size, 0)
    latest = np.maximum.accumulate(end)
    good[1:] &= at[1:] >= latest[:-1]
    return good
