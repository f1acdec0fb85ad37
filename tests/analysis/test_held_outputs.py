"""Outputs of one step that live on into the next."""

from tests.analysis.histories import history, steps_at
from tests.analysis.records import alloc, free
from tests.analysis.stacks import of_kind, profile_with

from peakline.memory.marks import find_marks
from peakline.memory.peak.buffers import buffers_at_peak
from peakline.memory.savings.answer import find_savings

MIB = 1 << 20
STEPS = steps_at(0, 200, 400, 600)


def older(rows):
    made = history(rows)
    marks = find_marks(made, 0, STEPS)
    found = buffers_at_peak(made, 0, marks, made.measured)
    savings = find_savings(made, 0, marks, counted=made.measured, found=found)
    return [saving for saving in savings if saving.kind == "older_copy"]


def outputs(*, early=True, together=True):
    """Three steps that each make outputs of one size, which the next frees once it has its own."""
    rows, first = [], [alloc(50, 1, op="x", shape="[1]"), free(50)] * 30
    for number in range(3):
        body = [] if early else first
        body = body + [alloc(10 * number + n, 40, op="out", shape="[4]") for n in range(4)]
        if number:
            gap = [] if together else [alloc(51, 1, op="y", shape="[1]"), free(51)] * 4
            body += [one for n in range(4) for one in [free(10 * number - 10 + n), *gap]]
        body += first if early else []
        filler = [alloc(7, 1, op="tick", shape="[1]"), free(7)] * (60 - len(body) // 2)
        rows += [
            row | {"time_ps": 200 * number + n} for n, row in enumerate([*body, *filler][:120])
        ]
    return rows


def test_outputs_of_the_step_before_are_older_copies():
    (saving,) = older(outputs())
    assert saving.title == "4 x out [4] of the step before"
    assert saving.rows[0]["count"] == 4
    assert (saving.bytes, saving.peak_after) == (159, 161)


def test_what_is_made_late_in_a_step_or_goes_one_by_one_is_state():
    assert older(outputs(early=False)) == []
    assert older(outputs(together=False)) == []


def test_held_after_use():
    rows = [row | {"allocated_bytes": MIB * (row["allocated_bytes"] or 0)} for row in outputs()]
    (finding,) = of_kind(profile_with(rows, STEPS), "held_after_use")
    assert finding.severity == "warning"
    assert "4 x out [4] of the step before live at the peak" in finding.title
    assert finding.evidence["saved_bytes"] == 159 * MIB
