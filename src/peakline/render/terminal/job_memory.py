"""The memory of a job's ranks on one screen, however many there are, and how they fit into less."""

from __future__ import annotations

from collections.abc import Sequence

from peakline.document import job_fit
from peakline.document.job_memory import (
    categories_table,
    held_table,
    memory_facts,
    memory_headline,
    peaks_table,
)
from peakline.jobs.answer import JobAnswer
from peakline.jobs.fitted import RankFit
from peakline.jobs.members import Job, Member
from peakline.render.terminal.job import job_head
from peakline.render.terminal.screen import Shown, Text, drawn, in_order, indented, show
from peakline.render.terminal.table import Labelled

_LEAST = ("type", "steps", "count", "category", "shape", "machine", "allocator", "step")
"""What a narrow screen does without, in this order."""


def print_job_memory(answer: JobAnswer, path: str) -> None:
    """Print the peaks of all ranks, whose differ and by what, and what the ranks hold for what."""
    memory = answer.memory
    head = job_head(answer.job, path, memory_headline(answer))
    parts: list[Shown] = [*head, "", Labelled(memory_facts(answer))]
    held = held_table(memory) if memory.members else None
    if held is not None:
        parts += ["", Text(held.title, "bold"), drawn(held, least=_LEAST)]
        parts += [indented(str(held.rest[0]))] if held.rest else []
    for table in (categories_table(memory), peaks_table(memory)):
        if table is not None:
            parts += ["", Text(table.title, "bold"), in_order(table, least=_LEAST)]
            parts += [indented(str(table.rest[0]))] if table.rest else []
    show(parts)


def print_job_fit(job: Job, ranks: Sequence[tuple[Member, RankFit]], path: str) -> None:
    """Print which rank fails first, and what each needs."""
    table = job_fit.job_fit_table(ranks)
    parts: list[Shown] = [
        *job_head(job, path, job_fit.job_fit_headline(ranks)),
        "",
        Labelled(job_fit.job_fit_lines(job, ranks)),
        "",
        Text(table.title, "bold"),
        in_order(table, least=_LEAST),
    ]
    parts += [indented(str(table.rest[0]))] if table.rest else []
    show(parts)
