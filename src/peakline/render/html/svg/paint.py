"""Numbers, colours and plain marks as SVG.

Colours are custom properties of the stylesheet, so that a dark page and print have their own: the
property of ``#0072B2`` is ``--c0072b2``. `rules` writes them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peakline.figures.dark import DARK
from peakline.render.html.html import Child, Markup, tag, text


def paint(colour: str) -> str:
    """A colour of a figure as an attribute of SVG has it."""
    if colour in {"white", "#FFFFFF"}:
        return "var(--page)"
    return f"var(--c{colour[1:].lower()})" if colour in DARK else colour


def rules(*, dark: bool) -> str:
    """The custom properties of all colours of figures, on a light page or on a dark one."""
    return "".join(
        f"--c{light[1:].lower()}:{other if dark else light};"
        for light, other in DARK.items()
        if light.startswith("#")
    )


def px(value: float) -> str:
    """A place in tenths of a pixel."""
    short = f"{value:.1f}".removesuffix(".0")
    return "0" if short == "-0" else short


def box(x: float, y: float, width: float, height: float) -> str:
    """The path of a rectangle."""
    return f"M{px(x)} {px(y)}h{px(width)}v{px(height)}h{px(-width)}z"


def label_at(content: str, x: float, y: float, **more: str | int | None) -> Markup:
    """A text at a place; ``anchor`` is start, middle or end."""
    anchor = more.pop("anchor", None)
    placed = tag("text", content, x=px(x), y=px(y), **more)
    if anchor in (None, "start"):
        return placed
    return Markup(placed.replace("<text", f'<text text-anchor="{text(anchor)}"', 1))


def tipped(mark: str, tip: str, **attributes: str | int | None) -> Markup:
    """A path with what the pointer shows."""
    title: Child = tag("title", tip) if tip else None
    return tag("path", title, d=mark, **attributes)


_HATCHINGS = {"/": "hatched", "x": "crossed"}


def pattern_of(trace: Mapping[str, Any]) -> str:
    """The fill that hatches a trace's bars, one of `patterns`; empty for none."""
    shape = trace.get("marker", {}).get("pattern", {}).get("shape", "")
    return f"url(#{_HATCHINGS[shape]})" if shape in _HATCHINGS else ""


def patterns() -> Markup:
    """The hatchings, which all drawings of a page share."""
    lines = {"hatched": "M-1 1 1 -1M0 6 6 0M5 7 7 5", "crossed": "M0 6 6 0M0 0 6 6"}
    found = (
        tag(
            "pattern",
            tag("path", d=path, stroke="var(--page)", stroke_width="1.3"),
            id=name,
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
        )
        for name, path in lines.items()
    )
    # Not display: none, which would take the patterns away too.
    return tag("svg", tag("defs", *found), width=0, height=0, class_="unseen", aria_hidden="true")
