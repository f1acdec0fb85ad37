"""How all figures look: colours, for light pages and dark ones, fonts, axes, names and numbers."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from peakline import safe_text
from peakline.memory.signatures import normal_shape

_LONGEST = 160
_TIMES = ((10**12, "s"), (10**9, "ms"), (10**6, "µs"), (10**3, "ns"), (1, "ps"))
_SIZES = ((2**50, "PiB"), (2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def one_line(text: str, longest: int = _LONGEST) -> str:
    """``text`` of a file in one line, shortened in the middle, control characters as escapes."""
    if len(text) > longest:
        head = (longest - 1) // 2
        text = f"{text[:head]}…{text[head + 1 - longest :]}"
    return safe_text.one_line(text)


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


COLOURS = ("#2F6FD0", "#C2571A", "#2A8553", "#8A4FB8", "#A3860F", "#1591A0", "#C23B6D", "#66727F")
"""Those of the page, `--series-1` to `--series-8` of its stylesheet."""
TINTS = ("#A8C3EB", "#E5B89F", "#A6CCB7", "#CEB5E1", "#D8CC9A", "#9DD1D7", "#E5ADC2", "#BFC4C9")
"""The same, paler: areas that dark text can be read on."""
ALARM = "#B3261E"
"""What grows, and peaks."""
INK = "#1B2430"
MUTED = "#55606E"
QUIET = "#BBBBBB"
"""What stands for the rest."""
GRID = "#E6E6E6"
_SPOKEN = 2000
_TICKS = 12
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


def axis(title: str, **more: Any) -> dict[str, Any]:
    """A plain axis with a title and a light grid."""
    return {
        "title": {"text": title, "standoff": 12},
        "gridcolor": GRID,
        "zeroline": False,
        "linecolor": "#999999",
        "ticks": "outside",
        "tickcolor": "#999999",
        "automargin": True,
        **more,
    }


def ruler(
    colour: str, *, dash: str = "dot", x: float | None = None, y: float | None = None
) -> dict[str, Any]:
    """A line across the whole figure: upright at ``x``, or level at ``y``, in the axis's unit."""
    at = {"xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y}
    if x is not None:
        at = {"xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1}
    return {"type": "line", **at, "line": {"color": colour, "width": 1.5, "dash": dash}}


def note(text: str, colour: str, **place: Any) -> dict[str, Any]:
    """A word on the figure; ``place`` says where, as Plotly's annotations do."""
    font = {"size": 11, "color": colour}
    return {**place, "text": text, "showarrow": False, "font": font}


def peak_mark(x: float, y: float = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """The line of the peak's time ``x`` over a figure of time, and its name at the height ``y``."""
    anchor = "middle" if y else "bottom"
    place = {"xref": "x", "yref": "paper", "x": x, "y": y, "yanchor": anchor, "xanchor": "left"}
    return ruler(ALARM, x=x), note("peak", ALARM, **place)


def level_mark(
    text: str, colour: str, y: float, dash: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A line at the height ``y``, and what it is, above it at the right."""
    place = {"xref": "paper", "x": 1, "xanchor": "right", "y": y, "yanchor": "bottom"}
    return ruler(colour, dash=dash, y=y), note(text, colour, **place)


def step_line(name: str, colour: str, x: Any, y: Any, **more: Any) -> dict[str, Any]:
    """A value that holds until the next one, over time."""
    line = {"shape": "hv", "color": colour, "width": 1.5}
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": line, **more}


def points(name: str, x: Any, y: Any, marker: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Single points."""
    shape = {"type": "scatter", "mode": "markers", "name": name}
    return {**shape, "x": x, "y": y, "marker": marker, **more}


def level_bars(name: str, colour: str, x: Any, y: Any, **more: Any) -> dict[str, Any]:
    """Bars from the left, one per row."""
    shape = {"type": "bar", "orientation": "h", "name": name}
    return {**shape, "x": x, "y": y, "marker": {"color": colour}, **more}


def step_bars(
    name: str, colour: str, y: Any, labels: Sequence[str], hover: str, hatching: str = ""
) -> dict[str, Any]:
    """Bars from the bottom, one per step or several, whose ``labels`` the text ``hover`` shows.

    ``hatching``, ``/`` or ``x``, distinguishes what has the same colour.
    """
    marker: dict[str, Any] = {"color": colour}
    if hatching:
        marker["pattern"] = {"shape": hatching}
    look = {"text": labels, "textposition": "none", "marker": marker}
    shape = {"type": "bar", "name": name, "x": list(range(len(labels))), "y": y}
    return {**shape, **look, "hovertemplate": f"{hover}<extra>{name}</extra>"}


def step_axis(labels: Sequence[str], bar: str) -> dict[str, Any]:
    """The axis of `step_bars`, with twelve of the labels; ``bar`` says what one stands for."""
    every = -(-len(labels) // _TICKS)
    ticks = {"tickvals": list(range(0, len(labels), every)), "ticktext": labels[::every]}
    return axis(f"Step (a bar is {bar})", **ticks)


def row_axis(title: str, names: Sequence[str], **more: Any) -> dict[str, Any]:
    """The axis of `level_bars`, the first row on top."""
    ticks = {"tickvals": list(range(len(names))), "ticktext": names}
    return axis(title, **ticks, autorange="reversed", **more)


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure as plain data, in the terms of Plotly's traces and layout; arrays are NumPy's.

    `peakline.figures` makes a Plotly figure of it, the report an SVG, and the service JSON. Texts
    are as `peakline.figures.look.plain` writes them.
    """

    traces: tuple[Mapping[str, Any], ...]
    layout: Mapping[str, Any]

    @property
    def title(self) -> str:
        """What it shows, in a few words."""
        return str(self.layout["title"]["text"])

    @property
    def subtitle(self) -> str:
        """The line below the title."""
        return str(self.layout["title"]["subtitle"]["text"])

    @property
    def description(self) -> str:
        """What it shows, in words, for a screen reader."""
        return str(self.layout["meta"]["description"])


def drawing(
    traces: Sequence[Mapping[str, Any]],
    *,
    title: str,
    subtitle: str,
    description: str,
    height: int = 420,
    **layout: Any,
) -> Drawing:
    """What is to be drawn. ``description`` says what it shows, for a screen reader."""
    look: dict[str, Any] = {
        "title": {
            "text": title,
            "subtitle": {"text": subtitle, "font": {"size": 12, "color": MUTED}},
            "x": 0.012,
            "xref": "container",
            "xanchor": "left",
            "y": 1 - 16 / height,
            "yref": "container",
            "yanchor": "top",
        },
        "font": {"family": _FONT, "size": 12, "color": INK},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "height": height,
        "margin": {"l": 70, "r": 24, "t": 92, "b": 100},
        "legend": {
            "orientation": "h",
            "x": 0.012,
            "xref": "container",
            "traceorder": "normal",
            "y": 8 / height,
            "yref": "container",
            "yanchor": "bottom",
        },
        "hoverlabel": {"align": "left", "bgcolor": "white", "font": {"color": INK}},
        "meta": {"description": one_line(description, _SPOKEN)},
        "separators": ".,",
    }
    return Drawing(tuple(traces), look | layout)


_DARK_TINTS = "#3E5C86 #7A543F #386A55 #64537E #6F6535 #326975 #794B62 #535B66".split()
_DARK_COLOURS = "#6AA5F8 #F0935A #5CC48A #BF92E6 #D6B944 #4FC3D1 #EE7FA8 #98A4B1".split()
DARK: dict[str, str] = {
    "white": "#1A2029",
    "#EEEEEE": "#232B36",
    GRID: "#36404D",
    "#999999": "#6B7785",
    QUIET: "#56616E",
    MUTED: "#A4AFBC",
    INK: "#E6EAF0",
    # The bands of steps, a shade beside the ground.
    "#EAF1F8": "#1E2732",
    "#F5F1EA": "#25272C",
    # Areas that are read through: INK is light now.
    **dict(zip(TINTS, _DARK_TINTS, strict=True)),
    **dict(zip(COLOURS, _DARK_COLOURS, strict=True)),
    ALARM: "#FF8A80",
    # The other reds of what grows.
    "#A63603": "#D9662E",
    "#FDAE6B": "#FDAE6B",
    "#7F2704": "#B5532A",
    "#FDD0A2": "#FDD0A2",
    "#E6550D": "#E6550D",
    "#FD8D3C": "#FD8D3C",
}
_PLACES = frozenset(
    (
        "bgcolor", "color", "colors", "fillcolor", "gridcolor", "linecolor", "paper_bgcolor",
        "plot_bgcolor", "tickcolor",
    )
)  # fmt: skip
"""What holds colours: a name in a profile may be called like one."""


def dark(document: Any) -> Any:
    """``document``, of a figure or a part of it, with the colours of a dark page."""
    if isinstance(document, dict):
        return {
            key: _shaded(value) if key in _PLACES else dark(value)
            for key, value in document.items()
        }
    if isinstance(document, (list, tuple)):
        return [dark(part) for part in document]
    return document


def _shaded(colours: Any) -> Any:
    if isinstance(colours, str):
        return DARK.get(colours, colours)
    if isinstance(colours, (list, tuple)):
        return [_shaded(colour) for colour in colours]
    return dark(colours)
