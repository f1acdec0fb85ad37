"""What the kinds of findings look at: all that is known of a profile's memory, or of its time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from peakline.findings.finding import Finding

if TYPE_CHECKING:
    from peakline.memory.details import MemoryDetails
    from peakline.memory.oom import FailedMoment
    from peakline.memory.origins.op_events import OpEvents
    from peakline.memory.origins.stacks import Origins
    from peakline.memory.signatures import History
    from peakline.tables import Profile
    from peakline.timing.frame_work import Idle
    from peakline.timing.gaps import BetweenSteps, Gaps
    from peakline.timing.step_facts import StepFacts
    from peakline.timing.step_ops import StepOps
    from peakline.timing.stragglers import Behind
    from peakline.trace.steps import Steps

Findings: TypeAlias = Iterator[Finding]
"""What a kind finds, one at a time."""


@dataclass(frozen=True, eq=False)
class MemoryContext:
    """``allocators`` are the analyses of each, ``failures`` when allocations failed, ``history`` is
    what they read (None without records).

    ``origins`` are the call stacks of the records, ``op_events`` the executions of ops around them,
    ``steps`` the table of that name, ``op_types`` reads the types of ops by name, where the
    profile is at hand and has them. ``program_findings`` are those of compiled programs, where no
    allocator recorded anything.
    """

    allocators: tuple[MemoryDetails, ...] = ()
    failures: tuple[FailedMoment, ...] = ()
    history: History | None = None
    origins: Origins | None = None
    op_events: OpEvents | None = None
    steps: Steps | None = None
    op_types: Callable[[], Mapping[str, str]] = dict
    program_findings: tuple[Finding, ...] = ()


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

    @cached_property
    def idle(self) -> Idle | None:
        """What the program's functions do while nothing else works, where frames were recorded."""
        from peakline.timing.frame_work import idle_of

        return idle_of(self.profile)

    @cached_property
    def ops(self) -> StepOps | None:
        """The executions of ops in the steps, where any ran."""
        from peakline.timing.step_ops import step_ops_of

        return step_ops_of(self.profile)
