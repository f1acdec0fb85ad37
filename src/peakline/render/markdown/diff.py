"""What changed between two profiles in Markdown, fit for a pull request."""

from __future__ import annotations

from peakline.compare.comparison import Comparison, ProfileState
from peakline.compare.series import Series
from peakline.findings.finding import Finding
from peakline.render.document.diff import findings_of, memory_parts, time_part
from peakline.render.document.model import Table, capital
from peakline.render.document.program_diff import program_parts
from peakline.render.markdown.text import code, folded, markdown_table, table_lines

_ROWS = 8


def comparison_markdown(found: Comparison, series: Series | None = None) -> str:
    """The two profiles, their figures side by side, what changed behind them, and findings; of a
    ``series`` what grows over all of its profiles.

    The text ends with a line break and takes some kilobytes, whatever the profiles' size.
    """
    lines = ["### What changed", ""]
    lines += [f"Before: {_profile(found.before)}. After: {_profile(found.after)}.", ""]
    if found.is_empty:
        return "\n".join([*lines, "Nothing changed."]) + "\n"
    parts, more = memory_parts(found)
    parts += program_parts(found.programs)
    parts += [] if found.time is None else [time_part(found.time)]
    rows = [
        (f"{one.label}{one.note}{where}", one.before, one.after, one.change)
        for part in parts
        for where in ["" if part.title == "time" else f", {code(part.title)}"]
        for one in part.changes
        if one.after
    ]
    if rows:
        lines += markdown_table(("", "Before", "After", "Change"), rows)
    else:
        lines.append("Neither memory nor time can be compared.")
    sides = (("before", found.before), ("after", found.after))
    notes = [f"{side}: {state.no_memory}" for side, state in sides if state.no_memory]
    notes += [
        note if part.title == "time" else f"{part.title}: {note}"
        for part in parts
        for note in part.notes
    ]
    notes += [more] if more else []
    lines += ["", *(f"- {code(note)}" for note in notes)] if notes else []
    for which in ("new", "worse"):
        for finding in findings_of(found, which):
            lines += _finding(which, finding)
    for finding in findings_of(found, "gone"):
        lines += ["", f"**Gone {finding.severity}**: {code(finding.title)}"]
    for part in parts:
        for table in part.tables:
            of = "" if part.title == "time" else f" of {part.title}"
            lines += _folded(f"{capital(table.title)}{of}", table)
    if series is not None:
        lines += ["", f"Over all {len(series.paths)} profiles:"]
        for finding in series.findings:
            lines += _finding("grows", finding)
        lines += [] if series.growing else ["", "Nothing grows from each to the next."]
    return "\n".join(lines) + "\n"


def _finding(which: str, finding: Finding) -> list[str]:
    title = f"**{capital(which)} {finding.severity}**: {code(finding.title)}"
    return ["", title, "", code(finding.suggestion)]


def _profile(state: ProfileState) -> str:
    facts = state.facts
    host = f" of {code(facts.host)}" if facts.host else ""
    return f"{code(facts.path)}{host}"


def _folded(title: str, table: Table) -> list[str]:
    """The first rows behind a title, closed until clicked."""
    hidden = max(len(table.rows) - _ROWS, 0) + int(table.rest[0] or 0 if table.rest else 0)
    more = ["", f"And {hidden} more."] if hidden else []
    return folded(title, [*table_lines(table, _ROWS), *more])
