"""What a notebook shows of answers: of a tool, a comparison, limits that were held, and a fit.

Of a tool's answer it shows the first rows of its table, else how it begins.
"""

from __future__ import annotations

from peakline.check.verdict import Check, Checks
from peakline.compare.comparison import Comparison
from peakline.document import limits
from peakline.document.check import behind, checks_table, outcome
from peakline.document.diff import Part, facts_text, findings_of, memory_parts, time_part
from peakline.document.fit import (
    NOTHING_TO_REPLAY,
    alternatives_table,
    batch_facts,
    fit_facts,
    fit_headline,
    no_fit_facts,
    pins_table,
)
from peakline.document.model import Fact, capital, more_text
from peakline.errors import PeaklineError
from peakline.memory.fit.model import Fit, Fits
from peakline.render.notebook.findings import listed_findings
from peakline.render.notebook.pieces import drawn, facts, headed, line, rows_table, shown
from peakline.shown import headline_of
from peakline.text import allocator_text
from peakline.toolbox.answer_rows import ToolAnswer

_BEGIN = 2000
_LARGE = 32 << 20
"""A longer answer is not parsed for a look at it."""


def answer_parts(answer: ToolAnswer) -> list[str]:
    """What `Profile.tool` and `Session.tool` return."""
    result = [headed("Answer", headline_of(answer))]
    notes = getattr(answer, "notes", ())
    result += [line(note) for note in notes[: limits.NOTES.notebook]]
    if len(answer.content) <= _LARGE and answer.format in {"json", "csv"}:
        try:
            rows = answer.to_arrow()
        except (PeaklineError, ValueError):
            rows = None
        if rows is not None and rows.num_columns:
            return [*result, *rows_table(rows)]
    text = answer.content[:_BEGIN].decode("utf-8", "replace")
    if "\x00" in text:
        return [*result, line("bytes, in content", quiet=True)]
    return [*result, line("it begins", quiet=True), f"<div>{shown(text, _BEGIN // 2)}</div>"]


def comparison_parts(result: Comparison) -> list[str]:
    """What `peakline.diff` returns."""
    of_memory, rest = memory_parts(result)
    parts = [line(f"before: {facts_text(result.before.facts)}")]
    parts.append(line(f"after: {facts_text(result.after.facts)}"))
    if result.is_empty:
        parts.append(line("Nothing changed."))
    sections = [
        *of_memory[: limits.PARTS.notebook],
        *([] if result.time is None else [time_part(result.time)]),
    ]
    for part in sections:
        parts += _part(part)
    left = len(of_memory) - limits.PARTS.notebook
    parts += [line(text, quiet=True) for text in (more_text(left, "allocator"), rest) if text]
    for which in ("new", "worse", "gone"):
        parts.append(listed_findings(findings_of(result, which), f"Findings: {which}", most=0))
    return parts


def _part(part: Part) -> list[str]:
    if part.is_empty:
        return [headed(part.title, "as before")]
    changes = [Fact(capital(one.label), one.text) for one in part.changes]
    notes = [line(note, quiet=True) for note in part.notes]
    return [headed(part.title), facts(changes), *notes, *map(drawn, part.tables)]


def check_parts(check: Check) -> list[str]:
    """One of the answers of `Profile.check`."""
    return [
        drawn(checks_table([check], {})),
        line(check.reason, quiet=True),
        drawn(behind(check).without_empty()),
    ]


def checks_parts(checks: Checks) -> list[str]:
    """The answer of `Profile.check`."""
    result = [line(outcome(checks)), drawn(checks_table(checks, {}), limits.CHECKS.notebook)]
    for one in [one for one in checks if not one.passed][: limits.BEHIND.notebook]:
        result += [line(one.reason, quiet=True), drawn(behind(one).without_empty())]
    return result


def fit_parts(fit: Fit) -> list[str]:
    """One of the answers of `Profile.fit`."""
    result = [headed(allocator_text(fit.allocator)), facts([*fit_facts(fit), *batch_facts(fit)])]
    if fit.alternatives:
        result.append(drawn(alternatives_table(fit).trimmed()))
    return [*result, drawn(pins_table(fit))]


def fits_parts(fits: Fits) -> list[str]:
    """The answer of `Profile.fit`."""
    if not fits and not fits.failed:
        return [line(NOTHING_TO_REPLAY)]
    result = [line(fit_headline(fits))] if fits else []
    for one in fits[: limits.FITS.notebook]:
        result += fit_parts(one)
    left = len(fits) - limits.FITS.notebook
    result.append(line(more_text(left, where=": to_pandas()"), quiet=True) if left > 0 else "")
    for fact in no_fit_facts(fits.failed[: limits.FITS.notebook]):
        result.append(line(f"{fact.label} {fact.text}"))
    return result
