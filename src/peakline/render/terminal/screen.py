"""What every screen is made of: its first line, the facts and tables of a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from peakline.document.model import Column, Fact, Table, text_of
from peakline.document.profile import profile_text
from peakline.render.terminal.layout import (
    Indented,
    Part,
    Shown,
    Text,
    cut,
    show,
    terminal_width,
    width_of,
)
from peakline.render.terminal.table import Choice, Grid, Head, Labelled
from peakline.safe_text import one_line

if TYPE_CHECKING:
    from peakline.api import Profile

__all__ = [
    "Part",
    "Shown",
    "Text",
    "drawn",
    "drawn_facts",
    "fitting",
    "grid_of",
    "headed",
    "in_order",
    "indented",
    "profile_line",
    "severity_style",
    "show",
]


_LEAST_NAME = 16
_STYLES = {"error": "bold red", "warning": "bold yellow"}


def headed(sentence: str, profile: Profile, *, moment: bool = False) -> list[Shown]:
    """The headline, and below it which profile it is about."""
    line = profile_line(profile, moment=moment)
    return [Text(sentence, "bold", 2), line] if sentence else [line]


def profile_line(profile: Profile, *, moment: bool = False) -> Part:
    """Which profile it is, and how long, if it is not of one ``moment``; the path is cut to the
    terminal's width.
    """
    rest = one_line(f" ({profile_text(profile, moment=moment)})")
    width = terminal_width()
    room = None if width is None else max(width - width_of(rest), _LEAST_NAME)
    return Text(f"{cut(one_line(profile.path), room)}{rest}", "dim", is_prose=False)


def severity_style(severity: str) -> str:
    """The style of a finding's title."""
    return _STYLES.get(severity, "bold")


def indented(part: Shown) -> Part:
    """``part``, two columns to the right."""
    return Indented(Text(part) if isinstance(part, str) else part)


def drawn(
    table: Table, *, least: Iterable[str] = (), styles: Mapping[str, str] | None = None
) -> Part:
    """A table of a document, two columns in: numbers first, names after them.

    The columns ``least`` are the first that a narrow screen does without.
    """
    return indented(grid_of(table.numbers_first(), least=least, styles=styles))


def in_order(table: Table, *, least: Iterable[str] = ()) -> Part:
    """A table of a document, two columns in, its columns in their order."""
    return indented(grid_of(table, least=least))


def fitting(tables: Sequence[Table]) -> Part:
    """The first of ``tables``, each narrower than the one before, that has room; two columns in."""
    return indented(Choice([grid_of(table) for table in tables]))


def grid_of(
    table: Table, *, least: Iterable[str] = (), styles: Mapping[str, str] | None = None
) -> Grid:
    """A table of a document, its columns in their order."""
    heads = [Head(column.label.upper(), _kind(column)) for column in table.columns]
    rows = [
        [text_of(cell, one.unit) for cell, one in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    return Grid(heads, rows, [*least], styles or {})


def _kind(column: Column) -> str:
    if column.is_number:
        return "number"
    return column.unit if column.unit in {"name", "bar"} else "text"


def drawn_facts(facts: Iterable[Fact]) -> Part:
    """Facts, one in a line, two columns in."""
    return indented(Labelled([(fact.label, fact.text) for fact in facts]))
