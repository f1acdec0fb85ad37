"""Answers held while they fit, and work that several ask for at the same moment, done once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from copy import copy
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from peakline.deadline import wait_for
from peakline.errors import BusyError, CancelledError, DeadlineError
from peakline.tables import ProfileWarning
from peakline.toolbox.answer_rows import ToolAnswer

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


_OVERHEAD = 1024
"""Bytes that an answer takes beside its content, its key included, about."""


class Forms:
    """What was made of an answer's bytes: packed, its digest. Each is made once while it is held.

    Two callers at once may both make it. Thread-safe.
    """

    def __init__(self) -> None:
        self._made: dict[str, bytes] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of all of them."""
        return sum(map(len, list(self._made.values())))

    def get(self, name: str, make: Callable[[], bytes]) -> bytes:
        """The form of that name: held, or made here. Raises as ``make``."""
        made = self._made.get(name)
        return self._made.setdefault(name, make()) if made is None else made


@dataclass(frozen=True, repr=False)
class Answer(ToolAnswer):
    """What a tool returned: ``content`` in ``format`` (one of the tool's formats).

    ``warnings`` is what was lost or guessed while reading, ``notes`` what went wrong in a part
    (a host that cannot be read) or was not looked at (an unknown parameter), a line each.
    ``forms`` are those of ``content``.
    """

    content: bytes
    format: str
    warnings: tuple[ProfileWarning, ...] = ()
    notes: tuple[str, ...] = ()
    forms: Forms = field(default_factory=Forms, repr=False, compare=False)


def warnings_of(parts: Iterable[tuple[str, Answer]]) -> tuple[ProfileWarning, ...]:
    """The warnings of several hosts: counts added up by kind, the detail of the first."""
    total: dict[str, ProfileWarning] = {}
    for host, answer in parts:
        for kind, count, detail in answer.warnings:
            before = total.get(kind)
            total[kind] = (
                ProfileWarning(kind, count, f"{host}: {detail}")
                if before is None
                else before._replace(count=before.count + count)
            )
    return tuple(total.values())


class Answers:
    """Answers by question and content; the least used go when ``max_bytes`` are full."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, tuple[Answer, int]] = OrderedDict()
        self._bytes = 0
        self._flights: Flights[Hashable, Answer] = Flights()

    @property
    def nbytes(self) -> int:
        """Bytes of the answers held."""
        return self._bytes

    def get(
        self, key: Hashable, make: Callable[[], Answer], keep: Callable[[Answer], bool]
    ) -> Answer:
        """The answer for ``key``: held, being made by somebody else, or made here.

        One for which ``keep`` is false is given to those who wait for it and forgotten.
        """
        answer = self._known(key)
        if answer is not None:
            return answer

        def make_and_keep() -> Answer:
            made = self._known(key) or make()
            if keep(made):
                self._remember(key, made)
            return made

        return self._flights.run(key, make_and_keep)

    def _known(self, key: Hashable) -> Answer | None:
        with self._lock:
            answer, size = self._held.pop(key, (None, 0))
            self._bytes -= size
            if answer is not None:
                # Its forms may have been made since.
                self._hold(key, answer)
            return answer

    def _remember(self, key: Hashable, answer: Answer) -> None:
        with self._lock:
            if key not in self._held:
                self._hold(key, answer)

    def _hold(self, key: Hashable, answer: Answer) -> None:
        size = len(answer.content) + answer.forms.nbytes + _OVERHEAD
        if size > self._max_bytes:
            return
        self._held[key] = answer, size
        self._bytes += size
        while self._bytes > self._max_bytes:
            _, (_, size) = self._held.popitem(last=False)
            self._bytes -= size
