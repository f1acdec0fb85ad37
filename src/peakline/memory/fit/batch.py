"""Another batch size: the sizes of what has the batch as its first dimension, scaled."""

from __future__ import annotations

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.memory.fit.recording import Recording
from peakline.memory.signatures import History, dimensions
from peakline.replay.requests import Requests


def scaling_buffers(recording: Recording, history: History, batch: int) -> BoolArray:
    """The buffers of a recording that scale with the batch.

    Those whose first dimension is a multiple of it (tokens are batch times length) and that are
    freed again: what lives to the end are parameters, whatever their shape.
    """
    shapes = history.events.names("shape")
    scales = np.array(
        [_scales(dimensions(text), batch) for text in shapes.values] + [False],
        np.bool_,
    )
    events = recording.requests.events
    is_freed = np.zeros(recording.requests.size.size, np.bool_)
    is_freed[~events[events < 0]] = True
    found: BoolArray = scales[shapes.codes[recording.row]] & is_freed
    return found


def _scales(shape: tuple[int, ...] | None, batch: int) -> bool:
    return shape is not None and len(shape) > 0 and shape[0] >= batch and shape[0] % batch == 0


def scaled(requests: Requests, chosen: BoolArray, batch: int, wanted: int) -> Requests:
    """The requests with the chosen buffers for another batch size."""
    size: Int64Array = requests.size.copy()
    mine = np.flatnonzero(chosen)
    # Rounded up: a part of an element is one.
    size[mine] = -(-size[mine] * wanted // batch)
    return Requests(requests.events, size)
