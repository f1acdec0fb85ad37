"""What the kinds of findings about time look at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peakline.arrays import AnyArray
from peakline.tables import Profile
from peakline.timing.frame_work import Idle, idle_of
from peakline.timing.launches.first_use import FirstUses, first_uses_of
from peakline.timing.launches.gaps import (
    BetweenSteps,
    Gaps,
    InputWaits,
    between_steps,
    gaps_of,
    input_waits,
)
from peakline.timing.ops.in_steps import StepOps, step_ops_of
from peakline.timing.steps.facts import StepFacts
from peakline.timing.steps.stragglers import Behind, behind_of
from peakline.trace.intervals import covered


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
        return gaps_of(self.profile, self.facts)

    @cached_property
    def first_uses(self) -> FirstUses:
        """The calls that only a first use makes."""
        return first_uses_of(self.profile)

    @cached_property
    def first_use_ps(self) -> AnyArray:
        """How long such calls take, per row of ``facts``."""
        begin, end = self.facts.part("start_ps"), self.facts.part("end_ps")
        return covered(self.first_uses.intervals, begin, end)

    @cached_property
    def between(self) -> BetweenSteps:
        """What lies between the steps, per row of ``facts``."""
        return between_steps(self.profile, self.facts)

    @cached_property
    def input_waits(self) -> InputWaits:
        """How long training waits for input."""
        return input_waits(self.facts, self.between)

    @cached_property
    def behind(self) -> Behind | None:
        """The device that the others wait for, where there is one."""
        return behind_of(self.profile, self.facts)

    @cached_property
    def idle(self) -> Idle | None:
        """What the program's functions do while nothing else works, where frames were recorded."""
        return idle_of(self.profile)

    @cached_property
    def ops(self) -> StepOps | None:
        """The executions of ops in the steps, where any ran."""
        return step_ops_of(self.profile)
