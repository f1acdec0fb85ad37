"""Where the pixels of a stretch of time begin and end."""

from __future__ import annotations

import numpy as np

from peakline.arrays import Int64Array


def pixel_edges(start_ps: int, end_ps: int, width: int) -> Int64Array:
    """Where pixels begin, and where the last one ends; exact for any span."""
    span = end_ps - start_ps
    step, rest = divmod(span, width)
    pixel = np.arange(width + 1, dtype=np.int64)
    return start_ps + pixel * step + pixel * rest // width
