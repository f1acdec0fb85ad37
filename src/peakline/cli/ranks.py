"""What verbs share that answer about all ranks of a job: reading them, and who does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeGuard

import click

from peakline import jobs
from peakline.cli.options import EXECUTORS, Reading, scheduler_option, workers_option
from peakline.cli.progress import of_hosts
from peakline.errors import StrictError, UsageError
from peakline.render.terminal.output import print_left_out
from peakline.repository.names import newest_of_workers

if TYPE_CHECKING:
    from peakline.engine import Engine
    from peakline.engine.job_sql import JobRows
    from peakline.jobs import JobAnswer
    from peakline.repository import Session
    from peakline.tables import ProfileWarning

_WORTH_PROCESSES = 8
"""So many profiles are sooner read by processes than by threads, which share one interpreter."""
_Verb = Callable[..., None]
_executor_option = click.option(
    "--executor",
    type=click.Choice(EXECUTORS),
    help="Where the ranks of a job are read: threads, processes, or a Dask cluster"
    " (peakline[dask]). Default: processes, for a few ranks threads.",
)


@dataclass(frozen=True)
class Readers:
    """Where the ranks of a job are read: what the options of `readers_options` say."""

    executor: str | None = None
    workers: int | None = None
    scheduler: str | None = None


def readers_options(verb: _Verb) -> _Verb:
    """--executor, --workers and --scheduler; the verb gets them as ``readers``, a `Readers`."""

    @wraps(verb)
    def read(
        executor: str | None, workers: int | None, scheduler: str | None, **given: Any
    ) -> None:
        if scheduler is not None and executor != "dask":
            raise UsageError("--scheduler is for --executor dask")
        verb(readers=Readers(executor, workers, scheduler), **given)

    return _executor_option(workers_option(scheduler_option(read)))


def is_job(result: str | Session) -> TypeGuard[Session]:
    """Whether what a path means are several ranks. The recordings of one worker are none: they are
    of one after the other.
    """
    if isinstance(result, str):
        return False
    return len(newest_of_workers([(file.host,) for file in result.hosts()])) > 1


def of_one_rank(
    path: str, session: Session, options: Mapping[str, object], choose: str = "--rank or --host"
) -> None:
    """UsageError where an option is given that is of one rank; ``options`` are their values by
    name, ``choose`` is what chooses one.
    """
    given = [f"--{name}" for name, value in options.items() if value not in (None, (), False)]
    if given:
        many = len(session.hosts())
        verb = "is" if len(given) == 1 else "are"
        raise UsageError(
            f"{path}: {', '.join(given)} {verb} of one of its {many} ranks: choose it with {choose}"
        )


def job_answer(session: Session, reading: Reading, readers: Readers) -> JobAnswer:
    """What is said of the job whose profiles ``session`` holds. Raises as `contributions`."""
    return jobs.answer_of(contributions(session, reading, readers, "job"))


def contributions(
    session: Session,
    reading: Reading,
    readers: Readers,
    tool: str,
    parameters: Mapping[str, object] | None = None,
) -> list[tuple[str, Any]]:
    """What every profile of ``session`` gives to a tool: what its host is called, and that.

    A profile that cannot be read is one line on standard error; with ``strict`` that, and any
    warning, is a StrictError. Raises as `peakline.engine.Engine.contributions`.
    """
    if reading.programs is not None:
        raise UsageError("--programs is for one rank; choose it with --host")
    with _engine(session, reading, readers) as engine, of_hosts() as progress:
        result = engine.contributions(session, tool, parameters=parameters, progress=progress)
    _check_whole(session, reading, result.notes, result.warnings)
    print_left_out(result.notes)
    return list(result.parts)


def rows_of_ranks(
    session: Session,
    reading: Reading,
    readers: Readers,
    query: str,
    memory_limit: int | None = None,
) -> JobRows:
    """The answer to a query over the profiles of ``session``; with ``strict`` a StrictError where
    it is without a profile, or there is any warning. Raises as `peakline.engine.Engine.job_sql`.
    """
    with _engine(session, reading, readers) as engine, of_hosts() as progress:
        result = engine.job_sql(session, query, memory_limit_bytes=memory_limit, progress=progress)
    _check_whole(session, reading, result.notes, result.warnings)
    return result


def _engine(session: Session, reading: Reading, readers: Readers) -> Engine:
    """What reads the ranks of a job once, and holds nothing."""
    from peakline.engine import Engine

    many = len(session.hosts()) >= _WORTH_PROCESSES
    return Engine(
        cache_bytes=0, answers_bytes=0, max_unpacked_bytes=reading.max_unpacked,
        executor=readers.executor or ("processes" if many else "threads"),
        workers=readers.workers, scheduler=readers.scheduler,
    )  # fmt: skip


def _check_whole(
    session: Session, reading: Reading, notes: Iterable[str], warnings: Iterable[ProfileWarning]
) -> None:
    problems = [*notes, *(f"{one.kind} ({one.count}): {one.detail}" for one in warnings)]
    if reading.strict and problems:
        raise StrictError(f"{session.path}: {'; '.join(problems)}")
