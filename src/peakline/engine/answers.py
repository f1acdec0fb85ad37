"""Answers that were given, held while they fit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from peakline.engine.flights import Flights
from peakline.tables import ProfileWarning

_OVERHEAD = 1024
"""Bytes that an answer takes beside its content, its key included, about."""


@dataclass(frozen=True)
class Answer:
    """What a tool returned: ``content`` in ``format`` (one of the tool's formats).

    ``warnings`` is what was lost or guessed while reading, ``notes`` what went wrong in a part
    (a host that cannot be read) or was not looked at (an unknown parameter), a line each.
    """

    content: bytes
    format: str
    warnings: tuple[ProfileWarning, ...] = ()
    notes: tuple[str, ...] = ()


class Answers:
    """Answers by question and content; the least used go when ``max_bytes`` are full."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Answer] = OrderedDict()
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
            answer = self._kept.get(key)
            if answer is not None:
                self._kept.move_to_end(key)
            return answer

    def _remember(self, key: Hashable, answer: Answer) -> None:
        size = _size(answer)
        if size > self._max_bytes:
            return
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = answer
            self._bytes += size
            while self._bytes > self._max_bytes:
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= _size(oldest)


def _size(answer: Answer) -> int:
    return len(answer.content) + _OVERHEAD
