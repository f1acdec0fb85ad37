"""Findings from growth: a leak, a cache that filled, memory that rose once, a sawtooth.

What a signature adds to memory is checked against the memory in use: where other memory went
down by as much (a new buffer of a variable for one from before the profile), nothing grew.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from peakline.findings.memory_peak import Finding
from peakline.memory.growth import AllocatorGrowth, GroupGrowth
from peakline.memory.lifetimes import DEALLOCATION, UNTRACKED_DEALLOCATION
from peakline.memory.pattern import (
    CACHE,
    LEAK,
    MIN_RISES,
    SAWTOOTH,
    SINGLE,
    STEADY,
    STEP_UP,
    WARM_UP,
)
from peakline.memory.replaced import without_replaced
from peakline.memory.signatures import History
from peakline.memory.single_pass import FOR_BACKWARD
from peakline.memory.trend import median_slope
from peakline.text import size_text

__all__ = ["growth_findings", "room_text", "signatures_told"]

LEAK_BYTES = 1024
"""A leak of fewer bytes per step is not told: a number kept per step (a loss) takes 256 or 512."""
LEAK_SHARE = 1e-5
"""... nor one of less than this share of the peak."""
SURE = 0.7
"""Growth is told with this confidence or more."""
RISEN = 0.05
"""A cache, and memory that rose once, are told from this share of the peak on."""
TOOTH = 0.1
"""A sawtooth is told when its teeth take this share of the peak or more, ..."""
TOOTHED = 0.8
"""... and this share of the steps."""
REAL = 0.5
"""The memory in use must have grown by this share of what the signatures grew by."""
SETTLED_STEPS = 2
"""Memory that rose once is told when so many steps went by since without a rise."""
SAME_WORK = 0.5
"""... and when at least `WORKED` steps before it allocated this share of what later ones do: what
a program makes before it begins to train is no surprise."""
WORKED = 3
SMALL = 1e-3
"""Of memory that rose once, a signature with less than this share of the rise is not told."""
UNTRACKED = 0.1
"""Growth is not told where so large a share of the deallocations cannot be followed."""
_HOLDS = frozenset((LEAK, CACHE, SAWTOOTH))
WORTH = 0.01
"""What has this share of all that a leak or a sawtooth brings per step is a row of its finding."""
IN_PHASE = 0.8
"""Teeth belong together when this share of the steps in which any of them falls are the same."""
FORECAST_STEPS = 100_000
"""A capacity that is further away than this is not spoken of in the title."""
_ROWS = 10
_FOLDED = re.compile(r"__cf__\d+$")
_RETRACED = (
    "These are constants that were folded into newly compiled functions: a function is traced anew "
    "in each {unit}. Give it fixed shapes or an `input_signature`, pass tensors and no Python "
    "numbers as arguments, and make it once, outside the loop."
)


def growth_findings(history: History, growth: AllocatorGrowth) -> list[Finding]:
    """What grows in one allocator, related signatures in one finding; nothing in a steady run."""
    number = history.lifetimes.allocators.index(growth.allocator)
    if not _can_tell(history, number):
        return []
    followed = _followed_regions(history, number)
    groups = [
        group
        for group in growth.groups
        if followed is None or group.signature.region_type in followed
    ]
    found = [
        _leak(growth, groups),
        _one_pass(growth, groups),
        _cache(growth, groups),
        _step_up(history, number, growth, groups),
        *(_sawtooth(growth, teeth) for teeth in _toothed(growth, groups)),
    ]
    return [finding for finding in found if finding is not None]


def signatures_told(
    history: History, number: int, findings: Sequence[Finding]
) -> npt.NDArray[np.bool_]:
    """Which signatures of allocator ``number`` a leak, a cache or a sawtooth among them holds."""
    signatures = history.signatures
    told = np.zeros(len(signatures), np.bool_)
    for row in (row for one in findings if one.kind in _HOLDS for row in one.rows):
        if row["op"] not in signatures.ops:  # what no signature explains
            continue
        mine = (signatures.allocator == number) & (
            signatures.op == signatures.ops.index(str(row["op"]))
        )
        # An op in all its forms stands for all its signatures.
        if row["forms"] == 1:
            mine &= signatures.region_type == signatures.region_types.index(str(row["region_type"]))
            mine &= signatures.data_type == signatures.data_types.index(str(row["data_type"]))
            mine &= signatures.shape == signatures.shapes.index(str(row["shape"]))
            size = row["buffer_bytes"]
            mine &= signatures.size == (size if isinstance(size, int) else -1)
        told |= mine
    return told


def _can_tell(history: History, number: int) -> bool:
    """Whether (nearly) all deallocations name what they end."""
    kinds = history.lifetimes.kind[history.rows_of(number)]
    lost = int((kinds == UNTRACKED_DEALLOCATION).sum())
    return lost <= UNTRACKED * (lost + int((kinds == DEALLOCATION).sum()))


def _followed_regions(history: History, number: int) -> set[str] | None:
    """The regions of which a buffer's end would be seen; None for all.

    Without figures of the allocator's own, that is known only where some buffer of the same
    region ended: what a log tells of outputs may have been allocated outside what is logged.
    """
    if history.reports[number]:
        return None
    signatures, begin = history.signatures, history.lifetimes.begin[history.rows_of(number)]
    regions = np.unique(signatures.region_type[signatures.codes[begin[begin >= 0]]])
    return {signatures.region_types[code] for code in regions.tolist()}


def _leak(growth: AllocatorGrowth, groups: Sequence[GroupGrowth]) -> Finding | None:
    least = max(LEAK_BYTES, LEAK_SHARE * growth.peak_bytes)
    found = [group for group in groups if group.pattern.kind == LEAK]
    found = [group for group in found if group.pattern.confidence >= SURE]
    if not any(group.pattern.bytes_per_step >= least for group in found):
        return None
    rate = sum(group.pattern.bytes_per_step for group in found)
    since = min(group.pattern.since for group in found)
    net = _without_others(growth, found)[max(since - 1, 0) :]
    if median_slope(net[-256:]) / growth.stride < REAL * rate:
        return None
    found.sort(key=lambda group: -group.pattern.bytes_per_step)
    worst, worth = found[0], _worth(found)
    unit = growth.marks.unit
    evidence = {
        **_common(growth, worst),
        "bytes_per_step": round(rate),
        "kept_bytes": sum(group.pattern.bytes for group in found),
        "confidence": round(worst.pattern.confidence, 3),
        "peak_bytes": growth.peak_bytes,
        "capacity_bytes": growth.capacity_bytes,
        "steps_left": growth.steps_left,
    }
    room = room_text(growth)
    few = ""
    if growth.steps < MIN_RISES:
        sure = f"confidence {worst.pattern.confidence:.0%}"
        few = f"; in {growth.steps} steps, none released ({sure})"
    return Finding(
        "leak",
        "warning",
        f"{_named(growth)}: {_rate(growth, worth, rate)} since "
        f"{growth.marks.title(worst.pattern.since)}: {_titles(worth)}{few}"
        f"{room and f'; {room}'}",
        evidence,
        _RETRACED.format(unit=unit)
        if _FOLDED.search(worst.signature.op)
        else f"Something keeps what each {unit} makes: look for a list, a dictionary, a history or "
        "a captured variable that holds these tensors, and keep numbers or copies of what is "
        "needed.",
        tuple(_row(growth, group) for group in worth),
    )


def _one_pass(growth: AllocatorGrowth, groups: Sequence[GroupGrowth]) -> Finding | None:
    """What one pass over layers holds, or repetitions of which none shows a release: no leak."""
    one_pass = growth.one_pass
    found = [group for group in groups if group.pattern.kind == SINGLE]
    if one_pass is None or not found or one_pass.bytes < RISEN * growth.peak_bytes:
        return None
    found.sort(key=lambda group: -group.pattern.bytes_per_step)
    worst, worth = found[0], _worth(found)
    is_backward, count = one_pass.held_for == FOR_BACKWARD, one_pass.layers
    each = size_text(one_pass.bytes / count)
    what = (
        f"kept for the backward pass, {count} layers, {each} each"
        if is_backward
        else f"{count} repetitions hold {each} each, and none shows a release"
    )
    return Finding(
        "one_pass",
        "info",
        f"{_named(growth)}: {what}: {_titles(worth)}",
        {
            **_common(growth, worst),
            "held_for": one_pass.held_for,
            "layers": count,
            "layer_bytes": round(one_pass.bytes / count),
            "live_bytes": one_pass.bytes,
            "peak_bytes": growth.peak_bytes,
        },
        "This is no leak: the backward pass needs it, and frees it. Recompute some of it there "
        "(torch.utils.checkpoint), or make the batch smaller, to hold less."
        if is_backward
        else "These may be layers of one pass, or steps of a loop that keeps what it makes: mark "
        "the steps, or record more of them, to tell which.",
        tuple(_row(growth, group) for group in worth),
    )


def _worth(found: Sequence[GroupGrowth]) -> list[GroupGrowth]:
    """Those that matter beside all of them together."""
    rate = sum(group.pattern.bytes_per_step for group in found)
    return [group for group in found if group.pattern.bytes_per_step >= WORTH * rate]


def _rate(growth: AllocatorGrowth, worth: Sequence[GroupGrowth], rate: float) -> str:
    """How much stays, and in how many steps where most bring nothing."""
    unit, steps = growth.marks.unit, len(growth.marks) - worth[0].pattern.since
    if not all(group.pattern.sparse for group in worth):
        return f"{size_text(rate)} more stay in memory with every {unit}"
    told = f"about {size_text(rate)} per {unit}"
    rises = {group.pattern.rises for group in worth}
    if len(rises) == growth.stride == 1:
        (number,) = rises
        each = sum(group.pattern.bytes for group in worth) / number
        told += f" ({size_text(each)} in {number} of {steps} {unit}s)"
    return f"{told} more stay in memory"


def _titles(found: Sequence[GroupGrowth]) -> str:
    """The first by name, and how many more there are."""
    others = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{found[0].signature.title.rstrip()}{others}"


def room_text(growth: AllocatorGrowth) -> str:
    """When the capacity is reached, in two digits: a rate tells no more. Empty where it is far."""
    left = growth.steps_left
    if left is None or left > FORECAST_STEPS:
        return ""
    if left == 0:
        return "the capacity is reached now"
    about = round(left, min(2 - len(str(left)), 0))
    unit = growth.marks.unit
    return f"the capacity is reached in about {about:,} more {unit}{'' if left == 1 else 's'}"


def _cache(growth: AllocatorGrowth, groups: Sequence[GroupGrowth]) -> Finding | None:
    found = [
        group
        for group in groups
        if group.pattern.kind == CACHE
        and group.pattern.confidence >= SURE
        and group.pattern.bytes >= RISEN * growth.peak_bytes
    ]
    if not found:
        return None
    worst = max(found, key=lambda group: group.pattern.bytes)
    net = _without_others(growth, found)
    base = net[worst.pattern.since - 1] if worst.pattern.since else net[0] - worst.series[0]
    total = sum(group.pattern.bytes for group in found)
    if np.median(net[worst.pattern.until :]) - base < REAL * total:
        return None
    since, until = worst.pattern.since, worst.pattern.until
    stopped = until < len(growth.marks) - 1
    return Finding(
        "cache",
        "info",
        f"{_named(growth)}: {_titles([worst])} grew to {size_text(worst.series[-1])} from "
        f"{growth.marks.title(since)} to {growth.marks.title(until)}, "
        + ("and has stopped" if stopped else "and grows less and less"),
        {
            **_common(growth, worst),
            "until_step": _step(growth, until),
            "kept_bytes": total,
            "confidence": round(worst.pattern.confidence, 3),
            "peak_bytes": growth.peak_bytes,
        },
        "This is no leak: what it holds is part of every later peak. Bound it, or fill it before "
        "the memory for training is planned.",
        tuple(_row(growth, group) for group in found[:_ROWS]),
    )


def _step_up(
    history: History, number: int, growth: AllocatorGrowth, groups: Sequence[GroupGrowth]
) -> Finding | None:
    risen = [group for group in groups if group.pattern.kind == STEP_UP]
    if not risen:
        return None
    first = max(risen, key=lambda group: group.pattern.bytes).pattern.since
    found = [group for group in risen if abs(group.pattern.since - first) <= 1]
    last = max(group.pattern.until for group in found)
    net = _without_others(growth, found)
    begun = min(group.pattern.since for group in found)
    found = without_replaced(history, number, growth, found, begun, last)
    total = sum(group.pattern.bytes for group in found)
    found = [group for group in found if group.pattern.bytes >= SMALL * total]
    total = sum(group.pattern.bytes for group in found)
    if not found or total < RISEN * growth.peak_bytes:
        return None
    if len(growth.marks) - 1 - last < SETTLED_STEPS:
        return None
    if np.median(net[last:]) - np.median(net[:first]) < REAL * total:
        return None
    made = _allocated_per_step(history, number, growth)
    if (made[:first] >= SAME_WORK * np.median(made[last:])).sum() < WORKED:
        return None
    worst = found[0]
    return Finding(
        "step_up",
        "info",
        f"{_named(growth)}: memory rose by {size_text(total)} in {growth.marks.title(first)} "
        f"and stayed: {_titles(found)}",
        {
            **_common(growth, worst),
            "kept_bytes": total,
            "peak_bytes": growth.peak_bytes,
        },
        "What is made late (an optimizer's slots, a second model, a cache) is missing in the peak "
        "of the first steps: make it at the start, so that memory runs out there or not at all.",
        tuple(_row(growth, group) for group in found[:_ROWS]),
    )


def _toothed(growth: AllocatorGrowth, groups: Sequence[GroupGrowth]) -> list[list[GroupGrowth]]:
    """The sawteeth that matter: those released in the same steps together, the highest first."""
    found = [
        group
        for group in groups
        if group.pattern.kind == SAWTOOTH and group.pattern.confidence >= TOOTHED
    ]
    together: list[list[GroupGrowth]] = []
    for group in sorted(found, key=lambda group: -group.pattern.bytes):
        same = next((teeth for teeth in together if _in_phase(teeth[0], group)), None)
        if same is None:
            together.append([group])
        else:
            same.append(group)
    least = TOOTH * growth.peak_bytes
    return [teeth for teeth in together if sum(one.pattern.bytes for one in teeth) >= least]


def _in_phase(one: GroupGrowth, other: GroupGrowth) -> bool:
    falls, others = np.diff(one.series) < 0, np.diff(other.series) < 0
    return bool((falls & others).sum() >= IN_PHASE * (falls | others).sum())


def _sawtooth(growth: AllocatorGrowth, teeth: Sequence[GroupGrowth]) -> Finding:
    unit, worst, worth = growth.marks.unit, teeth[0], _worth(teeth)
    pattern = worst.pattern
    rate = sum(group.pattern.bytes_per_step for group in teeth)
    height = sum(group.pattern.bytes for group in teeth)
    every = f"about every {pattern.period} {unit}s"
    when = every if pattern.period else "at irregular intervals"
    verbs = "gathers {} per {} and is" if len(worth) == 1 else "gather {} per {} and are"
    return Finding(
        "sawtooth",
        "info",
        f"{_named(growth)}: {_titles(worth)} {verbs.format(size_text(rate), unit)} released "
        f"{when}: that adds up to {size_text(height)} to the peak",
        {
            **_common(growth, worst),
            "bytes_per_step": round(rate),
            "height_bytes": height,
            "period_steps": pattern.period or None,
            "confidence": round(pattern.confidence, 3),
            "peak_bytes": growth.peak_bytes,
        },
        "Release it more often (flush the buffer, log more often, break the reference cycle that "
        "waits for Python's garbage collector): the peak falls by what is gathered.",
        tuple(_row(growth, group) for group in worth),
    )


def _without_others(growth: AllocatorGrowth, found: Sequence[GroupGrowth]) -> npt.NDArray[np.int64]:
    """The memory in use at each step's end, less the other groups that grow or come and go."""
    net = growth.total.copy()
    for group in growth.groups:
        if group.pattern.kind not in {STEADY, WARM_UP} and all(group is not one for one in found):
            net -= group.series
    return net


def _allocated_per_step(
    history: History, number: int, growth: AllocatorGrowth
) -> npt.NDArray[np.int64]:
    """Bytes handed out between one mark and the next."""
    own = np.where(history.lifetimes.allocator == number, history.allocated, 0)
    total = np.concatenate([[0], np.cumsum(own)])
    bounds = np.concatenate([[growth.marks.start], growth.marks.rows])
    made: npt.NDArray[np.int64] = np.diff(total[bounds])
    return made


def _common(growth: AllocatorGrowth, group: GroupGrowth) -> dict[str, object]:
    signature = group.signature
    return {
        "allocator": growth.allocator,
        "op": signature.op,
        "region_type": signature.region_type,
        "data_type": signature.data_type,
        "shape": signature.shape,
        "buffer_bytes": signature.bytes,
        "since_step": _step(growth, group.pattern.since),
        "since_step_name": growth.marks.label(group.pattern.since),
        "steps": growth.steps,
        "steps_found_by": growth.marks.found_by,
        "steps_detail": growth.marks.detail,
    }


def _row(growth: AllocatorGrowth, group: GroupGrowth) -> dict[str, object]:
    pattern = group.pattern
    return group.signature.as_row() | {
        "buffer_bytes": group.signature.bytes,
        "forms": group.forms,
        "pattern": pattern.kind,
        "since_step": _step(growth, pattern.since),
        "bytes_per_step": round(pattern.bytes_per_step),
        "kept_bytes": pattern.bytes,
        "held_bytes": group.held_bytes,
        "rises": pattern.rises,
        "confidence": round(pattern.confidence, 3),
    }


def _step(growth: AllocatorGrowth, place: int) -> int:
    """The id of a step; its place among the repetitions where the profile has no steps."""
    number = growth.marks.ids[place]
    return growth.marks.number(place) if number is None else number


def _named(growth: AllocatorGrowth) -> str:
    return growth.allocator or "(unnamed allocator)"
