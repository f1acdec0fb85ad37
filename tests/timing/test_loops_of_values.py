"""Values that are read one by one in a step, and loops over recurrent cells."""

import numpy as np
from tests.timing.kineto_jobs import US, job, of_kind

from peakline.timing.launches.host_reads import value_reads_of
from peakline.timing.ops.elementwise import in_optimizer
from peakline.timing.ops.in_steps import step_ops_of
from peakline.timing.ops.tiny import in_cell_loops

FRAME = "train.py(9): log_gradients"
MM = ("aten::mm", 6000, 9000)


def reads(count, *, each=100, between=2, op="aten::item"):
    """A loop that makes a value with some ops, and reads it."""
    return [
        (op if n == between else "aten::abs", each * k + 10 * n, each * k + 10 * n + 5)
        for k in range(count)
        for n in range(between + 1)
    ]


def test_values_that_are_read_one_by_one():
    profile = job([*reads(30), MM], frame=FRAME)
    ops = step_ops_of(profile, of_host=True)
    result = value_reads_of(profile, ops, in_optimizer(profile, ops))
    assert result.per_step == 30
    # From the end of one read to that of the next: not what comes before the first.
    assert result.loop_ps == 6 * 29 * 100 * US
    assert dict(result.ops) == {"aten::abs": 58, "aten::item": 29}
    (finding,) = of_kind(profile, "host_sync")
    assert finding.severity == "warning"
    assert finding.title == (
        "30 values are read one by one in each step, which takes 29% of it, in log_gradients "
        "(train.py:9): aten::abs, aten::item"
    )
    assert (finding.evidence["line"], finding.evidence["reads_per_step"]) == (9, 30)


def test_a_few_reads_or_reads_far_apart_are_no_loop():
    assert of_kind(job([*reads(10), MM]), "host_sync") == []
    assert of_kind(job([*reads(30, between=9), MM]), "host_sync") == []
    assert of_kind(job([*reads(30, op="aten::mul"), MM]), "host_sync") == []
    # They take little of the step.
    assert of_kind(job([*reads(30, each=25), MM]), "host_sync") == []
    # An optimizer reads its own numbers.
    around = ("Optimizer.step#SGD.step", 0, 5000)
    assert of_kind(job([around, *reads(30), MM]), "host_sync") == []


def cells(count, name="aten::lstm_cell"):
    ops = []
    for turn in range(count):
        at = 300 * turn
        ops += [("aten::select", at, at + 10), (name, at + 20, at + 100)]
        ops += [(f"aten::op{n}", at + 100 + 20 * n, at + 110 + 20 * n) for n in range(6)]
    return ops


def test_cells_of_a_sequence():
    profile = job(cells(16))
    ops = step_ops_of(profile, of_host=True)
    # From the first cell to the last.
    assert np.count_nonzero(in_cell_loops(profile, ops)) == ops.steps * (15 * 8 + 1)
    (finding,) = of_kind(profile, "tiny_ops")
    assert finding.evidence["ops_per_step"] >= 121
    assert any(row["op"] == "aten::lstm_cell" for row in finding.rows)


def test_layers_of_cells_and_other_ops_are_no_loop():
    profile = job(cells(4))
    assert in_cell_loops(profile, step_ops_of(profile, of_host=True)) is None
    profile = job(cells(8, "aten::lstm"))
    assert in_cell_loops(profile, step_ops_of(profile, of_host=True)) is None
    assert of_kind(profile, "tiny_ops") == []
