"""What a report says of memory: a section per allocator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from peakline.findings.catalogue import kinds
from peakline.render.html import programs
from peakline.render.html.composition import composition
from peakline.render.html.context import Context, Part
from peakline.render.html.findings import rank
from peakline.render.html.fit import fit
from peakline.render.html.html import Child, Markup, code, join, tag
from peakline.render.html.layout import buffers, churn, fragmentation, growth
from peakline.render.html.over_time import memory_over_time
from peakline.render.html.savings import savings
from peakline.render.html.values import named

MOST_ALLOCATORS = 8
"""So many allocators have a section of their own: those with findings, then the largest."""


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
    found = [
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
    found.sort(
        key=lambda part: (
            gravest.get(part.peak.allocator, 9),
            -part.peak.peak_bytes,
            part.peak.allocator,
        )
    )
    return _together(found)[:MOST_ALLOCATORS]


def _together(parts: Sequence[Part]) -> list[Part]:
    """The parts, those without findings that have the same peak made of the same put together.

    Four chips that run one program would else be shown four times.
    """
    found: dict[object, list[Part]] = {}
    for place, part in enumerate(parts):
        peak = part.peak
        made = sorted(
            (one.op, one.region_type, one.data_type, one.shape, one.bytes, one.count)
            for one in peak.peak_buffers
        )
        key = (peak.peak_bytes, peak.capacity_bytes, peak.fragmentation_at_peak, tuple(made))
        is_own = part.sections or not peak.peak_bytes
        found.setdefault(place if is_own else key, []).append(part)
    return [
        replace(alike[0], alike=tuple(part.peak.allocator for part in alike[1:]))
        for alike in found.values()
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
    sections = (
        ("What would need less memory", savings(part)),
        ("In how much memory it runs", fit(part)),
        ("Memory over time", memory_over_time(part)),
        ("What is in memory" if moment else "What the peak is made of", composition(part)),
        ("The program at the peak", programs.at_peak(part)),
        ("The largest buffers", buffers(part)),
        ("Growth from step to step", growth(part)),
        ("Fragmentation", fragmentation(part)),
        ("What comes and goes", churn(part)),
    )
    shown = [
        tag("section", tag("h3", title), content)
        for title, content in sections
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
