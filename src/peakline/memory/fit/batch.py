"""Another batch size: the sizes of what has the batch as its first dimension, scaled."""

from __future__ import annotations

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.memory.fit.replayed import Replayed
from peakline.memory.signatures import History, dimensions
from peakline.replay.requests import LARGEST_REQUEST


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
    found = np.minimum(size, LARGEST_REQUEST)
    # Rounded up: a part of an element is one.
    whole, rest = np.divmod(found[chosen], batch)
    whole = np.minimum(whole, LARGEST_REQUEST // max(wanted, 1))
    found[chosen] = np.minimum(whole * wanted + -(-rest * wanted // batch), LARGEST_REQUEST)
    return found
