"""The steps behind a line over time: bands of two shades, thinned where there are many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from peakline.figures.drawn import DrawnAllocator
from peakline.figures.look import MUTED
from peakline.figures.text import fit, plain

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


def find_bands(asked: DrawnAllocator, window: tuple[int, int] | None = None) -> tuple[Band, ...]:
    """The profile's steps in order, or the repetitions that stand for them; at most `_MOST`.

    Only those that reach into ``window`` (picoseconds), where one is given.
    """
    growth = asked.details.growth
    if growth is not None and growth.marks.found_by == "period":
        times = asked.history.events.array("time_ps")
        rows = np.append(growth.marks.start, growth.marks.rows)
        bounds = times[np.minimum(rows, times.size - 1)].tolist()
        names = [f"repetition {growth.marks.label(k)}" for k in range(len(growth.marks))]
        found = list(zip(bounds[:-1], bounds[1:], names, strict=True))
    else:
        steps = asked.steps
        order = np.lexsort((steps.array("end_ps"), steps.array("start_ps")))
        ids = steps.array("step_id")[order].tolist()
        told = steps.names("name").take(order).to_list()
        names = [
            step_name(number, {number: name or ""}) for number, name in zip(ids, told, strict=True)
        ]
        found = list(
            zip(
                steps.array("start_ps")[order].tolist(),
                steps.array("end_ps")[order].tolist(),
                names,
                strict=True,
            )
        )
    if window is not None:
        found = [one for one in found if one[0] <= window[1] and one[1] >= window[0]]
    together = -(-len(found) // _MOST) or 1
    bands = []
    for first in range(0, len(found), together):
        part = found[first : first + together]
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
