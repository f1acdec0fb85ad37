import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.kinds import found_by
from tests.memory.records import alloc, free, history, records, steps_at

from peakline.findings.kinds import churn as kind
from peakline.memory.churn import SHORT, find_churn
from peakline.memory.marks import find_marks
from reference.memory_history import churn


def find(rows, steps):
    made = history(rows)
    return find_churn(made, (find_marks(made, 0, steps),))[0]


def test_what_a_step_frees_of_its_own_and_what_lives_on():
    rows = [alloc(1, 10, op="a"), free(1), alloc(2, 30, op="b"), alloc(3, 5, op="a"), free(2)]
    result = find(rows, steps_at(0, 3, 5))
    assert (result.steps, result.allocations, result.bytes, result.same_step) == (2, 3, 45, 1)
    assert (result.bytes_per_step, result.peak_bytes) == (22.5, 35)
    assert result.turnover == pytest.approx(22.5 / 35)
    assert [(one.signature.op, one.allocations, one.most_live) for one in result.signatures] == [
        ("b", 1, 1),
        ("a", 1, 1),
        ("a", 1, 1),
    ]


def test_memory_from_before_the_profile_was_not_handed_out_in_it():
    rows = [alloc(1, 10, op="a", is_before=True), free(1), alloc(1, 30, op="b"), free(1)]
    result = find(rows, steps_at(0, 4))
    assert (result.allocations, result.bytes, result.same_step, result.short) == (1, 30, 1, 1)
    assert [(one.signature.op, one.allocations) for one in result.signatures] == [
        ("b", 1),
        ("a", 0),
    ]


def test_short_lived_is_counted_in_records():
    filler = [alloc(100 + n, 1, op="x") for n in range(SHORT)]
    soon = find([alloc(1, 10, op="a"), *filler[1:], free(1)], steps_at(0, 200))
    late = find([alloc(1, 10, op="a"), *filler, free(1)], steps_at(0, 200))
    assert (soon.short, late.short) == (1, 0)


def test_without_steps_there_is_no_rate():
    (result,) = find_churn(history([alloc(1, 10), free(1)]), (None,))
    assert (result.steps, result.bytes_per_step, result.turnover, result.same_step) == (
        None,
        None,
        None,
        0,
    )


def loop(times, size=100, base=0):
    rows = [alloc(9, base, op="weights", shape="[9]", time_ps=0)] if base else []
    for step in range(3):
        for turn in range(times):
            rows.append(alloc(1, size, op="cell", shape="[5]", time_ps=1000 * step + 2 * turn))
            rows.append(free(1, time_ps=1000 * step + 2 * turn + 1))
    return find(rows, steps_at(0, 1000, 2000, 3000))


def test_a_loop_over_single_items():
    (finding,) = found_by(kind, churn=loop(300))
    assert (finding.kind, finding.severity) == ("churn", "info")
    assert (finding.evidence["op"], finding.evidence["shape"]) == ("cell", "[5]")
    assert finding.evidence["allocations_per_step"] == 300
    assert finding.evidence["bytes_per_step"] == 30_000


def test_few_turns_or_few_bytes_are_not_told():
    assert found_by(kind, churn=loop(255)) == []
    assert found_by(kind, churn=loop(300, base=8000)) == []


@settings(max_examples=150)
@given(records, st.lists(st.integers(0, 45), min_size=2, max_size=5, unique=True))
def test_the_counts_equal_the_slow_ones(rows, bounds):
    # Some of the buffers were there before.
    rows = [row | ({"is_before": True} if n % 5 == 2 else {}) for n, row in enumerate(rows)]
    made = history(rows)
    steps = steps_at(*sorted(bounds))
    marks = tuple(find_marks(made, n, steps) for n in range(len(made.lifetimes.allocators)))
    for own, result in zip(marks, find_churn(made, marks), strict=True):
        starts = [] if own is None else [own.start, *own.rows.tolist()]
        slow = {
            key: counts
            for key, counts in churn(rows, starts, SHORT).items()
            if key[0] == result.allocator
        }
        for one in result.signatures:
            sign = one.signature
            key = (
                sign.allocator, sign.op, sign.region_type, sign.data_type, sign.shape, sign.bytes
            )  # fmt: skip
            counts = (one.allocations, one.bytes, one.same_step, one.short, one.most_live)
            assert counts == slow.pop(key)
        assert slow == {}
