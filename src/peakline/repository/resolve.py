"""Which file a PATH of the command line means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from peakline.errors import InputError, NotFoundError, UsageError
from peakline.repository.files import HostFile, files_of_hosts
from peakline.repository.layout import Repository, Session, local_or_url
from peakline.repository.names import check_name, check_run_name, host_file_name, host_of, listing
from peakline.repository.store import Missing, Store, Unreadable, is_url
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
    a directory of XLA dumps without a session in it, or a saved model's directory; or a URL of one
    of them. ``session`` defaults to the newest and may be a nested run (``train/ID``), ``host``
    defaults to the only one. Raises UsageError when several hosts leave a choice or a name is no
    name, NotFoundError when there is no such path, session or host, InputError when a directory
    holds no session or cannot be read.
    """
    found = resolve_hosts(path, session, host, storage_options=storage_options)
    return only_file(found, "choose one with --host")


def only_file(found: str | Session, choose: str) -> str:
    """The file of what `resolve_hosts` has ``found``.

    Raises UsageError for several hosts, which names them and says how to ``choose``.
    """
    if isinstance(found, str):
        return found
    files = found.hosts()
    known = listing([candidate.host for candidate in files])
    raise UsageError(f"{found.path}: {len(files)} hosts, {choose}: {known}")


def resolve_hosts(
    path: str,
    session: str | None = None,
    host: str | None = None,
    *,
    storage_options: _Options | None = None,
    newest: Callable[[Session, int], None] | None = None,
) -> str | Session:
    """The one file that ``path`` means; the session, where it means several hosts.

    As `resolve`, which raises UsageError for those. Where the newest of several sessions is
    taken, ``newest`` is called with it and with how many there are.
    """
    if session is not None:
        check_run_name(session)
    if host is not None:
        check_name("host", host_file_name(host))
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
        named = host_of(place.replace("\\", "/").rpartition("/")[2])
        if host is not None and (named is None or named[0] != host_file_name(host)):
            raise UsageError(f"{path}: is one file; --host needs a session or log directory")
        # A file:// URL is no name of a file; other paths stay as they were written.
        return place if is_url(place) or _LOCAL_URL.match(path) else path
    if kind == "other":
        raise InputError(f"{path}: is neither a file nor a directory")
    model = _saved_model(store, place)
    if model:
        return model
    found = hosts(place, storage_options=options)
    if found:
        name = place.rpartition("/")[2] if is_url(place) else Path(place).resolve().name
        if session not in (None, name):
            raise UsageError(f"{path}: is a session; --session needs a log directory")
        return _file_or_session(Session(name, name, place, options), found, host)
    repository = Repository(place, **options)
    is_dump = session is None and host is None and not is_url(place) and _is_dump(place)
    if is_dump and not repository.runs():
        return path
    chosen, count = _choose_session(path, repository, session)
    if newest is not None and session is None and count > 1:
        newest(chosen, count)
    return _file_or_session(chosen, hosts(chosen.path, storage_options=options), host)


def _is_dump(directory: str) -> bool:
    """Whether XLA dumped programs there."""
    from peakline.formats.hlo_dump.listing import is_dump

    return is_dump(entry.name for entry in Path(directory).iterdir())


def _choose_session(path: str, repository: Repository, session: str | None) -> tuple[Session, int]:
    """The session of that name, or the newest, and how many there are."""
    found = repository.survey(nested=session is not None and "/" in session)
    if not (found.sessions or found.problems):
        found = repository.survey(nested=True)
    if session is None:
        if found.newest_unreadable is not None:
            problem = found.newest_unreadable
            raise InputError(f"{problem.path}: {problem.reason}")
        if found.sessions:
            return found.sessions[0], len(found.sessions)
    for candidate in found.sessions:
        if candidate.name == session:
            return candidate, len(found.sessions)
    for problem in found.problems:
        if problem.name == session:
            raise InputError(f"{problem.path}: {problem.reason}")
    if not found.sessions:
        raise InputError(
            f"{path}: no sessions here; expected HOST.xplane.pb or plugins/profile/SESSION/"
        )
    known = there_is(session or "", [candidate.name for candidate in found.sessions])
    raise NotFoundError(f"{path}: no session {session!r}{known}")


def _file_or_session(session: Session, found: list[HostFile], host: str | None) -> str | Session:
    """The file of ``host``, or of the only one; the session where there are several."""
    if host is None:
        return found[0].path if len(found) == 1 else session
    for candidate in found:
        if candidate.host in (host, host_file_name(host)):
            return candidate.path
    known = there_is(host, [candidate.host for candidate in found])
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
