"""A figure of `peakline.figures` as SVG: once for a page's width and paper, once for a phone's."""

from __future__ import annotations

from peakline.figures.look import INK, Drawing
from peakline.render.html.html import Child, Markup, tag
from peakline.render.html.svg.bars import bars
from peakline.render.html.svg.extent import Trace
from peakline.render.html.svg.frame import axes, frame_of
from peakline.render.html.svg.icicle import icicle
from peakline.render.html.svg.lines import lines, slices
from peakline.render.html.svg.overlays import bands, notes, rulers
from peakline.render.html.svg.paint import paint, px

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
