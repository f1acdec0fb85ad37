"""A profile against a baseline: the peak and the growth per step may not exceed it.

An allocator that only one of the two has cannot be compared: one that is gone breaks its limits,
for a job that ran elsewhere would pass otherwise; a new one breaks them with all it takes. What
compiled programs need is compared too, where the baseline has any (`peakline.check.programs`).

A repository can hold what ``peakline check --json`` or ``peakline memory --json`` wrote in place of
the profile. The document of ``check`` has everything that is compared; that of ``memory`` has no
growth, so only peaks are compared with it, and of programs those that need most of a device.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from peakline.check.allowance import Allowance
from peakline.check.programs import program_baseline
from peakline.check.units import BYTES
from peakline.check.verdict import ROWS, Check, held, unmeasured
from peakline.compare.memory import AllocatorDiff, compare
from peakline.compare.programs import value_kind
from peakline.compare.rows import signed_size
from peakline.compare.state import (
    AllocatorState,
    Kind,
    MemoryState,
    ProgramState,
    groups_of,
    rates_of,
)
from peakline.errors import InputError
from peakline.memory.growth.grown import LEAK_BYTES, LEAK_SHARE
from peakline.memory.signatures import normal_shape
from peakline.text import size_text, source_text

PEAK, GROWTH = "peak", "growth per step"
_PEAK, _GROWTH = "peak against the baseline", "growth per step against the baseline"


def baseline_checks(
    before: MemoryState, after: MemoryState, allowance: Allowance, allocator: str | None
) -> list[Check]:
    """The two checks of every allocator of ``after``, and of those that only ``before`` has; then
    those of programs.

    ``allocator`` chooses one, and no programs. A growth below that of a leak that would be reported
    (`LEAK_BYTES` per step, or `LEAK_SHARE` of the peak) is none.
    """
    programs = [] if allocator is not None else program_baseline(before, after, allowance)
    if programs and not before.allocators:
        return programs
    if not before.allocators:
        why = f"the baseline: {before.nothing or 'it holds nothing about memory'}"
        return [unmeasured(_PEAK, allocator or "", 0, why)]
    result: list[Check | None] = []
    for diff in compare(before, after).allocators:
        names = {state.allocator for state in (diff.before, diff.after) if state is not None}
        if allocator is not None and allocator not in names:
            continue
        result.append(_peak(diff, before, after, allowance))
        if diff.before is not None and diff.after is not None:
            result.append(_growth(diff, diff.before, diff.after, allowance))
    return [*(check for check in result if check is not None), *programs]


def _peak(
    diff: AllocatorDiff, before: MemoryState, after: MemoryState, allowance: Allowance
) -> Check:
    base, limit, runs = 0.0, 0.0, ""
    if diff.before is not None:
        key = (PEAK, diff.before.allocator)
        may = allowance.of(key, BYTES, diff.before.peak_bytes)
        base, limit = may.base, may.limit
        if may.runs > 1:
            runs = f" ± {size_text(may.spread or 0)} ({may.runs:,} runs)"
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
            f"{size_text(peak)} in use, {size_text(base)}{runs} in the baseline ({change}), "
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
    check = held(_PEAK, diff.allocator, peak, limit, reason, tuple(rows[:ROWS]))
    return check if diff.before is None else replace(check, base=f"{size_text(base)}{runs}")


def _growth(
    diff: AllocatorDiff, before: AllocatorState, after: AllocatorState, allowance: Allowance
) -> Check:
    base, growth = before.growth_per_step, after.growth_per_step
    least = max(float(LEAK_BYTES), LEAK_SHARE * after.peak_bytes)
    may = None if base is None else allowance.of((GROWTH, before.allocator), BYTES, base)
    limit = max(0 if may is None else may.limit, least)
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
    rows: list[Mapping[str, object]] = [
        row.kind.as_json()
        | {
            "before_bytes_per_step": round(row.before_bytes),
            "after_bytes_per_step": round(row.after_bytes),
        }
        for row in diff.growth
        if row.delta_bytes > 0
    ]
    check = held(_GROWTH, diff.allocator, growth, limit, reason, tuple(rows[:ROWS]))
    if may is None or may.runs == 1:
        return replace(check, base=size_text(base))
    spread = size_text(may.spread or 0)
    return replace(check, base=f"{size_text(may.base)} ± {spread} ({may.runs:,} runs)")


def _names(state: MemoryState) -> str:
    return ", ".join(one.name for one in state.allocators)


_START = re.compile(rb'\s*\{\s*"(profile|passed|checks|allocators|findings|warnings)"\s*:')
_LARGEST = 2**62
_VALUE = ("op_name", "instruction", "source_file", "kind", "shape")
_NO_GROWTH = "the file has no growth; one that peakline check --json wrote has it"


def is_baseline(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is such a document, and no profile."""
    return _START.match(head) is not None


def write_baseline(state: MemoryState) -> list[dict[str, object]]:
    """``allocators`` of ``peakline check --json``: all that `read_baseline` needs."""
    return [
        one.as_json()
        | {
            "peak_unknown": one.peak_unknown,
            "growth_unknown": one.growth_unknown,
            "peak_buffers": [group.as_json() for group in one.groups],
            "leaks": [leak.as_json() for leak in one.leaks],
        }
        for one in state.allocators
    ]


def memory_figures(state: MemoryState) -> dict[tuple[str, str], float]:
    """The peaks and growths that are known, by the check's name and the allocator's."""
    result: dict[tuple[str, str], float] = {}
    for one in state.allocators:
        if not one.peak_unknown:
            result[PEAK, one.allocator] = one.peak_bytes
        if one.growth_per_step is not None:
            result[GROWTH, one.allocator] = one.growth_per_step
    return result


def read_baseline(content: bytes, name: str) -> MemoryState:
    """The figures in a document of ``peakline check --json`` or ``peakline memory --json``.

    Raises InputError, with the file's ``name``, where it is neither or its peak buffers do not
    add up.
    """
    try:
        document = json.loads(content)
        allocators = [_allocator(row) for row in _rows(_object(document), "allocators")]
        programs = dict.fromkeys(_program(row) for row in _rows(document, "programs", []))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{name}: is no baseline that peakline check --json or memory --json wrote: {error}"
        ) from error
    names = [one.allocator for one in allocators]
    if len(set(names)) != len(names):
        raise InputError(f"{name}: names an allocator twice")
    nothing = "" if allocators else "it names no allocator"
    return MemoryState(tuple(allocators), nothing=nothing, programs=tuple(programs))


def _program(row: Mapping[str, object]) -> ProgramState:
    number, peak = row.get("program_id"), row.get("peak_bytes")
    return ProgramState(
        _text(row, "module"),
        None if number is None else _size(row, "program_id", 2**64 - 1),
        None if peak is None else _size(row, "peak_bytes"),
        groups=groups_of(
            (
                _value(buffer),
                _size(buffer, "bytes"),
                1 if "kind" in buffer else _size(buffer, "count"),
            )
            for buffer in _rows(row, "peak_buffers")
        ),
    )


def _value(row: Mapping[str, object]) -> Kind:
    """What a value is, of a group of ``check`` or a value of ``memory``."""
    if "kind" not in row:
        return _kind(row)
    texts = {name: _text(row, name, "") if row.get(name) else "" for name in _VALUE}
    line = None if row.get("source_line") is None else _size(row, "source_line")
    texts["source_file"] = source_text(texts["source_file"], line)
    return value_kind(*texts.values())


def _allocator(row: Mapping[str, object]) -> AllocatorState:
    growth = _rate(row, "growth_per_step_bytes")
    steps = row.get("steps")
    reported = row.get("reported")
    state = AllocatorState(
        allocator=_text(row, "allocator"),
        peak_bytes=_size(row, "peak_bytes"),
        groups=groups_of(
            (_kind(buffer), _size(buffer, "bytes"), _size(buffer, "count"))
            for buffer in _rows(row, "peak_buffers")
        ),
        peak_unknown=_text(row, "peak_unknown", ""),
        reported=reported if isinstance(reported, bool) else None,
        steps=None if steps is None else _size(row, "steps"),
        growth_per_step=growth,
        growth_unknown="" if growth is not None else _text(row, "growth_unknown", _NO_GROWTH),
        leaks=rates_of(
            (_kind(leak), float(_size(leak, "bytes_per_step")), 0)
            for leak in _rows(row, "leaks", [])
        ),
        fragmentation=_rate(row, "fragmentation_at_peak"),
        allocated_per_step=_rate(row, "allocated_per_step_bytes"),
    )
    if sum(group.bytes for group in state.groups) != state.peak_bytes:
        raise ValueError(f"the peak buffers of {state.name} do not add up to its peak")
    return state


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError("an object is expected")  # noqa: TRY004 (the document's value)
    return cast("Mapping[str, object]", value)


def _rows(
    row: Mapping[str, object], name: str, default: Sequence[object] | None = None
) -> list[Mapping[str, object]]:
    value = row.get(name, default)
    if not isinstance(value, list):
        raise ValueError(f"{name} is no list")  # noqa: TRY004 (the document's value)
    return [_object(one) for one in value]


def _text(row: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = row.get(name, default)
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")  # noqa: TRY004 (the document's value)
    return value


def _size(row: Mapping[str, object], name: str, largest: int = _LARGEST) -> int:
    # (unattributed) may be negative.
    value = row.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > largest:
        raise ValueError(f"{name} is no number of bytes")
    return value


def _rate(row: Mapping[str, object], name: str) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise ValueError(f"{name} is no positive number")
    return float(value)


def _kind(row: Mapping[str, object]) -> Kind:
    names = ("op", "region_type", "data_type", "shape")
    op, region, data_type, shape = (_text(row, name) for name in names)
    return Kind(op, region, data_type, normal_shape(shape))
