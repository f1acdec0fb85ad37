"""What a step's time went to, exactly."""

import os
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder
from tests.timing.traces import GPU, HOST_PLANE, TPU, parts_of, profile_of, slow_parts, slow_windows

import peakline
from peakline.timing.step_breakdown import PARTS, step_times
from peakline.trace.windows import windows_of

SESSIONS = Path(__file__).parents[1] / "data" / "sessions"
PROGRAMS = Path(__file__).parents[1] / "data" / "programs" / "time"


def fast_parts(profile):
    """What `slow_parts` tells, of `step_times`."""
    times = step_times(profile)
    return {
        (times.devices[d] if d >= 0 else None, int(step)): {
            name: int(value) for name, value in zip(PARTS, parts, strict=True) if value
        }
        for d, step, parts in zip(times.device.tolist(), times.step_id, times.parts, strict=True)
    }


class TestWithoutDevice:
    def test_a_step_is_its_marker_and_its_ops_are_host_compute(self):
        host = {
            "python": [("train", 0, 100, 0), ("IteratorGetNextOp::DoCompute", 10, 30, 0)],
            "tf_Compute/1": [("a:MatMul", 40, 70, 0), ("b:MatMul", 90, 120, 0)],
            "tf_Compute/2": [("c:MatMul", 50, 80, 0), ("stranger:MatMul", 80, 90)],
        }
        profile = profile_of({HOST_PLANE: host}, [("train 0", 0, 100)])
        assert parts_of(profile) == [{
            "name": "train 0", "device": None, "start": 0, "end": 100, "input_wait": 20,
            "host_compute": 50, "unknown": 30,
        }]  # fmt: skip

    def test_a_call_that_compiles_is_compilation_until_it_is_done(self):
        host = {"python": [
            ("train", 0, 100, 0), ("PjitFunction(f)", 10, 90, 0), ("backend_compile", 40, 60, 0),
            ("dot.1", 70, 80, 0),
        ]}  # fmt: skip
        (row,) = parts_of(profile_of({HOST_PLANE: host}, [("train 0", 0, 100)]))
        assert (row["compile"], row["launch"], row["unknown"]) == (50, 30, 20)

    def test_collectives_count_where_no_thread_computes(self):
        host = {
            "python": [("train", 0, 100, 0)],
            "tf_XLAEigen/1": [("dot", 0, 50), ("all-reduce", 50, 100)],
            "tf_XLAEigen/2": [("dot", 0, 20), ("psum.7", 20, 90), ("Rendezvous", 30, 90)],
        }
        (row,) = parts_of(profile_of({HOST_PLANE: host}, [("train 0", 0, 100)]))
        assert (row["host_compute"], row["communication"], row["communication_total"]) == (
            50,
            50,
            80,
        )

    def test_an_unmarked_function_lasts_until_its_work_is_done(self):
        host = {
            "python": [("FunctionRun", 0, 10, 0), ("FunctionRun", 100, 120, 1)],
            "tf_Compute/1": [("a:MatMul", 5, 60, 0), ("a:MatMul", 110, 115, 1)],
        }
        steps = [("0", 0, 10), ("1", 100, 120)]
        rows = parts_of(profile_of({HOST_PLANE: host}, steps))
        assert [(row["start"], row["end"]) for row in rows] == [(0, 60), (100, 120)]
        assert rows[1]["gap_before"] == 40

    def test_no_steps_no_rows(self):
        assert parts_of(profile_of({HOST_PLANE: {"python": [("work", 0, 10)]}})) == []


def loop(device, *, marker=20, period=100, steps=3):
    """A host that launches a step every ``period`` and does not wait for the GPU."""
    host, streams, table = [], {name: [] for name in ("Stream #1", "Stream #2")}, []
    for step in range(steps):
        at = step * period
        table.append((f"train {step}", at, at + marker))
        host += [("train", at, at + marker, step), ("cuLaunchKernel", at + 5, at + 15, step)]
        for stream, name, start, end in device(step):
            streams[stream].append((name, start, end, step))
    return profile_of({GPU: streams, HOST_PLANE: {"python": host}}, table)


class TestGpu:
    def test_a_step_lasts_until_its_device_work_is_done(self):
        profile = loop(lambda k: [("Stream #1", "kernel", 100 * k + 10, 100 * k + 70)])
        assert parts_of(profile)[1] == {
            "name": "train 1", "device": GPU, "start": 100, "end": 170, "gap_before": 30,
            "compute": 60, "launch": 5, "idle": 5,
        }  # fmt: skip

    def test_a_host_that_runs_ahead_gives_windows_of_one_period_each(self):
        # Launched every 30, run for 90: the device is the bottleneck.
        profile = loop(
            lambda k: [("Stream #1", "kernel", 10 + 90 * k, 95 + 90 * k)], period=30, marker=25
        )
        rows = parts_of(profile)
        assert [(row["start"], row["end"]) for row in rows] == [(0, 95), (95, 185), (185, 275)]
        assert rows[2]["compute"] == 85
        assert rows[2]["idle"] == 5

    def test_computation_hides_communication_and_both_hide_copies(self):
        profile = loop(lambda k: [
            ("Stream #1", "kernel", 100 * k + 20, 100 * k + 50),
            ("Stream #2", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 100 * k + 40, 100 * k + 70),
            ("Stream #1", "MemcpyD2H", 100 * k + 60, 100 * k + 80),
        ])  # fmt: skip
        row = parts_of(profile)[0]
        assert (row["compute"], row["communication"], row["device_to_host"]) == (30, 20, 10)
        assert row["communication_total"] == 30

    def test_the_host_explains_what_the_device_does_not(self):
        host = {"python": [
            ("train", 0, 100, 0), ("IteratorGetNextOp::DoCompute", 5, 30, 0),
            ("backend_compile", 30, 40, 0), ("cuLaunchKernel", 50, 60, 0),
            ("convert_to_tensor", 60, 70, 0), ("cuStreamSynchronize", 70, 100, 0),
        ]}  # fmt: skip
        streams = {"Stream #1": [
            ("MemcpyH2D", 20, 35, 0), ("kernel", 55, 65, 0), ("MemcpyD2D", 80, 85, 0),
        ]}  # fmt: skip
        (row,) = parts_of(profile_of({GPU: streams, HOST_PLANE: host}, [("train 0", 0, 100)]))
        assert row == {
            "name": "train 0", "device": GPU, "start": 0, "end": 100, "compute": 10,
            "device_to_device": 5, "host_to_device": 15, "input_wait": 15, "compile": 5,
            "launch": 5, "host_compute": 5, "idle": 40,
        }  # fmt: skip

    @each_row("line", ["XLA Modules", "Steps", "XLA Ops", "Framework Name Scope"])
    def test_derived_lines_are_no_work(self, line):
        planes = {
            GPU: {"Stream #1": [("kernel", 10, 20, 0)], line: [("jit_f(1)", 0, 80, 0)]},
            HOST_PLANE: {"python": [("train", 0, 50, 0)]},
        }
        (row,) = parts_of(profile_of(planes, [("train 0", 0, 50)]))
        assert (row["end"], row["compute"]) == (50, 10)


class TestTpu:
    STEPS = ("0", 0, 100), ("1", 100, 190)
    MODULES = ("jit_f(1)", 0, 100, 0), ("jit_f(1)", 100, 190, 1)

    def test_the_innermost_op_counts_and_a_transfer_beside_only_where_none_is(self):
        start = "%copy-start = (f32[8]{0}, f32[8]{0:S(5)}, u32[]) copy-start(f32[8]{0:S(5)} %p)"
        done = "%copy-done = f32[8]{0} copy-done((f32[8]{0}, f32[8]{0:S(5)}, u32[]) %copy-start)"
        planes = {TPU: {
            "XLA Modules": self.MODULES,
            "XLA Ops": [
                ("%while.1 = (s32[]) while((s32[]) %t)", 0, 80, 0),
                ("%all-reduce.3 = f32[8]{0} all-reduce(f32[8]{0} %x)", 20, 50, 0),
                (done, 60, 70, 0), ("%fusion.2 = f32[8]{0} fusion(f32[8]{0} %x)", 110, 150, 1),
            ],
            "Async XLA Ops": [(start, 30, 90, 0), ("%all-gather-start.1 = x", 140, 170, 1)],
        }}  # fmt: skip
        profile = profile_of(planes, self.STEPS)
        assert parts_of(profile) == [
            {"name": "0", "device": TPU, "start": 0, "end": 100, "compute": 40,
             "communication": 30, "host_to_device": 20, "idle": 10, "communication_total": 30},
            {"name": "1", "device": TPU, "start": 100, "end": 190, "compute": 40,
             "communication": 20, "idle": 30, "communication_total": 30},
        ]  # fmt: skip
        assert fast_parts(profile) == {
            (TPU, 0): {"compute": 40, "communication": 30, "host_to_device": 20, "idle": 10},
            (TPU, 1): {"compute": 40, "communication": 20, "idle": 30},
        }

    def test_a_core_without_marks_takes_part_in_no_step(self):
        planes = {
            TPU: {"XLA Modules": self.MODULES, "XLA Ops": [("%fusion = x", 0, 90, 0)]},
            "/device:TPU:1": {"XLA Ops": [("%fusion = x", 10, 60)]},
        }
        profile = profile_of(planes, self.STEPS)
        assert {row["device"] for row in parts_of(profile)} == {TPU}
        assert [(one.device.name, one.step.tolist()) for one in windows_of(profile)] == [
            (TPU, [0, 1]), ("/device:TPU:1", []),
        ]  # fmt: skip

    def test_a_marker_of_the_host_holds_for_all_cores(self):
        planes = {
            TPU: {
                "Steps": [("7", 40, 90, 0)], "XLA Modules": [("jit_f(1)", 40, 85, 0)],
                "XLA Ops": [("%fusion = x", 40, 80, 0)],
            },
            HOST_PLANE: {"python": [("train", 0, 30, 0), ("PjitFunction(f)", 10, 20, 0)]},
        }  # fmt: skip
        (row,) = parts_of(profile_of(planes, [("train 7", 0, 30)]))
        assert (row["start"], row["end"], row["compute"], row["launch"]) == (0, 90, 40, 10)


NAMES = st.sampled_from([
    "IteratorGetNextOp::DoCompute", "Iterator::Root", "backend_compile", "PjitFunction(f)",
    "cuLaunchKernel", "cuStreamSynchronize", "a:MatMul", "RecvTensor", "python work",
    "ThreadpoolListener::Record",
])  # fmt: skip
DEVICE_NAMES = st.sampled_from(
    ["kernel", "ncclDevKernel_AllGather", "MemcpyH2D", "MemcpyD2H", "MemcpyD2D", "%infeed.1 = x"]
)
SPAN = st.tuples(st.integers(0, 60), st.integers(0, 40))
STEP = st.sampled_from([None, 0, 1, 2])


@st.composite
def lines(draw, names):
    return [
        (name, start, start + length, step)
        for name, (start, length), step in draw(st.lists(st.tuples(names, SPAN, STEP), max_size=8))
    ]


@st.composite
def jobs(draw):
    """Anything: overlaps, events of other steps, threads of none, steps within steps."""
    markers = [(start, start + length) for start, length in draw(st.lists(SPAN, max_size=3))]
    python = [("train", *span, number) for number, span in enumerate(markers)]
    host = {
        "python": [*python, *draw(lines(NAMES))],
        "tf_Compute/1": draw(lines(NAMES)),
        "tf_XLAEigen/2": draw(lines(NAMES)),
    }
    planes = {HOST_PLANE: host}
    for plane in draw(st.sampled_from([(), (GPU,), (GPU, "/device:GPU:1")])):
        planes[plane] = {
            "Stream #1": draw(lines(DEVICE_NAMES)),
            "Stream #2": draw(lines(DEVICE_NAMES)),
        }
    return planes, [(f"train {n}", *span) for n, span in enumerate(markers)]


class TestAnything:
    @settings(max_examples=150)
    @given(jobs())
    def test_the_parts_are_those_of_a_look_at_every_moment(self, job):
        profile = profile_of(*job)
        times = step_times(profile)
        assert np.array_equal(times.parts.sum(axis=1), times.wall)
        windows = {
            (times.devices[d] if d >= 0 else None, step): (start, end)
            for d, step, start, end in zip(
                times.device.tolist(), times.step_id.tolist(), times.start.tolist(),
                times.end.tolist(), strict=True,
            )
        }  # fmt: skip
        slow = {(d, k): w for d, result in slow_windows(profile).items() for k, w in result.items()}
        assert windows == slow
        assert fast_parts(profile) == slow_parts(profile)

    @settings(max_examples=100)
    @given(lines(st.sampled_from(["%while.1 = x", "%all-reduce.1 = x", "%infeed.1 = x"])),
           lines(st.sampled_from(["%all-gather-start.1 = x", "%copy-start = x"])))  # fmt: skip
    def test_ops_of_a_tpu_are_those_of_a_look_at_every_moment(self, ops, beside):
        host = {"python": [("train", 5, 90, 0)]}
        device = {"XLA Ops": ops, "Async XLA Ops": beside}
        profile = profile_of({TPU: device, HOST_PLANE: host}, [("train 0", 5, 90)])
        assert fast_parts(profile) == slow_parts(profile)


def test_kernels_belong_to_the_step_that_launched_them(opened):
    """An XSpace: what ties a kernel to its step is the correlation with its launch."""
    space = SpaceBuilder()
    stream = space.plane(GPU).line("Stream #13(Compute)")
    python = space.host().line("python")
    for step in range(3):
        at = 30 * step
        python.event("train", at, 20, {"_r": 1, "step_num": step})
        python.event("cuLaunchKernel", at + 5, 10, {"correlation_id": step + 1})
        stream.event("gemm", 10 + 90 * step, 85, {"correlation_id": step + 1})
    rows = parts_of(opened(space))
    assert [(row["name"], row["start"], row["end"]) for row in rows] == [
        ("train 0", 0, 95), ("train 1", 95, 185), ("train 2", 185, 275)
    ]  # fmt: skip
    assert [row["compute"] for row in rows] == [85, 85, 85]


SAMPLES = Path(os.environ.get("PEAKLINE_SAMPLES", "/nonexistent"))


@each_row(
    "path",
    [
        *sorted(SAMPLES.glob("public/tpu/*.good.xplane.pb")),
        *sorted(SESSIONS.glob("tf2_two_devices/**/*.xplane.pb.gz")),
        *sorted(SESSIONS.glob("tf2_multihost/**/*47507.xplane.pb")),
        PROGRAMS / "input_bound.xplane.pb.gz",
        PROGRAMS / "recompiling.xplane.pb.gz",
    ],
)
def test_real_steps_are_those_of_a_look_at_every_moment(path):
    with peakline.open(path) as profile:
        result = fast_parts(profile)
        assert result
        assert result == slow_parts(profile)
