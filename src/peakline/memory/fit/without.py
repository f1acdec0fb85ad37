"""The peak that would be left without some buffers, replayed: where the recording is proved."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from peakline.arrays import Int64Array
from peakline.memory.fit.bfc import BfcFit
from peakline.memory.fit.replayed import recording_of
from peakline.memory.signatures import History
from peakline.replay.requests import NO_LIMIT

_MOST_RECORDS = 100_000
_MOST_EVENTS = 2_000_000
"""So much is replayed for all that is tried together; the rest stays a bound."""


@dataclass
class ReplayedPeaks:
    """The replay of one allocator. ``left`` is how many events may still be replayed."""

    replay: BfcFit
    codes: Int64Array
    left: int = field(default=_MOST_EVENTS)

    @classmethod
    def of(cls, history: History, allocator: int) -> ReplayedPeaks | None:
        """None where the recording is long, or does not prove itself."""
        if not 0 < history.rows_of(allocator).size <= _MOST_RECORDS:
            return None
        recording = recording_of(history, allocator)
        if not recording.starts_empty or not (recording.address >= 0).any():
            return None
        capacity = history.capacities[allocator]
        replay = BfcFit(recording, capacity, is_gpu=False, most_events=_MOST_EVENTS)
        if not replay.is_proved:
            return None
        return cls(replay, history.signatures.codes[recording.row].astype(np.int64))

    def without(
        self, codes: Collection[int], numerator: int, denominator: int
    ) -> tuple[int, int] | None:
        """The most bytes in use as it is, and if all buffers of these signatures were smaller by
        ``numerator / denominator`` of what they request. None where it would be too much work, and
        where the smaller requests do not fit under the recorded limit: fitting is not monotone.
        """
        requests = self.replay.requests
        if len(requests) > self.left:
            return None
        self.left -= len(requests)
        mine = np.isin(self.codes, list(codes))
        goes = -(-requests.size * numerator // denominator)
        size = np.where(mine, np.maximum(requests.size - goes, 0), requests.size)
        machine = self.replay.machine(
            self._limit, self.replay.settings, requests.scaled(size.astype(np.int64))
        )
        if machine.advance(len(requests)) < len(requests):
            return None
        return self.replay.proof.machine.peak, machine.peak

    @property
    def _limit(self) -> int:
        return NO_LIMIT if self.replay.capacity is None else self.replay.capacity

    def lost_bytes(self) -> int | None:
        """What the program needs beyond the bytes that are live at most, each request rounded up:
        what a perfect packing would save. None where no limit was found that it is safe from.
        """
        safe = self.replay.limits().safe_from
        return None if safe is None else max(safe - self.replay.live_peak, 0)
