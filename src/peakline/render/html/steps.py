"""What a report says of steps: how long they take, where it goes, why the slow one is slow."""

from __future__ import annotations

from dataclasses import replace

from peakline.document.model import Column, Table
from peakline.document.steps import (
    by_device_table,
    difference_tables,
    parts_table,
    steps_part,
    steps_tables,
    utilisation_facts,
)
from peakline.findings.step_difference import is_slow, sentences_of
from peakline.render.html.context import Context
from peakline.render.html.html import Child, Markup, clip, tag
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
    found = step_difference_of(context.profile)
    if found is None or not is_slow(found):
        return None
    sentences = sentences_of(found, step_times(context.profile))
    return tag(
        "section",
        tag("h3", "Why the slow step is slow"),
        tag("ul", *(tag("li", clip(one, 900)) for one in sentences)),
        *(context.tables.write(one) for one in difference_tables(found)),
    )
