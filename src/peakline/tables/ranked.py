"""The tables of all ranks of a job as one: each has the column ``rank`` before its own.

What a query needs of a profile is read where the profile is, and comes as Arrow's streams, which
lie in files without names, one for each table, until the query runs: memory holds no more than one
rank at a time of each who reads. The views of `peakline.tables.sql_views` are tables here: each is
made of the profile of one rank, so that ``from step_parts`` is what every rank says of its own.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from peakline.errors import CheckFailed
from peakline.tables.database import needed
from peakline.tables.definition import ColumnDef, TableDef, parse_tables
from peakline.tables.query import QueryNeeds, with_nulls
from peakline.tables.sql_process.frames import mapped
from peakline.tables.sql_views import view, view_names
from peakline.tables.tables import TABLES, arrow_of, columns_of_rows_in, columns_without_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from peakline.tables.profile import Profile

RANK = ColumnDef(
    "rank", "int32", nullable=False,
    doc="the rank in the job; of profiles that say none their number in the order of the hosts",
)  # fmt: skip
(RANKS,) = parse_tables("""
ranks: The ranks of the job, those too whose profile cannot be read.
    host string what the profile is called in the job: host_name, rank0, node1/rank3
    title string what answers about the job call it: rank 3, or the host
    machine string? the machine, where the file says it
    path string the file
    status string read, or why it could not be
""")
_ALIGNED = 64
"""Arrow reads its columns where they lie, at addresses that are multiples of this."""
_CHUNK_ROWS = 1 << 16


@cache
def _definition(name: str) -> TableDef:
    tables = TABLES | {RANKS.name: RANKS}
    one = view(name) if name in view_names() else tables[name]
    return TableDef(name, one.doc, (RANK, *one.columns))


def ranked_tables(names: Iterable[str] | None = None) -> dict[str, TableDef]:
    """What a query over a job may name, with ``ranks``: of profiles with the tables and views
    ``names``, by default of any.

    >>> [column.name for column in ranked_tables(["lines"])["lines"].columns][:2]
    ['rank', 'line_id']
    """
    every = [*TABLES, *view_names()] if names is None else names
    return {name: _definition(name) for name in sorted({*every, RANKS.name})}


def streams_of(profile: Profile, needs: QueryNeeds) -> dict[str, bytes]:
    """What a query over a job needs of one profile: by table, or view, a stream of Arrow with the
    columns that are wanted. What the profile lacks, or has no rows of, is left out.

    Raises InputError when the profile cannot be read.
    """
    own = {name: None if wanted is None else wanted - {"rank"} for name, wanted in needs.items()}
    result = {}
    for name in sorted(own.keys() & set(profile.views)):
        result[name] = _view_rows(profile, name, own[name])
    tables = {name: wanted for name, wanted in own.items() if name in profile.tables}
    for name, columns in needed(profile, tables):
        # Others may have come along, and not of every rank.
        result[name] = arrow_of(name, columns).select(_chosen(TABLES[name], own[name]))
    return {name: _stream(table) for name, table in result.items() if table.num_rows}


def stream_of_rank(row: Sequence[object]) -> bytes:
    """A stream with the row of a rank in the table `RANKS`."""
    return _stream(columns_of_rows_in(RANKS, [row]).arrow())


def _chosen(definition: TableDef, wanted: AbstractSet[str] | None) -> list[str]:
    """The wanted columns; without any, one that says how many rows there are."""
    names = [one.name for one in definition.columns if wanted is None or one.name in wanted]
    return names or [next(one.name for one in definition.columns if not one.nullable)]


def _view_rows(profile: Profile, name: str, wanted: AbstractSet[str] | None) -> pa.Table:
    import pyarrow as pa

    chosen = _chosen(view(name), wanted)
    listed = ", ".join(f'"{column}"' for column in chosen)
    rows = profile.sql(f'select {listed} from "{name}"')  # noqa: S608  (own names)
    declared = columns_without_rows(view(name)).arrow().schema
    return rows.cast(pa.schema([declared.field(column) for column in chosen]))


def _stream(table: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=_CHUNK_ROWS)
    return bytes(sink.getvalue())


class Part(NamedTuple):
    """Where in the file of a table the stream of a rank lies."""

    rank: int
    offset: int
    size: int


@dataclass(frozen=True)
class _Place:
    descriptor: int
    size: int
    parts: dict[str, tuple[int, int]]
    """By host."""


class RankedFiles:
    """The tables of ranks, in files of the directory ``folder`` that nobody else sees, up to
    ``most_bytes`` together. Thread-safe; they are gone when it is closed.
    """

    def __init__(self, folder: str, most_bytes: int | None = None) -> None:
        self._folder, self._left = folder, most_bytes
        self._lock = threading.Lock()
        self._places: dict[str, _Place] = {}

    def add(self, host: str, streams: Mapping[str, bytes]) -> None:
        """Put the tables of a host, as `streams_of` has them, behind those that are there.

        Raises CheckFailed where they do not fit.
        """
        with self._lock:
            if self._left is not None:
                self._left -= sum(map(len, streams.values()))
                if self._left < 0:
                    raise CheckFailed(
                        "what the query needs of all ranks takes too much; name fewer columns, or "
                        "a host"
                    )
            for name, stream in streams.items():
                place = self._place(name)
                padding = -len(stream) % _ALIGNED
                with os.fdopen(place.descriptor, "wb", closefd=False) as file:
                    file.seek(place.size)
                    file.write(stream)
                    file.write(bytes(padding))
                place.parts[host] = (place.size, len(stream))
                size = place.size + len(stream) + padding
                self._places[name] = _Place(place.descriptor, size, place.parts)

    def part_of(self, name: str, ranks: Mapping[str, int]) -> tuple[int, list[Part]]:
        """The descriptor of the file of a table, and what of it belongs to the ``ranks``, which
        are by host; in the order of the ranks.
        """
        place = self._place(name)
        parts = (Part(ranks[host], *at) for host, at in place.parts.items() if host in ranks)
        return place.descriptor, sorted(parts)

    def _place(self, name: str) -> _Place:
        if name not in self._places:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                self._places[name] = _Place(os.dup(file.fileno()), 0, {})
        return self._places[name]

    def hosts(self, name: str) -> AbstractSet[str]:
        """The hosts that have rows of the table."""
        return self._places[name].parts.keys() if name in self._places else frozenset()

    def close(self) -> None:
        """Give up the files."""
        while self._places:
            os.close(self._places.popitem()[1].descriptor)


def ranked_table(name: str, descriptor: int, parts: Sequence[Sequence[int]]) -> pa.Table:
    """The table of all ranks, from a file: mapped, so that what is not looked at is not in memory.
    ``parts`` are those of `RankedFiles.part_of`.
    """
    import pyarrow as pa

    content = mapped(descriptor)
    tables = [columns_without_rows(_definition(name)).arrow().slice(0, 0)] if not parts else []
    for rank, offset, size in parts:
        table = pa.ipc.open_stream(content.slice(offset, size)).read_all()
        tables.append(table.add_column(0, RANK.name, _constant(rank, table.num_rows)))
    whole = pa.concat_tables(tables)
    return with_nulls(_definition(name), whole, whole.num_rows)


def _constant(rank: int, rows: int) -> pa.ChunkedArray:
    """So many rows of one rank, which share one small piece of memory."""
    import pyarrow as pa

    piece = pa.array(np.full(min(rows, _CHUNK_ROWS), rank, np.int32))
    pieces = [piece] * (rows // _CHUNK_ROWS) + [piece[: rows % _CHUNK_ROWS]]
    return pa.chunked_array(pieces, pa.int32())
