"""What the screens of time share: a terminal's width, names that are cut, the first line."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from peakline.render.document.model import Table, text_of
from peakline.render.terminal.screen import indented, plain_table
from peakline.text import cut_middle, one_line, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.api import Profile

_GAP = 2  # none after the last column
_INDENT = 2
_LEAST_NAME = 16
_NAME, _NARROW = 60, 32


def screen_width() -> int | None:
    """The columns of the terminal; None into a pipe or file, where nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def profile_line(profile: Profile, *, moment: bool) -> Text:
    """Which profile it is, and how long; the path is cut to the terminal's width."""
    host = f", host {profile.host}" if profile.host else ""
    length = "" if moment else f", {time_text(profile.duration_ps)}"
    rest = one_line(f" ({profile.format}{host}{length})")
    width = screen_width()
    room = None if width is None else max(width - len(rest), _LEAST_NAME)
    return Text(f"{cut_middle(profile.path, room)}{rest}")


def fitting(tables: Sequence[Table]) -> Table:
    """The first of ``tables``, each narrower than the one before, that has room on the terminal,
    where its names may be cut; else the last.
    """
    width = screen_width()
    for table in tables:
        heads, rows = _texts(table, _NARROW)
        if width is None or sum(_widths(heads, rows)) <= width - _INDENT + _GAP:
            return table
    return tables[-1]


def fitted_table(table: Table, *, longest: int = _NAME) -> RenderableType:
    """A table of a document, two columns in, whose texts are cut to the terminal, and to
    ``longest`` characters where there is more room.
    """
    heads, rows = _texts(table, longest)
    right = [head for head, one in zip(heads, table.columns, strict=True) if one.is_number]
    width = screen_width()
    if width is not None:
        widths = _widths(heads, rows)
        for place in sorted(range(len(heads)), key=lambda place: -widths[place]):
            over = sum(_widths(heads, rows)) - (width - _INDENT + _GAP)
            if over > 0 and not table.columns[place].is_number:
                room = max(widths[place] - _GAP - over, min(_LEAST_NAME, widths[place] - _GAP))
                for row in rows:
                    row[place] = cut_middle(row[place], room)
    return indented(plain_table(heads, rows, right=right))


def _texts(table: Table, longest: int) -> tuple[list[str], list[list[str]]]:
    """The heads and the cells as text, names of at most ``longest`` characters."""
    rows = [
        [
            cut_middle(text_of(cell, one.unit), longest)
            for cell, one in zip(row, table.columns, strict=True)
        ]
        for row in table.rows
    ]
    return [one.label.upper() for one in table.columns], rows


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [
        max(len(column), *(len(row[place]) for row in rows), 0) + _GAP
        for place, column in enumerate(columns)
    ]
