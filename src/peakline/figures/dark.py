"""The colours of figures on a dark page: those of light pages, each with its own for the dark."""

from __future__ import annotations

from typing import Any

from peakline.figures.look import ALARM, COLOURS, GRID, INK, MUTED, QUIET, TINTS

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
