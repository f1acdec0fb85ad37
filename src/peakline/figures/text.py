"""Names and numbers as a figure writes them."""

from __future__ import annotations

import html

from peakline import text as text_module
from peakline.memory.signatures import normal_shape

_LONGEST = 160
_TIMES = ((10**12, "s"), (10**9, "ms"), (10**6, "µs"), (10**3, "ns"), (1, "ps"))
_SIZES = ((2**50, "PiB"), (2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def one_line(text: str, longest: int = _LONGEST) -> str:
    """``text`` of a file in one line, shortened in the middle, control characters as escapes."""
    if len(text) > longest:
        head = (longest - 1) // 2
        text = f"{text[:head]}…{text[head + 1 - longest :]}"
    return text_module.one_line(text)


def plain(text: str, longest: int = _LONGEST) -> str:
    """``text`` as `one_line` that Plotly shows literally.

    Plotly takes some HTML tags, entities, TeX between dollar signs where MathJax is loaded, and in
    the template of a hover text ``%{...}``.
    """
    escaped = html.escape(one_line(text, longest), quote=False)
    return escaped.replace("$", "&#36;").replace("%{", "&#37;{")


def fit(text: str, longest: int) -> str:
    """The end of a name of an op, which says most, in at most ``longest`` characters.

    Whole parts of it where they are not much shorter.
    """
    if len(text) <= longest:
        return text
    end = text[1 - longest :]
    whole = end.find("/")
    return f"…{end[whole:] if 0 <= whole < longest // 2 else end}"


def share_text(part: float, whole: float) -> str:
    """``part`` of ``whole`` in percent: ``12.3%``, ``less than 0.1%``."""
    share = part / whole
    return "less than 0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def form_text(region_type: str, data_type: str, shape: str) -> str:
    """``float [32, 10] (temp)``; empty where nothing is known."""
    form = " ".join(part for part in (data_type, normal_shape(shape)) if part)
    return f"{form} ({region_type})".strip() if region_type else form


def bytes_unit(largest: float) -> tuple[int, str]:
    """How many bytes the unit has in which ``largest`` reads well, and its name.

    Axes are drawn in it, so that their marks are round numbers of it however far one zooms in.
    """
    for size, unit in _SIZES:
        if abs(largest) >= size:
            return size, unit
    return 1, "bytes"


def time_unit(span_ps: float) -> tuple[int, str]:
    """How many picoseconds the unit has in which ``span_ps`` reads well, and its name."""
    for size, unit in _TIMES:
        if abs(span_ps) >= 2 * size:
            return size, unit
    return 1, "ps"


def duration_text(picoseconds: int) -> str:
    """A time with the unit in which it reads well: ``32.773 ms``."""
    if not picoseconds:
        return "0 s"
    size, unit = next((pair for pair in _TIMES if abs(picoseconds) >= pair[0]), (1, "ps"))
    return f"{picoseconds / size:.3f}".rstrip("0").rstrip(".") + f" {unit}"
