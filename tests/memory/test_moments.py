"""What is live at any moment: the same as the slower ways to the same answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.records import alloc, events, free, history, records
from tests.timing.timelines import profile_of

from peakline.errors import NotFoundError
from peakline.memory.over_time.live import memory_records
from peakline.memory.peak import moments
from peakline.memory.peak.explained import BEFORE_PROFILE, find_peaks
from peakline.memory.peak.moments import find_high_moments, memory_at
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
        result = [
            n
            for n, row in enumerate(rows)
            if n <= time
            and (row.get("allocator") or "") == allocator
            and (row.get("in_use_bytes") is not None or not reports)
        ]
        if not result:
            assert allocator not in shown
            continue
        memory = shown[allocator]
        assert memory.peak_time_ps == result[-1]
        assert memory.peak_bytes == in_use(rows, allocator)[result[-1]]
        live = sum(
            one.allocated
            for one in buffers(rows)
            if one.allocator == allocator and lives_at(one, result[-1] + 1)
        )
        assert sum(b.bytes for b in memory.peak_buffers if b.count) == live


@settings(max_examples=100)
@given(records)
def test_the_first_moment_is_the_peak(rows):
    made = history(rows)
    for peak in find_peaks(made.events):
        if peak.peak_bytes <= 0:
            continue
        first = find_high_moments(made, made.lifetimes.allocators.index(peak.allocator))[0]
        assert first.memory == peak


def records_of(rows):
    result = memory_records(profile_of(records=events(rows)))
    assert result is not None
    return result


def without_sizes(rows):
    """The same records, with frees that do not tell how much they free."""
    none = {"allocated_bytes": None, "requested_bytes": None}
    return [row | none if row["activity"] == "deallocation" else row for row in rows]


def facts(peak):
    """What an explained peak and a moment both tell."""
    special = {one.op: one.bytes for one in peak.peak_buffers if not one.count}
    live = [one for one in peak.peak_buffers if one.count]
    return (
        peak.peak_time_ps, peak.peak_bytes, peak.peak_step, peak.fragmentation_at_peak, special,
        sum(one.bytes for one in live), sum(one.count for one in live),
    )  # fmt: skip


def told(moment):
    return (
        moment.time_ps, moment.bytes_in_use, moment.step_id, moment.fragmentation,
        moment.remainders, int(moment.buffer_bytes.sum()), moment.buffers.size,
    )  # fmt: skip


def test_a_free_without_its_size_is_read_off_the_reports():
    rows = [
        alloc(1, 10, in_use_bytes=110),
        free(7, in_use_bytes=70),
        {"activity": "reservation"},
        free(8, in_use_bytes=50),
        free(1),
        free(9, in_use_bytes=5),
    ]
    result = records_of(rows)
    assert [result.at(0, time).remainders for time in (0, 1, 3)] == [
        {BEFORE_PROFILE: 100},
        {BEFORE_PROFILE: 60},
        {BEFORE_PROFILE: 40},
    ]
    # Between the last two reports another buffer was freed: nobody knows what the second took.
    assert result.at(0, 5).remainders == {BEFORE_PROFILE: 40, "(unattributed)": -35}


def test_at_a_peak_that_is_not_the_last_record_of_its_time():
    result = records_of([alloc(1, 10, time_ps=5), alloc(2, 30, time_ps=5), free(2, time_ps=5)])
    assert result.at_peak(0).buffers.tolist() == [0, 1]
    assert result.at(0, 5).buffers.tolist() == [0]


def test_a_size_that_no_memory_can_have_is_unknown():
    result = records_of([alloc(1, 10), alloc(2, 2**60)])
    assert (result.implausible, result.at(0, 1).bytes_in_use) == (1, 10)


def test_the_records_are_kept_with_the_profile():
    profile = profile_of(records=events([alloc(1, 10)]))
    assert memory_records(profile) is memory_records(profile)
    assert memory_records(profile_of([("a", 0, 1)])) is None


@settings(max_examples=300)
@given(records | records.map(without_sizes), st.integers(-1, 45))
def test_a_moment_is_that_of_the_memory_answer(rows, time):
    result = records_of(rows)
    shown = {one.allocator: facts(one) for one in memory_at(history(rows), time)}
    moments = {name: result.at(number, time) for number, name in enumerate(result.allocators)}
    assert {name: told(one) for name, one in moments.items() if one is not None} == shown


@settings(max_examples=300)
@given(records)
def test_the_peak_and_memory_in_use_are_those_of_the_memory_answer(rows):
    result, made = records_of(rows), history(rows)
    peaks = {one.allocator: facts(one) for one in find_peaks(made.events)}
    own = {name: result.at_peak(number) for number, name in enumerate(result.allocators)}
    assert {name: told(one) for name, one in own.items() if one is not None} == peaks
    for number in range(len(result.allocators)):
        series = result.series(number)
        mine = made.rows_of(number)
        assert series.rows.tolist() == mine[made.measured[mine]].tolist()
        assert series.used.tolist() == made.used[series.rows].tolist()
