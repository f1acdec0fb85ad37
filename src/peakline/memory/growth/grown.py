"""What of a growth deserves attention: a leak, a cache that filled, a rise that stayed, a sawtooth.

What a signature adds to memory is checked against the memory in use: where other memory went
down by as much (a new buffer of a variable for one from before the profile), nothing grew. A
function that is compiled anew makes its constants again and frees those that it had. The new ones
are seen to grow; that the old ones went is seen by their deallocations alone, which find no buffer
of the profile, or one that a source says was there before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.deadline import checked
from peakline.kernels.memory_layout import DEALLOCATION, UNTRACKED_DEALLOCATION
from peakline.memory.crossings import find_crossing
from peakline.memory.growth.pattern import (
    CACHE,
    LEAK,
    SAWTOOTH,
    SINGLE,
    STEADY,
    STEP_UP,
    WARM_UP,
    median_slope,
)
from peakline.memory.growth.series import AllocatorGrowth, GroupGrowth
from peakline.memory.signatures import History, Signature, buffer_sizes
from peakline.shown import Brief


def without_replaced(
    history: History,
    number: int,
    growth: AllocatorGrowth,
    groups: Sequence[GroupGrowth],
    first: int,
    last: int,
) -> list[GroupGrowth]:
    """``groups`` less what took the place of old memory in the steps ``first`` to ``last``.

    A new buffer takes the place of an old one for which as many bytes had been requested, once for
    each that was freed; the groups with the fewest bytes come first. Those of which nothing is
    left are left out; the others come in order of their bytes.
    """
    marks = growth.marks.rows
    begin = int(marks[first - 1]) if first else growth.marks.start
    freed = _freed_before_profile(history, number, begin, int(marks[last]))
    made = _made(history, number, begin, marks[last : last + 1])
    left = []
    for group in checked(sorted(groups, key=lambda one: one.pattern.bytes), 4):
        net = group.pattern.bytes
        for (signature, size), count in made.items():
            if size and _belongs(signature, group.signature):
                taken = min(count, freed[size], net // size)
                freed[size] -= taken
                net -= taken * size
        if net > 0:
            left.append(replace(group, pattern=replace(group.pattern, bytes=net)))
    return sorted(left, key=lambda group: -group.pattern.bytes)


def _freed_before_profile(history: History, number: int, begin: int, end: int) -> Counter[int]:
    """How many buffers from before the profile were freed between two records, by their bytes."""
    lifetimes, events = history.lifetimes, history.events
    rows = np.arange(begin, min(end, history.rows))
    rows = rows[(lifetimes.allocator[rows] == number) & (lifetimes.kind[rows] == DEALLOCATION)]
    ended = lifetimes.begin[rows]
    chosen = np.zeros(history.rows, np.bool_)
    chosen[rows[ended < 0]] = True
    _, requested = buffer_sizes(events, chosen)
    known = ended[ended >= 0]
    sizes = [
        *requested[rows[ended < 0]].tolist(),
        *history.requested[known[history.was_there[known]]].tolist(),
    ]
    return Counter(sizes)


def _made(
    history: History, number: int, begin: int, mark: np.ndarray
) -> Counter[tuple[Signature, int]]:
    """The buffers made since ``begin`` that live across the mark, by signature and bytes."""
    rows = find_crossing(history, number, mark).rows
    rows = rows[rows >= begin]
    codes, sizes = history.signatures.codes[rows], history.requested[rows]
    pairs, counts = np.unique(np.stack([codes.astype(np.int64), sizes]), axis=1, return_counts=True)
    return Counter(
        {
            (history.signatures[code], size): count
            for code, size, count in zip(*pairs.tolist(), counts.tolist(), strict=True)
        }
    )


def _belongs(one: Signature, group: Signature) -> bool:
    """Whether a signature is in a group, which may stand for an op in all its shapes."""
    if one == group:
        return True
    if group.shape or group.bytes is not None or one.op != group.op:
        return False
    return group.region_type in {"", one.region_type} and group.data_type in {"", one.data_type}


LEAK_BYTES = 1024
"""A leak of fewer bytes per step is none: a number that is stored per step (a loss) takes 256 or
512."""
LEAK_SHARE = 1e-5
"""... nor is one of less than this share of the peak."""
SURE = 0.7
"""Growth counts with this confidence or more."""
RISEN = 0.05
"""A cache, a pass over layers and memory that rose once count from this share of the peak on."""
TOOTH = 0.1
"""A sawtooth counts when its teeth take this share of the peak or more, ..."""
TOOTHED = 0.8
"""... and this share of the steps."""
REAL = 0.5
"""The memory in use must have grown by this share of what the signatures grew by."""
SETTLED_STEPS = 2
"""Memory rose once when so many steps went by since without a rise, ..."""
SAME_WORK = 0.3
"""... and when at least `WORKED` steps before it allocated this share of what later ones do: what
a program makes before it begins to train is no surprise."""
WORKED = 3
SMALL = 1e-3
"""Of memory that rose once, a signature with less than this share of the rise is left out."""
UNTRACKED = 0.1
"""Growth is not known where so large a share of the deallocations cannot be followed."""
WORTH = 0.01
"""What has this share of all that a leak or a sawtooth brings per step is worth a row."""
IN_PHASE = 0.8
"""Teeth belong together when this share of the steps in which any of them falls are the same."""
ROWS = 10
"""So many signatures of a cache, or of a rise, are named."""

_Groups = tuple[GroupGrowth, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Grown(Brief):
    """The growth of one allocator that deserves attention, related signatures together.

    Each is empty where there is none. A leak, a pass and each of ``sawteeth`` have the group first
    that matters most, and hold also those that are not `worth` a row; ``rose`` is the place of the
    step in which ``step_up`` began.
    """

    leak: _Groups = ()
    one_pass: _Groups = ()
    cache: _Groups = ()
    step_up: _Groups = ()
    sawteeth: tuple[_Groups, ...] = ()
    rose: int = 0


def worth(result: Sequence[GroupGrowth]) -> _Groups:
    """Those that matter beside all of them together."""
    rate = sum(group.pattern.bytes_per_step for group in result)
    return tuple(group for group in result if group.pattern.bytes_per_step >= WORTH * rate)


def find_grown(history: History, growth: AllocatorGrowth) -> Grown:
    """What grows in one allocator; nothing in a steady run."""
    number = history.lifetimes.allocators.index(growth.allocator)
    if not _names_what_ends(history, number):
        return Grown()
    followed = _followed_regions(history, number)
    groups = [
        group
        for group in growth.groups
        if followed is None or group.signature.region_type in followed
    ]
    step_up, rose = _step_up(history, number, growth, groups)
    return Grown(
        _leak(growth, groups),
        _one_pass(growth, groups),
        _cache(growth, groups),
        step_up,
        _sawteeth(growth, groups),
        rose,
    )


def signatures_held(history: History, number: int, grown: Grown) -> BoolArray:
    """Which signatures of allocator ``number`` a leak, a cache or a sawtooth holds."""
    signatures = history.signatures
    held = np.zeros(len(signatures), np.bool_)
    teeth = (group for groups in grown.sawteeth for group in worth(groups))
    for group in (*worth(grown.leak), *grown.cache[:ROWS], *teeth):
        one = group.signature
        if one.op not in signatures.ops:  # what no signature explains
            continue
        mine = (signatures.allocator == number) & (signatures.op == signatures.ops.index(one.op))
        # An op in all its forms stands for all its signatures.
        if group.forms == 1:
            mine &= signatures.region_type == signatures.region_types.index(one.region_type)
            mine &= signatures.data_type == signatures.data_types.index(one.data_type)
            mine &= signatures.shape == signatures.shapes.index(one.shape)
            mine &= signatures.size == (-1 if one.bytes is None else one.bytes)
        held |= mine
    return held


def _names_what_ends(history: History, number: int) -> bool:
    """Whether (nearly) all deallocations name what they end."""
    kinds = history.lifetimes.kind[history.rows_of(number)]
    lost = int((kinds == UNTRACKED_DEALLOCATION).sum())
    return lost <= UNTRACKED * (lost + int((kinds == DEALLOCATION).sum()))


def _followed_regions(history: History, number: int) -> set[str] | None:
    """The regions of which a buffer's end would be seen; None for all.

    Without figures of the allocator's own, that is known only where some buffer of the same
    region ended: what a log says of outputs may have been allocated outside what is logged.
    """
    if history.reports[number]:
        return None
    signatures, begin = history.signatures, history.lifetimes.begin[history.rows_of(number)]
    regions = np.unique(signatures.region_type[signatures.codes[begin[begin >= 0]]])
    return {signatures.region_types[code] for code in regions.tolist()}


def _of(groups: Sequence[GroupGrowth], kind: str, confidence: float = 0.0) -> list[GroupGrowth]:
    return [
        group
        for group in groups
        if group.pattern.kind == kind and group.pattern.confidence >= confidence
    ]


def _leak(growth: AllocatorGrowth, groups: Sequence[GroupGrowth]) -> _Groups:
    least = max(LEAK_BYTES, LEAK_SHARE * growth.peak_bytes)
    result = _of(groups, LEAK, SURE)
    if not any(group.pattern.bytes_per_step >= least for group in result):
        return ()
    rate = sum(group.pattern.bytes_per_step for group in result)
    since = min(group.pattern.since for group in result)
    net = _without_others(growth, result)[max(since - 1, 0) :]
    if median_slope(net[-256:]) / growth.stride < REAL * rate:
        return ()
    return tuple(sorted(result, key=lambda group: -group.pattern.bytes_per_step))


def _one_pass(growth: AllocatorGrowth, groups: Sequence[GroupGrowth]) -> _Groups:
    """What one pass over layers holds, or repetitions of which none shows a release: no leak."""
    if growth.one_pass is None or growth.one_pass.bytes < RISEN * growth.peak_bytes:
        return ()
    return tuple(sorted(_of(groups, SINGLE), key=lambda group: -group.pattern.bytes_per_step))


def _cache(growth: AllocatorGrowth, groups: Sequence[GroupGrowth]) -> _Groups:
    least = RISEN * growth.peak_bytes
    result = [group for group in _of(groups, CACHE, SURE) if group.pattern.bytes >= least]
    if not result:
        return ()
    worst = max(result, key=lambda group: group.pattern.bytes)
    net = _without_others(growth, result)
    base = net[worst.pattern.since - 1] if worst.pattern.since else net[0] - worst.series[0]
    total = sum(group.pattern.bytes for group in result)
    if np.median(net[worst.pattern.until :]) - base < REAL * total:
        return ()
    return tuple(result)


def _step_up(
    history: History, number: int, growth: AllocatorGrowth, groups: Sequence[GroupGrowth]
) -> tuple[_Groups, int]:
    risen = _of(groups, STEP_UP)
    if not risen:
        return (), 0
    first = max(risen, key=lambda group: group.pattern.bytes).pattern.since
    result = [group for group in risen if abs(group.pattern.since - first) <= 1]
    last = max(group.pattern.until for group in result)
    net = _without_others(growth, result)
    begun = min(group.pattern.since for group in result)
    result = without_replaced(history, number, growth, result, begun, last)
    total = sum(group.pattern.bytes for group in result)
    result = [group for group in result if group.pattern.bytes >= SMALL * total]
    total = sum(group.pattern.bytes for group in result)
    if not result or total < RISEN * growth.peak_bytes:
        return (), 0
    if len(growth.marks) - 1 - last < SETTLED_STEPS:
        return (), 0
    if np.median(net[last:]) - np.median(net[:first]) < REAL * total:
        return (), 0
    made = _allocated_per_step(history, number, growth)
    if (made[:first] >= SAME_WORK * np.median(made[last:])).sum() < WORKED:
        return (), 0
    return tuple(result), first


def _sawteeth(growth: AllocatorGrowth, groups: Sequence[GroupGrowth]) -> tuple[_Groups, ...]:
    """The sawteeth that matter: those released in the same steps together, the highest first."""
    together: list[list[GroupGrowth]] = []
    for group in sorted(_of(groups, SAWTOOTH, TOOTHED), key=lambda group: -group.pattern.bytes):
        same = next((teeth for teeth in together if _in_phase(teeth[0], group)), None)
        if same is None:
            together.append([group])
        else:
            same.append(group)
    least = TOOTH * growth.peak_bytes
    return tuple(
        tuple(teeth) for teeth in together if sum(one.pattern.bytes for one in teeth) >= least
    )


def _in_phase(one: GroupGrowth, other: GroupGrowth) -> bool:
    falls, others = np.diff(one.series) < 0, np.diff(other.series) < 0
    return bool((falls & others).sum() >= IN_PHASE * (falls | others).sum())


def _without_others(growth: AllocatorGrowth, result: Sequence[GroupGrowth]) -> Int64Array:
    """The memory in use at each step's end, less the other groups that grow or come and go."""
    net = growth.total.copy()
    for group in growth.groups:
        if group.pattern.kind not in {STEADY, WARM_UP} and all(group is not one for one in result):
            net -= group.series
    return net


def _allocated_per_step(history: History, number: int, growth: AllocatorGrowth) -> Int64Array:
    """Bytes allocated between one mark and the next."""
    own = np.where(history.lifetimes.allocator == number, history.allocated, 0)
    total = np.concatenate([[0], np.cumsum(own)])
    bounds = np.concatenate([[growth.marks.start], growth.marks.rows])
    made: Int64Array = np.diff(total[bounds])
    return made
