"""Where the pixels of a stretch of time begin and end."""

from __future__ import annotations

import numpy as np

from peakline.arrays import Int64Array, IntpArray


def pixel_edges(start_ps: int, end_ps: int, width: int) -> Int64Array:
    """Where pixels begin, and where the last one ends; exact for any span."""
    span = end_ps - start_ps
    step, rest = divmod(span, width)
    pixel = np.arange(width + 1, dtype=np.int64)
    return start_ps + pixel * step + pixel * rest // width


def wide_pixels(start_ps: int, end_ps: int, width: int) -> tuple[Int64Array, IntpArray]:
    """As `pixel_edges` of pixels of a picosecond or more, and which of them each pixel is in: all
    that are within one show what is in it, its most and its least.
    """
    edges = pixel_edges(start_ps, end_ps, width)
    begins, pixel = np.unique(edges[:-1], return_inverse=True)
    return np.append(begins, edges[-1]), pixel
