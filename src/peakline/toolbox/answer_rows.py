"""The table in a tool's answer, for data frames."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peakline.errors import UsageError
from peakline.shown import Shown, Tabular, table_of
from peakline.text import size_text

if TYPE_CHECKING:
    import pyarrow as pa

Rows = list[dict[str, Any]]
_BYTES = frozenset({"bin", "pb", "proto"})
"""Formats that are no text."""


class ToolAnswer(Shown, Tabular):
    """What the answers of tools have in common: ``content`` in ``format``, as values and rows."""

    content: bytes
    format: str

    @property
    def is_text(self) -> bool:
        """Whether the answer is text, which a person can read."""
        return self.format not in _BYTES

    def json(self) -> Any:
        """The answer as Python values; raises UsageError where its format is not ``json``."""
        if self.format != "json":
            raise UsageError(f"the answer is {self.format}, not json; request format='json'")
        return json.loads(self.content)

    def to_arrow(self) -> pa.Table:
        """The rows of a ``csv``, or of the first table in a ``json`` answer, as a pyarrow.Table.

        Raises UsageError where the answer has no table.
        """
        if self.format == "csv":
            return _csv(self.content)
        if self.format != "json":
            text = f"the answer is {self.format}, which is no table; request format='json'"
            raise UsageError(text)
        rows = _rows(json.loads(self.content))
        if rows is None:
            raise UsageError("the answer has no table; its values are in json()")
        return table_of(rows)

    def _headline(self) -> str:
        return f"{self.format}, {size_text(len(self.content))}"


def _csv(content: bytes) -> pa.Table:
    import io

    import pyarrow as pa
    from pyarrow import csv

    if not content.strip():
        return pa.table({})
    quoted_lines = csv.ParseOptions(newlines_in_values=True)
    return csv.read_csv(io.BytesIO(content), parse_options=quoted_lines)


def _rows(document: Any) -> Rows | None:
    """The rows of a table, however the document holds them; None where there is none."""
    if isinstance(document, dict):
        if isinstance(document.get("cols"), list):
            return _chart(document)
        # An answer that is about one thing holds its rows in one of its lists.
        return next((rows for one in document.values() if (rows := _rows(one))), None)
    if not isinstance(document, list):
        return None
    if document and all(isinstance(one, dict) for one in document):
        if any("cols" in one for one in document):
            tables = [_chart(one) for one in document if "cols" in one]
            return next((rows for rows in tables if rows), tables[0])
        return document
    return [] if not document else None


def _chart(table: dict[str, Any]) -> Rows:
    """The rows of a Google Charts' DataTable, by the ids of its columns."""
    names = [column.get("id") or column.get("label", "") for column in table["cols"]]
    return [
        dict(zip(names, (None if c is None else c.get("v") for c in row["c"]), strict=False))
        for row in table.get("rows", ())
    ]
