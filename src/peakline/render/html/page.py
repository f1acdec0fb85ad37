"""The whole page: one HTML file that opens offline and says what memory did, and why.

Nothing in it is fetched. Its Content-Security-Policy forbids every connection and every script but
the two that it holds, which it names by their hashes; they are left out where nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import BinaryIO

from peakline.findings.catalogue import kinds
from peakline.findings.memory_answer import MemoryAnswer
from peakline.findings.step_names import labels_of
from peakline.render.document.profile import profile_text
from peakline.render.html import programs
from peakline.render.html.composition import composition
from peakline.render.html.context import Context, Part
from peakline.render.html.drawing import Drawings
from peakline.render.html.fit import fit
from peakline.render.html.html import Child, Markup, clip, code, join, script, script_hash, tag
from peakline.render.html.layout import buffers, churn, fragmentation, growth
from peakline.render.html.method import method, warnings
from peakline.render.html.over_time import memory_over_time
from peakline.render.html.savings import savings
from peakline.render.html.summary import findings, rank, summary
from peakline.render.html.tables import Tables
from peakline.render.html.values import named
from peakline.tables import Profile

MOST_ALLOCATORS = 8
"""So many allocators have a section of their own: those with findings, then the largest."""


def write_report(
    profile: Profile,
    file: BinaryIO,
    *,
    allocator: str | None = None,
    title: str | None = None,
    command: str | None = None,
    answer: MemoryAnswer | None = None,
) -> None:
    """Write the report of ``profile`` to ``file`` as UTF-8.

    ``allocator`` keeps one allocator, ``title`` heads the page (default: the profile's path),
    ``command`` is shown as what made it, ``answer`` is that of `answer_memory` where it is known.
    The same profile gives the same bytes. Raises NotFoundError for an unknown allocator,
    InputError when the profile cannot be read.
    """
    from peakline.findings.memory_answer import answer_memory
    from peakline.tables.profile_facts import is_moment

    if answer is None:
        answer = answer_memory(profile, allocator=allocator)
    context = Context(
        profile,
        answer,
        labels_of(profile.columns_or_empty("steps")),
        is_moment=not answer.nothing and is_moment(profile),
        tables=Tables(),
        drawings=Drawings(),
    )
    file.write(_page(context, title, command).encode())


def _page(context: Context, title: str | None, command: str | None) -> Markup:
    parts = _parts(context)
    alone = len(context.answer.allocators) == 1
    body: list[Child] = []
    names = [part.heading for part in parts]
    told = [(f"allocator-{place}", name) for place, name in enumerate(names, 1)]
    if context.answer.nothing:
        needed = programs.needs(context)
        body += [_nothing(context, has_programs=needed is not None), needed]
    else:
        body += [summary(context, parts), findings(context), programs.failures(context)]
        body += [
            _allocator(part, name, alone=alone) for part, (name, _) in zip(parts, told, strict=True)
        ]
        body.append(_left_out(context, parts))
        body.append(warnings(context))
    body.append(method(context, parts, command))
    heading = clip(title or PurePath(context.profile.path).name or context.profile.path, 300)
    contents = None if context.answer.nothing else _contents(context, told, alone=alone)
    drawn = bool(context.drawings.data)
    scripts = [_asset("plotly"), _asset("report.js")] if drawn else []
    return join(
        [
            Markup("<!DOCTYPE html>\n"),
            tag(
                "html",
                _head(heading, scripts),
                tag(
                    "body",
                    tag("a", "Skip to the report", href="#main", class_="skip"),
                    _header(context, heading),
                    contents,
                    tag("main", *body, id="main"),
                    tag("footer", tag("p", "Made by Peakline; it needs no network.")),
                    *context.drawings.data,
                    *(script(code) for code in scripts),
                ),
                lang="en",
            ),
            "\n",
        ]
    )


def _head(heading: str, scripts: Sequence[str]) -> Markup:
    allowed = " ".join(script_hash(code) for code in scripts) or "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"Memory report: {heading}"),
        Markup(f"<style>{_asset('style.css')}</style>"),
    )


def _header(context: Context, heading: str) -> Markup:
    profile = context.profile
    facts = clip(profile_text(profile, moment=context.is_moment), 200)
    return tag(
        "header",
        tag("p", "Memory report", class_="kind"),
        tag("h1", heading),
        tag("p", code(profile.path, 1000), ", ", facts, class_="of"),
    )


def _contents(context: Context, parts: Sequence[tuple[str, str]], *, alone: bool) -> Markup:
    """Where to find what."""
    entries = [("summary", "Summary")]
    if context.answer.findings:
        entries.append(("findings", "Findings"))
    entries += [("allocator-1", "Memory")] if alone else parts
    if context.profile.warnings:
        entries.append(("warnings", "Warnings"))
    entries.append(("method", "How these numbers were made"))
    links = (tag("li", tag("a", title, href=f"#{name}")) for name, title in entries)
    return tag("nav", tag("ul", *links), aria_label="Contents")


def _parts(context: Context) -> list[Part]:
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


def _allocator(part: Part, name: str, *, alone: bool) -> Markup:
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
    told = [
        tag("section", tag("h3", title), content)
        for title, content in sections
        if content is not None
    ]
    if not told:
        told = [
            tag("p", "The records of this allocator have no ids, so no buffer can be followed.")
        ]
    return tag(
        "section",
        tag("h2", heading, id=name),
        same,
        *told,
        class_="allocator",
        aria_labelledby=name,
    )


def _left_out(context: Context, parts: Sequence[Part]) -> Markup | None:
    more = len(context.answer.allocators) - sum(len(part.allocators) for part in parts)
    if more <= 0 or not parts:
        return None
    return tag(
        "p",
        f"{more:,} more allocators, with less in memory and no graver findings, have no section "
        "here; --allocator makes a report of one.",
    )


def _nothing(context: Context, *, has_programs: bool) -> Markup:
    tables = [name for name in context.profile.tables if name != "warnings"]
    held = [name for name in tables if context.profile.has_rows(name)]
    words = "There is nothing about memory in this profile."
    if has_programs:
        words = (
            "There are no records of memory in this profile; its compiled programs say what they "
            "need."
        )
    verdict = tag("p", words, class_="verdict")
    has: Child = None
    if held:
        has = tag("p", "It has these tables: ", join((code(name) for name in held), ", "), ".")
    return tag(
        "section",
        tag("h2", "Summary", id="summary"),
        verdict,
        has,
        tag(
            "p",
            "What records memory: a profile of TensorFlow, of JAX on a GPU or of PyTorch with "
            "profile_memory=True, a memory snapshot of PyTorch, a memory log, RunMetadata.",
        ),
        aria_labelledby="summary",
    )


@cache
def _asset(name: str) -> str:
    """The text of a file of this package, or Plotly's own script."""
    if name == "plotly":
        from plotly.offline import get_plotlyjs

        plotly: str = get_plotlyjs()
        return plotly
    return files("peakline.render.html").joinpath(name).read_text(encoding="utf-8")
