"""A figure of `peakline.figures` as SVG: once for a page's width and paper, once for a phone's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from peakline.figures.look import INK, Drawing
from peakline.render.html.html import Child, Markup, clip, join, tag
from peakline.render.html.svg.frame import axes, bands, frame_of, notes, rulers
from peakline.render.html.svg.lines import bars, lines, slices, symbol_path
from peakline.render.html.svg.paint import (
    box,
    fitted,
    label_at,
    paint,
    pattern_of,
    plain_text,
    px,
    tipped,
)
from peakline.render.html.svg.scales import Trace, is_level, numbers

WIDE, NARROW = 900, 400
"""Pixels that a drawing is made for; the stylesheet shows the one that fits the window."""


def picture_of(drawn: Drawing, label: str, width: float = WIDE) -> Markup:
    """The figure ``width`` pixels wide; ``label`` says what it shows to who cannot see it."""
    margin = drawn.layout["margin"]
    inside = float(drawn.layout["height"]) - margin["t"] - margin["b"]
    traces = [one for one in drawn.traces if len(one.get("y", one.get("values", ())))]
    if any(one["type"] == "icicle" for one in traces):
        (only,) = traces
        return _svg(label, width, inside, icicle(only, width, inside))
    return _svg(label, width, *_framed(drawn, traces, width, inside))


def _framed(
    drawn: Drawing, traces: list[Trace], width: float, inside: float
) -> tuple[float, Child, Child, Child, Child, Child, Child]:
    """The height, and the parts from the lowest to the uppermost."""
    frame = frame_of(traces, drawn.layout, width, inside)
    own_bars = [one for one in traces if one["type"] == "bar"]
    own_lines = [one for one in traces if one["type"] == "scatter"]
    below = [one for one in own_lines if "lines" in one["mode"]]
    above = [one for one in own_lines if one not in below]
    return (
        frame.height,
        bands(frame),
        axes(frame),
        bars(frame, own_bars) if own_bars else None,
        tag("g", lines(frame, below), rulers(frame), slices(frame, below)),
        notes(frame),
        lines(frame, above),
    )


def _svg(label: str, width: float, height: float, *parts: Child) -> Markup:
    return tag(
        "svg",
        *parts,
        class_="narrow" if width < WIDE else "wide",
        viewBox=f"0 0 {px(width)} {px(height)}",
        fill=paint(INK),
        font_size="12",
        role="img",
        aria_label=label,
    )


_LEAST = 0.4
"""Narrower than so many pixels, a part is not drawn."""
_FONT = 12
_EDGE = 4


def icicle(trace: Trace, width: float, height: float) -> Markup:
    """The tree of a trace on so many pixels, its upper levels where it is deeper than they hold."""
    placed = list(_placed(trace, width))
    levels = max(level for _, level, _, _ in placed) + 1
    step = height / levels
    is_narrow = width < 500
    marks: list[Child] = []
    for place, level, x, wide in placed:
        look = paint(trace["marker"]["colors"][place])
        tip = "" if is_narrow else plain_text(trace["customdata"][place])
        marks.append(tipped(box(x, level * step, wide, step), tip, fill=look))
    names = [
        one
        for place, level, x, wide in placed
        for one in _names(trace, place, x + _EDGE, level * step + 16, wide - 2 * _EDGE)
    ]
    boxes = tag("g", *marks, stroke=paint("white"), stroke_width=1)
    return join([boxes, tag("g", *names, fill=paint(INK), class_="over")])


def _names(trace: Trace, place: int, x: float, y: float, room: float) -> Iterator[Markup]:
    label = plain_text(trace["labels"][place])
    name = fitted(label, room, _FONT)
    if name:
        yield label_at(name, x, y)
        amount = fitted(plain_text(trace["text"][place]), room, _FONT - 1)
        if not amount.endswith("…"):
            yield label_at(amount, x, y + 15, font_size=_FONT - 1)


def _placed(trace: Trace, width: float) -> Iterator[tuple[int, int, float, float]]:
    """Place in the trace, level, left and width of what is drawn, each before its parts."""
    places = {name: place for place, name in enumerate(trace["ids"])}
    parts: dict[int, list[int]] = {}
    for place, parent in enumerate(trace["parents"]):
        if parent:
            parts.setdefault(places[parent], []).append(place)
    deepest = int(trace.get("maxdepth", 7))
    values = trace["values"]
    waiting = [(0, 0, 0.0, width)]
    while waiting:
        place, level, x, wide = waiting.pop(0)
        yield place, level, x, wide
        if level + 1 == deepest:
            continue
        for part in parts.get(place, ()):
            own = wide * values[part] / max(values[place], 1)
            if own >= _LEAST:
                waiting.append((part, level + 1, x, own))
            x += own


_LONGEST = 100


def legend(drawn: Drawing) -> Markup | None:
    """The list; nothing where there is nothing to distinguish."""
    if not drawn.layout.get("showlegend", len(drawn.traces) > 1):
        return None
    items = list(_items(drawn))
    return tag("ul", *items, class_="legend") if items else None


def _items(drawn: Drawing) -> Iterator[Markup]:
    for trace in drawn.traces:
        sizes = trace["x" if is_level(trace) else "y"]
        is_seen = trace["type"] != "bar" or np.any(numbers(sizes))
        if is_seen and trace.get("showlegend", True) and trace.get("name"):
            name = clip(plain_text(trace["name"]), _LONGEST)
            swatch = tag("svg", _mark(trace), viewBox="0 0 16 12", aria_hidden="true")
            yield tag("li", swatch, tag("span", name))


def _mark(trace: Trace) -> Markup:
    if trace["type"] == "bar" or trace.get("stackgroup"):
        colour = trace.get("fillcolor") or trace["marker"]["color"]
        area, hatching = box(2, 1, 12, 10), pattern_of(trace)
        over = tag("path", d=area, fill=hatching) if hatching else None
        return join([tag("path", d=area, fill=paint(colour)), over])
    if trace["mode"] == "markers":
        look = trace["marker"]
        symbol, colour = look.get("symbol", "circle"), paint(look["color"])
        is_open = symbol.endswith("-open")
        return tag(
            "path",
            d=symbol_path(symbol, 8, 6, 4.5),
            fill="none" if is_open else colour,
            stroke=colour if is_open else None,
        )
    return tag("path", d="M1 6H15", stroke=paint(trace["line"]["color"]), stroke_width="2.5")
