"""Log directories on any fsspec file system: object stores first of all.

An object store has no directories: there are keys, and one listing gives all that begin alike,
a thousand to a request. So the folders of a log directory come from one listing, and what they
answer later is what it said.
"""

# The docstrings of the stores' methods are the protocol's.
# ruff: noqa: D102

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from peakline.errors import PeaklineError
from peakline.formats.common.urls import connect, reason_of
from peakline.repository.names import PACKAGES, host_of, recording_of
from peakline.repository.store import (
    FileEntry,
    FileStatus,
    Folder,
    Kind,
    Missing,
    Taken,
    Unreadable,
    Unwritable,
)

_TAGS = ("ETag", "etag", "generation", "md5Hash", "content_md5", "crc32c")
_MODIFIED = ("LastModified", "last_modified", "updated", "mtime", "created")
_CLAIM = ".peakline.claim"
_OPEN_FILES = "/proc/self/fd"
_MARKER = "/plugins/profile/"
_PLUGINS = "plugins"

_Info = Mapping[str, Any]


@contextmanager
def _calling() -> Iterator[None]:
    """Whatever a driver raises as Unreadable or Missing."""
    try:
        yield
    except (PeaklineError, Unreadable):
        raise
    except Exception as error:
        missing, reason = reason_of(error)
        raise (Missing if missing else Unreadable)(reason) from error


@contextmanager
def _storing() -> Iterator[None]:
    """Whatever a driver raises as Unwritable; Taken for a name that exists."""
    try:
        yield
    except FileExistsError:
        raise Taken("the file exists") from None
    except (PeaklineError, Taken):
        raise
    except Exception as error:
        raise Unwritable(reason_of(error)[1]) from error


def _join(url: str, *names: str) -> str:
    """Names put behind the path of a URL, which in a chain (``zip://a::s3://b``) is the first."""
    links = url.split("::")
    place = next((n for n, link in enumerate(links) if "://" in link), 0)
    scheme, separator, path = links[place].partition("://")
    parts = [part for part in (path.rstrip("/"), *names) if part]
    links[place] = scheme + separator + "/".join(parts)
    return "::".join(links)


def _name(url: str) -> str:
    links = url.split("::")
    first = next((link for link in links if "://" in link), url)
    return first.partition("://")[2].rstrip("/").rpartition("/")[2]


def _identity(url: str, info: _Info) -> Hashable:
    """What identifies a file's content: the store's own tag, else the time of change.

    One of them only: a listing and a question about one file may give times differently.
    """
    tag = next((str(info[key]) for key in _TAGS if info.get(key)), None)
    return url, info.get("size"), tag or _modified(info)


def _modified(info: _Info) -> float:
    """When a file last changed, in seconds since the epoch; 0 where the store does not say."""
    for key in _MODIFIED:
        value = info.get(key)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                continue
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, (int, float)):
            return float(value)
    return 0.0


def _status(info: _Info) -> FileStatus:
    size = info.get("size")
    return FileStatus(size if isinstance(size, int) else None, _modified(info) or None)


@dataclass(slots=True)
class RemoteFolder:
    """What a listing said about a folder."""

    name: str
    path: str
    infos: dict[str, _Info] = field(default_factory=dict)

    def files(self) -> Iterator[FileEntry]:
        for name, info in self.infos.items():
            url = _join(self.path, name)
            yield FileEntry(name, url, _identity(url, info), _status(info))

    def holds_profile(self) -> bool:
        return any(host_of(name) for name in self.infos)

    def holds_recording(self) -> bool:
        return any(map(recording_of, self.infos))

    def stamp(self) -> Hashable:
        return tuple(sorted((name, _identity(name, self.infos[name])) for name in self.infos))

    def modified(self) -> float:
        return max(map(_modified, self.infos.values()), default=0.0)

    listed_stamp = stamp
    listed_modified = modified


class RemoteStore:
    """A file system that fsspec opens with ``storage_options``."""

    def __init__(self, storage_options: Mapping[str, object]) -> None:
        self._options = storage_options

    def join(self, path: str, *names: str) -> str:
        return _join(path, *names)

    def kind(self, path: str) -> Kind | None:
        try:
            result = self._info(path)["type"]
        except Missing:
            return None
        return result if result in {"file", "directory"} else "other"

    def folder(self, path: str) -> Folder:
        """The folder's files are listed here, by one request for a thousand of them."""
        system, place = connect(path, self._options)
        folder = RemoteFolder(_name(path), path)
        with suppress(Missing), _calling():
            for info in system.ls(place, detail=True):
                if info["type"] == "file" and _relative(info["name"], place):
                    folder.infos[_name("x://" + info["name"])] = info
        return folder

    def folders(
        self,
        path: str,
        *,
        look: bool = False,  # noqa: ARG002
        own: bool = False,
    ) -> Iterable[Folder]:
        result: dict[str, RemoteFolder] = {}
        itself = RemoteFolder(_name(path), path)
        for key, info in self._all(path):
            parts = key.split("/")
            if len(parts) == 2 and parts[0][:1] not in {"", "."}:
                _put(result, path, parts[:1], parts[1], info)
            elif len(parts) == 1:
                itself.infos[key] = info
        return [*result.values(), *((itself,) if own and itself.holds_recording() else ())]

    def nested(self, logdir: str) -> Iterable[tuple[str, Folder]]:
        result: dict[str, RemoteFolder] = {}
        runs: dict[str, str] = {}
        everything = list(self._all(logdir))
        recorded = {_folder_of(key) for key, _ in everything if recording_of(_file_of(key))}
        for key, info in everything:
            run, marker, rest = key.partition(_MARKER)
            names = rest.split("/")
            inside = run.split("/")
            if any(part[:1] == "." or part in PACKAGES for part in inside):
                continue
            if marker and len(names) == 2:
                folder = _put(result, logdir, [run, "plugins", "profile", names[0]], names[1], info)
                runs[folder] = run
            elif _PLUGINS not in inside and (place := _folder_of(key)) in recorded:
                folder = _put(result, logdir, place.split("/"), _file_of(key), info)
                runs[folder] = _folder_of(place)
        return [(runs[path], folder) for path, folder in result.items()]

    def tree(self, path: str, depth: int) -> Iterator[tuple[str, FileEntry]]:
        for key, info in self._all(path):
            *inside, name = key.split("/")
            is_shown = not any(part[:1] == "." or part in PACKAGES for part in inside)
            if len(inside) <= depth and is_shown:
                url = _join(path, key)
                yield key, FileEntry(name, url, _identity(url, info), _status(info))

    def _all(self, path: str) -> Iterator[tuple[str, _Info]]:
        """Every file under ``path`` by its name below it."""
        system, place = connect(path, self._options)
        with _calling():
            listing = system.find(place, detail=True)
        for name, info in listing.items():
            key = _relative(name, place)
            if key and info["type"] == "file":
                yield key, info

    def stamp(self, path: str) -> Hashable:
        return _identity(path, self._info(path))

    def status(self, path: str) -> FileStatus:
        return _status(self._info(path))

    def _info(self, path: str) -> _Info:
        system, place = connect(path, self._options)
        with _calling():
            return cast("_Info", system.info(place))

    def claim(self, path: str) -> RemoteClaim:
        return RemoteClaim(*connect(path, self._options), path)


def _relative(name: str, place: str) -> str:
    """``name`` below ``place``, empty when it does not lie there."""
    base = place.strip("/")
    name = name.strip("/")
    if not base:
        return name
    return name[len(base) + 1 :] if name.startswith(base + "/") else ""


def _folder_of(key: str) -> str:
    return key.rpartition("/")[0]


def _file_of(key: str) -> str:
    return key.rpartition("/")[2]


def _put(
    result: dict[str, RemoteFolder], root: str, parts: list[str], name: str, info: _Info
) -> str:
    path = _join(root, *parts)
    if path not in result:
        result[path] = RemoteFolder(parts[-1] or _name(path), path)
    result[path].infos[name] = info
    return path


class RemoteClaim:
    """A prefix that this process fills.

    Object stores have no locks but can create an object only if there is none. The claim is
    such an object with a hidden name, removed at the end. A process that is killed leaves it,
    and the session id stays taken: nothing could show that its owner is gone.
    """

    def __init__(self, system: Any, place: str, url: str) -> None:
        self._system, self._place, self._url = system, place, url
        self._marker = f"{place}/{_CLAIM}"
        owner = {"host": socket.gethostname(), "process": os.getpid()}
        self._refuse_files()
        try:
            with _storing():
                system.pipe_file(self._marker, json.dumps(owner).encode(), mode="create")
        except Taken:
            raise Taken(
                "it is being written at this moment, or its writer was killed; choose another name"
            ) from None
        try:
            # Another may have come and gone between the look and the claim.
            self._refuse_files()
        except BaseException:
            self.release()
            raise

    def _refuse_files(self) -> None:
        if any(name != _CLAIM for name in self.names()):
            raise Taken("it has files already")

    def names(self) -> list[str]:
        with _storing():
            try:
                listing = self._system.find(self._place)
            except FileNotFoundError:
                return []
        return [key for name in listing if (key := _relative(name, self._place))]

    def write(self, name: str, write: Callable[[BinaryIO], object]) -> FileEntry:
        """The content is collected in a local temporary file and put at the end."""
        place, url = f"{self._place}/{name}", _join(self._url, name)
        with _spool() as spool:
            try:
                write(spool)
                spool.flush()
            except OSError as error:
                raise Unwritable(error.strerror or str(error)) from error
            with _storing():
                self._system.put_file(_path_of(spool), place, mode="create")
                info = self._system.info(place)
                return FileEntry(name, url, _identity(url, info), _status(info))

    def remove(self, name: str) -> None:
        with _storing():
            self._system.rm_file(f"{self._place}/{name}")

    def release(self) -> None:
        with suppress(Unwritable), _storing():
            self._system.rm_file(self._marker)


def _spool() -> BinaryIO:
    """A temporary file, without a name where an open file can be opened by its descriptor."""
    is_there = Path(_OPEN_FILES).is_dir()
    make = tempfile.TemporaryFile if is_there else tempfile.NamedTemporaryFile
    return cast("BinaryIO", make())


def _path_of(spool: BinaryIO) -> str:
    return spool.name if isinstance(spool.name, str) else f"{_OPEN_FILES}/{spool.fileno()}"
