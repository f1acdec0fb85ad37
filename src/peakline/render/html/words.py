"""Numbers as a person reads them, the exact ones beside them."""

from __future__ import annotations

from collections.abc import Mapping

from peakline.render.html.html import Child, Markup, clip, code, tag, text
from peakline.text import size_text as size_words

__all__ = [
    "Steps",
    "count",
    "form",
    "heading_of",
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

_HEADINGS = {
    "op": "Op",
    "scope": "Scope",
    "region_type": "Region",
    "data_type": "Type",
    "shape": "Shape",
    "bytes": "Bytes",
    "count": "Buffers",
    "since_ps": "Since",
    "buffer_bytes": "One buffer",
    "forms": "Shapes",
    "pattern": "Pattern",
    "since_step": "Since step",
    "since_step_name": "Since step",
    "until_step": "Until step",
    "bytes_per_step": "Per step",
    "kept_bytes": "Kept",
    "held_bytes": "Held at the end",
    "rises": "Steps that grew",
    "confidence": "Confidence",
    "allocations_per_step": "Allocations per step",
    "most_live": "Most at a time",
    "peak_bytes": "Peak",
    "peak_after_bytes": "Peak without it",
    "saved_bytes": "Saves",
    "capacity_bytes": "Capacity",
    "steps_left": "Steps until the capacity is reached",
    "steps_detail": "Steps are",
    "steps": "Steps seen",
    "height_bytes": "Highest tooth",
    "period_steps": "Steps per tooth",
    "pins": "Small buffers between the pieces",
    "pin_bytes": "Their bytes",
    "holes": "Free pieces in a row",
    "row_bytes": "The row would be one piece of",
    "largest_hole_bytes": "Largest free piece",
    "free_bytes": "Free",
    "asked_bytes": "Asked for",
    "asked_by": "Asked for by",
    "time_ps": "At",
    "wasted_bytes": "Needed only because of the pieces",
    "requested_bytes": "Asked for",
    "rounded_bytes": "Rounded up to",
    "limit_bytes": "Limit",
    "pool_bytes": "Taken from the device",
    "in_use_bytes": "In use",
    "largest_free_bytes": "Largest free piece",
    "fragmentation": "Fragmentation",
    "would_fit": "A free piece was large enough",
    "is_complete": "The whole report is there",
    "share": "Share of the capacity",
    "top_chunks": "Pieces in use, by size",
    "total_bytes": "Together",
    "device_free_bytes": "Free on the device",
    "outside_bytes": "Held outside the pool",
    "failed_requests": "Failed requests",
    "last_after_ps": "The last one failed after",
    "unattributed_bytes": "In use, less what the records name",
}


_OWN_HEADINGS = {("fragmentation", "peak_bytes"): "Most in use at known addresses"}
"""What a finding of one kind means by a name that others use for something else."""


def heading_of(name: str, kind: str = "") -> str:
    """What a person calls the column ``name`` of evidence of a finding of ``kind``."""
    if (kind, name) in _OWN_HEADINGS:
        return _OWN_HEADINGS[kind, name]
    return _HEADINGS.get(name) or name.replace("_", " ").capitalize()


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
        if "bytes" in name.split("_"):
            return size(value)
        if name.endswith("_ps"):
            return time(int(value))
        if name in {"share", "fragmentation", "confidence"}:
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
