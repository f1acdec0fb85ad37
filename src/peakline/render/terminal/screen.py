"""Tables on a person's screen."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich import table as rich_table
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from peakline.render.document.model import Fact, Table, text_of
from peakline.text import one_line

_PIPE_WIDTH = 100_000


def show(parts: Iterable[RenderableType], stream: TextIO | None = None) -> None:
    """Print ``parts`` below one another on ``stream`` (default: standard output).

    Lines fit the terminal; into a pipe or file no cell is ever cut or folded. There is
    no markup: names from files are text, never instructions.
    """
    stream = sys.stdout if stream is None else stream
    width = shutil.get_terminal_size().columns if stream.isatty() else _PIPE_WIDTH
    console = Console(file=stream, width=width, markup=False, emoji=False, highlight=False)
    for part in parts:
        with console.capture() as capture:
            console.print(part)
        for line in capture.get().splitlines():
            print(line.rstrip(), file=stream)


def indented(part: RenderableType) -> Padding:
    """``part``, two columns to the right."""
    return Padding(part, (0, 0, 0, 2), expand=False)


def plain_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[str] = ()
) -> rich_table.Table:
    """A table without lines but one under the head; ``right`` names right-aligned columns."""
    numbers = set(right)
    table = rich_table.Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        if column in numbers:
            table.add_column(Text(one_line(column)), justify="right", no_wrap=True)
        else:
            table.add_column(Text(one_line(column)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    return table


def drawn(table: Table) -> Padding:
    """A table of a document, two columns in: numbers first, so that names that fold come last."""
    return indented(table_of(table.numbers_first()))


def table_of(table: Table) -> rich_table.Table:
    """A table of a document."""
    heads = [column.label.upper() for column in table.columns]
    right = [head for head, one in zip(heads, table.columns, strict=True) if one.is_number]
    rows = (
        [text_of(cell, one.unit) for cell, one in zip(row, table.columns, strict=True)]
        for row in table.rows
    )
    return plain_table(heads, rows, right=right)


def drawn_facts(facts: Iterable[Fact]) -> Padding:
    """Facts, one in a line, two columns in."""
    table = plain_table(("", ""), ((fact.label, fact.text) for fact in facts))
    table.show_header = False
    return indented(table)
