"""Limits that a profile must pass, a baseline that it must not exceed, and in how much it fits."""

from __future__ import annotations

from dataclasses import replace

from peakline.check.allowance import Allowance
from peakline.check.baseline import baseline_checks
from peakline.check.history import Baseline
from peakline.check.programs import program_limit
from peakline.check.time import TimeState, time_baseline, time_limits, time_state_of
from peakline.check.units import SHARE
from peakline.check.verdict import ROWS, Check, Limits, held, unmeasured
from peakline.compare.programs import with_programs
from peakline.compare.state import AllocatorState, MemoryState, state_of
from peakline.errors import NotFoundError
from peakline.findings.memory_answer import MemoryAnswer, answer_memory
from peakline.findings.time_answer import answer_time
from peakline.memory.fit.answer import fits_of
from peakline.memory.fit.model import Fit, NoFit
from peakline.suggest import there_is
from peakline.tables import Profile
from peakline.text import size_text

_NAME = "limit"


def limit_checks(profile: Profile, limits: Limits, allocator: str | None) -> list[Check]:
    """The limit from which on all fit, for each allocator; none without one that is allowed.

    What cannot be replayed, or is no proof of the recorded addresses, fails and says why.
    """
    allowed = limits.max_limit_bytes
    if allowed is None:
        return []
    result, failed = fits_of(profile, allocator=allocator)
    if not result and not failed:
        return [unmeasured(_NAME, allocator or "", allowed, "no memory events in this profile")]
    checks = [*(_held(one, allowed) for one in result), *(_not(one, allowed) for one in failed)]
    return [replace(check, unit=limits.unit_of(_NAME)) for check in checks]


def _held(fit: Fit, allowed: int) -> Check:
    safe = fit.limits.safe_from
    if not fit.proof.proved:
        return unmeasured(_NAME, fit.allocator, allowed, fit.proof.reason)
    if fit.failed is not None:
        needed = fit.limits.smallest or fit.failed.needed_bytes
        reason = (
            f"it needs at least {size_text(needed)}, {size_text(allowed)} allowed ({fit.reason})"
        )
        if allowed < needed:
            return held(_NAME, fit.allocator, needed, allowed, reason)
        return unmeasured(_NAME, fit.allocator, allowed, reason)
    if safe is None:
        return unmeasured(_NAME, fit.allocator, allowed, "no limit was found that fits")
    how = "exact for the recorded order" if fit.exact else f"a bound: {fit.reason}"
    reason = f"it runs from {size_text(safe)} on, {size_text(allowed)} allowed ({how})"
    check = held(_NAME, fit.allocator, safe, allowed, reason)
    if check.passed or not any(low <= allowed <= (high or low) for low, high in fit.limits.fits):
        return check
    return replace(check, reason=f"{check.reason}; at that limit it runs, with a little more not")


def _not(one: NoFit, allowed: int) -> Check:
    return unmeasured(_NAME, one.allocator, allowed, one.reason)


def profile_checks(
    profile: Profile,
    limits: Limits,
    before: Baseline | None,
    allocator: str | None,
    *,
    everything: bool,
) -> tuple[MemoryState, TimeState, tuple[Check, ...]]:
    """The figures of a profile, and its checks; of programs and time where they count, or with
    ``everything``.

    Raises as `check_limits`.
    """
    answer, time = answer_memory(profile), None
    state = state_of(answer)
    if not state.allocators and answer.to_record:
        state = replace(state, nothing=f"{state.nothing}; {answer.to_record}")
    of_programs = before is not None and before.memory.programs
    if everything or limits.max_program_peak_bytes is not None or of_programs:
        state = with_programs(state, profile)
    if everything or limits.has_time or (before is not None and before.time is not None):
        compared = profile if everything or before is not None else None
        time = time_state_of(answer_time(profile), compared)
    checks = check_limits(state, limits, before, allocator=allocator, time=time)
    if limits.max_limit_bytes is not None:
        checks += tuple(limit_checks(profile, limits, allocator))
    return state, time or TimeState(), checks


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
    result: list[Check | None] = []
    for state in wanted:
        result += [_peak(state, limits), _growth(state, limits), _fragmentation(state, limits)]
    if not wanted:
        result += _nothing(allocator or "", after.nothing, limits)
    checks = [check for check in result if check is not None] + program_limit(after, limits)
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
