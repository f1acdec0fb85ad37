"""What a notebook shows of the difference between two profiles."""

from __future__ import annotations

from peakline.compare.comparison import Comparison
from peakline.document import limits
from peakline.document.diff import (
    Part,
    facts_text,
    findings_of,
    memory_parts,
    time_part,
)
from peakline.document.model import Fact, capital, more_text
from peakline.render.notebook.finding import listed_findings
from peakline.render.notebook.pieces import drawn, facts, headed, line


def parts(found: Comparison) -> list[str]:
    """What `peakline.diff` returns."""
    of_memory, rest = memory_parts(found)
    shown = [line(f"before: {facts_text(found.before.facts)}")]
    shown.append(line(f"after: {facts_text(found.after.facts)}"))
    if found.is_empty:
        shown.append(line("Nothing changed."))
    sections = [
        *of_memory[: limits.PARTS.notebook],
        *([] if found.time is None else [time_part(found.time)]),
    ]
    for part in sections:
        shown += _part(part)
    left = len(of_memory) - limits.PARTS.notebook
    shown += [line(text, quiet=True) for text in (more_text(left, "allocator"), rest) if text]
    for which in ("new", "worse", "gone"):
        shown.append(listed_findings(findings_of(found, which), f"Findings: {which}", most=0))
    return shown


def _part(part: Part) -> list[str]:
    if part.is_empty:
        return [headed(part.title, "as before")]
    changes = [Fact(capital(one.label), one.text) for one in part.changes]
    notes = [line(note, quiet=True) for note in part.notes]
    return [headed(part.title), facts(changes), *notes, *map(drawn, part.tables)]
