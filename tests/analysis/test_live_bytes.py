"""Live bytes in groups at some records, against adding up every buffer at every record."""

from __future__ import annotations

import numpy as np
import pytest

from peakline.memory.over_time.live import LiveBytes


def _buffers(seed: int, row_type: type) -> tuple[LiveBytes, list[tuple[int, int, int, int]]]:
    random = np.random.default_rng(seed)
    rows = np.flatnonzero(random.random(200) < 0.5)
    ends = np.where(random.random(rows.size) < 0.2, -1, rows + random.integers(1, 60, rows.size))
    sizes = random.integers(0, 1 << 50, rows.size)
    asked = sizes - sizes // 3
    return LiveBytes(rows, ends.astype(row_type), sizes, asked), list(
        zip(rows.tolist(), ends.tolist(), sizes.tolist(), asked.tolist(), strict=True)
    )


@pytest.mark.parametrize("row_type", [np.int32, np.int64])
@pytest.mark.parametrize("seed", range(8))
def test_live_bytes_are_the_sums_of_the_buffers_that_live_then(seed, row_type):
    found, buffers = _buffers(seed, row_type)
    random = np.random.default_rng(seed + 100)
    group = random.integers(0, 4, found.rows.size)
    low, high = sorted(random.integers(-1, 259, 2).tolist())
    moments = np.sort(random.integers(low, high + 1, 37))
    for requested in (False, True):
        own = found.at(moments, group.astype(np.int8), 4, requested=requested)
        plain = [
            [
                sum(
                    buffer[2 + requested]
                    for buffer, code in zip(buffers, group.tolist(), strict=True)
                    if code == one and buffer[0] <= at and (buffer[1] < 0 or buffer[1] > at)
                )
                for at in moments.tolist()
            ]
            for one in range(4)
        ]
        assert own.tolist() == plain
    for at in (-1, low, high):
        live = [
            place for place, (row, end, *_) in enumerate(buffers) if row <= at < (end % (1 << 60))
        ]
        assert found.live_at(at).tolist() == live


def test_no_moments_and_no_buffers():
    nothing = np.zeros(0, np.int64)
    empty = LiveBytes(nothing, nothing, nothing, nothing)
    assert empty.at(np.array([-1, 3]), nothing, 2).tolist() == [[0, 0], [0, 0]]
    assert empty.at(nothing, nothing, 2).shape == (2, 0)
