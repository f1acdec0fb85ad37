"""Parquet: every table of the profile, one file each."""

from __future__ import annotations

from functools import partial
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from peakline.deadline import check_deadline
from peakline.errors import UsageError
from peakline.export.registry import Exporter, Options, Sink
from peakline.findings.memory_answer import answer_memory
from peakline.tables import Profile
from peakline.tables.columns import Columns, Names
from peakline.tables.tables import TABLES, empty_columns, whole_table

_ROWS = 1 << 20
"""Rows of a row group: what a reader holds at a time."""
_WARNINGS = "warnings"
_OF_MEMORY = frozenset(("allocator_events", "blocks", "edges", "oom_reports", "op_runs", "steps"))
"""What the answer about memory is read from."""
_NEEDED = ("allocator_events", "oom_reports")
"""Without a row of these there is no such answer."""


def _export(profile: Profile, sink: Sink, options: Options) -> None:
    """For DuckDB, pandas, Polars and Spark: one table after the other, each given up once written.

    Every column says in its metadata (``doc``) what it holds, unit included; every file what a
    row is. Texts stay dictionaries. Tables of which the profile has no row are files without rows.
    Last is ``warnings``, to which reading the others adds, and the answer about memory too.
    """
    if options.allocator is not None:
        raise UsageError("parquet holds all tables; --allocator is not for it")
    names = [name for name in profile.tables if name != _WARNINGS]
    if not options.args:
        names = [name for name in names if name != "event_stats"]
    # The largest table first: it takes the most memory while it is read.
    names.sort(key=lambda name: (name != "event_stats", name in _OF_MEMORY))
    for name in names:
        columns = profile.columns(name, whole_table(name))
        sink(partial(_write, name=name, columns=columns), f"{name}.parquet")
        if name not in _OF_MEMORY:
            profile.release(name)
    if any(name in names and profile.has_rows(name) for name in _NEEDED):
        answer_memory(profile)
    columns = profile.columns(_WARNINGS)
    sink(partial(_write, name=_WARNINGS, columns=columns), f"{_WARNINGS}.parquet")


def _write(stream: BinaryIO, name: str, columns: Columns) -> None:
    texts = _texts(columns)
    schema = _schema(name, columns)
    with pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        for first in range(0, columns.rows, _ROWS):
            check_deadline()
            part = slice(first, min(first + _ROWS, columns.rows))
            writer.write_table(_part(schema, columns, texts, part))


def _texts(columns: Columns) -> dict[str, pa.Array]:
    return {
        name: pa.array(list(column.values), pa.string())
        for name, column in columns.items()
        if isinstance(column, Names)
    }


def _schema(name: str, columns: Columns) -> pa.Schema:
    definition = TABLES[name]
    declared = empty_columns(name).arrow().schema
    fields = [
        pa.field(
            key, declared.field(key).type, definition[key].nullable, {"doc": definition[key].doc}
        )
        for key in columns
    ]
    return pa.schema(fields, {"doc": definition.doc})


def _part(schema: pa.Schema, columns: Columns, texts: dict[str, pa.Array], rows: slice) -> pa.Table:
    arrays = []
    for name, column in columns.items():
        if isinstance(column, Names):
            # Of many texts a part uses few.
            codes = column.codes[rows]
            used, place = np.unique(codes, return_inverse=True)
            used, shift = (used[1:], 1) if used.size and used[0] < 0 else (used, 0)
            index = pa.array((place - shift).astype(np.int32), mask=codes < 0)
            arrays.append(pa.DictionaryArray.from_arrays(index, texts[name].take(pa.array(used))))
        else:
            mask = columns.valid.get(name)
            missing = None if mask is None else ~mask[rows]
            arrays.append(pa.array(column[rows], schema.field(name).type, mask=missing))
    return pa.table(arrays, schema=schema)


EXPORTER = Exporter(
    name="parquet",
    doc="a folder of Parquet files, one per table",
    suffix="",
    is_text=False,
    needs=((),),
    over_time=False,
    write=_export,
)
