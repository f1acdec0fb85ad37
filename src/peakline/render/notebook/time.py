"""What a notebook shows of time: how long steps take, where it goes, how busy devices are."""

from __future__ import annotations

from collections.abc import Sequence

from peakline.document.model import Table, capital, text_of
from peakline.document.steps import (
    by_device_table,
    devices_table,
    parts_table,
    steps_part,
    utilisation_facts,
)
from peakline.findings.time_answer import TimeAnswer
from peakline.render.notebook.drawings import shares_drawing, steps_drawing
from peakline.render.notebook.finding import listed_findings
from peakline.render.notebook.pieces import drawn, facts, headed, line


def parts(answer: TimeAnswer) -> list[str]:
    """The answer of `Profile.time`."""
    found = [headed("Time")]
    if answer.times is None:
        found.append(line(answer.nothing or "no steps"))
    else:
        part = steps_part(answer, answer.times)
        found.append(line(part.title))
        found += [line(note, quiet=True) for note in part.notes]
        found.append(drawn(part.times) if isinstance(part.times, Table) else facts(part.times))
        found.append(facts(utilisation_facts(answer)))
    found += [*time_parts(answer), drawn(by_device_table(answer))]
    found += [*advice_parts(answer), listed_findings(answer.findings)]
    return found


def time_parts(answer: TimeAnswer) -> Sequence[str]:
    """The drawings of steps and their parts, and how busy devices are."""
    found = []
    if answer.times is not None:
        _, wall = answer.steps.main.slowest_lane()
        if drawing := steps_drawing(wall):
            found += [line("Time of each step", quiet=True), drawing]
        where = parts_table(answer)
        found.append(line(capital(where.title), quiet=True))
        shares = [
            (str(label), f"{text_of(each, 'ps')} ({text})", float(share or 0))
            for label, each, text, share in where.rows
        ]
        found.append(shares_drawing(shares))
    found.append(drawn(devices_table(answer)))
    return found


def advice_parts(answer: TimeAnswer) -> list[str]:
    """How to record what is missing."""
    return [line(f"to record: {one}", quiet=True) for one in answer.to_record]
