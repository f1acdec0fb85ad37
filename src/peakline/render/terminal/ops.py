"""Ops and kernels as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from peakline.render.document.model import Table
from peakline.render.document.ops import NARROW_WITHOUT, RUNS, kernels_table, ops_tables
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
    show(parts if sides else [*parts, "", Text("no ops in this profile")])


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
