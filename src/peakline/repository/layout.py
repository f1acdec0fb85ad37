"""The layout of a log directory: sessions, hosts, files.

``<logdir>/plugins/profile/<session_id>/<host>.xplane.pb``, also gzip-compressed with ``.gz``
added, or ``<host>.profile`` for any other format; a ``:`` in a host's name is written ``_``.
``<program>.hlo_proto.pb`` beside them are programs that XProf wrote there.
This is the layout that TensorFlow and JAX write and that XProf and TensorBoard read. Nested runs,
``<logdir>/train/plugins/profile/<session_id>``, are called ``train/<session_id>`` as there. Other
files in a session (caches of other programs) and names that begin with a dot are ignored.

Every directory with recordings of PyTorch, ``<worker>.<time>.pt.trace.json``, is a session as well,
``<logdir>`` itself too, as in PyTorch's plugin of TensorBoard.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from peakline.errors import InputError, NotFoundError
from peakline.places import as_path, is_url
from peakline.repository.cleaning import clean
from peakline.repository.creating import NewSession
from peakline.repository.names import TIMESTAMP, check_name, check_run_name, is_name
from peakline.repository.session import Found, Rule, Session
from peakline.repository.store import Folder, Missing, Problem, Store, Unreadable, reading
from peakline.repository.stores import store_for
from peakline.suggest import there_is

if TYPE_CHECKING:
    from peakline.repository.confined import Confinement

_PLUGIN = ("plugins", "profile")


class Repository:
    """One log directory, on the local file system or any that fsspec opens.

    ``logdir`` is the directory or its ``plugins/profile``: both name the same sessions. What
    ``storage_options`` say goes to fsspec's driver. The file system is not used before
    a method is called, and nothing is remembered that could be out of date. Safe to share
    between threads.
    """

    def __init__(self, logdir: str | os.PathLike[str], **storage_options: object) -> None:
        self.logdir = local_or_url(os.fspath(logdir))
        """The directory as it was given."""
        self._last: tuple[list[Folder | Problem], Found] | None = None
        self.rule: Rule | None = None
        """Which sessions and hosts are listed; to be set before the first listing."""
        self._options = storage_options
        self._confinement: Confinement | None = None
        self._store: Store = store_for(self.logdir, storage_options)

    def confine(self, confinement: Confinement) -> None:
        """From now on read and write nothing outside of it, on a local file system: that raises
        ForbiddenError. To be called before anything is listed.
        """
        self._confinement = confinement
        self._store = store_for(self.logdir, self._options, confinement)

    @property
    def root(self) -> str:
        """The directory that holds the sessions, or will hold the first.

        ``<logdir>/plugins/profile``, or ``<logdir>`` itself when that is one or when sessions
        lie directly in it.
        """
        place = self._reading_root()
        if place == self.logdir and not self._is_plugin_directory():
            try:
                direct = any(_holds(folder) for folder in self._store.folders(place, own=True))
            except Unreadable:
                direct = False
            if not direct:
                return self._store.join(place, *_PLUGIN)
        return place

    def sessions(self) -> list[Session]:
        """The sessions, newest first; those that cannot be read are left out (see `survey`).

        Ids that are timestamps sort as such, others by when their directory last changed.
        Raises NotFoundError when there is no such directory, InputError when it cannot be read.
        """
        return list(self.survey().sessions)

    def runs(self) -> list[Session]:
        """The sessions and those of nested runs, newest first, as `sessions`.

        Below ``<logdir>/plugins/profile``, given as such, there are no nested runs.
        """
        return list(self.survey(nested=True).sessions)

    def survey(self, *, nested: bool = False) -> Found:
        """The sessions (with ``nested``: all runs) and what had to be left out, with reasons."""
        folders: list[tuple[str, Folder | Problem]] = []
        try:
            root = self._reading_root()
            own = root == self.logdir and not self._is_plugin_directory()
            folders += (("", folder) for folder in self._store.folders(root, look=True, own=own))
            if nested and not self._is_plugin_directory():
                listed = {folder.path for _, folder in folders}
                inside = self._store.nested(self.logdir)
                folders += (one for one in inside if one[1].path not in listed)
        except Missing:
            if not is_url(self.logdir):
                is_file = Path(self.logdir).is_file()
                what = "a file, no log directory; peakline summary reads it"
                what = what if is_file else "no such directory"
                raise NotFoundError(f"{self.logdir}: {what}") from None
        except Unreadable as error:
            raise InputError(f"{self.logdir}: {error}") from error
        last = self._last
        if last is not None and not nested and self._is_same(folders, last[0]):
            return last[1]
        everyone = [folder for _, folder in folders]
        if self.rule is not None:
            allowed = {folder.path for folder in self.rule(everyone)}
            folders = [(run, folder) for run, folder in folders if folder.path in allowed]
        result = self._sorted(folders)
        if not nested:
            self._last = everyone, result
        return result

    def _is_same(
        self, folders: list[tuple[str, Folder | Problem]], last: list[Folder | Problem]
    ) -> bool:
        """Whether a listing gave the last one's objects: unchanged directories, no links."""
        if not folders or len(folders) != len(last):
            return False
        same = all(one is other for (_, one), other in zip(folders, last, strict=True))
        # The rule is about where they lie, and all lie in one directory.
        return same and (self.rule is None or bool(self.rule([folders[0][1]])))

    def session(self, session_id: str) -> Session:
        """The session, also a nested run's (``train/ID``).

        Raises UsageError for what is no name, NotFoundError that lists what there is.
        """
        *run, name = check_run_name(session_id)
        base = self._store.join(self.logdir, *run, *_PLUGIN) if run else self._reading_root()
        folder = self._store.folder(self._store.join(base, name))
        with suppress(NotFoundError), reading(f"session {session_id!r}"):
            if folder.holds_profile():
                return self._session(session_id, folder)
        if base != self.logdir and not self._is_plugin_directory():
            folder = self._store.folder(self._store.join(self.logdir, *run, name))
            with suppress(NotFoundError), reading(f"session {session_id!r}"):
                if folder.holds_recording():
                    return self._session(session_id, folder)
        result = self.runs() if run else self.sessions()
        for session in result:
            if session.name == session_id:
                return session
        known = there_is(session_id, [session.name for session in result])
        raise NotFoundError(f"no session {session_id!r}{known}")

    def is_free(self, session_id: str) -> bool:
        """Whether nothing has that name, as far as can be seen; `create_session` decides."""
        try:
            return self._store.kind(self._store.join(self.root, session_id)) is None
        except (Unreadable, InputError):
            return True  # who creates it learns why it cannot be

    def create_session(self, session_id: str) -> NewSession:
        """A new session to write profiles into; nobody else can create one of that id meanwhile.

        Raises UsageError for what is no name, ExistsError when there are files or another is
        writing it, RemoteError when the directory cannot be written.
        """
        check_name("session", session_id)
        path = self._store.join(self.root, session_id)
        return NewSession(session_id, path, self._store, self._options, self._confinement)

    def clean(self, *, nested: bool = False) -> int:
        """Remove what killed writers left of sessions, with ``nested`` of all runs' sessions.

        Only what no living process makes goes: directories that Peakline made for sessions that
        never got a file, and files that never got their name. Returns of how many sessions
        something was left. On a file system without locks, and of a URL, everything stays.
        """
        places = set()
        if not is_url(self.logdir):
            with suppress(Unreadable, InputError):
                places.add(self.root)
                if nested:
                    result = self._store.nested(self.logdir)
                    parents = (Path(folder.path).parent for _, folder in result)
                    places |= {str(place) for place in parents if place.parts[-2:] == _PLUGIN}
        return sum(clean(place, self._confinement) for place in places)

    def _reading_root(self) -> str:
        if self._is_plugin_directory():
            return self.logdir
        nested = self._store.join(self.logdir, *_PLUGIN)
        try:
            return nested if self._store.kind(nested) == "directory" else self.logdir
        except Missing:
            return self.logdir  # a file called "plugins"
        except Unreadable as error:
            raise InputError(f"{self.logdir}: {error}") from error

    def _is_plugin_directory(self) -> bool:
        return self.logdir.replace(os.sep, "/").split("/")[-2:] == list(_PLUGIN)

    def _session(self, name: str, folder: Folder) -> Session:
        id_ = name.rpartition("/")[2]
        return Session(id_, name, folder.path, self._options, folder, self.rule, self._confinement)

    def _own_name(self, folders: Sequence[tuple[str, Folder | Problem]]) -> str:
        """What the log directory is called as a session: by its name, unless one in it has that."""
        others = {folder.name for _, folder in folders if folder.path != self.logdir}
        name = next(folder.name for _, folder in folders if folder.path == self.logdir)
        name = name if is_name(name) else "session"
        while name in others:
            name += "_"
        return name

    def _sorted(self, folders: Sequence[tuple[str, Folder | Problem]]) -> Found:
        sessions: list[Session] = []
        problems: list[Problem] = []
        for run, folder in folders:
            name = f"{run}/{folder.name}" if run else folder.name
            if folder.path == self.logdir:
                name = self._own_name(folders)
            if isinstance(folder, Problem):
                problems.append(Problem(name, folder.path, folder.reason))
                continue
            try:
                if not folder.holds_profile():
                    continue
            except Missing:
                continue  # it went away meanwhile
            except Unreadable as error:
                problems.append(Problem(name, folder.path, str(error)))
                continue
            if all(map(is_name, name.split("/"))):
                sessions.append(self._session(name, folder))
            else:
                reason = "no session can have this name; rename the directory"
                problems.append(Problem(name, folder.path, reason))
        ranked: list[Session | Problem] = [*sessions, *problems]
        by_name = all(map(TIMESTAMP.fullmatch, map(_id, ranked)))
        keys = {id(item): (0.0 if by_name else self._age(item), _id(item)) for item in ranked}
        sessions.sort(key=lambda item: (*keys[id(item)], item.name), reverse=True)
        newest = max(ranked, key=lambda item: keys[id(item)], default=None)
        problems.sort(key=lambda item: item.name)
        return Found(
            tuple(sessions), tuple(problems), newest if isinstance(newest, Problem) else None
        )

    def _age(self, item: Session | Problem) -> float:
        """When the session was taken, in seconds since the epoch: by its id, else its change."""
        if TIMESTAMP.fullmatch(_id(item)):
            try:
                return time.mktime(time.strptime(_id(item), "%Y_%m_%d_%H_%M_%S"))
            except (ValueError, OverflowError):
                pass  # digits that are no date
        folder = item._folder if isinstance(item, Session) else None  # noqa: SLF001  (its maker)
        return (folder or self._store.folder(item.path)).listed_modified()


def local_or_url(path: str) -> str:
    """``path`` without a slash at its end; a ``file://`` URL as the path that it is.

    Raises NotFoundError for an empty one, InputError for one with a zero byte.
    """
    if not path:
        raise NotFoundError("the path is empty")
    if "\x00" in path:
        raise InputError(f"{path!r}: a path holds no zero byte")
    if is_url(path):
        return path.rstrip("/") if not path.endswith("://") else path
    if path.lower().startswith(("file://", "local://")):
        path = path.partition("://")[2]
    return as_path(str(Path(path)))


def _holds(folder: Folder | Problem) -> bool:
    try:
        return not isinstance(folder, Problem) and folder.holds_profile()
    except Unreadable:
        return False


def _id(item: Session | Problem) -> str:
    return item.session_id if isinstance(item, Session) else item.name.rpartition("/")[2]
