"""The layout of a log directory: sessions, hosts, and which file a PATH means.

``<logdir>/plugins/profile/<session_id>/<host>.xplane.pb``, also gzip-compressed with ``.gz``
added; a ``:`` in a host's name is written ``_``. This is the layout that TensorFlow and JAX
write and TensorBoard reads. Other files in a session (caches of other programs) and names that
begin with a dot are ignored.
"""

from __future__ import annotations

import re
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from peakline.errors import InputError, NotFoundError, UsageError

__all__ = ["HostFile", "Session", "host_file_name", "hosts", "resolve", "sessions"]

_SUFFIXES = (".xplane.pb", ".xplane.pb.gz")
_TIMESTAMP = re.compile(r"\d{4}(_\d{2}){5}")
_LISTED = 20
_STDIN = "-"
_SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")


@dataclass(frozen=True)
class HostFile:
    """The profile of one host: ``host`` is its name as the file spells it."""

    host: str
    path: str


@dataclass(frozen=True)
class Session:
    """One profiling session; ``path`` is the directory that holds its hosts' files."""

    session_id: str
    path: str


def host_file_name(host: str) -> str:
    """The name that ``host``'s file has without its suffix."""
    return host.replace(":", "_")


def hosts(session_dir: str) -> list[HostFile]:
    """The hosts of a session directory, by name; empty when it holds no profile.

    Where a host has both a plain and a compressed file, the plain one counts. Raises InputError
    when the directory cannot be read.
    """
    found: dict[str, HostFile] = {}
    for entry in _entries(Path(session_dir)):
        for suffix in _SUFFIXES:
            host = entry.name.removesuffix(suffix)
            if host in ("", entry.name) or not _is(stat.S_ISREG, entry):
                continue
            if suffix == _SUFFIXES[0] or host not in found:
                found[host] = HostFile(host, str(entry))
    return [found[host] for host in sorted(found)]


def sessions(logdir: str) -> list[Session]:
    """The sessions of a log directory (or of its ``plugins/profile``), newest first.

    Ids that are timestamps sort as such, others by when their directory last changed. Raises
    InputError when a directory cannot be read.
    """
    root = Path(logdir)
    nested = root / "plugins" / "profile"
    if _is(stat.S_ISDIR, nested):
        root = nested
    found = [entry for entry in _entries(root) if _is(stat.S_ISDIR, entry) and hosts(str(entry))]
    by_name = all(_TIMESTAMP.fullmatch(entry.name) for entry in found)
    found.sort(key=lambda entry: (0 if by_name else _age(entry), entry.name), reverse=True)
    return [Session(entry.name, str(entry)) for entry in found]


def resolve(path: str, session: str | None = None, host: str | None = None) -> str:
    """The one file that ``path`` means.

    ``path`` is a file (any name; ``-`` is standard input), a session directory, a log directory,
    or a saved model's directory. ``session`` defaults
    to the newest, ``host`` to the only one. Raises UsageError when several hosts leave a choice
    or a name is no name, NotFoundError when there is no such path, session or host, InputError
    when a directory holds no session or cannot be read.
    """
    for option, name in (("session", session), ("host", host)):
        if name is not None and (not name.strip(".") or re.search(r"[/\\\x00]", name)):
            raise UsageError(f"{name!r} is not the name of a {option}")
    if "\x00" in path:
        raise InputError(f"{path!r}: a path holds no zero byte")
    if not path:
        raise NotFoundError("the path is empty")
    if path == _STDIN:
        return path
    place = Path(path)
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        hint = ": the link points nowhere" if place.is_symlink() else ""
        raise NotFoundError(f"{path}: no such file or directory{hint}") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    if stat.S_ISREG(mode):
        if session is not None:
            raise UsageError(f"{path}: is one file; --session needs a log directory")
        if host is not None and host_file_name(host) != _host_of(place.name):
            raise UsageError(f"{path}: is one file; --host needs a session or log directory")
        return path
    if not stat.S_ISDIR(mode):
        raise InputError(f"{path}: is neither a file nor a directory")
    for name in _SAVED_MODEL:
        if (place / name).is_file():
            return str(place / name)
    return _choose_host(_choose_session(path, session), host).path


def _choose_session(path: str, session: str | None) -> str:
    """The session directory that ``path`` and ``session`` name."""
    if hosts(path):
        if session not in (None, Path(path).resolve().name):
            raise UsageError(f"{path}: is a session; --session needs a log directory")
        return path
    found = sessions(path)
    if not found:
        raise InputError(
            f"{path}: no sessions here; expected HOST.xplane.pb or plugins/profile/SESSION/"
        )
    if session is None:
        return found[0].path
    for candidate in found:
        if candidate.session_id == session:
            return candidate.path
    known = _listing([candidate.session_id for candidate in found])
    raise NotFoundError(f"{path}: no session {session!r}; there is: {known}")


def _choose_host(session_dir: str, host: str | None) -> HostFile:
    found = hosts(session_dir)
    known = _listing([candidate.host for candidate in found])
    if host is None:
        if len(found) == 1:
            return found[0]
        raise UsageError(f"{session_dir}: {len(found)} hosts, choose one with --host: {known}")
    for candidate in found:
        if candidate.host in (host, host_file_name(host)):
            return candidate
    raise NotFoundError(f"{session_dir}: no host {host!r}; there is: {known}")


def _host_of(file_name: str) -> str | None:
    for suffix in _SUFFIXES:
        if file_name.endswith(suffix):
            return file_name.removesuffix(suffix)
    return None


def _listing(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def _entries(directory: Path) -> list[Path]:
    try:
        return [entry for entry in directory.iterdir() if not entry.name.startswith(".")]
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror}") from error


def _is(kind: Callable[[int], bool], entry: Path) -> bool:
    """Whether there is an entry of that kind; a link counts as what it points to."""
    try:
        return kind(entry.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise InputError(f"{entry}: {error.strerror}") from error


def _age(session_dir: Path) -> float:
    """When the session was taken, in seconds since the epoch: by its name, else by its change."""
    if _TIMESTAMP.fullmatch(session_dir.name):
        try:
            return time.mktime(time.strptime(session_dir.name, "%Y_%m_%d_%H_%M_%S"))
        except ValueError:
            pass  # digits that are no date
    try:
        return session_dir.stat().st_mtime
    except OSError as error:
        raise InputError(f"{session_dir}: {error.strerror}") from error
