"""What is left in memory at the end of every step, by signature, and what that does over time.

One pass over the records adds up, for every signature that any step leaves anything of, the bytes
that are live at each step's end. What a program requested is what counts: the allocator hands out
larger pieces when it has them at hand, which changes from step to step and is no growth. An op
whose shapes change from step to step is looked at as a whole as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from peakline.arrays import Int64Array
from peakline.deadline import checked
from peakline.memory.crossings import find_crossing
from peakline.memory.growth.pattern import LEAK, SINGLE, STEADY, Pattern, classify
from peakline.memory.growth.single_pass import PassFacts, SinglePass, find_single_pass
from peakline.memory.marks import Marks
from peakline.memory.peak.explained import UNATTRIBUTED
from peakline.memory.signatures import History, Signature
from peakline.shown import Brief
from peakline.tables.joins import summed

_MARKS = 1024
"""More steps than this are thinned evenly; the slopes stay those per step."""
_REST_RISES, _REST_SURE = 8, 0.9
"""Growth that no signature explains is believed only when it is this clear: what the allocator
hands out beyond what was requested changes from step to step."""
_GROUPS = 2048
"""So many signatures are followed, those that leave the most bytes."""


@dataclass(frozen=True, eq=False, repr=False)
class GroupGrowth(Brief):
    """What the steps leave of one signature, or of one op in all its shapes.

    ``signature`` has an empty shape, and no size, where it stands for an op in all its shapes or
    sizes; ``forms`` is then how many there are, else 1. ``series`` is the bytes requested that
    live at each step's end; ``held_bytes`` the bytes allocated for them at the last.
    """

    signature: Signature
    forms: int
    series: Int64Array
    held_bytes: int
    pattern: Pattern


@dataclass(frozen=True, eq=False, repr=False)
class AllocatorGrowth(Brief):
    """What the steps of one allocator leave. Sizes are bytes.

    ``total`` is the memory in use at each step's end. ``groups`` hold what is left of each
    signature, the one that leaves most at the end first. ``bytes_per_step`` is what the leaks among
    them request together in a step (0 without one), ``steps_left`` how many more steps fit into the
    capacity above the peak at that rate (None without a leak or a known capacity). ``steps`` is how
    many steps there are; ``marks`` are every ``stride``-th of them, one per entry of the series.
    ``one_pass`` is the pass over layers that holds the `SINGLE` groups, None without any.
    """

    allocator: str
    marks: Marks
    steps: int
    stride: int
    total: Int64Array
    groups: tuple[GroupGrowth, ...]
    total_pattern: Pattern
    peak_bytes: int
    capacity_bytes: int | None
    bytes_per_step: float
    steps_left: int | None
    one_pass: SinglePass | None = None

    @property
    def leaks(self) -> tuple[GroupGrowth, ...]:
        """The groups that grow to the end."""
        return tuple(group for group in self.groups if group.pattern.kind == LEAK)


def find_growth(
    history: History,
    allocator: int,
    result: Marks | None,
    facts: Callable[[], PassFacts] | None = None,
) -> AllocatorGrowth | None:
    """The growth of ``history.lifetimes.allocators[allocator]`` over the steps ``result``.

    ``facts`` gives what the file says of passes over layers, for who finds a repetition that
    leaves memory. None with fewer than two steps.
    """
    if result is None or len(result) < 2:
        return None
    stride = -(-len(result) // _MARKS)
    marks = result.every(stride)
    places, series, held = _matrix(history, allocator, marks)
    is_marked = marks.found_by == "steps" and stride == 1
    groups = _groups(history, places, series, held, stride, is_marked=is_marked)
    used = history.used
    rows = history.rows_of(allocator)
    before = rows[np.maximum(np.searchsorted(rows, marks.rows) - 1, 0)]
    total = used[before]
    peak = int(used[rows].max())
    groups = _with_the_rest(groups, history.lifetimes.allocators[allocator], total, stride)
    leaks = [group for group in groups if group.pattern.kind == LEAK]
    one_pass = _one_pass(history, allocator, marks, leaks, facts)
    if one_pass:
        for place, group in enumerate(groups):
            if group.pattern.kind == LEAK:
                groups[place] = replace(group, pattern=replace(group.pattern, kind=SINGLE))
        leaks = []
    rate = sum(group.pattern.bytes_per_step for group in leaks)
    capacity = history.capacities[allocator]
    left = None
    if rate > 0 and capacity is not None:
        requested = sum(int(group.series[-1]) for group in leaks)
        handed_out = rate * max(sum(group.held_bytes for group in leaks) / requested, 1.0)
        left = max(int((capacity - peak) / handed_out), 0)
    return AllocatorGrowth(
        allocator=history.lifetimes.allocators[allocator],
        marks=marks,
        steps=len(result),
        stride=stride,
        total=total,
        groups=tuple(groups),
        total_pattern=_per_step(classify(total), stride),
        peak_bytes=peak,
        capacity_bytes=capacity,
        bytes_per_step=rate,
        steps_left=left,
        one_pass=one_pass,
    )


def _one_pass(
    history: History,
    allocator: int,
    marks: Marks,
    leaks: list[GroupGrowth],
    facts: Callable[[], PassFacts] | None,
) -> SinglePass | None:
    if not leaks:
        return None
    signatures = history.signatures
    wanted = {group.signature.op for group in leaks}
    ops = [number for number, op in enumerate(signatures.ops) if op in wanted]
    chosen = np.isin(signatures.op, ops) & (signatures.allocator == allocator)
    sizes = [size for group in leaks if (size := group.signature.bytes) is not None]
    if len(sizes) == len(leaks):
        chosen &= np.isin(signatures.size, sizes)
    return find_single_pass(history, allocator, marks, np.flatnonzero(chosen), facts)


def _matrix(
    history: History, allocator: int, marks: Marks
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The signatures that steps leave, their bytes at each step's end, and the bytes held last."""
    signatures = history.signatures
    crossing = find_crossing(history, allocator, marks.rows)
    codes = signatures.codes[crossing.rows]
    requested, allocated = history.requested[crossing.rows], history.allocated[crossing.rows]
    left = summed(codes, requested, len(signatures))
    places = np.flatnonzero(left)
    if places.size > _GROUPS:
        places = np.sort(places[np.argsort(-left[places], kind="stable")[:_GROUPS]])
    place_of = np.full(len(signatures), -1, np.int32)
    place_of[places] = np.arange(places.size, dtype=np.int32)
    place = place_of[codes]
    series = crossing.live_at_marks(place, places.size, requested)
    at_the_end = (crossing.until == crossing.marks) & (place >= 0)
    held = summed(place[at_the_end], allocated[at_the_end], places.size)
    return places, series, held


def _groups(
    history: History,
    places: Int64Array,
    series: Int64Array,
    held: Int64Array,
    stride: int,
    *,
    is_marked: bool,
) -> list[GroupGrowth]:
    signatures = history.signatures
    groups = [
        GroupGrowth(
            signatures[number],
            1,
            series[k],
            int(held[k]),
            _per_step(classify(series[k], is_marked=is_marked), stride),
        )
        for k, number in enumerate(checked(places.tolist(), 16))
    ]
    by_op: dict[int, list[int]] = {}
    for k, number in enumerate(places.tolist()):
        by_op.setdefault(int(signatures.op[number]), []).append(k)
    merged: list[GroupGrowth] = []
    for members in checked(by_op.values(), 16):
        together = _together(groups, members, stride) if len(members) > 1 else None
        merged += [groups[k] for k in members] if together is None else [together]
    return sorted(merged, key=lambda group: (-int(group.series[-1]), group.signature.title))


def _together(groups: list[GroupGrowth], members: list[int], stride: int) -> GroupGrowth | None:
    """An op in all its forms, where only all of them together show a pattern that grows."""
    series = np.sum([groups[k].series for k in members], axis=0)
    pattern = _per_step(classify(series), stride)
    if pattern.kind == STEADY:
        return None
    alike = sum(groups[k].pattern.bytes for k in members if groups[k].pattern.kind == pattern.kind)
    if 2 * alike >= pattern.bytes:
        return None
    first = groups[members[0]].signature
    regions = {groups[k].signature.region_type for k in members}
    types = {groups[k].signature.data_type for k in members}
    region = first.region_type if len(regions) == 1 else ""
    data_type = first.data_type if len(types) == 1 else ""
    whole = Signature(first.allocator, first.op, region, data_type, "", None)
    held = sum(groups[k].held_bytes for k in members)
    return GroupGrowth(whole, len(members), series, held, pattern)


def _with_the_rest(
    groups: list[GroupGrowth], allocator: str, total: Int64Array, stride: int
) -> list[GroupGrowth]:
    """The groups, and what is in use beyond them where only that leaks."""
    pattern = _per_step(classify(total), stride)
    if pattern.kind != LEAK:
        return groups
    known = sum(group.pattern.bytes_per_step for group in groups if group.pattern.kind == LEAK)
    if 2 * known >= pattern.bytes_per_step:
        return groups
    rest = total - np.sum([group.series for group in groups], axis=0, dtype=np.int64)
    pattern = _per_step(classify(rest), stride)
    if pattern.kind != LEAK or pattern.rises < _REST_RISES or pattern.confidence < _REST_SURE:
        return groups
    signature = Signature(allocator, UNATTRIBUTED, "", "", "", None)
    return [*groups, GroupGrowth(signature, 1, rest, int(rest[-1]), pattern)]


def _per_step(pattern: Pattern, stride: int) -> Pattern:
    """The pattern of a thinned series with its slope per step."""
    if stride == 1:
        return pattern
    slope, period = pattern.bytes_per_step / stride, pattern.period * stride
    return replace(pattern, bytes_per_step=slope, period=period)
