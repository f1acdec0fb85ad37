"""What a report says of time: devices, ops, kernels, the input pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from peakline.document import limits
from peakline.document.model import Table, capital, rest_text
from peakline.document.ops import RUNS, kernels_table, ops_tables, sorted_ops, stages_table
from peakline.document.steps import devices_table
from peakline.document.wording import MOST_SELF_TIME
from peakline.render.html.context import Context
from peakline.render.html.html import Child, Markup, join, tag
from peakline.timing.input_pipeline import input_stages


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
