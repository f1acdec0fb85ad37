from statistics import median

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profile.fake import columns_of

from peakline.memory.savings.op_use import read_op_use
from peakline.tables.tables import check_columns


def runs(*rows):
    made = [
        {"op_run_id": n, "name": name, "start_ps": start, "duration_ps": took, "op_type": kind}
        for n, (name, kind, start, took) in enumerate(rows)
    ]
    return check_columns("op_runs", columns_of("op_runs", made))


def edges(*pairs, **more):
    made = [{"source": source, "target": target, **more} for source, target in pairs]
    return check_columns("edges", columns_of("edges", made))


def test_control_edges_and_functions_read_nothing():
    made = runs(("a", "Add", 0, 1), ("b", "Mul", 30, 1))
    assert read_op_use(made, edges(("a", "b"), is_control=True)).uses == {}
    assert read_op_use(made, edges(("a", "b"), function="f")).uses == {}


def test_a_second_row_of_the_same_work_is_left_out():
    made = runs(("a", "Add", 0, 5), ("a", "Add", 0, 50))
    made.data["is_duplicate"] = np.array([False, True])
    assert read_op_use(made).costs == {"a": 5}


def reached(name, pairs, hands_on, found):
    for source, target in pairs:
        if source == name and target not in found:
            found.add(target)
            if target in hands_on:
                reached(target, pairs, hands_on, found)
    return found


names = st.sampled_from("abcdef")
made_runs = st.lists(
    st.tuples(names, st.sampled_from(["Add", "Identity"]), st.integers(0, 50), st.integers(0, 9)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=150)
@given(made_runs, st.lists(st.tuples(names, names), min_size=1, max_size=12))
def test_costs_and_uses_equal_the_slow_ones(rows, pairs):
    found = read_op_use(runs(*rows), edges(*pairs))
    ran = {name for name, *_ in rows}
    hands_on = {name for name, kind, *_ in rows if kind == "Identity"}
    assert found.costs == {
        name: int(median([took for other, _, _, took in rows if other == name])) for name in ran
    }
    slow = {name: reached(name, pairs, hands_on, set()) for name in ran}
    assert {name: times.tolist() for name, times in found.uses.items()} == {
        name: sorted(start for other, _, start, _ in rows if other in readers)
        for name, readers in slow.items()
        if readers and readers <= ran
    }
