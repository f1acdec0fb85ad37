"""What the server counts: nothing in a server for one reader, the subclass for a team's does."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from peakline.errors import NotFoundError

if TYPE_CHECKING:
    from peakline.engine import Gate, ProfileCache
    from peakline.tables.sql_process.pool import SqlPool

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of `Metrics.render`."""


class Metrics:
    """What happened, said by the faces as it happens. Safe to use from several threads.

    Here nothing is counted: only the time of the last request is known.
    `peakline.service.prometheus` counts, with a package that `peakline view` does not need.
    """

    def __init__(self) -> None:
        self._last_request = -math.inf

    def know(self, face: str, methods: Iterable[str]) -> None:
        """``methods`` are the names that may become labels of ``face``."""

    def observe(self, face: str, method: str, code: str, seconds: float) -> None:
        """A request ended with ``code`` after ``seconds``."""

    @contextmanager
    def in_flight(self, face: str) -> Iterator[None]:  # noqa: ARG002  (the subclass counts it)
        """A request is being answered while the block runs."""
        self._last_request = time.monotonic()
        try:
            yield
        finally:
            self._last_request = time.monotonic()

    def is_quiet(self, seconds: float) -> bool:
        """Whether no request began or ended within the last ``seconds``."""
        return time.monotonic() - self._last_request >= seconds

    def refused(self, reason: str) -> None:
        """A request was refused: by token, host, origin, busy, size or connections."""

    def hung_up(self, reason: str) -> None:
        """A connection was closed by the server, which waited for its client: for a head, a body,
        the reading of an answer, or the longest when all places were full.
        """

    def watch_connections(self, face: str, count: Callable[[], int]) -> None:
        """Show what ``count`` returns at the moment of `render`."""

    def captured(self, outcome: str, size: int = 0) -> None:
        """One host's part of a capture ended; ``size`` is what was stored."""

    def uploaded(self, size: int) -> None:
        """A file of ``size`` bytes was stored."""

    def watch(
        self,
        *,
        gate: Gate | None = None,
        cache: ProfileCache | None = None,
        sql_pool: SqlPool | None = None,
    ) -> None:
        """Show what ``gate``, ``cache`` and ``sql_pool`` report at the moment of `render`."""

    def render(self) -> bytes:
        """All numbers, as `CONTENT_TYPE`. Raises NotFoundError where nothing is counted."""
        raise NotFoundError("a server for one reader counts nothing; peakline serve has metrics")
