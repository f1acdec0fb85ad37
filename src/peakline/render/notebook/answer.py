"""What a notebook shows of a tool's answer: the first rows of its table, else how it begins."""

from __future__ import annotations

from typing import Any

from peakline.errors import PeaklineError
from peakline.render.notebook.pieces import headed, line, shown, table
from peakline.shown import headline_of
from peakline.toolbox.answer_rows import ToolAnswer

_ROWS, _COLUMNS = 10, 12
_TEXT = 60
_BEGIN = 2000
_LARGE = 32 << 20
"""A longer answer is not parsed for a look at it."""


def parts(answer: ToolAnswer) -> list[str]:
    """What `Profile.tool` and `Session.tool` return."""
    found = [headed("Answer", headline_of(answer))]
    notes = getattr(answer, "notes", ())
    found += [line(note) for note in notes[:_ROWS]]
    if len(answer.content) <= _LARGE and answer.format in {"json", "csv"}:
        try:
            rows = answer.to_arrow()
        except (PeaklineError, ValueError):
            rows = None
        if rows is not None and rows.num_columns:
            return [*found, *_table(rows)]
    text = answer.content[:_BEGIN].decode("utf-8", "replace")
    if "\x00" in text:
        return [*found, line("bytes, in content", quiet=True)]
    return [*found, line("it begins", quiet=True), f"<div>{shown(text, _BEGIN // 2)}</div>"]


def _table(rows: Any) -> list[str]:
    import pyarrow as pa

    names = rows.column_names[:_COLUMNS]
    numbers = [
        place
        for place, name in enumerate(names)
        if pa.types.is_integer(rows.schema.field(place).type)
        or pa.types.is_floating(rows.schema.field(place).type)
    ]
    cells = [[_cell(row[name]) for name in names] for row in rows.slice(0, _ROWS).to_pylist()]
    about = f"{rows.num_rows:,} rows, {rows.num_columns:,} columns: to_pandas(), to_polars()"
    return [line(about, quiet=True), table([shown(n, _TEXT) for n in names], cells, right=numbers)]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return shown(f"{value:,.6g}")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return shown(str(value), _TEXT)
