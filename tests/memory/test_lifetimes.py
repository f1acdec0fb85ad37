"""How long buffers live, where steps begin among the records, and frees that come late."""

from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.memory.records import alloc, events, free, history, steps_at
from tests.tables.fake import columns_of

from peakline.findings.memory_answer import explain_memory
from peakline.kernels.memory_layout import (
    ALLOCATION,
    DEALLOCATION,
    OTHER,
    UNTRACKED_ALLOCATION,
    UNTRACKED_DEALLOCATION,
)
from peakline.memory.lifetimes import match_lifetimes
from peakline.memory.marks import find_marks
from peakline.tables.tables import check_columns, empty_columns


def matched(rows):
    result = match_lifetimes(events(rows))
    return result.begin.tolist(), result.end.tolist()


def test_a_deallocation_ends_the_allocation_at_its_address():
    begin, end = matched([alloc(1, 10), alloc(2, 10), free(1), free(2)])
    assert begin == [-1, -1, 0, 1]
    assert end == [2, 3, -1, -1]


def test_an_address_can_be_used_again():
    begin, end = matched([alloc(1, 10), free(1), alloc(1, 20), free(1)])
    assert begin == [-1, 0, -1, 2]
    assert end == [1, -1, 3, -1]


def test_a_deallocation_after_the_end_is_unmatched():
    begin, _ = matched([alloc(1, 10), free(1), free(1)])
    assert begin == [-1, 0, -1]


def test_a_double_allocation_ends_the_earlier_buffer_and_the_latest_is_freed():
    begin, end = matched([alloc(1, 10), alloc(1, 20), free(1), free(1)])
    assert begin == [-1, 0, 1, -1]
    assert end == [1, 2, -1, -1]


def test_equal_addresses_of_two_allocators_are_two_buffers():
    rows = [alloc(1, 10, allocator="b"), alloc(1, 10, allocator="a"), free(1, allocator="b")]
    result = match_lifetimes(events(rows))
    assert result.allocators == ("a", "b")
    assert result.allocator.tolist() == [1, 0, 1]
    assert result.end.tolist() == [2, -1, -1]


def test_an_allocation_id_counts_before_the_address():
    rows = [alloc(1, 10, allocation_id=7), alloc(1, 10, allocation_id=8), free(1, allocation_id=7)]
    assert matched(rows)[1] == [2, -1, -1]


def test_an_id_is_not_an_address():
    assert matched([alloc(7, 10), free(None, allocation_id=7)])[0] == [-1, -1]


def test_addresses_use_all_64_bits():
    high = 2**64 - 1
    assert matched([alloc(high, 10), free(high)])[1] == [1, -1]


def test_records_without_a_key_are_untracked_and_other_activities_are_left_alone():
    rows = [
        alloc(None, 10),
        free(None),
        {"activity": "reservation", "address": 1},
        alloc(1, 1),
        free(1),
    ]
    assert match_lifetimes(events(rows)).kind.tolist() == [
        UNTRACKED_ALLOCATION, UNTRACKED_DEALLOCATION, OTHER, ALLOCATION, DEALLOCATION,
    ]  # fmt: skip


@each_row("live", [1, 3000])
def test_many_addresses_with_few_or_many_live_at_a_time(live):
    rows = []
    for number in range(6000):
        rows.append(alloc(number * 256, 1))
        if number >= live:
            rows.append(free((number - live) * 256))
    result = match_lifetimes(events(rows))
    ended = np.flatnonzero(result.begin >= 0)
    address = np.array([row["address"] for row in rows])
    assert ended.size == 6000 - live
    assert (address[result.begin[ended]] == address[ended]).all()
    assert (result.end[result.begin[ended]] == ended).all()


def test_live_after_a_moment():
    rows = [alloc(1, 10), alloc(2, 10), free(1), alloc(1, 10, allocator="b")]
    result = match_lifetimes(events(rows))
    assert result.live_after(np.array([1, -1])).tolist() == [0, 1]
    assert result.live_after(np.array([2, 3])).tolist() == [1, 3]
    assert result.live_after(np.array([-1, -1])).tolist() == []


def test_no_records():
    result = match_lifetimes(events([]))
    assert result.allocators == ()
    assert result.live_after(np.zeros(0, np.int64)).tolist() == []


def found(rows, **options):
    answer = explain_memory(events(rows), empty_columns("steps"), **options)
    return [finding for finding in answer.findings if finding.kind == "deferred_frees"]


def deferred(address, returned=None, **more):
    return free(address, deferred=True, returned_sequence=returned, **more)


def bounds(rows):
    [finding] = found(rows)
    return finding.evidence["peak_bytes"], finding.evidence["upper_peak_bytes"]


def test_the_upper_bound_holds_memory_until_the_deallocation_took_effect():
    rows = [alloc(1, 10), deferred(1, returned=4), alloc(2, 20), free(2), {"sequence": 4} | free(9)]
    [finding] = found(rows)
    assert finding.severity == "info"
    assert finding.evidence == {
        "allocator": "", "deferred": 1, "completed": 1, "peak_bytes": 20, "upper_peak_bytes": 30,
    }  # fmt: skip
    assert finding.title.endswith("deferred; the peak lies between 20 and 30 bytes")


def test_memory_that_is_back_before_the_peak_is_not_worth_a_word():
    rows = [alloc(1, 10), deferred(1, returned=2), {"sequence": 3} | alloc(2, 20)]
    assert found(rows) == []


def test_another_allocators_memory_is_left_out():
    rows = [alloc(1, 10), alloc(1, 50, allocator="b"), deferred(1), alloc(2, 5)]
    assert bounds(rows) == (10, 15)


def test_no_finding_without_deferred_deallocations_of_live_buffers():
    assert found([alloc(1, 10), free(1, deferred=False), alloc(2, 20)]) == []
    assert found([alloc(1, 10), deferred(2)]) == []


def test_an_allocator_that_reports_its_use_has_no_bounds():
    assert found([alloc(1, 10, in_use_bytes=10), deferred(1, in_use_bytes=0)]) == []


class _Action(NamedTuple):
    address: int
    size: int
    deferred: bool
    wait: int | None


_ACTIONS = st.builds(
    _Action, st.integers(1, 3), st.integers(0, 50), st.booleans(), st.none() | st.integers(1, 6)
)


@settings(max_examples=200)
@given(st.lists(_ACTIONS, min_size=1, max_size=25))
def test_the_bound_equals_a_slow_one(actions):
    rows, live, held, lower, upper = [], {}, [], 0, 0
    for number, action in enumerate(actions):
        held = [(until, size) for until, size in held if until is None or until > number]
        if action.address not in live:
            live[action.address] = action.size
            rows.append(alloc(action.address, action.size))
        else:
            size = live.pop(action.address)
            until = None if action.wait is None else number + action.wait
            if action.deferred:
                held.append((until, size))
                rows.append(deferred(action.address, returned=until))
            else:
                rows.append(free(action.address))
        lower = max(lower, sum(live.values()))
        upper = max(upper, sum(live.values()) + sum(size for _, size in held))
    if upper > lower:
        assert bounds(rows) == (lower, upper)
    else:
        assert found(rows) == []


NONE = empty_columns("steps")


def turns(count, ops="abcdef", start=()):
    """A loop that allocates and frees one buffer per op, after the records ``start``."""
    rows = list(start)
    for _ in range(count):
        for number, op in enumerate(ops):
            rows += [alloc(number, 10, op=op, shape="[1]"), free(number)]
    return rows


def test_a_step_ends_where_the_next_one_starts_and_the_last_one_at_its_end():
    marks = find_marks(history([alloc(n, 1) for n in range(20)]), 0, steps_at(2, 7, 11, 15))
    assert marks.rows.tolist() == [7, 11, 16]
    assert (marks.start, marks.found_by) == (2, "steps")
    assert marks.ids == (0, 1, 2)
    assert [marks.label(step) for step in range(3)] == ["train 0", "train 1", "train 2"]


def test_steps_in_any_order_are_taken_in_order_of_time():
    made = history([alloc(n, 1) for n in range(10)])
    marks = find_marks(made, 0, steps_at(0, 3, 6, 9).take(np.array([2, 0, 1])))
    assert marks.rows.tolist() == [3, 6, 10]
    assert marks.ids == (0, 1, 2)


def test_steps_that_miss_most_records_are_not_those_of_the_allocator():
    made = history([alloc(n, 1) for n in range(10)])
    assert find_marks(made, 0, steps_at(6, 7, 8, 9)) is None
    assert find_marks(made, 0, steps_at(4, 6, 8, 9)) is not None


def test_the_period_is_found_where_there_are_no_steps():
    marks = find_marks(history(turns(8)), 0, NONE)
    assert marks.found_by == "period"
    assert marks.rows.tolist() == [12 * turn for turn in range(1, 8)]
    assert marks.start == 0
    assert marks.detail == "7 repetitions of about 6 allocations; each begins with a [1]"
    assert marks.label(3) == "3"


def test_a_turn_begins_where_the_least_is_in_memory():
    rows = []
    for _ in range(6):
        rows += [alloc(1, 10, op="a"), alloc(2, 20, op="b"), free(1), alloc(3, 5, op="c")]
        rows += [free(2), free(3)]
    # The first record of a turn cut off: now c, with b in memory, comes first.
    assert find_marks(history(rows[3:]), 0, NONE).detail.endswith("each begins with a of 10 B")


def test_setup_before_the_loop_and_odd_allocations_in_it_do_not_matter():
    rows = turns(12, start=[alloc(100 + n, 5, op=f"init{n}") for n in range(9)])
    for turn in (3, 7):
        rows.insert(9 + 12 * turn + 5, alloc(900 + turn, 1, op="log"))
    marks = find_marks(history(rows), 0, NONE)
    assert len(marks) == 11
    assert marks.start == 9


def test_layers_of_one_step_are_not_steps():
    layers = [alloc(n, 1, op=op) for n, op in enumerate("ab" * 10)]
    rest = [alloc(100 + n, 1, op=f"back{n}") for n in range(40)]
    assert find_marks(history(layers + rest), 0, NONE) is None


def test_one_signature_alone_makes_no_period():
    assert find_marks(history(turns(8, ops="aa")), 0, NONE) is None


def test_four_turns_are_too_few():
    assert find_marks(history(turns(4)), 0, NONE) is None
    assert find_marks(history(turns(5)), 0, NONE) is not None


def test_nameless_runs_give_way_to_a_period_of_several_of_them():
    rows = turns(8)
    runs = [
        {"step_id": n, "name": str(n), "start_ps": start, "end_ps": start + 5}
        for n, start in enumerate(range(0, 12 * 8 + 1, 6)[:-1])
    ]
    steps = check_columns("steps", columns_of("steps", runs))
    assert find_marks(history(rows), 0, steps).found_by == "period"
    named = [run | {"name": f"train {run['step_id']}"} for run in runs]
    steps = check_columns("steps", columns_of("steps", named))
    assert find_marks(history(rows), 0, steps).found_by == "steps"


def test_inferred_steps_are_called_so():
    made = history([alloc(n, 1) for n in range(10)])
    runs = [
        {
            "step_id": n,
            "name": f"f {n}",
            "start_ps": 3 * n,
            "end_ps": 3 * n + 3,
            "found_by": "function",
        }
        for n in range(3)
    ]
    marks = find_marks(made, 0, check_columns("steps", columns_of("steps", runs)))
    assert marks.detail == "the profile's 3 steps, inferred from runs of functions"


def test_numbers_drawn_at_random_are_no_names():
    made = history([alloc(n, 1) for n in range(10)])
    runs = [
        {"step_id": 7 * 10**15 + n, "name": str(7 * 10**15 + n), "start_ps": n, "end_ps": n}
        for n in range(10)
    ]
    assert find_marks(made, 0, check_columns("steps", columns_of("steps", runs))).label(4) == "4"


@each_row("stride", [1, 2, 3, 7])
def test_thinned_marks_keep_the_last_one(stride):
    marks = find_marks(history([alloc(n, 1) for n in range(30)]), 0, steps_at(*range(22)))
    thin = marks.every(stride)
    assert len(thin) == -(-21 // stride)
    assert (thin.rows[-1], thin.names[-1]) == (marks.rows[-1], "train 20")
    assert set(np.diff(thin.ids)) <= {stride}
    assert [thin.number(place) for place in range(len(thin))] == list(thin.ids)
