"""What each colour and symbol of a drawing stands for, as a list below it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from peakline.figures.look import Drawing
from peakline.render.html.html import Markup, clip, join, tag
from peakline.render.html.svg.extent import Trace, is_level, numbers
from peakline.render.html.svg.lines import symbol_path
from peakline.render.html.svg.paint import box, paint, pattern_of
from peakline.render.html.svg.texts import plain_text

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
