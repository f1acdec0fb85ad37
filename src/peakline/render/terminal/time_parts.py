"""What the screens of time share: a terminal's width, names that are cut, the first line."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from peakline.render.document.model import Table, text_of
from peakline.render.terminal.screen import indented, plain_table
from peakline.text import one_line, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.api import Profile

_GAP = 2
_INDENT = 2
_LEAST_NAME = 16
_NAME = 60


def screen_width() -> int | None:
    """The columns of the terminal; None into a pipe or file, where nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def cut_middle(text: str, length: int | None) -> str:
    """``text`` in at most ``length`` characters: its begin and its end tell most."""
    text = one_line(text)
    if length is None or len(text) <= length:
        return text
    length = max(length, 3)
    head = (length - 1) // 2
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"


def profile_line(profile: Profile, *, moment: bool) -> Text:
    """Which profile it is, and how long; the path is cut to the terminal's width."""
    host = f", host {profile.host}" if profile.host else ""
    length = "" if moment else f", {time_text(profile.duration_ps)}"
    rest = one_line(f" ({profile.format}{host}{length})")
    width = screen_width()
    room = None if width is None else max(width - len(rest), _LEAST_NAME)
    return Text(f"{cut_middle(profile.path, room)}{rest}")


def fits(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a table, two columns in, has room on the terminal."""
    width = screen_width()
    return width is None or sum(_widths(columns, rows)) <= width - _INDENT


def fitted(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()
) -> RenderableType:
    """A table, two columns in, whose texts (not the columns ``right``) are cut to the terminal."""
    width = screen_width()
    told = [[one_line(cell) for cell in row] for row in rows]
    if width is not None:
        widths = _widths(columns, told)
        for place in sorted(range(len(columns)), key=lambda place: -widths[place]):
            over = sum(_widths(columns, told)) - (width - _INDENT)
            if over > 0 and columns[place] not in right:
                room = max(widths[place] - _GAP - over, min(_LEAST_NAME, widths[place] - _GAP))
                told = [
                    [cut_middle(cell, room) if at == place else cell for at, cell in enumerate(row)]
                    for row in told
                ]
    return indented(plain_table(columns, told, right=right))


def fitted_table(table: Table) -> RenderableType:
    """A table of a document, its texts cut to the terminal."""
    right = [one.label.upper() for one in table.columns if one.is_number]
    rows = [
        [
            cut_middle(text_of(cell, one.unit), _NAME)
            for cell, one in zip(row, table.columns, strict=True)
        ]
        for row in table.rows
    ]
    return fitted([one.label.upper() for one in table.columns], rows, right=right)


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [
        max(len(column), *(len(row[place]) for row in rows), 0) + _GAP
        for place, column in enumerate(columns)
    ]
