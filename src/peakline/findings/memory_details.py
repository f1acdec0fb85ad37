"""The memory answer: every allocator's peak, what stands out, and what could not be known.

The records are matched, measured and named once; every analysis reads the same `History`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peakline.deadline import check_deadline
from peakline.errors import NotFoundError
from peakline.findings.memory_answer import MemoryAnswer, Notice
from peakline.findings.memory_deferred import deferred_findings
from peakline.findings.memory_growth import growth_findings, signatures_told
from peakline.findings.memory_layout import (
    churn_findings,
    fragmentation_findings,
    temporary_findings,
)
from peakline.findings.memory_peak import Finding, peak_findings
from peakline.memory.churn import AllocatorChurn, find_churn
from peakline.memory.fragmentation import Fragmentation, find_fragmentation
from peakline.memory.growth import AllocatorGrowth, find_growth
from peakline.memory.lifetimes import match_lifetimes
from peakline.memory.marks import Marks, find_marks
from peakline.memory.op_use import OpUse
from peakline.memory.peak import AllocatorPeak, find_peaks
from peakline.memory.plausible import without_implausible
from peakline.memory.savings import Saving, find_savings
from peakline.memory.signatures import History, read_history
from peakline.memory.single_pass import PassFacts
from peakline.tables.columns import Columns

__all__ = [
    "MemoryDetails",
    "explain_memory",
    "find_step",
    "records_of_step",
]


@dataclass(frozen=True, eq=False)
class MemoryDetails:
    """What the analyses found in one allocator.

    ``growth`` is None where nothing tells steps, ``fragmentation`` where no buffer has an address.
    ``growth_findings`` are what deserves attention of the former. ``savings`` are those at the peak
    that the answer is about, most bytes first.
    """

    allocator: str
    growth: AllocatorGrowth | None
    fragmentation: Fragmentation | None
    churn: AllocatorChurn
    savings: tuple[Saving, ...]
    growth_findings: tuple[Finding, ...] = ()

    @property
    def findings(self) -> list[Finding]:
        """What deserves attention."""
        found = list(self.growth_findings)
        if self.fragmentation is not None:
            found += fragmentation_findings(self.fragmentation)
        return [*found, *temporary_findings(self.savings), *churn_findings(self.churn)]


def explain_memory(
    events: Columns,
    steps: Columns,
    *,
    allocator: str | None = None,
    step: str | None = None,
    ops: OpUse | None = None,
    facts: Callable[[], PassFacts] | None = None,
    programs: Collection[str] = (),
) -> MemoryAnswer:
    """Explain the peaks of ``allocator_events`` (in time order), and what stands out about them.

    ``allocator`` keeps one allocator. ``step``, a step's id or name, asks for the largest
    memory in use while that step ran instead of in the whole profile; growth, fragmentation and
    churn stay those of the whole profile. ``ops`` is what executions of ops tell, where the file
    has any (`peakline.memory.op_use.read_op_use`); ``facts`` gives what it says of passes over
    layers (`peakline.memory.single_pass.read_pass_facts`); ``programs`` are the names of the
    compiled programs in it. Raises NotFoundError for an unknown allocator or step.
    """
    number = None if step is None else find_step(step, steps)
    if events.rows == 0:
        return MemoryAnswer((), (), (), number)
    events, implausible = without_implausible(events)
    eligible = None if number is None else records_of_step(number, events, steps)
    lifetimes = match_lifetimes(events)
    check_deadline()
    peaks = find_peaks(events, allocator=allocator, eligible=eligible, lifetimes=lifetimes)
    findings = [finding for peak in peaks for finding in peak_findings(peak)]
    findings += deferred_findings(events, peaks, eligible, lifetimes)
    check_deadline()
    history = read_history(events, lifetimes)
    details = _details(history, steps, peaks, ops, eligible, facts, programs)
    for detail in details:
        findings += detail.findings
    notices = [notice for peak in peaks for notice in _notices(peak)]
    if implausible:
        notices.append(
            Notice(
                "implausible_size",
                implausible,
                "records with a size below 0 or above 2^48 bytes, which is taken as unknown",
            )
        )
    return MemoryAnswer(peaks, tuple(findings), tuple(notices), number, details, history)


def _details(
    history: History,
    steps: Columns,
    peaks: tuple[AllocatorPeak, ...],
    ops: OpUse | None,
    eligible: npt.NDArray[np.bool_] | None,
    facts: Callable[[], PassFacts] | None,
    programs: Collection[str],
) -> tuple[MemoryDetails, ...]:
    names = history.lifetimes.allocators
    marks: list[Marks | None] = [None] * len(names)
    wanted = [names.index(peak.allocator) for peak in peaks]
    for number in wanted:
        marks[number] = find_marks(history, number, steps)
    churn = find_churn(history, tuple(marks))
    found = []
    for number in wanted:
        check_deadline()
        fragmentation = find_fragmentation(history, number)
        check_deadline()
        growth = find_growth(history, number, marks[number], facts)
        grown = [] if growth is None else growth_findings(history, growth)
        check_deadline()
        savings = find_savings(
            history,
            number,
            marks[number],
            fragmentation,
            ops=ops,
            eligible=eligible,
            told=signatures_told(history, number, grown),
            programs=programs,
        )
        found.append(
            MemoryDetails(
                names[number], growth, fragmentation, churn[number], savings, tuple(grown)
            )
        )
    return tuple(found)


def find_step(step: str, steps: Columns) -> int:
    """The id of the step given by id (``3``) or by name (``train 170``)."""
    ids = steps.array("step_id").tolist()
    # Logs have negative ids too.
    if step.removeprefix("-").isdecimal() and int(step) in ids:
        return int(step)
    named = [i for i, name in zip(ids, steps.names("name").to_list(), strict=True) if name == step]
    if named:
        return int(named[0])
    if not ids:
        raise NotFoundError(f"no step {step!r}: the profile has no steps")
    raise NotFoundError(
        f"no step {step!r}; the profile has {len(ids)}, ids {min(ids)} to {max(ids)}"
    )


def records_of_step(step: int, events: Columns, steps: Columns) -> npt.NDArray[np.bool_]:
    """Which records belong to ``step`` or happened between its start and end, on any thread."""
    chosen = steps.array("step_id") == step
    start = int(steps.array("start_ps")[chosen].min())
    end = int(steps.array("end_ps")[chosen].max())
    time = events.array("time_ps")
    own = (events.array("step_id") == step) & events.is_valid("step_id")
    within: npt.NDArray[np.bool_] = own | ((time >= start) & (time <= end))
    return within


def _notices(peak: AllocatorPeak) -> list[Notice]:
    """What the explanation could not follow.

    Frees of memory from before the profile are understood, and no notice.
    """
    name = peak.allocator or "(unnamed allocator)"
    candidates = (
        Notice(
            "untracked_allocation",
            peak.untracked_allocations,
            f"{name}: records without id and address, whose buffers cannot be followed",
        ),
        Notice(
            "double_allocation",
            peak.double_allocations,
            f"{name}: allocations where a buffer was live; the earlier one is taken as freed",
        ),
        Notice(
            "unmatched_deallocation",
            peak.unexplained_deallocations,
            f"{name}: deallocations that match no allocation and no memory from before the profile",
        ),
    )
    return [notice for notice in candidates if notice.count]
