"""What a notebook shows of time: steps, where theirs goes, critical paths, launches, devices."""

from __future__ import annotations

from collections.abc import Sequence

from peakline.document import limits
from peakline.document.model import Table, capital, columns_of, text_of
from peakline.document.steps import (
    by_device_table,
    devices_table,
    parts_table,
    steps_part,
    steps_tables,
    utilisation_facts,
)
from peakline.findings.time_answer import TimeAnswer
from peakline.render.notebook.drawings import shares_drawing, steps_drawing
from peakline.render.notebook.findings import listed_findings
from peakline.render.notebook.pieces import drawn, facts, headed, line
from peakline.shown import headline_of
from peakline.timing.critical_path.path import StepPath
from peakline.timing.launches.summary import LaunchSummary, Spread
from peakline.timing.steps.facts import StepFacts


def time_answer_parts(answer: TimeAnswer) -> list[str]:
    """The answer of `Profile.time`."""
    result = [headed("Time")]
    if answer.times is None:
        result.append(line(answer.nothing or "no steps"))
    else:
        part = steps_part(answer, answer.times)
        result.append(line(part.title))
        result += [line(note, quiet=True) for note in part.notes]
        result.append(drawn(part.times) if isinstance(part.times, Table) else facts(part.times))
        result.append(facts(utilisation_facts(answer)))
    result += [*time_parts(answer), drawn(by_device_table(answer))]
    result += [*advice_parts(answer), listed_findings(answer.findings)]
    return result


def time_parts(answer: TimeAnswer) -> Sequence[str]:
    """The drawings of steps and their parts, and how busy devices are."""
    result = []
    if answer.times is not None:
        _, wall = answer.steps.main.slowest_lane()
        if drawing := steps_drawing(wall):
            result += [line("Time of each step", quiet=True), drawing]
        where = parts_table(answer)
        result.append(line(capital(where.title), quiet=True))
        shares = [
            (str(label), f"{text_of(each, 'ps')} ({text})", float(share or 0))
            for label, each, text, share in where.rows
        ]
        result.append(shares_drawing(shares))
    result.append(drawn(devices_table(answer)))
    return result


def advice_parts(answer: TimeAnswer) -> list[str]:
    """How to record what is missing."""
    return [line(f"to record: {one}", quiet=True) for one in answer.to_record]


def steps_parts(steps: StepFacts) -> list[str]:
    """The answer of `Profile.steps`."""
    head = headed("Steps", headline_of(steps))
    if not steps.rows:
        return [headed("Steps"), line("nothing in this profile says what a step is")]
    _, wall = steps.slowest_lane()
    return [head, steps_drawing(wall), drawn(steps_tables(steps)[0], limits.STEPS.notebook)]


def path_parts(path: StepPath) -> list[str]:
    """The answer of `Profile.critical_path`."""
    whole = max(path.end_ps - path.start_ps, 1)
    columns = columns_of(time="ps", share="share", kind="form", what="name")
    rows = [(size, size / whole, kind, name) for kind, name, size in path.by_name()]
    on = f" on {path.device}" if path.device else ""
    result = [headed("Critical path", headline_of(path) + on)]
    result.append(line(f"its pieces explain {path.explained:.1%} of that", quiet=True))
    near = [
        (piece.slack_ps, piece.end_ps - piece.begin_ps, piece.name)
        for piece in path.near[: limits.PATH.notebook]
    ]
    result.append(drawn(Table("where its time goes", columns, rows), limits.PATH.notebook))
    beside = columns_of(slack="ps", time="ps", what="name")
    result.append(
        drawn(Table("beside it, with the least slack", beside, near), limits.PATH.notebook)
    )
    return result


_COLUMNS = columns_of(
    device="name", launches="count", delay="run_ps", between="run_ps", idle="ps",
    not_launched="ps", being_launched="ps", waiting="ps",
)  # fmt: skip


def launches_parts(summary: LaunchSummary) -> list[str]:
    """The answer of `Profile.launches`."""
    if not summary.devices:
        return [headed("Launches"), line("nothing in this profile launches work of a device")]
    rows = [
        (
            one.device, one.launches, _median(one.delay), _median(one.gap), one.idle_ps,
            one.starved_ps, one.latency_ps, one.blocked_ps,
        )
        for one in summary.devices
    ]  # fmt: skip
    title = "delay and time between launches are medians; then the device's idle time, and of it"
    return [
        headed("Launches", headline_of(summary)),
        drawn(Table(title, _COLUMNS, rows), limits.DEVICES.notebook),
    ]


def _median(spread: Spread | None) -> int | str:
    return "" if spread is None else spread.median
