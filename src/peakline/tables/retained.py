"""How much memory something keeps: the arrays, texts and Arrow buffers that it refers to.

Whoever holds memory declares it. A dataclass does so by its fields, with what it caches beside
them; any other class by ``__retained__``, the names of its attributes that hold something,
separated by spaces. What is neither, nor NumPy's, Arrow's or a container, does not count.
"""

from __future__ import annotations

import array
import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

_SAMPLE = 64
"""Of a longer list only so many items are looked at: they stand for the others."""
_ATOMS = (int, float, complex, bool, str, type(None))


def retained_bytes(*roots: object, undeclared: set[type] | None = None) -> int:
    """Bytes of all arrays, byte strings, Arrow buffers and containers below ``roots``.

    Memory that several refer to counts once. What lies in a mapped file does not count. Long lists
    are estimated. ``undeclared`` gets the classes of the objects that did not count.
    """
    return _Walk(set() if undeclared is None else undeclared).size(roots)


class _Walk:
    def __init__(self, undeclared: set[type]) -> None:
        self._undeclared = undeclared
        self._seen: set[int] = set()
        self._memory: set[int] = set()
        """Addresses of what was counted: Arrow's buffers may be NumPy's."""
        self._alive: list[object] = []
        """Keeps what is looked at from being replaced by something of the same identity."""
        arrow = sys.modules.get("pyarrow")
        # Without it, or while another thread imports it, there are no tables yet.
        self._table: Any = getattr(arrow, "Table", ())
        self._memory_of_arrow: Any = (getattr(arrow, "Buffer", ()), getattr(arrow, "Array", ()))

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
            elif isinstance(item, bytes | bytearray | array.array):
                total += self._once(id(item), memoryview(item).nbytes)
            elif isinstance(item, dict | list | tuple | set | frozenset):
                total += sys.getsizeof(item)
                total += self._items(item, waiting)
            elif isinstance(item, self._table):
                chunks = (chunk for column in item.columns for chunk in column.chunks)
                total += sum(map(self._arrow_array, chunks))
            else:
                waiting.extend(self._declared(item))
        return total

    def _declared(self, item: object) -> Iterable[object]:
        """What an object says that it refers to, as far as it is there."""
        names: str | None = getattr(type(item), "__retained__", None)
        if names is not None:
            held = vars(item)
            return [held.get(name) for name in names.split()]
        if is_dataclass(item):
            if hasattr(item, "__dict__"):
                return list(vars(item).values())
            return [getattr(item, field.name) for field in fields(item)]
        self._undeclared.add(type(item))
        return ()

    def _items(self, items: Any, waiting: list[object]) -> int:
        """Add the items of a container to ``waiting``; or return what many of them take."""
        values: list[object] = list(items.values() if isinstance(items, dict) else items)
        if len(values) <= _SAMPLE or not isinstance(values[0], _ATOMS):
            waiting.extend(values)
            return 0
        picked = values[:: max(1, len(values) // _SAMPLE)]
        return sum(map(sys.getsizeof, picked)) * len(values) // len(picked)

    def _array(self, values: np.ndarray[Any, Any]) -> int:
        base: object = values
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        if isinstance(base, memoryview):
            base = base.obj
        if isinstance(base, np.ndarray):
            return self._once(base.__array_interface__["data"][0], base.nbytes)
        if isinstance(base, bytes | bytearray):
            return self._once(id(base), len(base))
        if isinstance(base, self._memory_of_arrow):
            return self._once(values.__array_interface__["data"][0], values.nbytes)
        return 0

    def _arrow_array(self, values: Any) -> int:
        buffers = [buffer for buffer in values.buffers() if buffer is not None]
        total = sum(self._once(buffer.address, buffer.size) for buffer in buffers)
        dictionary = getattr(values, "dictionary", None)
        return total if dictionary is None else total + self._arrow_array(dictionary)

    def _once(self, address: int, size: int) -> int:
        if address in self._memory:
            return 0
        self._memory.add(address)
        return size
