"""Numbers as a person reads them, the exact ones beside them."""

from __future__ import annotations

from collections.abc import Mapping

from peakline.findings.kind import unit_of
from peakline.render.html.html import Child, Markup, clip, code, tag, text
from peakline.text import size_text as size_words

__all__ = [
    "Steps",
    "count",
    "form",
    "named",
    "number",
    "percent",
    "share_bar",
    "size",
    "size_words",
    "time",
    "time_text",
    "times",
    "value_of",
]

UNKNOWN = "not known"
_STEP_NAME = 40
_NUMBERED = 10**6
_LEAST_SHARE = 0.001

_CAUSES = {
    "larger_than_limit": "the request alone exceeds the limit",
    "held_back": "a free piece was large enough, but held back",
    "fragmented": "enough was free, but in pieces",
    "device_full": "the device had no more to give",
    "full": "not enough was free",
    "unknown": "the report does not tell",
}
_SHORT = 28


class Steps:
    """What a person calls the steps of a profile.

    Sessions number their steps at random, which says nothing: such numbers are not shown.
    """

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names

    def label(self, step: int | None) -> str:
        """The name of a step, its number where it has none; nothing where neither tells."""
        if step is None:
            return ""
        name = self._names.get(step, "")
        if name and name != str(step):
            return clip(name, _STEP_NAME)
        return str(step) if 0 <= step < _NUMBERED else ""


def size(value: float | None) -> Markup:
    """A size with its unit; the exact bytes are its value and what the pointer shows."""
    if value is None:
        return tag("span", UNKNOWN, class_="unknown")
    exact = round(value)
    return tag("data", size_words(value), value=exact, title=f"{exact:,} bytes")


def time_text(picoseconds: int) -> str:
    """A time with three significant decimals in the unit that fits: ``32.773 ms``."""
    for unit, scale in (("s", 10**12), ("ms", 10**9), ("µs", 10**6)):
        if abs(picoseconds) >= scale:
            return f"{picoseconds / scale:.3f} {unit}"
    return f"{picoseconds / 1000:g} ns"


def time(picoseconds: int | None) -> Markup:
    """A time on the profile's clock; the exact picoseconds are its value."""
    if picoseconds is None:
        return tag("span", UNKNOWN, class_="unknown")
    told = time_text(picoseconds)
    return tag("data", told, value=picoseconds, title=f"{picoseconds:,} ps")


def number(value: float) -> str:
    """A count with separators: ``1,986``; fractions with one decimal."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def times(factor: float) -> str:
    """``1.1 times``, ``less than 0.1 times``."""
    return "less than 0.1 times" if 0 < factor < 0.1 else f"{factor:,.1f} times"


def percent(share: float, decimals: int = 1) -> str:
    """A share: ``43.8%``."""
    least = _LEAST_SHARE * 10 ** (1 - decimals)
    return f"<{least:.{decimals}%}" if 0 < share < least else f"{share:.{decimals}%}"


def count(value: int, what: str) -> str:
    """``1 buffer``, ``2,048 buffers``."""
    return f"{value:,} {what}{'' if value == 1 else 's'}"


def named(allocator: str) -> str:
    """An allocator's name, also where it has none."""
    return clip(allocator) or "(unnamed allocator)"


def form(*words: str) -> Markup:
    """A type, a shape or both; not broken where it is short."""
    told = clip(" ".join(word for word in words if word))
    return tag("span", told, class_="whole" if len(told) <= _SHORT else None)


def share_bar(part: int, whole: int, told: str = "") -> Markup:
    """A share as a number with a bar behind it, which says nothing the number does not.

    ``told`` is the number where it is rounded so that it adds up with others (`shares_text`).
    """
    share = part / whole if whole else 0.0
    if told == f"{0:.1%}" and part > 0:
        told = f"<{_LEAST_SHARE:.1%}"
    width = min(max(share, 0.0), 1.0)
    return tag("span", told or percent(share), class_="share", style=f"--share:{width:.4f}")


def value_of(name: str, value: object, steps: Steps) -> Child:
    """One value of evidence, by what its column ``name`` says about its unit."""
    if value is None:
        return tag("span", UNKNOWN, class_="unknown")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        unit = unit_of(name)
        if unit == "bytes":
            return size(value)
        if unit == "ps":
            return time(int(value))
        if unit == "share":
            return percent(value)
        if name in {"since_step", "until_step"}:
            return steps.label(int(value))
        return number(value)
    if isinstance(value, str):
        if name == "cause":
            return _CAUSES.get(value, value)
        if name == "shape":
            return form(value)
        return code(value) if name in {"op", "asked_by"} and value else clip(value)
    return text(clip(str(value)))
