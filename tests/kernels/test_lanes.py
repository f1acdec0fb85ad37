"""Lanes and nearest rows, beside plain searches."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from peakline.kernels.step_timeline import assign_lanes
from peakline.kernels.trace_layout import BEGIN, END, MARK
from peakline.tables.columns import Columns
from peakline.trace.events import Nesting
from peakline.trace.nesting import lanes_of


def _lanes(rows):
    line, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    result = lanes_of(Columns({"line_id": line, "start_ps": start, "duration_ps": length}))
    happens = [(moment // 4, moment % 4) for moment in result.moments.tolist()]
    return result.lane.tolist(), happens


def _searched(rows):
    """The first lane of its line whose open events all contain it."""
    lanes, result = {}, [0] * len(rows)
    ordered = sorted(range(len(rows)), key=lambda n: (*rows[n][:2], -rows[n][2]))
    for n in ordered:
        line, start, length = rows[n]
        number = 0
        while any(end > start and end < start + length for _, end in lanes.get((line, number), ())):
            number += 1
        result[n] = number
        lanes.setdefault((line, number), []).append((start, start + length))
    return result


_ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 25)), max_size=60)


@given(_ROWS)
def test_every_event_lies_on_the_first_lane_on_which_it_nests(rows):
    result, happens = _lanes(rows)
    assert result == _searched(rows)
    spans = {n for n, row in enumerate(rows) if row[2]}
    assert sorted(happens) == sorted(
        [(n, kind) for n in spans for kind in (BEGIN, END)]
        + [(n, MARK) for n in range(len(rows)) if n not in spans]
    )
    is_open = {}
    for event, kind in happens:
        line, start, length = rows[event]
        stack, last = is_open.setdefault((line, result[event]), ([], [0]))
        time = start + length if kind == END else start
        assert time >= last[0], "in order of time on each lane"
        last[0] = time
        if kind == BEGIN:
            stack.append(event)
        elif kind == END:
            assert stack.pop() == event


def test_stairs_take_a_lane_each_and_then_none():
    stairs = [(7, n, 1000) for n in range(1000)]
    result, happens = _lanes([*stairs, (7, 5000, 1), (8, 0, 2**62)])
    assert result == [*range(1000), 0, 0]
    assert len(happens) == 2 * 1002


def test_the_last_moment_of_all():
    most = np.iinfo(np.int64).max
    result, happens = _lanes([(0, most - 5, 5), (0, most - 3, 3), (0, most, 0)])
    assert result == [0, 0, 0]
    assert [event for event, kind in happens if kind == MARK] == [2]


def _nesting(parents):
    nesting = Nesting(None)
    vars(nesting)["parent"] = np.array(parents, np.int32)
    return nesting


def _climbed(parents, event, wanted):
    event = parents[event]
    while event >= 0 and not wanted[event]:
        event = parents[event]
    return event


@given(st.data(), st.integers(0, 80), st.booleans())
def test_it_is_the_first_on_the_way_up(data, size, is_deep):
    # A chain is deeper than the levels that are looked at one by one.
    parents = [
        n - 1 if is_deep else data.draw(st.integers(-1, n - 1), label="parent") for n in range(size)
    ]
    wanted = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    events = data.draw(st.lists(st.integers(0, size - 1))) if size else []
    result = _nesting(parents).around(np.array(events, np.int64), np.array(wanted, np.bool_))
    assert result.tolist() == [_climbed(parents, event, wanted) for event in events]


def test_an_event_is_not_around_itself():
    result = _nesting([-1, 0, 1]).around(np.array([0, 1, 2]), np.array([False, True, True]))
    assert result.tolist() == [-1, -1, 1]


def test_an_event_deeper_than_the_levels_that_are_looked_at_one_by_one():
    nesting, wanted = _nesting(range(-1, 999)), np.zeros(1000, np.bool_)
    events = np.array([999, 500, 4, 3, 0])
    assert nesting.around(events, wanted).tolist() == [-1] * 5
    wanted[3] = True
    assert nesting.around(events, wanted).tolist() == [3, 3, 3, -1, -1]


_FREE = np.iinfo(np.int64).max


def _assigned(start, end, first):
    lanes, result = 2, np.zeros(start.size, np.int64)
    while not assign_lanes(start, end, first, result, np.full(lanes, _FREE)):
        lanes *= 2
    return result.tolist()


def _searched_of_step_timeline(start, end, first):
    result = []
    for device in range(len(first) - 1):
        ends = [0]
        for row in range(first[device], first[device + 1]):
            lane = next((lane for lane, last in enumerate(ends) if start[row] > last), len(ends))
            ends[lane : lane + 1] = [end[row]]
            result.append(lane)
    return result


@given(
    runs=st.lists(st.tuples(st.integers(-3, 30), st.integers(-1, 20)), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=3),
)
def test_lanes_are_the_first_that_are_free(runs, cuts):
    start = np.array([begin for begin, _ in runs], np.int64)
    end = start + np.array([length for _, length in runs], np.int64)
    first = np.array([0, *sorted(min(cut, len(runs)) for cut in cuts), len(runs)], np.int64)
    assert _assigned(start, end, first) == _searched_of_step_timeline(
        start.tolist(), end.tolist(), first.tolist()
    )


def test_many_at_once_have_a_lane_each():
    start = np.full(100, np.iinfo(np.int64).min)
    assert _assigned(start, start, np.array([0, 100])) == list(range(1, 101))
