"""Findings of time that no other file makes by hand: callbacks, and hosts that work longer."""

from tests.analysis.timing.traces import HOST_PLANE, profile_of
from tests.each_row import each_row

from peakline.findings.kinds.straggler import of_hosts
from peakline.findings.time_answer import answer_time
from peakline.timing.steps.stragglers import HostStraggler
from peakline.timing.steps.variation import Straggler

MS = 10**9
CALL = "model/PyFunc:PyFunc"


def job(length):
    """Eight steps of 100 ms that call back for so long."""
    line, steps = [], []
    for number in range(8):
        at = 100 * number
        steps.append((f"train {number}", at * MS, (at + 100) * MS))
        line.append((*steps[-1], number))
        line.append((CALL, (at + 10) * MS, (at + 10 + length) * MS))
        line.append(("$train.py:9 parse", (at + 11) * MS, (at + 9 + length) * MS))
        line.append(("model/MatMul:MatMul", (at + 50) * MS, (at + 90) * MS))
    return profile_of({HOST_PLANE: {"main": line}}, steps)


def of_kind(profile, kind):
    return [finding for finding in answer_time(profile).findings if finding.kind == kind]


@each_row(("length", "severity"), [(30, "warning"), (10, "info")])
def test_host_callback(length, severity):
    (finding,) = of_kind(job(length), "host_callback")
    assert finding.severity == severity
    assert finding.title == (
        f"{length}% of the step time goes to calls from the program back into Python: "
        "model/PyFunc (1 times a step), which runs parse (train.py:9)"
    )
    assert (finding.evidence["op_type"], finding.evidence["line"]) == ("PyFunc", 9)
    assert of_kind(job(4), "host_callback") == []


@each_row(("beside", "severity"), [(60, "warning"), (12, "info")])
def test_an_op_that_runs_beside_others(beside, severity):
    """A string op has a thread for 20 ms alone, and for so much longer beside the others."""
    steps, main, other = [], [], []
    for number in range(8):
        at = 100 * number
        steps.append((f"train {number}", at * MS, (at + 100) * MS))
        main.append((*steps[-1], number))
        main.append(("model/MatMul:MatMul", (at + 20) * MS, (at + 95) * MS))
        other.append(("debug/StringFormat:StringFormat", at * MS, (at + 20 + beside) * MS))
    profile = profile_of({HOST_PLANE: {"main": main, "other": other}}, steps)
    (finding,) = of_kind(profile, "expensive_op")
    assert finding.severity == severity
    much = f", which runs for {20 + beside}% of it, beside others"
    assert finding.title == (
        "20% of the step time goes to work on strings: debug/StringFormat"
        + (much if beside == 60 else "")
    )


def straggler(**more):
    given = {
        "name": "host b", "share": 0.2, "often": 0.9, "behind_ps": 10, "waited_ps": 8,
        "evidence": "communication", "steps": 5,
    }  # fmt: skip
    return Straggler(**(given | more))


def test_a_host_that_works_longer():
    finding = of_hosts(HostStraggler(straggler(), 50, works_longer=True), 3)
    assert (finding.kind, finding.severity) == ("straggler", "warning")
    assert finding.title == (
        "host b works longer than the other 2 in 90% of the steps, and they wait for it: 20% of "
        "the step time"
    )
    assert (finding.evidence["work_ps"], finding.evidence["gain_share"]) == (50, 0.2)


@each_row(
    ("more", "works_longer"),
    [({}, False), ({"share": 0.04}, True), ({"often": 0.7}, True)],
)
def test_a_host_that_is_last_by_chance(more, works_longer):
    assert of_hosts(HostStraggler(straggler(**more), 50, works_longer=works_longer), 3) is None


STEP = "EagerLocalExecute: __inference_multi_step_on_iterator_9"


def keras(wait, stage="Iterator::Root::Prefetch::Map"):
    """Eight runs of Keras' training function, 100 ms each, that wait for a batch for so long."""
    main, waits, works, steps = [], [], [], []
    for number in range(8):
        at = 100 * number
        steps.append((f"train {number}", at * MS, (at + 100) * MS))
        main.append((*steps[-1], number))
        main.append((STEP, at * MS, (at + 100) * MS))
        waits.append(("IteratorGetNextOp::DoCompute", at * MS, (at + wait) * MS, number))
        waits.append(("Iterator::Root", at * MS, (at + wait) * MS, number))
        waits.append(("Iterator::Root::Prefetch", at * MS, (at + wait) * MS, number))
        works.append((stage, at * MS, (at + wait) * MS, number))
        main.append(("dense/MatMul:MatMul", (at + wait) * MS, (at + 100) * MS))
    lines = {
        "main": main, "tf_data_iterator_get_next/7": waits, "tf_data_iterator_resource/8": works
    }  # fmt: skip
    return profile_of({HOST_PLANE: lines}, steps)


@each_row(("wait", "severity"), [(30, "warning"), (10, "info")])
def test_a_compiled_function_that_waits_for_its_batch(wait, severity):
    (finding,) = of_kind(keras(wait), "input_bound")
    assert finding.severity == severity
    assert finding.title.startswith(f"{wait}% of the time training waits for input; Map holds")
    assert of_kind(keras(3), "input_bound") == []
