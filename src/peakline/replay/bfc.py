"""TensorFlow's and XLA's best-fit allocator with coalescing, replayed.

The rules are those of ``BFCAllocator`` (openxla/xla, ``xla/tsl/framework/bfc_allocator.cc``), the
settings those of TensorFlow's ``GPUOptions`` (``tensorflow/core/protobuf/config.proto``) and of
JAX's environment (https://docs.jax.dev/en/latest/gpu_memory_allocation.html). Not modelled: chunks
that wait for a time at which they are safe, and the newest builds' spatial partitioning.

`BfcProof` says whether a recording is of this allocator: its own replay, address by address. How
the allocator was set is not recorded, so the settings that can be known from addresses alone are
tried (growth or the whole limit at once, regions that merge or not), and those with which the
replay goes on longest are taken. Where a block went elsewhere than the rules say, it is put where
the recording says and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from peakline.arrays import Int64Array
from peakline.deadline import check_deadline
from peakline.errors import UsageError
from peakline.kernels import bfc_layout as layout
from peakline.kernels.bfc import advance, grant, shrink
from peakline.kernels.bfc_layout import RUNNING
from peakline.replay.requests import NO_LIMIT, Requests
from peakline.suggest import there_is

GRANULE = 256
_AT_ONCE = 1 << 18
"""So many events are done between two looks at the deadline."""
_FIRST_BASE = 1 << 58
_STEP = 1 << 50
_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True)
class BfcSettings:
    """What can be set: ``allow_growth`` off takes the whole limit at once (JAX preallocates),
    ``internal_fragmentation_fraction`` of the limit is what may remain of a chunk at most without
    being split off (0: 128 MiB), ``garbage_collection`` returns free regions before it fails
    (``TF_ENABLE_GPU_GARBAGE_COLLECTION``).

    ``descending`` and ``coalescing`` are no settings of the allocator but of the system: whether
    later regions lie lower, and whether regions that touch are merged.
    """

    allow_growth: bool = True
    internal_fragmentation_fraction: float = 0.0
    garbage_collection: bool = False
    descending: bool = True
    coalescing: bool = False

    def changed(self, name: str, text: str) -> Self:
        """These settings with one of another value; raises UsageError where there is no such."""
        if name in {"allow_growth", "garbage_collection"}:
            if text.lower() not in {"true", "false", "1", "0"}:
                raise UsageError(f"--set {name}={text}: give true or false")
            return replace(self, **{name: text.lower() in {"true", "1"}})
        if name == "internal_fragmentation_fraction":
            try:
                value = float(text)
            except ValueError:
                value = -1.0
            if not 0 <= value <= 1:
                raise UsageError(f"--set {name}={text}: give a number from 0 to 1")
            return replace(self, internal_fragmentation_fraction=value)
        raise UsageError(f"--set {name}: the BFC allocator has no such{there_is(name, SETTINGS)}")

    def as_json(self) -> dict[str, bool | float]:
        """The settings of the allocator, by name."""
        return {name: getattr(self, name) for name in SETTINGS}


SETTINGS = tuple(f.name for f in fields(BfcSettings))[:3]


@dataclass(frozen=True)
class Region:
    """Memory that was taken from the system at once."""

    address: int
    bytes: int


class BfcMachine:
    """The allocator in the middle of a replay.

    ``position`` is the next event; ``placed`` and ``granted`` are per buffer its address and the
    bytes of its chunk, where they are wanted (``detailed``).
    """

    __retained__ = (
        "_chunks",
        "_chunk_of",
        "_regions",
        "_state",
        "granted",
        "placed",
        "_recorded",
        "_bases",
    )

    def __init__(
        self,
        requests: Requests,
        settings: BfcSettings,
        limit: int,
        *,
        recorded: Int64Array | None = None,
        bases: Int64Array = _NOTHING,
        detailed: bool = False,
        spare: int = 0,
    ) -> None:
        """Before the first event, of ``requests`` under ``limit`` bytes.

        With ``recorded``, per buffer where it went (-1: not known), the replay stops where it would
        go elsewhere, and regions lie where the recording says; else the first ones lie at ``bases``
        (`bases_like`). ``spare`` is how many blocks may be placed by hand.
        """
        self.requests, self.settings = requests, settings
        self.position = 0
        count = requests.size.size
        state = np.zeros(layout.STATE_FIELDS, np.int64)
        limit = min(max(limit, 0), NO_LIMIT)
        state[layout.LIMIT] = limit
        state[layout.SLACK] = limit
        state[layout.NEXT_SLOT] = 1
        state[layout.RANDOM] = 20_230_517
        if settings.allow_growth:
            state[layout.GROWTH] = -(-min(limit, layout.MIN_GROWTH) // GRANULE) * GRANULE
            state[layout.SLACK] = max(limit - layout.MIN_GROWTH, 0)
        state[layout.DESCENDING] = settings.descending
        state[layout.LAST_BASE] = _FIRST_BASE
        state[layout.COALESCING] = settings.coalescing
        state[layout.COLLECTING] = settings.garbage_collection
        state[layout.COMPARING] = recorded is not None
        self._state = state
        # Between two free chunks of a region one is in use.
        room = 2 * requests.most_live() + 2 * layout.MOST_REGIONS + spare + 4
        self._chunks = np.zeros((room, layout.CHUNK_FIELDS), np.int64)
        self._regions = np.zeros((layout.MOST_REGIONS, layout.REGION_FIELDS), np.int64)
        self._chunk_of = np.zeros(count, np.int64)
        self._recorded = _NOTHING if recorded is None else recorded
        self._bases = bases
        self.placed = np.full(count, -1, np.int64) if detailed else _NOTHING
        self.granted = np.zeros(count, np.int64) if detailed else _NOTHING

    @property
    def limit(self) -> int:
        """The limit, in bytes."""
        return int(self._state[layout.LIMIT])

    @property
    def slack(self) -> int:
        """So many bytes less of the limit would have led to the same decisions so far."""
        return int(self._state[layout.SLACK])

    @property
    def status(self) -> int:
        """Why the last `advance` ended early: FAILED, DIFFERENT or NO_ROOM of `bfc_layout`."""
        return int(self._state[layout.STATUS])

    @property
    def failed(self) -> bool:
        """Whether a request failed."""
        return self.status in {layout.FAILED, layout.NO_ROOM}

    @property
    def in_use(self) -> int:
        """Bytes of chunks in use."""
        return int(self._state[layout.IN_USE])

    @property
    def peak(self) -> int:
        """The most bytes that were in use."""
        return int(self._state[layout.PEAK])

    @property
    def reserved(self) -> int:
        """Bytes taken from the system."""
        return int(self._state[layout.POOL])

    @property
    def peak_reserved(self) -> int:
        """The most bytes that were taken from the system."""
        return int(self._state[layout.POOL_PEAK])

    @property
    def unmatched(self) -> int:
        """Frees of what was not live."""
        return int(self._state[layout.UNMATCHED])

    @property
    def learned(self) -> int:
        """Allocations whose address was taken from the recording, as the base of a region."""
        return int(self._state[layout.LEARNED])

    def advance(self, stop: int) -> int:
        """Do the events before ``stop``; returns the next one, less than ``stop`` where it ended
        early. Raises as `check_deadline`.
        """
        while self.position < stop:
            check_deadline()
            last = min(stop, self.position + _AT_ONCE)
            self.position = advance(
                self.requests.events, self.position, last, self.requests.size, self._recorded,
                self._bases, self.settings.internal_fragmentation_fraction, self._chunk_of,
                self.placed, self.granted, self._chunks, self._regions, self._state,
            )  # fmt: skip
            if self.position < last:
                break
        return self.position

    def regions(self) -> tuple[Region, ...]:
        """What is taken from the system, in the order in which it was."""
        return tuple(Region(address, size) for _, address, size in self.region_rows().tolist())

    def region_rows(self) -> Int64Array:
        """Rows of number (that of `chunks`), address and bytes of each region."""
        rows = self._regions[: int(self._state[layout.REGIONS])]
        number = np.flatnonzero(rows[:, layout.REGION_SIZE])
        rows = rows[number]
        return np.column_stack(
            [number, rows[:, layout.REGION_ADDRESS], rows[:, layout.REGION_SIZE]]
        )

    def chunks(self) -> Int64Array:
        """Rows of region, address, bytes, whether in use, and the buffer (-1: none), in the order
        of regions and addresses; those outside of all regions come last.
        """
        buffer = np.full(self.chunk_count, -1, np.int64)
        live = np.flatnonzero(self._chunk_of)
        buffer[self._chunk_of[live]] = live
        rows = np.flatnonzero(self._chunks[: self.chunk_count, layout.SIZE] > 0)
        used = self._chunks[rows]
        owner = used[:, layout.OWNER]
        result = np.column_stack(
            [owner >> 1, used[:, layout.ADDRESS], used[:, layout.SIZE], owner & 1, buffer[rows]]
        )
        return result[np.lexsort((result[:, 1], result[:, 0]))]

    def free_sizes(self) -> Int64Array:
        """The bytes of every free chunk."""
        chunks = self.chunks()
        result: Int64Array = chunks[chunks[:, 3] == 0, 2]
        return result

    @property
    def chunk_count(self) -> int:
        """How many chunks there are or were at a time."""
        return int(self._state[layout.NEXT_SLOT])

    def place_as_recorded(self) -> bool:
        """Do the allocation that is next, where the recording has it: in a free chunk that begins
        there, else outside of all regions. Whether there was room.
        """
        buffer = int(self.requests.events[self.position])
        address = int(self._recorded[buffer])
        wanted = -(-int(self.requests.size[buffer]) // GRANULE) * GRANULE
        used = self._chunks[: self.chunk_count]
        is_there = (used[:, layout.ADDRESS] == address) & (used[:, layout.OWNER] & 1 == 0)
        is_there &= used[:, layout.SIZE] >= wanted
        is_there[0] = False
        result = np.flatnonzero(is_there)
        chunk = grant(
            self._chunks, self._regions, self._state, int(result[0]) if result.size else 0,
            address, wanted, self.settings.internal_fragmentation_fraction,
        )  # fmt: skip
        if chunk == 0:
            return False
        self._chunk_of[buffer] = chunk
        self.placed[buffer] = address
        self.granted[buffer] = self._chunks[chunk, layout.SIZE]
        self.position += 1
        return True

    # What a search over limits needs.

    def saved(self) -> Saved:
        """What changes, as it is now."""
        live = np.flatnonzero(self._chunk_of)
        return Saved(
            self.position,
            self._chunks[: int(self._state[layout.NEXT_SLOT])].copy(),
            self._regions.copy(),
            self._state.copy(),
            live,
            self._chunk_of[live],
        )

    def restore(self, saved: Saved, limit: int) -> None:
        """Go on from a moment under a ``limit`` that is smaller by its slack or less."""
        self.position = saved.position
        self._chunks[: len(saved.chunks)] = saved.chunks
        self._regions[:] = saved.regions
        self._state[:] = saved.state
        self._chunk_of[:] = 0
        self._chunk_of[saved.live] = saved.chunk
        shrink(self._chunks, self._regions, self._state, self.limit - limit)


def bases_like(regions: Sequence[Region]) -> Int64Array:
    """Made-up addresses of regions that lie in the order of ``regions``, far from each other.

    Which of two equal chunks is taken depends on where their regions lie: the first one often in
    the heap of the process, later ones each below the last.
    """
    order = np.argsort([region.address for region in regions], kind="stable")
    rank = np.empty(len(regions), np.int64)
    rank[order] = np.arange(len(regions))
    return _STEP * (rank + 1)


@dataclass(frozen=True, eq=False)
class Saved:
    """A moment of a replay."""

    position: int
    chunks: Int64Array
    regions: Int64Array
    state: Int64Array
    live: Int64Array
    chunk: Int64Array

    @property
    def least_limit(self) -> int:
        """Limits from here on to its own led to this moment."""
        return int(self.state[layout.LIMIT] - self.state[layout.SLACK])

    @property
    def nbytes(self) -> int:
        """Its size."""
        return self.chunks.nbytes + self.regions.nbytes + self.live.nbytes + self.chunk.nbytes


_MOST_MISSES = 4096
"""Blocks that are put by hand; a recording with more is of another allocator, ..."""
_MOST_WORK = 1 << 28
"""... and chunks that are looked at for them."""


@dataclass(frozen=True, eq=False)
class BfcProof:
    """What the replay of a recording found.

    Of ``allocations`` with an address ``compared`` were looked at, ``equal`` of these went where
    the rules say, ``learned`` of them as the base of a region, which no rule gives. ``sizes_equal``
    had a chunk of the recorded size. ``stopped_at`` is the event at which the replay ended, -1 at
    the end. ``machine`` is the allocator then.
    """

    settings: BfcSettings
    limit: int | None
    allocations: int
    compared: int
    equal: int
    learned: int
    sizes_equal: int
    stopped_at: int
    machine: BfcMachine

    @property
    def is_same(self) -> bool:
        """All that could be compared is equal, and something was beside bases of regions."""
        return (
            self.stopped_at < 0
            and self.equal == self.sizes_equal == self.allocations
            and self.equal > self.learned
        )


def prove(
    requests: Requests, address: Int64Array, granted: Int64Array, limit: int | None
) -> BfcProof:
    """Replay what was recorded: per buffer its ``address`` (-1: not known) and the bytes of its
    chunk, 0 where they are not known. ``limit`` is the allocator's, None where it is not known.

    Raises as `check_deadline`.
    """
    first, *others = _possible(limit)
    longest = _machine(requests, first, limit, address, spare=0)
    longest.advance(len(requests))
    most = _agreement(longest, granted)
    for settings in others:
        if most >= (len(requests), requests.size.size):
            break
        machine = _machine(requests, settings, limit, address, spare=0)
        machine.advance(len(requests))
        if (agreement := _agreement(machine, granted)) > most:
            longest, most = machine, agreement
        # No third machine beside the best and the next: one has rows for every request.
        del machine
    misses = 0
    if longest.position < len(requests):
        settings = longest.settings
        del longest
        longest = _machine(requests, settings, limit, address, spare=_MOST_MISSES)
        misses = _go_on(longest)
    stopped = longest.position if longest.position < len(requests) else -1
    placed = longest.placed
    known = address >= 0
    known &= requests.size > 0
    reached = known & (placed >= 0)
    return BfcProof(
        settings=longest.settings,
        limit=limit,
        allocations=int(known.sum()),
        compared=int(reached.sum()),
        equal=int(reached.sum()) - misses,
        learned=longest.learned,
        sizes_equal=int((reached & ((granted <= 0) | (granted == longest.granted))).sum()),
        stopped_at=stopped,
        machine=longest,
    )


def _agreement(machine: BfcMachine, granted: Int64Array) -> tuple[int, int]:
    """How far a replay went, and how many chunks are not of another size than recorded."""
    same = (granted <= 0) | (machine.granted == granted) | (machine.placed < 0)
    return machine.position, int(same.sum())


def _possible(limit: int | None) -> Iterator[BfcSettings]:
    """The likelier first."""
    plain = BfcSettings()
    for settings in (plain, replace(plain, coalescing=True)):
        yield settings
        yield replace(settings, garbage_collection=True)
    if limit is not None:
        yield replace(plain, allow_growth=False)


def _machine(
    requests: Requests, settings: BfcSettings, limit: int | None, address: Int64Array, *, spare: int
) -> BfcMachine:
    return BfcMachine(
        requests, settings, NO_LIMIT if limit is None else limit,
        recorded=np.ascontiguousarray(address), detailed=True, spare=spare,
    )  # fmt: skip


def _go_on(machine: BfcMachine) -> int:
    """Replay to the end, by hand where the rules say something else; how many were put so."""
    misses = work = 0
    end = len(machine.requests)
    while machine.advance(end) < end and machine.status != RUNNING:
        # A request that fails in the replay was served in the recording, too.
        work += machine.chunk_count
        if misses >= _MOST_MISSES or work > _MOST_WORK or not machine.place_as_recorded():
            break
        misses += 1
    return misses
