"""Answers that were given, held while they fit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from peakline.engine.flights import Flights
from peakline.tables import ProfileWarning
from peakline.toolbox.answer_rows import ToolAnswer

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
