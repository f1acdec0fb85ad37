"""``peakline export``: a profile in the formats of other tools."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from peakline import export as exporting
from peakline.cli.options import PATH_HELP, Argument, Reading, force_option, reading_options
from peakline.cli.ranks import Readers, is_job, job_answer, readers_options
from peakline.cli.verb import Verb
from peakline.errors import OutputError, UsageError
from peakline.export import Exporter, Options, Sink, can_export, find_exporter, target_names
from peakline.export import export as write_export
from peakline.memory.allocator_names import recorded_name
from peakline.render.terminal.output import deliver, print_warnings, say
from peakline.repository import check_output, only_file
from peakline.repository.writing import whole_folder
from peakline.text import counted

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.repository import Session
    from peakline.tables import ProfileWarning

_SEVERAL = " (--to perfetto writes several)"
_GZIP_LEVEL = 3  # a third larger than the best, four times as fast


@click.command(
    cls=Verb,
    examples=r"""
    # what this profile can be written as
    peakline export run.xplane.pb --list
    # for https://ui.perfetto.dev
    peakline export run.xplane.pb --to perfetto -o run.pftrace
    # a Parquet file for each table, in a folder
    peakline export run.xplane.pb --to parquet -o tables
""",
)
@click.argument("path", cls=Argument, required=False, help=PATH_HELP)
@click.option("--to", metavar="TARGET", help="What to write; --list lists them.")
@click.option(
    "--output",
    "-o",
    metavar="OUT",
    help="The file, compressed where it ends in .gz, or - for standard output; "
    "for parquet a folder.",
)
@click.option(
    "--ranks",
    metavar="RANKS",
    help="The ranks of a job to write into one trace, 0-3,7; hosts by name where their ranks are "
    "not known. Default: all, up to 16.",
)
@click.option("--allocator", metavar="NAME", help="Only the memory of this allocator.")
@readers_options
@reading_options(
    click.option("--no-args", is_flag=True, help="Leave out the arguments (stats) of events."),
    click.option(
        "--list",
        "list_targets",
        is_flag=True,
        help="List the targets PATH has something for, or all.",
    ),
    force_option,
)
def export(
    path: str | None,
    to: str | None,
    output: str | None,
    ranks: str | None,
    allocator: str | None,
    reading: Reading,
    readers: Readers,
    *,
    no_args: bool,
    list_targets: bool,
    force: bool,
) -> None:
    """Write a profile in a format that other tools read."""
    targets = [find_exporter(name) for name in target_names()]
    if list_targets and path is None:
        _print_targets(targets)
        return
    if path is None:
        raise UsageError("export takes PATH, --to TARGET and -o OUT; --list lists the targets")
    if not list_targets and (to is None or output is None):
        missing = "--to TARGET" if to is None else "-o OUT"
        raise UsageError(f"export needs {missing}; --list lists the targets")
    exporter = None if to is None else find_exporter(to)
    if ranks is not None and (reading.rank is not None or reading.host is not None):
        raise UsageError("--ranks, or one with --rank or --host, not both")
    result = reading.find(path)
    write_ranks = None if exporter is None else exporter.write_ranks
    if exporter is not None and write_ranks is not None and is_job(result):
        options = Options(allocator=allocator, args=not no_args)
        with _destination(
            exporter, output or "-", force=force, source=_same_file(result, output)
        ) as sink:
            answer = job_answer(result, reading, readers)
            opened = _Opened(result, reading)
            chosen = exporting.chosen_ranks(answer, ranks)
            timelines = exporting.JobTimelines(answer, chosen, opened)
            write_ranks(timelines, sink, options)
        for note in timelines.notes:
            say(note)
        print_warnings(opened.warnings)
        return
    if ranks is not None:
        raise UsageError("--ranks is for a job, and --to perfetto")
    file = only_file(result, "choose one with --host" + _SEVERAL * (exporter is not None))
    with reading.open_file(file, path) as profile:
        if exporter is None or output is None or list_targets:
            _print_targets([target for target in targets if can_export(profile, target)])
        else:
            options = Options(allocator=recorded_name(profile, allocator), args=not no_args)
            with _destination(exporter, output, force=force, source=profile.path) as sink:
                write_export(profile, exporter.name, sink, options)
        print_warnings(profile.warnings)


def _same_file(session: Session, output: str | None) -> str:
    """The profile of ``session`` that ``output`` is; empty for none."""
    if output is None or not Path(output).exists():
        return ""
    paths = [file.path for file in session.hosts()]
    return next((one for one in paths if Path(one).exists() and Path(output).samefile(one)), "")


class _Opened:
    """Opens the profile of a host, and knows what was warned of in which."""

    def __init__(self, session: Session, reading: Reading) -> None:
        self._paths = {file.host: file.path for file in session.hosts()}
        self._reading = reading
        self._warnings: dict[tuple[str, str], list[tuple[str, ProfileWarning]]] = {}

    @property
    def warnings(self) -> list[ProfileWarning]:
        """Each kind once, with the host, or with how many hosts have it."""
        result = []
        for rows in self._warnings.values():
            host, first = rows[0]
            where = host if len(rows) == 1 else counted(len(rows), "host")
            total = sum(one.count for _, one in rows)
            result.append(first._replace(count=total, detail=f"{first.detail} ({where})"))
        return result

    @contextmanager
    def __call__(self, host: str) -> Iterator[Profile]:
        with self._reading.open_file(self._paths[host], self._paths[host]) as profile:
            yield profile
            for one in profile.warnings:
                self._warnings.setdefault((one.kind, one.detail), []).append((host, one))


def _print_targets(targets: list[Exporter]) -> None:
    for target in targets:
        print(f"{target.name}  {target.doc}")


@contextmanager
def _destination(exporter: Exporter, output: str, *, force: bool, source: str) -> Iterator[Sink]:
    """Where the target goes; a folder gets its files when the block ends."""
    if not exporter.suffix:
        if output == "-":
            raise UsageError(f"{exporter.name} is a folder of files; choose one with -o")
        from peakline.tables.tables import TABLES

        # What an earlier export left would be taken for tables of this profile.
        tables = [f"{name}.parquet" for name in TABLES]
        with whole_folder(output, tables, force=force) as folder:

            def one_of_them(write: Callable[[BinaryIO], object], name: str = "") -> None:
                try:
                    deliver(write, str(folder / name), force=False, source="", is_text=False)
                except OutputError as error:
                    # The folder has a name of its own until it is whole.
                    raise OutputError(str(error).replace(str(folder), output)) from error

            yield one_of_them
        return

    def one_file(write: Callable[[BinaryIO], object], name: str = "") -> None:  # noqa: ARG001 (has none)
        packed = output.endswith(".gz") and not exporter.suffix.endswith(".gz")
        deliver(
            _packing(write) if packed else write,
            output,
            force=force,
            source=source,
            is_text=not packed and exporter.is_text,
        )

    # Before the profile is read, which may take long.
    if output != "-":
        check_output(output, replace=force)
    yield one_file


def _packing(write: Callable[[BinaryIO], object]) -> Callable[[BinaryIO], object]:
    def packed(stream: BinaryIO) -> None:
        with gzip.GzipFile("", "wb", _GZIP_LEVEL, stream, mtime=0) as inside:
            write(inside)  # type: ignore[arg-type]  # a stream in all but its class

    return packed
