"""In how much memory the ranks of a job run, and which of them fails first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peakline import findings
from peakline.memory.fit.answer import fits_of
from peakline.memory.fit.model import Fit, NoFit, Question
from peakline.tables import Profile


@dataclass(frozen=True)
class RankFit:
    """A rank's allocators, or programs, replayed; those that cannot be, and the largest recorded
    peak, in bytes: below that nothing runs. ``limits`` are those of the question.
    """

    fits: tuple[Fit, ...]
    failed: tuple[NoFit, ...]
    peak_bytes: int | None
    limits: tuple[int, ...]

    @property
    def deciding(self) -> Fit | None:
        """The allocator that needs most; None where none can be replayed."""
        return max(self.fits, key=lambda one: needs_of(one) or 0, default=None)

    @property
    def needs_bytes(self) -> int | None:
        """From which limit on all fit, or the least that may; None where that is not known."""
        return None if self.deciding is None else needs_of(self.deciding)

    def under(self, number: int) -> bool | None:
        """Whether it fits under the limit of that number; None where that is not known."""
        results = [one.under[number].fits for one in self.fits]
        if False in results or (self.peak_bytes or 0) > self.limits[number]:
            return False
        return True if results and None not in results and not self.failed else None


def needs_of(fit: Fit) -> int | None:
    """From which limit on all fit, else the least that may."""
    return fit.limits.smallest if fit.limits.safe_from is None else fit.limits.safe_from


def rank_fit(profile: Profile, question: Question, allocator: str | None) -> RankFit:
    """The replay of one rank, small: without what is only shown of a single one.

    Raises as `peakline.memory.fits_of`.
    """
    fits, failed = fits_of(profile, question, allocator=allocator)
    answer = findings.answer_memory(profile, allocator=allocator)
    peaks = [one.peak_bytes for one in answer.allocators]
    return RankFit(
        tuple(replace(one, pins=(), alternatives=()) for one in fits),
        tuple(failed),
        max(peaks, default=max((one.recorded_peak_bytes for one in fits), default=None)),
        question.limits,
    )
