"""The first request should not pay for what a process does once: importing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib.resources import files

from peakline.deadline import Deadline, within
from peakline.errors import PeaklineError

_QUESTIONS: tuple[tuple[str, dict[str, str]], ...] = (
    ("timeline", {"view": "lanes"}),
    ("timeline", {"view": "tile"}),
    ("memory_profile", {}),
    ("timeline", {"view": "counter"}),
    ("live_memory", {}),
    ("trace_viewer", {}),
    ("summary", {}),
)
"""Tools and their parameters: what the page asks first, and what programs ask most."""


class WarmUp:
    """Answers for the bundled session in a thread, forgets the answers, and calls ``then``."""

    def __init__(self, then: Callable[[], object]) -> None:
        self._then = then
        self._stopped = Deadline()
        self._thread = threading.Thread(target=self._run, name="warm-up", daemon=True)

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

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it has ended within ``timeout`` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        with within(self._stopped):
            self._answer()
        if not self._stopped.is_over():
            self._then()

    def _answer(self) -> None:
        import peakline

        try:
            with peakline.open(str(files("peakline") / "demo")) as profile:
                for tool, parameters in _QUESTIONS:
                    self._stopped.check()
                    profile.tool(tool, **parameters)
                self._stopped.check()
                profile.sql("select count(*) from buffers")
        except PeaklineError:
            return  # stopped; or only a matter of speed: a request would say what is wrong
