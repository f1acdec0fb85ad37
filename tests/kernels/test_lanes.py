"""Lanes on which events nest, beside a plain search of all lanes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from peakline.kernels.trace_layout import BEGIN, END, MARK
from peakline.tables.columns import Columns
from peakline.trace.nesting import lanes_of


def _lanes(rows):
    line, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    found = lanes_of(Columns({"line_id": line, "start_ps": start, "duration_ps": length}))
    happens = [(moment // 4, moment % 4) for moment in found.moments.tolist()]
    return found.lane.tolist(), happens


def _searched(rows):
    """The first lane of its line whose open events all contain it."""
    lanes, found = {}, [0] * len(rows)
    ordered = sorted(range(len(rows)), key=lambda n: (*rows[n][:2], -rows[n][2]))
    for n in ordered:
        line, start, length = rows[n]
        number = 0
        while any(end > start and end < start + length for _, end in lanes.get((line, number), ())):
            number += 1
        found[n] = number
        lanes.setdefault((line, number), []).append((start, start + length))
    return found


_ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 25)), max_size=60)


@given(_ROWS)
def test_every_event_lies_on_the_first_lane_on_which_it_nests(rows):
    found, happens = _lanes(rows)
    assert found == _searched(rows)
    spans = {n for n, row in enumerate(rows) if row[2]}
    assert sorted(happens) == sorted(
        [(n, kind) for n in spans for kind in (BEGIN, END)]
        + [(n, MARK) for n in range(len(rows)) if n not in spans]
    )
    is_open = {}
    for event, kind in happens:
        line, start, length = rows[event]
        stack, last = is_open.setdefault((line, found[event]), ([], [0]))
        time = start + length if kind == END else start
        assert time >= last[0], "in order of time on each lane"
        last[0] = time
        if kind == BEGIN:
            stack.append(event)
        elif kind == END:
            assert stack.pop() == event


def test_stairs_take_a_lane_each_and_then_none():
    stairs = [(7, n, 1000) for n in range(1000)]
    found, happens = _lanes([*stairs, (7, 5000, 1), (8, 0, 2**62)])
    assert found == [*range(1000), 0, 0]
    assert len(happens) == 2 * 1002


def test_the_last_moment_of_all():
    most = np.iinfo(np.int64).max
    found, happens = _lanes([(0, most - 5, 5), (0, most - 3, 3), (0, most, 0)])
    assert found == [0, 0, 0]
    assert [event for event, kind in happens if kind == MARK] == [2]
