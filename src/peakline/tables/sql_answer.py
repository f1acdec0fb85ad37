"""The answer to a query, counted and written while the database makes it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from peakline.errors import CheckFailed
from peakline.tables.rows import write_csv, write_json

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

ARROW = "arrow"
"""A stream of Arrow's IPC format; the other formats are ``json``, ``csv`` and ``parquet``."""

_BATCH_ROWS = 2048
_BATCH_COST = 8192
"""Bytes that the objects around a batch take, about; a column of nulls has no bytes itself."""
_GROUP_ROWS = 1 << 20
_GROUP_BYTES = 64 << 20
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Form:
    """How an answer is written: see `peakline.tables.rows` for JSON and CSV.

    Of more than ``max_rows`` rows only the first ones are written, and all are counted.
    """

    format: str = ARROW
    max_rows: int | None = None
    large_as_text: bool = False


def write_answer(
    relation: duckdb.DuckDBPyRelation, stream: io.RawIOBase, form: Form, max_bytes: int
) -> int:
    """Write the rows of ``relation``; returns how many it has.

    Raises CheckFailed when they, or what is written, take more than ``max_bytes``.
    """
    with relation.to_arrow_reader(_BATCH_ROWS) as reader:
        answer = _Answer(reader, form.max_rows, max_bytes)
        out = io.BufferedWriter(_Bounded(stream, max_bytes), _BLOCK)
        if form.format == "json":
            write_json(answer, out, large_as_text=form.large_as_text)
        elif form.format == "csv":
            write_csv(answer, out)
        elif form.format == "parquet":
            _write_parquet(answer, out)
        else:
            _write_arrow(answer, out)
        out.flush()
    return answer.rows


class _Answer:
    """What the writers of tables need of one, with the rows as they are made."""

    def __init__(self, reader: pa.RecordBatchReader, max_rows: int | None, max_bytes: int) -> None:
        self._reader, self._max_rows, self._max_bytes = reader, max_rows, max_bytes
        self.schema = reader.schema
        self.column_names: list[str] = reader.schema.names
        self.rows = 0

    def to_batches(self, max_chunksize: int = _BATCH_ROWS) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """The batches as they come, which are no larger."""
        taken = 0
        for batch in self._reader:
            taken += batch.nbytes + _BATCH_COST
            if taken > self._max_bytes:
                raise CheckFailed(
                    f"the answer takes more than {self._max_bytes} bytes; request fewer rows "
                    "(LIMIT) or columns"
                )
            begin, self.rows = self.rows, self.rows + batch.num_rows
            if self._max_rows is None or self.rows <= self._max_rows:
                yield batch
            elif begin < self._max_rows:
                yield batch.slice(0, self._max_rows - begin)


def _write_arrow(answer: _Answer, out: BinaryIO) -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(out, answer.schema) as writer:
        for batch in answer.to_batches():
            writer.write_batch(batch)


def _write_parquet(answer: _Answer, out: BinaryIO) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetWriter(out, answer.schema) as writer:

        def flush(group: list[pa.RecordBatch]) -> None:
            if group:
                writer.write_table(pa.Table.from_batches(group), row_group_size=_GROUP_ROWS)
                group.clear()

        group: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in answer.to_batches():
            group.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
                flush(group)
                rows = size = 0
        flush(group)


class _Bounded(io.RawIOBase):
    """A file that refuses to grow beyond a size."""

    def __init__(self, stream: io.RawIOBase, max_bytes: int) -> None:
        super().__init__()
        self._stream, self._max_bytes, self._size = stream, max_bytes, 0

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
        written = self._stream.write(data) or 0
        self._size += written
        return written
