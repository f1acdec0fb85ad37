"""The nearest event around another that is wanted, beside a climb from parent to parent."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from peakline.trace.events import Nesting


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
    found = _nesting(parents).around(np.array(events, np.int64), np.array(wanted, np.bool_))
    assert found.tolist() == [_climbed(parents, event, wanted) for event in events]


def test_an_event_is_not_around_itself():
    found = _nesting([-1, 0, 1]).around(np.array([0, 1, 2]), np.array([False, True, True]))
    assert found.tolist() == [-1, -1, 1]


def test_an_event_deeper_than_the_levels_that_are_looked_at_one_by_one():
    nesting, wanted = _nesting(range(-1, 999)), np.zeros(1000, np.bool_)
    events = np.array([999, 500, 4, 3, 0])
    assert nesting.around(events, wanted).tolist() == [-1] * 5
    wanted[3] = True
    assert nesting.around(events, wanted).tolist() == [3, 3, 3, -1, -1]
