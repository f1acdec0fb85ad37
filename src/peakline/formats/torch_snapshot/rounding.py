"""How large a block PyTorch's caching allocator makes for a request.

Source: ``CUDACachingAllocator.cpp`` (round_size) and ``AllocatorConfig.cpp`` in pytorch/pytorch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from peakline.arrays import Int64Array

_GRANULE = 512
_FIRST_INTERVAL = 20
_INTERVALS = 16


def round_sizes(sizes: Int64Array, divisions: Mapping[object, object]) -> Int64Array:
    """Bytes of the blocks for requests of ``sizes``: multiples of 512, 0 staying 0.

    ``divisions`` is the setting ``roundup_power2_divisions``: by size in MiB (a power of two,
    as text) into how many steps a doubling is divided; 0 and 1 mean none.
    """
    steps = np.zeros(_INTERVALS, np.int64)
    for interval in range(_INTERVALS):
        value = divisions.get(str(1 << interval), 0)
        if isinstance(value, int) and 1 < value <= 1 << 30:
            steps[interval] = value
    plain = -(-np.maximum(sizes, 0) // _GRANULE) * _GRANULE
    if not steps.any():
        return plain
    # Exact, unlike a logarithm: the exponent of the float that a size below 2**53 is.
    power = np.frexp(np.maximum(sizes, 1).astype(np.float64))[1].astype(np.int64) - 1
    step = steps[np.clip(power - _FIRST_INTERVAL, 0, _INTERVALS - 1)]
    floor = np.left_shift(1, np.clip(power, 0, 62))
    width = floor // np.maximum(step, 1)
    stepped = np.where(width > 0, -(-sizes // np.maximum(width, 1)) * width, 2 * floor)
    return np.where((step > 1) & (sizes > _GRANULE * step), stepped, plain)
