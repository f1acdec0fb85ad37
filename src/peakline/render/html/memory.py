"""What a report says of memory: a section per allocator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from peakline.document import details as detailed
from peakline.document import limits
from peakline.document import memory as said
from peakline.document.composition import by_op_table, composition_sentence, meanings, scopes_table
from peakline.document.fit import alternatives_table, fit_facts
from peakline.document.live import LiveRow, category_table, live_rows
from peakline.document.model import capital
from peakline.document.wording import MEMORY_SECTIONS
from peakline.findings.catalogue import kinds
from peakline.memory.fit.answer import quick_fit
from peakline.memory.fit.model import Fit
from peakline.memory.savings.answer import Saving
from peakline.render.html import programs
from peakline.render.html.context import Context, Part
from peakline.render.html.findings import rank
from peakline.render.html.html import Child, Markup, clip, code, join, tag
from peakline.render.html.tables import named


def parts_of(context: Context) -> list[Part]:
    """The allocators that have a section: those with findings first, then the largest."""
    answer = context.answer
    if answer.history is None:
        return []
    sections: dict[str, set[str]] = {}
    gravest: dict[str, int] = {}
    for finding in answer.findings:
        name = str(finding.evidence.get("allocator") or "")
        sections.setdefault(name, set()).add(kinds()[finding.kind].section)
        gravest[name] = min(gravest.get(name, 9), rank(finding.severity))
    result = [
        Part(
            context,
            peak,
            details,
            answer.history,
            answer.history.lifetimes.allocators.index(peak.allocator),
            frozenset(sections.get(peak.allocator, ())),
        )
        for peak, details in zip(answer.allocators, answer.details, strict=True)
    ]
    result.sort(
        key=lambda part: (
            gravest.get(part.peak.allocator, 9),
            -part.peak.peak_bytes,
            part.peak.allocator,
        )
    )
    return _together(result)[: limits.ALLOCATORS.report]


def _together(parts: Sequence[Part]) -> list[Part]:
    """The parts, those without findings that have the same peak made of the same put together.

    Four chips that run one program would else be shown four times.
    """
    result: dict[object, list[Part]] = {}
    for place, part in enumerate(parts):
        peak = part.peak
        made = sorted(
            (one.op, one.region_type, one.data_type, one.shape, one.bytes, one.count)
            for one in peak.peak_buffers
        )
        key = (peak.peak_bytes, peak.capacity_bytes, peak.fragmentation_at_peak, tuple(made))
        is_own = part.sections or not peak.peak_bytes
        result.setdefault(place if is_own else key, []).append(part)
    return [
        replace(alike[0], alike=tuple(part.peak.allocator for part in alike[1:]))
        for alike in result.values()
    ]


def section_of(part: Part, name: str, *, alone: bool) -> Markup:
    """The section of an allocator, or of several that are alike, under the id ``name``."""
    moment = part.context.is_moment
    heading: Child = "Memory"
    if not alone:
        names = join((code(named(one)) for one in part.allocators), ", ")
        heading = join(["Allocators " if part.alike else "Allocator ", names])
    same = None
    if part.alike:
        same = tag(
            "p",
            "They have the same peak, made of the same, and are shown once; times and usage are "
            "those of ",
            code(named(part.peak.allocator)),
            ".",
        )
    sections = {
        "savings": savings(part),
        "fit": fit(part),
        "over_time": memory_over_time(part),
        "moment" if moment else "peak": composition(part),
        "program": programs.at_peak(part),
        "buffers": buffers(part),
        "growth": growth(part),
        "fragmentation": fragmentation(part),
        "churn": churn(part),
    }
    shown = [
        tag("section", tag("h3", MEMORY_SECTIONS[name]), content)
        for name, content in sections.items()
        if content is not None
    ]
    if not shown:
        shown = [
            tag("p", "The records of this allocator have no ids, so no buffer can be followed.")
        ]
    return tag(
        "section",
        tag("h2", heading, id=name),
        same,
        *shown,
        class_="allocator",
        aria_labelledby=name,
    )


def left_out(context: Context, parts: Sequence[Part]) -> Markup | None:
    """How many allocators have no section; nothing where all have one."""
    more = len(context.answer.allocators) - sum(len(part.allocators) for part in parts)
    if more <= 0 or not parts:
        return None
    return tag(
        "p",
        f"{more:,} more allocators, with less in memory and no graver findings, have no section "
        "here; --allocator makes a report of one.",
    )


def composition(part: Part) -> Markup | None:
    """The icicle, the scopes and the ops of the peak; nothing for an empty one."""
    peak, context = part.peak, part.context
    if not peak.peak_buffers:
        return None
    rows = live_rows(peak.peak_buffers, context.labels)
    shown: list[Child] = [tag("p", composition_sentence(rows, peak.peak_bytes)), _meanings(rows)]
    scopes = scopes_table(rows, peak.peak_bytes)
    equivalent = context.tables.write(scopes) if scopes.rows else None
    where = "memory" if context.is_moment else "the peak"
    if len({row.what[0] for row in rows}) > 1:
        title = f"Composition of {where} by {'scope' if scopes.rows else 'op'}"
        shown.append(part.figure("peak_icicle", title, equivalent))
    elif equivalent:
        shown.append(equivalent)
    categories = category_table(peak)
    if categories.rows:
        shown.append(context.tables.write(categories))
    table, whole = by_op_table(rows, peak.peak_bytes, moment=context.is_moment)
    return join([*shown, context.tables.write(table, foot=whole)])


def _meanings(rows: list[LiveRow]) -> Markup | None:
    items = [tag("li", code(name), f": {meaning}.") for name, meaning in meanings(rows)]
    return tag("ul", *items, class_="notes") if items else None


def _shown(
    part: Part, detail: detailed.Detail | None, beside: Markup | None = None
) -> Markup | None:
    """A detail: its sentence, what stands ``beside`` it, its figure; nothing without one."""
    if detail is None:
        return None
    words = tag("p", clip(detail.words, 900)) if detail.words else None
    table = None if detail.table is None else part.context.tables.write(detail.table)
    if not detail.figure:
        return words
    drawn = part.figure(detail.figure, detail.title, table)
    return join([words, beside, drawn])


def memory_over_time(part: Part) -> Markup | None:
    """The figure of memory over time; nothing where all records are of one moment."""
    if part.context.is_moment:
        return None
    history, growth = part.history, part.details.growth
    detail = detailed.memory_over_time(part.peak, history, part.number, growth)
    return _shown(part, detail, None if detail is None else _near(part))


def _near(part: Part) -> Markup | None:
    """How often memory comes near the peak, and of what it is then."""
    peaks = part.context.answer.allocators
    near = detailed.near_peak(peaks, part.peak, part.history, part.number)
    if near is None:
        return None
    if near.is_list:
        items = (tag("li", text, code(op) if op else None) for text, op in near.of)
        return join([tag("p", near.words), tag("ul", *items)])
    parts = [one for text, op in near.of for one in (text, code(op), ".")]
    return tag("p", near.words, *parts)


def buffers(part: Part) -> Markup | None:
    """The largest buffers, from when to when each lived."""
    if part.context.is_moment:
        return None
    return _shown(part, detailed.largest_buffers(part.history, part.number))


def growth(part: Part) -> Markup | None:
    """What the steps leave: a sentence for a steady job, else the figure and what grew."""
    result = part.details.growth
    if result is None:
        return None
    is_finding = "growth" in part.sections
    return _shown(part, detailed.growth(result, part.context.labels, is_finding=is_finding))


def fragmentation(part: Part) -> Markup | None:
    """Free memory in pieces: a sentence where it did no harm, else the figure and the pieces."""
    result, moment = part.details.fragmentation, part.context.is_moment
    is_finding = "fragmentation" in part.sections
    return _shown(
        part, detailed.fragmentation(result, part.peak, moment=moment, is_finding=is_finding)
    )


def churn(part: Part) -> Markup | None:
    """What is allocated and freed within a step: a sentence, and a table where it is a finding."""
    if part.context.is_moment:
        return None
    is_finding = "churn" in part.sections
    return _shown(
        part, detailed.churn(part.details.churn, part.context.labels, is_finding=is_finding)
    )


def savings(part: Part) -> Markup | None:
    """The savings, most bytes first; nothing where there is none.

    Fragmentation costs memory of the pool, not of the peak: it stands apart from the others.
    """
    result = part.details.savings
    worth = said.worth_saving(result, part.peak)
    shown: list[Child] = []
    if worth:
        # What each kind takes, once.
        advice = {said.HOW[one.kind]: one.suggestion for one in worth}.items()
        items = (tag("div", tag("dt", capital(how)), tag("dd", what)) for how, what in advice)
        shown += [
            part.context.tables.write(said.savings_table(worth), head=3),
            tag("dl", *items, class_="advice-list"),
            _behind(part, worth, "the buffers at the peak behind these savings"),
        ]
    for one in result:
        if one.kind == "fragmentation":
            shown.append(tag("p", said.less_fragmentation(one)))
            if one.rows:
                shown.append(_behind(part, (one,), "the buffers between the free pieces"))
    return join(shown) if shown else None


def _behind(part: Part, result: Iterable[Saving], title: str) -> Markup:
    table = part.context.tables.write(said.behind_table(result, title))
    return tag("details", tag("summary", capital(title)), table, open=True)


def fit(part: Part) -> Markup | None:
    """What the replay says; nothing where the recording does not prove itself, unless memory is
    scarce.
    """
    result = _found(part)
    if result is None:
        return None
    tables = part.context.tables
    words = "By a replay of the recorded allocations (peakline fit)."
    shown = [tag("p", words), tables.facts("what the replay says", fit_facts(result))]
    if result.alternatives:
        shown.append(tables.write(alternatives_table(result).trimmed()))
    return join(shown)


def _found(part: Part) -> Fit | None:
    answer = part.context.answer
    scarce = [one for one in answer.fits if one.allocator == part.peak.allocator]
    if scarce:
        return scarce[0]
    if answer.step is not None:
        return None
    result = quick_fit(part.context.profile, part.history, part.number)
    return result if result is not None and result.proof.proved else None
