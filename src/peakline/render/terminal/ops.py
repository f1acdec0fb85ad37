"""Ops and kernels as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from peakline.render.document.model import Table, text_of
from peakline.render.document.ops import NARROW_WITHOUT, RUNS, kernels_table, ops_tables
from peakline.render.terminal.screen import indented, plain_table, show
from peakline.render.terminal.time_parts import profile_line, screen_width
from peakline.text import counted, cut_middle

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.api import Profile
    from peakline.tables.columns import Columns

_ROWS = 20
_NAME, _SHORTEST = 72, 16
_NARROW = 120
"""Below so many columns some numbers are left out, so that names have room."""
_GAP, _INDENT = 2, 2


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
    """The last column, names, has the room that is left; a narrow terminal has fewer columns."""
    width = screen_width() or 0
    if 0 < width < _NARROW:
        without = NARROW_WITHOUT | narrow_without
        table = table.only([n for n, c in enumerate(table.columns) if c.label not in without])
    heads = [column.label.upper() for column in table.columns]
    rows = [
        [
            cut_middle(text_of(cell, one.unit), _NAME)
            for cell, one in zip(row, table.columns, strict=True)
        ]
        for row in table.rows
    ]
    used = _INDENT + sum(
        max(len(head), *(len(row[n]) for row in rows)) + _GAP for n, head in enumerate(heads[:-1])
    )
    room = max(_SHORTEST, min(_NAME, width - used)) if width else _NAME
    cells = [[*row[:-1], cut_middle(row[-1], room)] for row in rows]
    right = [head for head, one in zip(heads, table.columns, strict=True) if one.is_number]
    drawn = indented(plain_table(heads, cells, right=right))
    parts: list[RenderableType] = ["", Text(table.title, style="bold"), drawn]
    if table.rest:
        parts.append(indented(Text(f"and {counted(int(table.rest[0] or 0), f'more {what}')}")))
    return parts
