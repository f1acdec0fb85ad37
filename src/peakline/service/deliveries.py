"""Answers on their way to clients, which are in memory until they are read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from peakline.service.settings import Settings

_LEAST_BYTES = 64 << 20


class Deliveries:
    """The answers that a face sends at present, of together at most ``most_bytes``.

    When they are more, the one gives way that has been on its way for the longest time: clients
    that read are long done. One alone may be larger. For one thread.
    """

    def __init__(self, settings: Settings) -> None:
        self._most_bytes = max(_LEAST_BYTES, settings.cache_bytes // 2)
        self._bytes = 0
        self._sending: OrderedDict[object, tuple[int, Callable[[], object]]] = OrderedDict()

    def add(self, size: int, give_way: Callable[[], object]) -> object:
        """An answer of ``size`` bytes is on its way; what `remove` takes when it has arrived."""
        delivery = object()
        self._sending[delivery] = (size, give_way)
        self._bytes += size
        while self._bytes > self._most_bytes and len(self._sending) > 1:
            _, (size, give_way) = self._sending.popitem(last=False)
            self._bytes -= size
            give_way()
        return delivery

    def remove(self, delivery: object) -> None:
        """It has arrived, or ended; nothing where it has given way."""
        size, _ = self._sending.pop(delivery, (0, None))
        self._bytes -= size
