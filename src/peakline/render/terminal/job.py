"""A job of many ranks on one screen, however many there are."""

from __future__ import annotations

from peakline.document.job import (
    MOST_FINDINGS,
    headline,
    job_lines,
    ranks_table,
    root_lines,
    shared_findings,
)
from peakline.document.job_members import names_text, who_text
from peakline.document.model import Table
from peakline.jobs.answer import JobAnswer
from peakline.jobs.members import Job
from peakline.render.terminal.layout import Indented
from peakline.render.terminal.screen import Shown, Text, in_order, indented, severity_style, show
from peakline.render.terminal.table import Labelled
from peakline.safe_text import one_line
from peakline.text import counted

_ROOTS = 2
_DIFFERS = 0.05
"""What a finding would gain is said of the least and the most where they are so far apart."""


def print_job(answer: JobAnswer, path: str) -> None:
    """Print what the ranks do together, what they wait for, and what differs."""
    parts: list[Shown] = [*_head(answer, path), "", Labelled(job_lines(answer))]
    if answer.roots:
        waits = any(root.step_without_ps is not None for root in answer.roots)
        title = "what the others wait for" if waits else "who works longer than the others"
        parts += ["", Text(title, "bold")]
        for number, root in enumerate(answer.roots[:_ROOTS], 1):
            first, *rest = root_lines(answer, root)
            parts.append(indented(Text(f"{number}. {first}", "bold", 3)))
            parts += [Indented(Text(line, hang=2), 5) for line in rest if line]
    table = ranks_table(answer)
    if table is not None and table.rows:
        parts += ["", Text(table.title, "bold"), in_order(table)]
        parts += [indented(str(table.rest[0]))] if table.rest else []
    parts += _findings(answer)
    show(parts)


def print_job_table(answer: JobAnswer, path: str, table: Table) -> None:
    """Print one table about all ranks."""
    parts = [*_head(answer, path), "", Text(table.title, "bold"), in_order(table)]
    parts += [indented(str(table.rest[0]))] if table.rest else []
    show(parts)


def _head(answer: JobAnswer, path: str) -> list[Shown]:
    return job_head(answer.job, path, headline(answer))


def job_head(job: Job, path: str, sentence: str) -> list[Shown]:
    """The first lines of what is said of a job: a sentence, and which job it is."""
    return [Text(sentence, "bold", 2), Text(job_line(job, path), "dim", is_prose=False)]


def job_line(job: Job, path: str) -> str:
    """Which job it is."""
    form = job.profiles[0].format if job.profiles else ""
    return f"{one_line(path)} (job of {counted(len(job.firsts), 'rank')}, {form})"


def _findings(answer: JobAnswer) -> list[Shown]:
    job = answer.job
    shared = shared_findings(answer)
    if not shared:
        return []
    parts: list[Shown] = ["", Text("to fix first, by rank", "bold")]
    for number, one in enumerate(shared[:MOST_FINDINGS], 1):
        severity, about = str(one.document["severity"]), str(one.document["about"])
        who = who_text(one.members, len(job.firsts))
        low, high = one.gains
        if high - low > _DIFFERS:
            who += f" (gain {low:.0%} to {high:.0%})"
        title = f"{number}. {severity} ({about}), {who}: {one.document['title']}"
        parts += [
            indented(Text(title, severity_style(severity), 3)),
            Indented(Text(str(one.document["suggestion"])), 5),
        ]
    more = shared[MOST_FINDINGS:]
    if more:
        members = {id(m): m for one in more for m in one.members}
        text = f"and {len(more)} more, of {names_text([*members.values()])}"
        parts.append(indented(Text(f"{text}: peakline PATH --rank R")))
    return parts
