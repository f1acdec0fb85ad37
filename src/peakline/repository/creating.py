"""A new session: claimed by one writer, filled with whole files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, Self

from peakline.errors import ExistsError, RemoteError, UsageError
from peakline.repository.files import HostFile
from peakline.repository.names import SUFFIXES, XPLANE_SUFFIX, check_name, host_file_name, host_of
from peakline.repository.store import Store, Taken, Unwritable

if TYPE_CHECKING:
    from peakline.repository.confined import Confinement


class NewSession:
    """A session that this object alone may fill, until it is closed; a context manager.

    Each file appears under its name when it is whole and on the disk. A session that is closed
    without any profile leaves nothing: what was written beside goes, and the directory made for
    it. Files may be written by several threads at once.
    """

    def __init__(
        self,
        session_id: str,
        path: str,
        store: Store,
        storage_options: Mapping[str, object],
        confinement: Confinement | None = None,
    ) -> None:
        self.session_id = session_id
        self.path = path
        """The session's directory, a URL where it is remote."""
        self.confinement = confinement
        """Where alone it may lie."""
        self._options = storage_options
        self._lock = threading.Lock()
        self._hosts: set[str] = set()
        self._beside: list[str] = []
        self._closed = False
        try:
            self._claim = store.claim(path)
        except Taken as error:
            raise ExistsError(f"session {session_id!r} exists: {error}") from error
        except Unwritable as error:
            raise RemoteError(f"session {session_id!r} cannot be created: {error}") from error

    def write(
        self, host: str, write: Callable[[BinaryIO], object], *, suffix: str = XPLANE_SUFFIX
    ) -> HostFile:
        """The profile of ``host``: what ``write`` puts into the stream it is given.

        Raises UsageError for what is no host's name, ExistsError when the host has a file,
        RemoteError when it cannot be stored (the disk is full ...). What ``write`` itself raises
        goes through, and nothing is left.
        """
        name = check_name("host", host_file_name(host))
        if suffix not in SUFFIXES:
            raise UsageError(f"{suffix!r} is not the suffix of a profile: {', '.join(SUFFIXES)}")
        taken = f"session {self.session_id!r}: host {host!r} has a profile already"
        with self._lock:
            if self._closed:
                raise UsageError(f"session {self.session_id!r} is closed")
            if name in self._hosts:
                raise ExistsError(taken)
            self._hosts.add(name)

        def write_the_only_one(stream: BinaryIO) -> None:
            write(stream)
            with self._lock:
                if name in self._found():
                    raise ExistsError(taken)

        try:
            with self._storing(host, taken):
                entry = self._claim.write(name + suffix, write_the_only_one)
        except BaseException:
            with self._lock:
                self._hosts.discard(name)
            raise
        return HostFile(name, entry.path, self._options, entry.stamp, confinement=self.confinement)

    def write_beside(self, host: str, name: str, write: Callable[[BinaryIO], object]) -> None:
        """``<host>.<name>``, a file that is no profile (what an old profiler made for one tool).

        Raises UsageError for what is no name or would be that of a profile, ExistsError when the
        file exists, RemoteError when it cannot be stored.
        """
        full = check_name("file", f"{host_file_name(host)}.{check_name('file', name)}")
        if host_of(full) is not None:
            raise UsageError(f"{name!r} is the name of a profile")
        with self._storing(host, f"session {self.session_id!r} has a file {full!r}"):
            self._claim.write(full, write)
        with self._lock:
            self._beside.append(full)

    def remove(self, name: str) -> None:
        """Take a file away, whoever wrote it; RemoteError when it cannot be."""
        try:
            self._claim.remove(name)
        except Unwritable as error:
            raise RemoteError(
                f"session {self.session_id!r}: {name!r} cannot be removed: {error}"
            ) from error

    def close(self) -> None:
        """Let others have the session; of one without a profile nothing stays."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                if self._beside and not self._hosts:
                    self._remove_beside()
            finally:
                self._claim.release()

    def _remove_beside(self) -> None:
        with suppress(Unwritable):  # what cannot be removed makes no session, but takes the name
            if not self._found():
                for name in self._beside:
                    self._claim.remove(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _found(self) -> set[str]:
        """The hosts that have a file by now: older profilers write into the session themselves."""
        return {result[0] for name in self._claim.names() if (result := host_of(name))}

    @contextmanager
    def _storing(self, host: str, taken: str) -> Iterator[None]:
        """What the claim raises, as ExistsError that says ``taken``, or as RemoteError."""
        try:
            yield
        except Taken as error:
            raise ExistsError(taken) from error
        except Unwritable as error:
            raise RemoteError(
                f"session {self.session_id!r}: host {host!r} cannot be stored: {error}"
            ) from error
