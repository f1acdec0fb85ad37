"""Sessions that this server is making just now: nobody else may make one of the same name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from peakline.capture import Target
from peakline.errors import ExistsError


class SessionsInTheMaking:
    """Sessions by repository and id, with the hosts that are being profiled for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._targets: dict[tuple[str, str], tuple[Target, ...]] = {}

    @contextmanager
    def making(
        self, root: str, session_id: str, targets: tuple[Target, ...] = ()
    ) -> Iterator[None]:
        """Have the session for the block. Raises ExistsError when somebody else has it."""
        key = (root, session_id)
        with self._lock:
            if key in self._targets:
                raise ExistsError(f"session {session_id!r} is being made now")
            self._targets[key] = targets
        try:
            yield
        finally:
            with self._lock:
                del self._targets[key]

    def targets(self, session_id: str) -> tuple[Target, ...]:
        """The hosts that are being profiled under ``session_id``, in any repository."""
        with self._lock:
            return tuple(
                target
                for (_, making), targets in self._targets.items()
                if making == session_id
                for target in targets
            )
