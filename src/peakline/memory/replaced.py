"""What only took the place of memory from before the profile, and is no growth.

A function that is compiled anew makes its constants again and frees those that it had. The new
ones are seen to grow; that the old ones went is seen by their deallocations alone, which find no
buffer of the profile, or one that a source says was there before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from peakline.deadline import checked
from peakline.kernels.memory_layout import DEALLOCATION
from peakline.memory.crossings import find_crossing
from peakline.memory.growth import AllocatorGrowth, GroupGrowth
from peakline.memory.signatures import History, Signature, buffer_sizes


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
