"""The memory answer of a profile, from the tables that it has: what every face shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peakline.findings.recording_advice import to_record_memory
from peakline.tables.once import once

if TYPE_CHECKING:
    from peakline.findings.memory_details import MemoryDetails
    from peakline.findings.memory_peak import Finding
    from peakline.memory.op_use import OpUse
    from peakline.memory.peak import AllocatorPeak
    from peakline.memory.signatures import History
    from peakline.memory.single_pass import PassFacts
    from peakline.tables import Profile
    from peakline.tables.columns import Columns

__all__ = ["NOTHING", "MemoryAnswer", "Notice", "answer_memory", "kept_memory", "steps_of"]

NOTHING = "no_memory_events"
"""The kind of the warning of a profile that holds nothing about memory."""


@dataclass(frozen=True)
class Notice:
    """Something the answer had to guess: a fixed word, how often, one line for a person."""

    kind: str
    count: int
    detail: str


@dataclass(frozen=True, eq=False)
class MemoryAnswer:
    """What ``peakline memory`` says; ``step`` is the step it was restricted to, else None.

    ``details`` are the analyses behind the findings, one per entry of ``allocators``; ``history``
    is what they all read, the records matched, measured and named. Both are empty where the
    profile holds no records. ``nothing`` is one line for a profile without anything about memory,
    ``to_record`` how to record it, empty where that is not known.
    """

    allocators: tuple[AllocatorPeak, ...]
    findings: tuple[Finding, ...]
    notices: tuple[Notice, ...]
    step: int | None
    details: tuple[MemoryDetails, ...] = ()
    history: History | None = None
    nothing: str = ""
    to_record: str = ""


def answer_memory(
    profile: Profile, *, allocator: str | None = None, step: str | None = None
) -> MemoryAnswer:
    """Why allocations failed, every allocator's peak, and what stands out.

    ``allocator`` keeps one allocator, by its name in the file or the device's that screens show;
    ``step``, an id or a name, asks for the largest use while that step ran. What had to be guessed
    is counted in ``profile.warnings``, once however often it is asked; so is, as `NOTHING`, a
    profile without anything about memory, whose answer is empty and says so in ``nothing``.
    Raises NotFoundError for an unknown allocator or step, InputError when the profile cannot be
    read.
    """
    from peakline.memory.allocator_names import recorded_name

    return _told(profile, _answer(profile, recorded_name(profile, allocator), step), step)


def kept_memory(profile: Profile) -> MemoryAnswer:
    """The answer of all allocators and steps, as `answer_memory`, made once and kept with the
    profile: for who asks an open one several times.
    """
    return _told(profile, _whole_answer(profile))


@once
def _whole_answer(profile: Profile) -> MemoryAnswer:
    return _answer(profile, None, None)


def _told(profile: Profile, answer: MemoryAnswer, step: str | None = None) -> MemoryAnswer:
    """``answer``, with what it had to guess counted in the profile's warnings."""
    if not (answer.allocators or answer.findings):
        where = "this profile" if answer.step is None else f"step {step}"
        nothing = f"no memory events in {where}"
        how = to_record_memory(profile) if answer.step is None else ""
        profile.warn(NOTHING, nothing, once=True)
        return replace(answer, nothing=nothing, to_record=how)
    told = {warning.kind for warning in profile.warnings}
    for notice in answer.notices:
        # A log's reader has told of its untracked records, and their bytes, already.
        if not (notice.kind == "untracked_allocation" and "untracked" in told):
            profile.warn(notice.kind, notice.detail, notice.count, once=True)
    return answer


def steps_of(profile: Profile) -> Columns:
    """The steps; none where the format does not know them."""
    if "steps" in profile.tables:
        return profile.columns("steps")
    from peakline.tables.tables import empty_columns

    return empty_columns("steps")


def _answer(profile: Profile, allocator: str | None, step: str | None) -> MemoryAnswer:
    failures = _failures(profile)
    if "allocator_events" in profile.tables and profile.columns("allocator_events").rows:
        # Compiling and loading the kernels takes a moment: only when there is something to explain.
        from peakline.findings.memory_details import explain_memory
        from peakline.memory.oom import limits_of

        answer = explain_memory(
            profile.columns("allocator_events"),
            steps_of(profile),
            allocator=allocator,
            step=step,
            ops=_op_use(profile),
            facts=lambda: _pass_facts(profile),
            programs=frozenset(name.partition("(")[0] for name, _ in profile.hlo_modules()),
        )
        limits = limits_of(profile)
        peaks = tuple(
            replace(peak, capacity_bytes=limits.get(peak.allocator))
            if peak.capacity_bytes is None
            else peak
            for peak in answer.allocators
        )
        return replace(answer, allocators=peaks, findings=(*failures, *answer.findings))
    return MemoryAnswer((), failures, (), None)


def _op_use(profile: Profile) -> OpUse | None:
    """What executions of ops tell, where the file has any."""
    if "op_runs" not in profile.tables or not profile.has_rows("op_runs"):
        return None
    from peakline.memory.op_use import read_op_use

    edges = profile.columns("edges") if "edges" in profile.tables else None
    return read_op_use(profile.columns("op_runs"), edges if edges and edges.rows else None)


def _pass_facts(profile: Profile) -> PassFacts:
    """What the file says of passes over layers."""
    from peakline.memory.single_pass import read_pass_facts

    return read_pass_facts(profile)


def _failures(profile: Profile) -> tuple[Finding, ...]:
    """Why allocations failed, where the file reports any that did."""
    if "oom_reports" not in profile.tables or not profile.columns("oom_reports").rows:
        return ()
    from peakline.memory.oom import oom_findings
    from peakline.tables.tables import empty_columns

    has_blocks = "blocks" in profile.tables
    blocks = profile.columns("blocks") if has_blocks else empty_columns("blocks")
    return tuple(oom_findings(profile.columns("oom_reports"), blocks))
