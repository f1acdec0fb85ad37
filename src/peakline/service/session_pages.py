"""Pages of the list of sessions: which of them, in which order, found by which text."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from peakline.deadline import check_deadline
from peakline.errors import InputError, NotFoundError
from peakline.repository import HostFile, Session, extent_of

Sort = Literal[
    "newest", "oldest", "name", "-name", "modified", "-modified", "bytes", "-bytes", "hosts",
    "-hosts",
]  # fmt: skip
"""``newest``: the order of the whole list; of the others ``-`` is descending."""

_MOST_KNOWN = 100_000
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True)
class PageWanted:
    """``limit`` sessions after the first ``offset`` of those that ``search`` finds.

    ``search`` are texts with spaces between: a session has each in its name or in a host's name, in
    any case. Without ``tools`` nobody looks into the profiles.
    """

    offset: int = 0
    limit: int | None = None
    search: str = ""
    sort: Sort = "newest"
    tools: bool = True


class SessionPages:
    """Chooses the sessions of a page. Thread-safe.

    ``host_files`` gives the files of a session that callers may see. The names of hosts are
    remembered for as long as the session's directory does not change.
    """

    def __init__(self, host_files: Callable[[Session], list[HostFile]]) -> None:
        self._host_files = host_files
        self._hosts: dict[str, tuple[Hashable, tuple[str, ...]]] = {}

    def page(
        self, sessions: Sequence[Session], wanted: PageWanted
    ) -> tuple[Sequence[Session], int]:
        """The sessions of the page, and how many there are on all pages.

        ``sessions`` are all, the newest first. Raises as `check_deadline`; sessions that cannot be
        read have no hosts and no size.
        """
        texts = wanted.search.casefold().split()
        if texts:
            sessions = [session for session in sessions if self._has(session, texts)]
        ordered = self._sorted(sessions, wanted.sort)
        end = None if wanted.limit is None else wanted.offset + wanted.limit
        return ordered[wanted.offset : end], len(ordered)

    def _has(self, session: Session, texts: Iterable[str]) -> bool:
        missing = [text for text in texts if text not in session.session_id.casefold()]
        if not missing:
            return True
        names = "\n".join(self._names(session)).casefold()
        return all(text in names for text in missing)

    def _sorted(self, sessions: Sequence[Session], sort: Sort) -> Sequence[Session]:
        if sort == "newest":
            return sessions
        if sort == "oldest":
            return sessions[::-1]
        key, descending = sort.removeprefix("-"), sort.startswith("-")
        if key == "name":
            return sorted(sessions, key=_natural, reverse=descending)
        known, unknown = [], []
        for session in sessions:
            value = self._value(session, key)
            if value is None:
                unknown.append(session)
            else:
                known.append((value, session))
        known.sort(key=lambda one: one[0], reverse=descending)
        # What is not known comes last, whichever way.
        return [session for _, session in known] + unknown

    def _value(self, session: Session, key: str) -> float | None:
        if key == "hosts":
            return len(self._names(session))
        check_deadline()
        try:
            extent = extent_of(self._host_files(session))
        except (InputError, NotFoundError):
            return None
        return extent.bytes if key == "bytes" else extent.modified

    def _names(self, session: Session) -> tuple[str, ...]:
        check_deadline()
        try:
            stamp = session.listed_stamp()
            known = self._hosts.get(session.path)
            if known is None or known[0] != stamp:
                known = stamp, tuple(file.host for file in self._host_files(session))
                if len(self._hosts) >= _MOST_KNOWN:
                    self._hosts.clear()
                self._hosts[session.path] = known
        except (InputError, NotFoundError):
            return ()
        return known[1]


def _natural(session: Session) -> list[tuple[int, int, str]]:
    """``run_9`` before ``run_10``."""
    parts = _NUMBER.split(session.session_id.casefold())
    # No name has more digits than int() takes: it has at most 200 bytes.
    return [(0, int(part), "") if place % 2 else (1, 0, part) for place, part in enumerate(parts)]
