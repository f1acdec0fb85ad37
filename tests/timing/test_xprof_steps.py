"""The step database: spans, markers, windows, cores of TPUs, several hosts."""

import pickle
import re

import pytest
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder, Uint
from tests.shared import shared

import peakline
from peakline.xprof.rules.step_kinds import SpanKind
from peakline.xprof.rules.step_model import CoreStep, HostSteps, Step
from peakline.xprof.rules.steps import combine_steps, host_steps

US = 10**6
MARK = {"_r": 1, "step_num": 0}


@pytest.fixture
def opened(opened):
    """Opens what a function fills a space with."""

    def build(fill):
        builder = SpaceBuilder()
        fill(builder)
        return opened(builder)

    return build


def only_core(profile, *, compatible):
    """The one core of the one step."""
    (step,) = host_steps(profile, compatible=compatible).steps
    (core,) = step.cores.values()
    return core


def test_the_highest_kind_has_the_time_and_the_rest_is_unknown(opened):
    def fill(builder):
        line = builder.host().line("t")
        line.event("train", 0, 10 * US, MARK)
        line.event("work", 1 * US, 6 * US)
        line.event("IteratorGetNext", 2 * US, 3 * US)

    core = only_core(opened(fill), compatible=True)
    assert (core.name, core.duration_ps) == ("train 0", 10 * US)
    assert core.kinds == {
        SpanKind.HOST_WAIT_INPUT: 3 * US,
        SpanKind.HOST_COMPUTE: 3 * US,
        SpanKind.UNKNOWN: 4 * US,
    }


@each_row(
    ("compatible", "kinds"),
    [
        (True, {SpanKind.HOST_COMPUTE: 7 * US, SpanKind.UNKNOWN: 3 * US}),
        (False, {SpanKind.UNKNOWN: 10 * US}),
    ],
)
def test_an_instant_explains_nothing(opened, compatible, kinds):
    def fill(builder):
        line = builder.host().line("t")
        line.event("train", 0, 10 * US, MARK)
        line.event("MemoryAllocation", 1 * US, 0).event("MemoryAllocation", 8 * US, 0)

    assert only_core(opened(fill), compatible=compatible).kinds == kinds


def host_and_gpu(builder):
    """18 us with 3 of waiting for input, 1.5 of launches, 1 of a copy and 5 of compute."""
    line = builder.host().line("python")
    line.event("train", 0, 18 * US, MARK)
    line.event("IteratorGetNext:IteratorGetNext", 1 * US, 3 * US)
    line.event("cudaMemcpyAsync", 4 * US, US // 2, {"correlation_id": 1})
    line.event("cudaLaunchKernel", 5 * US + US // 2, 1 * US, {"correlation_id": 2})
    stream = builder.plane("/device:GPU:0").line("Stream")
    stream.event("MemcpyHToD", 4 * US + US // 2, 1 * US, {"correlation_id": 1})
    stream.event("sgemm", 7 * US, 5 * US, {"correlation_id": 2})


def test_a_gpu_hides_its_host_from_xprof(opened):
    core = only_core(opened(host_and_gpu), compatible=True)
    assert (core.name, core.duration_ps) == ("", 7 * US + US // 2)
    assert core.kinds == {
        SpanKind.DEVICE_COMPUTE_32: 5 * US,
        SpanKind.HOST_TO_DEVICE: 1 * US,
        SpanKind.UNKNOWN: US + US // 2,
    }


def test_a_host_counts_beside_its_gpu(opened):
    core = only_core(opened(host_and_gpu), compatible=False)
    assert (core.name, core.duration_ps) == ("train 0", 18 * US)
    assert core.kinds == {
        SpanKind.DEVICE_COMPUTE_32: 5 * US,
        SpanKind.HOST_WAIT_INPUT: 3 * US,
        SpanKind.HOST_PREPARE: US + US // 2,
        SpanKind.HOST_TO_DEVICE: 1 * US,
        SpanKind.UNKNOWN: 7 * US + US // 2,
    }


def test_asynchronous_steps_never_overlap(opened):
    def fill(builder):
        line = builder.host().line("python")
        stream = builder.plane("/device:GPU:0").line("Stream")
        for step in range(2):
            line.event("train", step * 2 * US, US, {"_r": 1, "step_num": step})
            line.event("cudaLaunchKernel", step * 2 * US, 10, {"correlation_id": step + 1})
            stream.event("sgemm", (1 + 5 * step) * US, 5 * US, {"correlation_id": step + 1})

    steps = host_steps(opened(fill), compatible=False).steps
    assert [step.window for step in steps] == [(0, 6 * US), (6 * US, 11 * US)]


def test_a_step_that_the_record_does_not_hold_whole_is_left_out(root):
    with peakline.open(root / "tests/data/programs/steps/torch_break.pt.trace.json.gz") as profile:
        assert [
            step["name"] for step in profile.columns("steps").to_pylist() if step["is_cut_off"]
        ] == ["ProfilerStep#6"]
        result = [
            [core.name for step in host_steps(profile, compatible=compatible).steps
             for core in step.cores.values()]
            for compatible in (False, True)
        ]  # fmt: skip
    assert result[0] == [f"ProfilerStep#{number}" for number in range(2, 6)]
    assert len(result[1]) == 5


@each_row(("compatible", "computes", "lasts"), [(True, 5 * US, 5 * US), (False, 9 * US, 18 * US)])
def test_work_that_nothing_launched_counts_for_us_alone(opened, compatible, computes, lasts):
    def fill(builder):
        line = builder.host().line("python")
        line.event("train", 0, 18 * US, MARK)
        line.event("cudaLaunchKernel", 5 * US, 1 * US, {"correlation_id": 2})
        for gpu, length, stats in ((0, 5, {"correlation_id": 2}), (1, 9, {"group_id": 0})):
            stream = builder.plane(f"/device:GPU:{gpu}").line("Stream")
            stream.event("sgemm", 7 * US, length * US, stats)

    core = only_core(opened(fill), compatible=compatible)
    assert (core.kinds[SpanKind.DEVICE_COMPUTE_32], core.duration_ps) == (computes, lasts)


def test_kinds_of_gpu_work_by_name_and_shapes(opened):
    def fill(builder):
        builder.host().line("t").event("train", 0, 100, MARK).event(
            "l", 1, 1, {"correlation_id": 1}
        )
        stream = builder.plane("/device:GPU:0").line("Stream")
        work = (
            ("ncclAllReduce", ""), ("fp16_gemm", ""), ("gemm", "(half[2])"),
            ("half", "(float[2])"), ("MEMCPYDtoD", ""), ("memcpydtoh", ""),
        )  # fmt: skip
        for number, (name, shapes) in enumerate(work):
            stats = {"correlation_id": 1} | ({"shape": shapes} if shapes else {})
            stream.event(name, number * 10**number, 10**number, stats)

    assert only_core(opened(fill), compatible=True).kinds == {
        SpanKind.DEVICE_COLLECTIVES: 1,
        SpanKind.DEVICE_COMPUTE_16: 10 + 100,
        SpanKind.DEVICE_COMPUTE_32: 1000,
        SpanKind.DEVICE_TO_DEVICE: 10_000,
        SpanKind.DEVICE_TO_HOST: 100_000,
        SpanKind.UNKNOWN: 600_000 - 111_111,
    }


def test_a_step_that_a_function_call_opens(opened):
    def fill(builder):
        builder.host().line("t").event("FunctionRun", 0, 10, {"_r": 1}).event("MatMul:MatMul", 2, 5)

    profile = opened(fill)
    assert host_steps(profile, compatible=True).steps == ()
    assert only_core(profile, compatible=False).kinds == {
        SpanKind.HOST_COMPUTE: 5,
        SpanKind.UNKNOWN: 5,
    }


def seven_steps(builder):
    """Steps of 10 ps with 5 of work each."""
    line = builder.host().line("t")
    for step in range(7):
        line.event("train", step * 20, 10, {"_r": 1, "step_num": step})
        line.event("work", step * 20 + 1, 5)


def test_xprof_drops_the_first_and_the_last_of_many(opened):
    profile = opened(seven_steps)

    def numbers(**how):
        return [step.number for step in host_steps(profile, **how).steps]

    assert numbers(compatible=True) == [1, 2, 3, 4, 5]
    assert numbers(compatible=True, whole_only=False) == numbers(compatible=False) == [*range(7)]


def test_what_a_host_contributes_can_be_pickled(opened):
    steps = host_steps(opened(seven_steps), compatible=True)
    assert pickle.loads(pickle.dumps(steps)) == steps  # noqa: S301 (our own)


def test_tpu_steps_by_category_with_an_idle_rest(opened):
    def fill(builder):
        plane = builder.plane("/device:TPU:0", {"device_type_string": "TPU v4"})
        plane.line("Steps").event("0", 0, 100)
        ops = plane.line("XLA Ops")
        for symbol, (name, begin, length) in enumerate(
            [("fusion", 0, 50), ("inner", 10, 20), ("infeed", 60, 30)], 1
        ):
            metadata = plane.message.event_metadata[plane.event_id(name)]
            stats = {"program_id": Uint(7), "symbol_id": Uint(symbol), "hlo_category": name}
            plane.add_stats(metadata, stats)
            ops.event(name, begin, length)

    core = only_core(opened(fill), compatible=True)
    assert core.duration_ps == 100
    assert core.categories == {"fusion": 30, "inner": 20, "infeed": 30, "IDLE": 20}


def steps_of(*begins):
    """A host with a step of 10 ps at each of ``begins``."""
    steps = [Step(n, {1: CoreStep(begin, 10)}) for n, begin in enumerate(begins)]
    return HostSteps("CPU_ONLY", "CPU", tuple(steps))


def test_hosts_are_aligned_by_the_largest_overlap():
    database = combine_steps([("a", steps_of(0, 20, 40, 60)), ("b", steps_of(21, 41, 61))])
    begins = [[core.begin_ps for core in step.cores.values()] for step in database.steps]
    assert begins == [[20, 21], [40, 41], [60, 61]]
    assert [step.number for step in database.steps] == [0, 1, 2]
    assert [*database.steps[0].cores] == [1, 1001]


def test_a_host_without_steps_leaves_none_to_all():
    database = combine_steps([("a", steps_of(0, 20)), ("b", steps_of())])
    assert database.steps == ()
    assert not database.empty_intersection


@each_row("name", ["jax_fori_loop", "jax_two_functions", "jax_cut_off"])
def test_what_xla_computes_on_its_own_threads_is_no_other_time(name):
    """XLA's threads work for the step that goes on: what the overview page calls 'All Others' is
    what the steps say that no event explains.
    """
    profile = shared(f"programs/steps/{name}.xplane.pb.gz")
    rows = [row for row in profile.table("step_breakdown").to_pylist() if not row["is_cut_off"]]
    unknown = sum(row["unknown_ps"] for row in rows) / sum(row["wall_ps"] for row in rows)
    said = profile.tool("overview_page").content.decode()
    share = float(re.search(r"POTENTIALLY input-bound because ([0-9.]+)%", said)[1])
    assert share == pytest.approx(100 * unknown, abs=1)
