"""What stands over or under the traces: the bands of steps, levels, the peak, and their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peakline.render.html.html import Markup, join, tag
from peakline.render.html.svg.frame import Frame
from peakline.render.html.svg.paint import box, label_at, paint, px
from peakline.render.html.svg.texts import fitted, plain_text, width_of

_DASHES = {"dot": "2 3", "dash": "7 4"}
_GAP = 3


def bands(frame: Frame) -> Markup:
    """The areas behind everything, those of one colour as one path."""
    paths: dict[str, list[str]] = {}
    for shape in frame.layout.get("shapes", ()):
        if shape["type"] == "rect":
            start, end = frame.x.clamped(shape["x0"]), frame.x.clamped(shape["x1"])
            if end > start:
                area = box(start, frame.top, end - start, frame.bottom - frame.top)
                paths.setdefault(shape["fillcolor"], []).append(area)
    return join(tag("path", d="".join(marks), fill=paint(one)) for one, marks in paths.items())


def rulers(frame: Frame) -> Markup:
    """Lines across the whole: the peak's time, a capacity."""
    lines = []
    for shape in frame.layout.get("shapes", ()):
        if shape["type"] != "line":
            continue
        if shape.get("yref") == "paper":
            if not frame.x.holds(shape["x0"]):
                continue
            path = f"M{px(frame.x.at(shape['x0']))} {px(frame.bottom)}V{px(frame.top)}"
        else:
            path = f"M{px(frame.x.start)} {px(frame.y['yaxis'].at(shape['y0']))}H{px(frame.x.end)}"
        look = shape["line"]
        lines.append(
            tag(
                "path",
                d=path,
                fill="none",
                stroke=paint(look["color"]),
                stroke_width=str(look["width"]),
                stroke_dasharray=_DASHES.get(look.get("dash", "")),
            )
        )
    return join(lines)


def notes(frame: Frame) -> Markup:
    """The notes on the figure. Names of steps that meet the one before are left out."""
    found: list[Markup] = []
    free = float("-inf")
    for note in frame.layout.get("annotations", ()):
        size = note["font"]["size"]
        content = plain_text(note["text"])
        x, y = _place(frame, note)
        if not frame.x.start - 1 <= x <= frame.x.end + 1:
            continue
        anchor = {"left": "start", "right": "end"}.get(note.get("xanchor", ""), "middle")
        wide = width_of(content, size)
        if note.get("name") == "step":
            if x < free or x + wide > frame.width:
                continue
            free = x + wide + size
        elif anchor == "start" and x + wide + _GAP > frame.width:
            anchor = "end"
        if anchor == "end":
            content = fitted(content, x - frame.x.start, size)
        x += {"start": _GAP, "end": -_GAP}.get(anchor, 0)
        found.append(
            label_at(
                content, x, y, anchor=anchor, font_size=size, fill=paint(note["font"]["color"])
            )
        )  # fmt: skip
    return tag("g", *found, class_="notes-on") if found else Markup()


def _place(frame: Frame, note: Mapping[str, Any]) -> tuple[float, float]:
    span = frame.x.end - frame.x.start
    x = frame.x.start + note["x"] * span if note.get("xref") == "paper" else frame.x.at(note["x"])
    if note.get("yref") == "paper":
        y = frame.bottom - note["y"] * (frame.bottom - frame.top)
    else:
        y = frame.y["yaxis"].at(note["y"])
    return x, y + {"bottom": -4, "middle": 4, "top": 12}.get(note.get("yanchor", ""), 0)
