"""`Engine`: what every face asks about sessions."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from peakline import compare
from peakline.deadline import check_deadline
from peakline.engine.answers import Answer, Answers, warnings_of
from peakline.engine.executors import Executor, fan_out, make_executor
from peakline.engine.job_sql import JobQuery, JobRows, TablesTask
from peakline.engine.profile_cache import ProfileCache
from peakline.engine.tool_index import ToolIndex
from peakline.engine.work import CONTRIBUTION, HostTask, ask_host, contributed
from peakline.errors import ForbiddenError, NotFoundError, PeaklineError, UsageError, faults_of
from peakline.repository import HostFile, Session
from peakline.repository.names import listing
from peakline.tables import Profile, ProfileWarning
from peakline.tables.query import SqlParameters, checked_parameters
from peakline.toolbox.parameters import check_choice
from peakline.tools import Parameters, Tool, find_tool

if TYPE_CHECKING:
    import pyarrow as pa

    from peakline.figures.named import FigureQuestion
    from peakline.tables.sql_process.pool import Question, SqlPool, WrittenRows


@dataclass(frozen=True)
class Contributions:
    """What the hosts of a session give to one answer: ``parts`` by host; the warnings about them;
    and notes of those that could not be read.
    """

    parts: list[tuple[str, Any]]
    warnings: tuple[ProfileWarning, ...]
    notes: tuple[str, ...]


class SqlProcesses:
    """At most one pool of up to ``most`` processes, as `SqlPool` has them. Thread-safe.

    What they share takes up to ``shared_bytes``.
    """

    def __init__(self, most: int | None, shared_bytes: int) -> None:
        self._most = most
        self._shared_bytes = shared_bytes
        self._lock = threading.Lock()
        self._pool: SqlPool | None = None

    @property
    def pool(self) -> SqlPool:
        """The pool; without queries it has no process."""
        with self._lock:
            if self._pool is None:
                from peakline.tables.sql_process.pool import SqlPool

                self._pool = SqlPool(self._most, spare=1, shared_bytes=self._shared_bytes)
            return self._pool

    def share(self, most_bytes: int) -> None:
        """From now on, what they share takes up to ``most_bytes``."""
        self._shared_bytes = most_bytes
        if self._pool is not None:
            self._pool.shared.resize(most_bytes)

    def close(self) -> None:
        """End them; the pool may be used again."""
        if self._pool is not None:
            self._pool.close()


class Engine:
    """Tools and SQL over sessions. Thread-safe; every call ends at the caller's deadline.

    Decoded profiles (up to ``cache_bytes``) and answers (up to ``answers_bytes``) are shared by
    all calls; both are known by the content of the files, so a changed file is read anew. A gzip
    file may expand to ``max_unpacked_bytes`` (default: 200 times its size, at least 1 GiB).

    Queries of remote callers run in up to ``sql_processes`` processes (default: one for each core,
    at least 4), which share what is left of ``cache_bytes``.

    ``executor`` says where the hosts are read when a question is to several: one of `EXECUTORS`
    (``workers`` at once, ``scheduler`` for Dask: see `make_executor`, whose errors it raises) or
    an `Executor` of one's own. `close` ends what it has started.
    """

    def __init__(
        self,
        *,
        cache_bytes: int = 2 << 30,
        answers_bytes: int = 256 << 20,
        max_unpacked_bytes: int | None = None,
        executor: str | Executor = "threads",
        workers: int | None = None,
        scheduler: str | None = None,
        sql_processes: int | None = None,
    ) -> None:
        self.executor = (
            make_executor(executor, workers=workers, scheduler=scheduler)
            if isinstance(executor, str)
            else executor
        )
        self._max_unpacked_bytes, self._cache_bytes = max_unpacked_bytes, cache_bytes
        # The cache must not refer to the engine: one that nobody has any more gives up its profiles
        # and ends its processes at once, not when the garbage collector comes by.
        self._sql_processes = SqlProcesses(sql_processes, cache_bytes)
        self.cache = ProfileCache(
            cache_bytes, max_unpacked_bytes=max_unpacked_bytes, left_over=self._sql_processes.share
        )
        self._answers = Answers(answers_bytes)
        self._index = ToolIndex(self.cache)

    @property
    def sql_pool(self) -> SqlPool:
        """The processes that queries of remote callers run in."""
        return self._sql_processes.pool

    def tools(self, session: Session) -> list[str]:
        """Names of the tools that have something to show for a host of ``session``, sorted.

        Reads as little as possible, and what was read before only when it has changed: looked at
        at once when the session's directory changed, else once a minute.
        """
        return self._index.tools(session)

    def problem(self, session: Session) -> str:
        """Why a file of a session that has no tools cannot be read; empty where nothing is wrong.

        Looks as `tools` does.
        """
        return self._index.problem(session)

    def known_tools(self, session: Session) -> list[str]:
        """What `tools` found until now, without a look; maybe not all, maybe out of date."""
        return self._index.known(session)

    def tool(
        self,
        session: Session,
        name: str,
        *,
        host: str = "",
        parameters: Mapping[str, object] | None = None,
        format: str | None = None,  # noqa: A002 (the word of the command line and the RPC)
        remote: bool = False,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> Answer:
        """Run the named tool for one host; without ``host`` for the only one, or for all.

        ``format`` None means the tool's first. Of all hosts a tool that can `combine` makes one
        answer; hosts that fail are named in its notes. For a ``remote`` caller, parameters that
        name files are refused and unknown ones only noted. ``progress`` is called for every host
        that is done, in any thread: its name, how many are done, and of how many.

        Raises NotFoundError for an unknown tool, host, allocator ...; UsageError for a bad
        parameter or format, or where the tool shows one host and there are several; ForbiddenError;
        InputError when no host can be read; DeadlineError or CancelledError.
        """
        tool = find_tool(name)
        chosen = tool.checked_format(format)
        given = dict(parameters or {})
        notes = _remote(tool, given) if remote else ()
        # A parameter of that name means the same.
        host = host or str(given.get("host") or "")
        given.pop("host", None) if "host" in tool.parameters.declared() else None
        question = tool.validated(given)
        chosen = tool.decided_format(question, chosen)
        files = _files(session, host)
        if len(files) == 1:
            answer = self._of_one(tool, files[0], question, chosen)
        elif tool.combine is None:
            raise UsageError(f"{name} shows one host; there is: {_names(files)}")
        else:
            answer = self._of_all(tool, files, question, chosen, progress)
        return replace(answer, notes=(*notes, *answer.notes))

    def compare(
        self,
        first: Session,
        second: Session,
        *,
        first_host: str = "",
        second_host: str = "",
        format: str | None = None,  # noqa: A002 (as in `tool`)
    ) -> Answer:
        """What changed from a host of ``first`` to one of ``second``: `peakline diff` as bytes.

        ``format`` is one of `COMPARISONS`, None the first. The profiles are called by their
        sessions and files. Raises as `sql` does, UsageError for another format.
        """
        chosen = checked_comparison(format)
        sides = [
            (session, only_host(session, host, f"comparing session {session.name}"))
            for session, host in ((first, first_host), (second, second_host))
        ]
        key = "compare", chosen, *((side.name, file.host, file.stamp()) for side, file in sides)
        return self._answers.get(
            key, lambda: comparison(sides, chosen, self.cache.lease), lambda _: True
        )

    def sql(
        self,
        session: Session,
        query: str,
        parameters: SqlParameters = None,
        *,
        host: str = "",
        memory_limit_bytes: int | None = None,
    ) -> pa.Table:
        """The answer to one reading SQL statement over the tables of one host's profile; without
        ``host`` over those of all, as `job_sql`, where there are several.

        Raises as `Profile.sql` and `job_sql` do, NotFoundError for an unknown host.
        """
        files = _files(session, host)
        if len(files) > 1:
            return self.job_sql(
                session, query, parameters, memory_limit_bytes=memory_limit_bytes
            ).table
        with self.cache.lease(files[0]) as profile:
            return profile.sql(query, parameters, memory_limit_bytes=memory_limit_bytes)

    def job_sql(
        self,
        session: Session,
        query: str,
        parameters: SqlParameters = None,
        *,
        memory_limit_bytes: int | None = None,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> JobRows:
        """The answer to one reading SQL statement over the tables of all ranks of a job, each with
        the column ``rank``, and the table ``ranks``; a view is each rank's own.

        Only what the query needs is read, by the executor, and of ranks that conditions such as
        ``rank = 3`` rule out nothing. It lies in files of the system's temporary directory until
        the query has run. Raises as `Profile.sql`; InputError when no host can be read. One that
        cannot is in the notes.
        """
        job = self._job_query(_files(session, ""), progress=progress)
        return job.rows(query, checked_parameters(parameters), memory_limit_bytes)

    def _job_query(
        self,
        files: Sequence[HostFile],
        *,
        progress: Callable[[str, int, int], object] | None = None,
        public: Callable[[str], str] | None = None,
    ) -> JobQuery:
        def ask(task: TablesTask) -> Answer:
            def here() -> Answer:
                with self.cache.lease(task.file) as profile:
                    return task.answer(profile)

            return self.executor.ask(task, here)

        return JobQuery(
            files,
            ask,
            workers=self.executor.workers,
            counted=partial(_counted, progress),
            max_unpacked_bytes=self._max_unpacked_bytes,
            public=public,
        )

    def remote_sql(
        self,
        session: Session,
        question: Question,
        *,
        host: str = "",
        public: Callable[[str], str] = str,
    ) -> WrittenRows:
        """The answer to a remote caller's query over one host's tables, made in another process;
        without ``host`` over those of all ranks, where there are several: what is read of them may
        take as much of the disk as the cache of profiles of memory. ``public`` is what the caller
        may see of why one of them could not be read.

        Raises as `SqlPool.rows` does, NotFoundError for an unknown host.
        """
        files = _files(session, host)
        if len(files) > 1:
            job = self._job_query(files, public=public)
            return job.written(question, self.sql_pool, self._cache_bytes)
        with self.cache.lease(files[0]) as profile:
            return self.sql_pool.rows(profile, question)

    def figure(self, session: Session, request: FigureQuestion, *, host: str = "") -> Answer:
        """A figure of one host's profile as JSON, held as the answers of tools are.

        Raises as `figure_json` does, NotFoundError for an unknown host, UsageError where there are
        several and none is named.
        """
        from peakline.figures.named import figure_json

        file = only_host(session, host, "a figure")

        def make() -> Answer:
            with self.cache.lease(file) as profile, profile.question() as warnings:
                return Answer(figure_json(profile, request), "json", tuple(warnings()))

        check_deadline()
        return self._answers.get((request, file.stamp()), make, lambda _: True)

    def tables(self, session: Session, *, host: str = "") -> list[str]:
        """Names of the tables that a query over one host's profile may use, sorted; without
        ``host`` of those that one over all ranks may, where there are several.
        """
        files = _files(session, host)
        if len(files) > 1:
            return self._job_query(files).names()
        with self.cache.lease(files[0]) as profile:
            return profile.tables

    def close(self) -> None:
        """Give up every profile, and end what was started; may be used again."""
        self.cache.clear()
        self._sql_processes.close()
        self.executor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _of_one(
        self,
        tool: Tool,
        file: HostFile,
        question: Parameters,
        chosen: str,
        executor: Executor | None = None,
    ) -> Answer:
        """One host's answer, or its contribution; made by ``executor``, or here."""
        task = HostTask(tool.name, file, question, chosen, self._max_unpacked_bytes)

        def here() -> Answer:
            with self.cache.lease(file) as profile:
                return ask_host(task, profile)

        def make() -> Answer:
            return here() if executor is None else executor.ask(task, here)

        check_deadline()
        if _names_files(tool, question):
            # Their content is not part of what an answer is known by.
            return make()
        return self._answers.get(_key(tool, [file], question, chosen), make, lambda _: True)

    def contributions(
        self,
        session: Session,
        name: str,
        *,
        parameters: Mapping[str, object] | None = None,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> Contributions:
        """What every host gives to the answer of the named tool about all of them, for who makes
        another answer of it. Raises as `tool`; hosts that fail are named in the notes.
        """
        tool = find_tool(name)
        if tool.combine is None:
            raise UsageError(f"{name} shows one host")
        question = tool.validated(parameters or {})
        return self._contributions(tool, _files(session, ""), question, progress)

    def _contributions(
        self,
        tool: Tool,
        files: list[HostFile],
        question: Parameters,
        progress: Callable[[str, int, int], object] | None,
    ) -> Contributions:
        source, own = tool.contributing(question)

        def contribution(file: HostFile) -> Answer:
            with faults_of(file.path):
                return self._of_one(source, file, own, CONTRIBUTION, self.executor)

        answers = fan_out(contribution, files, self.executor.workers, _counted(progress, files))
        parts: list[tuple[str, Answer]] = []
        errors: list[tuple[HostFile, PeaklineError]] = []
        for file, answer in zip(files, answers, strict=True):
            if isinstance(answer, Answer):
                parts.append((file.host, answer))
            else:
                errors.append((file, answer))
        if not parts:
            raise errors[0][1]
        check_deadline()
        return Contributions(
            [(host, contributed(part)) for host, part in parts],
            warnings_of(parts),
            tuple(f"host {file.host}: {error}" for file, error in errors),
        )

    def _of_all(
        self,
        tool: Tool,
        files: list[HostFile],
        question: Parameters,
        chosen: str,
        progress: Callable[[str, int, int], object] | None,
    ) -> Answer:
        def make() -> Answer:
            result = self._contributions(tool, files, question, progress)
            combine = tool.answering(question).combine
            if combine is None:
                raise TypeError(f"{tool.name} makes no answer of several")
            content = combine(result.parts, question, chosen)
            return Answer(content, chosen, result.warnings, result.notes)

        if _names_files(tool, question):
            return make()
        key = _key(tool, files, question, chosen)
        # What failed may have been the network.
        return self._answers.get(key, make, lambda answer: not answer.notes)


def _remote(tool: Tool, given: dict[str, object]) -> tuple[str, ...]:
    """Take the parameters out that the tool does not know, and name them.

    Raises ForbiddenError for one that is for local callers only.
    """
    known = tool.parameters.declared()
    notes = []
    for name in list(given):
        if name not in known:
            del given[name]
            notes.append(f"parameter {name!r:.80} is not known to {tool.name} and was ignored")
        elif name in tool.local_only:
            raise ForbiddenError(f"{tool.name}: parameter {name} is for local callers only")
    return tuple(notes)


def _names_files(tool: Tool, question: Parameters) -> bool:
    return any(getattr(question, name) is not None for name in tool.local_only)


def _counted(
    progress: Callable[[str, int, int], object] | None, files: Sequence[HostFile]
) -> Callable[[HostFile], None] | None:
    """What counts for ``progress`` the files that are done."""
    if progress is None:
        return None
    done, lock = itertools.count(1), threading.Lock()

    def finished(file: HostFile) -> None:
        with lock:
            progress(file.host, next(done), len(files))

    return finished


def _files(session: Session, host: str) -> list[HostFile]:
    if host:
        return [session.host(host)]
    files = session.hosts()
    if not files:
        raise NotFoundError(f"session {session.name}: no profile in it")
    return files


def only_host(session: Session, host: str, what: str) -> HostFile:
    """The file of ``host``, or of the only one; UsageError says that ``what`` needs one."""
    files = _files(session, host)
    if len(files) > 1:
        raise UsageError(f"{what} needs one host; there is: {_names(files)}")
    return files[0]


def _names(files: list[HostFile]) -> str:
    return listing([file.host for file in files])


def _key(tool: Tool, files: list[HostFile], question: Parameters, chosen: str) -> Hashable:
    stamps = tuple((file.host, file.stamp()) for file in files)
    return tool.name, chosen, question, stamps


COMPARISONS = ("json", "markdown")
"""The formats of a comparison, the default first."""
_SIDES = ("first", "second")


def checked_comparison(format: str | None) -> str:  # noqa: A002 (the word of the command line)
    """``format``, or the first one for None; raises UsageError for one that there is not."""
    chosen = COMPARISONS[0] if format is None else format
    check_choice(chosen, COMPARISONS, "a comparison has no format")
    return chosen


def comparison(
    sides: Sequence[tuple[Session, HostFile]],
    chosen: str,
    lease: Callable[[HostFile], AbstractContextManager[Profile]],
) -> Answer:
    """What changed from the first of two profiles to the second, in the format ``chosen``.

    One after the other is taken on ``lease``, so that they need not both be in memory. Raises
    NotFoundError or InputError when a file cannot be read.
    """
    states, warnings = [], []
    for side, (session, file) in zip(_SIDES, sides, strict=True):
        check_deadline()
        name = file.path.rstrip("/").rpartition("/")[2]
        with lease(file) as profile, profile.question():
            state = compare.profile_state(profile, path=f"{session.name}/{name}")
        states.append(state)
        warnings += [
            warning._replace(detail=f"{side}: {warning.detail}") for warning in state.warnings
        ]
    result = compare.compare_profiles(*states)
    if chosen == "markdown":
        from peakline.render.markdown import comparison_markdown

        text = comparison_markdown(result)
    else:
        from peakline.document.diff import diff_document

        text = json.dumps(diff_document(result), indent=2, allow_nan=False) + "\n"
    return Answer(text.encode(), chosen, tuple(warnings))
