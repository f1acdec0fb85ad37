"""Figures by name, as JSON, in light or dark colours: for callers that choose one in text.

The figures themselves are drawn for a white page.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from peakline import figures, findings
from peakline.errors import NotFoundError, UsageError
from peakline.figures.look import dark
from peakline.tables import Profile
from peakline.toolbox.parameters import check_choice

THEMES = ("light", "dark")

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
    from peakline.figures import drawings

    draw: Callable[..., Any] = getattr(drawings, name)
    doc = " ".join((inspect.getdoc(draw) or "").partition("\n\n")[0].split())
    taken = inspect.signature(draw).parameters
    return FigureKind(name, doc, {own: _PARAMETERS[own] for own in _PARAMETERS if own in taken})


def figure_json(profile: Profile, chosen: FigureQuestion) -> bytes:
    """The figure as Plotly's JSON, ``{"data", "layout"}``; ``null`` where there is nothing to show.

    Strict JSON: columns are plain arrays, and what is no number is null. Raises NotFoundError for
    a figure, an allocator or a device that is not there, UsageError for a parameter that the
    figure does not take or a value that it cannot have, InputError when the profile cannot be read.
    """
    from peakline.figures import drawings

    kind = figure_kind(chosen.name)
    given = {own: value for own in _PARAMETERS if (value := getattr(chosen, own)) is not None}
    check_choice(chosen.theme, THEMES, "no theme")
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
        given["answer"] = findings.memory_of(profile)
    drawn = getattr(drawings, chosen.name)(profile, **given)
    if drawn is None:
        return b"null"
    document = _plain({"data": drawn.traces, "layout": drawn.layout})
    if chosen.theme == "dark":
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
