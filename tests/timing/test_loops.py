"""Loops that keep a device waiting, late runs, and devices that are idle between runs."""

import gzip

import pytest
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder, Uint
from tests.shared import DATA
from tests.timing.kineto_jobs import of_kind
from tests.timing.traces import HOST_PLANE, profile_of

import peakline
from peakline.check.time import time_limits, time_state_of
from peakline.check.verdict import Limits
from peakline.schema import XSpace
from peakline.timing.ops.tiny import loop_of

US = 10**6
BODY = "loss/while/body/_1/loss/while"
GRADIENT = "gradient_tape/loss/while/loss/while_grad/body/_7/gradient_tape/loss/while"


@each_row(
    ("name", "loop"),
    [
        (f"{BODY}/MatMul", "loss/while"),
        ("loss/while/cond/_0/loss/while/Less", "loss/while"),
        (f"{GRADIENT}/MatMul_1", "loss/while"),
        ("PartitionedCall/map/while/body/_3/map/while/Slice", "PartitionedCall/map/while"),
        ("decode/body/_9/decode/while/body/_2/Mul", "decode"),
        ("gradient_tape/decode/decode_grad/body/_9/Mul", "decode"),
        ("glimpse/map/while/cut/Slice", "glimpse/map/while"),
        ("gradients/glimpse/map/while/cut/Slice_grad/Pad", "glimpse/map/while"),
        ("glimpse/concat", ""),
        ("choice/then/_4/MatMul", ""),
        ("gradients/AddN", ""),
    ],
)
def test_the_loop_that_an_op_is_of(name, loop):
    assert loop_of(name, {"glimpse/map/while"}) == loop


def job(ops, turns=24, apart=20):
    """Eight steps of 2 ms, in each of which ``ops`` (name and us) run in turns from 500 us on."""
    events, steps = [], []
    for number in range(8):
        at = 2000 * number * US
        steps.append((f"train {number}", at, at + 2000 * US))
        events.append((*steps[-1], number))
        events.append(("dense/MatMul:MatMul", at, at + 300 * US))
        now = at + 500 * US
        for _ in range(turns):
            for name, length in ops:
                events.append((name, now, now + length * US))
                now += (length + apart) * US
    return profile_of({HOST_PLANE: {"1": events}}, steps)


SMALL = [(f"{BODY}/{name}:{name}", 2) for name in ("Slice", "Mean", "Sub")]


def test_a_loop_is_named_with_its_turns():
    (finding,) = of_kind(job(SMALL), "tiny_ops")
    assert finding.severity == "info"
    assert finding.title.startswith(
        "24 turns a step of the loop loss/while, of 3 small ops (Slice, Mean, Sub), 0.002 ms each"
    )
    assert (finding.evidence["loop"], finding.evidence["turns"]) == ("loss/while", 24.0)
    # What lies between two ops of a loop is the loop's, and no other op's.
    (more,) = of_kind(job(SMALL[:2], apart=60), "tiny_ops")
    assert more.evidence["loop_ps"] > 6 * 1400 * US


def test_turns_of_a_map_need_no_products_of_their_own():
    body = "transform/map/while/body/_1/transform/map/while"
    ops = [(f"{body}/MatVec/MatMul:MatMul", 20), (f"{body}/Sub:Sub", 2)]
    (finding,) = of_kind(job(ops), "tiny_ops")
    assert finding.evidence["loop"] == "transform/map/while"


def test_a_loop_with_its_gradient_is_one():
    back = [(f"{GRADIENT}/{name}:{name}", 2) for name in ("Mul", "Sum", "AddN")]
    assert of_kind(job([*SMALL, *back], turns=12), "tiny_ops") == []
    (finding,) = of_kind(job([*SMALL, *back], apart=5), "tiny_ops")
    assert (finding.evidence["loop"], finding.evidence["ops_per_step"]) == ("loss/while", 144.0)


@each_row(
    ("ops", "turns"),
    [
        # Few turns, large ops, whole steps, and a recurrent net.
        (SMALL, 8),
        ([(f"{BODY}/Conv:Mean", 150), (f"{BODY}/Sub:Sub", 150)], 24),
        ([*SMALL, (f"{BODY}/AssignSubVariableOp:AssignSubVariableOp", 2)], 24),
        ([*SMALL, (f"{BODY}/cell/MatMul:MatMul", 20)], 24),
    ],
)
def test_other_loops_are_silent(ops, turns):
    assert of_kind(job(ops, turns), "tiny_ops") == []


MS = 10**9
GPU = "/device:GPU:0"


@each_row(
    ("host", "says"),
    [("python", "had not launched its next work"), ("backend_compile", "compiled")],
)
def test_an_idle_device_is_told_of_without_steps(opened, host, says):
    space = SpaceBuilder()
    stream = space.plane(GPU).line("Stream #13(Compute)")
    python = space.host().line("python")
    python.event(host, 0, 19 * MS, {})
    for number in range(3):
        stats = {"correlation_id": number + 1}
        stream.event("gemm", 10 * number * MS, MS, stats)
        python.event("cuLaunchKernel", max(10 * number - 1, 0) * MS, 1000, stats)
    answer = opened(space).time()
    (result,) = answer.findings
    assert (answer.times, result.kind, result.severity) == (None, "host_bound", "warning")
    assert result.title == f"{GPU} waits for 86% of 21.000 ms while the host {says}"
    assert result.evidence["share"] == 18 / 21
    (row,) = result.rows
    assert (row["not_launched_ps"], row["being_launched_ps"]) == (16 * MS, 2 * MS)


@each_row(
    ("copy_ns", "says", "severity", "share"),
    [
        # A two hundredth, then a fiftieth, of what the other device works.
        (5_000, "/device:GPU:0 waits for 86% of 21.000 ms", "warning", 18 / 21),
        (20_000, "/device:GPU:1 waits for 100% of 30.020 ms", "warning", None),
    ],
)
def test_of_idle_devices_those_that_work_come_first(opened, copy_ns, says, severity, share):
    (result,) = idle_of(opened, {"/device:GPU:0": (10, MS), "/device:GPU:1": (15, copy_ns * 1000)})
    assert result.title.startswith(says)
    assert result.severity == severity
    assert share in {None, result.evidence["share"]}
    assert len(result.rows) == 2


def test_an_idle_device_that_does_none_of_the_work_is_a_note(opened):
    (result,) = idle_of(opened, {"/device:GPU:0": (1, MS), "/device:GPU:1": (10, MS // 200)})
    assert result.severity == "info"
    assert result.title == (
        "/device:GPU:1 waits for 100% of 20.005 ms while the host had not launched its next work "
        "(it does 0.5% of the work of the busiest device)"
    )
    assert (result.evidence["gain_ps"], result.evidence["gain_share"]) == (0, 0.0)


def idle_of(opened, devices):
    """What is found where each device has three pieces of work, launched as they begin: the ms from
    one to the next, and the ps that each takes.
    """
    space = SpaceBuilder()
    python = space.host().line("python")
    number = 0
    for device, (apart, length) in devices.items():
        stream = space.plane(device).line("Stream #13(Compute)")
        for place in range(3):
            number += 1
            stats = {"correlation_id": number}
            begin = max(apart * MS, length) * place
            stream.event("gemm", begin, length, stats)
            python.event("cuLaunchKernel", max(begin - 1, 0), 1000, stats)
    return opened(space).time().findings


RECORDED = DATA / "sessions/jax_cpu/plugins/profile/2026_11_20_17_20_28/vm.xplane.pb.gz"


@pytest.fixture
def job_of_late_runs(tmp_path):
    """Write the job with marks that end when the last call of a program in them has begun, of all
    steps but the first ``whole``; a path.
    """

    def write(whole=0):
        space = XSpace.FromString(gzip.decompress(RECORDED.read_bytes()))
        for plane in space.planes:
            names = {key: one.name for key, one in plane.event_metadata.items()}
            for line in plane.lines:
                marks = [one for one in line.events if names[one.metadata_id] == "train"]
                for mark in sorted(marks, key=lambda one: one.offset_ps)[whole:]:
                    end = mark.offset_ps + mark.duration_ps
                    calls = [
                        one.offset_ps
                        for one in line.events
                        if names[one.metadata_id].startswith("PjitFunction(")
                        and mark.offset_ps <= one.offset_ps < end
                    ]
                    mark.duration_ps = max(calls) + US - mark.offset_ps
        path = tmp_path / f"{whole}.xplane.pb"
        path.write_bytes(space.SerializeToString())
        return path

    return write


def finding_of(path):
    with peakline.open(path) as profile:
        result = [one for one in profile.time().findings if one.kind == "work_after_steps"]
        steps = profile.steps()
    return (result or [None])[0], steps


def test_work_that_ends_in_the_steps_is_not_late():
    assert finding_of(RECORDED)[0] is None


def test_work_that_the_steps_only_launch(job_of_late_runs):
    path = job_of_late_runs()
    finding, steps = finding_of(path)
    evidence = finding.evidence
    assert finding.severity == "warning"
    assert "jit_train_step" in evidence["programs"]
    assert evidence["late_ps"] > max(0.75 * evidence["work_ps"], steps.wall_ps)
    assert evidence["share"] == evidence["late_ps"] / evidence["work_ps"]
    assert finding.title.startswith("the steps only launch their work: ")
    # A limit on what the marks say would hold of any program.
    with peakline.open(path) as profile:
        state = time_state_of(profile.time())
    (check,) = time_limits(state, Limits(max_step_ps=10**12))
    assert not check.passed
    assert check.reason.startswith("cannot be measured: the steps only launch their work: wait for")


def test_work_of_which_some_ends_in_the_steps(job_of_late_runs):
    finding, _ = finding_of(job_of_late_runs(whole=9))
    assert finding is None


def test_a_loop_that_is_compiled_is_no_alarm_and_not_to_be_compiled(opened):
    """Six steps of 100 ms that are 2,000 instructions each, then the same as ops run one by one."""
    for compiled, severity, words in (
        (True, "info", "compiled already"),
        (False, "warning", "or compile the loop"),
    ):
        host = (builder := SpaceBuilder()).host()
        python, worker = host.line("python"), host.line("tf_XLAPjRtCpuClient/1")
        for step in range(6):
            python.event("train", step * 10**11, 10**11, {"step_num": step, "_r": 1})
            for turn in range(2000):
                at, op = step * 10**11 + turn * 50 * 10**6, f"multiply.{turn % 4}"
                stats = {"hlo_module": "jit_step", "hlo_op": op, "program_id": Uint(7)}
                name = op if compiled else f"scope/{op}:Mul"
                worker.event(name, at, 25 * 10**6, stats if compiled else {})
        every = opened(builder).findings()
        (finding,) = [one for one in every if one.kind == "tiny_ops"]
        assert (finding.severity, words in finding.suggestion) == (severity, True)
