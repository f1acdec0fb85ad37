"""Work that several ask for at the same moment, done once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from copy import copy
from typing import Generic, TypeVar

from peakline.deadline import wait_for
from peakline.errors import BusyError, CancelledError, DeadlineError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_OF_THE_ASKER = (BusyError, CancelledError, DeadlineError)
"""Errors that belong to the one who worked and say nothing about the work."""


class _Flight(Generic[V]):
    """Work going on: who waits for it, and how it ended."""

    def __init__(self) -> None:
        self.waiting: list[threading.Event] = []
        self.result: tuple[V] | None = None
        self.error: Exception | None = None


class Flights(Generic[K, V]):
    """Single flight: of all who `run` a key at once, one works and the others get what it got."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[K, _Flight[V]] = {}

    def run(self, key: K, make: Callable[[], V]) -> V:
        """What ``make`` returns or raises, its own or that of whoever is making it already.

        Everybody waits no longer than the own deadline. When the one who works is ended by its
        deadline, the next one begins anew.
        """
        while True:
            with self._lock:
                flight = self._flights.get(key)
                if flight is None:
                    mine = self._flights[key] = _Flight[V]()
                    break
                landed = threading.Event()
                flight.waiting.append(landed)
            wait_for(landed)
            if flight.result is not None:
                return flight.result[0]
            if flight.error is not None:
                # A copy: the traceback of one exception cannot grow in several threads.
                raise copy(flight.error) from flight.error
        try:
            value = make()
        except Exception as error:
            if not isinstance(error, _OF_THE_ASKER):
                mine.error = error
            raise
        else:
            mine.result = (value,)
            return value
        finally:
            with self._lock:
                del self._flights[key]
            for landed in mine.waiting:
                landed.set()
            # An error refers to this frame: it must not refer back, or what its frames hold (a
            # mapped file) stays until the next collection.
            del mine
