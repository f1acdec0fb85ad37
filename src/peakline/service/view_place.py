"""What ``peakline view`` serves: a log directory as it is, or one made of what a path names."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from peakline.errors import InputError
from peakline.repository import (
    RankFiles,
    Repository,
    Session,
    hosts,
    is_url,
    programs_beside,
    resolve_hosts,
)
from peakline.repository.names import host_of, is_name
from peakline.repository.resolve import is_log_directory

_STDIN = "-"
_SUFFIX = ".profile"


@dataclass(frozen=True)
class Place:
    """A log directory to serve, and where in it to begin.

    ``linked`` are files elsewhere that links in it lead to. Without a ``session`` the list of all
    is shown. ``source`` is the only file of a session that was made for it.
    """

    logdir: str
    session: str | None = None
    host: str | None = None
    linked: tuple[str, ...] = ()
    source: str | None = None


def find_place(path: str, session: str | None, host: str | None, folder: str) -> Place:
    """What to serve for ``path``: itself, or a log directory made in the empty ``folder``.

    A file or a session's directory is shown alone: nothing beside it is served, but the programs
    that XProf wrote there. Raises
    NotFoundError, UsageError or InputError for a path, session or host that is not there.
    """
    result = resolve_hosts(path, session, host)
    if result == path or path == _STDIN:
        return _of_file(path, folder)
    job = result if host is None else resolve_hosts(path, session)
    if isinstance(job, RankFiles):
        called = _last(os.path.realpath(path))
        ranks = {f"{_flat(file.host)}{_SUFFIX}": file.path for file in job.hosts()}
        return _made(folder, called, ranks, None if host is None else _flat(host))
    own = hosts(path)
    files = {_last(file.path): file.path for file in own}
    if files and not is_log_directory(Repository(path), own, session):
        return _made(folder, _last(os.path.realpath(path)), files, _host(files, host))
    if isinstance(result, str) and _last(result).startswith("saved_model."):
        called = _last(os.path.realpath(path))
        return _made(folder, called, {f"{called}{_SUFFIX}": result}, None)
    # A log directory, at the named session, the only one, or with ``host`` the newest.
    repository = Repository(path)
    runs = repository.runs()
    if isinstance(result, str) and not runs:
        return _of_file(result, folder)  # the only one that can be read
    if session is None and host is None and len(runs) != 1:
        only_nested = runs and not repository.sessions()
        return Place(_log_directory(path, runs[0]) if only_nested else path)
    chosen = runs[0] if session is None else repository.session(session)
    shown = None if host is None else chosen.host(host).host
    return Place(_log_directory(path, chosen), chosen.session_id, shown)


def _log_directory(path: str, session: Session) -> str:
    """The one that the session lies in, below ``path`` where it is a nested run's: a server lists
    no runs, so that of several the newest one's is shown.
    """
    run = session.name.rpartition("/")[0]
    return f"{path.rstrip('/')}/{run}" if run else path


def _of_file(path: str, folder: str) -> Place:
    """One file, or standard input, as a session."""
    name = "stdin" if path == _STDIN else _last(path)
    known = host_of(name)
    called = known[0] if known else name if is_name(name) else "profile"
    return _made(folder, called, {name if known else f"{called}{_SUFFIX}": path}, None)


def _flat(host: str) -> str:
    """A rank's name without the folders that its file lies in."""
    return host.replace("/", "_")


def _host(files: Mapping[str, str], host: str | None) -> str | None:
    """The host as the session will call it."""
    if host is None:
        return None
    return next(
        (
            result[0]
            for result in map(host_of, files)
            if result and host.replace(":", "_") == result[0]
        ),
        host,
    )


def _made(folder: str, session: str, files: Mapping[str, str], host: str | None) -> Place:
    """A log directory in ``folder`` with one session of ``files``, paths by their names in it."""
    name = session if is_name(session) else "session"
    place = Path(folder, "plugins", "profile", name)
    place.mkdir(parents=True)
    beside = {_last(path): path for path in programs_beside(next(iter(files.values())))}
    brought = {**beside, **files}
    linked = [real for file, path in brought.items() if (real := _bring(path, place / file))]
    source = next(iter(files.values())) if len(files) == 1 else None
    return Place(folder, name, host, tuple(linked), source)


def _bring(path: str, place: Path) -> str | None:
    """Make ``place`` a link to the file, and return where that is; or a copy, and return None.

    Standard input and what a URL names are copied, as a server has to read them more than once.
    """
    try:
        if path == _STDIN:
            if sys.stdin is None:
                raise InputError("standard input is closed")
            with place.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            return None
        if is_url(path):
            from peakline.formats.common.urls import connect, reading

            system, name = connect(path)
            with place.open("wb") as copy, reading(path), system.open(name, "rb") as stream:
                shutil.copyfileobj(stream, copy)
            return None
        real = os.path.realpath(path)
        try:
            place.symlink_to(real)
        except OSError:  # a file system, or a system, without such links
            shutil.copyfile(real, place)
            return None
    except OSError as error:
        raise InputError(f"{path}: cannot be brought to the server: {error.strerror}") from error
    return real


def _last(path: str) -> str:
    """The last part of a path or a URL."""
    return path.replace(os.sep, "/").rstrip("/").rpartition("/")[2]
