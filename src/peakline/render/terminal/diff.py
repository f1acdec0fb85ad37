"""The difference between two profiles as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from peakline.compare.comparison import Comparison
from peakline.compare.hosts import HostsComparison
from peakline.compare.series import Series
from peakline.findings.finding import Finding
from peakline.render.document.diff import Part, facts_text, findings_of, memory_parts, time_part
from peakline.render.document.model import Fact
from peakline.render.document.program_diff import program_parts
from peakline.render.terminal.screen import drawn, drawn_facts, indented, show
from peakline.render.terminal.time_parts import fitted_table
from peakline.text import one_line


def print_diff(found: Comparison, series: Series | None = None) -> None:
    """Print, per allocator, the figures of both profiles and why they differ; then time.

    Of a ``series`` what grows over all of its profiles comes last.
    """
    sides = (("before", found.before), ("after", found.after))
    parts: list[RenderableType] = [
        Text(one_line(f"{side:6}  {facts_text(state.facts)}")) for side, state in sides
    ]
    for side, state in sides:
        if state.no_memory:
            parts += ["", Text(one_line(f"{side}: {state.no_memory}"))]
    if found.is_empty:
        parts += ["", Text("nothing changed", style="bold")]
    else:
        memory, more = memory_parts(found)
        for part in memory:
            parts += _part(part)
        parts += ["", Text(more)] if more else []
        for part in program_parts(found.programs):
            parts += _part(part)
        if found.time is not None:
            parts += _part(time_part(found.time))
        for which in ("new", "worse", "gone"):
            for finding in findings_of(found, which):
                parts += _finding(which, finding, with_advice=which != "gone")
    if series is not None:
        parts += ["", Text(f"over all {len(series.paths)} profiles", style="bold")]
        if not series.growing:
            parts.append(indented(Text("nothing grows from each to the next")))
        for finding in series.findings:
            parts += _finding("grows", finding, with_advice=True)
    show(parts)


def print_hosts_diff(found: HostsComparison) -> None:
    """Print the difference of each host, then which hosts keep the others waiting."""
    for place, (host, one) in enumerate(found.hosts.items()):
        show(([""] if place else []) + [Text(one_line(f"host {host}"), style="bold")])
        print_diff(one)
    parts: list[RenderableType] = []
    for side, hosts in (("before", found.only_before), ("after", found.only_after)):
        if hosts:
            parts += ["", Text(one_line(f"only {side}: {', '.join(hosts)}"))]
    for which in ("new", "worse", "gone"):
        for finding in found.findings(which):
            parts += _finding(which, finding, with_advice=which != "gone")
    show(parts)


def _finding(which: str, finding: Finding, *, with_advice: bool) -> Iterator[RenderableType]:
    yield ""
    yield Text(one_line(f"{which}: {finding.severity}: {finding.title}"), style="bold yellow")
    if with_advice:
        yield indented(Text(one_line(finding.suggestion)))


def _part(part: Part) -> Iterator[RenderableType]:
    yield ""
    yield Text(one_line(part.title), style="bold")
    if part.is_empty:
        yield indented(Text("nothing changed"))
    elif part.changes:
        yield drawn_facts(Fact(one.label, one.text) for one in part.changes)
    yield from (indented(Text(one_line(f"note: {note}"))) for note in part.notes)
    if part.is_empty:
        return
    for table in part.tables:
        yield ""
        yield indented(Text(table.title))
        yield (fitted_table if part.title == "time" else drawn)(table.trimmed())
        if table.rest:
            count, *size = table.rest
            more = "".join(f", {one}" for one in size)
            things = "ops" if part.title == "time" else "rows"
            yield indented(Text(f"and {count} more {things}{more} (all with --json)"))
