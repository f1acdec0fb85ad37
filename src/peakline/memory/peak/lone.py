"""A peak that stands alone: before training begins, in evaluation, or in one step of many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, IntpArray
from peakline.memory.marks import Marks
from peakline.memory.origins.stacks import Origins, Stack
from peakline.memory.peak.buffers import AtPeak
from peakline.memory.signatures import History
from peakline.text import population_of
from peakline.trace.frames import EVALUATES
from peakline.trace.steps import Steps

ALONE = 1.3
"""A peak stands alone when it is so many times the largest use at other times, ..."""
LEAST = 1 << 20
"""... and so many bytes above it, ..."""
CAPACITY = 1e-4
"""... and this share of the device's capacity."""
WARM_UP = 2
"""So many steps at the beginning are unlike the others in healthy runs too."""
FEWEST = 3
"""Fewer steps are no others to compare with."""

OUTSIDE, EVALUATION, ONE_STEP = "outside", "evaluation", "one step"


@dataclass(frozen=True)
class LonePeak:
    """``where`` it is (`OUTSIDE` of the steps, in `EVALUATION`, in `ONE_STEP`), ``when`` in a
    person's words, and the largest memory in use at other times: ``others_bytes``. ``is_first``
    says that the step is one of the first.
    """

    where: str
    when: str
    peak_bytes: int
    others_bytes: int
    step: str
    is_first: bool = False


def lone_peak(
    history: History,
    allocator: int,
    marks: Marks | None,
    steps: Steps | None,
    capacity: int | None,
    origins: Origins | None = None,
) -> LonePeak | None:
    """The peak of an allocator where it stands alone; None where other times come near it, or
    where too few steps are known, and no function says that it is one of evaluation.
    """
    by_function = _by_functions(history, allocator, origins, capacity)
    if by_function is not None or marks is None or len(marks) < FEWEST:
        return by_function
    rows = history.rows_of(allocator)
    used = np.where(history.measured[rows], history.used[rows], 0)
    bounds = np.searchsorted(rows, np.append(marks.start, marks.rows))
    top = int(used.argmax())
    peak = int(used[top])
    place = int(np.searchsorted(bounds, top, "right")) - 1
    # The largest of each step; one without a record has none.
    padded = np.append(used, 0)
    each = np.maximum.reduceat(padded, np.minimum(bounds, used.size))[:-1]
    each[bounds[1:] <= bounds[:-1]] = 0
    is_inside = 0 <= place < each.size
    names = [marks.names[number] for number in range(each.size)]
    own = population_of(names[place]) if is_inside else ""
    in_evaluation = _name_at(history, int(rows[top]), steps)
    if is_inside and not in_evaluation:
        mine = np.array([population_of(name) == own for name in names])
        same = mine & (np.arange(each.size) != place)
        others = int(each[~mine].max(initial=0)) if not same.any() else int(each[same].max())
        where = ONE_STEP
        when = f"in {marks.title(place)} alone"
        if EVALUATES.search(own) and not mine.all():
            others, where, when = int(each[~mine].max(initial=0)), EVALUATION, f"in {own.strip()}"
    elif in_evaluation:
        outside = _outside(history, rows, steps, in_evaluation)
        others = int(used[outside].max(initial=0))
        where, when = EVALUATION, f"in {in_evaluation}"
    else:
        others = int(each.max())
        where = OUTSIDE
        when = "before the first step" if place < 0 else "after the last step"
    least = max(LEAST, CAPACITY * (capacity or 0))
    if peak < ALONE * others or peak - others < least:
        return None
    step = marks.title(place) if is_inside else ""
    is_first = where == ONE_STEP and marks.number(place) < WARM_UP
    return LonePeak(where, when, peak, others, step, is_first)


def more_often(history: History, result: AtPeak) -> BoolArray:
    """Per signature whether the step of the peak makes more of its buffers than any other step."""
    rows, codes = history.rows_of(result.allocator), history.signatures.codes
    made = rows[codes[rows] >= 0]
    step = np.searchsorted(result.starts, made, "right") - 1
    counts = np.zeros((result.starts.size + 1, len(history.signatures)), np.int64)
    np.add.at(counts, (step, codes[made]), 1)
    own = counts[result.own_step].copy()
    counts[result.own_step] = 0
    more: BoolArray = own > counts.max(axis=0, initial=0)
    return more


def _by_functions(
    history: History, allocator: int, origins: Origins | None, capacity: int | None
) -> LonePeak | None:
    """A peak in evaluation by the names of the functions on the stacks of its allocations."""
    if origins is None or not origins.has_frames:
        return None
    rows = history.rows_of(allocator)
    used = np.where(history.measured[rows], history.used[rows], 0)
    top = int(used.argmax())
    name = _evaluation_of(origins.of(rows[top : top + 1])[0])
    if not name:
        return None
    stacks, place = origins.distinct(rows)
    inside = np.array([bool(_evaluation_of(stack)) for stack in stacks])[place]
    begins = history.signatures.codes[rows] >= 0
    if not (begins & ~inside).any():
        return None
    peak, others = int(used.max()), int(used[begins & ~inside].max())
    least = max(LEAST, CAPACITY * (capacity or 0))
    if peak < ALONE * others or peak - others < least:
        return None
    return LonePeak(EVALUATION, f"in {name}", peak, others, "")


def _evaluation_of(stack: Stack) -> str:
    """The outermost function of the program on a stack that is called as an evaluation is."""
    named = (frame.title for frame in stack.path if EVALUATES.search(frame.function))
    return next(named, "")


def _name_at(history: History, row: int, steps: Steps | None) -> str:
    """What a step of evaluation is called that runs at a record; empty for none."""
    if steps is None or not steps.size:
        return ""
    time = int(history.events.array("time_ps")[row])
    for number in np.flatnonzero((steps.begin <= time) & (steps.end >= time)).tolist():
        name = population_of(steps.label(number))
        if EVALUATES.search(name):
            return name.strip()
    return ""


def _outside(history: History, rows: IntpArray, steps: Steps | None, name: str) -> BoolArray:
    """Which records are not in steps of that name."""
    time = history.events.array("time_ps")[rows]
    inside = np.zeros(rows.size, np.bool_)
    if steps is not None:
        for number in range(steps.size):
            if population_of(steps.label(number)).strip() == name:
                inside |= (time >= steps.begin[number]) & (time <= steps.end[number])
    return ~inside
