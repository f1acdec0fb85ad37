"""The head of a report: the verdict in a sentence, the figures that matter, the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from peakline.findings.catalogue import kinds
from peakline.findings.finding import SEVERITIES, Finding
from peakline.findings.headline.memory import notable_memory
from peakline.findings.step_names import step_text
from peakline.memory.peak import AllocatorPeak
from peakline.render.document.finding import evidence
from peakline.render.document.memory import allocator_facts, detail_facts
from peakline.render.document.model import Column, Row, Table, capital, columns_of
from peakline.render.html.context import Context, Part
from peakline.render.html.html import Child, Markup, clip, code, join, tag
from peakline.render.html.values import cell, named
from peakline.text import time_text

_WORDS = {"error": "Error", "warning": "Warning", "info": "For information"}
_MARKS = {
    "error": "M8 1 15 15H1ZM8 5.5v5M8 12v1.4",
    "warning": "M8 1 15 8 8 15 1 8ZM8 4.6v4.2M8 10.2v1.4",
    "info": "M8 1a7 7 0 1 0 .01 0ZM8 7v5M8 4v1.4",
    "fine": "M8 1a7 7 0 1 0 .01 0ZM4.6 8.2l2.4 2.4 4.4-5",
}
_TELLING = 0.01
"""An op with less of the peak is not worth a place in the summary."""
_LOWER = ("memory ", "without ", "the ")


def rank(severity: str) -> int:
    """0 for the gravest."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def summary(context: Context, parts: Sequence[Part]) -> Markup:
    """The verdict, then the figures of the only allocator or a table of all of them."""
    answer = context.answer
    told: list[Child] = [_verdict(context, parts)]
    if len(answer.allocators) == 1 and len(parts) == 1:
        told.append(_figures(parts[0]))
    elif answer.allocators:
        told.append(_overview(context, parts))
    return tag("section", tag("h2", "Summary", id="summary"), *told, aria_labelledby="summary")


def findings(context: Context) -> Markup | None:
    """What is wrong, the gravest first: each with what to do and the numbers behind it."""
    found = sorted(context.answer.findings, key=lambda one: rank(one.severity))
    if not found:
        return None
    alone = len(context.answer.allocators) < 2
    return tag(
        "section",
        tag("h2", "Findings", id="findings"),
        *(_finding(context, finding, alone=alone) for finding in found),
        aria_labelledby="findings",
    )


def _mark(kind: str) -> Markup:
    return tag(
        "svg",
        tag("path", d=_MARKS[kind]),
        class_="mark",
        viewBox="0 0 16 16",
        aria_hidden="true",
        focusable="false",
    )


def _verdict(context: Context, parts: Sequence[Part]) -> Markup:
    found = context.answer.findings
    if found:
        gravest = sorted(found, key=lambda one: rank(one.severity))
        told = list(dict.fromkeys(kinds()[one.kind].phrase for one in gravest))
        kind = gravest[0].severity
        words = f"{_listed(told)}."
        return tag("p", _mark(kind), f"{words[0].upper()}{words[1:]}", class_=f"verdict {kind}")
    notable = notable_memory(context.answer)
    if notable:
        texts = [f"{one.text[0].upper()}{one.text[1:]}." for one in notable]
        return tag("p", _mark("info"), " ".join(texts), class_="verdict info")
    return join(
        [
            tag("p", _mark("fine"), "Nothing stands out.", class_="verdict fine"),
            tag("p", _looked_for(context, parts)) if parts else None,
        ]
    )


def _looked_for(context: Context, parts: Sequence[Part]) -> str:
    """What was looked for in vain, and what could not be looked for."""
    if context.is_moment:
        return (
            "The file says what was in memory at one moment. Whether memory grows, and how it is "
            "used within a step, cannot be seen in it."
        )
    steps = max(
        (len(part.details.growth.marks) for part in parts if part.details.growth), default=0
    )
    looked = ["one kind of temporary that makes the peak"]
    missing = []
    if steps:
        looked.insert(0, f"memory that grows ({steps:,} steps)")
        looked.append("buffers made over and over within a step")
    else:
        missing.append("growth (no steps, and no pattern that repeats)")
    if any(part.details.fragmentation is not None for part in parts):
        looked.append("free memory in pieces")
    else:
        missing.append("fragmentation (no addresses)")
    if any(part.peak.capacity_bytes for part in parts):
        looked.append("a peak near the capacity")
    else:
        missing.append("how near the peak is to the capacity (the file does not record it)")
    told = f"Looked for, and not found: {_listed(looked)}."
    return told if not missing else f"{told} Could not be looked for: {_listed(missing)}."


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _figures(part: Part) -> Markup:
    """The facts of the only allocator: numbers as tiles, the others below them."""
    peak, context = part.peak, part.context
    moment = context.is_moment
    facts = allocator_facts(context.profile, peak, context.answer, context.labels, moment=moment)
    if not moment:
        facts += detail_facts(peak, part.details, part.history)
    tiles = [
        _tile(capital(fact.label), cell(fact.value, fact.unit), fact.note.lstrip(" ,"))
        for fact in facts
        if fact.unit
    ]
    largest = peak.largest_op
    if largest and len({buffer.op for buffer in peak.peak_buffers}) > 1:
        op, most = largest
        if most >= _TELLING * peak.peak_bytes > 0:
            tiles.append(_tile("Of its largest op", f"{most / peak.peak_bytes:.1%}", code(op, 80)))
    others = [fact for fact in facts if not fact.unit]
    return join(
        [
            tag("p", "Allocator ", code(named(peak.allocator)), class_="of"),
            tag("dl", *tiles, class_="tiles"),
            context.tables.facts("more about it", others) if others else None,
        ]
    )


def _tile(title: str, value: Child, note: Child) -> Markup:
    return tag("div", tag("dt", title), tag("dd", value, class_="value"), tag("dd", note))


def _overview(context: Context, parts: Sequence[Part]) -> Markup:
    """All allocators, in the order of their sections."""
    placed = {name: place for place, part in enumerate(parts, 1) for name in part.allocators}
    own: dict[object, int] = {}
    for finding in context.answer.findings:
        name = finding.evidence.get("allocator")
        own[name] = own.get(name, 0) + 1
    columns = columns_of("allocator", peak="bytes", when="", capacity="bytes", taken="share")
    if context.is_moment:
        columns = columns_of("allocator", in_use="bytes", when="", capacity="bytes", taken="share")
    table = Table(
        "allocators",
        (*columns, Column("findings", "count")),
        [
            _overview_row(context, peak, placed.get(peak.allocator), own)
            for peak in sorted(
                context.answer.allocators, key=lambda one: placed.get(one.allocator, len(parts) + 1)
            )
        ],
    )
    return context.tables.write(table.only([0, 1, 3, 4, 5]) if context.is_moment else table)


def _overview_row(
    context: Context, peak: AllocatorPeak, place: int | None, own: Mapping[object, int]
) -> Row:
    name: Markup = code(named(peak.allocator))
    if place is not None:
        name = tag("a", name, href=f"#allocator-{place}")
    unknown = peak.untracked_allocations and not peak.peak_bytes
    step = step_text(peak.peak_step, context.labels)
    when = time_text(peak.peak_time_ps) + (f", step {step}" if step else "")
    share = f"{peak.peak_bytes / peak.capacity_bytes:.1%}" if peak.capacity_bytes else ""
    return (
        name,
        None if unknown else peak.peak_bytes,
        "" if unknown else when,
        peak.capacity_bytes,
        share,
        own.get(peak.allocator, 0),
    )


def _finding(context: Context, finding: Finding, *, alone: bool) -> Markup:
    """One finding: title, what to do, the numbers, the rows."""
    title = clip(finding.title, 600)
    allocator = str(finding.evidence.get("allocator") or "")
    prefix = f"{named(allocator)}: "
    if title.startswith(prefix):
        title = title.removeprefix(prefix)
        if title.startswith(_LOWER):
            title = f"{title[0].upper()}{title[1:]}"
    severity = finding.severity if finding.severity in SEVERITIES else "info"
    badge = tag("span", _mark(severity), _WORDS[severity], class_=f"badge {severity}")
    where = None if alone or not allocator else tag("p", "Allocator ", code(named(allocator)))
    return tag(
        "article",
        tag("h3", badge, " ", title),
        where,
        tag("p", tag("strong", "What to do. "), finding.suggestion, class_="advice"),
        *_evidence(context, finding),
        class_=f"finding {severity}",
    )


def _evidence(context: Context, finding: Finding) -> list[Markup]:
    tables, facts = evidence(finding, context.labels)
    shown = [context.tables.write(table) for table in tables]
    return [*shown, context.tables.facts("the numbers behind it", facts)] if facts else shown
