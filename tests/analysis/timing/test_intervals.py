"""Sets of time against one that holds every picosecond."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from peakline.trace.intervals import (
    covered,
    intersection,
    total,
    union,
    within,
    without,
)

PAIRS = st.lists(st.tuples(st.integers(-20, 60), st.integers(-3, 15)), max_size=12)


def intervals(pairs):
    begin = np.array([begin for begin, _ in pairs], np.int64)
    return union(begin, begin + np.array([length for _, length in pairs], np.int64))


def moments(pairs):
    return {moment for begin, length in pairs for moment in range(begin, begin + length)}


def held(found):
    """The moments of a set, and that it is as sets are: sorted, disjoint, nothing empty."""
    begin, end = (part.tolist() for part in found)
    assert all(b < e for b, e in zip(begin, end, strict=True))
    assert all(e < b for e, b in zip(end, begin[1:], strict=False))
    return {moment for b, e in zip(begin, end, strict=True) for moment in range(b, e)}


@given(PAIRS)
def test_a_union_holds_what_its_intervals_hold(pairs):
    found = intervals(pairs)
    assert held(found) == moments(pairs)
    assert total(found) == len(moments(pairs))


@given(PAIRS, PAIRS)
def test_two_sets(one, other):
    first, second = intervals(one), intervals(other)
    assert held(without(first, second)) == moments(one) - moments(other)
    assert held(intersection(first, second)) == moments(one) & moments(other)


@given(PAIRS, PAIRS)
def test_how_much_of_windows_is_covered(pairs, windows):
    begin = np.array([begin for begin, _ in windows], np.int64)
    end = begin + np.array([length for _, length in windows], np.int64)
    expected = [
        len(moments(pairs) & set(range(begin, begin + length))) for begin, length in windows
    ]
    assert covered(intervals(pairs), begin, end).tolist() == expected


@given(PAIRS, st.integers(-25, 80), st.integers(0, 50))
def test_the_part_between_two_moments(pairs, begin, length):
    found = within(intervals(pairs), begin, begin + length)
    assert held(found) == moments(pairs) & set(range(begin, begin + length))
