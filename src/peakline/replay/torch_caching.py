"""PyTorch's caching allocator (``c10/cuda/CUDACachingAllocator.cpp``) in the middle of a replay."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array
from peakline.deadline import check_deadline
from peakline.errors import UsageError
from peakline.kernels import caching_allocator
from peakline.kernels import caching_layout as layout
from peakline.replay.torch_events import HIGHEST, CachingEvents, CachingStart
from peakline.replay.torch_settings import CachingSettings

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


UNLIMITED = 1 << 60
"""The limit where none is set: more than any device has."""
_LIMITS = (layout.T_LIMIT, layout.T_ALLOWED, layout.T_THRESHOLD)
_SLACKS = (layout.T_SLACK, layout.T_SLACK_ALLOWED, layout.T_SLACK_THRESHOLD)
PLACEMENTS = {"ascending": 1, "descending": -1, "lowest": 0}
"""Where the device puts a new segment: above all so far, below all, or into the lowest gap."""
_NO_SPLIT_LIMIT = 1 << 62
_MOST_DEVICE = 1 << 40
_SMALL_PAGE = layout.SMALL_SEGMENT


def _rules(settings: CachingSettings, device_bytes: int) -> Int64Array:
    """The settings as the kernel reads them."""
    rules = np.zeros(layout.RULES, np.int64)
    split = settings.max_split_bytes
    rules[layout.R_UNLIMITED] = _NO_SPLIT_LIMIT
    rules[layout.R_MAX_SPLIT] = _NO_SPLIT_LIMIT if split is None else min(split, _NO_SPLIT_LIMIT)
    rules[layout.R_ROUNDING] = min(settings.rounding_bytes, _NO_SPLIT_LIMIT)
    large = min(settings.large_segment_bytes, _MOST_DEVICE)
    rules[layout.R_LARGE] = large
    rules[layout.R_EXPANDABLE] = settings.expandable_segments
    # 1⅛ times the device, in whole pages.
    room = min(device_bytes, _MOST_DEVICE)
    room += room // 8
    rules[layout.R_SMALL_RANGE] = max(-(-room // _SMALL_PAGE), 1) * _SMALL_PAGE
    rules[layout.R_LARGE_RANGE] = max(-(-room // large), 1) * large
    rules[layout.R_LARGEST], rules[layout.R_HIGHEST] = UNLIMITED, HIGHEST
    divisions = settings.roundup_power2_divisions
    rules[layout.R_DIVIDES] = any(one > 1 for one in divisions)
    rules[layout.R_DIVISIONS : layout.R_DIVISIONS + len(divisions)] = divisions
    rules[layout.R_THROWS] = settings.throws_early
    return rules


class CachingMachine:
    """A replay: `advance` goes on with it, `copy` saves it.

    ``limit`` are the bytes of the device that the allocator may take; all segments of all pools
    count. Where a memory fraction is set it is a part of ``limit``. ``device_bytes`` decides how
    large the ranges of addresses of expandable segments are (1⅛ of it; None: as ``limit``).
    New segments go where ``placement`` says, unless ``is_proof``: then they go where the recording
    has them, and a block whose recorded address is another is moved there and counted. With
    ``has_results``, `address`, `block_bytes` and `taken_bytes` are known for every buffer.

    A recording does not say what private pools are for: ``are_pools_captured`` takes their requests
    as made while a CUDA graph is captured, when nothing is released for them.

    Of free blocks of equal size PyTorch takes that of the segment it took first (``is_by_age``, as
    2.14 does), before the one at the lowest address.

    Raises UsageError for an unknown placement.
    """

    __retained__ = "events _block _segment _state _node_of _early address block_bytes taken_bytes"

    def __init__(
        self,
        events: CachingEvents,
        settings: CachingSettings,
        limit: int | None = None,
        start: CachingStart | None = None,
        *,
        device_bytes: int | None = None,
        placement: str = "ascending",
        is_proof: bool = False,
        are_pools_captured: bool = True,
        is_by_age: bool = True,
        has_results: bool = True,
    ) -> None:
        if placement not in PLACEMENTS:
            raise UsageError(f"no placement {placement!r}; there are {', '.join(PLACEMENTS)}")
        self.events, self.settings = events, settings
        self.position = 0
        self.limit = min(max(UNLIMITED if limit is None else limit, 0), UNLIMITED)
        self._home = events.homes()
        self._roots = layout.ROOTS * self._home.size
        self._rules = _rules(settings, self.limit if device_bytes is None else device_bytes)
        self._rules[layout.R_CAPTURED] = are_pools_captured
        self._rules[layout.R_REGISTERED] = is_by_age
        self._is_proof = is_proof
        self._random = np.random.default_rng(0)
        self._node_of: Int32Array | None = None
        self._early = np.zeros(0, np.int64)
        self._slack_before = self.limit
        sizes = events.requested.size if has_results else 0
        self.address, self.block_bytes, self.taken_bytes = (
            np.zeros(sizes, np.int64) for _ in range(3)
        )
        result, self.lost = (start or CachingStart.empty()).sound(
            events.requested.size, self._home.size
        )
        self._block, self._segment, self._state = built(result, self._home, self._random)
        self._state[layout.T_STEP], self._state[layout.T_HINT] = PLACEMENTS[placement], -1
        self._place_from(result.base, result.size, PLACEMENTS[placement])
        known = result.buffer >= 0
        if sizes:
            self.address[result.buffer[known]] = result.address[known]
            self.block_bytes[result.buffer[known]] = result.bytes[known]
        self._set_limits()
        self._state[layout.T_SLACK] = self.limit - self.reserved
        self._state[layout.T_SLACK_ALLOWED : layout.T_SLACK_THRESHOLD + 1] = HIGHEST
        self._state[layout.T_FAILED] = -1
        if self.reserved > self.limit:
            self._state[layout.T_FAILED] = 0

    def _place_from(self, base: Int64Array, size: Int64Array, step: int) -> None:
        """New addresses lie behind, or before, all recorded ones."""
        seen = np.append(self.events.address, self.events.segment_base) if step else base[:0]
        seen = seen[(seen >= 0) & (seen <= HIGHEST)]
        top = max(int((base + size).max(initial=0)), int(seen.max(initial=0)) + (1 << 32))
        low = min(int(base.min(initial=HIGHEST)), int(seen.min(initial=HIGHEST)))
        cursor = {1: top, -1: low, 0: low if base.size else 0}[step]
        page = _SMALL_PAGE
        self._state[layout.T_CURSOR] = (
            cursor // page * page if step < 0 else -(-cursor // page) * page
        )

    def _set_limits(self) -> None:
        allowed, threshold = self.settings.allowed(self.limit), self.settings.threshold(self.limit)
        self._state[layout.T_LIMIT] = self.limit
        self._state[layout.T_ALLOWED] = -1 if allowed is None else allowed
        self._state[layout.T_THRESHOLD] = -1 if threshold is None else threshold

    def advance(self, stop: int | None = None) -> int:
        """Replays until event ``stop`` (None: to the end) or a request that fails: gives where it
        stands. Raises as `check_deadline`.
        """
        stop = len(self.events) if stop is None else min(stop, len(self.events))
        events, proof = self.events, self._is_proof
        none = np.zeros(0, np.int64)
        while self.position < stop and self.failed < 0:
            check_deadline()
            self._make_room()
            self._state[layout.T_WORK] = 0
            self.position = caching_allocator.advance(
                events.kind, events.subject, self.position, stop, events.lane, events.requested,
                self._home, self._rules, self._block, self._segment, self._state, self._nodes(),
                self.address, self.block_bytes, self.taken_bytes,
                events.address if proof else none, events.segment_base if proof else none,
                events.segment_bytes if proof else none, events.returned,
            )  # fmt: skip
        return self.position

    def _nodes(self) -> Int32Array:
        """The block of each buffer, made when it is needed: a copy does without."""
        if self._node_of is None:
            self._node_of = np.zeros(self.events.requested.size, np.int32)
            rows = self._rows_of(layout.IS_LIVE, layout.IS_AWAITING)
            buffer = self._block[rows, layout.B_BUFFER]
            self._node_of[buffer[buffer >= 0]] = rows[buffer >= 0]
            self._node_of[self._early] = -1
        return self._node_of

    def _rows_of(self, *states: int) -> Int64Array:
        used = int(self._state[layout.T_USED])
        result = np.isin(self._block[self._roots : used, layout.B_STATE], states)
        return np.flatnonzero(result) + self._roots

    def _make_room(self) -> None:
        """So many rows that the next events have enough."""
        blocks, segments = (int(self._state[n]) for n in (layout.T_BLOCKS, layout.T_SEGMENTS))
        needed = self._roots + 4 * blocks + 4 * layout.SPARE_BLOCKS
        if len(self._block) < needed - blocks:
            more = np.zeros((needed - len(self._block), layout.BLOCK_FIELDS), np.int64)
            more[:, layout.B_PRIORITY] = self._random.integers(0, MOST_PRIORITY, len(more))
            self._block = np.concatenate([self._block, more])
        if len(self._segment) < segments + 2 * layout.SPARE_SEGMENTS:
            rows = 2 * segments + 4 * layout.SPARE_SEGMENTS - len(self._segment)
            more = np.zeros((rows, layout.SEGMENT_FIELDS), np.int64)
            self._segment = np.concatenate([self._segment, more])

    def copy(self) -> CachingMachine:
        """The same replay at the same event, which goes on by itself.

        Without results: `address` and the like are those of the original, as far as it has gone.
        """
        made = copy.copy(self)
        made._state = self._state.copy()  # noqa: SLF001
        made._block = self._block[: int(self._state[layout.T_USED])].copy()  # noqa: SLF001
        made._segment = self._segment[: int(self._state[layout.T_SEGMENTS_USED])].copy()  # noqa: SLF001
        made._random = np.random.default_rng(0)  # noqa: SLF001
        if self._node_of is not None and self._state[layout.T_EARLY]:
            made._early = np.flatnonzero(self._node_of < 0)  # noqa: SLF001
        elif not self._state[layout.T_EARLY]:
            made._early = np.zeros(0, np.int64)  # noqa: SLF001
        made._node_of = None  # noqa: SLF001
        made.address = made.block_bytes = made.taken_bytes = np.zeros(0, np.int64)
        return made

    def with_limit(self, limit: int) -> CachingMachine:
        """A copy under a smaller limit, which decided the same up to here.

        Raises UsageError for a limit that is not within the `slack`.
        """
        if not self.limit - self.slack <= limit <= self.limit:
            raise UsageError(
                f"under {limit:,} bytes it would not have gone the same; under "
                f"{self.limit - self.slack:,} to {self.limit:,} bytes it would"
            )
        made = self.copy()
        before = [self._state[n] for n in _LIMITS]
        made._slack_before -= self.limit - limit  # noqa: SLF001
        made.limit = limit
        made._set_limits()  # noqa: SLF001
        for n, slack, old in zip(_LIMITS, _SLACKS, before, strict=True):
            made._state[slack] -= old - made._state[n]  # noqa: SLF001
        return made

    def set_memory_fraction(self, fraction: float | None) -> None:
        """From here on another part of ``limit`` may be taken."""
        self._slack_before = self.slack
        self.settings = replace(self.settings, memory_fraction=fraction)
        self._set_limits()
        self._state[layout.T_SLACK_ALLOWED : layout.T_SLACK_THRESHOLD + 1] = HIGHEST

    @property
    def slack(self) -> int:
        """By so many bytes the limit could have been smaller with all decisions the same so far.

        Less than that may be possible with garbage collection, whose decisions are compared by
        how much was collected.
        """
        slack, allowed, threshold = (int(self._state[n]) for n in _SLACKS)
        low, high = 0, min(max(slack, 0), self.limit, self._slack_before)
        least = [(self.settings.allowed, allowed), (self.settings.threshold, threshold)]

        def is_same(less: int) -> bool:
            return all(
                (of(self.limit) or 0) - (of(self.limit - less) or 0) <= most for of, most in least
            )

        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if is_same(middle) else (low, middle - 1)
        return low

    @property
    def failed(self) -> int:
        """The event whose request failed, -1 for none; 0 too where the start is over the limit."""
        return int(self._state[layout.T_FAILED])

    @property
    def in_use(self) -> int:
        """Bytes of blocks that are allocated (PyTorch's ``allocated_bytes``)."""
        return int(self._state[layout.T_IN_USE])

    @property
    def awaiting(self) -> int:
        """Bytes of blocks that are given back but still used by other streams."""
        return int(self._state[layout.T_AWAITING])

    @property
    def reserved(self) -> int:
        """Bytes taken from the device (PyTorch's ``reserved_bytes``)."""
        return int(self._state[layout.T_RESERVED])

    @property
    def peak_in_use(self) -> int:
        """The most of `in_use` so far."""
        return int(self._state[layout.T_PEAK_IN_USE])

    @property
    def peak_reserved(self) -> int:
        """The most of `reserved` so far."""
        return int(self._state[layout.T_PEAK_RESERVED])

    @property
    def strange(self) -> int:
        """Events so far that fit none before: frees of what is not live, requests of nothing."""
        return int(self._state[layout.T_STRANGE])

    @property
    def misses(self) -> int:
        """Of a proof: blocks that were moved to their recorded address; see `unplaced`."""
        return int(self._state[layout.T_MISSES])

    @property
    def unplaced(self) -> int:
        """Of a proof: blocks whose recorded address was not free, which stay where they are."""
        return int(self._state[layout.T_UNPLACED])

    @property
    def taken(self) -> int:
        """How often memory was taken from the device."""
        return int(self._state[layout.T_TAKEN])

    @property
    def returned(self) -> int:
        """How often memory was given back to the device."""
        return int(self._state[layout.T_RETURNED])

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays, without the events."""
        arrays = (self._block, self._segment, self._state, self._early, self._node_of,
                  self.address, self.block_bytes, self.taken_bytes)  # fmt: skip
        return sum(array.nbytes for array in arrays if array is not None)

    def blocks(self) -> CachingBlocks:
        """The state: segments in order of their addresses, and all their blocks."""
        return blocks_of(self._block, self._segment, int(self._state[layout.T_USED]), self._roots)


@dataclass(frozen=True)
class SavedReplay:
    """A moment of a replay (`peakline.replay.limits.Moment`)."""

    machine: CachingMachine

    @property
    def least_limit(self) -> int:
        """Limits from here on to its own led to this moment."""
        return self.machine.limit - self.machine.slack

    @property
    def nbytes(self) -> int:
        """Its size."""
        return self.machine.nbytes


class RunningReplay:
    """A replay as a search over limits needs it (`peakline.replay.limits.Machine`)."""

    def __init__(self, machine: CachingMachine) -> None:
        self._machine = machine

    @property
    def position(self) -> int:
        """The next event."""
        return self._machine.position

    @property
    def slack(self) -> int:
        """So many bytes less of the limit would have led to the same decisions so far."""
        return self._machine.slack

    def advance(self, stop: int) -> int:
        """Do the events before ``stop``; returns the next one, less where a request failed."""
        return self._machine.advance(stop)

    def saved(self) -> SavedReplay:
        """The moment, to go on from."""
        return SavedReplay(self._machine.copy())

    def restore(self, saved: SavedReplay, limit: int) -> None:
        """Go on from a moment under a limit that led to it."""
        self._machine = saved.machine.with_limit(limit)
