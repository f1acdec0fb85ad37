"""Ops and kernels as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rich.text import Text

from peakline.findings.recording_advice import to_place_ops
from peakline.render.document.model import Table
from peakline.render.document.ops import (
    NARROW_WITHOUT,
    RUNS,
    by_module_tables,
    by_shape_tables,
    kernels_table,
    ops_tables,
)
from peakline.render.terminal.screen import indented, show
from peakline.render.terminal.time_parts import fitted_table, profile_line, screen_width
from peakline.text import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.api import Profile
    from peakline.tables.columns import Columns

_ROWS = 20
_NAME = 72
_NARROW = 120
"""Below so many columns some numbers are left out, so that names have room."""


def print_ops(profile: Profile, table: Columns | None, top: int | None) -> None:
    """Print the ops of the devices, then those of the host; ``table`` stands in order."""
    parts: list[RenderableType] = [profile_line(profile, moment=not profile.duration_ps)]
    sides = {} if table is None else ops_tables(table, top or _ROWS)
    for one in sides.values():
        parts += _table(one, "op", {"total"})
    if "device" in sides:
        parts += ["", Text(RUNS)]
    if not sides:
        parts += ["", Text("no ops in this profile")]
    show([*parts, *_to_record(profile)])


def print_ops_by(
    profile: Profile, rows: list[dict[str, Any]], by: Literal["module", "shape"], top: int | None
) -> None:
    """Print the time of ops by module or by the shapes of their inputs; ``rows`` stand in order."""
    parts: list[RenderableType] = [profile_line(profile, moment=not profile.duration_ps)]
    tables = (by_module_tables if by == "module" else by_shape_tables)(rows, top or _ROWS)
    for one in tables.values():
        # Two columns of names need the room of the numbers.
        without = set() if by == "module" else {"total", "median"}
        parts += _table(one, "module" if by == "module" else "row", without)
    if not tables:
        what = "modules" if by == "module" else "shapes of inputs"
        parts += ["", Text(f"no {what} of ops in this profile")]
    show([*parts, *_to_record(profile)])


def _to_record(profile: Profile) -> list[RenderableType]:
    lines = to_place_ops(profile)
    return ["", *(Text(line) for line in lines)] if lines else []


def print_kernels(profile: Profile, table: Columns | None, top: int | None) -> None:
    """Print the GPU kernels; ``table`` stands in order."""
    parts: list[RenderableType] = [profile_line(profile, moment=not profile.duration_ps)]
    if table is None:
        parts += ["", Text("no GPU kernels in this profile")]
    else:
        parts += _table(kernels_table(table, top or _ROWS), "kernel", {"tensor cores", "op"})
    show(parts)


def _table(table: Table, what: str, narrow_without: set[str]) -> list[RenderableType]:
    """A table under its title; a narrow terminal has fewer columns."""
    if 0 < (screen_width() or 0) < _NARROW:
        without = NARROW_WITHOUT | narrow_without
        table = table.only([n for n, c in enumerate(table.columns) if c.label not in without])
    title = Text(table.title, style="bold")
    parts: list[RenderableType] = ["", title, fitted_table(table, longest=_NAME)]
    if table.rest:
        parts.append(indented(Text(f"and {counted(int(table.rest[0] or 0), f'more {what}')}")))
    return parts
