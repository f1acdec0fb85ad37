"""Lanes of a step's timeline, beside a plain search for the first that is free."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from peakline.kernels.step_timeline import assign_lanes

_FREE = np.iinfo(np.int64).max


def _assigned(start, end, first):
    lanes, found = 2, np.zeros(start.size, np.int64)
    while not assign_lanes(start, end, first, found, np.full(lanes, _FREE)):
        lanes *= 2
    return found.tolist()


def _searched(start, end, first):
    found = []
    for device in range(len(first) - 1):
        ends = [0]
        for row in range(first[device], first[device + 1]):
            lane = next((lane for lane, last in enumerate(ends) if start[row] > last), len(ends))
            ends[lane : lane + 1] = [end[row]]
            found.append(lane)
    return found


@given(
    runs=st.lists(st.tuples(st.integers(-3, 30), st.integers(-1, 20)), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=3),
)
def test_lanes_are_the_first_that_are_free(runs, cuts):
    start = np.array([begin for begin, _ in runs], np.int64)
    end = start + np.array([length for _, length in runs], np.int64)
    first = np.array([0, *sorted(min(cut, len(runs)) for cut in cuts), len(runs)], np.int64)
    assert _assigned(start, end, first) == _searched(start.tolist(), end.tolist(), first.tolist())


def test_many_at_once_have_a_lane_each():
    start = np.full(100, np.iinfo(np.int64).min)
    assert _assigned(start, start, np.array([0, 100])) == list(range(1, 101))
