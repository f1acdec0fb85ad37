"""Who may hold a connection or a call, of which there can only be so many: descriptors are few."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from peakline.service.settings import Settings

_USEFUL = 65_536
"""More descriptors than that would only make every search of them longer."""
_FILES = 512
"""Descriptors for profiles, libraries and captures."""
_PORTS = 2
_RESERVE = 16
"""Descriptors that answers need for the files they are read from."""


def raise_descriptor_limit() -> None:
    """Allow this process as many descriptors as the system lets it have."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _USEFUL if hard == resource.RLIM_INFINITY else min(hard, _USEFUL)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def is_scarce(descriptor: int) -> bool:
    """Whether few descriptors are left, as the newest one's number says: it is the lowest free."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return soft != resource.RLIM_INFINITY and descriptor >= soft - _RESERVE
    return False


def connection_limits(settings: Settings) -> tuple[int, int]:
    """How many connections each port takes at most: in all, and of one peer.

    One peer never has more than three quarters of them, whatever it may have.
    """
    most = min(settings.max_connections, _room())
    return most, max(1, min(settings.max_connections_per_peer, most * 3 // 4))


def _room() -> int:
    """The descriptors that there are for the connections of each port."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY:
            return max(1, (soft - min(_FILES, soft // 2)) // _PORTS)
    return _USEFUL


class Holder(Protocol):
    """Who holds a place. Hashed by identity."""

    @property
    def peer(self) -> str:
        """Whose it is: a peer holds no more than its part of the places."""

    @property
    def group(self) -> str:
        """Which of the peer's holders belong together, such as the calls over one connection."""

    def give_way(self) -> None:
        """The place went to somebody else: end."""


_H = TypeVar("_H", bound=Holder)
_Line = OrderedDict[_H, None]


class Places(Generic[_H]):
    """At most ``most`` places, of which one peer has at most ``most_each``.

    When all are taken the holder gives way whose client has kept the server waiting the longest:
    for a request, for the rest of one, or until it reads its answer; of a peer that has all it may
    have, it is one of its largest group. While the server is at work for a holder, nobody takes its
    place. For one thread.
    """

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._count = 0
        self._counts: dict[str, int] = {}
        # The longest wait first: all of them, and by peer and group.
        self._waiting: _Line[_H] = OrderedDict()
        self._waiting_of: dict[str, dict[str, _Line[_H]]] = {}
        self._working: set[_H] = set()

    def __len__(self) -> int:
        return self._count

    def take(self, holder: _H) -> bool:
        """A place for ``holder``, for whose client the server waits; False: there is none."""
        waiting: _Line[_H] | None = None
        if self._counts.get(holder.peer, 0) >= self._most_each:
            groups = self._waiting_of.get(holder.peer, {})
            waiting = max(groups.values(), key=len, default=OrderedDict())
        elif self._count >= self._most:
            waiting = self._waiting
        if waiting is not None and not self._evict(waiting):
            return False
        self._count += 1
        self._counts[holder.peer] = self._counts.get(holder.peer, 0) + 1
        self._wait(holder)
        return True

    def waits(self, holder: _H) -> None:
        """From now on the server waits for the holder's client."""
        if self._remove(holder):
            self._wait(holder)

    def works(self, holder: _H) -> None:
        """From now on the server is at work for the holder."""
        if self._remove(holder):
            self._working.add(holder)

    def leave(self, holder: _H) -> None:
        """Give the place up; nothing where the holder has none."""
        if not self._remove(holder):
            return
        self._count -= 1
        left = self._counts[holder.peer] - 1
        if left:
            self._counts[holder.peer] = left
        else:
            del self._counts[holder.peer]

    def free_one(self) -> bool:
        """Take the place of whoever has waited the longest; False: of nobody."""
        return self._evict(self._waiting)

    def _evict(self, waiting: _Line[_H]) -> bool:
        oldest = next(iter(waiting), None)
        if oldest is None:
            return False
        self.leave(oldest)
        oldest.give_way()
        return True

    def _wait(self, holder: _H) -> None:
        self._waiting[holder] = None
        groups = self._waiting_of.setdefault(holder.peer, {})
        groups.setdefault(holder.group, OrderedDict())[holder] = None

    def _remove(self, holder: _H) -> bool:
        if holder in self._working:
            self._working.remove(holder)
            return True
        if holder not in self._waiting:
            return False
        del self._waiting[holder]
        groups = self._waiting_of[holder.peer]
        del groups[holder.group][holder]
        if not groups[holder.group]:
            del groups[holder.group]
        if not groups:
            del self._waiting_of[holder.peer]
        return True
