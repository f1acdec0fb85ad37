"""What tools write their answers with: compact JSON, CSV, the tables of the profiler's pages.

The form of the tables is that of Google Charts' DataTable, as XProf writes it: compact, keys
sorted, numbers as doubles, an absent value as an empty text, every value of a property map a text.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from json.encoder import encode_basestring as _quoted
from typing import Literal


def compact_json(document: object, *, ascii_only: bool = True) -> bytes:
    """``document`` without blanks; raises ValueError for a number that is not finite."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=ascii_only, allow_nan=False)
    return text.encode("utf-8", "replace")


def quoted_csv(header: Iterable[str], rows: Iterable[Iterable[object]]) -> bytes:
    """A header and rows, every field quoted; None is an empty field."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode("utf-8", "replace")


Kind = Literal["string", "number", "boolean"]
Value = str | float | bool | None


@dataclass(frozen=True)
class Column:
    """One column; ``properties`` are those of Google Charts, such as ``role``.

    ``shown`` makes the text that stands for a number.
    """

    id: str
    kind: Kind
    label: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    shown: Callable[[float], str] | None = None


@dataclass(frozen=True)
class DataTable:
    """Columns, rows of as many values, and properties of the whole."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """The table as JSON values; without columns, rows and properties an empty object."""
        if not (self.columns or self.rows or self.properties):
            return {}
        cols = []
        for column in self.columns:
            shown: dict[str, object] = {
                "id": column.id, "label": column.label, "type": column.kind,
            }  # fmt: skip
            if column.properties:
                shown["p"] = dict(column.properties)
            cols.append(shown)
        table: dict[str, object] = {
            "cols": cols,
            "rows": [
                {"c": [_shown(column, v) for column, v in zip(self.columns, row, strict=True)]}
                for row in self.rows
            ],
        }
        if self.properties:
            table["p"] = dict(self.properties)
        return table


def _cell(kind: Kind, value: Value) -> Value:
    if value is None:
        return ""
    if kind != "number":
        return value
    number = float(value)
    return number if math.isfinite(number) else None


def _shown(column: Column, value: Value) -> dict[str, Value]:
    cell = {"v": _cell(column.kind, value)}
    if column.shown is None or not isinstance(value, int | float):
        return cell
    return {"f": column.shown(value), **cell}


def tables_json(*tables: DataTable) -> bytes:
    """One table as an object, several as an array."""
    shown = [_written(table) for table in tables]
    text = shown[0] if len(shown) == 1 else f"[{','.join(shown)}]"
    return text.encode("utf-8", "replace")


def tables_json_array(*tables: DataTable) -> bytes:
    """The tables as an array, also where there is only one."""
    return f"[{','.join(map(_written, tables))}]".encode("utf-8", "replace")


def _written(table: DataTable) -> str:
    """The table as JSON text; its rows, of which there may be many, straight from their values."""
    if not (table.columns and table.rows):
        return _dumped(table.as_json())
    values = zip(*table.rows, strict=True)
    texts = [_texts(c.kind, column) for c, column in zip(table.columns, values, strict=True)]
    cells = ['{"v":%s}' if column.shown is None else "%s" for column in table.columns]
    for place, column in enumerate(table.columns):
        if column.shown is not None:
            texts[place] = [_dumped(_shown(column, row[place])) for row in table.rows]
    row = '{"c":[' + ",".join(cells) + "]}"
    rows = ",".join([row % cells for cells in zip(*texts, strict=True)])
    # The rows come last: their key is the last of the sorted.
    return _dumped(replace(table, rows=()).as_json()).removesuffix("[]}") + f"[{rows}]}}"


def _texts(kind: Kind, values: Iterable[Value]) -> list[str]:
    """The values of one column as JSON."""
    if kind == "number":
        return [
            float.__repr__(v) if type(v) is float and math.isfinite(v) else _dumped(_cell(kind, v))
            for v in values
        ]
    return [_quoted(v) if type(v) is str else _dumped(_cell(kind, v)) for v in values]


def _dumped(content: object) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def tables_csv(table: DataTable) -> bytes:
    """The labels of one table and its rows, every field quoted, as XProf's CSV."""
    kinds = [column.kind for column in table.columns]
    return quoted_csv(
        (column.label or column.id for column in table.columns),
        (starmap(_cell, zip(kinds, row, strict=True)) for row in table.rows),
    )
