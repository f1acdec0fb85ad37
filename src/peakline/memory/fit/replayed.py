"""What a recording of any allocator answers, whichever model replays it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from peakline.arrays import BoolArray, Int64Array
from peakline.memory.fit.model import Cause, Limits, Proof


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
