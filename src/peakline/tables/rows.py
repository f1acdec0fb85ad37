"""The rows of tables and queries: as plain values, as JSON and CSV, as frames of other libraries.

JSON is an array of objects: whole decimals are integers, NaN and infinities null, bytes
hexadecimal, times text. Integers are JSON numbers however large; a caller whose language reads
them as doubles gets those beyond 2^53 as strings, the way proto JSON has them.
"""

from __future__ import annotations

import io
import json
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO

from peakline.deadline import check_deadline
from peakline.errors import CheckFailed
from peakline.safe_text import cut_middle, one_line, spreadsheet_text, write_rows
from peakline.shown import library, pandas_of, polars_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from peakline.tables.query import SqlParameters


class Frames:
    """The part of a profile that gives data frames."""

    @property
    @abstractmethod
    def views(self) -> list[str]:
        """Names of the views that `sql` takes beside the tables, sorted."""

    @abstractmethod
    def table(self, name: str) -> pa.Table:
        """The named table as Arrow."""

    @abstractmethod
    def sql(self, query: str, parameters: SqlParameters = None) -> pa.Table:
        """The answer to one reading SQL statement."""

    def to_pandas(self, rows: str, parameters: SqlParameters = None) -> pd.DataFrame:
        """A table or view by its name, or the rows of an SQL query, as a pandas.DataFrame.

        ``profile.to_pandas("allocator_events")``, or as `sql`:
        ``profile.to_pandas("select * from steps where name = $name", {"name": "train 3"})``.
        Columns in ``_ps`` are picoseconds, in ``_bytes`` bytes, both int64 (``Int64`` where there
        are nulls); names are ``category``. Raises as `sql`, and UsageError without pandas.
        """
        library("pandas")
        return pandas_of(self._rows(rows, parameters))

    def to_polars(self, rows: str, parameters: SqlParameters = None) -> pl.DataFrame:
        """A table or view by its name, or the rows of an SQL query, as a polars.DataFrame.

        Integers stay integers, names are ``Categorical``; otherwise as `to_pandas`. Raises as
        `sql`, and UsageError without Polars.
        """
        library("polars")
        return polars_of(self._rows(rows, parameters))

    def _rows(self, rows: str, parameters: SqlParameters) -> pa.Table:
        name = rows.strip()
        if not name.isidentifier():
            return self.sql(rows, parameters)
        return self.sql(f"from {name}") if name in self.views else self.table(name)


_BATCH_ROWS = 10_000
_BATCH_BYTES = 1 << 20
_LONGEST_NAME = 60
_EXACT_IN_A_DOUBLE = (1 << 53) - 1


def row_batches(table: pa.Table) -> Iterator[list[tuple[Any, ...]]]:
    """The rows as Python values, many at a time, but not many bytes of them.

    Raises CheckFailed for a time that Python has no value for, such as one after the year 9999.
    """
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        rows = max(1, batch.num_rows * _BATCH_BYTES // max(_BATCH_BYTES, batch.nbytes))
        for start in range(0, batch.num_rows, rows):
            check_deadline()
            part = batch.slice(start, rows)
            yield list(zip(*(_values(part, n) for n in range(part.num_columns)), strict=True))


def _values(batch: pa.RecordBatch, number: int) -> list[Any]:
    try:
        values: list[Any] = batch.column(number).to_pylist()
    except (OverflowError, ValueError) as error:
        name = cut_middle(one_line(batch.schema.names[number]), _LONGEST_NAME)
        raise CheckFailed(
            f"column {name} of the answer has a time that cannot be written; CAST it AS VARCHAR"
        ) from error
    return values


def write_json(table: pa.Table, stream: BinaryIO, *, large_as_text: bool = False) -> None:
    """``table`` as an array of objects; the second column ``a`` has the name ``a_2``."""
    plain = _plainly(large_as_text=large_as_text)
    names = _unique(table.column_names)
    separator = "[\n"
    for rows in row_batches(table):
        texts = (
            json.dumps({name: plain(value) for name, value in zip(names, row, strict=True)})
            for row in rows
        )
        stream.write((separator + ",\n".join(texts)).encode())
        separator = ",\n"
    stream.write(b"[]\n" if separator == "[\n" else b"\n]\n")


def write_csv(table: pa.Table, stream: BinaryIO, *, is_safe: bool = False) -> None:
    """``table`` with a line of column names; with ``is_safe`` a spreadsheet computes no text."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)

    def cell(value: object) -> str:
        return spreadsheet_text(cell_text(value)) if is_safe else cell_text(value)

    try:
        write_rows(text, [map(cell, table.column_names)])
        for rows in row_batches(table):
            write_rows(text, (map(cell, row) for row in rows))
    finally:
        text.detach()


def cell_text(value: object) -> str:
    """A value in a table or CSV cell; null is empty."""
    if value is None:
        return ""
    if isinstance(value, dict | list | bytes):
        return json.dumps(_plainly(large_as_text=False)(value))
    return str(value)


def _unique(names: list[str]) -> list[str]:
    """Column names as keys of an object: ``select a, a`` has ``a`` and ``a_2``."""
    seen: set[str] = set()
    unique = []
    for name in names:
        key, number = name, 1
        while key in seen:
            number += 1
            key = f"{name}_{number}"
        seen.add(key)
        unique.append(key)
    return unique


def _plainly(*, large_as_text: bool) -> Callable[[Any], Any]:
    """A function from values to what JSON has."""

    def plain(value: Any) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, Decimal):
            if not value.is_finite():
                return None
            whole = value == value.to_integral_value()
            return plain(int(value)) if whole else float(value)
        if isinstance(value, int):
            large = large_as_text and abs(value) > _EXACT_IN_A_DOUBLE
            return str(value) if large else value
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, dict):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        if isinstance(value, bytes):
            return value.hex()
        return str(value)

    return plain
