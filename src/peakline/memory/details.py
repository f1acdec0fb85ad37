"""Every analysis of the memory of a profile, allocator by allocator.

The records are matched, measured and named once; every analysis reads the same `History`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from peakline.arrays import BoolArray
from peakline.deadline import check_deadline
from peakline.memory.churn import AllocatorChurn, find_churn
from peakline.memory.fit.without import ReplayedPeaks
from peakline.memory.fragmentation.holes import Fragmentation, find_fragmentation
from peakline.memory.growth.grown import Grown, find_grown, signatures_held
from peakline.memory.growth.series import AllocatorGrowth, find_growth
from peakline.memory.growth.single_pass import PassFacts
from peakline.memory.lifetimes import match_lifetimes
from peakline.memory.marks import Marks, find_marks
from peakline.memory.peak.buffers import AtPeak, buffers_at_peak
from peakline.memory.peak.explained import (
    AllocatorPeak,
    Deferred,
    Descriptions,
    find_deferred,
    find_peaks,
)
from peakline.memory.savings.answer import Saving, find_savings
from peakline.memory.savings.op_use import OpUse
from peakline.memory.signatures import History, read_history
from peakline.shown import Brief
from peakline.tables.columns import Columns


@dataclass(frozen=True, eq=False, repr=False)
class MemoryDetails(Brief):
    """What the analyses found in one allocator.

    ``peak`` is the one that the answer is about, ``deferred`` None where it is certain. ``growth``
    is None without steps, ``fragmentation`` where no buffer has an address. ``grown``
    is what deserves attention of the former. ``savings`` are those at the peak, most bytes first;
    ``at_peak`` are the buffers there.
    """

    peak: AllocatorPeak
    deferred: Deferred | None
    growth: AllocatorGrowth | None
    grown: Grown
    fragmentation: Fragmentation | None
    churn: AllocatorChurn
    savings: tuple[Saving, ...]
    at_peak: AtPeak | None = None

    @property
    def allocator(self) -> str:
        """Its name in the file."""
        return self.peak.allocator


def read_details(
    events: Columns,
    steps: Columns,
    *,
    allocator: str | None = None,
    eligible: BoolArray | None = None,
    ops: OpUse | None = None,
    facts: Callable[[], PassFacts] | None = None,
    programs: Collection[str] = (),
    describe: Callable[[History], Descriptions | None] | None = None,
) -> tuple[History, tuple[MemoryDetails, ...]]:
    """All analyses of ``allocator_events`` (in time order), and what they read.

    ``allocator`` selects one allocator; the peak is that of the records that are ``eligible``.
    ``describe`` gives what is known of buffers besides the columns of their records. The
    others are those of `peakline.findings.memory_answer.explain_memory`. Raises NotFoundError for
    an unknown allocator.
    """
    lifetimes = match_lifetimes(events)
    check_deadline()
    history = read_history(events, lifetimes)
    if describe is not None:
        history = replace(history, descriptions=describe(history))
    check_deadline()
    peaks = find_peaks(
        events,
        allocator=allocator,
        eligible=eligible,
        lifetimes=lifetimes,
        descriptions=history.descriptions,
    )
    deferred = [find_deferred(events, peak, lifetimes, eligible) for peak in peaks]
    check_deadline()
    names = lifetimes.allocators
    marks: list[Marks | None] = [None] * len(names)
    wanted = [names.index(peak.allocator) for peak in peaks]
    for number in wanted:
        marks[number] = find_marks(history, number, steps)
    churn = find_churn(history, tuple(marks))
    details = []
    for number, peak, bounds in zip(wanted, peaks, deferred, strict=True):
        check_deadline()
        fragmentation = find_fragmentation(history, number)
        check_deadline()
        growth = find_growth(history, number, marks[number], facts)
        grown = Grown() if growth is None else find_grown(history, growth)
        check_deadline()
        counted = history.measured if eligible is None else history.measured & eligible
        growing = signatures_held(history, number, grown)
        at_peak = buffers_at_peak(history, number, marks[number], counted, growing)
        savings = find_savings(
            history,
            number,
            marks[number],
            fragmentation,
            ops=ops,
            counted=counted,
            found=at_peak,
            programs=programs,
            replayed=ReplayedPeaks.of(history, number) if eligible is None else None,
        )
        details.append(
            MemoryDetails(
                peak, bounds, growth, grown, fragmentation, churn[number], savings, at_peak
            )
        )
    return history, tuple(details)


def records_of_step(step: int, events: Columns, steps: Columns) -> BoolArray:
    """Which records belong to ``step`` or happened between its start and end, on any thread."""
    chosen = steps.array("step_id") == step
    start = int(steps.array("start_ps")[chosen].min())
    end = int(steps.array("end_ps")[chosen].max())
    time = events.array("time_ps")
    own = (events.array("step_id") == step) & events.is_valid("step_id")
    within: BoolArray = own | ((time >= start) & (time <= end))
    return within
