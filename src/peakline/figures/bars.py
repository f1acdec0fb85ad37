"""Which buffers are worth a bar of their own: the largest, at the peak and elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import IntpArray
from peakline.figures.drawn import DrawnAllocator
from peakline.kernels.memory_layout import ALLOCATION, DEALLOCATION
from peakline.memory.peak import BEFORE_PROFILE
from peakline.memory.signatures import Signature

AT_PEAK = 40
"""So many buffers that are live at the peak are drawn, ..."""
OTHERS = 20
"""... and so many others, ..."""
EACH = 2
"""... of them at most this many of one signature: an op of every step would fill the figure."""

WORTH = 0.001
"""... and none that takes less than this share of the peak, but for the `FEW` largest."""
FEW = 8
NARROW = 0.1


@dataclass(frozen=True)
class Bar:
    """The life of one buffer. Times are picoseconds, sizes the bytes handed out.

    ``start_ps`` is None for a buffer from before the profile, ``end_ps`` for one that lives to its
    end. ``step`` is the one of its allocation; ``at_peak`` says whether it is live at the peak.
    """

    signature: Signature
    bytes: int
    start_ps: int | None
    end_ps: int | None
    step: int | None
    at_peak: bool


def window_of(bars: tuple[Bar, ...], start_ps: int, end_ps: int) -> tuple[int, int]:
    """The time around the peak in which its ``bars`` can be told apart, else all of it.

    In a long profile most buffers live for a thousandth of it. Where those that take less than
    `NARROW` of the time have half of the bytes at the peak or more, the window is their time and
    half as much on either side.
    """
    least = NARROW * (end_ps - start_ps)
    own = [bar for bar in bars if bar.at_peak]
    short: list[tuple[int, int, int]] = [
        (bar.bytes, bar.start_ps, bar.end_ps)
        for bar in own
        if bar.start_ps is not None and bar.end_ps is not None and bar.end_ps - bar.start_ps < least
    ]
    if 2 * sum(size for size, _, _ in short) < sum(bar.bytes for bar in own) or not short:
        return start_ps, end_ps
    first, last = min(begin for _, begin, _ in short), max(end for _, _, end in short)
    around = (last - first) // 2 + 1
    if last - first >= least:
        return start_ps, end_ps
    return max(first - around, start_ps), min(last + around, end_ps)


def largest_bars(asked: DrawnAllocator, window: tuple[int, int] | None = None) -> tuple[Bar, ...]:
    """The `AT_PEAK` largest buffers live at the peak and the `OTHERS` largest others, by start.

    Only others that live in ``window`` (picoseconds), where one is given. Of equal size the one
    that lives longer is larger. A deallocation of what was not allocated
    inside the profile is the end of a buffer from before it, as in the table ``buffers``.
    """
    history = asked.history
    events, lifetimes = history.events, history.lifetimes
    rows = history.rows_of(asked.number)
    kind = lifetimes.kind[rows]
    older = (kind == DEALLOCATION) & (lifetimes.begin[rows] < 0)
    told = np.where(events.is_valid("allocated_bytes"), events.array("allocated_bytes"), 0)
    size = np.where(older, told[rows], np.where(kind == ALLOCATION, history.allocated[rows], 0))
    kept = size > 0
    rows, older, size = rows[kept], older[kept], size[kept]
    if not rows.size:
        return ()
    time = events.array("time_ps")
    end = np.where(older, rows, lifetimes.end[rows])
    begin_ps = np.where(older, time[0], time[rows])
    life = np.where(end < 0, time[-1], time[np.maximum(end, 0)]) - begin_ps
    at = asked.peak_row
    lives = (older | (rows <= at)) & ((end < 0) | (end > at))
    code = np.where(older, len(history.signatures), history.signatures.codes[rows])

    def largest(places: IntpArray, most: int) -> list[int]:
        if places.size > most:
            # Only what is as large as the last one that is taken has to be put in order.
            least = np.partition(size[places], places.size - most)[places.size - most]
            places = places[size[places] >= least]
        order = np.lexsort((rows[places], -life[places], -size[places]))
        found: list[int] = places[order[:most]].tolist()
        return found

    chosen = largest(np.flatnonzero(lives), AT_PEAK)
    seen = ~lives
    if window is not None:
        seen &= (begin_ps <= window[1]) & (begin_ps + life >= window[0])
    others = np.flatnonzero(seen)
    most = np.zeros(len(history.signatures) + 1, np.int64)
    np.maximum.at(most, code[others], size[others])
    leading = [k for k in np.argsort(-most, kind="stable")[:OTHERS].tolist() if most[k]]
    picked = [k for one in leading for k in largest(others[code[others] == one], EACH)]
    chosen += largest(np.array(picked, np.intp), OTHERS)
    chosen = [
        place
        for rank, place in enumerate(sorted(chosen, key=lambda k: (-int(size[k]), int(rows[k]))))
        if rank < FEW or size[place] >= WORTH * asked.peak.peak_bytes
    ]
    was_there = older | (events.array("is_before") & events.is_valid("is_before"))[rows]
    has_step = events.is_valid("step_id")[rows]
    before = Signature(asked.peak.allocator, BEFORE_PROFILE, "", "", "", None)
    bars = [
        Bar(
            before if older[k] else history.signatures[int(code[k])],
            int(size[k]),
            None if was_there[k] else int(time[rows[k]]),
            None if end[k] < 0 else int(time[end[k]]),
            int(events.array("step_id")[rows[k]]) if has_step[k] and not was_there[k] else None,
            bool(lives[k]),
        )
        for k in sorted(chosen, key=lambda k: (not was_there[k], int(rows[k])))
    ]
    return tuple(bars)
