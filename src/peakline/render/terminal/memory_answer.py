"""The memory answer of an open profile, as a person reads it or as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from peakline.errors import UsageError
from peakline.findings.failed_programs import explained_failures
from peakline.findings.memory_answer import NOTHING, MemoryAnswer, answer_memory
from peakline.findings.program_memory import device_needs, program_at_peak
from peakline.memory.allocator_names import recorded_name
from peakline.render.document.program_memory import ProgramDocuments
from peakline.render.terminal.layout import Text, show
from peakline.render.terminal.output import print_json, print_warnings
from peakline.tables.profile_facts import is_moment, profile_document, warnings_document
from peakline.text import time_text

if TYPE_CHECKING:
    from peakline.api import Profile


def show_memory(
    profile: Profile,
    *,
    allocator: str | None = None,
    step: str | None = None,
    at_ps: int | None = None,
    as_json: bool,
) -> None:
    """Print the memory answer for ``profile``, then what had to be guessed.

    ``at_ps`` asks for what was live at that time: on the screen instead, in JSON besides.
    """
    allocator = recorded_name(profile, allocator)
    answer = answer_memory(profile, allocator=allocator, step=step)
    live: tuple[Any, ...] = ()
    if at_ps is not None and not answer.nothing:
        _check_within(profile, at_ps)
    if at_ps is not None and answer.history is not None:
        from peakline.memory.peak.moments import memory_at

        live = memory_at(answer.history, at_ps, allocator=allocator)
    if as_json:
        document = memory_document(profile, answer)
        if at_ps is not None:
            from peakline.tools.memory_findings.output import at_json

            document["at"] = at_json(at_ps, live)
        print_json(document)
    elif answer.nothing:
        how = answer.to_record and f"; {answer.to_record}"
        show([Text(f"{profile.path}: {answer.nothing}{how}", hang=2)])
        if step is None and at_ps is None and (needs := device_needs(profile)):
            from peakline.render.terminal.program_memory import print_needs

            print_needs(needs)
        if answer.findings:
            from peakline.render.terminal.memory import print_findings

            print_findings(profile, answer)
    elif at_ps is not None:
        from peakline.render.terminal.memory import print_memory_at

        print_memory_at(profile, at_ps, live, profile.columns_or_empty("steps"))
    else:
        from peakline.render.terminal.memory import print_memory

        print_memory(profile, answer, profile.columns_or_empty("steps"), moment=is_moment(profile))
    print_warnings(profile.warnings, besides=NOTHING)


def _check_within(profile: Profile, time_ps: int) -> None:
    """UsageError with the profile's bounds where it says nothing of ``time_ps``."""
    if is_moment(profile):
        raise UsageError(f"--at: {profile.path} holds one moment, without a time")
    times = profile.columns("allocator_events", {"time_ps"}).array("time_ps")
    begin, end = min(0, int(times[0])), max(profile.duration_ps, int(times[-1]))
    if not begin <= time_ps <= end:
        raise UsageError(
            f"--at {time_text(time_ps)} is not within the profile, "
            f"which goes from {time_text(begin)} to {time_text(end)}"
        )


def memory_document(profile: Profile, answer: MemoryAnswer | None = None) -> dict[str, object]:
    """What ``peakline memory --json`` prints, of ``answer`` where it is known already."""
    answer = answer_memory(profile) if answer is None else answer
    programs = ProgramDocuments()
    return {
        "profile": profile_document(profile),
        "allocators": _allocators(profile, answer, programs),
        "programs": [programs.need(need) for need in device_needs(profile)],
        "failed_programs": [programs.failure(one) for one in explained_failures(profile)],
        "findings": [finding.as_json() for finding in answer.findings],
        "to_record": [answer.to_record] if answer.to_record else [],
        "warnings": warnings_document(profile.warnings),
    }


def _allocators(
    profile: Profile, answer: MemoryAnswer, programs: ProgramDocuments
) -> list[dict[str, object]]:
    """Every allocator's peak, and the analyses of what led to it."""
    if answer.history is None:
        return [peak.as_json() for peak in answer.allocators]
    from peakline.memory.fragmentation.segments import reserved_of
    from peakline.memory.peak.moments import find_high_moments
    from peakline.tools.memory_findings.output import details_json, moments_json

    told = []
    for peak, details in zip(answer.allocators, answer.details, strict=True):
        number = answer.history.lifetimes.allocators.index(peak.allocator)
        moments = find_high_moments(answer.history, number)
        reserved = reserved_of(profile, peak)
        program = program_at_peak(profile, peak)
        behind = details_json(details, peak) | {
            "program_at_peak": None if program is None else programs.program(program),
            "high_moments": moments_json(moments),
            "reserved": None if reserved is None else asdict(reserved),
        }
        told.append(peak.as_json() | behind)
    return told
