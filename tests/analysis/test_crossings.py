import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.histories import history, records

from peakline.memory.crossings import find_crossing, marks_passed
from reference.memory_history import buffers, lives_at

marks = st.lists(st.integers(0, 45), max_size=6).map(sorted)


@settings(max_examples=150)
@given(records, marks)
def test_who_lives_across_which_mark_equals_the_slow_answer(rows, marks):
    made = history(rows)
    for number, allocator in enumerate(made.lifetimes.allocators):
        found = find_crossing(made, number, np.array(marks, np.int64))
        slow = {
            one.begin: {place for place, mark in enumerate(marks) if lives_at(one, mark)}
            for one in buffers(rows)
            if one.allocator == allocator
        }
        spans = zip(found.rows.tolist(), found.first.tolist(), found.until.tolist(), strict=True)
        assert {row: set(range(first, until)) for row, first, until in spans} == {
            row: places for row, places in slow.items() if places
        }


def test_the_sums_at_the_marks_leave_out_what_has_no_place():
    rows = [
        {"activity": "allocation", "address": n, "allocated_bytes": 10**n} for n in range(3)
    ] + [{"activity": "deallocation", "address": 1}]
    found = find_crossing(history(rows), 0, np.array([1, 3, 4]))
    assert found.rows.tolist() == [0, 1, 2]
    live = found.live_at_marks(np.array([1, 0, -1]), 2, np.array([1, 10, 100]))
    assert live.tolist() == [[0, 10, 0], [1, 1, 1]]


def test_marks_that_go_back_count_from_where_the_largest_lies():
    assert marks_passed(np.array([2, 1, 9]), 4).tolist() == [0, 0, 2, 2]
    assert marks_passed(np.array([], np.int64), 2).tolist() == [0, 0]
