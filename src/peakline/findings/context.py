"""What the kinds of findings look at: all that is known of a profile's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from peakline.findings.finding import Finding

if TYPE_CHECKING:
    from peakline.findings.program_values import ProgramOfDevices
    from peakline.memory.details import MemoryDetails
    from peakline.memory.oom import FailedMoment
    from peakline.memory.origins.op_events import OpEvents
    from peakline.memory.origins.stacks import Origins
    from peakline.memory.signatures import History
    from peakline.tables import Profile
    from peakline.trace.steps import Steps

Findings: TypeAlias = Iterator[Finding]
"""What a kind finds, one at a time."""


@dataclass(frozen=True, eq=False)
class MemoryContext:
    """``allocators`` are the analyses of each, ``failures`` when allocations failed, ``history`` is
    what they read (None without records).

    ``origins`` are the call stacks of the records, ``op_events`` the executions of ops around them,
    ``steps`` the table of that name, ``op_types`` reads the types of ops by name, where the
    profile is at hand and has them. ``programs`` are the compiled programs that need most of the
    devices, where no allocator recorded anything; ``profile`` has those that ran beside an
    allocator that did, and the stages of its input.
    """

    allocators: tuple[MemoryDetails, ...] = ()
    failures: tuple[FailedMoment, ...] = ()
    history: History | None = None
    origins: Origins | None = None
    op_events: OpEvents | None = None
    steps: Steps | None = None
    op_types: Callable[[], Mapping[str, str]] = dict
    programs: tuple[ProgramOfDevices, ...] = ()
    profile: Profile | None = None
