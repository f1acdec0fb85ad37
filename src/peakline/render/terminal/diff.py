"""The difference between two profiles as a person reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from peakline.compare.notes import signed_size
from peakline.render.terminal.diff_time import time_part
from peakline.render.terminal.screen import indented, plain_table, show
from peakline.text import one_line, size_text, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.compare.comparison import Comparison
    from peakline.compare.memory import AllocatorDiff
    from peakline.compare.rows import GroupDiff, RateDiff
    from peakline.compare.state import AllocatorState, Kind
    from peakline.findings.finding import Finding
    from peakline.tables.profile_facts import ProfileFacts

__all__ = ["print_diff"]

_ROWS = 12
_CHURN_ROWS = 5
_CHURN = 0.05
"""What a step allocates more or less of is told from this share of all it allocates on."""
_WHAT = ("OP", "REGION", "TYPE", "SHAPE")


def print_diff(found: Comparison) -> None:
    """Print, per allocator, the figures of both profiles and why they differ; then time."""
    sides = (("before", found.before), ("after", found.after))
    parts: list[RenderableType] = [
        Text(one_line(f"{side:6}  {_profile(state.facts)}")) for side, state in sides
    ]
    for side, state in sides:
        if state.no_memory:
            parts += ["", Text(one_line(f"{side}: {state.no_memory}"))]
    if found.is_empty:
        parts += ["", Text("nothing changed", style="bold")]
    else:
        for one in found.memory.allocators:
            parts += ["", *_allocator(one)]
        if found.time is not None:
            parts += ["", *time_part(found.time)]
        parts += _findings("new", _both(found, "new_findings"))
        parts += _findings("gone", _both(found, "gone_findings"))
    show(parts)


def _both(found: Comparison, name: str) -> list[Finding]:
    """The findings of memory, then those of time."""
    of_time = [] if found.time is None else getattr(found.time, name)
    return [*getattr(found.memory, name), *of_time]


def _profile(facts: ProfileFacts) -> str:
    host = f", host {facts.host}" if facts.host else ""
    # Where the file has no records, it tells one moment.
    length = "" if facts.is_moment else f", {time_text(facts.duration_ps)}"
    return f"{facts.path} ({facts.format}{host}{length})"


def _allocator(diff: AllocatorDiff) -> list[RenderableType]:
    before, after = diff.before, diff.after
    title = Text(one_line(diff.allocator or "(unnamed allocator)"), style="bold")
    notes = [indented(Text(one_line(f"note: {note}"))) for note in diff.notes]
    if diff.is_empty:
        return [title, indented(Text("nothing changed")), *notes]
    if before is None or after is None:
        return [*_alone(diff, title), *notes]
    facts = plain_table(("", ""), _facts(diff))
    facts.show_header = False
    return [title, indented(facts), *notes, *_groups(diff), *_growth(diff.growth), *_churn(diff)]


def _alone(diff: AllocatorDiff, title: Text) -> list[RenderableType]:
    """An allocator that is new or gone: its peak and what is largest at it."""
    title.append(" (only after)" if diff.before is None else " (only before)")
    peak = abs(diff.peak_delta_bytes)
    rows = (
        (
            size_text(abs(row.delta_bytes)),
            _times(row.before_count + row.after_count),
            *_what(row.kind),
        )
        for row in diff.groups[:_ROWS]
    )
    table = plain_table(("SIZE", "COUNT", *_WHAT), rows, right=("SIZE", "COUNT"))
    parts: list[RenderableType] = [title, indented(Text(f"peak  {size_text(peak)}"))]
    if diff.groups:
        parts += ["", indented(Text("live at the peak")), indented(table)]
    return [*parts, *_hidden(diff.groups)]


def _facts(diff: AllocatorDiff) -> list[tuple[str, str]]:
    one, other = diff.before, diff.after
    if one is None or other is None:
        return []
    if one.peak_unknown or other.peak_unknown:
        peaks = ("not known" if s.peak_unknown else size_text(s.peak_bytes) for s in (one, other))
        facts = [("peak", " -> ".join(peaks))]
    else:
        facts = [("peak", _change(one.peak_bytes, other.peak_bytes))]
    if one.steps != other.steps:
        facts.append(("steps", f"{_count(one.steps)} -> {_count(other.steps)}"))
    growth = one.growth_per_step, other.growth_per_step
    if growth != (None, None) and any(growth):
        facts.append(("growth per step", _maybe(*growth)))
        facts += [
            ("", f"not known {side}: {state.growth_unknown}")
            for state, side in ((one, "before"), (other, "after"))
            if state.growth_unknown
        ]
    if one.allocated_per_step != other.allocated_per_step:
        facts.append(("allocated per step", _allocated(one, other)))
    if one.fragmentation != other.fragmentation:
        shares = (_share(one.fragmentation), _share(other.fragmentation))
        made = [
            f", {side} made from addresses"
            for state, side in ((one, "the first"), (other, "the second"))
            if state.fragmentation_rebuilt
        ]
        how = ", both made from addresses" if len(made) == 2 else "".join(made)
        facts.append(("fragmentation", f"{shares[0]} -> {shares[1]} at the peak{how}"))
    return facts


def _allocated(one: AllocatorState, other: AllocatorState) -> str:
    text = _maybe(one.allocated_per_step, other.allocated_per_step)
    if one.turnover is None or other.turnover is None:
        return text
    return f"{text}; {one.turnover:.1f} -> {other.turnover:.1f} times the peak"


def _change(before: float, after: float) -> str:
    if before == after:
        return f"{size_text(before)}, as before"
    text = f"{size_text(before)} -> {size_text(after)}, {signed_size(after - before)}"
    return f"{text} ({after / before - 1:+.1%})" if before > 0 else text


def _maybe(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        known = ("not known" if size is None else size_text(size) for size in (before, after))
        return " -> ".join(known)
    return _change(before, after)


def _share(share: float | None) -> str:
    return "not known" if share is None else f"{share:.1%}"


def _count(count: int | None) -> str:
    return "not known" if count is None else f"{count:,}"


def _groups(diff: AllocatorDiff) -> list[RenderableType]:
    if not diff.groups:
        return []

    def cells(row: GroupDiff) -> tuple[str, ...]:
        sizes = (row.delta_bytes, row.before_bytes, row.after_bytes)
        told = (signed_size(sizes[0]), *map(size_text, sizes[1:]))
        return (*told, *_what(row.kind), row.text)

    columns = ("CHANGE", "BEFORE", "AFTER", *_WHAT, "WHAT HAPPENED")
    table = plain_table(columns, map(cells, diff.groups[:_ROWS]), right=columns[:3])
    parts: list[RenderableType] = ["", indented(Text("what changed at the peak")), indented(table)]
    return [*parts, *_hidden(diff.groups)]


def _hidden(groups: Sequence[GroupDiff]) -> list[RenderableType]:
    hidden = groups[_ROWS:]
    if not hidden:
        return []
    size = signed_size(sum(row.delta_bytes for row in hidden))
    return [indented(Text(f"and {len(hidden)} more rows, {size} (all with --json)"))]


def _times(count: int) -> str:
    return f"{count:,}" if count else ""


def _what(kind: Kind) -> tuple[str, ...]:
    return (kind.op or "(no op)", kind.region_type, kind.data_type, kind.shape)


def _growth(rows: Sequence[RateDiff]) -> list[RenderableType]:
    return _per_step("what every step leaves", rows[:_ROWS], len(rows) - _ROWS)


def _churn(diff: AllocatorDiff) -> list[RenderableType]:
    """What a step allocates more or less of, without pieces of another size of the same."""
    if diff.before is None or diff.after is None:
        return []
    whole = max(diff.before.allocated_per_step or 0, diff.after.allocated_per_step or 0)
    rows = [
        row for row in diff.churn if abs(row.delta_bytes) >= _CHURN * whole and not row.is_pieces
    ]
    title = "what a step allocates"
    return _per_step(title, rows[:_CHURN_ROWS], len(rows) - _CHURN_ROWS)


def _per_step(title: str, rows: Sequence[RateDiff], hidden: int) -> list[RenderableType]:
    if not rows:
        return []
    told = any(row.text for row in rows)

    def cells(row: RateDiff) -> tuple[str, ...]:
        sizes = (signed_size(row.delta_bytes), *map(size_text, (row.before_bytes, row.after_bytes)))
        return (*sizes, *_what(row.kind), *((row.text,) if told else ()))

    columns = ("PER STEP", "BEFORE", "AFTER", *_WHAT, *(("WHAT HAPPENED",) if told else ()))
    table = plain_table(columns, map(cells, rows), right=columns[:3])
    parts: list[RenderableType] = ["", indented(Text(title)), indented(table)]
    if hidden > 0:
        parts.append(indented(Text(f"and {hidden} more rows (all with --json)")))
    return parts


def _findings(title: str, findings: Iterable[Finding]) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for finding in findings:
        told = Text(one_line(f"{title}: {finding.severity}: {finding.title}"), style="bold yellow")
        parts += ["", told]
        if title == "new":
            parts.append(indented(Text(one_line(finding.suggestion))))
    return parts
