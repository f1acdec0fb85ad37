"""Call stacks: each distinct one once."""

from __future__ import annotations

from typing import Any

import numpy as np

from peakline.arrays import Int64Array
from peakline.formats.common.callers import Frame, callers, stacks_table
from peakline.formats.torch_snapshot.unpickle import text
from peakline.tables.columns import Columns


class Stacks:
    """Numbers lists of frames, innermost first, as snapshots hold them."""

    __retained__ = "_frames _frame_of _numbers _number_of _held"

    def __init__(self) -> None:
        self._frames: dict[Frame, int] = {}
        self._frame_of: dict[int, int] = {}
        self._numbers: dict[tuple[int, ...], int] = {}
        self._number_of: dict[int, int] = {}
        self._held: list[object] = []

    def number(self, lists: list[Any]) -> Int64Array:
        """The stack of every list of frames, -1 for one that is missing or empty.

        Snapshots share the lists, and lists share their frames: each object is looked at once.
        """
        ids = np.fromiter(map(id, lists), np.int64, len(lists))
        _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
        numbers = np.zeros(first.size, np.int64)
        # In the order of the rows: that of the ids is another one every time.
        for place in np.argsort(first).tolist():
            numbers[place] = self._one(lists[first[place]])
        return numbers[inverse]

    def _one(self, frames: Any) -> int:
        known = self._number_of.get(id(frames))
        if known is not None:
            return known
        number = -1
        if isinstance(frames, list) and frames:
            codes = tuple(map(self._frame, frames))
            number = self._numbers.setdefault(codes, len(self._numbers))
        self._number_of[id(frames)] = number
        # An id is only good as long as its object lives.
        self._held.append(frames)
        return number

    def _frame(self, frame: Any) -> int:
        known = self._frame_of.get(id(frame))
        if known is not None:
            return known
        values: Frame = ("", "", 0)
        if isinstance(frame, dict):
            name, file, line = (frame.get(field) for field in ("name", "filename", "line"))
            values = (
                text(name),
                text(file),
                # Unknown lines are 0 or the largest number that a size_t holds.
                line if isinstance(line, int) and 0 <= line < 2**31 else 0,
            )
        code = self._frames.setdefault(values, len(self._frames))
        self._frame_of[id(frame)] = code
        self._held.append(frame)
        return code

    def release(self) -> None:
        """Forget the objects; no more lists will be numbered."""
        self._frame_of.clear()
        self._number_of.clear()
        self._held.clear()

    def callers(self) -> list[str | None]:
        """The caller of every stack."""
        return callers(*self._rows(), list(self._frames))

    def table(self) -> Columns:
        """The ``stacks`` table."""
        bounds, codes = self._rows()
        counts = np.diff(bounds)
        stack = np.repeat(np.arange(counts.size, dtype=np.int64), counts)
        depth = np.arange(codes.size, dtype=np.int64) - np.repeat(bounds[:-1], counts)
        return stacks_table(stack, depth, list(self._frames), codes)

    def _rows(self) -> tuple[Int64Array, Int64Array]:
        """Where the frames of each stack begin, and the end; and all frames by number."""
        counts = np.fromiter(map(len, self._numbers), np.int64, len(self._numbers))
        bounds = np.cumsum([0, *counts.tolist()], dtype=np.int64)
        every = (code for stack in self._numbers for code in stack)
        return bounds, np.fromiter(every, np.int64, int(bounds[-1]))
