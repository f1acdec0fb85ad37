"""The peak and the rows that explain it, and peaks that only one step has."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.memory.records import (
    alloc,
    events,
    free,
    history,
    of_kind,
    profile_with,
    reference,
    steps_at,
)
from tests.tables.fake import columns_of

from peakline.errors import NotFoundError
from peakline.memory.marks import find_marks
from peakline.memory.peak.explained import PeakBuffer, find_peaks
from peakline.memory.peak.lone import EVALUATION, ONE_STEP, OUTSIDE, lone_peak
from peakline.tables.columns import Columns, Names
from peakline.tables.tables import check_columns, empty_columns
from peakline.trace.steps import Steps


def only(rows, **options):
    (peak,) = find_peaks(events(rows), **options)
    assert sum(buffer.bytes for buffer in peak.peak_buffers) == peak.peak_bytes
    return peak


def sizes(peak):
    return {buffer.op: buffer.bytes for buffer in peak.peak_buffers}


def test_the_peak_is_the_largest_reported_use_and_the_first_time_it_is_reached():
    rows = [
        alloc(1, 100, op="a", in_use_bytes=100, time_ps=5, step_id=3),
        alloc(2, 50, op="b", in_use_bytes=150, time_ps=7, step_id=4),
        free(2, 50, in_use_bytes=100, time_ps=8),
        alloc(2, 50, op="c", in_use_bytes=150, time_ps=9, step_id=5),
    ]
    peak = only(rows)
    assert (peak.peak_bytes, peak.peak_time_ps, peak.peak_step) == (150, 7, 4)
    assert sizes(peak) == {"a": 100, "b": 50}
    assert (peak.allocations, peak.deallocations, peak.live_at_end_bytes) == (3, 1, 150)


def test_memory_from_before_the_profile_shrinks_with_the_frees_nobody_saw_allocated():
    rows = [
        alloc(1, 10, op="a", in_use_bytes=1010),
        free(99, 400, in_use_bytes=610),
        alloc(2, 800, op="b", in_use_bytes=1410),
    ]
    peak = only(rows)
    assert sizes(peak) == {"b": 800, "(before profile)": 600, "a": 10}
    assert (peak.unmatched_deallocations, peak.unexplained_deallocations) == (1, 0)


def test_rows_that_stand_for_memory_from_before_are_not_counted_as_allocations():
    rows = [
        alloc(1, 100, op="(before profile)", is_before=True, region_type="temp"),
        alloc(2, 20, op="(before profile)", is_before=True, step_id=3),
        alloc(3, 50, op="w", is_before=True),
        alloc(4, 7, op="a", is_before=False),
        alloc(5, 1, allocator="z", is_before=True),
    ]
    peak, other = find_peaks(events(rows))
    assert (peak.allocations, other.allocations) == (1, 0)
    assert peak.peak_bytes == 177
    assert peak.peak_buffers == (
        PeakBuffer("(before profile)", "", "", "", 120, 0, None),
        PeakBuffer("w", "", "", "", 50, 1, None),
        PeakBuffer("a", "", "", "", 7, 1, None),
    )


def test_memory_from_before_is_one_row_however_it_is_known():
    rows = [
        alloc(1, 100, op="(before profile)", is_before=True),
        alloc(2, 10, op="a", in_use_bytes=150),
    ]
    assert only(rows).peak_buffers == (
        PeakBuffer("(before profile)", "", "", "", 140, 0, None),
        PeakBuffer("a", "", "", "", 10, 1, None),
    )


def test_frees_beyond_the_memory_from_before_are_unexplained():
    rows = [
        alloc(1, 100, in_use_bytes=150),
        free(7, 60, in_use_bytes=90),
        free(8, 60, in_use_bytes=30),
    ]
    peak = only(rows)
    assert (peak.unmatched_deallocations, peak.unexplained_deallocations) == (2, 2)


def test_an_allocator_without_reports_is_measured_by_its_live_buffers():
    rows = [
        alloc(1, 100, op="a"),
        alloc(2, 50, op="b"),
        free(1),
        free(99, 1000),
        alloc(None, 1000, op="c"),
        alloc(3, 70, op="d"),
    ]
    peak = only(rows)
    assert (peak.peak_bytes, peak.peak_time_ps) == (150, 1)
    assert sizes(peak) == {"a": 100, "b": 50}
    assert (peak.unmatched_deallocations, peak.untracked_allocations) == (1, 1)
    assert peak.live_at_end_bytes == 120
    assert peak.capacity_bytes is None
    assert peak.lifetime_peak_bytes is None
    assert peak.fragmentation_at_peak is None


def test_capacity_and_fragmentation_are_those_at_the_peak_and_the_lifetime_peak_a_maximum():
    rows = [
        alloc(
            1,
            10,
            in_use_bytes=10,
            reserved_bytes=5,
            free_bytes=85,
            fragmentation=0.5,
            peak_bytes=900,
        ),
        alloc(
            2,
            10,
            in_use_bytes=20,
            reserved_bytes=5,
            free_bytes=76,
            fragmentation=0.25,
            peak_bytes=30,
        ),
        free(
            2,
            10,
            in_use_bytes=10,
            reserved_bytes=5,
            free_bytes=85,
            fragmentation=0.75,
            peak_bytes=30,
        ),
    ]
    peak = only(rows)
    assert (peak.capacity_bytes, peak.fragmentation_at_peak) == (101, 0.25)
    assert peak.lifetime_peak_bytes == 900


def test_fragmentation_of_a_full_pool_is_not_a_number_and_stays_unknown():
    assert (
        only([alloc(1, 10, in_use_bytes=10, fragmentation=math.nan)]).fragmentation_at_peak is None
    )


def test_buffers_are_grouped_by_what_they_are_and_the_step_they_began_in():
    same = {"op": "a", "region_type": "temp", "data_type": "float", "shape": "[2]"}
    rows = [
        alloc(1, 10, step_id=1, **same),
        alloc(2, 10, step_id=1, **same),
        alloc(3, 10, step_id=2, **same),
        alloc(4, 10, **same),
        alloc(5, 10, step_id=1, **(same | {"shape": "[3]"})),
        alloc(6, 10),
    ]
    assert only(rows).peak_buffers == (
        PeakBuffer("a", "temp", "float", "[2]", 20, 2, 1),
        PeakBuffer("", "", "", "", 10, 1, None),
        PeakBuffer("a", "temp", "float", "[2]", 10, 1, None),
        PeakBuffer("a", "temp", "float", "[2]", 10, 1, 2),
        PeakBuffer("a", "temp", "float", "[3]", 10, 1, 1),
    )


def test_one_name_with_two_codes_is_one_group():
    made = events([alloc(1, 10, op="a"), alloc(2, 20, op="b")])
    twice = Columns(
        dict(made.data) | {"op": Names(np.array([0, 1], np.int32), ["x", "x"])}, made.valid
    )
    (peak,) = find_peaks(twice)
    assert peak.peak_buffers == (PeakBuffer("x", "", "", "", 30, 2, None),)


def test_allocators_are_apart_and_never_summed():
    rows = [
        alloc(1, 100, allocator="b", op="x"),
        alloc(1, 30, allocator="a", op="y"),
        free(1, allocator="b"),
        alloc(2, 30, allocator="a", op="y"),
    ]
    a, b = find_peaks(events(rows))
    assert (a.allocator, a.peak_bytes, a.peak_time_ps) == ("a", 60, 3)
    assert (b.allocator, b.peak_bytes, b.peak_time_ps) == ("b", 100, 0)
    assert find_peaks(events(rows), allocator="b") == (b,)


def test_an_unknown_allocator_is_an_error_that_names_the_known_ones():
    with pytest.raises(NotFoundError, match=r"no allocator 'c'.*a, b"):
        find_peaks(events([alloc(1, 1, allocator="a"), alloc(1, 1, allocator="b")]), allocator="c")


def test_only_eligible_records_can_be_the_peak_but_all_of_them_count():
    rows = [alloc(1, 100, op="a"), free(1), alloc(2, 20, op="b"), alloc(1, 5, allocator="z")]
    peak = only(rows, eligible=np.array([False, True, True, False]))
    assert (peak.peak_bytes, peak.allocations) == (20, 2)
    assert sizes(peak) == {"b": 20}


def test_the_json_has_the_documented_fields_and_no_other():
    assert only([alloc(1, 10, op="a", step_id=2)]).as_json() == {
        "allocator": "",
        "capacity_bytes": None,
        "pool_bytes": None,
        "peak_bytes": 10,
        "peak_time_ps": 0,
        "peak_step": 2,
        "lifetime_peak_bytes": None,
        "fragmentation_at_peak": None,
        "allocations": 1,
        "deallocations": 0,
        "unmatched_deallocations": 0,
        "untracked_allocations": 0,
        "live_at_end_bytes": 10,
        "peak_buffers": [
            {
                "op": "a", "region_type": "", "data_type": "", "shape": "", "bytes": 10, "count": 1,
                "start_step": 2,
            }
        ],
    }  # fmt: skip


small = st.integers(0, 6)
maybe_bytes = st.none() | st.integers(0, 100)
record = st.fixed_dictionaries(
    {
        "activity": st.sampled_from(["allocation"] * 4 + ["deallocation"] * 4 + ["reservation"]),
        "address": st.none() | small,
        "allocation_id": st.none() | st.none() | small,
        "allocated_bytes": maybe_bytes,
    },
    optional={
        "allocator": st.sampled_from(["a", "b", ""]),
        "requested_bytes": maybe_bytes,
        "in_use_bytes": st.none() | st.integers(0, 1000),
        "reserved_bytes": maybe_bytes,
        "peak_bytes": st.none() | st.integers(0, 2000),
        "op": st.sampled_from([None, "", "p", "q"]),
        "region_type": st.sampled_from([None, "temp"]),
        "shape": st.sampled_from([None, "[1]", "[2]"]),
        "step_id": st.none() | st.integers(0, 2),
    },
)


@settings(max_examples=300)
@given(st.lists(record, max_size=40), st.booleans())
def test_the_answer_equals_the_slow_one(rows, reports):
    if not reports:
        rows = [row | {"in_use_bytes": None} for row in rows]
    result = {
        peak.allocator: {
            "allocations": peak.allocations,
            "deallocations": peak.deallocations,
            "unmatched": peak.unmatched_deallocations,
            "untracked": peak.untracked_allocations,
            "double": peak.double_allocations,
            "peak": {
                "bytes": peak.peak_bytes,
                "row": peak.peak_time_ps,
                "groups": {
                    (b.op, b.region_type, b.data_type, b.shape, b.start_step): (b.bytes, b.count)
                    for b in peak.peak_buffers
                },
            },
            "live_at_end": peak.live_at_end_bytes,
            "lifetime_peak": peak.lifetime_peak_bytes,
        }
        for peak in find_peaks(events(rows))
    }
    assert result == reference(rows)
    for peak in find_peaks(events(rows)):
        assert sum(buffer.bytes for buffer in peak.peak_buffers) == peak.peak_bytes


def test_records_that_come_again_and_again_change_nothing_but_the_counts():
    rows = [alloc(n % 700, 64, op=f"op{n % 50}", in_use_bytes=64) for n in range(1000)]
    rows += [free(n % 700, 64, in_use_bytes=0) for n in range(1000)]
    (once,) = find_peaks(events(rows))
    (often,) = find_peaks(events(rows).take(np.tile(np.arange(2000), 20)))
    counts = (
        "allocations", "deallocations", "unmatched_deallocations", "double_allocations",
        "unexplained_deallocations",
    )  # fmt: skip
    assert often == replace(once, **{name: 20 * getattr(once, name) for name in counts})
    assert once.double_allocations == once.unmatched_deallocations == 300


MIB = 1 << 20
LENGTH = 10


def job(large_at, *, op="large", size=8 * MIB, before=False, times=1):
    """Six steps of ten records that hold 2 MiB; in one, or before all, a large buffer lives."""
    large = [alloc(5, size, op=op, shape="[9]"), free(5)] * times
    first = 2 * times * before
    rows = large if before else []
    for number in range(6):
        usual = [alloc(1, 2 * MIB, op="usual", shape="[2]"), free(1)]
        own = large if number == large_at else []
        rows = rows + own + usual * ((LENGTH - len(own)) // 2)
    timed = [row | {"time_ps": n} for n, row in enumerate(rows)]
    return timed, [first + LENGTH * n for n in range(7)]


def peak_of(rows, steps, capacity=None):
    made = history(rows)
    return lone_peak(made, 0, find_marks(made, 0, steps), Steps.of(steps), capacity)


def named(bounds, names):
    rows = [
        {"step_id": n, "name": name, "start_ps": bounds[n], "end_ps": bounds[n + 1] - 1}
        for n, name in enumerate(names)
    ]
    return check_columns("steps", columns_of("steps", rows))


def test_in_one_step():
    rows, bounds = job(3)
    result = peak_of(rows, steps_at(*bounds))
    assert (result.where, result.when, result.step) == (
        ONE_STEP, "in step 3 (train 3) alone", "step 3 (train 3)"
    )  # fmt: skip
    assert (result.peak_bytes, result.others_bytes) == (8 * MIB, 2 * MIB)


def test_before_the_steps():
    rows, bounds = job(None, before=True)
    result = peak_of(rows, steps_at(*bounds))
    assert (result.where, result.when, result.step) == (OUTSIDE, "before the first step", "")


def test_in_evaluation():
    rows, bounds = job(3)
    names = ["train 0", "train 1", "train 2", "eval 0", "train 3", "train 4"]
    result = peak_of(rows, named(bounds, names))
    assert (result.where, result.when) == (EVALUATION, "in eval")


@each_row(
    ("size", "capacity"),
    [
        (2 * MIB, None),
        # Not 1.3 times as much, not 1 MiB more, a trifle of the device.
        (int(2.5 * MIB), None),
        (int(2.9 * MIB), None),
        (8 * MIB, 1 << 40),
    ],
)
def test_a_peak_that_others_come_near(size, capacity):
    rows, bounds = job(3, size=size)
    assert peak_of(rows, steps_at(*bounds), capacity) is None


def test_too_few_steps_are_no_others():
    rows, bounds = job(1)
    assert peak_of(rows[: 2 * LENGTH], steps_at(*bounds[:3])) is None
    assert peak_of(rows, empty_columns("steps")) is None


def test_peak_in_one_step():
    rows, bounds = job(3)
    (finding,) = of_kind(profile_with(rows, steps_at(*bounds)), "peak_in_one_step")
    assert finding.severity == "warning"
    assert (finding.evidence["op"], finding.evidence["step"]) == ("large", "step 3 (train 3)")
    assert finding.evidence["saved_bytes"] == 6 * MIB
    rows, bounds = job(None)
    assert of_kind(profile_with(rows, steps_at(*bounds)), "peak_in_one_step") == []


def test_what_every_step_makes_overlaps_by_chance():
    # Step 3 holds two of its buffers at once, which the others make one after the other.
    one, two = alloc(1, 4 * MIB, op="a", shape="[2]"), alloc(2, 4 * MIB, op="b", shape="[3]")
    rows = []
    for number in range(6):
        rows += [one, two, free(1), free(2)] if number == 3 else [one, free(1), two, free(2)]
    timed = [row | {"time_ps": n} for n, row in enumerate(rows)]
    steps = steps_at(*range(0, 25, 4))
    assert peak_of(timed, steps).where == ONE_STEP
    assert of_kind(profile_with(timed, steps), "peak_in_one_step") == []


def test_peak_outside_steps():
    rows, bounds = job(None, before=True)
    (finding,) = of_kind(profile_with(rows, steps_at(*bounds)), "peak_outside_steps")
    assert "memory is fullest before the first step, with 8.0 MiB" in finding.title
    rows, bounds = job(None)
    assert of_kind(profile_with(rows, steps_at(*bounds)), "peak_outside_steps") == []


def test_peak_in_evaluation():
    rows, bounds = job(3)
    names = ["train 0", "train 1", "train 2", "eval 0", "train 3", "train 4"]
    (finding,) = of_kind(profile_with(rows, named(bounds, names)), "peak_in_evaluation")
    assert "memory is fullest in eval, with 8.0 MiB" in finding.title
    rows, bounds = job(None)
    assert of_kind(profile_with(rows, named(bounds, names)), "peak_in_evaluation") == []


def test_an_evaluation_within_a_step_is_known_by_its_function():
    rows, bounds = job(3)
    twice, _ = job(5)
    # Two of six steps hold it, so that none stands alone.
    rows = rows[: bounds[4]] + twice[bounds[4] :]
    rows = [row | {"stack_id": int(row.get("op") == "large"), "time_ps": n}
            for n, row in enumerate(rows)]  # fmt: skip
    stacks = [[("train", "/me/train.py", 4)], [("evaluate", "/me/train.py", 9)]]
    (finding,) = of_kind(profile_with(rows, steps_at(*bounds), stacks=stacks), "peak_in_evaluation")
    assert "memory is fullest in evaluate (train.py:9), with 8.0 MiB" in finding.title
    other = [stacks[0], [("transform", "/me/train.py", 9)]]
    assert of_kind(profile_with(rows, steps_at(*bounds), stacks=other), "peak_in_evaluation") == []
