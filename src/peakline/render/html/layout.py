"""The largest buffers, growth from step to step, free memory in pieces, and what comes and goes."""

from __future__ import annotations

import numpy as np

from peakline.memory.lifetimes import ALLOCATION
from peakline.memory.pattern import STEADY, WARM_UP
from peakline.render.html.context import Part
from peakline.render.html.html import Child, Markup, clip, code, join, tag
from peakline.render.html.tables import Column, Table, evidence_table
from peakline.render.html.words import (
    count,
    form,
    number,
    percent,
    size,
    size_words,
    time,
    time_text,
    times,
)

__all__ = ["buffers", "churn", "fragmentation", "growth"]

_BUFFERS = 15
_ROWS = 10
_PATTERNS = {
    "leak": "grows to the end",
    "one_pass": "grows to the end of one pass",
    "cache": "grew, and has stopped",
    "step_up": "rose once",
    "sawtooth": "gathers and is released",
    "warm_up": "grew in the first steps only",
    "steady": "steady",
}


def buffers(part: Part) -> Markup | None:
    """The largest buffers, from when to when each lived."""
    history, lifetimes = part.history, part.history.lifetimes
    rows = history.rows_of(part.number)
    rows = rows[(lifetimes.kind[rows] == ALLOCATION) & (history.allocated[rows] > 0)]
    if part.context.is_moment or not rows.size:
        return None
    most = min(_BUFFERS, rows.size)
    weight = history.allocated[rows]
    chosen = np.sort(np.argpartition(-weight, most - 1)[:most])
    chosen = rows[chosen[np.argsort(-weight[chosen], kind="stable")]]
    events = history.events
    times = events.array("time_ps")
    before = events.array("is_before") & events.is_valid("is_before")
    cells: list[list[Child]] = []
    for row in chosen.tolist():
        signature = history.signatures[int(history.signatures.codes[row])]
        end = int(lifetimes.end[row])
        begun: Child = "before the profile" if before[row] else time(int(times[row]))
        ended: Child = "not in the profile" if end < 0 else time(int(times[end]))
        lived: Child = "" if end < 0 or before[row] else time(int(times[end] - times[row]))
        cells.append(
            [
                code(signature.op or "(no op)"),
                size(int(history.allocated[row])),
                form(signature.data_type, signature.shape),
                begun,
                ended,
                lived,
            ]
        )
    columns = (
        Column("Op"),
        Column("Bytes", is_number=True),
        Column("Type and shape"),
        Column("Made", is_number=True),
        Column("Freed", is_number=True),
        Column("Lived", is_number=True),
    )
    caption = f"The {most} largest of {count(rows.size, 'buffer')}"
    table = part.context.tables.write(Table(caption, columns, cells))
    words = f"The largest is {size_words(int(weight.max()))}."
    return part.context.drawings.figure(
        "largest_buffers", part, "Lifetimes of the largest buffers", words, table
    )


def growth(part: Part) -> Markup | None:
    """What the steps leave: a sentence for a steady job, else the figure and what grew."""
    found = part.details.growth
    if found is None:
        return None
    marks, total = found.marks, found.total
    steps = f"{len(marks):,} steps"
    words = (
        f"At the end of the first of {steps} {size_words(int(total[0]))} are in use, at the end "
        f"of the last {size_words(int(total[-1]))}. Steps are {clip(marks.detail)}."
    )
    grown = [one for one in found.groups if one.pattern.kind not in {STEADY, WARM_UP}]
    if "growth" not in part.sections:
        small = ""
        if grown:
            small = " What grew is too little, or too uncertain, to be a finding."
        return tag("p", f"{words}{small}")
    rows = [
        one.signature.as_row()
        | {
            "pattern": _PATTERNS.get(one.pattern.kind, one.pattern.kind),
            "since": marks.label(one.pattern.since),
            "bytes_per_step": round(one.pattern.bytes_per_step),
            "kept_bytes": one.pattern.bytes,
            "held_bytes": one.held_bytes,
        }
        for one in sorted(grown, key=lambda one: -one.pattern.bytes)[:_ROWS]
    ]
    more = f"; the {_ROWS} that grew most of {len(grown)}" if len(grown) > _ROWS else ""
    caption = f"What grew, by op{more}"
    table = None
    if rows:
        table = part.context.tables.write(evidence_table(caption, rows, part.context.steps))
    figure = part.context.drawings.figure(
        "growth_per_step", part, "Memory left at the end of each step", words, table
    )
    return join([tag("p", words), figure])


def fragmentation(part: Part) -> Markup | None:
    """Free memory in pieces: a sentence where it did no harm, else the figure and the pieces."""
    found, peak = part.details.fragmentation, part.peak
    told = []
    if peak.fragmentation_at_peak is not None:
        told.append(
            f"At the peak the allocator reports a fragmentation of "
            f"{percent(peak.fragmentation_at_peak)}: that share of its pool's free memory is "
            "outside the largest free piece."
        )
    if found is None or part.context.is_moment:
        return tag("p", told[0]) if told else None
    if found.worst is None:
        told.append(
            "No large allocation had to take new memory while enough was free in pieces: "
            "fragmentation cost nothing that the addresses show."
        )
    else:
        worst = found.worst
        many = f"{count(len(found.forced), 'large allocation')} took new memory although enough"
        told.append(
            f"{many} was free, in pieces that were all too small; that cost "
            f"{size_words(found.recoverable_bytes)} at most. The one that took most asked for "
            f"{size_words(worst.bytes)} at {time_text(worst.time_ps)}, when "
            f"{size_words(worst.free)} were free, the largest piece {size_words(worst.largest)}."
        )
    words = " ".join(told)
    if "fragmentation" not in part.sections or found.worst is None:
        return tag("p", words)
    columns = (
        Column("Pieces of at least"),
        Column("How many", is_number=True),
        Column("Together", is_number=True),
    )
    cells = [(size(one.from_bytes), f"{one.count:,}", size(one.bytes)) for one in found.at_worst]
    caption = f"Free pieces at {time_text(found.worst.time_ps)}, just before that allocation"
    table = part.context.tables.write(Table(caption, columns, cells))
    figure = part.context.drawings.figure(
        "fragmentation", part, "Free memory, and its largest piece", words, table
    )
    return join([tag("p", words), figure])


def churn(part: Part) -> Markup | None:
    """What is allocated and freed within a step: a sentence, and a table where it is a finding."""
    found = part.details.churn
    if not found.allocations or part.context.is_moment:
        return None
    words = (
        f"{count(found.allocations, 'allocation')} of {size_words(found.bytes)} in all; "
        f"{percent(found.short / found.allocations)} are freed within 64 records."
    )
    per_step, turnover = found.bytes_per_step, found.turnover
    if found.steps and per_step is not None and turnover is not None:
        words = (
            f"A step makes {number(found.allocations / found.steps)} buffers on average, of "
            f"{size_words(per_step)} together: {times(turnover)} the peak; "
            f"{percent(found.same_step / found.allocations)} of the buffers are freed in the step "
            "that made them."
        )
    if "churn" not in part.sections:
        return tag("p", words)
    rows = [
        one.signature.as_row()
        | {"allocations": one.allocations, "bytes": one.bytes, "most_live": one.most_live}
        for one in found.signatures[:_ROWS]
    ]
    caption = "What is allocated most, in bytes over the whole profile"
    return join(
        [
            tag("p", words),
            part.context.tables.write(evidence_table(caption, rows, part.context.steps)),
        ]
    )
