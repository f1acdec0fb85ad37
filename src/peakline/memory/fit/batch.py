"""Another batch size: the sizes of what has the batch as its first dimension, scaled."""

from __future__ import annotations

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.memory.fit.replayed import Replayed
from peakline.memory.signatures import History, dimensions


def scaling_buffers(replayed: Replayed, history: History, batch: int) -> BoolArray:
    """The buffers that scale with the batch.

    Those whose first dimension is a multiple of it (tokens are batch times length) and that are
    freed again: what lives to the end are parameters, whatever their shape.
    """
    shapes = history.events.names("shape")
    scales = np.array(
        [_scales(dimensions(text), batch) for text in shapes.values] + [False], np.bool_
    )
    return replayed.scaling(scales[shapes.codes])


def _scales(shape: tuple[int, ...] | None, batch: int) -> bool:
    return shape is not None and len(shape) > 0 and shape[0] >= batch and shape[0] % batch == 0


def scaled(size: Int64Array, chosen: BoolArray, batch: int, wanted: int) -> Int64Array:
    """The sizes, those of the chosen buffers for another batch size."""
    found = size.copy()
    # Rounded up: a part of an element is one.
    found[chosen] = -(-size[chosen] * wanted // batch)
    return found
