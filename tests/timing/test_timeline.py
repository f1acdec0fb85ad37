"""Tiles against a slow reference: whatever the events and the viewport, nothing is lost. Search by
name, and the details of one event.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.memory.records import alloc, events, free
from tests.timing.timelines import items_of, profile_of, slow_tile, timeline

import peakline
from peakline.errors import NotFoundError, UsageError
from peakline.timing.timeline import draw_tile, timeline_of, tracks_of
from peakline.timing.timeline.counters import counters_of, make_counter
from peakline.timing.timeline.details import Children, details_of, place_of
from peakline.timing.timeline.excerpt import excerpt_of
from peakline.timing.timeline.search import search
from peakline.timing.timeline.tiles import level_of
from peakline.trace.pixels import pixel_edges

EVENTS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.one_of(st.integers(-40, 200), st.integers(-(10**6), 10**6)),
        st.one_of(st.just(0), st.integers(0, 30), st.integers(0, 10**5)),
    ),
    max_size=40,
)


@settings(max_examples=300)
@given(
    st.lists(EVENTS, max_size=3), st.integers(-300, 300), st.integers(1, 2000), st.integers(1, 50)
)
def test_a_tile_is_that_of_the_reference(lines, start, length, width):
    result = timeline(*lines)
    end = start + length
    tracks = tracks_of(result).tolist()
    tile = draw_tile(result, start, end, width)
    bits = level_of(start, end, width)
    assert tile.resolution_ps == (2**bits if bits >= 0 else 0)
    assert items_of(tile) == slow_tile(result, start, end, bits, tracks)


def _dense(seed, count):
    """A line dense enough for several levels: bursts of short events, long ones, nested ones."""
    rng = np.random.default_rng(seed)
    begins = np.cumsum(rng.choice([0, 1, 3, 50, 4000], count, p=[0.2, 0.4, 0.3, 0.08, 0.02]))
    lengths = rng.choice([0, 1, 2, 40, 9000], count, p=[0.3, 0.4, 0.2, 0.08, 0.02])
    return [("e", int(b), int(n)) for b, n in zip(begins, lengths, strict=True)]


@each_row("seed", range(4))
def test_levels_answer_as_the_events_do(seed):
    result = timeline(_dense(seed, 4000), _dense(seed + 9, 300))
    assert result.level_bits.size > 3
    first, last = result.trace.span()
    rng = np.random.default_rng(seed)
    tracks = tracks_of(result).tolist()
    for width in (1, 7, 60, 500):
        for _ in range(6):
            start = int(rng.integers(first - 10, last))
            end = start + int(rng.integers(1, last - first))
            tile = draw_tile(result, start, end, width)
            bits = level_of(start, end, width)
            assert items_of(tile) == slow_tile(result, start, end, bits, tracks)


def test_a_tile_of_dense_data_is_as_large_as_what_is_drawn():
    result = timeline([("e", 3 * k, 2) for k in range(60_000)])
    assert draw_tile(result, 0, 180_000, 100).items <= 2 * 128 * result.tracks
    assert result.nbytes < 12 * 60_000


def test_events_that_need_more_rows_than_there_are_are_all_drawn():
    result = timeline([("e", k, 10_000) for k in range(5000)])
    assert result.overlaps.tolist() == [False] * 4095 + [True]
    tile = draw_tile(result, 12_000, 12_001, 1)
    assert int(tile.count.sum()) == 5000 - 2001
    tile = draw_tile(result, 0, 4096, 1)
    assert int(tile.count.sum()) == 4096


def test_only_the_asked_lines_and_rows():
    result = timeline([("a", 0, 10), ("b", 1, 5)], [("c", 0, 4)])
    assert tracks_of(result, [0], rows=1).tolist() == [0]
    assert tracks_of(result, [1]).tolist() == [2]
    assert items_of(draw_tile(result, 0, 10, 5, [2])) == [[(0, 4, 1, 4, 2)]]


def test_neighbours_are_those_of_the_same_row():
    result = timeline([("a", 0, 10), ("b", 1, 2), ("c", 5, 2), ("d", 20, 1)])
    assert [result.neighbours(event) for event in range(4)] == [(-1, 3), (-1, 2), (1, -1), (0, -1)]


def test_more_items_than_wanted_are_refused():
    result = timeline([("a", 10 * k, 5) for k in range(100)])
    with pytest.raises(UsageError, match="100 items, more than 99: request fewer lines"):
        draw_tile(result, 0, 1000, 1000, most=99)


@each_row(("start", "end", "width"), [(5, 5, 10), (5, 4, 10), (0, 5, 0)])
def test_an_empty_viewport_is_refused(start, end, width):
    with pytest.raises(UsageError):
        draw_tile(timeline([("a", 0, 1)]), start, end, width)


def test_a_tile_of_no_events():
    result = timeline()
    assert (result.tracks, draw_tile(result, 0, 10, 5).items) == (0, 0)


LINES = (
    [("MatMul", 0, 10), ("add", 12, 2), ("matmul_2", 20, 5)],
    [("add", 1, 1), ("MatMul", 30, 4)],
)
WHOLE = {"start_ps": 0, "end_ps": 40, "width": 4}


def names(results, result):
    return {
        results.trace.name.values[code]: count
        for code, count in zip(result.names.tolist(), result.counts.tolist(), strict=True)
    }


def test_a_text_is_looked_for_in_any_case():
    results = timeline(*LINES)
    result = search(results, "matmul", **WHOLE)
    assert names(results, result) == {"MatMul": 2, "matmul_2": 1}
    assert (result.total, result.first, result.last) == (3, 0, 4)
    assert result.bins.tolist() == [1, 0, 1, 1]


def test_a_pattern_may_match_a_part():
    result = timeline(*LINES)
    assert names(result, search(result, r"\d$", is_pattern=True, **WHOLE)) == {"matmul_2": 1}
    with pytest.raises(UsageError, match="RE2"):
        search(result, "(", is_pattern=True, **WHOLE)


def test_only_the_asked_lines():
    result = timeline(*LINES)
    assert names(result, search(result, "a", lines=[1], **WHOLE)) == {"add": 1, "MatMul": 1}


@each_row(
    ("at", "previous", "following"), [(0, -1, 0), (1, 0, 2), (20, 0, 2), (21, 2, 4), (31, 4, -1)]
)
def test_next_and_previous_from_a_time(at, previous, following):
    result = search(timeline(*LINES), "matmul", at_ps=at, **WHOLE)
    assert (result.previous, result.next) == (previous, following)


def test_events_of_one_time_are_stepped_through():
    result = search(timeline([("a", 5, 0), ("a", 5, 0)], [("a", 5, 0)]), "a", event=1, **WHOLE)
    assert (result.previous, result.next) == (0, 2)


def test_what_reaches_into_the_viewport_is_on_its_first_pixel():
    result = search(timeline(*LINES), "matmul", start_ps=5, end_ps=25, width=2)
    assert result.bins.tolist() == [1, 1]
    assert search(timeline(*LINES), "matmul", start_ps=10, end_ps=12, width=2).bins.sum() == 0


def test_a_name_that_no_event_has():
    result = search(timeline(*LINES), "conv", **WHOLE)
    assert (result.total, result.first, result.next, result.bins.sum()) == (0, -1, -1, 0)


def test_all_about_one_event():
    profile = profile_of(
        [("step", 0, 100), ("op", 10, 30), ("k", 12, 5), ("k", 20, 5), ("c", 40, 0), ("op", 50, 9)]
    )
    result = details_of(profile, timeline_of(profile), 1)
    assert (result.name, result.start_ps, result.end_ps, result.own_ps) == ("op", 10, 40, 20)
    assert (result.parents, result.previous, result.next, result.row) == ((0,), -1, 5, 1)
    assert (result.child_count, result.child_ps) == (3, 10)
    assert result.children == (Children("k", 2, 10), Children("c", 1, 0))
    assert (result.step, result.stats) == (None, ())
    first = details_of(profile, timeline_of(profile), 0)
    assert (first.stats, first.parents) == ((("k", "v"),), ())


def test_an_id_is_the_row_in_the_table():
    result = timeline([("late", 5, 1), ("early", 1, 1)])
    assert result.trace.name[place_of(result, 0)] == "late"
    with pytest.raises(NotFoundError, match="no event 2 with a time; there are 2"):
        place_of(result, 2)
    with pytest.raises(NotFoundError):
        place_of(timeline([("a", 0, 1)]), -1)


def test_the_step_of_a_recorded_event(sessions):
    (path,) = (sessions / "tf2_cnn").rglob("*.xplane.pb*")
    with peakline.open(path) as profile:
        result = timeline_of(profile)
        step = search(result, "train", start_ps=0, end_ps=1, width=1).first
        details = details_of(profile, result, step)
        assert details.step == (0, "train 0")
        assert ("step_num", "0") in details.stats


def excerpt(result, start, end, **more):
    return excerpt_of(result.trace, result.nesting, start, end, **more)


def rows(line):
    return [(row.name or "-", row.depth, row.start_ps, row.end_ps, row.hidden) for row in line.rows]


def test_events_are_nested_and_gaps_told():
    result = timeline([("a", 0, 40), ("b", 5, 10), ("c", 6, 2), ("d", 60, 30)])
    (line,) = excerpt(result, 0, 100).lines
    assert rows(line) == [
        ("a", 0, 0, 40, 0),
        ("b", 1, 5, 15, 0),
        ("c", 2, 6, 8, 0),
        ("-", 0, 40, 60, 0),
        ("d", 0, 60, 90, 0),
        ("-", 0, 90, 100, 0),
    ]
    assert (line.events, line.busy_ps, line.hidden) == (4, 70, 0)


def test_what_is_not_shown_is_counted_where_it_lies():
    result = timeline(
        [("a", 0, 400), ("b", 5, 100), ("c", 6, 20), ("c", 7, 2), ("e", 200, 3), ("f", 500, 1)]
    )
    answer = excerpt(result, 0, 1000, limit=2)
    (line,) = answer.lines
    assert [row for row in rows(line) if row[0] != "-"] == [
        ("a", 0, 0, 400, 1),
        ("b", 1, 5, 105, 2),
    ]
    assert (line.hidden, answer.events, answer.shown) == (1, 6, 2)


def test_only_events_of_a_length():
    answer = excerpt(timeline([("a", 0, 400), ("b", 5, 100), ("c", 6, 20)]), 0, 400, min_ps=100)
    assert [row.name for row in answer.lines[0].rows] == ["a", "b"]


def test_every_line_gets_its_share_and_a_quiet_one_leaves_its_own():
    busy = [("x", 10 * k, 5 + k % 3) for k in range(50)]
    answer = excerpt(timeline(busy, [("y", 0, 1)], busy), 0, 500, limit=9)
    assert [sum(row.event >= 0 for row in line.rows) for line in answer.lines] == [4, 1, 4]


def test_of_too_many_lines_the_busiest_are_shown():
    answer = excerpt(timeline([("x", 0, 1)], [("y", 0, 50)], [("z", 0, 2)]), 0, 100, limit=1)
    assert [len([r for r in line.rows if r.event >= 0]) for line in answer.lines] == [0, 1, 0]


def test_of_equal_ones_the_outer_is_shown():
    answer = excerpt(
        timeline([("outer", 0, 10), ("inner", 0, 10), ("last", 0, 10)]), 0, 10, limit=2
    )
    assert [(row.name, row.depth, row.hidden) for row in answer.lines[0].rows] == [
        ("outer", 0, 0),
        ("inner", 1, 1),
    ]


def test_lines_without_events_in_the_stretch_are_left_out():
    answer = excerpt(timeline([("a", 0, 5)], [("b", 50, 5)]), 40, 60)
    assert [(line.line, line.busy_ps) for line in answer.lines] == [(1, 5)]
    assert excerpt(timeline([("a", 0, 5)]), 40, 60).lines == ()


def test_only_the_asked_lines_of_timeline_excerpt():
    answer = excerpt(timeline([("a", 0, 5)], [("b", 0, 5)]), 0, 5, lines=[1])
    assert [line.line for line in answer.lines] == [1]


def pixels(counter, start, end, width):
    result = counter.pixels(start, end, width)
    columns = (result.low, result.high, result.last)
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
    result = [
        tuple(None if math.isnan(v) else v for v in pixel)
        for pixel in pixels(counter, start, start + length, width)
    ]
    assert result == slow(time, value, start, start + length, width)


def test_extremes_of_a_long_series_are_exact():
    value = np.random.default_rng(3).normal(size=100_000)
    counter = make_counter("g", "n", np.arange(value.size), value)
    assert counter.level_first.size == 6
    for low, high, last in pixels(counter, 0, value.size, 1):
        assert (low, high, last) == (value.min(), value.max(), value[-1])
    result = counter.pixels(17, 90_001, 7)
    edges = pixel_edges(17, 90_001, 7)
    assert result.high.tolist() == [value[lo:hi].max() for lo, hi in pairwise(edges)]


def test_what_is_no_number_is_left_out():
    counter = make_counter("g", "n", np.arange(3), np.array([1.0, np.nan, np.inf]))
    assert counter.value.tolist() == [1.0]


def test_memory_in_use_is_a_counter_of_each_allocator():
    records = events([alloc(1, 10), alloc(2, 5), free(1), alloc(1, 2, allocator="other")])
    result = counters_of(profile_of(records=records))
    assert [(one.group, one.name, one.value.tolist()) for one in result] == [
        ("memory in use", "", [10, 15, 5]),
        ("memory in use", "other", [2]),
    ]


def test_the_counters_of_a_profile_by_series():
    rows = [
        {"plane_id": 0, "name": "c", "series": s, "time_ps": t, "value": v}
        for s, t, v in [("x", 5, 1), ("y", 1, 7), ("x", 2, 4)]
    ]
    result = counters_of(profile_of([("a", 0, 1)], counters=rows))
    assert [(one.group, one.name, one.time_ps.tolist(), one.value.tolist()) for one in result] == [
        ("/host:CPU", "c x", [2, 5], [4, 1]),
        ("/host:CPU", "c y", [1], [7]),
    ]


def test_an_empty_viewport_is_refused_of_timeline_counters():
    with pytest.raises(UsageError):
        make_counter("g", "n", np.arange(3), np.arange(3)).pixels(3, 3, 4)
