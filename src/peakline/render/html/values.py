"""Numbers as a person reads them, the exact ones beside them."""

from __future__ import annotations

from peakline.document.model import Value, text_of
from peakline.render.html.html import Child, Markup, clip, code, tag
from peakline.render.html.svg.paint import box
from peakline.text import allocator_text

_SHORT = 28
_BAR = 56


def size(value: float | None) -> Markup:
    """A size with its unit; the exact bytes are its value and what the pointer shows."""
    return _exact(value, "bytes", "bytes")


def time(picoseconds: int | None) -> Markup:
    """A time on the profile's clock; the exact picoseconds are its value."""
    return _exact(picoseconds, "ps", "ps")


def _exact(value: float | None, unit: str, name: str) -> Markup:
    if value is None:
        return tag("span", "not known", class_="unknown")
    exact = round(value)
    return tag("data", text_of(value, unit), value=exact, title=f"{exact:,} {name}")


def named(allocator: str) -> str:
    """An allocator's name, also where it has none."""
    return allocator_text(clip(allocator))


def cell(value: Value, unit: str) -> Child:
    """A cell of a document's table, or a fact's value: what its ``unit`` makes of it."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        if unit == "share":
            return _share_bar(value)
        if unit == "form":
            text = clip(value)
            # A type or a shape is not broken where it is short.
            return tag("span", text, class_="whole" if len(text) <= _SHORT else None)
        return code(value) if unit == "name" else clip(value)
    if value is None or unit in {"bytes", "ps"}:
        return _exact(value, unit, unit)
    return text_of(value, unit)


def _share_bar(text: str) -> Markup:
    """A share with a bar behind it, which says nothing the number does not."""
    width = float(text.removesuffix("%") or 0) / 100 * _BAR
    marks = (
        tag("path", d=box(0, 0, _BAR, 9), class_="whole-bar"),
        tag("path", d=box(0, 0, min(width, _BAR), 9), class_="part-bar"),
    )
    bar = tag("svg", *marks, viewBox=f"0 0 {_BAR} 9", aria_hidden="true")
    return tag("span", bar, text, class_="share")
