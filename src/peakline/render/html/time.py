"""What a report says of time: steps and the slow ones, devices, ops, kernels, input pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from peakline.document import limits
from peakline.document.model import Column, Table, capital, rest_text
from peakline.document.ops import RUNS, kernels_table, ops_tables, sorted_ops, stages_table
from peakline.document.steps import (
    by_device_table,
    devices_table,
    difference_tables,
    parts_table,
    steps_part,
    steps_tables,
    utilisation_facts,
)
from peakline.document.wording import MOST_SELF_TIME
from peakline.findings.step_difference import is_slow, sentences_of
from peakline.render.html.context import Context
from peakline.render.html.html import Child, Markup, clip, join, tag
from peakline.timing.input_pipeline import input_stages
from peakline.timing.step_breakdown import step_times
from peakline.timing.steps.difference import step_difference_of


def steps(context: Context) -> Markup | None:
    """The steps; nothing where nothing says what one is."""
    answer, tables = context.time, context.tables
    if answer.times is None:
        return None
    head = steps_part(answer, answer.times)
    shown: list[Child] = [
        tag("p", f"{clip(head.title, 300)}."),
        *(tag("p", f"{note[:1].upper()}{clip(note[1:], 600)}.") for note in head.notes),
    ]
    if isinstance(head.times, Table):
        shown.append(tables.write(replace(head.times, title="how long steps take")))
    else:
        shown.append(tables.facts("how long steps take", head.times))
    if use := utilisation_facts(answer):
        shown.append(tables.facts("what steps use of the devices", use))
    shown.append(tables.write(_with_bars(parts_table(answer))))
    if (by_device := by_device_table(answer)).rows:
        shown.append(tables.write(replace(by_device, title="steps of each device")))
    every = steps_tables(answer.steps)[0].trimmed()
    last = every.columns[-1]
    if last.unit == "remark":
        every = replace(every, columns=[*every.columns[:-1], replace(last, label="remark")])
    shown += [
        context.drawings.figure(
            "step_breakdown",
            context.profile,
            "What the time of a step went to",
            tables.write(every),
        ),
        _slow(context),
    ]
    return tag("section", tag("h2", "Steps", id="steps"), *shown, aria_labelledby="steps")


def _with_bars(table: Table) -> Table:
    """The parts of a step with their shares as bars, which a page draws itself."""
    _, mean, share, _ = table.columns
    columns = (Column("part"), mean, replace(share, unit="share"))
    return replace(table, columns=columns, rows=[row[:3] for row in table.rows])


def _slow(context: Context) -> Child:
    """The slow step against the median one; nothing where none is slow."""
    result = step_difference_of(context.profile)
    if result is None or not is_slow(result):
        return None
    sentences = sentences_of(result, step_times(context.profile))
    return tag(
        "section",
        tag("h3", "Why the slow step is slow"),
        tag("ul", *(tag("li", clip(one, 900)) for one in sentences)),
        *(context.tables.write(one) for one in difference_tables(result)),
    )


def time(context: Context) -> Markup | None:
    """Where time goes, besides the steps; nothing for a file in which nothing ran."""
    sections = [(title, content) for title, content in _sections(context) if content]
    if not sections:
        return None
    answer = context.time
    lines = list(dict.fromkeys(answer.to_record))
    if answer.times is None:
        lines = [": ".join((answer.nothing, *lines))]
    return tag(
        "section",
        tag("h2", "Time", id="time"),
        tag("p", *(f"{capital(line)}. " for line in lines)) if lines else None,
        *(tag("section", tag("h3", title), content) for title, content in sections),
        aria_labelledby="time",
    )


def _sections(context: Context) -> Iterator[tuple[str, Child]]:
    yield "Devices", _devices(context)
    yield MOST_SELF_TIME, _ops(context)
    yield "GPU kernels", _kernels(context)
    yield "Input pipeline", _input(context)


def _devices(context: Context) -> Child:
    table = devices_table(context.time)
    if not table.rows:
        return None
    table = replace(table, title="how busy each device was")
    written = _with_rest(context, table, "device")
    return context.drawings.figure(
        "device_time", context.profile, "How busy the devices were", written
    )


def _ops(context: Context) -> Child:
    table = sorted_ops(context.profile, "op_stats", "self_ps")
    if table is None:
        return None
    parts: list[Child] = []
    for side, shown in ops_tables(table, limits.OPS.report).items():
        written = _with_rest(context, shown.numbers_first(), "op")
        title = f"Ops of the {side}{'s' if side == 'device' else ''} by self time"
        parts.append(
            context.drawings.figure("op_stats", context.profile, title, written, side=side)
        )
        if side == "device":
            parts.append(tag("p", f"{RUNS}.", class_="of"))
    return join(parts)


def _kernels(context: Context) -> Child:
    table = sorted_ops(context.profile, "kernels", "total_ps")
    if table is None:
        return None
    shown = kernels_table(table, limits.KERNELS.report).without_empty()
    written = _with_rest(context, shown.numbers_first(), "kernel")
    return context.drawings.figure("kernels", context.profile, "GPU kernels by time", written)


def _input(context: Context) -> Child:
    stages = input_stages(context.profile)
    if not stages:
        return None
    table = stages_table(stages, limits.STAGES.report)
    written = _with_rest(context, table, "stage")
    title = "Stages of the input pipeline"
    return context.drawings.figure("input_pipeline", context.profile, title, written)


def _with_rest(context: Context, table: Table, what: str) -> Markup:
    """The table, and how many more rows there are."""
    rest = tag("p", f"{capital(rest_text(table, what))}.") if table.rest else None
    return join([context.tables.write(replace(table, rest=())), rest])
