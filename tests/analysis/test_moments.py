import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.histories import history, records
from tests.analysis.records import alloc, free

from peakline.errors import NotFoundError
from peakline.memory import moments
from peakline.memory.moments import find_high_moments, memory_at
from peakline.memory.peak import find_peaks
from reference.memory_history import buffers, in_use, lives_at


def sizes(memory):
    return {buffer.op: buffer.bytes for buffer in memory.peak_buffers}


def test_what_memory_is_made_of_at_a_time():
    made = history(
        [
            alloc(1, 10, op="a", time_ps=10),
            alloc(2, 30, op="b", time_ps=20),
            free(2, time_ps=30),
            alloc(3, 5, op="c", time_ps=40),
        ]
    )
    assert [sizes(memory) for memory in memory_at(made, 25)] == [{"a": 10, "b": 30}]
    assert [sizes(memory) for memory in memory_at(made, 30)] == [{"a": 10}]
    (memory,) = memory_at(made, 999)
    assert (sizes(memory), memory.peak_time_ps, memory.peak_bytes) == ({"a": 10, "c": 5}, 40, 15)
    assert memory_at(made, 9) == ()


def test_an_allocator_that_reports_is_shown_after_its_last_report():
    made = history(
        [
            alloc(1, 10, op="a", in_use_bytes=110),
            alloc(2, 30, op="b", in_use_bytes=140),
            free(1),
            alloc(9, 1, allocator="z"),
        ]
    )
    first, other = memory_at(made, 3)
    assert sizes(first) == {"a": 10, "b": 30, "(before profile)": 100}
    assert (other.allocator, other.peak_bytes) == ("z", 1)
    assert memory_at(made, 3, allocator="z") == (other,)
    with pytest.raises(NotFoundError):
        memory_at(made, 3, allocator="y")


def hill(*what, step=None):
    rows = [alloc(n, size, op=op, shape="[1]", step_id=step) for n, (op, size) in enumerate(what)]
    return [*rows, *(free(n) for n in range(len(what)))]


def test_moments_near_the_peak_that_are_made_of_other_things():
    rows = [
        *hill(("a", 50), ("b", 50), step=0),
        *hill(("a", 49), ("c", 49), step=1),
        *hill(("a", 50), ("b", 49), step=2),
        *hill(("d", 60), step=3),
    ]
    first, second = find_high_moments(history(rows), 0)
    assert sizes(first.memory) == {"a": 50, "b": 50}
    assert (first.memory.peak_bytes, first.steps) == (100, (0, 2))
    assert sizes(second.memory) == {"a": 49, "c": 49}
    assert (second.memory.peak_bytes, second.steps) == (98, (1,))
    assert second.times_ps == (5,)


def test_a_dip_that_stays_high_does_not_make_two_moments():
    rows = [alloc(1, 90, op="a"), alloc(2, 10, op="b"), free(2), alloc(2, 10, op="c"), free(2)]
    (only,) = find_high_moments(history(rows), 0)
    assert only.times_ps == (1,)


def test_no_more_than_asked_for_are_explained():
    rows = [row for n in range(9) for row in hill((f"op{n}", 100))]
    assert len(find_high_moments(history(rows), 0)) == 5
    assert len(find_high_moments(history(rows), 0, most=2)) == 2


def test_a_thousand_equal_moments_are_one():
    (only,) = find_high_moments(history(hill(("a", 9)) * 1000), 0)
    assert len(only.times_ps) == 256


def test_one_late_moment_of_something_else_is_found_among_thousands():
    usual = hill(("a", 50), ("b", 50))
    rows = [*usual * 2000, *hill(("c", 49), ("d", 49)), *usual * 500]
    first, other = find_high_moments(history(rows), 0)
    assert (sizes(first.memory), len(first.times_ps)) == ({"a": 50, "b": 50}, 255)
    # The moments that are compared are from the whole of the time.
    assert first.times_ps[-1] > 9900
    assert (sizes(other.memory), len(other.times_ps)) == ({"c": 49, "d": 49}, 1)


def test_comparing_by_blocks_of_signatures_changes_nothing(monkeypatch):
    rows = [
        row
        for n in range(6)
        for row in hill(*((f"op{k}", 10) for k in range(10)), (f"own{n // 2}", 40))
    ]
    whole = find_high_moments(history(rows), 0)
    assert [len(moment.times_ps) for moment in whole] == [2, 2, 2]
    monkeypatch.setattr(moments, "_BLOCK", 3)
    assert find_high_moments(history(rows), 0) == whole


@settings(max_examples=150)
@given(records, st.integers(0, 45))
def test_the_moment_equals_the_slow_answer(rows, time):
    made = history(rows)
    shown = {memory.allocator: memory for memory in memory_at(made, time)}
    for allocator in made.lifetimes.allocators:
        mine = [
            row.get("in_use_bytes") for row in rows if (row.get("allocator") or "") == allocator
        ]
        reports = any(value is not None for value in mine)
        told = [
            n
            for n, row in enumerate(rows)
            if n <= time
            and (row.get("allocator") or "") == allocator
            and (row.get("in_use_bytes") is not None or not reports)
        ]
        if not told:
            assert allocator not in shown
            continue
        memory = shown[allocator]
        assert memory.peak_time_ps == told[-1]
        assert memory.peak_bytes == in_use(rows, allocator)[told[-1]]
        live = sum(
            one.allocated
            for one in buffers(rows)
            if one.allocator == allocator and lives_at(one, told[-1] + 1)
        )
        assert sum(b.bytes for b in memory.peak_buffers if b.count) == live


@settings(max_examples=100)
@given(records)
def test_the_first_moment_is_the_peak(rows):
    made = history(rows)
    for peak in find_peaks(made.events):
        if peak.peak_bytes <= 0:
            continue
        number = made.lifetimes.allocators.index(peak.allocator)
        first = find_high_moments(made, number)[0]
        assert first.memory == peak
