"""What a profile says of one allocator, as requests that can be replayed, and what the recording
answers, whichever model replays it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array, IntpArray
from peakline.kernels.memory_layout import (
    ALLOCATION,
    DEALLOCATION,
    UNTRACKED_ALLOCATION,
    UNTRACKED_DEALLOCATION,
)
from peakline.memory.fit.model import Cause, Limits, Proof
from peakline.memory.signatures import History
from peakline.memory.usage import reported_bytes
from peakline.replay.requests import LARGEST_REQUEST, Requests
from peakline.tables.columns import Columns

_HIGHEST = 1 << 60
"""Addresses from here on are none that a replay can compare."""


@dataclass(frozen=True, eq=False)
class Recording:
    """The requests of one allocator.

    The first ``before`` events allocate buffers that were there before the profile and whose free
    is recorded. Per buffer: ``row`` is its record (of those from before the profile the record that
    frees it), ``address`` where it went (-1: not known), ``granted`` the bytes of its chunk (0:
    not known). ``event_row`` is per event its record.

    ``untracked`` counts records without an address or id, ``missing`` those before which others
    are missing: the bytes in use changed by something else, or the request is of more than any
    device has. ``start_bytes`` is what was in use before the first record, None where that is not
    reported.
    """

    requests: Requests
    row: IntpArray
    address: Int64Array
    granted: Int64Array
    event_row: IntpArray
    before: int
    untracked: int
    missing: int
    start_bytes: int | None

    @property
    def starts_empty(self) -> bool:
        """Whether the allocator is known to have had nothing in use at the start."""
        return self.before == 0 and self.start_bytes == 0

    @property
    def unknown_bytes(self) -> int:
        """Bytes that were in use at the start and are not known as buffers."""
        return (
            max((self.start_bytes or 0) - int(self.granted[-self.before :].sum()), 0)
            if (self.before)
            else (self.start_bytes or 0)
        )


def recording_of(history: History, allocator: int) -> Recording:
    """The requests of one allocator, by its number in ``history.lifetimes.allocators``."""
    rows = history.rows_of(allocator)
    kind, begin = history.lifetimes.kind[rows], history.lifetimes.begin[rows].astype(np.int64)
    allocates = np.flatnonzero(kind == ALLOCATION)
    buffer_row = rows[allocates]
    frees = np.flatnonzero(begin >= 0)
    was_there = np.flatnonzero((kind == DEALLOCATION) & (begin < 0))
    events = history.events
    sizes = _recorded_sizes(history, rows[was_there])
    was_there = was_there[sizes > 0]
    sizes = sizes[sizes > 0]
    count = allocates.size
    numbers = count + np.arange(was_there.size)
    # A key that is allocated again while it is live: its first buffer has ended just before.
    event = np.concatenate([np.arange(count), ~np.searchsorted(buffer_row, begin[frees]), ~numbers])
    place = np.concatenate([2 * allocates + 1, 2 * frees, 2 * was_there])
    order = np.argsort(place, kind="stable")
    row = np.concatenate([buffer_row, rows[was_there]])
    requested = np.concatenate([history.requested[buffer_row], sizes])
    granted = np.concatenate([_stated(events, buffer_row, "allocated_bytes"), sizes])
    missing, start_bytes = _accounted(history, rows, kind)
    # What no device has is no request, and what stands for it is not known.
    missing += int((requested > LARGEST_REQUEST).sum())
    requested = np.minimum(requested, LARGEST_REQUEST)
    return Recording(
        requests=Requests(
            np.concatenate([numbers, event[order]]).astype(np.int64),
            np.ascontiguousarray(requested, np.int64),
        ),
        row=row,
        address=_addresses(history, row),
        granted=granted,
        event_row=np.concatenate([rows[was_there], rows[place[order] >> 1]]),
        before=int(was_there.size),
        untracked=int(((kind == UNTRACKED_ALLOCATION) | (kind == UNTRACKED_DEALLOCATION)).sum()),
        missing=missing,
        start_bytes=start_bytes,
    )


def _stated(events: Columns, rows: IntpArray, column: str) -> Int64Array:
    result: Int64Array = np.where(events.is_valid(column)[rows], events.array(column)[rows], 0)
    return result


def _recorded_sizes(history: History, rows: IntpArray) -> Int64Array:
    """What deallocations say of the bytes that they free, 0 where they say nothing."""
    allocated = _stated(history.events, rows, "allocated_bytes")
    return np.where(allocated > 0, allocated, _stated(history.events, rows, "requested_bytes"))


def _addresses(history: History, rows: IntpArray) -> Int64Array:
    address = history.events.array("address")[rows]
    known = history.events.is_valid("address")[rows] & (address < _HIGHEST)
    return np.where(known, address, 0).astype(np.int64) - np.where(known, 0, 1)


def _accounted(history: History, rows: IntpArray, kind: AnyArray) -> tuple[int, int | None]:
    """``missing`` and ``start_bytes``, from the bytes in use after each record."""
    known = history.events.is_valid("in_use_bytes")[rows]
    if not rows.size or not known.all():
        return 0, None
    in_use = reported_bytes(history.events, rows) - _stated(history.events, rows, "reserved_bytes")
    size = _recorded_sizes(history, rows)
    change = np.where(kind == ALLOCATION, size, np.where(kind == DEALLOCATION, -size, 0))
    expected = in_use[:-1] + change[1:]
    return int((expected != in_use[1:]).sum()), int(in_use[0] - change[0])


@dataclass(frozen=True)
class Outcome:
    """A replay under a limit; ``stopped_at`` is the event that failed, -1 where none did.

    ``live``, ``free``, ``largest`` and ``in_use`` are bytes at the end of it: those of live
    requests, each rounded up, of free memory in the pool, of its largest piece, of blocks in use.
    ``blocks`` are rows of segment, address, bytes, whether in use, and buffer (-1: none), in order;
    ``segments`` are rows of segment, address and bytes.
    """

    limit: int
    stopped_at: int
    peak: int
    reserved: int
    cause: Cause | None
    live: int
    free: int
    largest: int
    in_use: int
    blocks: Int64Array
    segments: Int64Array


class Replayed(Protocol):
    """One allocator's recording. Of settings only the class knows what they are.

    Buffers and events have numbers: a buffer is what one request allocates. ``sizes`` are bytes
    per buffer, in place of what was requested.
    """

    @property
    def name(self) -> str:
        """The model: bfc, pytorch or xla."""

    @property
    def granule(self) -> int:
        """What requests are rounded up to, in bytes."""

    @property
    def stated(self) -> Proof:
        """The replay of what was recorded, as it was recorded."""

    @property
    def settings(self) -> Any:
        """The settings that were recorded or found, with those that the caller gave."""

    @property
    def sizes(self) -> Int64Array:
        """Per buffer the bytes that were requested."""

    @property
    def live_peak(self) -> int:
        """The most bytes that are live, each request rounded up."""

    def buffer_of(self, event: int) -> int:
        """The buffer that an event allocates."""

    def row_of(self, buffer: int) -> int:
        """The record that allocates a buffer, -1 for one from before the profile."""

    def index_of(self, event: int) -> int:
        """How many recorded allocations come before an event."""

    def scaling(self, rows_scale: BoolArray) -> BoolArray:
        """The buffers of these records that are freed again."""

    def at_peak(self, chosen: BoolArray) -> int:
        """Bytes of the chosen buffers when most bytes are live."""

    def limits(self, settings: Any = None, sizes: Int64Array | None = None) -> Limits:
        """Which limits fit, to the MiB."""

    def under(self, limit: int, settings: Any = None, sizes: Int64Array | None = None) -> Outcome:
        """The replay under one limit."""

    def fits(
        self, limit: int, settings: Any = None, sizes: Int64Array | None = None
    ) -> bool | None:
        """Whether one limit fits, None where what is not recorded decides."""

    def others(self) -> Sequence[Any]:
        """Settings that could make it fit in less."""

    def uncertain(self) -> str:
        """Why other limits are a bound although the recording is proved; empty where not."""
