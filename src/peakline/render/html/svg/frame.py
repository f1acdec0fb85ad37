"""Where the parts of a drawing stand: panels, axes, titles, and what lies over or under traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from peakline.figures.look import GRID, MUTED
from peakline.render.html.html import Markup, join, tag
from peakline.render.html.svg.paint import (
    box,
    fitted,
    label_at,
    paint,
    plain_text,
    px,
    sized_name,
    width_of,
)
from peakline.render.html.svg.scales import (
    Scale,
    Trace,
    axis_of,
    round_steps,
    step_texts,
    x_range,
    y_range,
)

FONT, SMALL = 12, 11
_TOP, _BOTTOM, _RIGHT = 20, 46, 14
_TITLE = 18
"""The room of a title beside an axis."""
_NARROW = 500
_ROWS_SHARE = 0.4
"""Names of rows take at most this share of the width."""


@dataclass(frozen=True)
class Frame:
    """A drawing of ``width`` times ``height`` pixels: one x axis, and a y axis per panel."""

    width: float
    height: float
    x: Scale
    y: Mapping[str, Scale]
    layout: Mapping[str, Any]

    @property
    def is_narrow(self) -> bool:
        """Whether it is for a phone."""
        return self.width < _NARROW

    @property
    def top(self) -> float:
        """The upper end of the highest panel."""
        return min(scale.end for scale in self.y.values())

    @property
    def bottom(self) -> float:
        """The lower end of the lowest panel."""
        return max(scale.start for scale in self.y.values())

    def y_of(self, trace: Trace) -> Scale:
        """The y axis that a trace is drawn on."""
        return self.y[axis_of(trace)]


def frame_of(
    traces: Sequence[Trace], layout: Mapping[str, Any], width: float, inside: float
) -> Frame:
    """The frame of these traces, ``inside`` pixels high without its edges."""
    names = sorted({"yaxis", *(axis_of(one) for one in traces)})
    height = inside + _TOP + _BOTTOM
    panels: dict[str, Scale] = {}
    for name in names:
        low, high = layout.get(name, {}).get("domain", (0, 1))
        start, end = (_TOP + inside * (1 - share) for share in (low, high))
        panels[name] = Scale(*y_range(name, traces, layout), start, end)
    left = max(_left(layout.get(name, {}), panels[name], width) for name in names)
    across = Scale(*x_range(traces, layout), left, width - _RIGHT)
    return Frame(width, height, across, panels, layout)


def _size(axis: Mapping[str, Any]) -> float:
    return float(axis.get("tickfont", {}).get("size", SMALL))


def _left(axis: Mapping[str, Any], scale: Scale, width: float) -> float:
    size = _size(axis)
    longest = max((width_of(text, size) for _, text in _y_marks(axis, scale)), default=0)
    title = _TITLE if axis.get("title", {}).get("text") else 0
    return min(longest, _ROWS_SHARE * width) + title + 12


def _y_marks(axis: Mapping[str, Any], scale: Scale) -> list[tuple[float, str]]:
    """The marks of an upright axis, and their texts."""
    if "tickvals" in axis:
        return list(zip(axis["tickvals"], map(plain_text, axis["ticktext"]), strict=True))
    values = round_steps(scale.low, scale.high, max(int(scale.pixels // 40), 3))
    return list(zip(values, step_texts(values), strict=True))


def _x_marks(axis: Mapping[str, Any], scale: Scale) -> Iterator[tuple[float, str]]:
    """The marks of the level axis; texts that would meet the one before are left out."""
    if "tickvals" in axis:
        texts = [fitted(plain_text(text), scale.pixels / 4, SMALL) for text in axis["ticktext"]]
        result = list(zip(axis["tickvals"], texts, strict=True))
    else:
        values = round_steps(scale.low, scale.high, max(int(scale.pixels // 75), 3))
        result = list(zip(values, step_texts(values), strict=True))
    free = scale.start - 20
    for value, text in result:
        half = width_of(text, SMALL) / 2
        at = scale.at(value)
        if at - half >= free and at + half <= scale.end + _RIGHT:
            free = at + half + 8
            yield value, text


def axes(frame: Frame) -> Markup:
    """Grid, marks and titles of all axes."""
    grid: list[str] = []
    parts: list[Markup] = []
    x_axis = frame.layout.get("xaxis", {})
    left, right = frame.x.start, frame.x.end
    has_rows = False
    for name, scale in frame.y.items():
        axis = frame.layout.get(name, {})
        size, is_rows = _size(axis), "tickvals" in axis
        has_rows |= is_rows
        title = plain_text(axis.get("title", {}).get("text", ""))
        room = left - 12 - (_TITLE if title else 0)
        for value, text in _y_marks(axis, scale):
            at = scale.at(value)
            if not is_rows:
                grid.append(f"M{px(left)} {px(at)}H{px(right)}")
            shown = sized_name(text, room, size) if is_rows else text
            label = label_at(shown, left - 7, at + size * 0.35, anchor="end", font_size=px(size))
            parts.append(label)
        if title:
            middle = (scale.start + scale.end) / 2
            turned = fitted(title, scale.pixels + 40, FONT)
            place = f"translate({px(FONT)} {px(middle)})rotate(-90)"
            parts.append(tag("text", turned, transform=place, text_anchor="middle"))
    for value, text in _x_marks(x_axis, frame.x):
        at = frame.x.at(value)
        if has_rows:
            grid.append(f"M{px(at)} {px(frame.top)}V{px(frame.bottom)}")
        parts.append(label_at(text, at, frame.bottom + 16, anchor="middle", font_size=SMALL))
    title = plain_text(x_axis.get("title", {}).get("text", ""))
    if frame.is_narrow:
        title = title.replace(" since the profile's start", "")
    if title:
        middle = (left + right) / 2
        parts.append(label_at(title, middle, frame.height - 8, anchor="middle", class_="title"))
    lines = tag("path", d="".join(grid), stroke=paint(GRID), fill="none") if grid else None
    base = "".join(f"M{px(left)} {px(scale.start)}H{px(right)}" for scale in frame.y.values())
    if has_rows:
        base = f"M{px(left)} {px(frame.top)}V{px(frame.bottom)}"
    return join(
        [
            lines,
            tag("path", d=base, stroke=paint("#999999"), fill="none"),
            tag("g", *parts, fill=paint(MUTED)),
        ]
    )


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
    result: list[Markup] = []
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
        result.append(
            label_at(
                content, x, y, anchor=anchor, font_size=size, fill=paint(note["font"]["color"])
            )
        )  # fmt: skip
    return tag("g", *result, class_="notes-on") if result else Markup()


def _place(frame: Frame, note: Mapping[str, Any]) -> tuple[float, float]:
    span = frame.x.end - frame.x.start
    x = frame.x.start + note["x"] * span if note.get("xref") == "paper" else frame.x.at(note["x"])
    if note.get("yref") == "paper":
        y = frame.bottom - note["y"] * (frame.bottom - frame.top)
    else:
        y = frame.y["yaxis"].at(note["y"])
    return x, y + {"bottom": -4, "middle": 4, "top": 12}.get(note.get("yanchor", ""), 0)
