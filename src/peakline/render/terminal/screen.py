"""Facts and tables of a document on a person's screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from peakline.document.model import Column, Fact, Table, text_of
from peakline.render.terminal.layout import Indented, Part, Shown, Text, show
from peakline.render.terminal.table import Choice, Grid, Head, Labelled

__all__ = [
    "Part",
    "Shown",
    "Text",
    "drawn",
    "drawn_facts",
    "fitting",
    "grid_of",
    "in_order",
    "indented",
    "show",
]


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
