"""The outcome of a check, and the difference between two profiles, as a person reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from peakline.compare.comparison import Comparison
from peakline.compare.series import Series
from peakline.document.check import behind, checks_table, name_of, outcome
from peakline.document.diff import Part as Compared
from peakline.document.diff import facts_text, findings_of, memory_parts, time_part
from peakline.document.headline import diff_headline
from peakline.document.job import MOST_FINDINGS, headline
from peakline.document.job_diff import (
    job_diff_findings,
    job_diff_headline,
    job_diff_lines,
    job_diff_parts,
)
from peakline.document.job_members import Line
from peakline.document.model import Fact, more_text
from peakline.document.program_diff import program_parts
from peakline.document.wording import ALL_IN_JSON
from peakline.findings.finding import Finding
from peakline.jobs.compared import JobDiff
from peakline.render.terminal.job import job_line
from peakline.render.terminal.screen import (
    Shown,
    Text,
    drawn,
    drawn_facts,
    grid_of,
    in_order,
    indented,
    severity_style,
    show,
)
from peakline.render.terminal.table import Labelled

if TYPE_CHECKING:
    from peakline.check.verdict import Check


_STYLES = {"fail": "bold red", "not compared": "yellow"}


def print_checks(
    about: str,
    checks: Sequence[Check],
    names: Mapping[str, str],
    baseline: str | None,
    origin: str = "",
    lines: Sequence[Line] = (),
) -> None:
    """Print every check, then why each that failed did, and what is behind it; ``about`` is which
    profile or job it is, ``lines`` what is said of that, ``origin`` where the limits came from.
    """
    against = "" if baseline is None else f", baseline {baseline}"
    style = "bold" if all(check.passed for check in checks) else "bold red"
    parts: list[Shown] = [Text(outcome(checks), style), Text(f"{about}{against}", "dim", 2)]
    parts += [Text(origin, "dim", 2)] if origin else []
    parts += ["", Labelled(lines)] if lines else []
    if checks:
        parts += ["", grid_of(checks_table(checks, names), styles=_STYLES)]
    for check in checks:
        if check.verdict != "pass":
            style = "bold" if check.passed else "bold red"
            line = f"{check.verdict}: {name_of(check, names)}: {check.name}: {check.reason}"
            parts += ["", Text(line, style, 2)]
            parts += [drawn(behind(check).trimmed())] if check.rows else []
    show(parts)


_LEAST = ("module", "category", "region", "type", "before")
"""What a narrow screen does without, before it leaves out what happened to a row."""


def print_diff(result: Comparison, series: Series | None = None) -> None:
    """Print, per allocator, the figures of both profiles and why they differ; then time.

    Of a ``series`` what grows over all of its profiles comes last.
    """
    sides = (("before", result.before), ("after", result.after))
    memory, more = memory_parts(result)
    programs = list(program_parts(result.programs))
    time = None if result.time is None else time_part(result.time)
    parts: list[Shown] = [Text(diff_headline(result, memory, programs, time), "bold", 2)]
    parts += [Text(f"{side:6}  {facts_text(state.facts)}", "dim", 8) for side, state in sides]
    for side, state in sides:
        if state.no_memory:
            parts += ["", Text(f"{side}: {state.no_memory}")]
    if not result.is_empty:
        for part in memory:
            parts += _part(part)
        parts += ["", Text(more)] if more else []
        for part in programs:
            parts += _part(part)
        parts += [] if time is None else _part(time)
        for which in ("new", "worse", "gone"):
            for finding in findings_of(result, which):
                parts += _finding(which, finding, with_advice=which != "gone")
    if series is not None:
        parts += ["", Text(f"over all {len(series.paths)} profiles", "bold")]
        if not series.growing:
            parts.append(indented(Text("nothing grows from each to the next")))
        for finding in series.findings:
            parts += _finding("grows", finding, with_advice=True)
    show(parts)


def print_job_diff(diff: JobDiff, before: str, after: str) -> None:
    """Print what changed between two jobs, on one screen however many ranks they have."""
    parts: list[Shown] = [Text(job_diff_headline(diff), "bold", 2)]
    for side, path, answer in (("before", before, diff.before), ("after", after, diff.after)):
        job = job_line(answer.job, path)
        parts.append(Text(f"{side:6}  {job}: {headline(answer)}", "dim", 8))
    parts += [Text(line) for line in job_diff_lines(diff)]
    for part in job_diff_parts(diff):
        parts += _part(part)
    said = job_diff_findings(diff)
    for which in ("new", "gone"):
        for one in said[which][:MOST_FINDINGS]:
            parts += _shared(which, one)
        if more := more_text(len(said[which]) - MOST_FINDINGS, f"{which} finding", ALL_IN_JSON):
            parts.append(Text(more))
    show(parts)


def _shared(which: str, finding: Mapping[str, Any]) -> Iterator[Shown]:
    yield ""
    title = f"{which}: {finding['severity']}: {finding['title']}"
    style = "bold" if which == "gone" else severity_style(str(finding["severity"]))
    yield Text(title, style, 2)
    if which != "gone":
        yield indented(Text(str(finding["suggestion"])))


def _finding(which: str, finding: Finding, *, with_advice: bool) -> Iterator[Shown]:
    yield ""
    title = f"{which}: {finding.severity}: {finding.title}"
    yield Text(title, "bold" if which == "gone" else severity_style(finding.severity), 2)
    if with_advice:
        yield indented(Text(finding.suggestion))


def _part(part: Compared) -> Iterator[Shown]:
    yield ""
    yield Text(part.title, "bold")
    if part.is_empty:
        yield indented(Text("nothing changed"))
    elif part.changes:
        yield drawn_facts(Fact(one.label, one.text) for one in part.changes)
    yield from (indented(Text(f"note: {note}")) for note in part.notes)
    if part.is_empty:
        return
    for table in part.tables:
        yield ""
        yield indented(Text(table.title))
        of_time = part.title == "time"
        yield in_order(table.trimmed()) if of_time else drawn(table.trimmed(), least=_LEAST)
        if table.rest:
            count, *size = table.rest
            more = "".join(f", {one}" for one in size)
            what = "op" if of_time else "row"
            yield indented(Text(more_text(int(count or 0), what, f"{more}{ALL_IN_JSON}")))
