"""Memory by scope and by op."""

from collections import Counter
from statistics import median

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.memory.records import alloc, events
from tests.tables.fake import FakeReader, columns_of
from tests.timing.traces import HOST_PLANE, profile_of

from peakline.memory.origins.op_events import op_events_of
from peakline.memory.over_time.trees import SPECIAL, scopes_of, without_small
from peakline.memory.peak.explained import PeakBuffer
from peakline.memory.savings.op_use import read_op_use
from peakline.tables import Profile
from peakline.tables.derived import DERIVED
from peakline.tables.tables import check_columns

parts = st.lists(st.sampled_from(["a", "b", "cc", "", "d"]), min_size=1, max_size=5)
ops = st.one_of(parts.map("/".join), st.sampled_from(SPECIAL))
buffers = st.lists(
    st.builds(
        PeakBuffer,
        ops,
        st.sampled_from(["", "temp"]),
        st.sampled_from(["", "float"]),
        st.sampled_from(["[1]", "[2]"]),
        st.integers(-2, 50),
        st.integers(0, 3),
        st.none() | st.integers(0, 2),
    ),
    max_size=30,
)


def every(scope):
    yield scope
    for part in scope.parts:
        yield from every(part)


def by_hand(result):
    """Bytes of every op, and of every scope that is a beginning of its name."""
    ops_of, scopes = Counter(), Counter()
    for buffer in result:
        if buffer.bytes <= 0:
            continue
        op = buffer.op or "(no op)"
        ops_of[op] += buffer.bytes
        names = [] if op in SPECIAL else op.split("/")[:-1]
        for depth in range(1, len(names) + 1):
            scopes["/".join(names[:depth])] += buffer.bytes
    return ops_of, scopes


@given(buffers)
def test_the_tree_has_every_op_and_adds_up(found):
    root = scopes_of(found, "gpu")
    assert (root.bytes, root.count) == (
        sum(b.bytes for b in found if b.bytes > 0),
        sum(b.count for b in found if b.bytes > 0),
    )
    ops_of, scopes = by_hand(found)
    leaves = [scope for scope in every(root) if not scope.parts and scope is not root]
    assert {leaf.path: leaf.bytes for leaf in leaves} == ops_of
    assert len(leaves) == len(ops_of)
    for scope in every(root):
        if scope.parts:
            assert scope.bytes == sum(part.bytes for part in scope.parts)
            assert scope.count == sum(part.count for part in scope.parts)
            sizes = [part.bytes for part in scope.parts]
            assert sizes == sorted(sizes, reverse=True)
        else:
            assert sum(b.bytes for b in scope.buffers) == scope.bytes
        if scope is not root and scope.parts:
            assert len(scope.parts) > 1
            assert scope.bytes == scopes[scope.path] + ops_of[scope.path]


@given(buffers, st.integers(1, 20))
def test_small_scopes_are_put_together_without_losing_a_byte(found, most):
    whole = scopes_of(found, "gpu")
    few = without_small(whole, most)
    drawn = list(every(few))
    assert (few.bytes, few.count) == (whole.bytes, whole.count)
    assert len(drawn) <= 2 * most + 1
    for scope in drawn:
        if scope.parts:
            assert scope.bytes == sum(part.bytes for part in scope.parts)
            assert scope.count == sum(part.count for part in scope.parts)
    sizes = sorted((scope.bytes for scope in every(whole)), reverse=True)
    assert sorted((s.bytes for s in drawn if not s.merged), reverse=True)[:most] == sizes[:most]
    if len(sizes) <= most:
        assert [(s.path, s.bytes) for s in drawn] == [(s.path, s.bytes) for s in every(whole)]


def buffer(op, size):
    return PeakBuffer(op, "", "", "", size, 1, None)


def test_a_scope_with_one_part_is_one_with_it():
    root = scopes_of([buffer("net/block/conv/Relu", 3), buffer("net/block/conv/Add", 4)], "gpu")
    (conv,) = root.parts
    assert (conv.label, conv.path) == ("net/block/conv", "net/block/conv")
    assert [(part.label, part.bytes) for part in conv.parts] == [("Add", 4), ("Relu", 3)]


def test_an_op_that_is_a_scope_too_is_a_part_of_it():
    (scope,) = scopes_of([buffer("a", 5), buffer("a/b", 2)], "gpu").parts
    assert (scope.label, scope.bytes) == ("a", 7)
    assert [(part.path, part.bytes) for part in scope.parts] == [("a", 5), ("a/b", 2)]


@each_row("op", ["/", "//", "a/" * 5000 + "b", "/job:ps/replica:0"])
def test_odd_names(op):
    root = scopes_of([buffer(op, 5)], "gpu")
    assert root.bytes == 5
    assert [s.path for s in every(root) if not s.parts] == [op]


def test_what_is_merged_is_counted():
    root = without_small(scopes_of([buffer(f"op{n}", 10 - n) for n in range(8)], "gpu"), 4)
    assert [(p.label, p.bytes, p.merged) for p in root.parts] == [
        ("op0", 10, 0),
        ("op1", 9, 0),
        ("op2", 8, 0),
        ("(5 smaller)", 25, 5),
    ]


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


def reached(name, pairs, hands_on, result):
    for source, target in pairs:
        if source == name and target not in result:
            result.add(target)
            if target in hands_on:
                reached(target, pairs, hands_on, result)
    return result


names = st.sampled_from("abcdef")
made_runs = st.lists(
    st.tuples(names, st.sampled_from(["Add", "Identity"]), st.integers(0, 50), st.integers(0, 9)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=150)
@given(made_runs, st.lists(st.tuples(names, names), min_size=1, max_size=12))
def test_costs_and_uses_equal_the_slow_ones(rows, pairs):
    result = read_op_use(runs(*rows), edges(*pairs))
    ran = {name for name, *_ in rows}
    hands_on = {name for name, kind, *_ in rows if kind == "Identity"}
    assert result.costs == {
        name: int(median([took for other, _, _, took in rows if other == name])) for name in ran
    }
    slow = {name: reached(name, pairs, hands_on, set()) for name in ran}
    assert {name: times.tolist() for name, times in result.uses.items()} == {
        name: sorted(start for other, _, start, _ in rows if other in readers)
        for name, readers in slow.items()
        if readers and readers <= ran
    }


BACKWARD = "autograd::engine::evaluate_function: MulBackward0"


def profile(ops, records, stats=(), *, kind="chrome_trace"):
    """A thread of ops ``(name, begin, end)``, and records ``(op, time)``."""
    base = profile_of({HOST_PLANE: {"1": ops}}, stats=stats, kind=kind)
    tables = {name: base.columns(name) for name in ("planes", "lines", "events", "event_stats")}
    rows = [alloc(n, 8, op=op, time_ps=time) for n, (op, time) in enumerate(records)]
    reader = FakeReader(tables | {"allocator_events": events(rows), "stacks": []})
    return Profile(reader.of_format(kind), derived=DERIVED)


OPS = [("aten::mul", 0, 10), (BACKWARD, 20, 60), ("aten::mul", 30, 50), ("aten::sum", 70, 80)]


def test_a_record_is_of_the_execution_of_its_op_that_runs():
    records = [("aten::mul", 5), ("aten::mul", 15), ("aten::mul", 40), ("aten::mm", 40), (None, 5)]
    result = op_events_of(profile(OPS, records))
    assert result.event.tolist() == [0, -1, 2, -1, -1]
    assert result.is_backward.tolist() == [False, False, True, False, False]


def test_what_ops_read():
    stats = [
        (0, "Input Dims", "[[4, 4]]"), (0, "Input type", '["double"]'),
        (1, "Input Dims", "[[9]]"), (1, "Input type", '["float"]'),
    ]  # fmt: skip
    result = op_events_of(profile(OPS, [("aten::mul", 5), ("aten::mul", 40), ("x", 5)], stats))
    # The inner op says nothing of its own: the one around it does.
    assert result.input_shapes(np.arange(3)) == ["[4, 4]", "[9]", ""]
    assert result.is_float64.tolist() == [True, False, False]


def test_what_converts_says_nothing_of_its_result():
    stats = [(0, "Input type", '["double"]')]
    ops = [("aten::_to_copy", 0, 10)]
    assert not op_events_of(profile(ops, [("aten::_to_copy", 5)], stats)).is_float64.any()


def test_other_formats_have_none():
    assert op_events_of(profile_of({HOST_PLANE: {"1": OPS}})) is None


def test_the_op_that_a_program_calls():
    ops = [("aten::one_hot", 0, 10), ("aten::zeros", 1, 8), ("aten::empty", 2, 5), *OPS[1:]]
    records = [("aten::empty", 3), ("aten::mul", 40), ("aten::sum", 75), ("x", 5)]
    result = op_events_of(profile(ops, records))
    assert [result.outermost_op(n) for n in range(4)] == ["aten::one_hot", "", "aten::sum", ""]
