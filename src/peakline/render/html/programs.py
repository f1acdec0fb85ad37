"""What compiled programs say in a report: what they need, and what failed allocations were for."""

from __future__ import annotations

from dataclasses import replace

from peakline.findings.failed_programs import explained_failures
from peakline.findings.program_memory import device_needs, program_at_peak
from peakline.render.document.model import Table, capital
from peakline.render.document.program_memory import (
    LOWER_BOUND,
    NOT_RUN,
    at_peak_title,
    failure_text,
    failure_title,
    need_sections,
)
from peakline.render.document.programs import groups_tables, live_table
from peakline.render.html.context import Context, Part
from peakline.render.html.html import Child, Markup, clip, join, tag
from peakline.text import counted, size_text
from peakline.timing.program_answer import ProgramAnswer

_ROWS, _GROUPS, _FAILURES = 30, 12, 3
_NEEDS = 8
"""So many programs are shown with what they have live."""


def needs(context: Context) -> Markup | None:
    """Per device the program that needs most, and what is live then; for a profile without records
    of memory, whose programs say it.
    """
    found = device_needs(context.profile)
    if not found:
        return None
    # The heading says the rest.
    words = (LOWER_BOUND if found[0].is_run else NOT_RUN).partition(": ")[2]
    parts: list[Child] = [tag("p", f"{capital(words)}.")]
    sections = need_sections(found)
    for title, facts, need in sections[:_NEEDS]:
        name = title or need.program.label
        parts += [tag("h3", clip(name, 300)), context.tables.facts(f"what {name} needs", facts)]
        parts.append(_live(context, need.program, "live then"))
        parts += [context.tables.write(one) for one in groups_tables(need.program, _GROUPS)]
    if len(sections) > _NEEDS:
        parts.append(tag("p", f"And {counted(len(sections) - _NEEDS, 'more group')} of devices."))
    return tag(
        "section",
        tag("h2", "What the compiled programs need", id="programs"),
        *parts,
        aria_labelledby="programs",
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
    found = {failure_text(one): one for one in reversed(explained_failures(context.profile))}
    if not found:
        return None
    parts: list[Child] = []
    for text, one in list(reversed(found.items()))[:_FAILURES]:
        parts.append(tag("p", tag("strong", f"{clip(text, 900)}.")))
        if one.programs:
            program = one.programs[0].program
            parts.append(_live(context, program, clip(failure_title(program), 300)))
    if len(found) > _FAILURES:
        parts.append(tag("p", f"And {counted(len(found) - _FAILURES, 'more size')} that failed."))
    return tag(
        "section",
        tag("h2", "What the failed allocations were for", id="failed"),
        *parts,
        aria_labelledby="failed",
    )


def _live(context: Context, program: ProgramAnswer, title: str) -> Markup | None:
    """What is live when the program needs most."""
    table: Table = live_table(program, _ROWS)
    if not table.rows:
        return None
    shown = replace(table, title=title, rest=()).without_empty().numbers_first()
    rest: Child = None
    if table.rest:
        count, size = (int(one or 0) for one in table.rest)
        rest = tag("p", f"And {counted(count, 'more value')}, {size_text(size)}.")
    return join([context.tables.write(shown), rest])
