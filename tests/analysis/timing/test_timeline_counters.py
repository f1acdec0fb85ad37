"""Counters as lanes: exact extremes at any width."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.records import alloc, events, free
from tests.analysis.timing.timelines import profile_of

from peakline.errors import UsageError
from peakline.timing.timeline.counters import counters_of, make_counter
from peakline.trace.pixels import pixel_edges


def pixels(counter, start, end, width):
    found = counter.pixels(start, end, width)
    columns = (found.low, found.high, found.last)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def slow(time, value, start, end, width):
    """Pixel by pixel: the values in it, and the one that it begins with."""
    edges = pixel_edges(start, end, width).tolist()
    answer = []
    for lo, hi in pairwise(edges):
        upto = [v for t, v in zip(time, value, strict=True) if t <= lo]
        inside = [v for t, v in zip(time, value, strict=True) if lo <= t < hi]
        values = upto[-1:] + inside
        last = (inside or upto)[-1:] or [None]
        answer.append((min(values), max(values), last[0]) if values else (None, None, None))
    return answer


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(-9, 9)), max_size=80),
    st.integers(-50, 320),
    st.integers(1, 400),
    st.integers(1, 40),
)
def test_pixels_are_those_of_the_reference(samples, start, length, width):
    samples = sorted(samples, key=lambda sample: sample[0])
    time, value = [t for t, _ in samples], [v for _, v in samples]
    counter = make_counter("g", "n", np.array(time, np.int64), np.array(value, np.float64))
    found = [
        tuple(None if math.isnan(v) else v for v in pixel)
        for pixel in pixels(counter, start, start + length, width)
    ]
    assert found == slow(time, value, start, start + length, width)


def test_extremes_of_a_long_series_are_exact():
    value = np.random.default_rng(3).normal(size=100_000)
    counter = make_counter("g", "n", np.arange(value.size), value)
    assert counter.level_first.size == 6
    for low, high, last in pixels(counter, 0, value.size, 1):
        assert (low, high, last) == (value.min(), value.max(), value[-1])
    found = counter.pixels(17, 90_001, 7)
    edges = pixel_edges(17, 90_001, 7)
    assert found.high.tolist() == [value[lo:hi].max() for lo, hi in pairwise(edges)]


def test_what_is_no_number_is_left_out():
    counter = make_counter("g", "n", np.arange(3), np.array([1.0, np.nan, np.inf]))
    assert counter.value.tolist() == [1.0]


def test_memory_in_use_is_a_counter_of_each_allocator():
    records = events([alloc(1, 10), alloc(2, 5), free(1), alloc(1, 2, allocator="other")])
    found = counters_of(profile_of(records=records))
    assert [(one.group, one.name, one.value.tolist()) for one in found] == [
        ("memory in use", "", [10, 15, 5]),
        ("memory in use", "other", [2]),
    ]


def test_the_counters_of_a_profile_by_series():
    rows = [
        {"plane_id": 0, "name": "c", "series": s, "time_ps": t, "value": v}
        for s, t, v in [("x", 5, 1), ("y", 1, 7), ("x", 2, 4)]
    ]
    found = counters_of(profile_of([("a", 0, 1)], counters=rows))
    assert [(one.group, one.name, one.time_ps.tolist(), one.value.tolist()) for one in found] == [
        ("/host:CPU", "c x", [2, 5], [4, 1]),
        ("/host:CPU", "c y", [1], [7]),
    ]


def test_an_empty_viewport_is_refused():
    with pytest.raises(UsageError):
        make_counter("g", "n", np.arange(3), np.arange(3)).pixels(3, 3, 4)
