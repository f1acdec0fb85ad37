"""What figures of memory share: the allocators that are drawn, and the steps behind them.

Steps are bands of two shades, thinned where there are many.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from peakline.errors import NotFoundError
from peakline.figures.look import MUTED, fit, one_line, plain
from peakline.findings.finding import Finding
from peakline.findings.memory_answer import MemoryAnswer, answer_memory
from peakline.memory.details import MemoryDetails
from peakline.memory.peak.explained import AllocatorPeak
from peakline.memory.signatures import History
from peakline.suggest import there_is
from peakline.tables import Profile
from peakline.tables.columns import Columns
from peakline.text import allocator_text


@dataclass(frozen=True, eq=False)
class DrawnAllocator:
    """One allocator to draw: its peak, its analyses, and the records that all of them read.

    ``number`` is the allocator's place in ``history.lifetimes.allocators``; ``findings`` are those
    about it.
    """

    peak: AllocatorPeak
    details: MemoryDetails
    history: History
    number: int
    steps: Columns
    findings: tuple[Finding, ...]

    @property
    def name(self) -> str:
        """The allocator as a person reads it."""
        name = allocator_text(self.peak.allocator)
        # Some runtimes only number them.
        return f"allocator {name}" if name.isdecimal() else one_line(name, 100)

    @cached_property
    def step_names(self) -> dict[int, str]:
        """The name of every step by its id; empty where it has none."""
        ids, names = self.steps.array("step_id").tolist(), self.steps.names("name").to_list()
        return {number: name or "" for number, name in zip(ids, names, strict=True)}

    @cached_property
    def peak_row(self) -> int:
        """The record of the peak."""
        rows = self.history.rows_of(self.number)
        rows = rows[self.history.measured[rows]]
        is_peak = self.history.events.array("time_ps")[rows] == self.peak.peak_time_ps
        is_peak &= self.history.used[rows] == self.peak.peak_bytes
        return int(rows[is_peak.argmax()])


def drawn_allocators(
    profile: Profile, allocator: str | None, answer: MemoryAnswer | None
) -> tuple[DrawnAllocator, ...]:
    """The allocators that a figure is about, the one with the highest peak first.

    Only ``allocator`` where it is named; none where the profile holds no records of memory. Raises
    NotFoundError for an allocator that is not there, InputError when the profile cannot be read.
    """
    if answer is None:
        answer = answer_memory(profile, allocator=allocator)
    history = answer.history
    if history is None:
        return ()
    result = list(zip(answer.allocators, answer.details, strict=True))
    if allocator is not None:
        result = [pair for pair in result if pair[0].allocator == allocator]
        if not result:
            known = [peak.allocator for peak in answer.allocators]
            raise NotFoundError(
                f"no allocator {allocator!r} in the answer{there_is(allocator, known)}"
            )
    result.sort(key=lambda pair: (-pair[0].peak_bytes, pair[0].allocator))
    names = history.lifetimes.allocators
    steps = profile.columns_or_empty("steps")
    return tuple(
        DrawnAllocator(
            peak,
            details,
            history,
            names.index(peak.allocator),
            steps,
            tuple(f for f in answer.findings if f.evidence.get("allocator") == peak.allocator),
        )
        for peak, details in result
    )


_MOST = 60
"""More bands than this are put together."""
_LONGEST = 26
_CHARACTER = 0.0095
"""The share of the width that a character of a name takes."""
_NAMED = 10**6
"""Sessions number their steps at random, which says nothing: higher ids are not shown."""


@dataclass(frozen=True)
class Band:
    """One step, or ``count`` of them in a row. Times are picoseconds."""

    start_ps: int
    end_ps: int
    name: str
    count: int


def step_name(step: int | None, names: dict[int, str]) -> str:
    """What a person calls the step; empty where it is not known or only a random number."""
    if step is None:
        return ""
    name = names.get(step, "")
    if name and name != str(step):
        return name
    return str(step) if 0 <= step < _NAMED else ""


def find_bands(chosen: DrawnAllocator, window: tuple[int, int] | None = None) -> tuple[Band, ...]:
    """The profile's steps in order, or the repetitions that stand for them; at most `_MOST`.

    Only those that reach into ``window`` (picoseconds), where one is given.
    """
    growth = chosen.details.growth
    if growth is not None and growth.marks.found_by == "period":
        times = chosen.history.events.array("time_ps")
        rows = np.append(growth.marks.start, growth.marks.rows)
        bounds = times[np.minimum(rows, times.size - 1)].tolist()
        names = [f"repetition {growth.marks.label(k)}" for k in range(len(growth.marks))]
        result = list(zip(bounds[:-1], bounds[1:], names, strict=True))
    else:
        steps = chosen.steps
        order = np.lexsort((steps.array("end_ps"), steps.array("start_ps")))
        ids = steps.array("step_id")[order].tolist()
        labels = steps.names("name").take(order).to_list()
        names = [
            step_name(number, {number: name or ""})
            for number, name in zip(ids, labels, strict=True)
        ]
        result = list(
            zip(
                steps.array("start_ps")[order].tolist(),
                steps.array("end_ps")[order].tolist(),
                names,
                strict=True,
            )
        )
    if window is not None:
        result = [one for one in result if one[0] <= window[1] and one[1] >= window[0]]
    together = -(-len(result) // _MOST) or 1
    bands = []
    for first in range(0, len(result), together):
        part = result[first : first + together]
        ends = [name for name in (part[0][2], part[-1][2]) if name]
        name = " to ".join(dict.fromkeys(ends))
        end = max(end for _, end, _ in part)
        bands.append(Band(part[0][0], max(end, part[0][0]), name, len(part)))
    return tuple(bands)


def band_shapes(
    bands: tuple[Band, ...], unit: int, window: tuple[int, int]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The bands as shapes of a layout, and the names that there is room for, above them.

    ``window`` is the time that is drawn, in picoseconds.
    """
    shapes = [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": band.start_ps / unit,
            "x1": band.end_ps / unit,
            "y0": 0,
            "y1": 1,
            "fillcolor": "#EAF1F8" if k % 2 == 0 else "#F5F1EA",
            "line": {"width": 0},
            "layer": "below",
        }
        for k, band in enumerate(bands)
    ]
    return shapes, _labels(bands, unit, window)


def _labels(bands: tuple[Band, ...], unit: int, window: tuple[int, int]) -> list[dict[str, Any]]:
    """The names of the bands, from left to right, of those that have room for it."""
    labels: list[dict[str, Any]] = []
    free_from, span = 0.0, max(window[1] - window[0], 1)
    for band in bands:
        name = fit(band.name, _LONGEST)
        start = max(band.start_ps, window[0])
        at = (start - window[0]) / span
        width = (len(name) + 2) * _CHARACTER
        if name and at >= free_from and at + width <= 1.02:
            free_from = at + width
            labels.append(
                {
                    # A page thins them by this name where it is narrower than most.
                    "name": "step",
                    "xref": "x",
                    "yref": "paper",
                    "x": start / unit,
                    "y": 1,
                    "xanchor": "left",
                    "yanchor": "bottom",
                    "text": plain(name),
                    "showarrow": False,
                    "font": {"size": 10, "color": MUTED},
                }
            )
    return labels
