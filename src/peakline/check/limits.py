"""Limits that a profile must pass, and a baseline that it must not exceed.

Every allocator must pass every limit. What cannot be measured fails and says why: a
gate that passes because it saw nothing is worse than none.
"""

from __future__ import annotations

from dataclasses import replace

from peakline.check.allowance import Allowance
from peakline.check.baseline import baseline_checks
from peakline.check.history import Baseline
from peakline.check.programs import program_limit
from peakline.check.time import TimeState, time_baseline, time_limits
from peakline.check.units import SHARE
from peakline.check.verdict import ROWS, Check, Limits, held, unmeasured
from peakline.compare.state import AllocatorState, MemoryState, state_of
from peakline.errors import NotFoundError
from peakline.findings.memory_answer import MemoryAnswer
from peakline.suggest import there_is
from peakline.text import size_text


def check_limits(
    answer: MemoryAnswer | MemoryState,
    limits: Limits,
    baseline: MemoryAnswer | MemoryState | Baseline | None = None,
    *,
    allocator: str | None = None,
    time: TimeState | None = None,
) -> tuple[Check, ...]:
    """Hold ``limits``, and the ``baseline``, against every allocator of ``answer`` in turn.

    ``allocator`` chooses one; raises NotFoundError where the answer has others only. An answer
    without anything about memory breaks every limit, a state without programs every limit on those.
    Limits on ``time`` are held against it, where it is given; so is that of a `Baseline`.
    """
    after = answer if isinstance(answer, MemoryState) else state_of(answer)
    names = [one.allocator for one in after.allocators]
    if allocator is not None and names and allocator not in names:
        raise NotFoundError(
            f"no allocator {allocator!r} in the profile{there_is(allocator, names)}"
        )
    wanted = [one for one in after.allocators if allocator in {None, one.allocator}]
    found: list[Check | None] = []
    for state in wanted:
        found += [_peak(state, limits), _growth(state, limits), _fragmentation(state, limits)]
    if not wanted:
        found += _nothing(allocator or "", after.nothing, limits)
    checks = [check for check in found if check is not None] + program_limit(after, limits)
    if time is not None:
        checks += time_limits(time, limits)
    if isinstance(baseline, Baseline):
        allowance = Allowance(limits.tolerance, baseline.runs)
        if baseline.has_memory:
            checks += baseline_checks(baseline.memory, after, allowance, allocator)
        if time is not None and baseline.time is not None:
            checks += time_baseline(baseline.time, time, allowance)
    elif baseline is not None:
        before = baseline if isinstance(baseline, MemoryState) else state_of(baseline)
        checks += baseline_checks(before, after, Allowance(limits.tolerance), allocator)
    return tuple(checks)


def _nothing(allocator: str, why: str, limits: Limits) -> list[Check]:
    """Every limit, failed because there is nothing to measure."""
    limited = (
        ("peak", limits.max_peak_bytes),
        ("growth per step", limits.max_growth_per_step_bytes),
        ("fragmentation", limits.max_fragmentation),
    )
    return [
        replace(
            unmeasured(name, allocator, limit, why),
            unit=limits.unit_of(name, *((SHARE,) if name == "fragmentation" else ())),
        )
        for name, limit in limited
        if limit is not None
    ]


def _peak(state: AllocatorState, limits: Limits) -> Check | None:
    limit, unit = limits.max_peak_bytes, limits.unit_of("peak")
    if limit is None:
        return None
    if state.peak_unknown and state.peak_bytes <= limit:
        return replace(unmeasured("peak", state.allocator, limit, state.peak_unknown), unit=unit)
    peak, most = unit.pair(state.peak_bytes, limit)
    reason = f"{peak} in use, {most} allowed"
    if state.peak_bytes > limit and state.groups:
        largest = state.groups[0]
        reason += f"; largest: {largest.kind.title}, {size_text(largest.bytes)}"
    rows = tuple(group.as_json() for group in state.groups[:ROWS])
    check = held("peak", state.allocator, state.peak_bytes, limit, reason, rows)
    return replace(check, unit=unit)


def _growth(state: AllocatorState, limits: Limits) -> Check | None:
    limit, unit = limits.max_growth_per_step_bytes, limits.unit_of("growth per step")
    if limit is None:
        return None
    growth = state.growth_per_step
    if growth is None:
        check = unmeasured("growth per step", state.allocator, limit, state.growth_unknown)
        return replace(check, unit=unit)
    left, most = unit.pair(growth, limit)
    reason = f"every step leaves {left}, {most} allowed"
    if growth > limit and state.leaks:
        reason += f"; most of it {state.leaks[0].kind.title}"
    rows = tuple(leak.as_json() for leak in state.leaks[:ROWS])
    return replace(held("growth per step", state.allocator, growth, limit, reason, rows), unit=unit)


def _fragmentation(state: AllocatorState, limits: Limits) -> Check | None:
    limit, measured = limits.max_fragmentation, state.fragmentation
    unit = limits.unit_of("fragmentation", SHARE)
    if limit is None:
        return None
    if measured is None:
        why = "the profile has neither the allocator's figure nor addresses"
        return replace(unmeasured("fragmentation", state.allocator, limit, why), unit=unit)
    how = ", made from addresses" if state.fragmentation_rebuilt else ""
    share, most = unit.pair(measured, limit)
    reason = (
        f"{share} of the free memory at the peak is not in its largest piece{how}, {most} allowed"
    )
    return replace(held("fragmentation", state.allocator, measured, limit, reason), unit=unit)
