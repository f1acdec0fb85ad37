"""In what order XProf shows what is equally long: that in which its sort leaves it.

It sorts with ``std::partial_sort`` of libstdc++, which makes a heap of the first ones, exchanges
its top for what comes before it, and takes the heap apart. Equal ones are in no order of their
own then, but always in the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Item = TypeVar("_Item")


def largest(items: list[_Item], count: int, key: Callable[[_Item], float]) -> list[_Item]:
    """The ``count`` items with the largest keys, those first; made in time n log n."""
    heap = [(key(item), item) for item in items]
    size = min(count, len(heap))
    if not size:
        return []
    for parent in range((size - 2) // 2, -1, -1) if size > 1 else ():
        _sift(heap, parent, size, heap[parent])
    for place in range(size, len(heap)):
        if heap[place][0] > heap[0][0]:
            value, heap[place] = heap[place], heap[0]
            _sift(heap, 0, size, value)
    for last in range(size - 1, 0, -1):
        value, heap[last] = heap[last], heap[0]
        _sift(heap, 0, last, value)
    return [item for _, item in heap[:size]]


def _sift(
    heap: list[tuple[float, _Item]], hole: int, size: int, value: tuple[float, _Item]
) -> None:
    """Put ``value`` where the hole ends up that moves down to a leaf, then up again."""
    top = child = hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if heap[child][0] > heap[child - 1][0]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * (child + 1)
        heap[hole] = heap[child - 1]
        hole = child - 1
    parent = (hole - 1) // 2
    while hole > top and heap[parent][0] > value[0]:
        heap[hole] = heap[parent]
        hole = parent
        parent = (hole - 1) // 2
    heap[hole] = value
