import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.histories import records
from tests.analysis.records import alloc, free
from tests.each_row import each_row
from tests.figures.profiles import asked_of

from peakline.figures.over_time import places_to_draw, read_usage
from reference.memory_history import in_use

points = st.lists(st.tuples(st.integers(0, 60), st.integers(-3, 9)), min_size=1, max_size=80)


def drawn(time, value, edges):
    """Per slice of time, every value that a step line takes in it."""
    slices = []
    for start, end in zip(edges, [*edges[1:], time[-1] + 1], strict=True):
        before = [v for t, v in zip(time, value, strict=True) if t < start]
        within = [v for t, v in zip(time, value, strict=True) if start <= t < end]
        taken = [*before[-1:], *within]
        slices.append((min(taken), max(taken), taken[-1]) if taken else None)
    return slices


@given(points, st.integers(1, 12))
def test_fewer_points_draw_the_same_picture(values, buckets):
    values.sort(key=lambda point: point[0])
    time, value = [t for t, _ in values], [v for _, v in values]
    kept = places_to_draw(np.array(time), np.array(value), buckets).tolist()
    assert len(kept) <= 4 * buckets
    assert kept == sorted(set(kept))
    assert (kept[0], kept[-1]) == (0, len(time) - 1)
    edges = [time[0] + (time[-1] - time[0]) * k // buckets for k in range(buckets)]
    # The first value of a slice that repeats the one before needs no point of its own.
    few = drawn([time[k] for k in kept], [value[k] for k in kept], edges)
    assert few == drawn(time, value, edges)
    # The first of the largest values is kept, where it is the largest for the first time.
    assert value.index(max(value)) in kept


def test_times_at_the_ends_of_their_range():
    time = np.array([-(2**62), *range(50), 2**62], np.int64)
    assert places_to_draw(time, np.arange(52), 4).tolist() == [0, 1, 50, 51]
    assert places_to_draw(np.zeros(0, np.int64), np.zeros(0, np.int64), 4).tolist() == []


def test_shares_are_thinned_like_bytes():
    time = np.arange(100)
    share = np.linspace(0, 1, 100)
    kept = places_to_draw(time, share, 5)
    assert share[kept].max() == 1.0
    assert kept.size <= 20


@given(records)
def test_the_course_is_the_memory_in_use(rows):
    for asked in asked_of(rows):
        name = asked.peak.allocator
        used = in_use(rows, name)
        reports = any(
            r.get("in_use_bytes") is not None and (r.get("allocator") or "") == name for r in rows
        )
        own = [
            k
            for k, row in enumerate(rows)
            if (row.get("allocator") or "") == name
            and (not reports or row.get("in_use_bytes") is not None)
        ]
        course = read_usage(asked, 1000)
        if len(own) < 2:
            assert course is None
            continue
        told = dict(zip(course.time_ps.tolist(), course.used.tolist(), strict=True))
        assert told.items() <= {k: used[k] for k in own}.items()
        assert told[asked.peak.peak_time_ps] == asked.peak.peak_bytes
        # What is left out repeats what stands before it.
        last = None
        for k in own:
            assert k in told or used[k] == last
            last = used[k]


@each_row("buckets", [1, 7, 400])
def test_the_peak_is_never_lost(buckets):
    size = 10_000
    value = np.random.default_rng(7).integers(0, 10**9, size)
    value[6_543] = 10**12
    time = np.sort(np.random.default_rng(8).integers(0, 10**13, size))
    kept = places_to_draw(time, value, buckets)
    assert 6_543 in kept
    assert kept.size <= 4 * buckets


def test_the_course_begins_with_all_that_is_from_before_the_profile():
    rows = [alloc(n, 1000, is_before=True, time_ps=5) for n in range(6)]
    rows += [free(0, time_ps=7), alloc(9, 300, time_ps=8)]
    course = read_usage(asked_of(rows)[0], 100)
    assert course.time_ps.tolist() == [5, 7, 8]
    assert course.used.tolist() == [6000, 5000, 5300]
    # A later one, as of a second run, hides nothing of the first.
    rows += [alloc(20, 50, is_before=True, time_ps=9), free(9, time_ps=12)]
    assert read_usage(asked_of(rows)[0], 100).used.tolist() == [6000, 5000, 5300, 5350, 5050]
