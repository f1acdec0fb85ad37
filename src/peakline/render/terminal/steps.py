"""The time answer as a person reads it: how long steps take, where it goes, which stand out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.document.finding import time_tables
from peakline.document.headline import steps_headline
from peakline.document.model import Table, rest_text
from peakline.document.steps import (
    by_device_table,
    devices_table,
    parts_table,
    steps_part,
    steps_tables,
    utilisation_facts,
)
from peakline.document.wording import ALL_IN_JSON
from peakline.render.terminal.screen import (
    Shown,
    Text,
    drawn_facts,
    fitting,
    headed,
    in_order,
    indented,
    severity_style,
    show,
)

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.findings.finding import Finding
    from peakline.findings.time_answer import TimeAnswer


def print_steps(profile: Profile, answer: TimeAnswer) -> None:
    """Print the time of the steps, its parts, the devices, the steps, and the findings."""
    parts = headed(steps_headline(answer), profile)
    if answer.times is None:
        parts += ["", Text(": ".join((answer.nothing, *answer.to_record)))]
    else:
        head, goes = steps_part(answer, answer.times), parts_table(answer)
        parts += ["", Text(head.title, "bold")]
        parts += [indented(Text(note)) for note in head.notes]
        if isinstance(head.times, Table):
            parts += ["", in_order(head.times)]
        else:
            parts.append(drawn_facts(head.times))
        if use := utilisation_facts(answer):
            parts += ["", drawn_facts(use)]
        parts += ["", indented(Text(goes.title)), in_order(goes)]
        parts += [indented(Text(line)) for line in answer.to_record]
        by_device = by_device_table(answer)
        parts += ["", in_order(by_device)] if by_device.rows else []
    devices = devices_table(answer)
    if devices.rows:
        parts += ["", in_order(devices)]
    if devices.rest:
        parts.append(indented(Text(f"{rest_text(devices, 'device')}{ALL_IN_JSON}")))
    if answer.times is not None:
        tables = steps_tables(answer.steps)
        parts += ["", indented(Text(tables[0].title)), fitting(tables)]
    for finding in answer.findings:
        parts += ["", *_finding(finding)]
    show(parts)


def _finding(finding: Finding) -> list[Shown]:
    """A finding of time: what it says, what to do, and the first rows behind it."""
    title = Text(f"{finding.severity}: {finding.title}", severity_style(finding.severity), 2)
    parts: list[Shown] = [title, indented(Text(finding.suggestion))]
    return [*parts, fitting(time_tables(finding))] if finding.rows else parts
