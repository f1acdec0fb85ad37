"""The outcome of a check in Markdown, fit for a pull request or a job's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from peakline.check.verdict import Check
from peakline.compare.state import MemoryState
from peakline.render.document.check import behind, checks_table, largest, name_of, outcome
from peakline.render.document.model import Column, capital
from peakline.render.markdown.text import code, folded, table_lines
from peakline.text import size_text

_SIGNS = {"pass": "✅", "fail": "❌", "not compared": "⚪"}


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
            title = f"{capital(table.title)} of {size_text(one.peak_bytes)}, {name}"
            lines += folded(title, table_lines(table))
    return "\n".join(lines) + "\n"


def _subject(checks: Sequence[Check]) -> str:
    """What was checked."""
    found = {check.is_of_time for check in checks}
    return (
        " and ".join(
            name for is_time, name in ((False, "Memory"), (True, "Time")) if is_time in found
        ).capitalize()
        or "Memory"
    )
