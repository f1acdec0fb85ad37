"""Bars, upright and level, stacked or each from a base of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peakline.render.html.html import Markup, join, tag
from peakline.render.html.svg.extent import Trace, is_level, numbers, stacked
from peakline.render.html.svg.frame import Frame
from peakline.render.html.svg.lines import point_tip
from peakline.render.html.svg.paint import box, paint, pattern_of, tipped

_MOST_TIPS = 500
"""So many bars of a drawing, the largest, say what they are under the pointer."""
_LEAST = 0.7
"""Pixels of the shortest bar that is not nothing: it must be seen that it is there."""
Rect = tuple[float, float, float, float]


def bars(frame: Frame, traces: Sequence[Trace]) -> Markup:
    """The bars, of each trace those without a tip as one path."""
    is_stack = frame.layout.get("barmode") == "stack"
    drawn = [
        (one, _rectangles(frame, one, base.tolist()))
        for one, base in stacked(traces, is_stack=is_stack)
    ]
    areas = sorted((w * h for _, found in drawn for _, (_, _, w, h) in found), reverse=True)
    least = 0.0
    if frame.is_narrow:
        least = float("inf")
    elif len(areas) > _MOST_TIPS:
        least = areas[_MOST_TIPS]
    return join(_drawn(trace, found, least) for trace, found in drawn if found)


def _drawn(trace: Trace, found: list[tuple[int, Rect]], least: float) -> Markup:
    marks: list[Markup] = []
    silent: list[str] = []
    for place, rect in found:
        tip = point_tip(trace, place) if rect[2] * rect[3] > least else ""
        if tip:
            marks.append(tipped(box(*rect), tip))
        else:
            silent.append(box(*rect))
    if silent:
        marks.append(tag("path", d="".join(silent)))
    bars_of = tag("g", *marks, fill=paint(trace["marker"]["color"]))
    hatching = pattern_of(trace)
    if not hatching:
        return bars_of
    over = "".join(box(*rect) for _, rect in found)
    return join([bars_of, tag("path", d=over, fill=hatching, class_="over")])


def _rectangles(frame: Frame, trace: Trace, base: Sequence[float]) -> list[tuple[int, Rect]]:
    """The bars that are in the frame: place in the trace, left, top, width, height."""
    level = is_level(trace)
    along = frame.x if level else frame.y_of(trace)
    across = frame.y_of(trace) if level else frame.x
    size, place = ("x", "y") if level else ("y", "x")
    thick = abs(across.at(1) - across.at(0)) * (1 - float(frame.layout.get("bargap", 0.2)))
    found: list[tuple[int, Rect]] = []
    sizes, places = numbers(trace[size]), numbers(trace[place])
    for number in np.flatnonzero(sizes).tolist():
        begin, end = base[number], base[number] + sizes[number]
        if not (along.holds(begin) or along.holds(end) or begin < along.low < along.high < end):
            continue
        low, high = sorted((along.clamped(begin), along.clamped(end)))
        long = max(high - low, _LEAST)
        side = across.at(places[number]) - thick / 2
        rect = (low, side, long, thick) if level else (side, high - long, thick, long)
        found.append((number, rect))
    return found
