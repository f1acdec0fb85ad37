"""Two profiles side by side: what changed, for every face."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peakline.compare.memory import compare
from peakline.compare.programs import compare_programs, program_states
from peakline.compare.rows import signed_size, signed_time
from peakline.compare.state import state_of
from peakline.compare.time import compare_time, time_state
from peakline.findings.memory_answer import answer_memory
from peakline.shown import Brief, Shown, Tabular, table_of
from peakline.tables.profile_facts import ProfileFacts, facts_of, warnings_document
from peakline.text import allocator_text

if TYPE_CHECKING:
    import pyarrow as pa

    from peakline.compare.memory import MemoryDiff
    from peakline.compare.programs import ProgramDiff
    from peakline.compare.state import MemoryState, ProgramState
    from peakline.compare.time import TimeDiff, TimeState
    from peakline.tables import Profile, ProfileWarning


_NAMES = (
    "about", "where", "name", "data_type", "shape", "change", "before", "after", "delta", "unit",
)  # fmt: skip


def changes_of(result: Comparison) -> list[dict[str, Any]]:
    """A row for each kind of buffers that changed at a peak (bytes), part of the mean step and op
    (ps); all have the same keys.
    """
    return [dict(zip(_NAMES, row, strict=True)) for row in _rows(result)]


def _rows(result: Comparison) -> Iterator[tuple[Any, ...]]:
    for diff in result.memory.allocators:
        for group in diff.groups:
            kind = group.kind
            sizes = group.before_bytes, group.after_bytes, group.delta_bytes
            form = kind.op, kind.data_type, kind.shape
            yield "peak", diff.allocator, *form, group.change, *sizes, "bytes"
    if result.time is None:
        return
    for part in result.time.parts:
        times = part.before_ps, part.after_ps, part.delta_ps
        yield "part", "", part.words, "", "", "", *times, "ps"
    for op in result.time.ops:
        times = op.before_ps, op.after_ps, op.delta_ps
        yield "op", op.side, op.op, "", "", op.change, *times, "ps"


@dataclass(frozen=True, eq=False, repr=False)
class ProfileState(Brief):
    """All that a comparison needs of one profile, which may be closed then.

    ``no_memory`` says why it has nothing about memory, empty where it does. ``time`` is None, and
    ``programs`` are empty, where only memory is compared.
    """

    facts: ProfileFacts
    memory: MemoryState
    no_memory: str
    time: TimeState | None
    warnings: tuple[ProfileWarning, ...]
    programs: tuple[ProgramState, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown, Tabular):
    """What changed between two profiles; ``time`` is None where neither has anything about it.

    ``programs`` are all compiled programs of both, changed or not, those that need most first.
    """

    before: ProfileState
    after: ProfileState
    memory: MemoryDiff
    time: TimeDiff | None
    programs: tuple[ProgramDiff, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is something to compare, and nothing of it changed."""
        is_something = bool(self.memory.allocators or self.programs) or self.time is not None
        same_time = self.time is None or self.time.is_empty
        same_programs = all(one.is_empty for one in self.programs)
        return is_something and self.memory.is_empty and same_time and same_programs

    def as_json(self) -> dict[str, object]:
        """What ``peakline diff --json`` prints."""
        return {
            "before": self.before.facts.as_json(),
            "after": self.after.facts.as_json(),
            **self.memory.as_json(),
            "programs": [one.as_json() for one in self.programs],
            "time": None if self.time is None else self.time.as_json(),
            "warnings": {
                "before": warnings_document(self.before.warnings),
                "after": warnings_document(self.after.warnings),
            },
        }

    def to_arrow(self) -> pa.Table:
        """What changed, a row each: ``about`` is ``peak`` (buffers live at it, in bytes), ``part``
        (of the mean step) or ``op`` (its self time), both in ps; then ``where`` (allocator, side),
        ``name``, ``data_type``, ``shape``, ``before``, ``after``, ``delta`` and ``unit``.
        """
        return table_of(changes_of(self))

    def _headline(self) -> str:
        parts = [
            f"peak of {allocator_text(one.allocator)} {signed_size(one.peak_delta_bytes)}"
            for one in sorted(self.memory.allocators, key=lambda one: -abs(one.peak_delta_bytes))
        ][:1]
        times = None if self.time is None else (self.time.before.times, self.time.after.times)
        if times and times[0] and times[1]:
            parts.append(f"step {signed_time(times[1].median_ps - times[0].median_ps)}")
        return ", ".join(parts) or "nothing to compare"


def profile_state(
    profile: Profile, *, with_time: bool = True, path: str | None = None
) -> ProfileState:
    """What is compared of ``profile``; ``path`` is given in place of its own. Without ``with_time``
    only its allocators are.

    Raises InputError when it cannot be read.
    """
    memory = answer_memory(profile)
    return ProfileState(
        facts_of(profile, path),
        state_of(memory),
        memory.nothing,
        time_state(profile) if with_time else None,
        tuple(profile.concerning),
        program_states(profile) if with_time else (),
    )


def compare_profiles(
    before: ProfileState, after: ProfileState, *, allocator: str | None = None
) -> Comparison:
    """What changed from ``before`` to ``after``; with ``allocator`` only in the one of that name.

    Raises NotFoundError if neither profile has the allocator.
    """
    memory = compare(before.memory, after.memory)
    if allocator is not None:
        memory = memory.only(allocator)
    time = None
    if before.time is not None and after.time is not None:
        time = compare_time(before.time, after.time)
    programs = () if allocator else compare_programs(before.programs, after.programs)
    return Comparison(before, after, memory, time, programs)
