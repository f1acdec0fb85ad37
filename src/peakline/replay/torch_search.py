"""PyTorch's caching allocator as a search over limits needs it (`peakline.replay.limits`)."""

from __future__ import annotations

from dataclasses import dataclass

from peakline.replay.torch_caching import CachingMachine


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
