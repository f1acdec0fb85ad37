"""A tool's answer about all hosts of a session, for ``peakline tool``; options of its executors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from peakline.errors import StrictError, UsageError
from peakline.text import one_line

if TYPE_CHECKING:
    from peakline.engine import Answer
    from peakline.repository import Session

__all__ = [
    "answer_of_hosts",
    "check_executor_options",
    "executor_option",
    "makes_one_answer",
    "scheduler_option",
    "workers_option",
]

_EXECUTORS = ("threads", "processes", "dask")  # `peakline.engine.EXECUTORS`, not imported for help


executor_option = click.option(
    "--executor",
    type=click.Choice(_EXECUTORS),
    default="threads",
    help="Where the hosts of a session are read when all are asked: threads, processes, or a"
    " Dask cluster (peakline[dask]).",
)
workers_option = click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(min=1),
    help="Hosts that are read at once. Default: one for each core; with --scheduler, for each"
    " thread of the cluster.",
)
scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="The Dask cluster, tcp://HOST:PORT. Default: N processes on this machine.",
)


def check_executor_options(executor: str, scheduler: str | None) -> None:
    """Raise UsageError for options that do not fit; without a look at what they name."""
    if scheduler is not None and executor != "dask":
        raise UsageError("--scheduler is for --executor dask")


def makes_one_answer(name: str) -> bool:
    """Whether the tool makes one answer of several hosts; NotFoundError for no tool."""
    from peakline.engine import tool_aggregates
    from peakline.tools import find_tool

    return tool_aggregates(find_tool(name))


def answer_of_hosts(
    session: Session,
    name: str,
    parameters: Mapping[str, object],
    format: str | None,  # noqa: A002 (the word of the command line)
    *,
    executor: str,
    workers: int | None,
    scheduler: str | None,
    strict: bool,
    max_unpacked: int | None,
) -> Answer:
    """One answer of all hosts of ``session``; a host that fails is a line on standard error.

    Profiles are closed as soon as their host has been asked. With ``strict`` such a host, and any
    warning, is a StrictError.
    """
    from peakline.engine import Engine

    with (
        Engine(
            cache_bytes=0,
            answers_bytes=0,
            max_unpacked_bytes=max_unpacked,
            executor=executor,
            workers=workers,
            scheduler=scheduler,
        ) as engine,
        _progress() as progress,
    ):
        answer = engine.tool(session, name, parameters=parameters, format=format, progress=progress)
    if strict and (answer.notes or answer.warnings):
        told = [*answer.notes, *(f"{w.kind} ({w.count}): {w.detail}" for w in answer.warnings)]
        raise StrictError(f"{session.path}: {'; '.join(told)}")
    for note in answer.notes:
        print(f"peakline: warning: left out: {one_line(note)}", file=sys.stderr)
    return answer


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], object] | None]:
    """Draw on standard error how many hosts are done, on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.table import Column

    console = Console(file=sys.stderr, markup=False, emoji=False, highlight=False)
    host = TextColumn(
        "{task.description}",
        markup=False,
        table_column=Column(no_wrap=True, overflow="ellipsis"),
    )
    columns = (TextColumn("hosts"), BarColumn(), MofNCompleteColumn(), Elapsed(), host)
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task("", total=None)

        def report(name: str, done: int, hosts: int) -> None:
            bars.update(task, completed=done, total=hosts, description=one_line(name))

        yield report
