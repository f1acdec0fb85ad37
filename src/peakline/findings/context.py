"""What the kinds of findings look at: all that is known of a profile's memory, or of its time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from peakline.findings.finding import Finding

if TYPE_CHECKING:
    from peakline.memory.details import MemoryDetails
    from peakline.memory.oom import FailedMoment
    from peakline.tables import Profile
    from peakline.timing.gaps import BetweenSteps, Gaps
    from peakline.timing.step_facts import StepFacts
    from peakline.timing.stragglers import Behind

Findings: TypeAlias = Iterator[Finding]
"""What a kind finds, one at a time."""


@dataclass(frozen=True, eq=False)
class MemoryContext:
    """``allocators`` are the analyses of each, ``failures`` when allocations failed."""

    allocators: tuple[MemoryDetails, ...] = ()
    failures: tuple[FailedMoment, ...] = ()


@dataclass(frozen=True, eq=False)
class TimeContext:
    """``facts`` are the steps, without rows where nothing says what a step is.

    The others are read from the profile when a kind needs them; InputError where that fails.
    """

    profile: Profile
    facts: StepFacts

    @cached_property
    def gaps(self) -> Gaps:
        """The short times in which a device was fed, per row of ``facts``."""
        from peakline.timing.gaps import gaps_of

        return gaps_of(self.profile, self.facts)

    @cached_property
    def between(self) -> BetweenSteps:
        """What lies between the steps, per row of ``facts``."""
        from peakline.timing.gaps import between_steps

        return between_steps(self.profile, self.facts)

    @cached_property
    def behind(self) -> Behind | None:
        """The device that the others wait for, where there is one."""
        from peakline.timing.stragglers import behind_of

        return behind_of(self.profile, self.facts)
