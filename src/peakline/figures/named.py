"""Figures by name, as JSON, in light or dark colours: for callers that choose one in text.

The figures themselves are drawn for a white page.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from peakline import figures
from peakline.errors import NotFoundError, UsageError
from peakline.figures.look import ALARM, COLOURS, GRID, INK, MUTED, QUIET, TINTS
from peakline.tables import Profile
from peakline.toolbox.parameters import check_choice

THEMES = ("light", "dark")

_DARK_TINTS = "#2B6383 #77560F #1F6A55 #80486A #35688A #6E5628 #5C4D92 #5A636E".split()
_DARK_COLOURS = "#4DA3DB #F0B429 #35C296 #E39AC3 #9AD3F5 #C48A3A #A992E0 #9AA3AD".split()
_DARK: dict[str, str] = {
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
    ALARM: "#FF7A45",
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
        return _DARK.get(colours, colours)
    if isinstance(colours, (list, tuple)):
        return [_shaded(colour) for colour in colours]
    return dark(colours)


_PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "allocator": {
        "type": "string",
        "description": "this allocator. Default: the one the figure is most about, or all",
    },
    "device": {
        "type": "string",
        "description": "this device. Default: the one whose steps took longest in all",
    },
    "side": {
        "type": "string",
        "enum": ["device", "host"],
        "description": "only what ran there. Default: both",
    },
}


@dataclass(frozen=True)
class FigureKind:
    """One of the figures: what it shows in a line, and the parameters it takes beside the theme,
    each with its JSON schema.
    """

    name: str
    doc: str
    parameters: Mapping[str, Mapping[str, Any]] = field(hash=False)


@dataclass(frozen=True)
class FigureQuestion:
    """A figure by name with its parameters; None: left out. ``theme`` is light or dark."""

    name: str
    allocator: str | None = None
    device: str | None = None
    side: str | None = None
    theme: str = "light"


def figure_names() -> list[str]:
    """The names of all figures, sorted."""
    return sorted(figures.__all__)


def figure_kind(name: str) -> FigureKind:
    """The figure called ``name``; raises NotFoundError that names the known ones."""
    check_choice(name, figure_names(), "no figure", NotFoundError)
    draw: Callable[..., Any] = getattr(figures, name)
    doc = " ".join((inspect.getdoc(draw) or "").partition("\n\n")[0].split())
    taken = inspect.signature(draw).parameters
    return FigureKind(name, doc, {own: _PARAMETERS[own] for own in _PARAMETERS if own in taken})


def figure_json(profile: Profile, asked: FigureQuestion) -> bytes:
    """The figure as Plotly's JSON, ``{"data", "layout"}``; ``null`` where there is nothing to show.

    Strict JSON: columns are plain arrays, and what is no number is null. Raises NotFoundError for
    a figure, an allocator or a device that is not there, UsageError for a parameter that the
    figure does not take or a value that it cannot have, InputError when the profile cannot be read.
    """
    kind = figure_kind(asked.name)
    given = {own: value for own in _PARAMETERS if (value := getattr(asked, own)) is not None}
    check_choice(asked.theme, THEMES, "no theme")
    for own, value in given.items():
        if own not in kind.parameters:
            takes = ", ".join(kind.parameters) or "none"
            raise UsageError(f"{kind.name} takes no {own}; its parameters: {takes}")
        known = kind.parameters[own].get("enum", (value,))
        if value not in known:
            shown = f"{value!r:.80}"
            complaint = f"{kind.name}: {own} is {' or '.join(known)}, not {shown}"
            raise UsageError(complaint).quoting(shown)
    if "allocator" in kind.parameters:
        from peakline.findings.memory_answer import memory_of

        given["answer"] = memory_of(profile)
    drawn = getattr(figures, asked.name)(profile, **given)
    if drawn is None:
        return b"null"
    # A figure as a whole would pack its arrays (base64), which only Plotly's newer scripts read.
    document = _plain(
        {
            "data": [trace.to_plotly_json() for trace in drawn.data],
            "layout": drawn.layout.to_plotly_json(),
        }
    )
    if asked.theme == "dark":
        document = dark(document)
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def _plain(value: Any) -> Any:
    """``value`` as JSON has it: arrays as lists, and None for what is no finite number."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):  # noqa: PLR0124
        return None
    return value
