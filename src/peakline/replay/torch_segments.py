"""The segments of a snapshot of PyTorch's caching allocator, back to where its history begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.kernels import caching_layout as layout
from peakline.replay.torch_events import HIGHEST, CachingEvents, CachingStart
from peakline.tables import Profile

TAKES = {"segment_alloc": 1, "segment_map": 2, "segment_free": -1, "segment_unmap": -2}
"""What the rows of a history do with the device's memory."""
_FAR = 1 << 40
"""Pages so far apart belong to two ranges of addresses."""
_STATES = {"free": layout.IS_FREE, "in_use": layout.IS_LIVE, "awaiting_free": layout.IS_AWAITING}


@dataclass(frozen=True, eq=False)
class Final:
    """Segments and blocks of one allocator, in order of their addresses. ``pool`` is 0 for the
    common one; an expandable segment is a run of mapped pages.
    """

    base: Int64Array
    size: Int64Array
    stream: Int64Array
    pool: Int64Array
    is_large: BoolArray
    is_expandable: BoolArray
    address: Int64Array
    bytes: Int64Array
    state: Int64Array

    @classmethod
    def of(cls, profile: Profile, allocator: str) -> Final:
        """From the tables ``segments`` and ``blocks``."""
        segments, blocks = profile.columns("segments"), profile.columns("blocks")
        names = segments.names("allocator")
        mine = np.flatnonzero(
            names.codes == (names.code_of(allocator) if allocator in names.values else -2)
        )
        base = segments.array("address").view(np.int64)
        mine = mine[np.argsort(base[mine], kind="stable")]
        number = segments.array("segment_id")[mine]
        is_mine = np.flatnonzero(np.isin(blocks.array("segment_id"), number))
        at = blocks.array("address").view(np.int64)
        is_mine = is_mine[np.argsort(at[is_mine], kind="stable")]
        pools, kinds = segments.names("pool"), segments.names("segment_type")
        pool = np.array([*(0 if not name else n + 1 for n, name in enumerate(pools.values)), 0])
        large = np.array([*(name != "small" for name in kinds.values), True], np.bool_)
        states = blocks.names("state")
        state = np.array([*(_STATES.get(n or "", layout.IS_FREE) for n in states.values), 0])
        return cls(
            base[mine], segments.array("total_bytes")[mine], segments.array("stream")[mine],
            pool[pools.codes[mine]].astype(np.int64), large[kinds.codes[mine]],
            segments.array("is_expandable")[mine].astype(np.bool_),
            at[is_mine], blocks.array("bytes")[is_mine],
            state[states.codes[is_mine]].astype(np.int64),
        )  # fmt: skip

    @property
    def mapped(self) -> int:
        """Bytes taken from the device."""
        return int(self.size.sum())


@dataclass(frozen=True, eq=False)
class Takes:
    """What was taken and returned. Of each buffer ``base`` and ``bytes`` of what was taken for it
    (-1 and 0: nothing). ``row`` are the records of both in order, with ``kind`` (`TAKES`),
    ``address``, ``size`` and ``stream``, and ``buffer``, for which it was taken (-1: unknown);
    ``return_row`` and ``returned`` are records and addresses of what was returned.
    """

    base: Int64Array
    bytes: Int64Array
    row: Int64Array
    kind: Int64Array
    address: Int64Array
    size: Int64Array
    stream: Int64Array
    buffer: Int64Array
    return_row: Int64Array

    @property
    def returned(self) -> Int64Array:
        """Addresses of what was returned."""
        return self.address[self.kind < 0]


def takes_of(
    kind: Int64Array,
    address: Int64Array,
    size: Int64Array,
    stream: Int64Array,
    place: Int64Array,
    allocations: Int64Array,
    is_first: BoolArray,
) -> Takes:
    """Takes of a history's rows; what is taken is for the next allocation on the same stream,
    which is none of those that were there at first.
    """
    rows = place[kind != 0]
    base = np.full(allocations.size, -1, np.int64)
    taken = np.zeros(allocations.size, np.int64)
    grown = rows[kind[rows] > 0]
    buffer = np.full(kind.size, -1, np.int64)
    for one in np.unique(stream[grown]).tolist():
        mine = np.flatnonzero((stream[allocations] == one) & ~is_first)
        takes = grown[stream[grown] == one]
        of = np.searchsorted(allocations[mine], takes)
        takes, of = takes[of < mine.size], mine[of[of < mine.size]]
        buffer[takes] = of
        np.add.at(taken, of, size[takes])
        # The first counts: further pages follow it.
        base[of[::-1]] = address[takes][::-1]
    return Takes(
        base, taken, rows, kind[rows], address[rows], size[rows], stream[rows], buffer[rows],
        rows[kind[rows] < 0],
    )  # fmt: skip


def pools_of(final: Final, takes: Takes, address: Int64Array, when: Int64Array) -> Int64Array:
    """The pool of each buffer: that of the segment at its address, where that was there already.

    The pool of segments that are gone is not recorded: they count as the common one's.
    """
    if not final.pool.any():
        return np.zeros(address.size, np.int64)
    at = np.searchsorted(final.base, address, side="right") - 1
    inside = (at >= 0) & (address < (final.base + final.size)[at])
    # The last time that the segment's address was taken.
    since = np.full(final.base.size, -1, np.int64)
    is_alloc = takes.kind == TAKES["segment_alloc"]
    place = np.searchsorted(final.base, takes.address[is_alloc])
    known = place < final.base.size
    known[known] = final.base[place[known]] == takes.address[is_alloc][known]
    np.maximum.at(since, place[known], takes.row[is_alloc][known])
    return np.where(inside & (when > since[at]), final.pool[at], 0)


def first_state(
    final: Final,
    takes: Takes,
    events: CachingEvents,
    before: Int64Array,
    address: Int64Array,
    size: Int64Array,
) -> CachingStart:
    """The state before the history: the segments at its end, without those that were taken, with
    those that were returned; the buffers ``before`` in it at ``address`` with ``size`` bytes.
    """
    base, length, stream, pool, is_large = _whole_segments(final, takes)
    lanes = _lane_numbers(events, pool, stream)
    ranges = _page_ranges(final, takes, events)
    holes = [(at, room) for *_, pieces in ranges for at, room in pieces]
    ends = np.array([(at, room) for _, _, at, room, _ in ranges], np.int64).reshape(-1, 2)
    # A block that nothing else took the place of has the size it has at the end.
    place = np.searchsorted(final.address, address)
    is_there = place < final.address.size
    is_there[is_there] = final.address[place[is_there]] == address[is_there]
    is_there[is_there] = final.state[place[is_there]] != layout.IS_FREE
    is_there &= ~np.isin(address, np.delete(events.address, before))
    size = np.where(is_there, np.append(final.bytes, 0)[np.where(is_there, place, -1)], size)
    # Blocks that nothing freed and that wait at the end waited then too.
    waiting = final.address[final.state == layout.IS_AWAITING]
    touched = np.isin(before, events.subject[events.kind != layout.ALLOCATE])
    state = np.where(np.isin(address, waiting) & ~touched, layout.IS_AWAITING, layout.IS_LIVE)
    gaps = np.array(holes, np.int64).reshape(-1, 2)
    return CachingStart(
        np.concatenate([base, ends[:, 0]]),
        np.concatenate([length, ends[:, 1]]),
        np.concatenate([lanes, np.array([lane for lane, *_ in ranges], np.int64)]).astype(np.int32),
        np.concatenate([is_large, np.array([large for _, large, *_ in ranges], np.bool_)]),
        np.repeat([False, True], [base.size, len(ranges)]),
        np.concatenate([address, gaps[:, 0]]),
        np.concatenate([size, gaps[:, 1]]),
        np.concatenate([before, np.full(len(gaps), -1, np.int64)]),
        np.concatenate([state, np.full(len(gaps), layout.IS_UNMAPPED, np.int64)]),
    )


def _lane_numbers(events: CachingEvents, pool: Int64Array, stream: Int64Array) -> Int64Array:
    """The lane of each pair; what no event uses is in none."""
    lanes = {
        pair: n
        for n, pair in enumerate(
            zip(events.lane_pool.tolist(), events.lane_stream.tolist(), strict=True)
        )
    }
    pairs = zip(pool.tolist(), stream.tolist(), strict=True)
    return np.array([lanes.get(pair, -1) for pair in pairs], np.int64)


def _whole_segments(
    final: Final, takes: Takes
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, BoolArray]:
    """Segments that are not expandable, at the begin."""
    rows = np.flatnonzero(~final.is_expandable)
    fields = (final.base, final.size, final.stream, final.pool, final.is_large)
    there = {
        at: (size, stream, pool, large)
        for at, size, stream, pool, large in zip(
            *(column[rows].tolist() for column in fields), strict=True
        )
    }
    columns = (takes.kind, takes.address, takes.size, takes.stream)
    for kind, at, size, stream in reversed(list(zip(*(c.tolist() for c in columns), strict=True))):
        if kind == TAKES["segment_alloc"]:
            there.pop(at, None)
        elif kind == TAKES["segment_free"]:
            there[at] = (size, stream, 0, size > layout.SMALL_SEGMENT)
    base = np.array(sorted(there), np.int64)
    values = [there[at] for at in base.tolist()]
    size, stream, pool, large = ([value[n] for value in values] for n in range(4))
    return (
        base, np.array(size, np.int64), np.array(stream, np.int64), np.array(pool, np.int64),
        np.array(large, np.bool_),
    )  # fmt: skip


_Range = tuple[int, bool, int, int, list[tuple[int, int]]]
"""Lane, whether it is large, address and bytes, and its unmapped pieces."""


def _page_ranges(final: Final, takes: Takes, events: CachingEvents) -> list[_Range]:
    """Ranges of addresses of expandable segments that have pages at the begin."""
    rows = np.flatnonzero(final.is_expandable)
    is_map = np.abs(takes.kind) == TAKES["segment_map"]
    owner = _owner_of(final, rows, events)
    pages: dict[tuple[int, bool, int], list[tuple[int, int]]] = {}
    seen: dict[tuple[int, bool, int], list[tuple[int, int]]] = {}
    for at, size in zip(final.base[rows].tolist(), final.size[rows].tolist(), strict=True):
        pages.setdefault(owner(at, size), []).append((at, at + size))
        seen.setdefault(owner(at, size), []).append((at, at + size))
    columns = (takes.kind[is_map], takes.address[is_map], takes.size[is_map])
    for kind, at, size in reversed(list(zip(*(c.tolist() for c in columns), strict=True))):
        key = owner(at, size)
        there = pages.setdefault(key, [])
        seen.setdefault(key, []).append((at, at + size))
        pages[key] = _without(there, at, at + size) if kind > 0 else [*there, (at, at + size)]
    result: list[_Range] = []
    for (pool, large, stream), there in pages.items():
        lane = int(_lane_numbers(events, np.array([pool]), np.array([stream]))[0])
        for begin, last, parts in _together(there):
            # The first page ever mapped is at the begin of the range.
            low = min((a for a, _ in seen[pool, large, stream] if last - a < _FAR), default=begin)
            result.append((lane, large, min(low, begin), last, parts))
    return _filled(sorted(result, key=lambda one: one[2]))


def _owner_of(
    final: Final, rows: Int64Array, events: CachingEvents
) -> Callable[[int, int], tuple[int, bool, int]]:
    """Pool, size class and stream of pages: of the block or the segment that is nearest to them."""
    address = np.concatenate([final.base[rows], events.address])
    order = np.argsort(address, kind="stable")
    address = address[order]
    pool = np.concatenate([final.pool[rows], events.lane_pool[events.lane]])[order]
    large = np.concatenate([final.is_large[rows], events.requested > layout.SMALL])[order]
    stream = np.concatenate([final.stream[rows], events.lane_stream[events.lane]])[order]

    def owner(at: int, size: int) -> tuple[int, bool, int]:
        place = int(np.searchsorted(address, at))
        near = [n for n in (place, place - 1) if 0 <= n < address.size]
        if not near:
            return 0, True, 0
        best = min(near, key=lambda n: max(int(address[n]) - at - size, at - int(address[n])))
        return int(pool[best]), bool(large[best]), int(stream[best])

    return owner


def _without(parts: list[tuple[int, int]], first: int, last: int) -> list[tuple[int, int]]:
    """Parts of an interval that are outside of another."""
    left = []
    for a, b in parts:
        if a < min(b, first):
            left.append((a, min(b, first)))
        if max(a, last) < b:
            left.append((max(a, last), b))
    return left


def _together(parts: list[tuple[int, int]]) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Intervals in groups that are far apart."""
    groups: list[tuple[int, int, list[tuple[int, int]]]] = []
    for a, b in sorted(parts):
        if groups and a - groups[-1][1] < _FAR:
            first, last, of = groups.pop()
            groups.append((first, max(last, b), [*of, (a, b)]))
        else:
            groups.append((a, b, [(a, b)]))
    return groups


def _filled(result: list[_Range]) -> list[_Range]:
    """Ranges up to the next one's begin, and where they have no pages."""
    ranges = []
    for n, (lane, large, low, last, parts) in enumerate(result):
        page = 20 * (1 << 20) if large else layout.SMALL_SEGMENT
        top = result[n + 1][2] if n + 1 < len(result) else HIGHEST
        end = max(last, min(top, low + (_FAR + _FAR // 8) // page * page))
        holes, at = [], low
        for a, b in parts:
            if a > at:
                holes.append((at, a - at))
            at = max(at, b)
        if end > at:
            holes.append((at, end - at))
        ranges.append((lane, large, low, end - low, holes))
    return ranges
