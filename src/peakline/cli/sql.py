"""``peakline sql``: a query over a profile's tables."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from peakline.cli.options import (
    PATHS_HELP,
    Argument,
    Reading,
    check_safe_csv,
    each_path,
    force_option,
    one_path,
    output_option,
    reading_options,
    safe_csv_option,
)
from peakline.cli.ranks import Readers, is_job, readers_options, rows_of_ranks
from peakline.cli.verb import Verb, is_place
from peakline.errors import UsageError
from peakline.render.terminal.layout import show
from peakline.render.terminal.output import deliver, print_left_out, print_warnings, say
from peakline.render.terminal.table import Labelled, plain_grid
from peakline.repository import only_file
from peakline.tables.rows import cell_text, row_batches, write_csv, write_json
from peakline.tables.sql_views import view, view_names
from peakline.text import parse_size

if TYPE_CHECKING:
    import pyarrow as pa

    from peakline.tables import ProfileWarning

_SCREEN_ROWS = 1000
_FORMATS = ("table", "csv", "json", "parquet")


@click.command(
    cls=Verb,
    examples=r"""
    # what there is; "describe events" says what its columns mean
    peakline sql run.xplane.pb "show tables"
    # the names that take most time
    peakline sql run.xplane.pb "select name, sum(duration_ps) ps
      from events group by name order by ps desc limit 5"
    # for other programs
    peakline sql run.xplane.pb "from steps" -o steps.csv
    # all ranks of a job: every table has the column rank
    peakline sql traces "select rank, count(*) from events
      group by rank order by rank"
""",
)
@click.argument("paths", metavar="[PATH]...", nargs=-1, cls=Argument, help=PATHS_HELP)
@click.argument("query", cls=Argument, required=False, help="One SELECT statement.")
@click.option(
    "--list",
    "list_views",
    is_flag=True,
    help="List the views that a query may name, or those that PATH has.",
)
@click.option(
    "--format",
    type=click.Choice(_FORMATS),
    help="How to write the answer. Default: by the ending of FILE, else a table.",
)
@output_option
@reading_options(
    click.option(
        "--memory-limit",
        metavar="SIZE",
        type=parse_size,
        help="What the query may take. Default: most of the machine's memory.",
    ),
    safe_csv_option,
    force_option,
)
@readers_options
def sql(
    paths: tuple[str, ...],
    query: str | None,
    format: str | None,  # noqa: A002  (the option is called --format)
    output: str | None,
    reading: Reading,
    readers: Readers,
    memory_limit: int | None,
    *,
    list_views: bool,
    safe_csv: bool,
    force: bool,
) -> None:
    """Answer an SQL query over the tables of a profile.

    DuckDB's dialect, over the tables of PATH and the views over them. Of several ranks every table
    has the column rank, and the table ranks says which there are.
    """
    if list_views and query is not None:
        paths, query = (*paths, query), None  # the last word is no query
    path = one_path(paths)
    ending = (output or "").rpartition(".")[2].lower()
    chosen = format or (ending if ending in _FORMATS[1:] else "table")
    if chosen == "parquet" and output is None and sys.stdout.isatty():
        raise UsageError("parquet is no text for a terminal; choose a file with -o")
    words = () if path is None else each_path(path)[1:]
    is_split = bool(words) and not any(map(is_place, words))
    if is_split if list_views else path is None:
        raise UsageError("sql takes PATH and QUERY, or --list and perhaps PATH")
    check_safe_csv(chosen, safe_csv=safe_csv)
    warnings: Sequence[ProfileWarning] = ()
    notes: Sequence[str] = ()
    if is_split:
        raise UsageError(f"{words[0]}: is no PATH; for the shell a query is one word in quotes")
    result = None if path is None else reading.find(path)
    if path is None or result is None:
        answer, sources = _views(None), [""]
    elif is_job(result):
        rows = rows_of_ranks(result, reading, readers, query or "show views", memory_limit)
        answer = rows.table if query is not None else _views(rows.table["name"].to_pylist())
        warnings, notes = rows.warnings, rows.notes
        sources = [file.path for file in result.hosts()]
        for remark in rows.remarks:
            say(remark)
    else:
        file = only_file(result, "choose one with --host")
        with reading.open_file(file, path) as profile:
            if query is None:
                answer = _views(profile.views)
            else:
                answer = profile.sql(query, memory_limit_bytes=memory_limit)
            warnings, sources = profile.warnings, [profile.path]
    if chosen == "table" and output is None:
        if query is None and sys.stdout.isatty():
            _print_views(answer)
        else:
            _print_table(answer)
        print_warnings(warnings)
        print_left_out(notes)
        return
    writers: dict[str, Callable[[pa.Table, BinaryIO], None]] = {
        "table": _write_table,
        "csv": partial(write_csv, is_safe=safe_csv),
        "json": write_json,
        "parquet": _write_parquet,
    }
    deliver(
        lambda stream: writers[chosen](answer, stream),
        output,
        force=force,
        source=sources,
        is_text=chosen != "parquet",
    )
    print_warnings(warnings)
    print_left_out(notes)


def _views(names: Iterable[str] | None) -> pa.Table:
    """The views of those names, None for all: a row each, what it answers and its tables."""
    import pyarrow as pa

    result = [view(name) for name in sorted(view_names() if names is None else names)]
    return pa.table(
        {
            "view": pa.array([each.name for each in result], pa.string()),
            "tables": pa.array([", ".join(sorted(each.needs)) for each in result], pa.string()),
            "answers": pa.array([each.doc for each in result], pa.string()),
        }
    )


def _write_parquet(answer: pa.Table, stream: BinaryIO) -> None:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(answer, buffer)
    stream.write(buffer.getbuffer())


def _write_table(answer: pa.Table, stream: BinaryIO) -> None:
    """Aligned columns without a limit, for a file."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n", write_through=True)
    show([_screen_table(answer)], text)
    text.detach()


def _print_table(answer: pa.Table) -> None:
    show([_screen_table(answer.slice(0, _SCREEN_ROWS))])
    hidden = answer.num_rows - _SCREEN_ROWS
    if hidden > 0:
        say(f"{hidden:,} more rows; --format csv has them all")


def _print_views(answer: pa.Table) -> None:
    """The views on a terminal: what they answer is sentences, which are wrapped."""
    rows = zip(answer["view"].to_pylist(), answer["answers"].to_pylist(), strict=True)
    show([Labelled([*rows])])


def _screen_table(answer: pa.Table) -> Any:
    import pyarrow as pa

    def is_number(kind: pa.DataType) -> bool:
        return bool(
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        )

    numbers = [field.name for field in answer.schema if is_number(field.type)]
    rows = ([cell_text(value) for value in row] for part in row_batches(answer) for row in part)
    return plain_grid(answer.column_names, rows, right=numbers)
