"""What announces a report, searched for in one pass: the cost of a log that reports nothing."""

from __future__ import annotations

import numpy as np

from peakline.arrays import UInt8Array
from peakline.kernels.literals import next_hit


class Literals:
    """Literals of at least three bytes, prepared for `next_hit`."""

    def __init__(self, *literals: bytes) -> None:
        self._least = least = min(map(len, literals))
        self._text = np.frombuffer(b"".join(literals), np.uint8)
        self._bounds = np.cumsum([0, *map(len, literals)]).astype(np.int64)
        self._shift = np.full(1 << 15, least - 2, np.uint8)
        for literal in literals:
            for end in range(2, least):
                key = (literal[end - 2] << 10 ^ literal[end - 1] << 5 ^ literal[end]) & 0x7FFF
                self._shift[key] = min(int(self._shift[key]), least - 1 - end)

    def find(self, data: UInt8Array, start: int) -> int:
        """Where the first of the literals begins in ``data[start:]``, or -1."""
        return next_hit(data, start, self._shift, self._least, self._text, self._bounds)
