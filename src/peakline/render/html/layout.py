"""The largest buffers, growth from step to step, free memory in pieces, and what comes and goes."""

from __future__ import annotations

import numpy as np

from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.growth.pattern import STEADY, WARM_UP
from peakline.render.document.finding import rows_table
from peakline.render.document.model import Row, Table, columns_of
from peakline.render.html.context import Part
from peakline.render.html.html import Markup, clip, join, tag
from peakline.text import counted, size_text, time_text

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
    cells: list[Row] = []
    for row in chosen.tolist():
        signature = history.signatures[int(history.signatures.codes[row])]
        end = int(lifetimes.end[row])
        begun = "before the profile" if before[row] else int(times[row])
        ended = "not in the profile" if end < 0 else int(times[end])
        lived = "" if end < 0 or before[row] else int(times[end] - times[row])
        cells.append(
            [
                signature.op or "(no op)",
                int(history.allocated[row]),
                f"{signature.data_type} {signature.shape}".strip(),
                begun,
                ended,
                lived,
            ]
        )
    columns = columns_of("op", "size", type_and_shape="form", made="ps", freed="ps", lived="ps")
    caption = f"The {most} largest of {counted(rows.size, 'buffer')}"
    table = part.context.tables.write(Table(caption, columns, cells))
    return part.context.drawings.of_part(
        "largest_buffers", part, "Lifetimes of the largest buffers", table
    )


def growth(part: Part) -> Markup | None:
    """What the steps leave: a sentence for a steady job, else the figure and what grew."""
    found = part.details.growth
    if found is None:
        return None
    marks, total = found.marks, found.total
    steps = f"{len(marks):,} steps"
    words = (
        f"At the end of the first of {steps} {size_text(int(total[0]))} are in use, at the end "
        f"of the last {size_text(int(total[-1]))}. Steps are {clip(marks.detail)}."
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
        table = part.context.tables.write(rows_table(caption, rows, part.context.labels, {}))
    figure = part.context.drawings.of_part(
        "growth_per_step", part, "Memory left at the end of each step", table
    )
    return join([tag("p", words), figure])


def fragmentation(part: Part) -> Markup | None:
    """Free memory in pieces: a sentence where it did no harm, else the figure and the pieces."""
    found, peak = part.details.fragmentation, part.peak
    told = []
    if peak.fragmentation_at_peak is not None:
        told.append(
            f"At the peak the allocator reports a fragmentation of "
            f"{peak.fragmentation_at_peak:.1%}: that share of its pool's free memory is "
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
        many = f"{counted(len(found.forced), 'large allocation')} took new memory although enough"
        told.append(
            f"{many} was free, in pieces that were all too small; that cost "
            f"{size_text(found.recoverable_bytes)} at most. The costliest requested "
            f"{size_text(worst.bytes)} at {time_text(worst.time_ps)}, when "
            f"{size_text(worst.free)} were free, the largest piece {size_text(worst.largest)}."
        )
    words = " ".join(told)
    if "fragmentation" not in part.sections or found.worst is None:
        return tag("p", words)
    columns = columns_of(pieces_of_at_least="bytes", how_many="count", together="bytes")
    cells = [(one.from_bytes, one.count, one.bytes) for one in found.at_worst]
    caption = f"Free pieces at {time_text(found.worst.time_ps)}, just before that allocation"
    table = part.context.tables.write(Table(caption, columns, cells))
    figure = part.context.drawings.of_part(
        "fragmentation", part, "Free memory, and its largest piece", table
    )
    return join([tag("p", words), figure])


def churn(part: Part) -> Markup | None:
    """What is allocated and freed within a step: a sentence, and a table where it is a finding."""
    found = part.details.churn
    if not found.allocations or part.context.is_moment:
        return None
    words = (
        f"{counted(found.allocations, 'allocation')} of {size_text(found.bytes)} in all; "
        f"{found.short / found.allocations:.1%} are freed within 64 records."
    )
    per_step, turnover = found.bytes_per_step, found.turnover
    if found.steps and per_step is not None and turnover is not None:
        words = (
            f"A step makes {found.allocations / found.steps:,.1f} buffers on average, of "
            f"{size_text(per_step)} together: {turnover:,.1f} times the peak; "
            f"{found.same_step / found.allocations:.1%} of the buffers are freed in the step "
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
    table = part.context.tables.write(rows_table(caption, rows, part.context.labels, {}))
    return join(
        [
            tag("p", words),
            part.context.drawings.of_part("churn", part, "Allocated in every step", table),
        ]
    )
