"""The first list of sessions should not pay for all of them: tools are looked for beforehand."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from peakline.deadline import Deadline, within
from peakline.errors import PeaklineError
from peakline.repository import Repository, Session

_LOOK_S = 0.02
_PATIENCE_S = 1.0
"""How long one session waits for requests to end; else a busy server would never be indexed."""


class Indexer:
    """Looks at one session after the other, the newest first, in a thread that gives way.

    ``sessions`` lists a repository, ``look`` finds out and remembers what `listing` needs of a
    session, ``is_busy`` tells whether requests are being answered.
    """

    def __init__(
        self,
        sessions: Callable[[Repository], Iterable[Session]],
        look: Callable[[Session], object],
        is_busy: Callable[[], bool],
    ) -> None:
        self._sessions, self._look, self._is_busy = sessions, look, is_busy
        self._asked: deque[Repository] = deque()
        self._changed = threading.Condition()
        self._present: Repository | None = None
        self._stopped = Deadline()
        self._thread = threading.Thread(target=self._run, name="indexing", daemon=True)

    def start(self) -> None:
        """Begin, unless it was stopped already."""
        with self._changed:
            if not self._stopped.is_over():
                self._thread.start()

    def ask(self, repository: Repository) -> None:
        """Look at all sessions of ``repository``, when those asked for before are done."""
        with self._changed:
            if repository not in (self._present, *self._asked):
                self._asked.append(repository)
                self._changed.notify_all()

    def stop(self, timeout: float | None = None) -> bool:
        """End at once; False when that takes longer than ``timeout`` seconds."""
        with self._changed:
            self._stopped.cancel()
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether all that was asked for is done within ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._asked and self._present is None, timeout
            )

    def _run(self) -> None:
        with within(self._stopped):
            while self._next():
                try:
                    self._index()
                except PeaklineError:
                    pass  # a list would say what is wrong
                finally:
                    with self._changed:
                        self._present = None
                        self._changed.notify_all()

    def _next(self) -> bool:
        """Wait for a repository to look at; False at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._asked or self._stopped.is_over())
            if self._stopped.is_over():
                return False
            self._present = self._asked.popleft()
            return True

    def _index(self) -> None:
        if self._present is None:
            return
        for session in self._sessions(self._present):
            self._give_way()
            self._stopped.check()
            try:
                self._look(session)
            except PeaklineError:
                continue  # gone, or cannot be read

    def _give_way(self) -> None:
        end = time.monotonic() + _PATIENCE_S
        while self._is_busy() and time.monotonic() < end and not self._stopped.is_over():
            time.sleep(_LOOK_S)
