"""The traces of a figure: lines, areas, single points, and bars, which may be stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from peakline.arrays import Float64Array
from peakline.figures.over_time import places_to_draw
from peakline.render.html.html import Markup, join, tag
from peakline.render.html.svg.frame import Frame
from peakline.render.html.svg.paint import (
    box,
    number,
    paint,
    pattern_of,
    plain_text,
    px,
    tip_text,
    tipped,
)
from peakline.render.html.svg.scales import Scale, Trace, is_level, numbers, stacked

_SLICES = 60
"""So many parts of the time say what the pointer shows of lines."""
_MOST_POINTS = 200


def lines(frame: Frame, traces: Sequence[Trace]) -> Markup:
    """The lines and areas, then what is marked on them."""
    areas = [one for one in traces if one.get("stackgroup")]
    result: list[Markup] = []
    for group in dict.fromkeys(one["stackgroup"] for one in areas):
        own = [one for one in areas if one["stackgroup"] == group]
        result += [_area(frame, one, base) for one, base in stacked(own, is_stack=True)]
    plain = [one for one in traces if not one.get("stackgroup")]
    result += [_line(frame, one) for one in plain if "lines" in one["mode"]]
    result += [_points(frame, one) for one in plain if "markers" in one["mode"]]
    return join(result)


def line_path(x: Float64Array, y: Float64Array, shape: str) -> str:
    """The path through pixels; of ``hv`` a value holds until the next one."""
    start = f"M{px(x[0])} {px(y[0])}"
    pairs = zip(x[1:].tolist(), y[1:].tolist(), strict=True)
    if shape != "hv":
        return start + "".join(f"L{px(a)} {px(b)}" for a, b in pairs)
    parts, at = [start], (px(x[0]), px(y[0]))
    for a, b in pairs:
        here = px(a), px(b)
        across = f"H{here[0]}" if here[0] != at[0] else ""
        parts.append(across + (f"V{here[1]}" if here[1] != at[1] else ""))
        at = here
    return "".join(parts)


def _line(frame: Frame, trace: Trace) -> Markup:
    look, scale = trace["line"], frame.y_of(trace)
    x, y = _thinned(frame.x, numbers(trace["x"]), numbers(trace["y"]))
    if not x.size:
        return Markup()
    path = line_path(frame.x.all_at(x), scale.all_at(y), look.get("shape", "linear"))
    stroke, width = paint(look["color"]), str(look.get("width", 2))
    drawn = tag("path", d=path, fill="none", stroke=stroke, stroke_width=width, class_="line")
    if trace.get("fill") != "tozeroy":
        return drawn
    floor = px(scale.at(0))
    closed = f"{path}V{floor}H{px(frame.x.at(x[0]))}z"
    return join([tag("path", d=closed, fill=stroke, fill_opacity="0.35"), drawn])


def _thinned(scale: Scale, x: Float64Array, y: Float64Array) -> tuple[Float64Array, Float64Array]:
    """The places that a drawing of so many pixels needs: first, least, most and last of each."""
    if x.size <= 4 * scale.pixels:
        return x, y
    steps = np.round((x - x[0]) * (1 << 40) / max(float(x[-1] - x[0]), 1e-30)).astype(np.int64)
    places = places_to_draw(steps, y, int(scale.pixels))
    return x[places], y[places]


def _area(frame: Frame, trace: Trace, base: Float64Array) -> Markup:
    """What is stacked between a base and its top."""
    scale, x = frame.y_of(trace), frame.x.all_at(trace["x"])
    upper = line_path(x, scale.all_at(base + numbers(trace["y"])), "linear")
    lower = line_path(x[::-1], scale.all_at(base)[::-1], "linear")
    return tag("path", d=f"{upper}L{lower[1:]}z", fill=paint(trace["fillcolor"]))


def _points(frame: Frame, trace: Trace) -> Markup:
    look = trace.get("marker", {})
    colour = paint(look.get("color") or trace["line"]["color"])
    symbol, radius = look.get("symbol", "circle"), look.get("size", 6) / 2
    edge = look.get("line", {})
    is_open = symbol.endswith("-open")
    marks, silent = [], []
    x, y = np.asarray(trace["x"], np.float64), np.asarray(trace["y"], np.float64)
    for place in range(min(x.size, _MOST_POINTS)):
        if not frame.x.holds(x[place]):
            continue
        mark = symbol_path(
            symbol, frame.x.at(x[place]), frame.y_of(trace).at(y[place]), radius
        )  # fmt: skip
        tip = "" if frame.is_narrow else point_tip(trace, place)
        if tip:
            marks.append(tipped(mark, tip))
        else:
            silent.append(mark)
    if silent:
        marks.append(tag("path", d="".join(silent)))
    width = str(edge.get("width", 1.5)) if is_open else None
    fill, stroke = ("transparent", colour) if is_open else (colour, None)
    return tag("g", *marks, fill=fill, stroke=stroke, stroke_width=width)


def symbol_path(symbol: str, x: float, y: float, r: float) -> str:
    """A symbol of radius ``r`` around a place."""
    if symbol.startswith("triangle-down"):
        return f"M{px(x - r)} {px(y - r)}h{px(2 * r)}l{px(-r)} {px(1.7 * r)}z"
    if symbol.startswith("triangle-left"):
        return f"M{px(x - r)} {px(y)}l{px(1.6 * r)} {px(-r)}v{px(2 * r)}z"
    if symbol.startswith("triangle-right"):
        return f"M{px(x + r)} {px(y)}l{px(-1.6 * r)} {px(-r)}v{px(2 * r)}z"
    if symbol.startswith("diamond"):
        return f"M{px(x)} {px(y - r)}l{px(r)} {px(r)}l{px(-r)} {px(r)}l{px(-r)} {px(-r)}z"
    half = f"a{px(r)} {px(r)} 0 1 0 "
    return f"M{px(x - r)} {px(y)}{half}{px(2 * r)} 0{half}{px(-2 * r)} 0z"


def point_tip(trace: Trace, place: int) -> str:
    """What the pointer shows of one point or bar; nothing where it shows nothing."""
    template = trace.get("hovertemplate", "")
    if not template:
        return ""
    values = {
        name: trace[name][place] if not isinstance(trace[name], str) else trace[name]
        for name in ("x", "y", "text", "customdata")
        if trace.get(name) is not None
    }
    return tip_text(template, values)


def slices(frame: Frame, traces: Sequence[Trace]) -> Markup:
    """Parts of the width, unseen, of which each says what the lines are in it."""
    own = [one for one in traces if "lines" in one["mode"] and len(one["x"]) > 1]
    if frame.is_narrow or not own:
        return Markup()
    edges = np.linspace(frame.x.low, frame.x.high, _SLICES + 1)
    result = []
    unit = _unit(frame.layout.get("xaxis", {}))
    values = [(one, numbers(one["x"]), numbers(one["y"])) for one in own]
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        texts = [text for one in values if (text := _in_slice(*one, low, high))]
        if not texts:
            continue
        start, end = frame.x.at(low), frame.x.at(high)
        area = box(start, frame.top, end - start, frame.bottom - frame.top)
        head = [f"{number(max(low, 0), ',.4~r')} to {number(high, ',.4~r')} {unit}"] if unit else []
        result.append(tipped(area, "\n".join([*head, *texts])))
    return tag("g", *result, fill="transparent")


def _unit(axis: Mapping[str, Any]) -> str:
    title = str(axis.get("title", {}).get("text", ""))
    return title.rpartition("(")[2].rstrip(")") if title.endswith(")") else ""


def _in_slice(trace: Trace, x: Float64Array, y: Float64Array, low: float, high: float) -> str:
    """The least and the most of a line between two x."""
    first, last = np.searchsorted(x, (low, high))
    holds = trace["line"].get("shape") == "hv"
    own = y[max(first - 1, 0) if holds else first : last]
    if not own.size or high < x[0] or (not holds and low > x[-1]):
        return ""
    ends = dict.fromkeys(number(float(one), ",.4~r") for one in (own.min(), own.max()))
    return f"{plain_text(str(trace['name']))}: {' to '.join(ends)}"


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
    areas = sorted((w * h for _, result in drawn for _, (_, _, w, h) in result), reverse=True)
    least = 0.0
    if frame.is_narrow:
        least = float("inf")
    elif len(areas) > _MOST_TIPS:
        least = areas[_MOST_TIPS]
    return join(_drawn(trace, result, least) for trace, result in drawn if result)


def _drawn(trace: Trace, result: list[tuple[int, Rect]], least: float) -> Markup:
    marks: list[Markup] = []
    silent: list[str] = []
    for place, rect in result:
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
    over = "".join(box(*rect) for _, rect in result)
    return join([bars_of, tag("path", d=over, fill=hatching, class_="over")])


def _rectangles(frame: Frame, trace: Trace, base: Sequence[float]) -> list[tuple[int, Rect]]:
    """The bars that are in the frame: place in the trace, left, top, width, height."""
    level = is_level(trace)
    along = frame.x if level else frame.y_of(trace)
    across = frame.y_of(trace) if level else frame.x
    size, place = ("x", "y") if level else ("y", "x")
    thick = abs(across.at(1) - across.at(0)) * (1 - float(frame.layout.get("bargap", 0.2)))
    result: list[tuple[int, Rect]] = []
    sizes, places = numbers(trace[size]), numbers(trace[place])
    for row in np.flatnonzero(sizes).tolist():
        begin, end = base[row], base[row] + sizes[row]
        if not (along.holds(begin) or along.holds(end) or begin < along.low < along.high < end):
            continue
        low, high = sorted((along.clamped(begin), along.clamped(end)))
        long = max(high - low, _LEAST)
        side = across.at(places[row]) - thick / 2
        rect = (low, side, long, thick) if level else (side, high - long, thick, long)
        result.append((row, rect))
    return result
