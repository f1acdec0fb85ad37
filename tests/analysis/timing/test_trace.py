"""The trace of a profile: order, nesting and self time, steps."""

import gzip
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder

import peakline
from peakline.kernels.trace_layout import MOST_ROWS
from peakline.kernels.trace_nesting import ends
from peakline.tables.columns import Names
from peakline.timing.steps.slow import own_in
from peakline.trace.events import (
    Nesting,
    Trace,
    TraceLine,
    TracePlane,
    nesting_of,
    trace_of,
)
from peakline.trace.nesting import nest_lines, self_times
from peakline.trace.steps import step_places_of

DATA = Path(__file__).parents[2] / "data"
LAST = np.iinfo(np.int64).max


def names_of(trace):
    return trace.name.to_list()


class TestOrder:
    def test_events_stand_by_line_and_time_the_longest_first(self, opened):
        space = SpaceBuilder()
        plane = space.host()
        plane.line("a", 1).event("late", 9, 1).event("short", 2, 1).event("long", 2, 5)
        plane.line("b", 1).event("other", 0, 1)
        trace = trace_of(opened(space))
        assert names_of(trace) == ["long", "short", "late", "other"]
        assert trace.rows(slice(None)).tolist() == [2, 1, 0, 3]
        assert trace.places(np.array([0, 1, 2, 3])).tolist() == [2, 1, 0, 3]
        assert [(line.name, line.first, line.last) for line in trace.lines] == [
            ("a", 0, 3), ("b", 3, 4),
        ]  # fmt: skip
        assert trace.lines_of(np.array([0, 2, 3])).tolist() == [0, 0, 1]

    def test_no_time_is_so_far_away_that_a_span_has_no_room(self, opened):
        space = SpaceBuilder()
        space.host().line("a", 1).event("never", -LAST, 5).event("ever", LAST, LAST)
        trace = trace_of(opened(space))
        assert trace.span() == (1 - 2**62 + 2**60, 2**62 - 1)
        assert (trace.end - trace.start).tolist() == [5, 2**60]

    def test_events_without_a_time_are_left_out_and_counted(self, opened):
        space = SpaceBuilder()
        space.host().line("a").event("sum", num_occurrences=3).event("real", 5, 2)
        trace = trace_of(opened(space))
        assert (names_of(trace), trace.untimed) == (["real"], 1)
        assert trace.rows(np.array([0])).tolist() == [1]

    def test_a_negative_length_is_none_and_an_endless_one_is_as_long_as_any_may_be(self, opened):
        space = SpaceBuilder()
        space.host().line("a").event("back", 5, -3).event("endless", 7, LAST)
        assert trace_of(opened(space)).end.tolist() == [5, 7 + 2**60]

    def test_a_profile_without_events_has_an_empty_trace(self, opened):
        space = SpaceBuilder()
        space.host().line("a")
        profile = opened(space)
        assert trace_of(profile).size == 0
        assert trace_of(profile).span() == (0, 0)
        assert nesting_of(profile).row.size == step_places_of(profile).size == 0


class TestNesting:
    def test_each_part_may_be_read_first(self, opened):
        space = SpaceBuilder()
        space.host().line("a").event("a", 0, 10).event("b", 5, 10).event("in b", 12, 2)
        trace = trace_of(opened(space))
        for names in permutations(("parent", "row", "own_ps")):
            nesting = Nesting(trace)
            assert {name: getattr(nesting, name).tolist() for name in names} == {
                "parent": [-1, -1, 1], "row": [0, 1, 2], "own_ps": [10, 8, 2],
            }  # fmt: skip

    def test_more_events_at_once_than_there_are_rows_share_the_last(self):
        count = MOST_ROWS + 5
        start = np.arange(count, dtype=np.int64)
        end = start + count
        parent, row = np.empty(count, np.int32), np.empty(count, np.uint16)
        own = np.empty(count, np.int64)
        nest_lines(start, end, np.array([0, count]), np.array([True]), parent, row, own)
        assert row.tolist() == [*range(MOST_ROWS), *[MOST_ROWS - 1] * 5]


def slow_nesting(events):
    """Parent, row and self time of sorted ``(start, end)``, by looking at all events before."""
    parents, rows, own = [], [], []
    for number, (start, end) in enumerate(events):
        chain, open_events = -1, []
        for before in range(number):
            b, e = events[before]
            if e > b and e >= end and e >= start and not _closed(events, before, number):
                chain, open_events = before, [*open_events, before]
        parents.append(chain)
        row = 0 if chain < 0 else rows[chain] + 1
        while any(
            rows[before] == row and events[before][1] > start and before != chain
            for before in range(number)
        ):
            row += 1
        rows.append(row)
    for number, (start, end) in enumerate(events):
        inside = set()
        for child, parent in enumerate(parents):
            if parent == number:
                inside |= set(range(*events[child]))
        own.append(end - start - len(inside))
    return parents, rows, own


def _closed(events, before, number):
    """Whether an event in between ended the reach of ``before``: it began and outlasted it."""
    return any(events[k][1] > events[before][1] for k in range(before + 1, number))


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), max_size=14))
def test_nesting_is_that_of_a_slow_reference(pairs):
    events = sorted(((b, b + n) for b, n in pairs), key=lambda e: (e[0], -e[1]))
    start = np.array([b for b, _ in events], np.int64)
    end = np.array([e for _, e in events], np.int64)
    parent, row = np.empty(start.size, np.int32), np.empty(start.size, np.uint16)
    own = np.empty(start.size, np.int64)
    nest_lines(start, end, np.array([0, start.size]), np.array([True]), parent, row, own)
    assert (parent.tolist(), row.tolist(), own.tolist()) == slow_nesting(events)
    # Of the same events, every second place of a longer trace, alone.
    event = np.arange(0, 2 * start.size, 2, dtype=np.int32)
    places, total, alone = np.repeat(start, 2), np.empty_like(own), np.empty_like(own)
    line = np.array([0, start.size]), np.array([True])
    self_times(places, np.repeat(end, 2), event, *line, total, alone)
    assert (total.tolist(), alone.tolist()) == ((end - start).tolist(), own.tolist())


@settings(max_examples=200)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), max_size=9), max_size=3),
    st.lists(st.integers(0, 32), max_size=6, unique=True),
)
def test_self_time_in_windows_is_that_of_a_slow_reference(lines, edges):
    lines = [sorted(((b, b + n) for b, n in line), key=lambda e: (e[0], -e[1])) for line in lines]
    windows = list(zip(sorted(edges)[::2], sorted(edges)[1::2], strict=False))
    expected, first = [], 0
    for line in lines:
        own = slow_nesting(line)[2]
        expected += [
            (first + at, own[at])
            for at, (start, _) in enumerate(line)
            if any(begin <= start < end for begin, end in windows)
        ]
        first += len(line)
    flat = np.array([event for line in lines for event in line], np.int64).reshape(-1, 2)
    bounds = np.cumsum([0, *map(len, lines)]).tolist()
    trace = Trace(
        "events", (TracePlane(0, "", "host", None),),
        tuple(TraceLine(n, 0, "", n, lo, hi) for n, (lo, hi) in enumerate(pairwise(bounds))),
        flat[:, 0].copy(), flat[:, 1].copy(), Names.constant("e", len(flat)), None, 0,
    )  # fmt: skip
    begin, end = np.array(windows, np.int64).reshape(-1, 2).T
    events, own = own_in(Nesting(trace), begin, end)
    assert list(zip(events.tolist(), own.tolist(), strict=True)) == expected


def test_own_times_of_a_deep_stack_and_of_a_line_that_does_not_nest():
    start, end = np.arange(600), 2000 - np.arange(600)
    event, total, own = np.arange(600, dtype=np.int32), np.empty(600, int), np.empty(600, int)
    nests = np.array([True, False])
    self_times(start, end, event, np.array([0, 500, 600]), nests, total, own)
    assert own.tolist() == [2] * 499 + [1002] + total[500:].tolist()


def test_ends_of_events_and_which_lines_are_out_of_order():
    start, length = np.array([5, 7, 3, 3, 1, 2]), np.array([-3, LAST, 4, 5, 9, 1])
    end = np.empty(6, np.int64)
    odd = np.empty(3, np.bool_)
    least, most = ends(start, length, np.array([0, 2, 4, 6]), 1000, end, odd)
    assert end.tolist() == [5, 1000, 7, 8, 10, 3]
    assert (odd.tolist(), least, most) == ([False, True, False], 0, 1000)


class TestSteps:
    def test_every_event_has_the_row_of_its_step(self, opened):
        space = SpaceBuilder()
        line = space.host().line("a", 1)
        for number in range(2):
            line.event("train", 100 * number, 50, {"_r": 1, "step_num": 7 + number})
            line.event("work", 100 * number + 10, 5)
        line.event("after", 500, 1)
        assert step_places_of(opened(space)).tolist() == [0, 0, 1, 1, -1]

    @each_row("steps_first", [False, True])
    def test_a_real_profile_gives_the_same_whatever_is_asked_first(self, tmp_path, steps_first):
        source = next(DATA.glob("sessions/tf2_cnn/**/*.xplane.pb.gz"))
        path = tmp_path / "vm.xplane.pb"
        path.write_bytes(gzip.decompress(source.read_bytes()))
        with peakline.open(path) as profile:
            places = step_places_of(profile) if steps_first else None
            trace = trace_of(profile)
            places = step_places_of(profile) if places is None else places
            events = profile.columns("events")
            rows = trace.rows(slice(None))
            assert trace.size == events.rows == 25_583
            assert (trace.start == events.array("start_ps")[rows]).all()
            assert (trace.end - trace.start == events.array("duration_ps")[rows]).all()
            ids = profile.columns("steps").array("step_id")
            known = events.is_valid("step_id")[rows]
            assert ((places >= 0) == known).all()
            assert (ids[places[known]] == events.array("step_id")[rows][known]).all()


def test_executions_without_a_thread_do_not_nest():
    with peakline.open(DATA / "run_metadata" / "tf1_cnn_2.pb.gz") as profile:
        trace, nesting = trace_of(profile), nesting_of(profile)
        assert [line.nests for line in trace.lines] == [False]
        assert (nesting.parent == -1).all()
        assert (nesting.own_ps == trace.end - trace.start).all()
        # What ran at once is drawn side by side.
        assert nesting.row.max() > 0


def test_executions_of_ops_are_a_trace_too():
    with peakline.open(DATA / "run_metadata" / "tf1_grpc.pb.gz") as profile:
        trace = trace_of(profile)
        assert (trace.source, trace.size, len(trace.planes)) == ("op_runs", 47, 3)
        assert {plane.kind for plane in trace.planes} == {"host"}
        assert (step_places_of(profile) == 0).all()
        runs = profile.columns("op_runs")
        assert (runs.array("start_ps")[trace.rows(slice(None))] == trace.start).all()
