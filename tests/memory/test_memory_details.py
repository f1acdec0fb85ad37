"""All analyses together, as `explain_memory` gives them, and the bytes that live at a record."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from tests.each_row import each_row
from tests.memory.records import alloc, events, free, history, records, steps_at
from tests.tables.fake import FakeReader, columns_of

import peakline
from peakline.deadline import Deadline, within
from peakline.errors import DeadlineError, NotFoundError
from peakline.findings.finding import Finding
from peakline.findings.memory_answer import Notice, answer_memory, explain_memory
from peakline.memory.churn import find_churn
from peakline.memory.fragmentation.holes import find_fragmentation
from peakline.memory.growth.series import find_growth
from peakline.memory.marks import find_marks
from peakline.memory.over_time.live import LiveBytes
from peakline.memory.peak.buffers import buffers_at_peak
from peakline.memory.savings.answer import find_savings
from peakline.memory.savings.op_use import read_op_use
from peakline.tables import Profile
from peakline.tables.tables import empty_columns
from peakline.text import size_text


def test_rows_are_part_of_the_evidence_in_json_and_of_the_table():
    row = {"op": "a", "bytes": 3}
    finding = Finding("kind", "info", "title", {"n": 1}, "do", (row,))
    assert finding.as_json()["evidence"] == {"n": 1, "rows": [row]}
    assert finding.table == (row,)
    bare = Finding("kind", "info", "title", {"n": 1}, "do")
    assert bare.as_json()["evidence"] == {"n": 1}
    assert bare.table == ({"n": 1},)


def test_rows_of_a_finding_have_the_same_columns():
    with pytest.raises(ValueError, match="different columns"):
        Finding("kind", "info", "title", {}, "do", ({"a": 1}, {"b": 1}))


@each_row(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1024**2 - 1, "1.0 MiB"), (3e12, "2.7 TiB")],
)
def test_sizes_for_a_person(size, text):
    assert size_text(size) == text


def test_each_allocator_has_its_details_and_only_the_wanted_one():
    rows = [alloc(1, 10, allocator="a"), alloc(1, 10, allocator="b"), free(1, allocator="b")]
    answer = explain_memory(events(rows), steps_at(0, 1, 3))
    assert [detail.allocator for detail in answer.details] == ["a", "b"]
    (only,) = explain_memory(events(rows), steps_at(0, 1, 3), allocator="b").details
    assert only.allocator == "b"
    assert only.churn.allocations == 1
    assert explain_memory(events([]), steps_at(0, 1)).details == ()


def test_a_healthy_session_of_sixteen_steps_has_no_findings(sample):
    with peakline.open(str(sample)) as profile:
        if not profile.columns("allocator_events").rows:
            return
        answer = explain_memory(profile.columns("allocator_events"), profile.columns("steps"))
    assert answer.findings == ()
    assert all(detail.churn.allocations for detail in answer.details)


def test_the_bundled_session_in_numbers(sessions):
    (path,) = sessions.glob("tf2_cnn/plugins/profile/*/*.xplane.pb*")
    with peakline.open(str(path)) as profile:
        answer = explain_memory(profile.columns("allocator_events"), profile.columns("steps"))
    (detail,) = answer.details
    assert (len(detail.growth.marks), detail.growth.bytes_per_step) == (16, 0)
    assert detail.growth.total_pattern.kind == "steady"
    assert detail.churn.allocations == 1986
    first = detail.savings[0]
    assert first.kind == "temporary"
    assert "convolution/Conv2DBackpropFilter float [56, 784, 144]" in first.title
    assert 0.4 < first.bytes / detail.churn.peak_bytes < 0.5
    # The figure of the allocator counts free memory of its pool that the profile never touches.
    result = detail.fragmentation
    own = 1 - result.largest / np.maximum(result.free, 1)
    late = result.time_ps > result.time_ps[-1] // 2
    assert np.abs(own - result.reported)[late].mean() < 0.1


def test_recomputing_has_its_cost_where_ops_are_timed(root):
    path = root / "tests/data/run_metadata/tf1_control_flow_4.pb.gz"
    with peakline.open(str(path)) as profile:
        ops = read_op_use(profile.columns("op_runs"), profile.columns("edges"))
        events_, steps = profile.columns("allocator_events"), profile.columns("steps")
    plain = explain_memory(events_, steps)
    timed = explain_memory(events_, steps, ops=ops)
    for answer, costs in ((plain, False), (timed, True)):
        recompute = [
            saving
            for detail in answer.details
            for saving in detail.savings
            if saving.kind == "recompute"
        ]
        assert all((saving.cost_ps is not None) == costs for saving in recompute)
    assert len(ops.uses) > 100


@settings(max_examples=150)
@given(records)
def test_no_records_break_the_answer_and_its_json(rows):
    for steps in (empty_columns("steps"), steps_at(*range(0, 40, 4))):
        answer = explain_memory(history(rows).events, steps)
        for finding in answer.findings:
            json.dumps(finding.as_json(), allow_nan=False)
        for detail, peak in zip(answer.details, answer.allocators, strict=True):
            assert detail.allocator == peak.allocator
            for saving in detail.savings:
                assert saving.bytes > 0
                assert saving.rows


@each_row("analysis", ["all", "growth", "fragmentation", "savings", "churn"])
def test_no_analysis_goes_on_when_nobody_waits_any_more(analysis):
    rows = []
    for step in range(12):
        rows += [alloc(1, 100, op="work"), alloc(100 + step, 10, op="kept"), free(1)]
    made, steps = history(rows), steps_at(*range(0, 37, 3))
    marks = find_marks(made, 0, steps)
    at_peak = buffers_at_peak(made, 0, marks, made.measured)
    request = {
        "all": lambda: explain_memory(made.events, steps),
        "growth": lambda: find_growth(made, 0, marks),
        "fragmentation": lambda: find_fragmentation(made, 0),
        "savings": lambda: find_savings(made, 0, marks, counted=made.measured, found=at_peak),
        "churn": lambda: find_churn(made, (marks,)),
    }[analysis]
    request()
    with within(Deadline(0)), pytest.raises(DeadlineError):
        request()


STEPS = columns_of(
    "steps",
    [
        {"step_id": 0, "name": "train 170", "start_ps": 10, "end_ps": 19},
        {"step_id": 1, "name": "train 171", "start_ps": 20, "end_ps": 29},
    ],
)
EVENTS = events(
    [
        alloc(1, 100, op="a", time_ps=5),
        free(1, time_ps=11, step_id=0),
        alloc(2, 30, op="b", time_ps=12, step_id=0),
        alloc(3, 20, op="loader", time_ps=13),
        free(3, time_ps=21),
        alloc(4, 5, op="late", time_ps=35, step_id=1),
    ]
)


def test_the_whole_profile():
    answer = explain_memory(EVENTS, STEPS)
    (peak,) = answer.allocators
    assert (peak.peak_bytes, answer.step, answer.findings, answer.notices) == (100, None, (), ())


@each_row("step", ["0", "train 170"])
def test_a_step_takes_what_ran_during_it_on_any_thread(step):
    answer = explain_memory(EVENTS, STEPS, step=step)
    (peak,) = answer.allocators
    assert answer.step == 0
    assert {buffer.op: buffer.bytes for buffer in peak.peak_buffers} == {"b": 30, "loader": 20}
    assert (peak.peak_time_ps, peak.peak_step) == (13, None)


def test_a_step_takes_its_own_records_wherever_they_are():
    (peak,) = explain_memory(EVENTS, STEPS, step="1").allocators
    assert (peak.peak_bytes, peak.peak_time_ps) == (35, 35)


@each_row("step", ["2", "train 9", "-1", ""])
def test_an_unknown_step(step):
    with pytest.raises(NotFoundError, match=r"no step .* ids 0 to 1"):
        explain_memory(EVENTS, STEPS, step=step)


def test_an_unknown_step_of_a_profile_without_steps():
    with pytest.raises(NotFoundError, match="has no steps"):
        explain_memory(EVENTS, columns_of("steps", []), step="0")


def test_no_records_no_allocators():
    assert explain_memory(events([]), STEPS).allocators == ()


def test_notices_count_what_could_not_be_followed():
    rows = [alloc(1, 1, allocator="x"), alloc(1, 1, allocator="x"), free(9, allocator="x")]
    rows += [alloc(None, 1, allocator="x"), free(None, allocator="x")]
    answer = explain_memory(events(rows), STEPS)
    assert [(n.kind, n.count) for n in answer.notices] == [
        ("untracked_allocation", 2),
        ("double_allocation", 1),
        ("unmatched_deallocation", 1),
    ]
    assert all(isinstance(n, Notice) and n.detail.startswith("x: ") for n in answer.notices)


def test_freeing_memory_from_before_the_profile_is_no_notice():
    rows = [alloc(1, 10, in_use_bytes=100), free(9, 50, in_use_bytes=50)]
    assert explain_memory(events(rows), STEPS).notices == ()


def test_what_was_guessed_is_counted_once_however_often_it_is_asked():
    rows = [row | {"allocator": name} for name in "ab" for row in (alloc(1, 5), alloc(1, 7))]
    profile = Profile(FakeReader({"allocator_events": events(rows)}))
    answer_memory(profile, allocator="a")
    assert [(w.kind, w.count) for w in profile.warnings] == [("double_allocation", 1)]
    # The other allocator's is another one.
    for _ in range(2):
        answer_memory(profile)
        assert [(w.kind, w.count) for w in profile.warnings] == [("double_allocation", 2)]
    # Each question has its own, and what it was told is not taken from those that follow.
    shared = Profile(FakeReader({"allocator_events": events(rows)}))
    for _ in range(2):
        with shared.question() as warnings:
            answer_memory(shared)
            assert [(w.kind, w.count) for w in warnings()] == [("double_allocation", 2)]
    answer_memory(shared)
    assert [(w.kind, w.count) for w in shared.warnings] == [("double_allocation", 2)]


@each_row("size", [-5, 2**48 + 1, 2**63 - 1])
def test_a_size_that_no_memory_has_is_unknown_and_told(size):
    answer = explain_memory(events([alloc(1, size, op="a"), alloc(2, 100, op="b")]), STEPS)
    (peak,) = answer.allocators
    assert (peak.peak_bytes, peak.live_at_end_bytes) == (100, 100)
    assert [(notice.kind, notice.count) for notice in answer.notices] == [("implausible_size", 1)]


def _buffers(seed: int, row_type: type) -> tuple[LiveBytes, list[tuple[int, int, int, int]]]:
    random = np.random.default_rng(seed)
    rows = np.flatnonzero(random.random(200) < 0.5)
    ends = np.where(random.random(rows.size) < 0.2, -1, rows + random.integers(1, 60, rows.size))
    sizes = random.integers(0, 1 << 50, rows.size)
    request = sizes - sizes // 3
    return LiveBytes(rows, ends.astype(row_type), sizes, request), list(
        zip(rows.tolist(), ends.tolist(), sizes.tolist(), request.tolist(), strict=True)
    )


@pytest.mark.parametrize("row_type", [np.int32, np.int64])
@pytest.mark.parametrize("seed", range(8))
def test_live_bytes_are_the_sums_of_the_buffers_that_live_then(seed, row_type):
    result, buffers = _buffers(seed, row_type)
    random = np.random.default_rng(seed + 100)
    group = random.integers(0, 4, result.rows.size)
    low, high = sorted(random.integers(-1, 259, 2).tolist())
    moments = np.sort(random.integers(low, high + 1, 37))
    for requested in (False, True):
        own = result.at(moments, group.astype(np.int8), 4, requested=requested)
        plain = [
            [
                sum(
                    buffer[2 + requested]
                    for buffer, code in zip(buffers, group.tolist(), strict=True)
                    if code == one and buffer[0] <= at and (buffer[1] < 0 or buffer[1] > at)
                )
                for at in moments.tolist()
            ]
            for one in range(4)
        ]
        assert own.tolist() == plain
    for at in (-1, low, high):
        live = [
            place for place, (row, end, *_) in enumerate(buffers) if row <= at < (end % (1 << 60))
        ]
        assert result.live_at(at).tolist() == live


def test_no_moments_and_no_buffers():
    nothing = np.zeros(0, np.int64)
    empty = LiveBytes(nothing, nothing, nothing, nothing)
    assert empty.at(np.array([-1, 3]), nothing, 2).tolist() == [[0, 0], [0, 0]]
    assert empty.at(nothing, nothing, 2).shape == (2, 0)
