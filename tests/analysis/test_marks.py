import numpy as np
from tests.analysis.histories import history, steps_at
from tests.analysis.records import alloc, free
from tests.each_row import each_row
from tests.profile.fake import columns_of

from peakline.memory.marks import find_marks
from peakline.tables.tables import check_columns, empty_columns

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
