"""What changed, and the outcome of a check, in Markdown: fit for a pull request or a job's page.

Names come from files that anyone may have written: they are shown as code, where neither Markdown
nor a mention of a person is obeyed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from peakline.check.verdict import Check
from peakline.compare.comparison import Comparison, ProfileState
from peakline.compare.series import Series
from peakline.compare.state import MemoryState
from peakline.document.check import behind, checks_table, largest, name_of, outcome
from peakline.document.diff import Part, findings_of, memory_parts, time_part
from peakline.document.job import headline
from peakline.document.job_diff import (
    job_diff_findings,
    job_diff_headline,
    job_diff_lines,
    job_diff_parts,
)
from peakline.document.model import Column, Row, Table, capital, text_of
from peakline.document.program_diff import program_parts
from peakline.findings.finding import Finding
from peakline.jobs.compared import JobDiff
from peakline.safe_text import markdown_code as code
from peakline.safe_text import markdown_text as html
from peakline.text import counted, size_text

_SIGNS = {"pass": "✅", "fail": "❌", "not compared": "⚪"}
_ROWS = 8


def comparison_markdown(result: Comparison, series: Series | None = None) -> str:
    """The two profiles, their figures side by side, what changed behind them, and findings; of a
    ``series`` what grows over all of its profiles.

    The text ends with a line break and takes some kilobytes, whatever the profiles' size.
    """
    lines = ["### What changed", ""]
    lines += [f"Before: {_profile(result.before)}. After: {_profile(result.after)}.", ""]
    if result.is_empty:
        return "\n".join([*lines, "Nothing changed."]) + "\n"
    parts, more = memory_parts(result)
    parts += program_parts(result.programs)
    parts += [] if result.time is None else [time_part(result.time)]
    lines += _figures(parts) or ["Neither memory nor time can be compared."]
    sides = (("before", result.before), ("after", result.after))
    notes = [f"{side}: {state.no_memory}" for side, state in sides if state.no_memory]
    notes += _notes(parts)
    notes += [more] if more else []
    lines += ["", *(f"- {code(note)}" for note in notes)] if notes else []
    for which in ("new", "worse"):
        for finding in findings_of(result, which):
            lines += _finding(which, finding)
    for finding in findings_of(result, "gone"):
        lines += ["", f"**Gone {finding.severity}**: {code(finding.title)}"]
    lines += _behind(parts)
    if series is not None:
        lines += ["", f"Over all {len(series.paths)} profiles:"]
        for finding in series.findings:
            lines += _finding("grows", finding)
        lines += [] if series.growing else ["", "Nothing grows from each to the next."]
    return "\n".join(lines) + "\n"


def job_diff_markdown(diff: JobDiff, before: str, after: str) -> str:
    """Two jobs, ``before`` and ``after`` their paths, as `comparison_markdown` has two profiles."""
    lines = ["### What changed", "", f"{capital(code(job_diff_headline(diff)))}", ""]
    for side, path, answer in (("Before", before, diff.before), ("After", after, diff.after)):
        ranks = counted(len(answer.job.firsts), "rank")
        lines.append(f"- {side}: {code(path)}, job of {ranks}: {code(headline(answer))}")
    lines += [f"- {code(line)}" for line in job_diff_lines(diff)]
    parts = job_diff_parts(diff)
    lines += ["", *_figures(parts)]
    notes = _notes(parts)
    lines += ["", *(f"- {code(note)}" for note in notes)] if notes else []
    said = job_diff_findings(diff)
    for one in said["new"]:
        title = f"**New {one['severity']}**: {code(str(one['title']))}"
        lines += ["", title, "", code(str(one["suggestion"]))]
    for one in said["gone"]:
        lines += ["", f"**Gone {one['severity']}**: {code(str(one['title']))}"]
    return "\n".join([*lines, *_behind(parts)]) + "\n"


def _figures(parts: Sequence[Part]) -> list[str]:
    rows = [
        (f"{one.label}{one.note}{where}", one.before, one.after, one.change)
        for part in parts
        for where in ["" if part.title == "time" else f", {code(part.title)}"]
        for one in part.changes
        if one.after
    ]
    return markdown_table(("", "Before", "After", "Change"), rows) if rows else []


def _notes(parts: Sequence[Part]) -> list[str]:
    return [
        note if part.title == "time" else f"{part.title}: {note}"
        for part in parts
        for note in part.notes
    ]


def _behind(parts: Sequence[Part]) -> list[str]:
    """The tables, each folded away."""
    return [
        line
        for part in parts
        for table in part.tables
        for name in ["" if part.title == "time" else part.title]
        for line in _folded(f"{capital(table.title)}{' of ' if name else ''}", name, table)
    ]


def _finding(which: str, finding: Finding) -> list[str]:
    title = f"**{capital(which)} {finding.severity}**: {code(finding.title)}"
    return ["", title, "", code(finding.suggestion)]


def _profile(state: ProfileState) -> str:
    facts = state.facts
    host = f" of {code(facts.host)}" if facts.host else ""
    return f"{code(facts.path)}{host}"


def _folded(title: str, name: str, table: Table) -> list[str]:
    """The first rows behind a title, closed until clicked."""
    hidden = max(len(table.rows) - _ROWS, 0) + int(table.rest[0] or 0 if table.rest else 0)
    more = ["", f"And {hidden} more."] if hidden else []
    return folded(title, name, [*table_lines(table, _ROWS), *more])


def summary_markdown(
    subject: str,
    checks: Sequence[Check],
    state: MemoryState,
    *,
    names: Mapping[str, str],
    baseline: str | None = None,
) -> str:
    """The outcome, the table of checks, why some failed, and what is largest at the peaks.

    ``subject`` names the profile, ``baseline`` the baseline where there is one; ``names`` are
    those of the allocators on screens. The text ends with a line break and takes a few kilobytes,
    whatever the profile's size.
    """
    failed = [check for check in checks if not check.passed]
    against = "" if baseline is None else f", against the baseline {code(baseline)}"
    lines = [
        f"### {_SIGNS['fail' if failed else 'pass']} {_subject(checks)}: {outcome(checks)}",
        "",
    ]
    lines += [f"Profile {code(subject)}{against}.", ""]
    table = checks_table(checks, names)
    rows = [(f"{_SIGNS[str(row[0])]} {row[0]}", *row[1:]) for row in table.rows]
    lines += table_lines(replace(table, columns=(Column(""), *table.columns[1:]), rows=rows))
    reasons = [
        f"- {code(name_of(check, names))}, {check.name}: {code(check.reason)}"
        for check in checks
        if check.verdict != "pass"
    ]
    lines += ["", *reasons] if reasons else []
    for check in failed:
        if check.rows:
            table = behind(check).trimmed()
            lines += ["", f"**{capital(table.title)}, {code(name_of(check, names))}**", ""]
            lines += table_lines(table)
    shown = {check.allocator for check in failed if check.name == "peak"}
    for one in state.allocators:
        if one.allocator not in shown and one.groups:
            table, name = largest(one), names.get(one.allocator, one.name)
            title = f"{capital(table.title)} of {size_text(one.peak_bytes)}, "
            lines += folded(title, name, table_lines(table))
    return "\n".join(lines) + "\n"


def _subject(checks: Sequence[Check]) -> str:
    """What was checked."""
    result = {check.is_of_time for check in checks}
    return (
        " and ".join(
            name for is_time, name in ((False, "Memory"), (True, "Time")) if is_time in result
        ).capitalize()
        or "Memory"
    )


def table_lines(table: Table, most: int | None = None) -> list[str]:
    """The first rows of a table of a document; its names are code."""

    def cells(row: Row) -> list[str]:
        texts = [text_of(value, one.unit) for value, one in zip(row, table.columns, strict=True)]
        return [
            code(text) if text and one.unit in {"name", "form", "remark"} else text
            for text, one in zip(texts, table.columns, strict=True)
        ]

    heads = [capital(one.label) for one in table.columns]
    right = [one.is_number for one in table.columns]
    return markdown_table(heads, map(cells, table.rows[:most]), right)


def folded(title: str, name: str, lines: Iterable[str]) -> list[str]:
    """Lines behind a title that ends in a name, which is code: else it may mention a person."""
    shown = html(title) + (f"<code>{html(name)}</code>" if name else "")
    head = ["", "<details>", f"<summary>{shown}</summary>", ""]
    return [*head, *lines, "", "</details>"]


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[bool] = ()
) -> list[str]:
    """A table; the columns of which ``right`` is true are aligned right."""
    marks = ["---:" if is_right else "---" for is_right in right] or ["---"] * len(columns)
    lines = [columns, marks, *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
