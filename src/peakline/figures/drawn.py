"""What a figure is about: the answer, and the allocators of it that are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peakline.errors import NotFoundError
from peakline.figures.text import one_line
from peakline.findings.finding import Finding
from peakline.findings.memory_answer import MemoryAnswer, answer_memory
from peakline.memory.details import MemoryDetails
from peakline.memory.peak import AllocatorPeak
from peakline.memory.signatures import History
from peakline.tables import Profile
from peakline.tables.columns import Columns
from peakline.text import allocator_text


@dataclass(frozen=True, eq=False)
class DrawnAllocator:
    """One allocator to draw: its peak, its analyses, and the records that all of them read.

    ``number`` is the allocator's place in ``history.lifetimes.allocators``; ``findings`` are those
    about it.
    """

    peak: AllocatorPeak
    details: MemoryDetails
    history: History
    number: int
    steps: Columns
    findings: tuple[Finding, ...]

    @property
    def name(self) -> str:
        """The allocator as a person reads it."""
        name = allocator_text(self.peak.allocator)
        # Some runtimes only number them.
        return f"allocator {name}" if name.isdecimal() else one_line(name, 100)

    @cached_property
    def step_names(self) -> dict[int, str]:
        """The name of every step by its id; empty where it has none."""
        ids, names = self.steps.array("step_id").tolist(), self.steps.names("name").to_list()
        return {number: name or "" for number, name in zip(ids, names, strict=True)}

    @cached_property
    def peak_row(self) -> int:
        """The record of the peak."""
        rows = self.history.rows_of(self.number)
        rows = rows[self.history.measured[rows]]
        is_peak = self.history.events.array("time_ps")[rows] == self.peak.peak_time_ps
        is_peak &= self.history.used[rows] == self.peak.peak_bytes
        return int(rows[is_peak.argmax()])


def drawn_allocators(
    profile: Profile, allocator: str | None, answer: MemoryAnswer | None
) -> tuple[DrawnAllocator, ...]:
    """The allocators that a figure is about, the one with the highest peak first.

    Only ``allocator`` where it is named; none where the profile holds no records of memory. Raises
    NotFoundError for an allocator that is not there, InputError when the profile cannot be read.
    """
    if answer is None:
        answer = answer_memory(profile, allocator=allocator)
    history = answer.history
    if history is None:
        return ()
    found = list(zip(answer.allocators, answer.details, strict=True))
    if allocator is not None:
        found = [pair for pair in found if pair[0].allocator == allocator]
        if not found:
            known = ", ".join(peak.allocator or '""' for peak in answer.allocators) or "none"
            raise NotFoundError(f"no allocator {allocator!r} in the answer; there is: {known}")
    found.sort(key=lambda pair: (-pair[0].peak_bytes, pair[0].allocator))
    names = history.lifetimes.allocators
    steps = profile.columns_or_empty("steps")
    return tuple(
        DrawnAllocator(
            peak,
            details,
            history,
            names.index(peak.allocator),
            steps,
            tuple(f for f in answer.findings if f.evidence.get("allocator") == peak.allocator),
        )
        for peak, details in found
    )
