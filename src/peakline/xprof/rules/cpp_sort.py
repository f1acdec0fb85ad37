"""``std::sort`` of libstdc++ (``bits/stl_algo.h``), which leaves equal elements in an order of its
own: what XProf sorts by one number comes out so.
"""

from __future__ import annotations

from collections.abc import Sequence

_THRESHOLD = 16
"""Shorter pieces are left to the insertion sort at the end."""


def order_descending(keys: Sequence[float]) -> list[int]:
    """The places of the keys in the order in which ``std::sort`` puts them, the largest first."""
    order = list(range(len(keys)))
    if len(order) > 1:
        _Sorting(keys, order).run()
    return order


class _Sorting:
    """One sort of ``order``, the places of ``keys``."""

    def __init__(self, keys: Sequence[float], order: list[int]) -> None:
        self._keys, self._order = keys, order

    def run(self) -> None:
        count = len(self._order)
        pieces = [(0, count, 2 * (count.bit_length() - 1))]
        while pieces:
            first, last, depth = pieces.pop()
            while last - first > _THRESHOLD:
                if depth == 0:
                    self._heap_sort(first, last)
                    break
                depth -= 1
                cut = self._partition(first, last)
                # The right piece is sorted first; each touches only itself.
                pieces.append((cut, last, depth))
                last = cut
        self._insertion_sort(min(count, _THRESHOLD))

    def _partition(self, first: int, last: int) -> int:
        """Put the median of three to the front, and split by it; where the right part begins."""
        order, keys = self._order, self._keys
        self._median_first(first, first + 1, first + (last - first) // 2, last - 1)
        pivot = keys[order[first]]
        low, high = first + 1, last
        while True:
            while keys[order[low]] > pivot:
                low += 1
            high -= 1
            while pivot > keys[order[high]]:
                high -= 1
            if low >= high:
                return low
            order[low], order[high] = order[high], order[low]
            low += 1

    def _median_first(self, to: int, one: int, two: int, three: int) -> None:
        order = self._order
        a, b, c = (self._keys[order[at]] for at in (one, two, three))
        if a > b:
            result = two if b > c else three if a > c else one
        else:
            result = one if a > c else three if b > c else two
        order[to], order[result] = order[result], order[to]

    def _insertion_sort(self, guarded: int) -> None:
        """Sort what is nearly sorted; equal elements stay as they are."""
        order, keys = self._order, self._keys
        for at in range(1, len(order)):
            moved = order[at]
            key = keys[moved]
            if at < guarded and key > keys[order[0]]:
                order[1 : at + 1] = order[:at]
                order[0] = moved
                continue
            hole = at
            while key > keys[order[hole - 1]]:
                order[hole] = order[hole - 1]
                hole -= 1
            order[hole] = moved

    def _heap_sort(self, first: int, last: int) -> None:
        order = self._order
        length = last - first
        for parent in range((length - 2) // 2, -1, -1):
            self._sift(first, parent, length, order[first + parent])
        for end in range(length - 1, 0, -1):
            value = order[first + end]
            order[first + end] = order[first]
            self._sift(first, 0, end, value)

    def _sift(self, first: int, hole: int, length: int, value: int) -> None:
        """Let the hole sink to the bottom, and the value rise from there."""
        order, keys = self._order, self._keys
        top, child = hole, hole
        while child < (length - 1) // 2:
            child = 2 * (child + 1)
            if keys[order[first + child]] > keys[order[first + child - 1]]:
                child -= 1
            order[first + hole] = order[first + child]
            hole = child
        if length % 2 == 0 and child == (length - 2) // 2:
            child = 2 * (child + 1)
            order[first + hole] = order[first + child - 1]
            hole = child - 1
        parent = (hole - 1) // 2
        while hole > top and keys[order[first + parent]] > keys[value]:
            order[first + hole] = order[first + parent]
            hole = parent
            parent = (hole - 1) // 2
        order[first + hole] = value
