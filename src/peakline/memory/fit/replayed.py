"""What a recording of any allocator answers, whichever model replays it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from peakline.arrays import Int64Array
from peakline.memory.fit.model import Cause, Limits, Proof
from peakline.memory.fit.recording import Recording
from peakline.replay.requests import Requests


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
    """One allocator's recording. Of settings only the class knows what they are."""

    @property
    def name(self) -> str:
        """The model: bfc, pytorch or xla."""

    @property
    def granule(self) -> int:
        """What requests are rounded up to, in bytes."""

    @property
    def recording(self) -> Recording:
        """What was recorded."""

    @property
    def stated(self) -> Proof:
        """The replay of what was recorded, as it was recorded."""

    @property
    def settings(self) -> Any:
        """The settings that were recorded or found, with those that the caller gave."""

    @property
    def requests(self) -> Requests:
        """What is replayed under other limits."""

    @property
    def live_peak(self) -> int:
        """The most bytes that are live, each request rounded up."""

    def recorded_event(self, event: int) -> int:
        """Which event of the recording an event of `requests` is; negative for none."""

    def limits(self, settings: Any = None, requests: Requests | None = None) -> Limits:
        """Which limits fit, to the MiB."""

    def under(self, limit: int, settings: Any = None, requests: Requests | None = None) -> Outcome:
        """The replay under one limit."""

    def fits(
        self, limit: int, settings: Any = None, requests: Requests | None = None
    ) -> bool | None:
        """Whether one limit fits, None where what is not recorded decides."""

    def others(self) -> Sequence[Any]:
        """Settings that could make it fit in less."""

    def uncertain(self) -> str:
        """Why other limits are a bound although the recording is proved; empty where not."""
