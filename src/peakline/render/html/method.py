"""What was lost or guessed, and how the numbers of a report were made."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version

from peakline.document.model import Fact, Table, capital, columns_of
from peakline.findings.memory_answer import NOTHING
from peakline.findings.time_answer import NO_STEPS
from peakline.render.html.context import Context, Part
from peakline.render.html.html import Child, Markup, clip, code, tag
from peakline.text import counted, time_text


def warnings(context: Context) -> Markup | None:
    """What the reading and the analyses lost, skipped or guessed."""
    # The summary says what the profile has nothing about.
    found = [one for one in context.profile.warnings if one.kind not in {NOTHING, NO_STEPS}]
    if not found:
        return None
    columns = columns_of(kind="name", times="count", what_it_means="")
    rows = [(one.kind, one.count, one.detail) for one in found]
    return tag(
        "section",
        tag("h2", "Warnings", id="warnings"),
        context.tables.write(Table("lost, skipped or guessed", columns, rows)),
        aria_labelledby="warnings",
    )


def method(context: Context, parts: Sequence[Part], command: str | None) -> Markup:
    """Where the numbers come from, and what the profile does not record."""
    alone = len(context.answer.allocators) == 1
    unknown = [
        capital(reason) if alone or name is None else f"{name}: {reason}"
        for name, reason in _unknown(context, parts)
    ]
    shown: list[Child] = [_facts(context, parts, command)]
    if unknown:
        shown.append(tag("h3", "What could not be known"))
        shown.append(tag("ul", *(tag("li", one) for one in unknown)))
    return tag(
        "section",
        tag("h2", "How these numbers were made", id="method"),
        *shown,
        aria_labelledby="method",
    )


def _facts(context: Context, parts: Sequence[Part], command: str | None) -> Markup:
    profile = context.profile
    facts = [Fact("profile", profile.path, "name"), Fact("format", profile.format)]
    if profile.host:
        facts.append(Fact("host", profile.host))
    if profile.duration_ps and not context.is_moment:
        facts.append(Fact("length", time_text(profile.duration_ps)))
    if parts:
        buffers = sum(one.count for peak in context.answer.allocators for one in peak.peak_buffers)
        rows = parts[0].history.rows
        many = counted(buffers, "buffer") if context.is_moment else counted(rows, "record")
        facts.append(Fact("read", many))
    for part in parts:
        label = "in use is" if len(parts) == 1 else f"in use, {part.heading}"
        facts.append(Fact(label, _measured_by(part)))
    facts.append(Fact("Peakline", f"{version('peakline')}, Python {platform.python_version()}"))
    if command:
        facts.append(Fact("command", code(command, 2000)))
    return context.tables.facts("where the numbers come from", facts)


def _measured_by(part: Part) -> str:
    if part.context.is_moment:
        return "the sum of the buffers that the file lists"
    if part.peak.reported:
        return "what the allocator itself reported with each record"
    return "the sum of the buffers live after each record, for the allocator reports none"


def _unknown(context: Context, parts: Sequence[Part]) -> Iterator[tuple[str | None, str]]:
    """What the profile does not record, and of which allocators; None for all of it."""
    if context.answer.nothing:
        yield None, "memory: no record is about it."
    if context.time.nothing:
        yield None, f"time: {context.time.nothing}."
    if context.is_moment:
        yield (
            None,
            "The file is of one moment: it does not record when buffers were made and freed.",
        )
        return
    for part in parts:
        for reason in _unknown_of(part):
            yield part.heading, reason
    if context.drawings.left_out:
        many = counted(context.drawings.left_out, "figure")
        yield None, f"{many} would have made this file too large; the tables have what they show."


def _unknown_of(part: Part) -> Iterator[str]:
    peak, growth = part.peak, part.details.growth
    if not peak.capacity_bytes:
        yield "how much it may take at most: no record reports what is free."
    if growth is None:
        yield "growth: the file has fewer than two steps, and no clear repetition."
    elif growth.marks.found_by == "period":
        yield f"which step is which: the file marks none. Instead: {clip(growth.marks.detail)}."
    if part.details.fragmentation is None:
        yield "where buffers lie: no record has an address."
    if peak.untracked_allocations:
        many = counted(peak.untracked_allocations, "record")
        yield f"which buffers {many} without an id and an address belong to."
    if peak.unmatched_deallocations:
        many = counted(peak.unmatched_deallocations, "deallocation")
        if peak.unexplained_deallocations:
            yield f"what {many} freed: no allocation and nothing from before the profile fits."
        else:
            yield f"who made what {many} freed: it was there before the profile began."
    if any(buffer.op == "(before profile)" for buffer in peak.peak_buffers):
        yield "who made the memory that was in use before the profile began."
