"""The answer to a query: counted while the database makes it, then written as the caller wants."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peakline.errors import CheckFailed
from peakline.tables.query import MOST_COLUMNS, too_many_columns
from peakline.tables.rows import write_csv, write_json
from peakline.tables.sql_process.frames import mapped

if TYPE_CHECKING:
    import duckdb

ARROW = "arrow"
"""A stream of Arrow's IPC format; the other formats are ``json``, ``csv`` and ``parquet``."""

_BATCH_ROWS = 2048
_BATCH_COST = 8192
"""Bytes that the objects around a batch take, about; a column of nulls has no bytes itself."""
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Form:
    """How an answer is written: see `peakline.tables.rows` for JSON and CSV.

    Of more than ``max_rows`` rows only the first ones are written, and all are counted. What is
    written may have ``max_bytes``, by default as many as the query may take of memory.
    """

    format: str = ARROW
    max_rows: int | None = None
    large_as_text: bool = False
    safe_csv: bool = False
    max_bytes: int | None = None


def collect(
    relation: duckdb.DuckDBPyRelation, descriptor: int, max_rows: int | None, max_bytes: int
) -> int:
    """Write the rows of ``relation`` into a file, in Arrow's format; returns how many there are.

    Raises CheckFailed when they take more than ``max_bytes``, or have too many columns.
    """
    import pyarrow as pa

    if len(relation.columns) > MOST_COLUMNS:
        raise CheckFailed(too_many_columns(f"{len(relation.columns)} columns, more than"))
    rows = taken = 0
    with (
        relation.to_arrow_reader(_BATCH_ROWS) as reader,
        os.fdopen(descriptor, "wb", _BLOCK, closefd=False) as file,
        pa.ipc.new_stream(file, reader.schema) as writer,
    ):
        for batch in reader:
            taken += batch.nbytes + _BATCH_COST
            if taken > max_bytes:
                raise CheckFailed(
                    f"the answer takes more than {max_bytes} bytes; request fewer rows (LIMIT) or "
                    "columns"
                )
            left = batch.num_rows if max_rows is None else max_rows - rows
            if left > 0:
                writer.write_batch(batch.slice(0, left))
            rows += batch.num_rows
    return rows


def write(collected: int, answer: int, form: Form, max_bytes: int) -> None:
    """Write what was collected in a file into another one, in the format of ``form``.

    Raises CheckFailed when that is larger than ``max_bytes``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.ipc.open_stream(mapped(collected)).read_all()
    with io.FileIO(answer, "w", closefd=False) as file:
        out = io.BufferedWriter(_Bounded(file, max_bytes), _BLOCK)
        if form.format == "json":
            write_json(table, out, large_as_text=form.large_as_text)
        elif form.format == "csv":
            write_csv(table, out, is_safe=form.safe_csv)
        else:
            pq.write_table(table, out)
        out.flush()


class _Bounded(io.RawIOBase):
    """A file that refuses to grow beyond a size."""

    def __init__(self, file: io.FileIO, max_bytes: int) -> None:
        super().__init__()
        self._file, self._max_bytes, self._size = file, max_bytes, 0

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """As a raw file does; CheckFailed beyond the size."""
        size = memoryview(data).nbytes
        if self._size + size > self._max_bytes:
            raise CheckFailed(
                f"the answer has more than {self._max_bytes} bytes; request fewer rows (LIMIT) "
                "or columns"
            )
        written = self._file.write(data)
        self._size += written
        return written
