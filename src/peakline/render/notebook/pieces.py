"""What the views of a notebook are made of: lines, lists, tables and small drawings."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from peakline.document import limits
from peakline.document.model import Fact, Table, capital, more_text, text_of
from peakline.figures.look import one_line
from peakline.text import counted

if TYPE_CHECKING:
    import pyarrow as pa

_CELL = "padding:1px 12px 1px 0;text-align:left;vertical-align:top"
_RIGHT = "padding:1px 12px 1px 0;text-align:right;white-space:nowrap;vertical-align:top"
_QUIET = "opacity:.7"
_LONGEST = 300
_TEXT = 60


def shown(text: str, longest: int = _LONGEST) -> str:
    """``text`` of a file in one line, shortened, as HTML."""
    return html.escape(one_line(text, longest))


def line(text: str, *, quiet: bool = False) -> str:
    """A line of text."""
    return markup_line(shown(text), quiet=quiet)


def markup_line(markup: str, *, quiet: bool = False) -> str:
    """A line of HTML."""
    return f'<div style="margin:4px 0;{_QUIET if quiet else ""}">{markup}</div>'


def headed(title: str, about: str = "") -> str:
    """The first line of a view: what it is of."""
    beside = f' <span style="{_QUIET}">{shown(about)}</span>' if about else ""
    return f"<div><strong>{shown(title)}</strong>{beside}</div>"


def listed(
    title: str, items: Sequence[str], most: int = limits.ROWS.notebook, rest: str = ""
) -> str:
    """``items``, which are HTML, under a title; ``rest`` says where more is."""
    if not items:
        return ""
    points = "".join(f"<li>{item}</li>" for item in items[:most])
    more = more_text(len(items) - most, where=rest)
    more = f"<li>{html.escape(more)}</li>" if more else ""
    return (
        f'<div style="margin:6px 0"><strong>{shown(title)}</strong>'
        f'<ul style="margin:2px 0 2px 18px;padding:0">{points}{more}</ul></div>'
    )


def facts(result: Iterable[Fact]) -> str:
    """Facts as a table of two columns."""
    rows = [[shown(capital(one.label)), shown(one.text)] for one in result]
    return table(["", ""], rows) if rows else ""


def drawn(result: Table, most: int = limits.ROWS.notebook) -> str:
    """The first rows of a document's table under its title; nothing without rows."""
    if not result.rows:
        return ""
    columns = result.columns
    rest = [result.rest] if len(result.rest) == len(columns) else []
    left = len(result.rows) - most
    rows = [
        [shown(text_of(cell, one.unit), 120) for cell, one in zip(row, columns, strict=True)]
        for row in (*result.rows[:most], *(rest if left <= 0 else ()))
    ]
    right = [n for n, column in enumerate(columns) if column.is_number]
    heads = [shown(capital(column.label)) for column in columns]
    title = line(capital(result.title)) if result.title else ""
    if len(result.rest) == 1:
        left = max(left, 0) + int(result.rest[0] or 0)
    more = line(more_text(left), quiet=True) if left > 0 else ""
    return title + table(heads, rows, right=right) + more


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """A table of cells that are HTML; without a head where all heads are empty."""

    def row(cells: Sequence[str], kind: str) -> str:
        # Blanks between cells set them apart where their text is copied.
        return " ".join(
            f'<{kind} style="{_RIGHT if k in right else _CELL}">{cell}</{kind}>'
            for k, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    head = f"<thead><tr>{row(heads, 'th')}</tr></thead>" if any(heads) else ""
    return (
        '<table style="border-collapse:collapse;margin:4px 0;font-size:inherit">'
        f"{head}<tbody>{body}</tbody></table>"
    )


def rows_table(rows: pa.Table) -> list[str]:
    """The first rows and columns of an Arrow table, and how many there are."""
    import pyarrow as pa

    names = rows.column_names[: limits.ANSWER_COLUMNS.notebook]
    numbers = [
        place
        for place, name in enumerate(names)
        if pa.types.is_integer(rows.schema.field(place).type)
        or pa.types.is_floating(rows.schema.field(place).type)
    ]
    cells = [
        [_cell(row[name]) for name in names]
        for row in rows.slice(0, limits.ANSWER_ROWS.notebook).to_pylist()
    ]
    counts = f"{counted(rows.num_rows, 'row')}, {counted(rows.num_columns, 'column')}"
    about = f"{counts}: to_pandas(), to_polars()"
    return [line(about, quiet=True), table([shown(n, _TEXT) for n in names], cells, right=numbers)]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return shown(f"{value:,.6g}")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return shown(str(value), _TEXT)
