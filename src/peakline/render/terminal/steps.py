"""The time answer as a person reads it: how long steps take, where it goes, which stand out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from peakline.render.document.finding import time_tables
from peakline.render.document.model import Table
from peakline.render.document.steps import (
    by_device_table,
    devices_table,
    parts_table,
    steps_part,
    steps_tables,
    utilisation_facts,
)
from peakline.render.terminal.screen import drawn_facts, indented, show, table_of
from peakline.render.terminal.time_parts import fitted_table, fitting, profile_line
from peakline.text import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.api import Profile
    from peakline.findings.finding import Finding
    from peakline.findings.time_answer import TimeAnswer


def print_steps(profile: Profile, answer: TimeAnswer) -> None:
    """Print the time of the steps, its parts, the devices, the steps, and the findings."""
    parts: list[RenderableType] = [profile_line(profile, moment=not profile.duration_ps)]
    if answer.times is None:
        parts += ["", Text(one_line(": ".join((answer.nothing, *answer.to_record))))]
    else:
        head, goes = steps_part(answer, answer.times), parts_table(answer)
        parts += ["", Text(one_line(head.title), style="bold")]
        parts += [indented(Text(one_line(note))) for note in head.notes]
        if isinstance(head.times, Table):
            parts += ["", fitted_table(head.times)]
        else:
            parts.append(drawn_facts(head.times))
        if use := utilisation_facts(answer):
            parts += ["", drawn_facts(use)]
        parts += ["", indented(Text(one_line(goes.title))), indented(table_of(goes))]
        parts += [indented(Text(line)) for line in answer.to_record]
        by_device = by_device_table(answer)
        parts += ["", fitted_table(by_device)] if by_device.rows else []
    devices = devices_table(answer)
    if devices.rows:
        parts += ["", fitted_table(devices)]
    if devices.rest:
        parts.append(indented(Text(f"and {devices.rest[0]} more devices (all with --json)")))
    if answer.times is not None:
        tables = steps_tables(answer.steps)
        parts += ["", indented(Text(tables[0].title)), fitted_table(fitting(tables))]
    for finding in answer.findings:
        parts += ["", *_finding(finding)]
    show(parts)


def _finding(finding: Finding) -> list[RenderableType]:
    """A finding of time: what it says, what to do, and the first rows behind it."""
    title = Text(one_line(f"{finding.severity}: {finding.title}"), style="bold yellow")
    parts: list[RenderableType] = [title, indented(Text(one_line(finding.suggestion)))]
    return [*parts, fitted_table(fitting(time_tables(finding)))] if finding.rows else parts
