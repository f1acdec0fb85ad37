"""The processes that queries of remote callers run in, made when there is such a query."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.tables.sql_process.pool import SqlPool


class SqlProcesses:
    """At most one pool of up to ``most`` processes, as `SqlPool` has them. Thread-safe.

    What they share takes up to ``shared_bytes``.
    """

    def __init__(self, most: int | None, shared_bytes: int) -> None:
        self._most = most
        self._shared_bytes = shared_bytes
        self._lock = threading.Lock()
        self._pool: SqlPool | None = None

    @property
    def pool(self) -> SqlPool:
        """The pool; without queries it has no process."""
        with self._lock:
            if self._pool is None:
                from peakline.tables.sql_process.pool import SqlPool

                self._pool = SqlPool(self._most, spare=1, shared_bytes=self._shared_bytes)
            return self._pool

    def share(self, most_bytes: int) -> None:
        """From now on, what they share takes up to ``most_bytes``."""
        self._shared_bytes = most_bytes
        if self._pool is not None:
            self._pool.shared.resize(most_bytes)

    def close(self) -> None:
        """End them; the pool may be used again."""
        if self._pool is not None:
            self._pool.close()
