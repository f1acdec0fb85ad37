"""XProf's step database, clocks, and the environment of a run."""

import pickle

import numpy as np
import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.reference.xspace_builder import SpaceBuilder, Uint

import peakline
from peakline.schema import CoreDetails, HloProto
from peakline.trace.clocks import HostClock, align, clock_of
from peakline.xprof.overview_page.facts import DutyCycle, combine_duty_cycles, duty_cycle_of
from peakline.xprof.rules.hardware import RunEnvironment, gpu_name, peaks_of, run_environment_of
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
        found = [
            [core.name for step in host_steps(profile, compatible=compatible).steps
             for core in step.cores.values()]
            for compatible in (False, True)
        ]  # fmt: skip
    assert found[0] == [f"ProfilerStep#{number}" for number in range(2, 6)]
    assert len(found[1]) == 5


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


MS = 10**9
STEP = 10 * MS
S2026 = 1_795_000_000 * 10**9


def host(name, zero_ns, shift_ps=0, *, steps=8, jitter=(), collectives=False, first=0):
    """A host whose steps begin every 10 ms from ``shift_ps`` on, by its profile's clock."""
    begin = np.arange(steps, dtype=np.int64) * STEP + shift_ps
    begin[: len(jitter)] += np.array(jitter, np.int64)
    end = begin + STEP // 2
    names = tuple(f"train {first + number}" for number in range(steps))
    last = end - MS if collectives else np.full(steps, -1, np.int64)
    return HostClock(name, zero_ns, names, begin, end, last)


def test_clocks_that_agree_are_believed():
    found = align([host("a", S2026 + 5), host("b", S2026, 5000)])
    assert (found.reference, found.zero_ns) == ("a", S2026)
    assert [(own.offset_ps, own.source) for own in found.hosts] == [(5000, "clock"), (0, "clock")]
    assert found.hosts[1].skew_ps == 0
    assert found.of("a").offset_ps == 5000


def test_ends_of_collectives_put_a_clock_right():
    # The clock of b is 3 ms ahead of that of a.
    found = align([host("a", S2026, collectives=True), host("b", S2026, 3 * MS, collectives=True)])
    b = found.hosts[1]
    assert (b.source, b.matched, b.matches, b.skew_ps) == ("collectives", "collectives", 8, 3 * MS)
    assert found.hosts[0].offset_ps - b.offset_ps == 3 * MS
    assert b.uncertainty_ps < MS


def test_steps_that_begin_late_do_not_move_a_clock():
    # Late by less than a step: that is what stragglers look like.
    found = align([host("a", S2026), host("b", S2026, 3 * MS)])
    assert [own.source for own in found.hosts] == ["clock", "clock"]
    assert found.hosts[1].skew_ps == 3 * MS
    assert [own.offset_ps for own in found.hosts] == [0, 0]
    assert [own.matched_offset_ps for own in found.hosts] == [0, -3 * MS]


def test_steps_put_a_clock_right_that_is_wrong_by_more_than_a_step():
    a, b = align([host("a", S2026), host("b", S2026 + 3_600 * 10**9, 2 * MS)]).hosts
    assert b.source == "steps"
    assert a.offset_ps - b.offset_ps == 2 * MS
    assert b.skew_ps == 3_600 * 10**12 + 2 * MS


def test_a_host_without_a_clock_is_put_where_its_steps_match():
    found = align([host("x", None, 7 * MS), host("a", S2026)])
    x, a = found.hosts
    assert (found.reference, x.source, x.skew_ps) == ("a", "steps", None)
    assert a.offset_ps - x.offset_ps == 7 * MS


def test_nothing_in_common_is_told():
    found = align([host("a", S2026), host("b", None, first=100)])
    assert (found.hosts[1].source, found.hosts[1].matches) == ("none", 0)
    assert found.hosts[1].skew_ps is None


@each_row("steps", [1, 2])
def test_few_matches_say_nothing(steps):
    found = align([host("a", S2026), host("b", S2026 + 10**12, steps=steps)])
    assert (found.hosts[1].source, found.hosts[1].skew_ps) == ("clock", None)


def test_steps_that_were_not_run_together_say_nothing():
    drift = [number * 3 * MS for number in range(8)]
    b = align([host("a", S2026), host("b", S2026 + 10**12, jitter=drift)]).hosts[1]
    assert (b.source, b.skew_ps) == ("clock", None)
    assert b.spread_ps > MS


def test_no_hosts_and_one():
    assert align([]).hosts == ()
    one = align([host("a", None)])
    assert (one.zero_ns, one.hosts[0].source, one.hosts[0].offset_ps) == (None, "none", 0)
    with pytest.raises(KeyError):
        one.of("b")


class TestProfiles:
    def test_two_processes_of_one_machine(self):
        """Their clock is one: what the profiles say of it must agree with the profilers' starts."""
        folder = DATA / "sessions/tf2_multihost/plugins/profile/2026_11_20_17_33_46"
        clocks = []
        for path in sorted(folder.glob("*.xplane.pb")):
            with peakline.open(path) as profile:
                stats = profile.table("plane_stats").to_pylist()
                (started,) = (int(s["value"]) for s in stats if s["name"] == "profile_start_time")
                clock = clock_of(profile)
                assert 0 <= clock.zero_ns - started < 10**6
                clocks.append(clock)
        assert [len(clock.names) for clock in clocks] == [36, 71]
        found = align(clocks)
        assert [own.source for own in found.hosts] == ["clock", "clock"]
        assert found.hosts[1].offset_ps == (clocks[1].zero_ns - clocks[0].zero_ns) * 1000

    def test_a_run_of_step_stats_has_the_time_of_its_executions(self):
        with peakline.open(DATA / "run_metadata/tf1_grpc.pb.gz") as profile:
            row = profile.sql(
                "select all_start_micros m, start_ps p from op_times join op_runs using (op_run_id)"
                " where all_start_micros > 0 order by op_run_id limit 1"
            ).to_pylist()[0]
            assert abs(clock_of(profile).zero_ns - (row["m"] * 1000 - row["p"] // 1000)) < 1000

    def test_a_chrome_trace_says_it_itself(self, tmp_path):
        path = tmp_path / "t.json"
        path.write_text(
            '{"baseTimeNanoseconds": 1700000000000000000, "traceEvents": ['
            '{"ph":"X","pid":1,"tid":1,"ts":5,"dur":2,"name":"a"},'
            '{"ph":"X","pid":1,"tid":1,"ts":9,"dur":2,"name":"b"}]}'
        )
        with peakline.open(path) as profile:
            assert clock_of(profile).zero_ns == 1_700_000_000_000_005_000

    def test_a_profile_without_time_has_none(self, tmp_path):
        path = tmp_path / "g.pbtxt"
        path.write_text('node { name: "a" op: "NoOp" }\n')
        with peakline.open(path) as profile:
            assert (clock_of(profile, "h").host, clock_of(profile).zero_ns) == ("h", None)


@each_row(
    ("stats", "name"),
    [
        ({"device_vendor": "Nvidia", "compute_cap_major": "8", "compute_cap_minor": "0"},
         "Nvidia GPU (Ampere)"),
        ({"device_vendor": "Nvidia", "compute_cap_major": "8", "compute_cap_minor": "9"},
         "Nvidia GPU (Ada Lovelace)"),
        ({"device_vendor": "Nvidia", "compute_cap_major": "7", "compute_cap_minor": "5"},
         "Nvidia GPU (Turing)"),
        ({"device_vendor": "Nvidia", "compute_cap_major": "99"}, "Nvidia GPU"),
        ({"device_vendor": "AMD", "compute_cap_major": "9", "compute_cap_minor": "4"},
         "AMD GPU - gfx942"),
        ({"device_vendor": "AMD", "compute_cap_major": "9", "gpu_device_name": "gfx90a"},
         "AMD GPU - gfx90a"),
        ({"device_vendor": "AMD", "compute_cap_major": "9", "gpu_device_name": "Radeon"},
         "AMD GPU - gfx-9XX series"),
        ({"device_vendor": "AMD", "compute_cap_major": "x"}, "AMD GPU"),
        ({"device_vendor": "Other"}, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_the_name_of_a_gpu(stats, name):
    assert gpu_name(stats) == name


def test_gpus_come_before_tpus_and_a_host_alone_is_a_cpu(opened):
    alone = SpaceBuilder()
    alone.host({"matrix_unit_utilization_percent": 12.5, "hbm_utilization_percent": 7.0})
    assert run_environment_of(opened(alone)) == RunEnvironment(
        hardware="CPU_ONLY", device_type="CPU", devices=0, is_training=False, matrix_percent=12.5,
        memory_percent=7.0,
    )  # fmt: skip
    both = SpaceBuilder()
    both.plane("/device:TPU:0", {"device_type_string": "TPU v9"})
    both.plane("/device:TPU:1")
    found = run_environment_of(opened(both))
    assert (found.hardware, found.device_type, found.devices) == ("TPU", "TPU v9", 2)
    both.plane("/device:GPU:0", {"device_vendor": "Unknown"})
    found = run_environment_of(opened(both))
    assert (found.hardware, found.device_type, found.devices) == ("GPU", "GPU", 1)


@each_row(
    ("plane", "found"),
    [("/device:TPU:0 SparseCore 0", ("TPU", "TPU")), ("/device:CUSTOM:x", ("GPU", "GPU"))],
)
def test_other_devices_count_but_by_the_rule_of_xprof(opened, plane, found):
    space = SpaceBuilder()
    space.plane(plane).line("l").event("x", 0, 5)
    profile = opened(space)
    for strict, expected in ((False, found), (True, ("CPU_ONLY", "CPU"))):
        told = run_environment_of(profile, strict=strict)
        peaks = peaks_of(profile, strict=strict)
        assert (told.hardware, told.device_type) == (peaks.hardware, peaks.device_type) == expected


@each_row(
    ("op_name", "op_type", "trains"),
    [
        ("jit(f)/transpose(jvp(g))/dot_general", "", True),
        ("jit(f)/transpose[permutation=(1, 0)]", "", False),
        ("gradient_tape/model/MatMul", "MatMul", True),
        ("gradients_2/MatMul", "MatMul", True),
        ("model/gradients", "MatMul", False),
        ("model/dense/MatMul", "MatMul", False),
    ],
)
def test_a_program_that_computes_gradients_trains(opened, op_name, op_type, trains):
    program = HloProto()
    program.hlo_module.name = "f"
    instruction = program.hlo_module.computations.add(id=1).instructions.add(name="i", opcode="dot")
    instruction.metadata.op_name, instruction.metadata.op_type = op_name, op_type
    space = SpaceBuilder()
    plane = space.plane("/host:metadata")
    entry = plane.message.event_metadata[plane.event_id("f(1)")]
    plane.add_stats(entry, {"Hlo Proto": program.SerializeToString()})
    assert run_environment_of(opened(space)).is_training is trains


def test_other_formats_have_an_environment_too():
    with peakline.open(DATA / "run_metadata" / "tf1_cnn_2.pb.gz") as profile:
        assert run_environment_of(profile).device_type == "CPU"


def tpu(space, number, chip, ops, modules=(), category=None):
    """A core on a chip with ops (start and length), and runs of modules around them."""
    details = CoreDetails(local_chip_id=chip).SerializeToString()
    plane = space.plane(f"/device:TPU:{number}", {"core_details": details})
    line = plane.line("XLA Ops")
    for start, length in ops:
        line.event("op", start, length)
    if category is not None:
        plane.add_stats(
            plane.message.event_metadata[plane.event_id("op")], {"hlo_category": category}
        )
    line = plane.line("XLA Modules")
    for start, length in modules:
        line.event("jit_f", start, length)


class TestDutyCycle:
    def test_a_chip_is_on_duty_while_one_of_its_cores_works(self, opened):
        space = SpaceBuilder()
        tpu(space, 0, 0, [(10, 10), (15, 10)], [(0, 50)])
        tpu(space, 1, 0, [(20, 20)])
        tpu(space, 2, 1, [(0, 5)])
        assert duty_cycle_of(opened(space)) == DutyCycle(30 + 5, 20)

    def test_feeding_a_core_is_no_work(self, opened):
        space = SpaceBuilder()
        tpu(space, 0, 0, [(10, 10)], [(0, 40)], category="infeed")
        assert duty_cycle_of(opened(space)) == DutyCycle(0, 40)

    def test_without_a_tpu_there_is_none(self, opened):
        space = SpaceBuilder()
        space.host().line("a").event("x", 0, 5)
        assert duty_cycle_of(opened(space)) == DutyCycle(0, 0)

    def test_hosts_add_up(self):
        assert combine_duty_cycles([DutyCycle(1, 2), DutyCycle(3, 4)]) == DutyCycle(4, 6)
