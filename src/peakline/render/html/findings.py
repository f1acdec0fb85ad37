"""What is wrong, as a report says it: each finding with what to do and the numbers behind it."""

from __future__ import annotations

from dataclasses import replace

from peakline.document.finding import evidence, time_tables
from peakline.document.model import capital
from peakline.findings.finding import SEVERITIES, Finding
from peakline.findings.ranking import Priority, priorities
from peakline.render.html.context import Context
from peakline.render.html.html import Markup, clip, code, tag
from peakline.render.html.tables import named

_WORDS = {"error": "Error", "warning": "Warning", "info": "For information"}
_MARKS = {
    "error": "M8 1 15 15H1ZM8 5.5v5M8 12v1.4",
    "warning": "M8 1 15 8 8 15 1 8ZM8 4.6v4.2M8 10.2v1.4",
    "info": "M8 1a7 7 0 1 0 .01 0ZM8 7v5M8 4v1.4",
    "fine": "M8 1a7 7 0 1 0 .01 0ZM4.6 8.2l2.4 2.4 4.4-5",
}
_LOWER = ("memory ", "without ", "the ")


def rank(severity: str) -> int:
    """0 for the gravest."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def in_order(context: Context) -> list[Priority]:
    """The findings of memory and of time, what is worth fixing first before the others."""
    return priorities(context.answer.findings, context.time.findings)


def findings(context: Context) -> Markup | None:
    """All findings; nothing where there is none."""
    result = in_order(context)
    if not result:
        return None
    alone = len(context.answer.allocators) < 2
    return tag(
        "section",
        tag("h2", "Findings", id="findings"),
        *(_finding(context, one, alone=alone) for one in result),
        aria_labelledby="findings",
    )


def mark(kind: str) -> Markup:
    """The sign of a severity, or of what is ``fine``, for the eye only."""
    return tag(
        "svg",
        tag("path", d=_MARKS[kind]),
        class_="mark",
        viewBox="0 0 16 16",
        aria_hidden="true",
        focusable="false",
    )


def badge(severity: str) -> Markup:
    """A severity in a word, with its sign."""
    return tag("span", mark(severity), _WORDS[severity], class_=f"badge {severity}")


def _finding(context: Context, one: Priority, *, alone: bool) -> Markup:
    """One finding: title, what to do, the numbers, the rows."""
    finding = one.finding
    title = clip(finding.title, 600)
    allocator = str(finding.evidence.get("allocator") or "")
    prefix = f"{named(allocator)}: "
    if title.startswith(prefix):
        title = title.removeprefix(prefix)
    if title.startswith(_LOWER):
        title = capital(title)
    severity = finding.severity if finding.severity in SEVERITIES else "info"
    where = None if alone or not allocator else tag("p", "Allocator ", code(named(allocator)))
    return tag(
        "article",
        tag("h3", badge(severity), " ", title),
        where,
        tag("p", tag("strong", "What to do. "), finding.suggestion, class_="advice"),
        *_evidence(context, finding, one.about),
        class_=f"finding {severity}",
    )


def _evidence(context: Context, finding: Finding, about: str) -> list[Markup]:
    tables, facts = evidence(finding, context.labels)
    if about == "time" and finding.rows:
        tables[0] = replace(time_tables(finding)[0], title="the first rows behind it")
    shown = [context.tables.write(table) for table in tables]
    return [*shown, context.tables.facts("the numbers behind it", facts)] if facts else shown
