"""Decoded profiles that several requests share, and no more of them than fit."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from peakline.engine.answers import Flights
from peakline.errors import faults_of
from peakline.formats import open_reader
from peakline.repository import HostFile
from peakline.tables import Profile
from peakline.tables.derived import DERIVED
from peakline.tools import available_tools

_MOST_SHARE = 0.02
"""So much of the time may go to taking sizes."""
_NO_TIME_S = 0.002
"""Sizes that are taken in less are always taken."""


@dataclass(frozen=True)
class CacheStats:
    """Since the start: leases of a profile that was there, of one that was not, and profiles
    given up; at present: how many profiles, and their ``bytes``.
    """

    hits: int
    misses: int
    evictions: int
    bytes: int
    profiles: int


@dataclass
class _Entry:
    path: str
    profile: Profile
    leases: int
    size: int = 0
    is_saved: bool = True
    """Whether it still is in the cache; else the last who has it on lease closes it."""
    held: int = -1
    """What the profile held when its size was taken."""
    until: float = 0.0
    """Till then the size is that one, where the profile holds no more."""

    def measured(self) -> int:
        """The profile's size; of one that takes long to look at as it was a moment before.

        What is held may grow by itself a little; a table more, or an answer, is always seen.
        """
        held, began = self.profile.held, time.monotonic()
        if held == self.held and began < self.until:
            return self.size
        size = self.profile.nbytes
        ended = time.monotonic()
        spent = ended - began
        self.held, self.until = held, ended + (spent / _MOST_SHARE if spent > _NO_TIME_S else 0.0)
        return size


class ProfileCache:
    """Profiles by the content they were read from (`HostFile.stamp`), the least used given up
    first when they hold more than ``max_bytes`` together or are more than ``max_profiles``.

    Only profiles that nobody uses are given up; sizes are taken when a lease ends, so a cache too
    small for what is in use at the moment shrinks as soon as that is done. ``left_over`` is called
    then with how many bytes the profiles leave.
    """

    def __init__(
        self,
        max_bytes: int,
        max_profiles: int = 64,
        *,
        max_unpacked_bytes: int | None = None,
        left_over: Callable[[int], object] | None = None,
    ) -> None:
        self._max_bytes, self._max_profiles = max_bytes, max_profiles
        self._left_over = left_over
        self._max_unpacked_bytes = max_unpacked_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._stamps: dict[str, Hashable] = {}
        """The content that each path was last seen with."""
        self._opening: Flights[Hashable, None] = Flights()
        self._hits = self._misses = self._evictions = self._bytes = 0

    @contextmanager
    def lease(self, file: HostFile, *, keep: bool = True) -> Iterator[Profile]:
        """The profile of ``file``, which stays open for the block. Do not close it.

        Opened once, however many ask; not ``keep``: what is not there already is opened for this
        lease alone and closed afterwards. Raises NotFoundError or InputError when the file
        cannot be read, DeadlineError or CancelledError, and as `faults_of`, whatever fails in the
        block.
        """
        with faults_of(file.path):
            stamp: Hashable = file.stamp()
            entry = self._taken(stamp)
            if entry is None and not keep:
                with open_profile(file, self._max_unpacked_bytes) as profile:
                    yield profile
                return
            while entry is None:
                opened: list[_Entry] = []
                self._opening.run(stamp, lambda: opened.append(self._open(file, stamp)))  # noqa: B023
                entry = opened[0] if opened else self._taken(stamp)
            try:
                yield entry.profile
            finally:
                self._give_back(entry)

    def stats(self) -> CacheStats:
        """What has happened so far."""
        with self._lock:
            return CacheStats(
                self._hits, self._misses, self._evictions, self._bytes, len(self._entries)
            )

    def clear(self) -> None:
        """Give up every profile; those on lease are closed when their leases end."""
        with self._lock:
            closing = self._drop(list(self._entries))
        _close(closing)

    def _taken(self, stamp: Hashable) -> _Entry | None:
        with self._lock:
            entry = self._entries.get(stamp)
            if entry is not None:
                self._hits += 1
                entry.leases += 1
                self._entries.move_to_end(stamp)
            return entry

    def _open(self, file: HostFile, stamp: Hashable) -> _Entry:
        """Open the file and put it into the cache, on lease to the caller."""
        entry = self._taken(stamp)
        if entry is not None:
            # Somebody else was a moment faster.
            return entry
        entry = _Entry(file.path, open_profile(file, self._max_unpacked_bytes), 1)
        with self._lock:
            self._misses += 1
            before = self._stamps.get(file.path)
            # Nobody will ask for the file's former content again.
            closing = self._drop([before]) if before in self._entries else []
            self._stamps[file.path] = stamp
            self._entries[stamp] = entry
        _close(closing)
        return entry

    def _give_back(self, entry: _Entry) -> None:
        size = entry.measured()
        with self._lock:
            entry.leases -= 1
            if entry.is_saved:
                self._bytes += size - entry.size
                entry.size = size
                closing = self._over_limit()
            else:
                closing = [] if entry.leases else [entry]
            left = max(0, self._max_bytes - self._bytes)
        _close(closing)
        if self._left_over is not None:
            self._left_over(left)

    def _over_limit(self) -> list[_Entry]:
        """Take out what is too much, the least recently used first; returns what to close."""
        closing: list[_Entry] = []
        for stamp in list(self._entries):
            if self._bytes <= self._max_bytes and len(self._entries) <= self._max_profiles:
                break
            if not self._entries[stamp].leases:
                closing += self._drop([stamp])
        return closing

    def _drop(self, stamps: list[Hashable]) -> list[_Entry]:
        """Take entries out; returns those that nobody uses, to be closed without the lock."""
        dropped = [self._entries.pop(stamp) for stamp in stamps]
        for stamp, entry in zip(stamps, dropped, strict=True):
            entry.is_saved = False
            self._bytes -= entry.size
            self._evictions += 1
            if self._stamps.get(entry.path) == stamp:
                del self._stamps[entry.path]
        return [entry for entry in dropped if not entry.leases]


def open_profile(file: HostFile, max_unpacked_bytes: int | None = None) -> Profile:
    """The profile of one host's file and the programs beside it, and of no other.

    Raises NotFoundError or InputError.
    A gzip file may expand to ``max_unpacked_bytes``, None as for `open_reader`.
    What is remembered of it is known by the content of those files, and a caller may be anybody.
    """
    reader = open_reader(
        file.path,
        max_unpacked_bytes=max_unpacked_bytes,
        storage_options=file.storage_options,
        opener=file.opener,
        beside=file.program_paths,
    )
    return Profile(reader, derived=DERIVED, is_alone=True)


def check_opens(path: str, descriptor: int, max_unpacked_bytes: int | None = None) -> None:
    """Raise where the file of an open descriptor, which will be ``path``, cannot be opened,
    or does not say which tools it has: as `ProfileCache.lease` does.
    """
    with faults_of(path):
        reader = open_reader(
            path, max_unpacked_bytes=max_unpacked_bytes, opener=lambda _: os.dup(descriptor)
        )
        with Profile(reader, derived=DERIVED, is_alone=True) as profile:
            available_tools(profile)


def _close(entries: list[_Entry]) -> None:
    for entry in entries:
        entry.profile.close()
