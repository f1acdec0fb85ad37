"""What the first request should not pay for: a list's look at all sessions, and importing."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from importlib.resources import files

import peakline
from peakline.deadline import Deadline, within
from peakline.errors import PeaklineError, faults_of
from peakline.repository import Repository, Session

_LOOK_S = 0.02
_PATIENCE_S = 1.0
"""How long one session waits for requests to end; else a busy server would never be indexed."""


class _Background:
    """Work in a thread of its own that can be stopped."""

    def __init__(self, name: str) -> None:
        self._stopped = Deadline()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """End at once; False when that takes longer than ``timeout`` seconds.

        Only an import goes on until it is done.
        """
        self._stopped.cancel()
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _work(self) -> None:
        with within(self._stopped):
            self._run()

    def _run(self) -> None:
        raise NotImplementedError


class Indexer(_Background):
    """Looks at one session after the other, the newest first, in a thread that gives way.

    ``sessions`` lists a repository, ``look`` finds out and remembers what `listing` needs of a
    session, ``is_busy`` says whether requests are being answered.
    """

    def __init__(
        self,
        sessions: Callable[[Repository], Iterable[Session]],
        look: Callable[[Session], object],
        is_busy: Callable[[], bool],
    ) -> None:
        super().__init__("indexing")
        self._sessions, self._look, self._is_busy = sessions, look, is_busy
        self._asked: deque[Repository] = deque()
        self._changed = threading.Condition()
        self._present: Repository | None = None

    def start(self) -> None:
        """Begin, unless it was stopped already."""
        with self._changed:
            if not self._stopped.is_over():
                self._thread.start()

    def ask(self, repository: Repository) -> None:
        """Look at all sessions of ``repository``, after those that came before."""
        with self._changed:
            if repository not in (self._present, *self._asked):
                self._asked.append(repository)
                self._changed.notify_all()

    def stop(self, timeout: float | None = None) -> bool:
        """End at once; False when that takes longer than ``timeout`` seconds."""
        with self._changed:
            self._stopped.cancel()
            self._changed.notify_all()
        return super().stop(timeout)

    def wait(self, timeout: float | None = None) -> bool:
        """Whether all that was requested is done within ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._asked and self._present is None, timeout
            )

    def _run(self) -> None:
        while self._next():
            try:
                with faults_of(self._present.root if self._present else ""):
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
                with faults_of(session.path):
                    self._look(session)
            except PeaklineError:
                continue  # gone, or cannot be read

    def _give_way(self) -> None:
        end = time.monotonic() + _PATIENCE_S
        while self._is_busy() and time.monotonic() < end and not self._stopped.is_over():
            time.sleep(_LOOK_S)


_QUESTIONS: tuple[tuple[str, dict[str, str]], ...] = (
    ("timeline", {"view": "lanes"}),
    ("timeline", {"view": "tile"}),
    ("memory_profile", {}),
    ("timeline", {"view": "counter"}),
    ("live_memory", {}),
    ("trace_viewer", {}),
    ("summary", {}),
    ("graph_scopes", {"view": "graphs"}),
)
"""Tools and their parameters: what the page asks first, and what programs ask most."""


class WarmUp(_Background):
    """Calls ``first``, answers for the bundled session in a thread, forgets the answers, and calls
    ``then``.
    """

    def __init__(
        self, then: Callable[[], object], first: Callable[[], object] | None = None
    ) -> None:
        super().__init__("warm-up")
        self._first, self._then = first, then

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it has ended within ``timeout`` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._answer()
        if not self._stopped.is_over():
            self._then()

    def _answer(self) -> None:
        try:
            if self._first is not None:
                self._first()
            demo = str(files("peakline") / "demo")
            with faults_of(demo), peakline.open(demo) as profile:
                for tool, parameters in _QUESTIONS:
                    self._stopped.check()
                    profile.tool(tool, **parameters)
                self._stopped.check()
                profile.table("buffers")
        except PeaklineError:
            return  # stopped; or only a matter of speed: a request would say what is wrong
