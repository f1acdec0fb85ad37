"""The files of a job that lie in a folder as they come: one for each rank, in names of any kind.

What a name says is checked where it costs little: one file of each form of names is looked at, not
all of a thousand. Where names say nothing, or several things, the first bytes of the files do.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile

from peakline.deadline import check_deadline
from peakline.errors import NotFoundError, PeaklineError, UsageError
from peakline.places import is_url
from peakline.repository.confined import Confinement
from peakline.repository.files import HostFile
from peakline.repository.names import is_name, listing
from peakline.repository.rank_names import (
    RankName,
    are_ranks_alone,
    differ_as_ranks,
    rank_name,
    ranks_of_all,
    stem_of,
)
from peakline.repository.readable import format_of, head_of, may_be_read, rank_facts_of
from peakline.repository.session import Session
from peakline.repository.store import FileEntry, Problem, Unreadable, reading
from peakline.repository.stores import store_for
from peakline.tables.rank_facts import RankFacts
from peakline.text import spans_of

_DEPTH = 3
"""Folders below that of the job: torchrun's ``RUN/attempt_0/3/stderr.log`` lies the deepest."""
_MOST_FILES = 50_000
_MOST_UNNAMED = 64
_MOST_READ, _MOST_READ_REMOTE = 8192, 128
"""Files whose first bytes are read to learn their ranks."""
_SILENT = 64
"""Where so many say nothing of ranks, the next ones are not read."""
_SAMPLES = 8
"""Of files whose names have one form, so many are looked at until one says its format."""
_UNPACKED_BYTES = 256 << 20
_OF_TIME = ("chrome_trace", "xplane", "run_metadata", "step_stats")
"""Formats that say what happened when: of a folder that has others too, they are the job."""
_TRACE = "chrome_trace"
_SESSIONS = "/plugins/profile/"
_EPOCH_NS, _TOGETHER_NS = 10**18, 3600 * 10**9
"""A number in a name that is a time in ns since 1970; and how far apart those of one job may be."""


@dataclass(frozen=True)
class RankFiles(Session):
    """A folder's files that are profiles of the ranks of one job, all of one ``format``.

    ``others`` is what was left out, a `Problem` for each sort of file: its name (one file's, or
    ``8 files such as NAME``), where it is, and why. A host is called as its file without the
    endings that all have, with its folders: ``rank0``, ``node1/rank3``.
    """

    format: str = ""
    others: tuple[Problem, ...] = ()
    files: tuple[HostFile, ...] = field(default=(), compare=False, repr=False)
    _seen: Hashable = field(default=None, compare=False, repr=False)

    def stamp(self) -> Hashable:
        """Something that changes when a file is added to one of the folders or removed.

        Raises NotFoundError when one is gone, InputError when it cannot be read.
        """
        store = store_for(self.path, self.storage_options, self.confinement)
        folders = {self.path}
        if "::" not in self.path:  # what a chain of file systems leads to is one listing
            folders |= {_parent(file.path) for file in self.files}
        with reading(f"job {self.name!r}"):
            return tuple(store.folder(path).stamp() for path in sorted(folders))

    listed_stamp = stamp

    def _all_hosts(self) -> list[HostFile]:
        if self._seen is not None and self.stamp() != self._seen:
            now = rank_files(self.path, self.storage_options, self.confinement)
            return [] if now is None else list(now.files)
        return list(self.files)


@dataclass(frozen=True)
class _File:
    """A file that may be a rank's: its path below the job's folder, and what that says."""

    name: str
    entry: FileEntry
    said: RankName


def rank_files(
    path: str,
    storage_options: Mapping[str, object] | None = None,
    confinement: Confinement | None = None,
) -> RankFiles | None:
    """The job whose files lie in the folder ``path``, or in folders below it; None without any.

    Raises UsageError where there are several, which names them; Unreadable for a folder that cannot
    be listed.
    """
    options = storage_options or {}
    store = store_for(path, options, confinement)
    look = _Look(options, confinement)
    top = [_file(entry.name, entry) for entry in store.folder(path).files() if may_be_read(entry)]
    job = _job_of(top, look, path)
    if job is None:
        tree = islice(store.tree(path, _DEPTH), _MOST_FILES)
        below = [_file(name, entry) for name, entry in tree if may_be_read(entry)]
        if len(below) > len(top):
            job = _job_of(below, look, path)
    if job is None:
        return None
    result = _session_of(job, top, look, path)
    return replace(result, _seen=result.stamp())


def job_of_sessions(
    sessions: Sequence[Session], path: str, storage_options: Mapping[str, object]
) -> RankFiles | None:
    """The job of which each of the ``sessions`` of the log directory ``path`` has some ranks: where
    every process was given a directory of its own (``rank0/``, ``node1/``); None where they are one
    session after the other.

    Where the directories' names say nothing, their recordings of PyTorch must: as different ranks
    of one world, written within an hour.
    """
    # Of ten thousand sessions that are none, one name is looked at.
    said = takewhile(lambda one: one.is_rank, (rank_name(f"{one.name}/") for one in sessions))
    names = list(said)
    are_named = len(names) == len(sessions) and differ_as_ranks(names)
    look = _Look(storage_options, sessions[0].confinement)
    files: list[_File] = []
    ranks: set[int] = set()
    for session in sessions:
        try:
            hosts = session.hosts()
        except PeaklineError:
            continue  # reading it says why it cannot be
        base = session.name
        for host in hosts:
            name = f"{base}/{host.path.rpartition('/')[2]}"
            file = _file(name, FileEntry(name, host.path))
            if not (file.said.is_rank if are_named else _is_next(file, ranks, look)):
                return None
            files.append(file)
    if not are_named:
        times = [time for file in files for time in file.said.times[-1:] if time >= _EPOCH_NS]
        if len(ranks) < 2 or max(times, default=0) - min(times, default=0) > _TOGETHER_NS:
            return None
    form = next(filter(None, (look.format(file.entry) for file in files[:_SAMPLES])), "")
    job = _named_job(form, files, look, path) if are_named else _Job(form, files)
    return None if job is None else _session_of(job, (), look, path, _shortest)


def job_of_files(
    paths: Sequence[str], storage_options: Mapping[str, object] | None = None
) -> RankFiles | None:
    """The job of which the named files are ranks, with those of them that are not in ``others``;
    None where they are not ranks of one job. It lies in the folder that all of them are in.

    Raises UsageError where they are the ranks of several jobs, which names them.
    """
    look = _Look(storage_options or {}, None)
    folder = folder_of_all(paths)
    names = [path.removeprefix("" if folder == "." else f"{folder.rstrip('/')}/") for path in paths]
    files = [
        _file(name.lstrip("/"), FileEntry(name.rpartition("/")[2], path))
        for name, path in zip(names, paths, strict=True)
    ]
    job = _job_of([file for file in files if may_be_read(file.entry)], look, folder)
    if job is None:
        return None
    # What all sessions of log directories have in their paths says nothing.
    are_sessions = all(_SESSIONS in f"/{file.name}" for file in job.files)
    result = _session_of(job, files, look, folder, _shortest if are_sessions else list)
    listed = {*(file.path for file in result.files), *(other.path for other in result.others)}
    unread = [
        Problem(file.name, file.entry.path, "no profile")
        for file in files
        if not file.said.is_rank and file.entry.path not in listed
    ]
    return replace(result, others=(*result.others, *unread))


def folder_of_all(paths: Sequence[str]) -> str:
    """The folder that all of the files are in.

    >>> folder_of_all(["traces/node0/rank0.json", "traces/node1/rank1.json"])
    'traces'
    """
    parts = [path.split("/")[:-1] for path in paths]
    common = [
        one[0] for one in takewhile(lambda one: len(set(one)) == 1, zip(*parts, strict=False))
    ]
    return "/".join(common) or ("/" if paths[0].startswith("/") else ".")


def _is_next(file: _File, ranks: set[int], look: _Look) -> bool:
    """Whether a recording says that it is of a rank of a larger world that is not among ``ranks``,
    to which it is added.
    """
    facts = look.facts(file.entry.path)
    if facts.rank is None or (facts.world_size or 0) < 2 or facts.rank in ranks:
        return False
    ranks.add(facts.rank)
    return True


def rank_of_file(file: HostFile) -> int | None:
    """The rank of a file by its content as far as its ends show it, else by its name."""
    look = _Look(file.storage_options, file.confinement)
    rank = look.facts(file.path).rank
    return file.rank if rank is None else rank


def file_of_rank(session: Session, rank: int) -> HostFile:
    """The file of ``rank``, by what the files say, or by their names where those do not.

    Raises UsageError where several are of that rank, NotFoundError that lists the ranks.
    """
    files = session.hosts()
    look = _Look(session.storage_options, session.confinement)
    named = [file for file in files if file.rank == rank]
    if len(named) == 1 and look.facts(named[0].path).rank in {None, rank}:
        return named[0]
    ranks: dict[int | None, list[HostFile]] = {}
    for file in files:
        said = look.facts(file.path).rank
        ranks.setdefault(file.rank if said is None else said, []).append(file)
    result = ranks.pop(rank, [])
    if len(result) == 1:
        return result[0]
    if result:
        several = listing([file.host for file in result])
        raise UsageError(f"{session.path}: several files of rank {rank}: {several}; use --host")
    known = sorted(one for one in ranks if one is not None)
    if not known:
        raise NotFoundError(
            f"{session.path}: neither the files nor their names say a rank; choose with --host: "
            f"{listing([file.host for file in files])}"
        )
    others = [f"{file.host} says it is {look.facts(file.path).rank}" for file in named]
    but = f" ({listing(others)})" if others else ""
    raise NotFoundError(
        f"{session.path}: no rank {rank}{but}; there is: {listing(spans_of(known))}"
    )


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _file(name: str, entry: FileEntry) -> _File:
    return _File(name, entry, rank_name(name))


class _Look:
    """What a glance at files says, each looked at once."""

    def __init__(
        self, storage_options: Mapping[str, object], confinement: Confinement | None
    ) -> None:
        self.storage_options, self.confinement = storage_options, confinement
        self._opener = None if confinement is None else confinement.open_file
        self._budget = self._unpacked = _UNPACKED_BYTES
        self._formats: dict[str, str] = {}
        self._facts: dict[str, RankFacts] = {}

    def format(self, entry: FileEntry) -> str:
        """Its format, empty where it has none or cannot be read."""
        check_deadline()
        if entry.path not in self._formats:
            form = ""
            with suppress(OSError, ValueError, zlib.error, PeaklineError, Unreadable):
                form, read = format_of(entry, self.storage_options, self._budget, self._opener)
                self._budget -= read
            self._formats[entry.path] = form
        return self._formats[entry.path]

    def is_void(self, entry: FileEntry) -> bool:
        """Whether there is nothing in it, not even unpacked."""
        with suppress(OSError, ValueError, zlib.error, PeaklineError, Unreadable):
            return not head_of(entry.path, self.storage_options, self._opener)
        return True

    def known_rank(self, path: str) -> int | None:
        """The rank that a trace says, where it was looked at."""
        return self._facts[path].rank if path in self._facts else None

    def facts(self, path: str) -> RankFacts:
        """What a trace says of its rank; nothing of one that cannot be read."""
        check_deadline()
        if path not in self._facts:
            facts = RankFacts()
            if path.removesuffix(".gz").endswith(".json"):
                with suppress(OSError, ValueError, zlib.error, PeaklineError, Unreadable):
                    facts, read = rank_facts_of(
                        path, self.storage_options, self._opener, self._unpacked
                    )
                    self._unpacked -= read
            self._facts[path] = facts
        return self._facts[path]


@dataclass
class _Job:
    """Files of one format that are a job's, and what was left out of them."""

    format: str
    files: list[_File]
    others: list[Problem] = field(default_factory=list)


def _job_of(files: Sequence[_File], look: _Look, path: str) -> _Job | None:
    named = [file for file in files if file.said.is_rank]
    by_format = _by_format(named, look)
    in_order = sorted(by_format, key=lambda form: (form not in _OF_TIME, form))
    for form in in_order:
        job = _named_job(form, by_format[form], look, path)
        if job is not None:
            job.others += [
                _left_out(
                    by_format[other], f"{other}: name one, or put them into a folder of their own"
                )
                for other in in_order
                if other != form
            ]
            return job
    return _said_job(files, look)


def _by_format(named: Sequence[_File], look: _Look) -> dict[str, list[_File]]:
    """The files by their formats. Names of one form have one, which the first of them show; of a
    log only its own content does, as most have nothing to read.
    """
    forms: dict[str, list[_File]] = {}
    for file in named:
        forms.setdefault(file.said.form, []).append(file)
    result: dict[str, list[_File]] = {}
    nothing: list[_File] = []
    for same in forms.values():
        form = next(filter(None, (look.format(file.entry) for file in same[:_SAMPLES])), "")
        if _is_text(same[0]):
            result.setdefault("log", []).extend(f for f in same if look.format(f.entry) == "log")
        elif form:
            result.setdefault(form, []).extend(same)
        else:
            nothing += same
    # Empty files are the job's as well: whoever reads them says what is wrong.
    for file in nothing:
        ending = file.said.form.rpartition(".")[2]
        alike = (fs for fs in result.values() if fs and fs[0].said.form.endswith(f".{ending}"))
        files = next(alike, None)
        if files is not None and look.is_void(file.entry):
            files.append(file)
    return {form: files for form, files in result.items() if files}


def _is_text(file: _File) -> bool:
    return file.said.form.endswith((".err", ".log", ".out", ".txt"))


def _named_job(form: str, files: Sequence[_File], look: _Look, path: str) -> _Job | None:
    """The job that names make, None where they make none; UsageError where they make several."""
    job = _Job(form, [])
    forms: dict[Hashable, list[_File]] = {}
    for file in _without_copies(files, job):
        forms.setdefault(file.said.form, []).append(file)
    for name, same in forms.items():
        forms[name] = _newest(same, job)
    everyone = [file for same in forms.values() for file in same]
    if not differ_as_ranks([file.said for file in everyone]) or _deny(everyone, look):
        return None
    said = [file.said for file in everyone]
    is_one = len(forms) == 1 or are_ranks_alone(said) or _is_one_world(everyone, look)
    if is_one and len({one.place for one in said}) == len(everyone):
        job.files = everyone
        return job
    jobs: dict[Hashable, list[_File]] = {}
    for name, same in forms.items():
        for file in same:
            jobs.setdefault((name, file.said.others), []).append(file)
    if any(not differ_as_ranks([file.said for file in same]) for same in jobs.values()):
        jobs = forms  # the numbers are not those of runs
    several = [same for same in jobs.values() if differ_as_ranks([file.said for file in same])]
    if len(several) > 1 and not _is_one_world(everyone, look):
        names = [f"{_example(same)} ({len(same)} files)" for same in several]
        raise UsageError(
            f"{path}: the ranks of {len(several)} jobs: {listing(names)}; name one file, or put "
            "each job into a folder of its own"
        )
    if len(several) == 1:
        job.others += [
            _left_out(same, f"{form}: not named as {_example(several[0])} and the others")
            for same in jobs.values()
            if same is not several[0]
        ]
    job.files = several[0] if len(several) == 1 else everyone
    return job if several or is_one else None


def _deny(files: Sequence[_File], look: _Look) -> bool:
    """Whether files that only a doubtful word calls ranks (``0/``, ``worker1``) say that they are
    not: the first two are one rank, or a world of their own. Runs of a sweep are called so too.
    """
    if any(file.said.is_sure for file in files):
        return False
    facts = [look.facts(file.entry.path) for file in files[:2]]
    ranks = {one.rank for one in facts}
    return any(one.world_size == 1 for one in facts) or (len(ranks) == 1 and None not in ranks)


def _is_one_world(files: Sequence[_File], look: _Look) -> bool:
    """Whether the files, but for some that cannot be read, say that they are different ranks of one
    world.
    """
    if len(files) > (_MOST_READ_REMOTE if is_url(files[0].entry.path) else _MOST_READ):
        return False
    facts = [one for file in files if (one := look.facts(file.entry.path)).rank is not None]
    ranks, worlds = {one.rank for one in facts}, {one.world_size for one in facts}
    return len(ranks) == len(facts) > max(1, len(files) // 2) and len(worlds) == 1


def _said_job(files: Sequence[_File], look: _Look) -> _Job | None:
    """The traces that say they are different ranks of one world, whatever they are called."""
    worlds: dict[Hashable, dict[int, list[_File]]] = {}
    traces = [file for file in files if ".json" in file.name]
    most = _MOST_READ_REMOTE if files and is_url(files[0].entry.path) else _MOST_READ
    for number, file in enumerate(traces[:most]):
        if number >= _SILENT and not worlds:
            break
        facts = look.facts(file.entry.path)
        if facts.rank is not None and (facts.world_size or 0) > 1:
            world = worlds.setdefault((facts.world_size, facts.run), {})
            world.setdefault(facts.rank, []).append(file)
    whole = max(worlds.values(), key=len, default={})
    if len(whole) < 2:
        return None
    job = _Job(_TRACE, [])
    for same in whole.values():
        job.files += _newest(_without_copies(same, job), job)
    return job


def _without_copies(files: Sequence[_File], job: _Job) -> list[_File]:
    """Of a file and the same compressed the first."""
    plain = {file.name for file in files}
    copies = [file for file in files if file.name.removesuffix(".gz") in plain - {file.name}]
    if copies:
        job.others.append(_left_out(copies, "the same file is there uncompressed"))
    names = {file.name for file in copies}
    return [file for file in files if file.name not in names]


def _newest(files: Sequence[_File], job: _Job) -> list[_File]:
    """Where names say several steps or times of one rank, those of the step that most ranks have,
    the newest of such, and of each rank the newest time.
    """
    if len({file.said.place for file in files}) == len(files):
        return list(files)
    cycles: dict[tuple[int, ...], list[_File]] = {}
    for file in files:
        cycles.setdefault(file.said.cycle, []).append(file)
    ranks_in = {cycle: len({file.said.place for file in same}) for cycle, same in cycles.items()}
    chosen = max(cycles, key=lambda cycle: (ranks_in[cycle], cycle))
    newest: dict[Hashable, tuple[int, ...]] = {}
    for file in cycles[chosen]:
        key = file.said.form, file.said.place, file.said.others
        newest[key] = max(file.said.times, newest.get(key, ()))
    result = [
        file
        for file in cycles[chosen]
        if newest[file.said.form, file.said.place, file.said.others] == file.said.times
    ]
    names = {file.name for file in result}
    older = [file for file in files if file.name not in names]
    if older:
        job.others.append(_left_out(older, f"of other steps or times than {_example(result)}"))
    return result


def _example(files: Sequence[_File]) -> str:
    return min(files, key=lambda file: (len(file.name), file.name)).name


def _left_out(files: Sequence[_File], reason: str) -> Problem:
    first = min(files, key=lambda file: file.name)
    name = first.name if len(files) == 1 else f"{len(files)} files such as {first.name}"
    return Problem(name, first.entry.path, reason)


def _shortest(stems: list[str]) -> list[str]:
    """Of paths the first parts in which they differ."""
    deepest = max(stem.count("/") for stem in stems)
    cut = (["/".join(stem.split("/")[:n]) for stem in stems] for n in range(1, deepest + 1))
    return next((names for names in cut if len(set(names)) == len(names)), stems)


def _session_of(
    job: _Job,
    top: Iterable[_File],
    look: _Look,
    path: str,
    shorten: Callable[[list[str]], list[str]] = list,
) -> RankFiles:
    in_job = {file.name for file in job.files}
    unnamed = [file for file in top if file.name not in in_job and not file.said.is_rank]
    for file in sorted(unnamed, key=lambda file: file.name)[:_MOST_UNNAMED]:
        if form := look.format(file.entry):
            job.others.append(Problem(file.name, file.entry.path, f"{form}: no rank of this job"))
    stems = shorten([stem_of(file.name) for file in job.files])
    times = Counter(stems)
    named = ranks_of_all([file.said for file in job.files])
    ranks = [
        rank if (said := look.known_rank(file.entry.path)) is None else said
        for file, rank in zip(job.files, named, strict=True)
    ]
    result = []
    for file, stem, rank in zip(job.files, stems, ranks, strict=True):
        host = stem if times[stem] == 1 else file.name
        if not all(map(is_name, host.split("/"))):
            job.others.append(Problem(file.name, file.entry.path, "no host can be called so"))
            continue
        entry = file.entry
        result.append(
            HostFile(
                host, entry.path, look.storage_options, entry.stamp, entry.status,
                look.confinement, rank=rank,
            )
        )  # fmt: skip
    name = path.rstrip("/").rpartition("/")[2]
    return RankFiles(
        name, name, path, look.storage_options, confinement=look.confinement, format=job.format,
        others=tuple(job.others), files=tuple(sorted(result, key=_order)),
    )  # fmt: skip


def _order(file: HostFile) -> tuple[bool, int, str]:
    return file.rank is None, file.rank or 0, file.host
