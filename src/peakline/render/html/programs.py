"""What compiled programs say in a report: what they need, and what failed allocations were for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from peakline.document import limits
from peakline.document.model import Fact, Table, capital, more_text, rest_text
from peakline.document.program_memory import (
    LOWER_BOUND,
    NOT_RUN,
    at_peak_title,
    failure_text,
    failure_title,
    need_sections,
)
from peakline.document.programs import groups_tables, live_table, program_facts, programs_table
from peakline.findings.failed_programs import explained_failures
from peakline.findings.program_memory import DeviceNeed, device_needs, program_at_peak
from peakline.render.html.context import Context, Part
from peakline.render.html.html import Child, Markup, clip, join, tag
from peakline.timing.programs.answer import ProgramAnswer, programs_of


def compiled(context: Context) -> Markup | None:
    """The compiled programs: all of them, and what those that need most have live; nothing without.

    Without records of memory that is a group per program that devices ran; else the largest one.
    """
    if not context.profile.programs():
        return None
    every = programs_of(context.profile)
    if not every:
        return None
    listed = programs_table(every, limits.PROGRAMS.report).without_empty()
    parts: list[Child] = [
        context.tables.write(replace(listed, rest=()), head=len(listed.columns) - 1)
    ]
    if listed.rest:
        parts.append(tag("p", f"{capital(rest_text(listed, 'program'))}."))
    if context.answer.nothing and (result := device_needs(context.profile)):
        parts += _needs(context, result)
    elif every[0].peak_bytes is not None:
        parts += _program(context, every[0], every[0].label, program_facts(every[0]))
    return tag(
        "section", tag("h2", "Compiled programs", id="programs"), *parts, aria_labelledby="programs"
    )


def _needs(context: Context, result: Sequence[DeviceNeed]) -> Iterator[Child]:
    """Per device the program that needs most, and what is live then."""
    # The heading says the rest.
    words = (LOWER_BOUND if result[0].is_run else NOT_RUN).partition(": ")[2]
    yield tag("p", f"{capital(words)}.")
    sections = need_sections(result)
    for title, facts, need in sections[: limits.NEEDS.report]:
        yield from _program(context, need.program, title or need.program.label, facts)
    if more := more_text(len(sections) - limits.NEEDS.report, "group", " of devices."):
        yield tag("p", capital(more))


def _program(
    context: Context, program: ProgramAnswer, name: str, facts: Sequence[Fact]
) -> Iterator[Child]:
    """One program: its numbers, what is live when it needs most, by value, scope and line."""
    yield tag("h3", clip(name, 300))
    yield context.tables.facts(f"what {clip(name, 300)} needs", facts)
    yield _live(context, program, "live then")
    yield from (
        context.tables.write(one) for one in groups_tables(program, limits.PROGRAM_GROUPS.report)
    )


def at_peak(part: Part) -> Markup | None:
    """The program that ran at an allocator's peak, and what it has live at its own."""
    if part.context.is_moment:
        return None
    program = program_at_peak(part.context.profile, part.peak)
    if program is None:
        return None
    words = tag("p", f"{clip(at_peak_title(program), 600)}:")
    return join([words, _live(part.context, program, "live when the program needs most")])


def failures(context: Context) -> Markup | None:
    """The programs that failed allocations can have been for; nothing without programs."""
    result = {failure_text(one): one for one in reversed(explained_failures(context.profile))}
    if not result:
        return None
    parts: list[Child] = []
    for text, one in list(reversed(result.items()))[: limits.FAILURES.report]:
        parts.append(tag("p", tag("strong", f"{clip(text, 900)}.")))
        if one.programs:
            program = one.programs[0].program
            parts.append(_live(context, program, clip(failure_title(program), 300)))
    if more := more_text(len(result) - limits.FAILURES.report, "size", " that failed."):
        parts.append(tag("p", capital(more)))
    return tag(
        "section",
        tag("h2", "What the failed allocations were for", id="failed"),
        *parts,
        aria_labelledby="failed",
    )


def _live(context: Context, program: ProgramAnswer, title: str) -> Markup | None:
    """What is live when the program needs most."""
    table: Table = live_table(program, limits.PROGRAMS.report)
    if not table.rows:
        return None
    shown = replace(table, title=title, rest=()).without_empty().numbers_first()
    rest = tag("p", f"{capital(rest_text(table, 'value', 'bytes'))}.") if table.rest else None
    return join([context.tables.write(shown), rest])
