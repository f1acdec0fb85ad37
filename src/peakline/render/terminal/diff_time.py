"""The difference in time between two profiles as a person reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from peakline.compare.notes import signed_time
from peakline.render.terminal.screen import indented, plain_table
from peakline.render.terminal.time_parts import cut_middle, fitted
from peakline.text import one_line, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.compare.time import TimeDiff, TimeState

__all__ = ["time_part"]

_ROWS = 12
_NAME = 60
_LEAST = 0.001
"""A part is shown from this share of the longer mean step on."""


def time_part(diff: TimeDiff) -> list[RenderableType]:
    """Steps, what their time goes to, and ops, each with what it was and what it is."""
    title = Text("time", style="bold")
    notes = [indented(Text(one_line(f"note: {note}"))) for note in diff.notes]
    if diff.is_empty:
        return [title, indented(Text("nothing changed")), *notes]
    facts = _facts(diff.before, diff.after)
    table = plain_table(("", ""), facts)
    table.show_header = False
    told = [indented(table)] if facts else []
    return [title, *told, *notes, *_parts(diff), *_ops(diff)]


def _facts(before: TimeState, after: TimeState) -> list[tuple[str, str]]:
    if not (before.steps and after.steps):
        told = (f"{state.steps:,}" if state.steps else "not known" for state in (before, after))
        return [("steps", " -> ".join(told))] if before.steps or after.steps else []
    facts = []
    if before.steps != after.steps:
        facts.append(("steps", f"{before.steps:,} -> {after.steps:,}"))
    one, other = before.times, after.times
    if one is not None and other is not None:
        facts += [
            ("step time", f"{_change(one.median_ps, other.median_ps)} (median)"),
            ("shortest", _change(one.min_ps, other.min_ps)),
            ("95 of 100", f"within {_change(one.p95_ps, other.p95_ps)}"),
            ("mean", _change(one.mean_ps, other.mean_ps)),
        ]
    if before.between_ps or after.between_ps:
        between = _change(before.between_ps, after.between_ps)
        facts.append(("between steps", f"{between} (median)"))
    return facts


def _parts(diff: TimeDiff) -> list[RenderableType]:
    times = [state.times.mean_ps for state in (diff.before, diff.after) if state.times]
    least = _LEAST * max(times, default=0)
    rows = [
        (signed_time(one.delta_ps), time_text(one.before_ps), time_text(one.after_ps), one.words)
        for one in diff.parts
        if abs(one.delta_ps) >= least
    ]
    if not rows:
        return []
    columns = ("CHANGE", "BEFORE", "AFTER", "")
    table = plain_table(columns, rows, right=columns[:3])
    return ["", indented(Text("where the mean step's time goes")), indented(table)]


def _ops(diff: TimeDiff) -> list[RenderableType]:
    if not diff.ops:
        return []
    rows: list[tuple[str, ...]] = [
        (
            signed_time(one.delta_ps),
            time_text(one.before_ps),
            time_text(one.after_ps),
            one.side,
            cut_middle(one.op, _NAME),
            cut_middle(one.text, _NAME),
        )
        for one in diff.ops[:_ROWS]
    ]
    has_text = any(row[-1] for row in rows)
    columns = ["CHANGE", "BEFORE", "AFTER", "ON", "OP", "WHAT HAPPENED"]
    if not has_text:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    each = "per step" if diff.by_step else "in the whole profile"
    title = Text(f"ops whose own time changed most, {each}")
    parts: list[RenderableType] = ["", indented(title), fitted(columns, rows, right=columns[:3])]
    if len(diff.ops) > _ROWS:
        parts.append(indented(Text(f"and {len(diff.ops) - _ROWS} more ops (all with --json)")))
    return parts


def _change(before: int, after: int) -> str:
    if before == after:
        return f"{time_text(before)}, as before"
    text = f"{time_text(before)} -> {time_text(after)}, {signed_time(after - before)}"
    return f"{text} ({after / before - 1:+.1%})" if before > 0 else text
