"""Which file a PATH of the command line means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from peakline.errors import InputError, NotFoundError, UsageError
from peakline.places import as_path, is_url
from peakline.repository.files import HostFile, files_of_hosts
from peakline.repository.layout import Repository, local_or_url
from peakline.repository.names import (
    check_name,
    check_run_name,
    host_file_name,
    host_of,
    listing,
    recording_of,
)
from peakline.repository.ranks import (
    RankFiles,
    file_of_rank,
    folder_of_all,
    job_of_files,
    job_of_sessions,
    rank_files,
)
from peakline.repository.readable import Readable, readable_in
from peakline.repository.session import Session
from peakline.repository.store import Folder, Missing, Store, Unreadable
from peakline.repository.stores import store_for
from peakline.suggest import there_is

_STDIN = "-"
_LOCAL_URL = re.compile(r"(?:file|local)://", re.IGNORECASE)
_SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")

_Options = Mapping[str, object]


def hosts(session_dir: str, *, storage_options: _Options | None = None) -> list[HostFile]:
    """The hosts of a session directory, by name; empty when it holds no profile.

    Raises InputError when the directory cannot be read.
    """
    place, options = local_or_url(session_dir), storage_options or {}
    try:
        return files_of_hosts(store_for(place, options).folder(place), options)
    except Unreadable as error:
        raise InputError(f"{session_dir}: {error}") from error


def resolve(
    path: str,
    session: str | None = None,
    host: str | None = None,
    *,
    storage_options: _Options | None = None,
) -> str:
    """The one file that ``path`` means.

    ``path`` is a file (any name; ``-`` is standard input), a session directory, a log directory,
    a directory of XLA dumps without a session in it, a saved model's directory, or a directory
    without sessions in which one file can be read (`readable_in`); or a URL of one of them.
    ``session`` defaults to the newest and may be a nested run (``train/ID``), ``host`` defaults to
    the only one. Raises UsageError when several hosts or files leave a choice or a name is no name,
    NotFoundError when there is no such path, session or host, InputError when a directory holds no
    session or cannot be read.
    """
    result = resolve_hosts(path, session, host, storage_options=storage_options)
    return only_file(result, "choose one with --host")


def only_file(result: str | Session, choose: str) -> str:
    """The file of what `resolve_hosts` has ``result``.

    Raises UsageError for several hosts, which names them and says how to ``choose``.
    """
    if isinstance(result, str):
        return result
    files = result.hosts()
    if isinstance(result, RankFiles):
        choose = choose.replace("--host", "--rank or --host")
    known = listing([candidate.host for candidate in files])
    raise UsageError(f"{result.path}: {len(files)} hosts, {choose}: {known}")


def resolve_hosts(
    path: str,
    session: str | None = None,
    host: str | None = None,
    *,
    rank: int | None = None,
    storage_options: _Options | None = None,
    newest: Callable[[Session, int], None] | None = None,
    only: Callable[[Readable], None] | None = None,
) -> str | Session:
    """The one file that ``path`` means; the session, where it means several hosts.

    As `resolve`, which raises UsageError for those. A directory without sessions in which the
    profiles of a job's ranks lie is a `RankFiles`; ``rank`` is the file of that rank, by
    `file_of_rank`, and not for a ``host`` as well. Where the newest of several sessions is
    taken, ``newest`` is called with it and with how many there are; where it is the only file that
    can be read of a directory without sessions, ``only`` is called with that.
    """
    if rank is not None:
        if host is not None:
            raise UsageError("--rank or --host, not both")
        everyone = resolve_hosts(path, session, storage_options=storage_options, newest=newest)
        return _file_of(everyone, rank, path)
    if session is not None:
        check_run_name(session)
    if host is not None:
        for part in host_file_name(host).split("/"):
            check_name("host", part)
    if path == _STDIN:
        return path
    place, options = local_or_url(path), storage_options or {}
    store = store_for(place, options)
    try:
        kind = store.kind(place)
    except Unreadable as error:
        raise InputError(f"{path}: {error}") from error
    if kind is None:
        is_link = not is_url(place) and Path(place).is_symlink()
        hint = ": the link points nowhere" if is_link else ""
        raise NotFoundError(f"{path}: no such file or directory{hint}")
    if kind == "file":
        if session is not None:
            raise UsageError(f"{path}: is one file; --session needs a log directory")
        named = host_of(_file_name(place))
        if host is not None and (named is None or named[0] != host_file_name(host)):
            raise UsageError(f"{path}: is one file; --host needs a session or log directory")
        # A file:// URL is no name of a file; other paths stay as they were written.
        return place if is_url(place) or _LOCAL_URL.match(path) else path
    if kind == "other":
        raise InputError(f"{path}: is neither a file nor a directory")
    model = _saved_model(store, place)
    if model:
        return model
    result = hosts(place, storage_options=options)
    repository = Repository(place, **options)
    name = place.rpartition("/")[2] if is_url(place) else Path(place).resolve().name
    if result and not is_log_directory(repository, result, session):
        if session not in (None, name):
            raise UsageError(f"{path}: is a session; --session needs a log directory")
        return _file_or_session(Session(name, name, place, options), result, host)
    is_dump = session is None and host is None and not is_url(place) and _is_dump(place)
    if is_dump and not repository.runs():
        return path
    try:
        chosen, others = _choose_session(path, repository, session)
    except _NoSessionsError as error:
        if session is not None:
            raise
        job = _job_in(place, options)
        if job is not None:
            return _file_or_session(job, job.hosts(), host)
        if host is not None:
            raise
        found_file = _only_readable(error, store.folder(place), options)
        if only is not None:
            only(found_file)
        return found_file.path
    if session is None and len(others) > 1:
        job = job_of_sessions(others, place, options)
        if job is not None:
            return _file_or_session(job, job.hosts(), host)
        if newest is not None:
            newest(chosen, len(others))
    return _file_or_session(chosen, hosts(chosen.path, storage_options=options), host)


def resolve_several(
    paths: Sequence[str],
    session: str | None = None,
    host: str | None = None,
    *,
    rank: int | None = None,
    storage_options: _Options | None = None,
    newest: Callable[[Session, int], None] | None = None,
) -> str | Session:
    """The job whose ranks lie in the files, folders and sessions ``paths``; the file of ``rank`` or
    ``host``, where that is named. As `resolve_hosts` for a directory with nothing else in it.

    Raises UsageError where they are not the ranks of one job, and as `resolve_hosts`.
    """
    if _STDIN in paths:
        raise UsageError("standard input is one profile; name the files of several ranks")
    if rank is not None and host is not None:
        raise UsageError("--rank or --host, not both")
    options = storage_options or {}
    files: list[str] = []
    for path in paths:
        one = resolve_hosts(path, session, newest=newest, storage_options=options)
        files += [one] if isinstance(one, str) else [file.path for file in one.hosts()]
    if not all(map(_is_absolute, files)):
        files = [local_or_url(file) for file in files]
        if any(map(_is_absolute, files)):
            files = [
                file if is_url(file) else as_path(str(Path(file).absolute())) for file in files
            ]
    files = list(dict.fromkeys(files))
    if len(files) == 1:
        return files[0] if rank is None else _file_of(files[0], rank, files[0])
    job = _session_in(files, options) or job_of_files(files, options)
    if job is None:
        raise UsageError(
            f"{listing(files)}: not the ranks of one job, by what the files and their names say; "
            "name one of them, or two after peakline diff"
        )
    if rank is not None:
        return _file_of(job, rank, job.path)
    return _file_or_session(job, job.hosts(), host)


def _is_absolute(path: str) -> bool:
    return is_url(path) or Path(path).is_absolute()


def _session_in(files: Sequence[str], options: _Options) -> RankFiles | None:
    """The hosts of a session, where the files of one directory are those of all or some of them."""
    folder = folder_of_all(files)
    names = {_file_name(file) for file in files}
    if len({file.rpartition("/")[0] for file in files}) > 1:
        return None
    everyone = hosts(folder, storage_options=options)
    own = [one for one in everyone if _file_name(one.path) in names]
    if len(own) < len(files):
        return None
    name = _file_name(folder)
    return RankFiles(name, name, folder, options, files=tuple(own))


def is_log_directory(
    repository: Repository, result: Sequence[HostFile], session: str | None = None
) -> bool:
    """Whether a directory that holds the profiles ``result`` has other sessions besides: where
    recordings of PyTorch lie, more of them may lie in directories inside. A ``session`` that was
    named is looked for among all of them.
    """
    if all(recording_of(_file_name(file.path)) is None for file in result):
        return False
    return session is not None or len(repository.sessions()) > 1


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _is_dump(directory: str) -> bool:
    """Whether XLA dumped programs there."""
    from peakline.formats.hlo_dump.listing import is_dump

    return is_dump(entry.name for entry in Path(directory).iterdir())


def _choose_session(
    path: str, repository: Repository, session: str | None
) -> tuple[Session, Sequence[Session]]:
    """The session of that name, or the newest, and all that there are."""
    result = repository.survey(nested=session is not None and "/" in session)
    is_known = session is None or any(one.name == session for one in result.sessions)
    if not (result.sessions or result.problems) or not is_known:
        result = repository.survey(nested=True)
    if session is None:
        if result.newest_unreadable is not None:
            problem = result.newest_unreadable
            raise InputError(f"{problem.path}: {problem.reason}")
        if result.sessions:
            return result.sessions[0], result.sessions
    for candidate in result.sessions:
        if candidate.name == session:
            return candidate, result.sessions
    for problem in result.problems:
        if problem.name == session:
            raise InputError(f"{problem.path}: {problem.reason}")
    if not result.sessions:
        raise _NoSessionsError(path)
    known = there_is(session or "", [candidate.name for candidate in result.sessions])
    raise NotFoundError(f"{path}: no session {session!r}{known}")


class _NoSessionsError(InputError):
    """A directory holds none."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: no sessions here; expected HOST.xplane.pb, WORKER.TIME.pt.trace.json or "
            "plugins/profile/SESSION/"
        )


def _only_readable(error: _NoSessionsError, folder: Folder, options: _Options) -> Readable:
    """The only file in a directory that can be read; ``error`` where there is none."""
    try:
        result = readable_in(folder, options)
    except Unreadable:
        result = []
    if not result:
        raise error
    if len(result) > 1:
        raise UsageError(
            f"{error.path}: no session here, but {len(result)} files that can be read: "
            f"{listing([str(one) for one in result])}; name one, such as {result[0].path}"
        )
    return result[0]


def _job_in(place: str, options: _Options) -> RankFiles | None:
    """The job whose files lie in the directory ``place``."""
    with suppress(Unreadable):
        return rank_files(place, options)
    return None


def _file_of(result: str | Session, rank: int, path: str) -> str:
    """The file of ``rank`` of what `resolve_hosts` has found."""
    if isinstance(result, Session):
        return file_of_rank(result, rank).path
    if result == path or path == _STDIN:
        raise UsageError(f"{path}: is one file; --rank needs the directory of a job")
    raise NotFoundError(f"{path}: no ranks here, but one file: {_file_name(result)}")


def _file_or_session(session: Session, result: list[HostFile], host: str | None) -> str | Session:
    """The file of ``host``, or of the only one; the session where there are several."""
    if host is None:
        return result[0].path if len(result) == 1 else session
    for candidate in result:
        if candidate.host in (host, host_file_name(host)):
            return candidate.path
    known = there_is(host, [candidate.host for candidate in result])
    raise NotFoundError(f"{session.path}: no host {host!r}{known}")


def _saved_model(store: Store, place: str) -> str | None:
    for name in _SAVED_MODEL:
        candidate = store.join(place, name)
        try:
            if store.kind(candidate) == "file":
                return candidate
        except Missing:
            continue
        except Unreadable:
            return None  # what cannot be looked into is reported when it is listed
    return None
