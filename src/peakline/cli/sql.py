"""``peakline sql``: a query over a profile's tables."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from peakline.cli.options import (
    Force,
    Host,
    MaxUnpacked,
    Output,
    PathArgument,
    SessionId,
    Strict,
    print_warnings,
)
from peakline.cli.output import deliver
from peakline.errors import UsageError
from peakline.profile.rows import cell_text, row_batches, write_csv, write_json
from peakline.text import parse_size

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SqlFormat", "sql"]

_SCREEN_ROWS = 1000


class SqlFormat(StrEnum):
    """How the answer is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def sql(
    path: PathArgument,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", show_default=False, help="One SELECT statement.")
    ],
    format: Annotated[  # noqa: A002  (the option is called --format)
        SqlFormat | None,
        typer.Option(
            "--format",
            help="How to write the answer. Default: by the ending of FILE, else a table.",
        ),
    ] = None,
    output: Output = None,
    session: SessionId = None,
    host: Host = None,
    memory_limit: Annotated[
        int | None,
        typer.Option(
            "--memory-limit",
            metavar="SIZE",
            parser=parse_size,
            help="What the query may take. Default: most of the machine's memory.",
        ),
    ] = None,
    *,
    force: Force = False,
    strict: Strict = False,
    max_unpacked: MaxUnpacked = None,
) -> None:
    """Answer an SQL query over the tables of PATH."""
    import peakline

    chosen = format or _format_of(output)
    if chosen is SqlFormat.PARQUET and output is None and sys.stdout.isatty():
        raise UsageError("parquet is no text for a terminal; choose a file with -o")
    with peakline.open(
        path, session=session, host=host, strict=strict, max_unpacked_bytes=max_unpacked
    ) as profile:
        answer = profile.sql(query, memory_limit_bytes=memory_limit)
        print_warnings(profile.warnings)
        source = profile.path
    if chosen is SqlFormat.TABLE and output is None:
        _print_table(answer)
        return
    write = _WRITERS[chosen]
    deliver(lambda stream: write(answer, stream), output, force=force, source=source)


def _format_of(output: str | None) -> SqlFormat:
    """The format that a file's name asks for."""
    ending = "" if output is None else output.rpartition(".")[2].lower()
    return SqlFormat(ending) if ending in {"csv", "json", "parquet"} else SqlFormat.TABLE


def _write_parquet(answer: pa.Table, stream: BinaryIO) -> None:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(answer, buffer)
    stream.write(buffer.getbuffer())


def _write_table(answer: pa.Table, stream: BinaryIO) -> None:
    """Aligned columns without a limit, for a file."""
    from peakline.cli.screen import show

    text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n", write_through=True)
    show([_screen_table(answer)], text)
    text.detach()


def _print_table(answer: pa.Table) -> None:
    from peakline.cli.screen import show

    show([_screen_table(answer.slice(0, _SCREEN_ROWS))])
    hidden = answer.num_rows - _SCREEN_ROWS
    if hidden > 0:
        print(f"peakline: {hidden} more rows; --format csv has them all", file=sys.stderr)


def _screen_table(answer: pa.Table) -> Any:
    import pyarrow as pa

    from peakline.cli.screen import plain_table

    def is_number(kind: pa.DataType) -> bool:
        return bool(
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        )

    numbers = [field.name for field in answer.schema if is_number(field.type)]
    rows = ([cell_text(value) for value in row] for part in row_batches(answer) for row in part)
    return plain_table(answer.column_names, rows, right=numbers)


_WRITERS: dict[SqlFormat, Callable[[Any, BinaryIO], None]] = {
    SqlFormat.TABLE: _write_table,
    SqlFormat.CSV: write_csv,
    SqlFormat.JSON: write_json,
    SqlFormat.PARQUET: _write_parquet,
}
