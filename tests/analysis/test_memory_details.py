"""All analyses together, as `explain_memory` gives them."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from tests.analysis.histories import history, records, steps_at
from tests.analysis.records import alloc, events, free
from tests.each_row import each_row

import peakline
from peakline.deadline import Deadline, within
from peakline.errors import DeadlineError
from peakline.findings.finding import Finding
from peakline.findings.memory_answer import explain_memory
from peakline.memory.churn import find_churn
from peakline.memory.fragmentation.holes import find_fragmentation
from peakline.memory.growth.series import find_growth
from peakline.memory.marks import find_marks
from peakline.memory.peak.buffers import buffers_at_peak
from peakline.memory.savings.answer import find_savings
from peakline.memory.savings.op_use import read_op_use
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
    found = detail.fragmentation
    own = 1 - found.largest / np.maximum(found.free, 1)
    late = found.time_ps > found.time_ps[-1] // 2
    assert np.abs(own - found.reported)[late].mean() < 0.1


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
    asked = {
        "all": lambda: explain_memory(made.events, steps),
        "growth": lambda: find_growth(made, 0, marks),
        "fragmentation": lambda: find_fragmentation(made, 0),
        "savings": lambda: find_savings(made, 0, marks, counted=made.measured, found=at_peak),
        "churn": lambda: find_churn(made, (marks,)),
    }[analysis]
    asked()
    with within(Deadline(0)), pytest.raises(DeadlineError):
        asked()
