"""The whole page: one HTML file that opens offline and says what memory and time did, and why.

Nothing in it is fetched and no script runs: its Content-Security-Policy forbids both. The last
sections, graphs and how the numbers were made, stand here too.
"""

from __future__ import annotations

import platform
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import PurePath
from typing import BinaryIO

from peakline.document import limits
from peakline.document.graph import (
    UNNAMED,
    contents_tables,
    depth_of,
    graph_facts,
    graphs_table,
    scopes_table,
)
from peakline.document.model import Fact, Table, capital, columns_of, rest_text
from peakline.document.ops import printed_tables
from peakline.document.profile import profile_text
from peakline.findings.memory_answer import NOTHING, MemoryAnswer, answer_memory
from peakline.findings.time_answer import NO_STEPS, answer_time
from peakline.graph.scopes.graphs import default_graph, scoped_graph
from peakline.graph.summary import summarize_graphs
from peakline.jobs.answer import JobAnswer
from peakline.render.html import job, programs
from peakline.render.html.context import Context, Drawings, Part
from peakline.render.html.findings import findings, in_order
from peakline.render.html.html import Child, Markup, clip, code, join, tag
from peakline.render.html.memory import left_out, parts_of, section_of
from peakline.render.html.summary import summary
from peakline.render.html.svg.paint import patterns, rules
from peakline.render.html.tables import Tables
from peakline.render.html.time import steps, time
from peakline.tables import Profile
from peakline.tables.profile_facts import is_moment
from peakline.text import counted, time_text
from peakline.trace.steps import labels_of


def printed(context: Context) -> Markup | None:
    """The tables of times that a profiler printed; nothing without one."""
    tables = printed_tables(context.profile, limits.OPS.report)
    if not tables:
        return None
    title = tag("h2", "Printed times", id="printed")
    shown = [_rows(context, one, "line") for one in tables.values()]
    return tag("section", title, *shown, aria_labelledby="printed")


def graphs(context: Context) -> Markup | None:
    """The graphs of the profile; nothing without one."""
    profile = context.profile
    name = default_graph(profile)
    if name is None:
        return None
    summary = summarize_graphs(profile)
    facts = [] if name.kind == "hlo" else graph_facts(summary)
    shown: list[Child] = [context.tables.facts("what the graphs hold", facts) if facts else None]
    if len(summary.graphs) > 1 and name.kind != "hlo":
        shown.append(_rows(context, graphs_table(summary.graphs, limits.GRAPHS.report), "graph"))
    shown.append(_scopes(context))
    if name.kind != "hlo":
        shown += [
            _rows(context, one, "kind") for one in contents_tables(summary, limits.NODES.report)
        ]
    several = "s" if len(summary.graphs) > 1 else ""
    title = tag("h2", f"Graph{several}", id="graphs")
    return tag("section", title, *shown, aria_labelledby="graphs")


def _scopes(context: Context) -> Markup:
    """The graph that the page shows first: its size, its depth and its largest scopes."""
    graph = scoped_graph(context.profile)
    table = scopes_table(graph)
    what = "instruction" if graph.program is not None else "node"
    facts = [
        Fact(
            "shown", graph.graph or UNNAMED, "name", f", {graph.function}" if graph.function else ""
        ),
        Fact(f"{what}s", graph.nodes, "count"),
        Fact("depth", counted(depth_of(graph), "scope")),
    ]
    if graph.measures.has_time and graph.measures.step is not None:
        facts.append(Fact("times are of", f"step {graph.measures.step}"))
    shown: list[Child] = [
        context.tables.facts("the graph that takes most time, or is largest", facts)
    ]
    if table.rows:
        shown.append(_rows(context, replace(table, title=clip(table.title, 300)), "scope"))
    return join(shown)


def _rows(context: Context, table: Table, what: str) -> Markup:
    rest = tag("p", f"{capital(rest_text(table, what, 'node'))}.") if table.rest else None
    return join([context.tables.write(replace(table, rest=())), rest])


def warnings(context: Context) -> Markup | None:
    """What the reading and the analyses lost, skipped or guessed."""
    # The summary says what the profile has nothing about.
    result = [one for one in context.profile.warnings if one.kind not in {NOTHING, NO_STEPS}]
    if not result:
        return None
    columns = columns_of(kind="name", times="count", what_it_means="")
    rows = [(one.kind, one.count, one.detail) for one in result]
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
    if answer is None:
        answer = answer_memory(profile, allocator=allocator)
    context = Context(
        profile,
        answer,
        answer_time(profile),
        labels_of(profile.columns_or_empty("steps")),
        is_moment=not answer.nothing and is_moment(profile),
        tables=Tables(),
        drawings=Drawings(),
    )
    file.write(_page(context, title, command).encode())


def write_job_report(
    answer: JobAnswer,
    file: BinaryIO,
    path: str,
    *,
    title: str | None = None,
    command: str | None = None,
) -> None:
    """Write the report of a job of many ranks to ``file`` as UTF-8; ``path`` is where its profiles
    are, the others are as those of `write_report`. The same job gives the same bytes. Raises
    OSError where ``file`` cannot be written.
    """
    heading = clip(title or PurePath(path).name or path, 300)
    sections = job.sections(answer, path, command)
    forms = ", ".join(dict.fromkeys(one.format for one in answer.job.profiles))
    of = f", {counted(len(answer.job.firsts), 'rank')}, {forms}"
    header = _header("Job report", heading, code(path, 1000), of)
    entries = [(name, title) for name, title, _ in sections]
    body = [part for _, _, part in sections]
    file.write(_document("Job report", heading, header, entries, body).encode())


def _page(context: Context, title: str | None, command: str | None) -> Markup:
    parts = parts_of(context)
    alone = len(context.answer.allocators) == 1
    places = ["memory" if alone else f"allocator-{place}" for place in range(1, len(parts) + 1)]
    # What is drawn first has room for sure.
    memory = [
        section_of(part, place, alone=alone) for part, place in zip(parts, places, strict=True)
    ]
    others = [
        ("time", "Time", time(context)),
        ("steps", "Steps", steps(context)),
        ("printed", "Printed times", printed(context)),
        ("programs", "Programs", programs.compiled(context)),
        ("graphs", "Graphs", graphs(context)),
        ("warnings", "Warnings", warnings(context)),
    ]
    context.sections.update({*places, *(name for name, _, part in others if part is not None)})
    body: list[Child] = [summary(context, parts), findings(context), programs.failures(context)]
    body += memory
    body.append(left_out(context, parts))
    body += [part for _, _, part in others]
    body.append(method(context, parts, command))
    entries = [("summary", "Summary")]
    entries += [("findings", "Findings")] if in_order(context) else []
    names = ["Memory"] if alone else [part.heading for part in parts]
    entries += zip(places, names[: len(parts)], strict=True)
    entries += [(name, title) for name, title, part in others if part is not None]
    entries.append(("method", "How these numbers were made"))
    heading = clip(title or PurePath(context.profile.path).name or context.profile.path, 300)
    profile = context.profile
    facts = clip(profile_text(profile, moment=context.is_moment), 200)
    header = _header("Profile report", heading, code(profile.path, 1000), f", {facts}")
    return _document("Profile report", heading, header, entries, body)


def _document(
    kind: str,
    heading: str,
    header: Markup,
    entries: Sequence[tuple[str, str]],
    body: Sequence[Child],
) -> Markup:
    return join(
        [
            Markup("<!DOCTYPE html>\n"),
            tag(
                "html",
                _head(f"{kind}: {heading}"),
                tag(
                    "body",
                    tag("a", "Skip to the report", href="#main", class_="skip"),
                    header,
                    _contents(entries),
                    patterns(),
                    tag("main", *body, id="main"),
                    tag(
                        "footer",
                        tag("p", "Made by Peakline; it needs no network and runs no script."),
                    ),
                ),
                lang="en",
            ),
            "\n",
        ]
    )


def _head(heading: str) -> Markup:
    style = _style()
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", heading),
        Markup(f"<style>{style}</style>"),
    )


def _header(kind: str, heading: str, *of: Child) -> Markup:
    return tag(
        "header", tag("p", kind, class_="kind"), tag("h1", heading), tag("p", *of, class_="of")
    )


def _contents(entries: Sequence[tuple[str, str]]) -> Markup:
    """Where to find what."""
    links = (tag("li", tag("a", title, href=f"#{name}")) for name, title in entries)
    return tag("nav", tag("ul", *links), aria_label="Contents")


@cache
def _style() -> str:
    """The stylesheet, with the colours of figures for light pages, dark ones and paper."""
    sheet = files("peakline.render.html").joinpath("style.css").read_text(encoding="utf-8")
    light, dark = rules(dark=False), rules(dark=True)
    return (
        f"{sheet}:root{{{light}}}"
        f"@media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"
    )
