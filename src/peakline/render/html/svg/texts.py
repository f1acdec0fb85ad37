"""Texts in a drawing: out of Plotly's markup, how wide they are, and what tips say."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Mapping
from math import floor, log10
from typing import Any

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
    body = _PLACE.sub(lambda found: _value(found, values), shown)
    return "\n".join(plain_text(part) for part in (extra.removesuffix("</extra>"), body) if part)


def _value(found: re.Match[str], values: Mapping[str, Any]) -> str:
    value = values.get(found[1], "")
    return number(float(value), found[2]) if found[2] else str(value)


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
