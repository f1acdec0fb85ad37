"""A profile against a baseline: the peak and the growth per step may not exceed it.

An allocator that only one of the two has cannot be compared: one that is gone breaks its limits,
for a job that ran elsewhere would pass otherwise; a new one breaks them with all it takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from peakline.check.verdict import ROWS, Check, held, unmeasured
from peakline.compare.memory import AllocatorDiff, compare
from peakline.compare.notes import signed_size
from peakline.compare.state import AllocatorState, MemoryState
from peakline.memory.grown import LEAK_BYTES, LEAK_SHARE
from peakline.text import size_text

_PEAK, _GROWTH = "peak against the baseline", "growth per step against the baseline"


def baseline_checks(
    before: MemoryState, after: MemoryState, tolerance: float, allocator: str | None
) -> list[Check]:
    """The two checks of every allocator of ``after``, and of those that only ``before`` has.

    ``allocator`` keeps one. A growth below that of a leak that would be told (`LEAK_BYTES` per
    step, or `LEAK_SHARE` of the peak) is none.
    """
    if not before.allocators:
        why = f"the baseline: {before.nothing or 'it holds nothing about memory'}"
        return [unmeasured(_PEAK, allocator or "", 0, why)]
    found: list[Check | None] = []
    for diff in compare(before, after).allocators:
        names = {state.allocator for state in (diff.before, diff.after) if state is not None}
        if allocator is not None and allocator not in names:
            continue
        found.append(_peak(diff, before, after, tolerance))
        if diff.before is not None and diff.after is not None:
            found.append(_growth(diff, diff.before, diff.after, tolerance))
    return [check for check in found if check is not None]


def _peak(diff: AllocatorDiff, before: MemoryState, after: MemoryState, tolerance: float) -> Check:
    base = 0 if diff.before is None else diff.before.peak_bytes
    limit = base * (1 + tolerance)
    if diff.after is None:
        why = after.nothing or f"the profile has no such allocator, only {_names(after)}"
        return unmeasured(_PEAK, diff.allocator, limit, why)
    for state, side in ((diff.before, "baseline"), (diff.after, "profile")):
        if state is not None and state.peak_unknown:
            why = f"in the {side}, {state.peak_unknown}"
            return unmeasured(_PEAK, diff.allocator, limit, why)
    peak = diff.after.peak_bytes
    if diff.before is None:
        reason = (
            f"{size_text(peak)} in use, and the baseline has no such allocator, only "
            f"{_names(before)}"
        )
    else:
        change = f"{peak / base - 1:+.1%}" if base else signed_size(peak)
        reason = (
            f"{size_text(peak)} in use, {size_text(base)} in the baseline ({change}), "
            f"{size_text(limit)} allowed"
        )
        if peak > limit:
            reason = "; ".join([reason, *diff.notes])
    grown = (row for row in diff.groups if row.delta_bytes > 0)
    rows = [
        row.kind.as_json()
        | {
            "before_bytes": row.before_bytes,
            "after_bytes": row.after_bytes,
            "delta_bytes": row.delta_bytes,
            "what": row.text,
        }
        for row in grown
    ]
    return held(_PEAK, diff.allocator, peak, limit, reason, tuple(rows[:ROWS]))


def _growth(
    diff: AllocatorDiff, before: AllocatorState, after: AllocatorState, tolerance: float
) -> Check:
    base, growth = before.growth_per_step, after.growth_per_step
    least = max(float(LEAK_BYTES), LEAK_SHARE * after.peak_bytes)
    limit = max((base or 0) * (1 + tolerance), least)
    if base is None:
        # There is nothing to compare with; the limit on growth itself needs no baseline.
        reason = f"not compared: in the baseline, {before.growth_unknown}"
        return Check(_GROWTH, diff.allocator, None, limit, passed=True, reason=reason)
    if growth is None:
        return unmeasured(_GROWTH, diff.allocator, limit, after.growth_unknown)
    reason = (
        f"every step leaves {size_text(growth)}, {size_text(base)} in the baseline, "
        f"{size_text(limit)} allowed"
    )
    return held(_GROWTH, diff.allocator, growth, limit, reason, _leaking(diff))


def _leaking(diff: AllocatorDiff) -> tuple[Mapping[str, object], ...]:
    rows: Iterable[Mapping[str, object]] = (
        row.kind.as_json()
        | {
            "before_bytes_per_step": round(row.before_bytes),
            "after_bytes_per_step": round(row.after_bytes),
        }
        for row in diff.growth
        if row.delta_bytes > 0
    )
    return tuple(rows)[:ROWS]


def _names(state: MemoryState) -> str:
    return ", ".join(one.name for one in state.allocators)
