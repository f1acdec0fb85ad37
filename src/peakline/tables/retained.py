"""How much memory something keeps: the arrays, texts and Arrow buffers that it refers to."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["retained_bytes"]

_SAMPLE = 64
"""Of a longer list only so many items are looked at: they stand for the others."""
_ATOMS = (int, float, complex, bool, str, type(None))
_OURS = "peakline."


def retained_bytes(*roots: object) -> int:
    """Bytes of all arrays, byte strings, Arrow buffers and containers below ``roots``.

    Memory that several refer to counts once. What lies in a mapped file, and objects of other
    libraries but NumPy and Arrow, do not count. Long lists are estimated.
    """
    return _Walk().size(roots)


class _Walk:
    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._memory: set[int] = set()
        """Addresses of what was counted: Arrow's buffers may be NumPy's."""
        self._alive: list[object] = []
        """Keeps what is looked at from being replaced by something of the same identity."""

    def size(self, root: object) -> int:
        total, waiting = 0, [root]
        while waiting:
            item = waiting.pop()
            if isinstance(item, _ATOMS):
                total += sys.getsizeof(item)
                continue
            if id(item) in self._seen:
                continue
            self._seen.add(id(item))
            self._alive.append(item)
            if isinstance(item, np.ndarray):
                total += self._array(item)
            elif isinstance(item, bytes | bytearray):
                total += self._once(id(item), len(item))
            elif isinstance(item, dict | list | tuple | set | frozenset):
                total += sys.getsizeof(item)
                total += self._items(item, waiting)
            elif type(item).__module__.startswith("pyarrow"):
                total += self._arrow(item)
            else:
                waiting.extend(_parts(item))
        return total

    def _items(self, items: Any, waiting: list[object]) -> int:
        """Add the items of a container to ``waiting``; or return what many of them take."""
        values: list[object] = list(items.values() if isinstance(items, dict) else items)
        if len(values) <= _SAMPLE or not isinstance(values[0], _ATOMS):
            waiting.extend(values)
            return 0
        picked = values[:: max(1, len(values) // _SAMPLE)]
        return sum(map(sys.getsizeof, picked)) * len(values) // len(picked)

    def _array(self, array: np.ndarray[Any, Any]) -> int:
        base: object = array
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        if isinstance(base, memoryview):
            base = base.obj
        if isinstance(base, np.ndarray):
            return self._once(base.__array_interface__["data"][0], base.nbytes)
        if isinstance(base, bytes | bytearray):
            return self._once(id(base), len(base))
        if type(base).__module__.startswith("pyarrow"):
            return self._once(array.__array_interface__["data"][0], array.nbytes)
        return 0

    def _arrow(self, item: Any) -> int:
        columns = getattr(item, "columns", None)
        if columns is None:
            return 0
        total = 0
        for column in columns:
            for chunk in column.chunks:
                total += self._arrow_array(chunk)
        return total

    def _arrow_array(self, array: Any) -> int:
        buffers = [buffer for buffer in array.buffers() if buffer is not None]
        total = sum(self._once(buffer.address, buffer.size) for buffer in buffers)
        dictionary = getattr(array, "dictionary", None)
        return total if dictionary is None else total + self._arrow_array(dictionary)

    def _once(self, address: int, size: int) -> int:
        if address in self._memory:
            return 0
        self._memory.add(address)
        return size


def _parts(item: object) -> Iterator[object]:
    """What an object of ours refers to."""
    if not type(item).__module__.startswith(_OURS):
        return
    if isinstance(getattr(item, "__dict__", None), dict):
        yield from list(vars(item).values())
    for owner in type(item).__mro__:
        for name in getattr(owner, "__slots__", ()):
            yield getattr(item, name, None)
    if isinstance(item, Mapping) and not hasattr(item, "__dict__"):
        yield from item.values()
