"""``peakline memory``: the peak of every allocator and what was live at it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import peakline
from peakline.cli.options import (
    Reading,
    json_option,
    path_argument,
    print_warnings,
    reading_options,
)
from peakline.errors import UsageError
from peakline.render.terminal.output import print_json
from peakline.tables.profile_facts import is_moment, profile_document, warnings_document
from peakline.text import one_line, parse_time, time_text

if TYPE_CHECKING:
    from peakline.findings.memory_answer import MemoryAnswer

__all__ = ["memory", "memory_document", "show_memory"]


@click.command()
@path_argument
@click.option("--allocator", metavar="NAME", help="Only this allocator.")
@click.option(
    "--step",
    metavar="STEP",
    help="The largest use while this step ran: a step's id, or its name.",
)
@click.option(
    "--at",
    metavar="TIME",
    help="What was live at this time of the profile: 12.5ms, 1.2s, 827750630000ps.",
)
@reading_options(json_option)
def memory(
    path: str,
    allocator: str | None,
    step: str | None,
    at: str | None,
    reading: Reading,
    *,
    json: bool,
) -> None:
    """Explain the memory peak: how much, when, and what was live."""
    if at is not None and step is not None:
        raise UsageError("--at and --step ask for different times; give one of them")
    time_ps = None if at is None else parse_time(at)
    with reading.open(path) as profile:
        show_memory(profile, allocator=allocator, step=step, at_ps=time_ps, as_json=json)


def show_memory(
    profile: peakline.Profile,
    *,
    allocator: str | None = None,
    step: str | None = None,
    at_ps: int | None = None,
    as_json: bool,
) -> None:
    """Print the memory answer for ``profile``, then what had to be guessed.

    ``at_ps`` asks for what was live at that time: on the screen instead, in JSON besides.
    """
    from peakline.findings.memory_answer import NOTHING, answer_memory
    from peakline.memory.allocator_names import recorded_name

    allocator = recorded_name(profile, allocator)
    answer = answer_memory(profile, allocator=allocator, step=step)
    live: tuple[Any, ...] = ()
    if at_ps is not None and not answer.nothing:
        _check_within(profile, at_ps)
    if at_ps is not None and answer.history is not None:
        from peakline.memory.moments import memory_at

        live = memory_at(answer.history, at_ps, allocator=allocator)
    if as_json:
        document = _document(profile, answer)
        if at_ps is not None:
            from peakline.tools.memory_findings.output import at_json

            document["at"] = at_json(at_ps, live)
        print_json(document)
    elif answer.nothing:
        how = answer.to_record and f"; {answer.to_record}"
        print(one_line(f"{profile.path}: {answer.nothing}{how}"))
    elif at_ps is not None:
        from peakline.render.terminal.memory_at import print_memory_at

        print_memory_at(profile, at_ps, live, profile.columns_or_empty("steps"))
    else:
        from peakline.render.terminal.memory import print_memory

        print_memory(profile, answer, profile.columns_or_empty("steps"), moment=is_moment(profile))
    print_warnings(profile.warnings, besides=NOTHING)


def _check_within(profile: peakline.Profile, time_ps: int) -> None:
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


def memory_document(profile: peakline.Profile) -> dict[str, object]:
    """What ``peakline memory --json`` prints for ``profile``."""
    from peakline.findings.memory_answer import answer_memory

    return _document(profile, answer_memory(profile))


def _document(profile: peakline.Profile, answer: MemoryAnswer) -> dict[str, object]:
    return {
        "profile": profile_document(profile),
        "allocators": _allocators(profile, answer),
        "findings": [finding.as_json() for finding in answer.findings],
        "warnings": warnings_document(profile.warnings),
    }


def _allocators(profile: peakline.Profile, answer: MemoryAnswer) -> list[dict[str, object]]:
    """Every allocator's peak, and the analyses of what led to it."""
    if answer.history is None:
        return [peak.as_json() for peak in answer.allocators]
    from peakline.memory.moments import find_high_moments
    from peakline.memory.reserved import reserved_of
    from peakline.tools.memory_findings.output import details_json, moments_json

    told = []
    for peak, details in zip(answer.allocators, answer.details, strict=True):
        number = answer.history.lifetimes.allocators.index(peak.allocator)
        moments = find_high_moments(answer.history, number)
        reserved = reserved_of(profile, peak)
        behind = details_json(details, peak) | {
            "high_moments": moments_json(moments),
            "reserved": None if reserved is None else asdict(reserved),
        }
        told.append(peak.as_json() | behind)
    return told
