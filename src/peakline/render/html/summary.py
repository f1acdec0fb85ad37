"""The head of a report: the verdict in a sentence, the figures that matter, the findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from peakline.document import limits
from peakline.document.memory import allocator_facts, detail_facts
from peakline.document.model import Column, Row, Table, capital, columns_of
from peakline.document.summary import looked_for, no_memory_text, verdict
from peakline.document.wording import NOTHING_AT_ALL, NOTHING_NOTABLE
from peakline.findings.headline.memory import memory_headline, savings_headline
from peakline.findings.headline.sentence import Sentence
from peakline.findings.headline.time import graph_headline, time_headline
from peakline.findings.summary import notable_of
from peakline.memory.peak.explained import AllocatorPeak
from peakline.render.html.context import Context, Part
from peakline.render.html.findings import in_order, mark
from peakline.render.html.html import Child, Markup, clip, code, join, tag
from peakline.render.html.tables import cell, named
from peakline.text import time_text
from peakline.trace.steps import step_text


def summary(context: Context, parts: Sequence[Part]) -> Markup:
    """What is said first of the profile, as on the page; the verdict; then the figures of the only
    allocator or a table of all of them.
    """
    answer = context.answer
    verdict, said = _verdict(context, parts)
    items = [_sentence(context, one) for one in _first(context) if one.text not in said]
    shown: list[Child] = [verdict, tag("ul", *items, class_="answer") if items else None]
    if not (items or verdict):
        shown.append(tag("p", NOTHING_AT_ALL, class_="verdict"))
    if len(answer.allocators) == 1 and len(parts) == 1:
        shown.append(_figures(parts[0]))
    elif answer.allocators:
        shown.append(_overview(context, parts))
    if answer.nothing:
        shown.append(tag("p", no_memory_text(context.profile, context.time), class_="of"))
    return tag("section", tag("h2", "Summary", id="summary"), *shown, aria_labelledby="summary")


def _first(context: Context) -> Iterator[Sentence]:
    """The sentences of the page's answer bar. Those of memory are of all allocators: they are left
    out of a report about others.
    """
    shown = {peak.allocator for peak in context.answer.allocators}
    of_memory = memory_headline(context.profile) or graph_headline(context.profile)
    named_ones = {one.params.get("allocator") for s in of_memory for one in s.phrases}
    if not shown or named_ones & shown:
        yield from of_memory
    yield from savings_headline(context.answer)
    yield from time_headline(context.profile)


_PLACES = {"memory": "memory", "steps": "steps", "timeline": "time", "graph": "graphs"}
"""The section of a report that has what a view of the page shows."""


def _sentence(context: Context, sentence: Sentence) -> Markup:
    """A sentence whose nouns lead to the sections about them."""
    parts: list[Child] = []
    for place, phrase in enumerate(sentence.phrases):
        text = clip(phrase.text if place else _begun(phrase.text), 600)
        section = _PLACES.get(phrase.view, "")
        is_there = section in context.sections
        parts.append(tag("a", text, href=f"#{section}") if is_there else text)
    return tag("li", *parts, ".")


def _begun(text: str) -> str:
    """``text`` as the begin of a sentence; a name stays as it is written."""
    return capital(text) if text.partition(" ")[0].isalpha() else text


def _verdict(context: Context, parts: Sequence[Part]) -> tuple[Markup | None, set[str]]:
    """What it comes to, and the sentences that it consists of."""
    result = in_order(context)
    if result:
        kind = result[0].finding.severity
        return tag("p", mark(kind), verdict(result), class_=f"verdict {kind}"), set()
    notable = notable_of(context.answer, context.time)
    if notable:
        texts = [f"{_begun(one.text)}." for one in notable]
        said = {one.text for one in notable}
        return tag("p", mark("info"), " ".join(texts), class_="verdict info"), said
    if not parts and context.time.times is None:
        return None, set()
    fine = tag("p", mark("fine"), NOTHING_NOTABLE, class_="verdict fine")
    if not parts:
        return fine, set()
    shown = [(part.peak, part.details) for part in parts]
    return join([fine, tag("p", looked_for(shown, moment=context.is_moment))]), set()


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
        if most >= limits.LEAST_OP * peak.peak_bytes > 0:
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
