"""Recordings that lack something, or contradict themselves: never a proof, never a wrong "fits"."""

from itertools import count

import numpy as np
import pytest
from tests.replay.test_bfc import SIZES as ALL_SIZES
from tests.replay.test_bfc import random_requests, recorded

import peakline
from peakline.memory.fit.bfc import BfcFit
from peakline.memory.fit.replayed import Recording
from peakline.memory.fit.without import ReplayedPeaks
from peakline.replay.bfc import BfcSettings
from peakline.replay.requests import LARGEST_REQUEST, MIB
from reference import bfc as plain
from reference.xspace_builder import SpaceBuilder

LIMIT = 64 * MIB
SIZES = [3000, 700_000, 2 * MIB, 5 * MIB, 900_000, 40_000, 3 * MIB, 64, 1_200_000, 6 * MIB]


def records():
    """Rows of what a plain allocator does: a free or not, address, size, chunk, bytes in use."""
    allocator, live, result = plain.Bfc(LIMIT), [], []
    for number, size in enumerate(SIZES * 3):
        chunk = allocator.allocate(size)
        live.append((chunk, size))
        result.append((False, chunk.address % 2**48, size, chunk.size, allocator.in_use))
        if number % 3 == 2:
            chunk, requested = live.pop(number % len(live))
            row = (chunk.address % 2**48, requested, chunk.size)
            allocator.free(chunk)
            result.append((True, *row, allocator.in_use))
    return result


def written(path, rows, *, name="GPU_0_bfc"):
    builder = SpaceBuilder()
    line, time = builder.host().line("python", 0), count(1000, 1000)
    for is_free, address, size, chunk, in_use in rows:
        line.event(
            "MemoryDeallocation" if is_free else "MemoryAllocation",
            next(time),
            0,
            {
                "allocator_name": name,
                "bytes_allocated": in_use,
                "bytes_available": LIMIT - in_use,
                "bytes_reserved": 0, "peak_bytes_in_use": in_use, "fragmentation": 0.0,
                "requested_bytes": size, "allocation_bytes": chunk, "addr": address, "tf_op": "op",
                "data_type": 1, "region_type": "temp", "tensor_shape": "[1]",
            },
        )  # fmt: skip
    path.write_bytes(builder.space.SerializeToString())
    return path


def fit_of(path):
    with peakline.open(path) as profile:
        (fit,) = profile.fit(limits=[LIMIT, MIB])
    return fit


def test_a_whole_recording_is_proved_and_exact(tmp_path):
    fit = fit_of(written(tmp_path / "host.xplane.pb", records()))
    assert fit.proof.proved
    assert fit.proof.equal_addresses == fit.proof.allocations == len(SIZES) * 3
    assert [one.fits for one in fit.under] == [True, False]


def without(rows, *places):
    return [row for place, row in enumerate(rows) if place not in places]


def changed(rows, place, **values):
    names = ("is_free", "address", "size", "chunk", "in_use")
    row = dict(zip(names, rows[place], strict=True)) | values
    return [*rows[:place], tuple(row.values()), *rows[place + 1 :]]


ROWS = records()
FREES = [place for place, row in enumerate(ROWS) if row[0]]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(ROWS[7:], id="the begin is missing"),
        pytest.param(without(ROWS, 5), id="an allocation is missing"),
        pytest.param(without(ROWS, FREES[1]), id="a free is missing"),
        pytest.param(changed(ROWS, FREES[0], address=12345), id="a free of an unknown address"),
        pytest.param(changed(ROWS, 6, address=ROWS[4][1]), id="two blocks at one address"),
        pytest.param(changed(ROWS, 6, address=ROWS[4][1] + 256), id="blocks that overlap"),
        pytest.param(changed(ROWS, 9, size=2**62, chunk=2**62), id="a size that is none"),
        pytest.param(
            changed(ROWS, 9, size=LARGEST_REQUEST * 4, chunk=LARGEST_REQUEST * 4),
            id="more than any device has",
        ),
        pytest.param(changed(ROWS, 9, size=0, chunk=0), id="nothing is allocated"),
        pytest.param(changed(ROWS, 8, in_use=1), id="bytes in use that contradict"),
    ],
)
def test_what_lacks_or_contradicts_something_is_no_proof(tmp_path, rows):
    fit = fit_of(written(tmp_path / "host.xplane.pb", rows))
    assert not fit.proof.proved
    assert fit.proof.reason
    assert not fit.exact
    # Below what was in use at a time, nothing fits.
    assert fit.under[1].fits is False
    smallest = fit.limits.may_fit[0][0] if fit.limits.may_fit else fit.limits.searched_from
    assert smallest >= fit.live_peak_bytes


def test_another_allocator_is_not_replayed(tmp_path):
    rows = [(is_free, 2**40 - address // 3, *rest) for is_free, address, *rest in ROWS]
    path = written(tmp_path / "host.xplane.pb", rows, name="cuda_malloc_async")
    with peakline.open(path) as profile:
        assert profile.fit() == ()


def test_a_saving_whose_replay_fails_is_none():
    """Without its second buffer this program fails in the 23 MiB in which it was recorded."""
    requests = random_requests(2, 10, ALL_SIZES[3], 6)
    limit = 23 * MIB
    requests, address, granted = recorded(requests, limit, BfcSettings())
    count = requests.size.size
    recording = Recording(
        requests=requests, row=np.arange(count), address=address, granted=granted,
        event_row=np.arange(len(requests)), before=0, untracked=0, missing=0, start_bytes=0,
    )  # fmt: skip
    replay = BfcFit(recording, limit, is_gpu=False)
    assert replay.is_proved
    peaks = ReplayedPeaks(replay, np.arange(count))
    assert peaks.without([1], 1, 1) is None
    before, after = peaks.without([count - 1], 1, 1)
    assert before >= after
    assert peaks.without([], 1, 1) == (before, before)
