"""A query over all ranks of a job: what it needs of each is read where ranks are read.

The query is planned first, over tables without rows; then every rank that it can need is read, by
the executor, and gives only the columns that the plan scans; then the database runs the query over
files in which these lie. Rows stand in the order of the ranks.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from peakline import jobs
from peakline.deadline import check_deadline
from peakline.engine.answers import Answer, warnings_of
from peakline.engine.executors import fan_out
from peakline.engine.work import CONTRIBUTION, contributed
from peakline.errors import CheckFailed, PeaklineError, faults_of
from peakline.repository import HostFile
from peakline.repository.names import newest_of_workers
from peakline.repository.ranks import rank_of_file
from peakline.tables import Profile, ProfileWarning
from peakline.tables.database import WARNINGS, answered
from peakline.tables.definition import TableDef
from peakline.tables.query import QueryNeeds, SqlParameters, connect
from peakline.tables.rank_conditions import ranks_needed
from peakline.tables.ranked import (
    RANKS,
    Part,
    RankedFiles,
    ranked_table,
    ranked_tables,
    stream_of_rank,
    streams_of,
)
from peakline.tables.sql_listing import is_listing
from peakline.tables.sql_process.pool import Question, SqlPool, WrittenRows, shared_pool
from peakline.tables.sql_process.shared import RankedPiece
from peakline.tables.sql_views import missing_table, view_names

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_T = TypeVar("_T")


@dataclass(frozen=True)
class _Seen:
    """What is read of a rank: the names of its tables and views, and streams of some of them."""

    names: frozenset[str]
    streams: dict[str, bytes]


@dataclass(frozen=True)
class TablesTask:
    """What a query needs of the tables of one host: a `peakline.engine.work.Task`."""

    file: HostFile
    needs: QueryNeeds
    max_unpacked_bytes: int | None = None

    def answer(self, profile: Profile) -> Answer:
        """Who the profile is in the job, and the tables, pickled."""
        with profile.question() as warnings:
            streams = streams_of(profile, self.needs)
            seen = _Seen(frozenset([*profile.tables, *profile.views]), streams)
            content = pickle.dumps(jobs.judged_of(profile, seen), protocol=5)
            return Answer(content, CONTRIBUTION, tuple(warnings()))


@dataclass(frozen=True)
class JobRows:
    """The answer to a query over a job, and the warnings about the ranks that were read. ``notes``
    say of which profiles it is not, ``remarks`` what the job, or some of its ranks, never had: a
    line each.
    """

    table: pa.Table
    warnings: tuple[ProfileWarning, ...]
    notes: tuple[str, ...]
    remarks: tuple[str, ...]


class JobQuery:
    """A query over the profiles ``files`` of a job. ``ask`` gives what is wanted of one, wherever
    it is read, of ``workers`` at once. ``counted`` makes, of the files that are read, what
    is called for each that is done. ``public`` is what a remote caller may see of an error.
    """

    def __init__(
        self,
        files: Sequence[HostFile],
        ask: Callable[[TablesTask], Answer],
        *,
        workers: int,
        counted: Callable[[Sequence[HostFile]], Callable[[HostFile], object] | None],
        max_unpacked_bytes: int | None = None,
        public: Callable[[str], str] | None = None,
    ) -> None:
        newest = newest_of_workers([(file.host, file) for file in files])
        self._files = [file for _, file in newest]
        self._ask, self._workers, self._counted = ask, workers, counted
        self._max_unpacked_bytes, self._public = max_unpacked_bytes, public
        hosts = {file.host for file in self._files}
        earlier = (file.host for file in files if file.host not in hosts)
        self._notes = [f"{host} is an earlier recording of a worker" for host in earlier]
        self._remarks: list[str] = []
        self._warned: list[tuple[str, Answer]] = []
        self._is_read = False

    def rows(
        self, query: str, parameters: SqlParameters = None, memory_limit_bytes: int | None = None
    ) -> JobRows:
        """The answer.

        Raises CheckFailed for a query that is wrong or not allowed, or names what no rank has; and
        what reading raises where no rank can be read.
        """
        with _files() as (folder, files), connect(None, folder) as connection:

            def parts(needs: QueryNeeds) -> dict[str, tuple[int, list[Part]]]:
                return self._parts(needs, self._named_ranks(connection, query, needs), files)

            def register(needs: QueryNeeds) -> None:
                for name, part in parts(needs).items():
                    connection.register(name, ranked_table(name, *part))

            def answer(tables: Mapping[str, TableDef]) -> pa.Table:
                if memory_limit_bytes is None:
                    return answered(connection, query, parameters, tables, register)
                question = Question(query, memory_limit_bytes, parameters=parameters, spill=folder)
                return shared_pool().ranked(tables, question, lambda needs: _pieces(parts(needs)))

            table = self._of_known(query, answer)
        return JobRows(table, warnings_of(self._warned), tuple(self._notes), tuple(self._remarks))

    def written(self, question: Question, pool: SqlPool, most_bytes: int) -> WrittenRows:
        """The answer to a remote caller, made in a process of the ``pool``; what is read for it
        may take ``most_bytes``. Raises as `rows`.
        """
        with _files(most_bytes) as (_, files):

            def read(needs: QueryNeeds) -> list[tuple[str, RankedPiece]]:
                # Only the process of the query looks at its text.
                return _pieces(self._parts(needs, None, files))

            rows = self._of_known(
                question.query, lambda tables: pool.ranked_rows(tables, question, read)
            )
        return replace(rows, notes=(*self._notes, *self._remarks))

    def names(self) -> list[str]:
        """The names of the tables that a query may use, sorted."""
        return sorted(self._survey().keys() - view_names())

    def _of_known(self, query: str, answer: Callable[[Mapping[str, TableDef]], _T]) -> _T:
        """``answer`` of all tables that there may be; of those that this job has, where the query
        lists them or names what there is not.
        """
        try:
            return answer(self._survey() if is_listing(query) else ranked_tables())
        except CheckFailed as error:
            if self._is_read or not str(error).startswith("Table with name"):
                raise
        return answer(self._survey())

    def _survey(self) -> dict[str, TableDef]:
        """What a query may name of this job."""
        with _files() as (_, files):
            names = self._read(self._files, {}, files).names
        return ranked_tables(name for own in names.values() for name in own)

    def _parts(
        self, needs: QueryNeeds, named: Mapping[str, int] | None, files: RankedFiles
    ) -> dict[str, tuple[int, list[Part]]]:
        """Where in ``files`` the tables that a query ``needs`` lie, when they are read: of the
        ranks ``named`` by host, or of all.
        """
        if not needs:
            return {}
        if named is None:
            named = dict.fromkeys((file.host for file in self._files), 0)
        chosen = [file for file in self._files if file.host in named]
        wanted = {name: columns for name, columns in needs.items() if name != RANKS.name}
        read = self._read(chosen, wanted, files)
        is_whole = len(chosen) == len(self._files)
        ranks = read.ranks(chosen, {} if is_whole else named)
        if is_whole:
            _check_there(wanted, read)
            missing = set(read.job.missing).difference(ranks.values())
            if missing:
                self._remarks.append(f"no profile of {_ranks_text(missing)}")
            self._remarks += read.job.notes
        for name in sorted(wanted):
            own = files.hosts(name)
            lacking = {rank for host, rank in ranks.items() if host in read.names.keys() - own}
            if lacking and own and name != WARNINGS:
                self._remarks.append(f"no {name} in the profile of {_ranks_text(lacking)}")
        for file in chosen:
            if file.host in ranks:
                row = read.row(file, self._public)
                files.add(file.host, {RANKS.name: stream_of_rank(row)})
        return {name: files.part_of(name, ranks) for name in needs}

    def _named_ranks(
        self, connection: duckdb.DuckDBPyConnection, query: str, needs: QueryNeeds
    ) -> dict[str, int]:
        """The ranks that a query can need, by host, as far as it shows without reading them."""
        known = [file.rank for file in self._files]
        result = self._needed(connection, query, needs, known)
        if len(result) < len(known) and any(
            file.rank is not None and rank_of_file(file) != file.rank for file, _ in result
        ):
            # The files say something else than their names.
            known = [rank_of_file(file) for file in self._files]
            result = self._needed(connection, query, needs, known)
        return {file.host: rank for file, rank in result}

    def _needed(
        self,
        connection: duckdb.DuckDBPyConnection,
        query: str,
        needs: QueryNeeds,
        known: Sequence[int | None],
    ) -> list[tuple[HostFile, int]]:
        ranks = _numbered(known)
        needed = ranks_needed(connection, query, needs, ranks)
        pairs = zip(self._files, ranks, strict=True)
        return [(file, rank) for file, rank in pairs if rank in needed]

    def _read(self, files: Sequence[HostFile], needs: QueryNeeds, into: RankedFiles) -> _Read:
        """Read what is needed of ``files``; raises what the first raises where none can be read."""

        def one(file: HostFile) -> tuple[jobs.Judged[frozenset[str]], Answer]:
            with faults_of(file.path):
                answer = self._ask(TablesTask(file, needs, self._max_unpacked_bytes))
                seen: jobs.Judged[_Seen] = contributed(answer)
                into.add(file.host, seen.result.streams)
                return jobs.Judged(seen.profile, seen.result.names), replace(answer, content=b"")

        answers = fan_out(one, files, self._workers, self._counted(files)) if files else []
        self._is_read = True
        check_deadline()
        parts: list[tuple[str, jobs.Judged[frozenset[str]]]] = []
        failed: dict[str, PeaklineError] = {}
        for file, answer in zip(files, answers, strict=True):
            if isinstance(answer, CheckFailed):
                raise answer
            if isinstance(answer, PeaklineError):
                failed[file.host] = answer
            else:
                parts.append((file.host, answer[0]))
                self._warned.append((file.host, answer[1]))
        if failed and not parts:
            raise next(iter(failed.values()))
        job, own = jobs.by_rank(parts)
        self._notes += [f"host {host}: {error}" for host, error in failed.items()]
        self._notes += [f"{one.host} {one.reason}" for one in job.left_out]
        members = {member.host: member for member, _ in own}
        return _Read(job, members, {member.host: names for member, names in own}, failed)


@dataclass(frozen=True)
class _Read:
    """What was read of ranks: those of the job, with the names of their tables, by host; and why
    others could not be read.
    """

    job: jobs.Job
    members: dict[str, jobs.Member]
    names: dict[str, frozenset[str]]
    failed: dict[str, PeaklineError]

    def ranks(self, files: Sequence[HostFile], named: Mapping[str, int]) -> dict[str, int]:
        """The rank of each of ``files`` that is of the job, by host: as it says itself, else as
        ``named``, else the next that is free.
        """
        own = {host: one.number for host, one in self.members.items() if one.number is not None}
        taken = set(own.values())
        known = []
        for file in files:
            rank = named.get(file.host, file.rank if file.host in self.failed else None)
            known.append(own.get(file.host, None if rank in taken else rank))
        return {
            file.host: rank
            for file, rank in zip(files, _numbered(known), strict=True)
            if file.host in self.members or file.host in self.failed
        }

    def row(self, file: HostFile, public: Callable[[str], str] | None) -> tuple[str | None, ...]:
        """The row of a rank in the table `RANKS`; with ``public`` without places of the machine."""
        path = file.path if public is None else file.path.replace("\\", "/").rpartition("/")[2]
        member = self.members.get(file.host)
        if member is not None:
            return file.host, member.title, member.machine or None, path, "read"
        title = file.host if file.rank is None else f"rank {file.rank}"
        reason = str(self.failed[file.host])
        return file.host, title, None, path, reason if public is None else public(reason)


@contextmanager
def _files(most_bytes: int | None = None) -> Iterator[tuple[str, RankedFiles]]:
    """A directory of its own, and files in it."""
    with (
        tempfile.TemporaryDirectory(prefix="peakline-sql-") as folder,
        closing(RankedFiles(folder, most_bytes)) as files,
    ):
        yield folder, files


def _pieces(parts: Mapping[str, tuple[int, list[Part]]]) -> list[tuple[str, RankedPiece]]:
    return [(name, RankedPiece(*part)) for name, part in parts.items()]


def _check_there(needs: QueryNeeds, read: _Read) -> None:
    """Raise CheckFailed for a table that no rank has."""
    there = frozenset().union(*read.names.values())
    for name in sorted(needs):
        if name not in there:
            raise CheckFailed(missing_table(name, [*there, RANKS.name]))


def _numbered(known: Sequence[int | None]) -> list[int]:
    """Numbers, each once: the known ones, and for the others the next that are free."""
    first = {number: place for place, number in reversed([*enumerate(known)])}
    free = (number for number in count() if number not in first)
    return [
        next(free) if number is None or first[number] != place else number
        for place, number in enumerate(known)
    ]


def _ranks_text(ranks: Collection[int]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {jobs.numbers_text([*ranks])}"
