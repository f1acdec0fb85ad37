"""An icicle: parts below what they are parts of, as wide as their share."""

from __future__ import annotations

from collections.abc import Iterator

from peakline.figures.look import INK
from peakline.render.html.html import Child, Markup, join, tag
from peakline.render.html.svg.extent import Trace
from peakline.render.html.svg.paint import box, label_at, paint, tipped
from peakline.render.html.svg.texts import fitted, plain_text

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
