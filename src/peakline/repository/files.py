"""The file of one host, and what several of them are together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING

from peakline.errors import InputError, NotFoundError
from peakline.repository.names import host_of, recording_of
from peakline.repository.rank_names import rank_name, ranks_of_all
from peakline.repository.store import FileEntry, FileStatus, Folder, Store, Unreadable, reading
from peakline.repository.stores import store_for

if TYPE_CHECKING:
    from peakline.formats.common.files import Opener
    from peakline.repository.confined import Confinement

_Ranked = tuple[int, FileEntry]
"""A file by the rank of its suffix."""


@dataclass(frozen=True)
class HostFile:
    """The profile of one host: ``host`` is its name as the file spells it.

    ``path`` is a URL where the file is remote; ``storage_options`` are what fsspec needs to open
    it.
    """

    host: str
    path: str
    storage_options: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    _listed: Hashable | None = field(default=None, compare=False, repr=False)
    _status: FileStatus | None = field(default=None, compare=False, repr=False)
    confinement: Confinement | None = field(default=None, compare=False, repr=False)
    """Where alone the file may lie."""
    programs: tuple[FileEntry, ...] = field(default=(), compare=False, repr=False)
    """The files of compiled programs that XProf wrote into the session."""
    rank: int | None = field(default=None, compare=False)
    """Its rank in the job by its name, which only counts where the content says nothing; by that
    where it had to be looked at.
    """

    @property
    def program_paths(self) -> list[str]:
        """Where `programs` are."""
        return [entry.path for entry in self.programs]

    @property
    def opener(self) -> Opener | None:
        """What opens it, where it may not lie anywhere."""
        return None if self.confinement is None else self.confinement.open_file

    def _store(self) -> Store:
        return store_for(self.path, self.storage_options, self.confinement)

    def stamp(self) -> Hashable:
        """What identifies the content: path, size, time of change and inode, or the object's tag;
        with those of the files in `programs`.

        A local file is looked at each time; a remote one has what the listing said that found it.
        Raises NotFoundError when the file is gone, InputError when it cannot be read,
        ForbiddenError when it lies outside of where it may.
        """
        own = self._listed
        if own is None:
            with reading(f"the file of host {self.host!r}"):
                own = self._store().stamp(self.path)
        return (own, *map(self._stamp_of, self.programs)) if self.programs else own

    def _stamp_of(self, entry: FileEntry) -> Hashable:
        """What identifies the content of a file beside this one, as far as it can be read."""
        if entry.stamp is not None:
            return entry.stamp
        with suppress(Unreadable):
            return self._store().stamp(entry.path)
        return entry.path, None

    def status(self) -> FileStatus:
        """Its size and when it last changed; read and raising as `stamp`."""
        if self._status is not None:
            return self._status
        with reading(f"the file of host {self.host!r}"):
            return self._store().status(self.path)


@dataclass(frozen=True)
class Extent:
    """What the profiles of a session take: ``bytes`` together, and when the newest changed.

    ``modified`` is in seconds since the epoch. None: the file system does not give it for a file.
    """

    bytes: int | None
    modified: float | None

    def as_json(self) -> dict[str, object]:
        """``bytes``, and ``modified`` as ISO 8601 in UTC, to the second."""
        shown = None
        if self.modified is not None:
            with suppress(ValueError, OverflowError, OSError):  # a year that no calendar has
                moment = datetime.fromtimestamp(self.modified, UTC).replace(tzinfo=None)
                shown = f"{moment.isoformat(timespec='seconds')}Z"
        return {"bytes": self.bytes, "modified": shown}


def extent_of(files: Iterable[HostFile]) -> Extent:
    """What ``files`` take together; one that is gone, or a link to nothing, takes nothing."""
    result = []
    for file in files:
        with suppress(NotFoundError, InputError):
            result.append(file.status())
    sizes = [status.bytes for status in result if status.bytes is not None]
    times = [status.modified for status in result if status.modified is not None]
    return Extent(
        sum(sizes) if len(sizes) == len(result) else None,
        max(times) if times and len(times) == len(result) else None,
    )


def files_of_hosts(
    folder: Folder, storage_options: Mapping[str, object], confinement: Confinement | None = None
) -> list[HostFile]:
    """The hosts of a folder, by name, each with the file that counts; Unreadable or Missing.

    A worker with several recordings of PyTorch is as many hosts, called by their times as well.
    Each has the programs that XProf wrote there, which does not say of which host they are.
    """
    from peakline.formats.hlo_dump.listing import is_xprof_program

    best: dict[str, _Ranked] = {}
    recordings: dict[str, dict[str, _Ranked]] = {}
    programs: list[FileEntry] = []
    for entry in folder.files():
        if is_xprof_program(entry.name):
            programs.append(entry)
        host, rank = host_of(entry.name) or ("", 0)
        recording = recording_of(entry.name) if host else None
        if recording:
            _keep_better(recordings.setdefault(host, {}), recording, rank, entry)
        elif host:
            _keep_better(best, host, rank, entry)
    for name, result in _named(recordings):
        best.setdefault(name, result)
    beside = tuple(sorted(programs, key=attrgetter("path")))
    ranks = ranks_of_all([rank_name(host) for host in best])
    return sorted(
        (
            HostFile(
                host, entry.path, storage_options, entry.stamp, entry.status, confinement, beside,
                rank,
            )
            for (host, (_, entry)), rank in zip(best.items(), ranks, strict=True)
        ),
        key=attrgetter("host"),
    )  # fmt: skip


def _keep_better(best: dict[str, _Ranked], name: str, rank: int, entry: FileEntry) -> None:
    """Take the file for ``name``, unless one of a lower rank is there."""
    if name not in best or rank < best[name][0]:
        best[name] = rank, entry


def _named(recordings: Mapping[str, Mapping[str, _Ranked]]) -> Iterator[tuple[str, _Ranked]]:
    """The recordings of each worker, by the names of their hosts: the only one is the worker."""
    whole = {recording for result in recordings.values() for recording in result}
    for worker, result in recordings.items():
        # A worker may be called as another one's recording is.
        is_only = len(result) == 1 and (worker not in whole or worker in result)
        for recording, ranked in result.items():
            yield (worker if is_only else recording), ranked
