"""Answers on their way to clients, which are in memory until they are read."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable

from peakline.service.settings import Settings

_LEAST_BYTES = 64 << 20


class Deliveries:
    """The answers that a face sends at present, of together at most ``most_bytes``.

    When they are more, the one gives way that has been on its way for the longest time: clients
    that read are long done. One alone may be larger; the same bytes for several count once. For one
    thread.
    """

    def __init__(self, settings: Settings) -> None:
        self._most_bytes = max(_LEAST_BYTES, settings.cache_bytes // 2)
        self._bytes = 0
        self._sending: OrderedDict[object, tuple[bytes, Callable[[], object]]] = OrderedDict()
        self._clients = Counter[int]()
        """By the id of the bytes: to how many they are sent."""

    def add(self, content: bytes, give_way: Callable[[], object]) -> object:
        """An answer is on its way; what `remove` takes when it has arrived."""
        delivery = object()
        self._sending[delivery] = (content, give_way)
        self._clients[id(content)] += 1
        if self._clients[id(content)] == 1:
            self._bytes += len(content)
        while self._bytes > self._most_bytes and len(self._clients) > 1:
            oldest = next(iter(self._sending))
            _, give_way = self._sending[oldest]
            self.remove(oldest)
            give_way()
        return delivery

    def remove(self, delivery: object) -> None:
        """It has arrived, or ended; nothing where it has given way."""
        content, _ = self._sending.pop(delivery, (None, None))
        if content is None:
            return
        self._clients[id(content)] -= 1
        if not self._clients[id(content)]:
            del self._clients[id(content)]
            self._bytes -= len(content)
