"""Where one step ends and the next begins, among an allocator's records.

The profile's own steps are taken where it has them. Elsewhere the period is found from the pattern
of allocations: in a loop, most signatures occur once in every turn, so the number of occurrences
that most of them share is the number of turns. A signature can mark the turns when its
occurrences lie at even distances, from the first part of the records to their end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.deadline import checked
from peakline.kernels.memory_layout import ALLOCATION, UNTRACKED_ALLOCATION
from peakline.memory.signatures import History
from peakline.shown import Brief
from peakline.tables.columns import Columns
from peakline.trace.steps import Steps

MIN_TURNS = 5
"""Fewer repetitions are no pattern."""

MIN_AGREEING = 2
"""So many signatures must occur once in every turn: one alone may be even by chance."""

EVEN = 0.25
"""A distance between two turns is even when it differs by this share of the median at most."""

MOSTLY_EVEN = 0.85
"""The share of the distances that must be even."""

COVERED = 0.5
"""The turns must take up this share of the allocations, so that the layers of a network, which
repeat within one step, are not taken for steps."""

RUNS = 1.5
"""Nameless steps give way to a period that is this many times as long."""

_COUNTED = 10**6
_NAME = 28
"""Characters of a step's name that a title shows; sessions' handles can be hundreds long."""

STEPPED = 0.5
"""The profile's steps count where this share of the records lie between their first and last."""


@dataclass(frozen=True, eq=False, repr=False)
class Marks(Brief):
    """The ends of an allocator's steps, in time order.

    ``rows[k]`` is the first record after step k: what was allocated before it and not freed
    before it is what step k left. ``ids`` and ``names`` are the steps' own (None, ``""`` where the
    period was found); ``start`` the first record of the first step. ``found_by`` is ``steps`` or
    ``period``, and ``detail`` says it for a person. ``last`` is the number of the last step and
    ``stride`` how many lie between two of them, where not every one is chosen (`every`).
    """

    rows: Int64Array
    start: int
    ids: tuple[int | None, ...]
    names: tuple[str, ...]
    found_by: str
    detail: str
    stride: int = 1
    last: int | None = None

    def number(self, step: int) -> int:
        """The number of step ``step`` (a place in ``rows``) among all steps, from 0 on."""
        if self.last is None:
            return step
        return self.last - (len(self) - 1 - step) * self.stride

    def __len__(self) -> int:
        return int(self.rows.size)

    def label(self, step: int) -> str:
        """What a person calls step ``step`` (a place in ``rows``), counted where it has no name.

        Sessions number their steps at random, which says nothing.
        """
        number, name = self.ids[step], self.names[step]
        if name and name != str(number):
            return name
        return str(self._shown(step))

    @property
    def unit(self) -> str:
        """What one of them is called: ``step``, or ``repetition`` where the period was found."""
        return "repetition" if self.found_by == "period" else "step"

    def title(self, step: int) -> str:
        """Step ``step`` by its number, and its name where it says more: ``step 3 (train 3)``."""
        number, name = self.ids[step], self.names[step]
        if not name or name == str(number):
            return f"{self.unit} {self.label(step)}"
        name = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        return f"{self.unit} {self._shown(step)} ({name})"

    def _shown(self, step: int) -> int:
        """The step's own number where it counts, else its place."""
        number = self.ids[step]
        if number is None or not 0 <= number < _COUNTED:
            return self.number(step)
        return number

    def every(self, stride: int) -> Marks:
        """Every so-manieth mark, the last one always among them."""
        if stride <= 1:
            return self
        chosen = np.arange(len(self) - 1, -1, -stride)[::-1]
        return Marks(
            self.rows[chosen],
            self.start,
            tuple(self.ids[k] for k in chosen),
            tuple(self.names[k] for k in chosen),
            self.found_by,
            self.detail,
            stride,
            len(self) - 1,
        )


def find_marks(history: History, allocator: int, table: Columns) -> Marks | None:
    """The ends of the steps of ``history.lifetimes.allocators[allocator]``, None without any.

    The profile's steps (``table``) are used when there are any and at least half of the
    allocator's records lie in the time from the first one's start to the last one's end. A step
    ends where the next one starts, so that what is freed between the two does not count as left.
    One that is cut off is none. Inferred steps are the runs of compiled functions; where the
    pattern of allocations takes several runs to repeat, a step is one repetition of it.
    """
    own = history.rows_of(allocator)
    if not own.size:
        return None
    steps = Steps.of(table)
    if not steps.size:
        return _from_period(history, own)
    if not steps.is_cut_off.all():
        steps = steps.take(~steps.is_cut_off)
    marks = _from_steps(history, own, steps)
    if marks is None or not (steps.is_inferred or _is_nameless(steps)):
        return marks
    result = _from_period(history, own)
    return marks if result is None or result.rows.size * RUNS > marks.rows.size else result


def _is_nameless(steps: Steps) -> bool:
    """Whether steps have no name but their number."""
    ids, names = steps.step_id.tolist(), steps.name.to_list()
    return all(name in {"", str(number)} for number, name in zip(ids, names, strict=True))


def _from_steps(history: History, own: IntpArray, steps: Steps) -> Marks | None:
    times = history.events.array("time_ps")
    steps = steps.take(np.lexsort((steps.end, steps.begin)))
    begins = steps.begin
    last = int(steps.end.max())
    inside = (times[own] >= begins[0]) & (times[own] <= last)
    if inside.sum() < STEPPED * own.size:
        return None
    rows = np.append(
        np.searchsorted(times, begins[1:], "left"), np.searchsorted(times, last, "right")
    )
    # A damaged file may end its last step before it starts.
    rows = np.maximum.accumulate(rows)
    how = ", inferred from runs of functions" if steps.is_inferred else ""
    return Marks(
        rows.astype(np.int64),
        int(np.searchsorted(times, begins[0], "left")),
        tuple(steps.step_id.tolist()),
        tuple(name or "" for name in steps.name.to_list()),
        "steps",
        f"the profile's {steps.size} steps{how}",
    )


def _from_period(history: History, own: IntpArray) -> Marks | None:
    kind = history.lifetimes.kind[own]
    begins = own[(kind == ALLOCATION) | (kind == UNTRACKED_ALLOCATION)]
    if begins.size < MIN_TURNS:
        return None
    codes = history.signatures.codes[begins]
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order], prepend=-1, append=-1))
    evenly: dict[int, list[IntpArray]] = {}
    often = np.flatnonzero(np.diff(bounds) >= MIN_TURNS)
    for first, end in checked(zip(bounds[often].tolist(), bounds[often + 1].tolist(), strict=True)):
        places = order[first:end]
        if _is_even(places, begins.size):
            evenly.setdefault(end - first, []).append(places)

    def support(count: int) -> tuple[int, int, int]:
        # A turn that the profile's start or end cuts off makes counts differ by one.
        near = sum(len(evenly.get(other, ())) for other in (count - 1, count, count + 1))
        return near, len(evenly[count]), count

    turns = max(evenly, key=support, default=0)
    if not evenly or support(turns)[0] < MIN_AGREEING:
        return None
    used = history.used

    def held(places: IntpArray) -> float:
        return float(np.median(used[np.maximum(begins[places] - 1, 0)]))

    # The turn begins where the least is in memory.
    places = min(evenly[turns], key=held)
    rows = begins[places]
    signature = history.signatures[int(codes[places[0]])]
    length = int(np.median(np.diff(places)))
    return Marks(
        rows[1:].astype(np.int64),
        int(rows[0]),
        (None,) * (rows.size - 1),
        ("",) * (rows.size - 1),
        "period",
        f"{rows.size - 1} repetitions of about {length} allocations; each begins with "
        f"{signature.title}",
    )


def _is_even(places: IntpArray, total: int) -> bool:
    gaps = np.diff(places)
    middle = float(np.median(gaps))
    if middle < 2:
        return False
    even = np.abs(gaps - middle) <= max(EVEN * middle, 1)
    covered = places[-1] - places[0] + middle
    return bool(
        even.mean() >= MOSTLY_EVEN
        and covered >= COVERED * total
        and places[-1] + 2 * middle >= total
    )
