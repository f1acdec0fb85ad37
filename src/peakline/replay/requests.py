"""What a program requested of an allocator, in the order in which it did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array

MIB = 1 << 20
NO_LIMIT = 1 << 60
"""More bytes than any program can use."""
LARGEST_REQUEST = 1 << 43
"""More than any device has: a request of more bytes is an error of the file."""


@dataclass(frozen=True, eq=False)
class Requests:
    """Allocations and frees.

    ``events`` has the number of a buffer where it is allocated, ``~number`` where it is freed;
    ``size`` is per buffer what it requested, in bytes. A buffer is allocated once.
    """

    events: Int64Array
    size: Int64Array

    def __len__(self) -> int:
        return int(self.events.size)

    def live_bytes(self, granule: int) -> Int64Array:
        """Per event the bytes that are live after it, each request rounded up to ``granule``."""
        rounded = -(-np.maximum(self.size, 0) // granule) * granule
        is_freed = self.events < 0
        buffer = np.where(is_freed, ~self.events, self.events)
        return np.cumsum(np.where(is_freed, -rounded[buffer], rounded[buffer]))

    def most_live(self) -> int:
        """How many buffers are live at a time, at most."""
        change = np.where(self.events < 0, -1, 1)
        return int(np.cumsum(change).max(initial=0))

    def scaled(self, size: Int64Array) -> Requests:
        """The same order of other sizes."""
        return Requests(self.events, size)
