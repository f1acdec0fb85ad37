"""Numbers, colours, plain marks and texts as SVG."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Mapping
from math import floor, log10
from typing import Any

from peakline.figures.look import DARK
from peakline.render.html.html import Child, Markup, tag, text

_BREAK = re.compile(r"<br\s*/?>")
_TAG = re.compile(r"</?b>")
_PLACE = re.compile(r"%\{(\w+)(?::([^}%]*))?\}")
_THIN = frozenset("iljtfrI.,:;'|!()[]{}/ \"-`")
_WIDE = frozenset("mwMW@%—…")


def plain_text(markup: str) -> str:
    """What a person reads of a text for Plotly: lines for ``<br>``, no bold, no entities."""
    return html.unescape(_TAG.sub("", _BREAK.sub("\n", markup)))


def tip_text(template: str, values: Mapping[str, Any]) -> str:
    """A hover template of Plotly with the values of one point; its name, if any, comes first."""
    shown, _, extra = template.partition("<extra>")
    body = _PLACE.sub(lambda result: _value(result, values), shown)
    return "\n".join(plain_text(part) for part in (extra.removesuffix("</extra>"), body) if part)


def _value(result: re.Match[str], values: Mapping[str, Any]) -> str:
    value = values.get(result[1], "")
    return number(float(value), result[2]) if result[2] else str(value)


def number(value: float, form: str) -> str:
    """``value`` in one of d3's formats that figures use: ``.1f``, or digits as ``,.6~r``."""
    if form.endswith("f"):
        return format(value, form)
    digits = int(re.sub(r"\D", "", form))
    if not value:
        return "0"
    places = max(digits - 1 - floor(log10(abs(value))), 0)
    text = f"{round(value, places):,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def width_of(text: str, size: float) -> float:
    """About how many pixels a text of this font size takes; rather too many than too few."""
    return sum(_share(one) for one in text) * size


def _share(char: str) -> float:
    if char in _THIN:
        return 0.36
    if char in _WIDE or unicodedata.east_asian_width(char) in "WF":
        return 0.98
    return 0.7 if char.isupper() else 0.6


def fitted(text: str, room: float, size: float, *, end: bool = False) -> str:
    """``text``, cut to ``room`` pixels; of an op's name the ``end`` says most. Empty where not even
    three characters have room.
    """
    if width_of(text, size) <= room:
        return text
    left = room - width_of("…", size)
    chars: list[str] = []
    for char in reversed(text) if end else text:
        left -= _share(char) * size
        if left < 0:
            break
        chars.append(char)
    if len(chars) < 3:
        return ""
    return f"…{''.join(reversed(chars))}" if end else f"{''.join(chars)}…"


def sized_name(text: str, room: float, size: float) -> str:
    """The name of a row, cut to ``room``; a size that follows it after two blanks stays."""
    name, blanks, amount = text.rpartition("  ")
    if not blanks or width_of(text, size) <= room:
        return fitted(text, room, size, end=True)
    amount = f" {amount}"
    return fitted(name, room - width_of(amount, size), size, end=True) + amount


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
    result = (
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
    return tag("svg", tag("defs", *result), width=0, height=0, class_="unseen", aria_hidden="true")
