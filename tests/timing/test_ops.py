"""Ops of a trace: time by op, where it is called, its inputs, and very long names."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.formats.chrome_traces import opened
from tests.hanging import no_hang
from tests.memory import torch_jobs
from tests.reference.xspace_builder import Ref, SpaceBuilder
from tests.timing.traces import HOST_PLANE, profile_of

import peakline
from peakline.schema import HloProto
from peakline.timing.launches import kernels
from peakline.timing.op_stats import op_times
from peakline.timing.ops import names as op_names
from peakline.timing.ops.metrics import OpMetrics, OpTable, combine_tables, framework_ops
from peakline.timing.ops.names import (
    COPY,
    JAX,
    TENSORFLOW,
    TF_DATA,
    UNKNOWN,
    is_jax_op,
    parse_op_name,
)
from peakline.timing.ops.places import module_times, shape_times
from peakline.timing.ops.stat_columns import op_stats_of
from peakline.trace import activity_names, device_lines, events
from peakline.trace.activity_names import Activity
from peakline.trace.distribution import distinct, distribution
from peakline.trace.op_inputs import inputs_of
from peakline.xprof.rules.device_ops import device_table
from peakline.xprof.rules.host_ops import host_table, xprof_host_table
from reference.op_spaces import PROGRAM, add_program, random_op_space

DATA = Path(__file__).parents[1] / "data"


def told(table):
    """By name: occurrences, total and self time."""
    return {op.name: (op.occurrences, op.total_ps, op.self_ps) for op in table.ops.values()}


class TestHost:
    def test_self_time_is_without_the_ops_within(self, opened):
        space = SpaceBuilder()
        line = space.host().line("t")
        line.event("a:A", 0, 100).event("work", 10, 50).event("b:B", 20, 30).event("b:B", 60, 10)
        assert told(host_table(opened(space.space))) == {
            "a": (1, 100, 60),
            "b": (2, 40, 40),
            "IDLE": (0, 0, 0),
        }

    def test_an_allocation_is_no_execution(self, opened):
        space = SpaceBuilder()
        line = space.host().line("t")
        for number in range(16):
            line.event("a:A", 10 * number, 4)
            line.event("MemoryAllocation", 10 * number + 1, 0, {"tf_op": "a:A"})
        profile = opened(space.space)
        assert told(host_table(profile))["a"] == (16, 64, 64)
        assert told(xprof_host_table(profile))["a"] == (32, 64, 64)

    def test_the_ops_of_allocations_are_read_only_where_others_may_tell_theirs(self, opened):
        space = SpaceBuilder()
        line = space.host().line("t").event("a:A", 0, 4)
        line.event("MemoryAllocation", 1, 0, {"tf_op": "a:A"})
        profile = opened(space.space)
        assert op_stats_of(profile)["tf_op"].row.size == 0
        assert op_stats_of(profile, whole=True)["tf_op"].row.size == 1
        assert op_stats_of(profile)["tf_op"].row.size == 1
        line.event("work", 5, 3, {"tf_op": "b:B"})
        assert told(host_table(opened(space.space)))["b"] == (1, 3, 3)

    def test_what_was_launched_for_an_op_counts(self, opened):
        space = SpaceBuilder()
        space.host().line("t").event("cuLaunchKernel", 0, 5, {"tf_op": Ref("a/b:B")})
        assert told(host_table(opened(space.space)))["a/b"] == (1, 5, 5)

    def test_ops_that_end_together_are_all_kept(self, opened):
        space = SpaceBuilder()
        space.host().line("t").event("s:S", 0, 100).event("a:A", 0, 10).event("b:B", 5, 5)
        profile = opened(space.space)
        assert told(host_table(profile)) == {
            "s": (1, 100, 90), "a": (1, 10, 5), "b": (1, 5, 5), "IDLE": (0, 0, 0),
        }  # fmt: skip
        assert told(xprof_host_table(profile)) == {"a": (1, 10, 10), "IDLE": (0, 90, 90)}

    def test_overlapping_ops_are_both_whole(self, opened):
        space = SpaceBuilder()
        space.host().line("t").event("a:A", 0, 10).event("b:B", 5, 10)
        table = host_table(opened(space.space))
        assert told(table) == {"a": (1, 10, 10), "b": (1, 10, 10), "IDLE": (0, 0, 0)}
        assert table.total_ps == 20

    def test_idle_is_per_thread_between_its_ops(self, opened):
        space = SpaceBuilder()
        plane = space.host()
        plane.line("t").event("a:A", 10, 10).event("a:A", 50, 10)
        plane.line("u").event("work", 0, 500).event("a:A", 20, 10)
        assert told(host_table(opened(space.space)))["IDLE"] == (0, 30, 30)

    def test_derived_lines_and_other_planes_do_not_count(self, opened):
        space = SpaceBuilder()
        plane = space.host()
        plane.line("t").event("a:A", 0, 10)
        for number in (0xDEADBEEF + 3, 0xDEADBEEF + 2 - 2**32):
            derived = plane.line("derived").event("a:A", 0, 10)
            derived.message.id = number
        space.plane("/host:CUPTI").line("t").event("a:A", 0, 10)
        assert told(host_table(opened(space.space)))["a"] == (1, 10, 10)

    def test_eager_ops_are_ops_and_functions_are_not(self, opened):
        space = SpaceBuilder()
        line = space.host().line("t").event("EagerLocalExecute: MatMul", 0, 10)
        line.event("EagerLocalExecute: __inference_step_1", 20, 10).event("a:A", 21, 3)
        times = op_times(opened(space.space))
        assert [(op.op, op.op_type, op.is_eager, op.self_ps) for op in times.ops] == [
            ("MatMul", "MatMul", True, 10),
            ("a", "A", False, 3),
        ]

    def test_instructions_that_the_cpu_runs_are_ops(self, opened):
        space = SpaceBuilder()
        hlo = {"hlo_op": "add.2", "hlo_module": "main", "program_id": PROGRAM}
        space.host().line("tf_XLAEigen").event("add.2", 0, 10, hlo)
        add_program(space, PROGRAM)
        assert told(host_table(opened(space.space)))["jit(f)/add"] == (1, 10, 10)

    def test_stages_are_told_apart_by_their_numbers(self, opened):
        space = SpaceBuilder()
        line = space.host().line("t")
        for number, stage in enumerate((1, 2, 1)):
            stats = {"_ipl_stage_id": stage, "_ipl_stage_cat": "read"}
            line.event("Read", 10 * number, 5, stats)
        table = host_table(opened(space.space))
        assert {key: op.occurrences for key, op in table.ops.items()} == {
            (1, "Read"): 2, (2, "Read"): 1, (0, "IDLE"): 0,
        }  # fmt: skip

    def test_without_a_host_there_is_nothing(self, opened):
        space = SpaceBuilder()
        space.plane("Task Environment")
        assert host_table(opened(space.space)) == OpTable()


class TestDevices:
    def gpu(self, opened, *, with_program=True):
        space = SpaceBuilder()
        plane = space.plane("/device:GPU:0")
        hlo = {"hlo_op": "add.2", "hlo_module": "main", "program_id": PROGRAM}
        plane.line("Stream").event("fusion", 0, 2000, hlo).event("fusion", 9000, 1000, hlo)
        plane.line("Stream").event("MemcpyD2H", 1000, 2000).event("k", 4000, 1000, {"tf_op": "x:X"})
        if with_program:
            add_program(space, PROGRAM)
        return opened(space.space)

    def test_instructions_are_those_of_the_framework(self, opened):
        table = device_table(self.gpu(opened))
        assert told(framework_ops(table)) == {
            "jit(f)/add": (2, 3000, 3000),
            "MemcpyD2H": (1, 2000, 2000),
            "x": (1, 1000, 1000),
            # Of 10 ns the device works from 0 to 3, 4 to 5, and 9 to 10.
            "IDLE": (0, 5000, 5000),
        }
        (op,) = [op for op in table.ops.values() if op.name == "add.2"]
        assert (op.flops, op.bytes_accessed) == (2 * 1024, 2 * 3 * 4096)

    def test_an_unknown_program_costs_nothing_but_time(self, opened):
        table = device_table(self.gpu(opened, with_program=False))
        assert told(framework_ops(table))["add.2"] == (2, 3000, 3000)

    def test_kernels_that_say_nothing_belong_to_the_op_that_launched_them(self, opened):
        space = SpaceBuilder()
        host = space.host().line("t").event("a/b:B", 0, 1000)
        host.event("cuLaunchKernel", 100, 50, {"correlation_id": 7})
        space.plane("/device:GPU:0").line("Stream").event("k", 5000, 300, {"correlation_id": 7})
        times = op_times(opened(space.space))
        assert [(op.side, op.op, op.op_type, op.self_ps) for op in times.of("device")] == [
            ("device", "a/b", "B", 300)
        ]

    def test_what_one_run_of_an_op_launched_is_one_run_of_it(self, opened):
        space = SpaceBuilder()
        host = space.host().line("t")
        stream = space.plane("/device:GPU:0").line("Stream")
        for number, start in enumerate((0, 1000, 1500, 3000)):
            if number != 2:
                host.event("a/b:B", start, 1000)
            host.event("cuLaunchKernel", start + 10, 5, {"correlation_id": number + 1})
            stream.event("k", 5000 + 100 * number, 10 + number, {"correlation_id": number + 1})
        (op,) = op_times(opened(space.space)).of("device")
        assert (op.op, op.occurrences, op.total_ps, op.min_ps, op.max_ps) == ("a/b", 3, 46, 10, 23)

    def test_a_call_of_the_driver_is_no_op_of_the_host_where_the_device_tells(self, opened):
        space = SpaceBuilder()
        stats = {"correlation_id": 7, "tf_op": "x:X", "hlo_op": "add.2"}
        space.host().line("t").event("cuLaunchKernel", 0, 50, stats)
        assert [op.op for op in op_times(opened(space.space)).ops] == ["x"]
        space.plane("/device:GPU:0").line("Stream").event("k", 50, 30, {"tf_op": "x:X"})
        assert [(op.side, op.op) for op in op_times(opened(space.space)).ops] == [("device", "x")]

    def test_an_argument_of_a_program_is_no_op(self, opened):
        program = HloProto()
        made = program.hlo_module.computations.add(id=1).instructions
        for number, (name, opcode) in enumerate((("p", "parameter"), ("turn", "transpose"))):
            made.add(id=number, name=name, opcode=opcode).metadata.op_name = "a"
        program.hlo_module.name, program.hlo_module.id = "f", PROGRAM
        space = SpaceBuilder()
        plane = space.plane("/host:metadata")
        entry = plane.message.event_metadata[plane.event_id(f"f({PROGRAM})")]
        plane.add_stats(entry, {"Hlo Proto": program.SerializeToString()})
        hlo = {"hlo_op": "turn", "hlo_module": "f", "program_id": PROGRAM}
        space.plane("/device:GPU:0").line("Stream").event("turn", 0, 30, hlo)
        (op,) = op_times(opened(space.space)).ops
        assert (op.op, op.op_type) == ("turn", "")

    def test_a_tpu_tells_by_its_metadata(self, opened):
        space = SpaceBuilder()
        plane = space.plane("/device:TPU:0")
        metadata = plane.message.event_metadata[plane.event_id("%add.1 = f32[] add()")]
        metadata.display_name = "add.1"
        stats = {"program_id": 7, "symbol_id": 3, "tf_op": "jit(f)/add:", "flops": 5}
        plane.add_stats(metadata, stats)
        line = plane.line("XLA Ops")
        clock = {"device_offset_ps": 9000, "device_duration_ps": 4000}
        line.event("%add.1 = f32[] add()", 0, 1, clock)
        plane.line("Async XLA Ops").event("%add.1 = f32[] add()", 0, 500)
        (op,) = op_times(opened(space.space)).ops
        assert (op.op, op.op_type, op.total_ps, op.flops) == ("jit(f)/add", "add", 4000, 5.0)

    def test_an_op_ran_as_often_as_its_most_frequent_part(self):
        table = OpTable()
        for name, runs in (("fusion.1", 3), ("fusion.2", 5)):
            made = OpMetrics(name, provenance="a/b:B", occurrences=runs, total_ps=10, self_ps=10)
            table.add((7, name), made)
        table.close(50)
        (op, idle) = framework_ops(table).ops.values()
        assert (op.name, op.op_type, op.occurrences, op.self_ps) == ("a/b", "B", 5, 20)
        assert idle.self_ps == 30


class TestTables:
    def test_hosts_are_put_together_by_key(self):
        one, two = OpTable(), OpTable()
        one.add((0, "a"), OpMetrics("a", "A", occurrences=1, total_ps=5, self_ps=4))
        two.add((0, "a"), OpMetrics("a", "A", is_eager=True, occurrences=2, total_ps=7, self_ps=7))
        one.close(10)
        two.close(10)
        joined = combine_tables([one, two])
        assert told(joined) == {"a": (3, 12, 11), "IDLE": (0, 9, 9)}
        assert (joined.op_ps, joined.total_ps) == (11, 20)
        assert joined.ops[0, "a"].is_eager
        # The parts stay what they were.
        assert one.ops[0, "a"].occurrences == 1

    def test_the_sql_table(self, opened):
        space = SpaceBuilder()
        line = space.host().line("t")
        for number in range(20):
            line.event("a:A", 1000 * number, 10 + number)
        (row,) = opened(space.space).table("op_stats").to_pylist()
        assert row == {
            "side": "host", "op": "a", "op_type": "A", "occurrences": 20, "total_ps": 390,
            "self_ps": 390, "min_ps": 10, "median_ps": 19, "p95_ps": 28, "max_ps": 29,
            "flops": None, "bytes_accessed": None, "is_eager": False,
        }  # fmt: skip

    def test_ops_of_one_type_together(self, opened):
        space = SpaceBuilder()
        space.host().line("t").event("a:A", 0, 5).event("b:A", 10, 7).event("c:B", 20, 1)
        times = op_times(opened(space.space), by_type=True)
        assert [(op.op, op.occurrences, op.max_ps) for op in times.ops] == [
            ("A", 2, 7),
            ("B", 1, 1),
        ]
        assert times.host_ps == 13

    def test_step_stats_tell_the_type(self):
        with peakline.open(DATA / "run_metadata" / "tf1_cnn_2.pb.gz") as profile:
            times = op_times(profile)
        assert times.of("device") == ()
        assert times.ops[0].op_type == "_MklNativeConv2DBackpropInput"

    def test_kineto_tells_ops_by_their_category(self):
        with peakline.open(DATA / "chrome_trace" / "noleak.pt.trace.json.gz") as profile:
            names = {op.op: op for op in op_times(profile).ops}
        assert names["aten::mm"].occurrences == 80
        assert not any(name.startswith("ProfilerStep") for name in names)

    def test_marks_of_older_pytorch_are_no_ops(self, tmp_path):
        events = [
            {"ph": "X", "cat": "Operator", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 5}
            for ts, name in enumerate(("ProfilerStep#5", "Optimizer.step#SGD.step", "aten::mm"))
        ]
        path = tmp_path / "x.pt.trace.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        with peakline.open(path) as profile:
            assert [op.op for op in op_times(profile).ops] == ["aten::mm"]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 50))))
def test_distribution_by_hand(runs):
    groups = np.array([group for group, _ in runs], np.int32)
    result = distribution(groups, np.array([value for _, value in runs], np.int64), 5)
    for group in range(5):
        own = sorted(value for g, value in runs if g == group)
        row = [int(column[group]) for column in vars(result).values()]
        if not own:
            assert row == [0] * 6
            continue
        half = next(v for v in own if 2 * sum(w <= v for w in own) >= len(own))
        most = next(v for v in own if 20 * sum(w <= v for w in own) >= 19 * len(own))
        assert row == [len(own), sum(own), own[0], half, most, own[-1]]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 1)), min_size=1))
def test_distinct_combinations_in_the_order_in_which_they_occur(pairs):
    one, two = (np.array(column) for column in zip(*pairs, strict=True))
    first, which = distinct(one, two)
    seen = list(dict.fromkeys(pairs))
    assert [pairs[row] for row in first.tolist()] == seen
    assert [seen[number] for number in which.tolist()] == pairs


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_self_times_and_idle_make_the_whole(tmp_path_factory, seed):
    path = tmp_path_factory.mktemp("ops") / "x.xplane.pb"
    path.write_bytes(random_op_space(seed).SerializeToString())
    with peakline.open(path) as profile:
        for table in (host_table(profile), device_table(profile)):
            assert sum(op.self_ps for op in table.ops.values()) == table.total_ps
            assert all(0 <= op.self_ps <= op.total_ps for op in table.ops.values())
        device = sum(op.self_ps for op in op_times(profile).of("device"))
        assert device == device_table(profile).op_ps


US = 10**6


def of(rows, *names):
    return [tuple(getattr(row, name) for name in names) for row in rows]


def test_modules_of_both_passes(tmp_path):
    profile = opened(tmp_path, {"traceEvents": torch_jobs.training(1)})
    rows = module_times(profile)
    # linear and addmm take 6 us, the node of its gradient and the mm in it 10.
    assert of(rows, "side", "module", "self_ps", "total_ps", "occurrences") == [
        ("host", "Linear_0", 16 * US, 16 * US, 4),
        ("host", "", 12 * US, 12 * US, 6),
        ("host", "Net_0", 0, 16 * US, 0),
    ]
    assert sum(row.self_ps for row in rows) == op_times(profile).host_ps


def test_shapes_of_inputs(tmp_path):
    profile = opened(tmp_path, {"traceEvents": torch_jobs.training(2)})
    rows = shape_times(profile)
    (known,) = [row for row in rows if row.input_shape]
    assert (known.op, known.input_shape) == ("aten::addmm", "[2], [8, 4], [4, 2]")
    assert (known.occurrences, known.self_ps, known.median_ps) == (2, 8 * US, 4 * US)
    assert sum(row.self_ps for row in rows) == op_times(profile).host_ps


def test_both_are_tables_of_sql(tmp_path):
    profile = opened(tmp_path, {"traceEvents": torch_jobs.training(1)})
    modules = profile.sql("select module, self_ps from module_time").to_pylist()
    shapes = profile.sql("select op, input_shape, self_ps from shape_time").to_pylist()
    assert modules == [
        {"module": row.module or None, "self_ps": row.self_ps} for row in module_times(profile)
    ]
    assert shapes == [
        {"op": row.op, "input_shape": row.input_shape or None, "self_ps": row.self_ps}
        for row in shape_times(profile)
    ]


def test_kernels_are_of_the_module_of_the_op_that_launched_them(tmp_path):
    trace = torch_jobs.Trace()
    trace.run("nn.Module: Conv2d_0", 0, 20, torch_jobs.MODULE)
    trace.run("aten::conv2d", 1, 10, **{"Input Dims": [[4, 3, 8, 8]]})
    trace.run("cudaLaunchKernel", 2, 3, "cuda_runtime", correlation=7)
    for ts in (12, 14):
        kernel = {
            "ph": "X", "pid": 0, "tid": 7, "ts": ts, "dur": 1, "name": "gemm", "cat": "kernel",
            "args": {"correlation": 7, "device": 0, "stream": 7},
        }  # fmt: skip
        trace.events.append(kernel)
    profile = opened(tmp_path, {"traceEvents": trace.events})
    device = [row for row in module_times(profile) if row.side == "device"]
    # Two kernels of one run of the op are one run.
    assert of(device, "module", "self_ps", "occurrences") == [("Conv2d_0", 2 * US, 1)]
    device = [row for row in shape_times(profile) if row.side == "device"]
    assert of(device, "op", "input_shape") == [("aten::conv2d", "[4, 3, 8, 8]")]


def test_nothing_where_neither_is_recorded(tmp_path):
    trace = torch_jobs.training(1, stacks=False, shapes=False)
    profile = opened(tmp_path, json.dumps({"traceEvents": trace}).encode())
    assert module_times(profile) == shape_times(profile) == ()


def test_an_op_without_a_name_has_the_empty_one(tmp_path):
    trace = torch_jobs.Trace()
    trace.run("", 1, 5, **{"Input Dims": [[2]]})
    (row,) = opened(tmp_path, {"traceEvents": trace.events}).table("shape_time").to_pylist()
    assert (row["op"], row["input_shape"]) == ("", "[2]")


def inputs(*stats, kind="chrome_trace"):
    events = [(f"aten::op{number}", number * 10, number * 10 + 5) for number in range(3)]
    return inputs_of(profile_of({HOST_PLANE: {"1": events}}, kind=kind, stats=stats))


def test_the_largest_input_of_each_event():
    result = inputs((0, "Input Dims", "[[8, 4], [], [2, 64]]"), (2, "Input Dims", "[[3]]"))
    dims = result.dims(np.arange(3))
    assert [result.dims_text(code) for code in dims.tolist()] == ["[2, 64]", "", "[3]"]
    assert result.is_recorded


@each_row(
    ("types", "is_float64"),
    [
        ('["double", "double"]', True),
        ('["double", "Scalar", "long int"]', True),
        ('["float", "double"]', False),
        ('["c10::Half"]', False),
        ('["long int"]', False),
        ('["Scalar", ""]', False),
        ('["complex<double>"]', True),
    ],
)
def test_an_op_is_float64_when_all_of_its_floating_inputs_are(types, is_float64):
    assert inputs((1, "Input type", types)).is_float64.tolist() == [False, is_float64, False]


def test_tensors_are_known_by_their_types():
    result = inputs((0, "Input type", '["Scalar"]'), (1, "Input type", '["long int"]'))
    assert result.has_tensor.tolist() == [False, True, False]


@each_row("text", ["", "[", "{}", "[1, 2]", '[["a"]]', "[[1.5]]", "null"])
def test_what_is_no_list_of_shapes_is_none(text):
    result = inputs((0, "Input Dims", text))
    assert result.dims_text(int(result.dims(np.array([0]))[0])) == ""


def test_other_formats_record_none():
    result = inputs((0, "Input Dims", "[[3]]"), kind="xplane")
    assert not result.is_recorded
    assert result.dims(np.array([0])).tolist() == [-1]


RULES = (
    lambda text: kernels.uses(text, ""),
    activity_names.host_activity, activity_names.device_activity,
    activity_names.kind_of_collective, op_names.parse_op_name, events.device_key,
    device_lines._DERIVED.fullmatch, kernels.could_use,
)  # fmt: skip
MANY = ["a_", "prefetch", "Compiler::", "triton", "DataLoader", "device:", "aten::"]
MORE = [
    "M", "a", "1", ".1", "(", " ", "a/", "Compiler::Await", "Executor::", "-start",
    "<built-in method ", "time.py ", "Backward1", "derived ", "gpu:0", "_1",
]  # fmt: skip


def check_rules(name):
    """Every rule is through with it in a fraction of a second; with the square of so many
    characters none would be in minutes.
    """
    for rule in RULES:
        with no_hang():
            rule(name)


@pytest.mark.nightly
@each_row("part", MANY)
def test_no_rule_of_names_takes_the_square_of_their_length(part):
    check_rules(part * (1_000_000 // len(part)) + "\n!")


@pytest.mark.soak
@each_row("part", [*MANY, *MORE])
@each_row("tail", ["", "\n!"])
def test_no_rule_takes_the_square_of_any_long_name(part, tail):
    check_rules(part * (4_000_000 // len(part)) + tail)


@each_row(
    ("name", "activity"),
    [
        ("GpuCompiler::RunBackend", Activity.COMPILE),
        ("XCompiler::AwaitAll", Activity.HOST),
        ("XCompiler::Run Compiler::Awaiting", Activity.HOST),
        ("XCompiler::Awaiting Compiler::Run", Activity.COMPILE),
        ("Triton kernel compile", Activity.COMPILE),
        ("$my_prefetcher.py:12 __next__", Activity.INPUT_WAIT),
        ("$prefetch.py:12 next", Activity.INPUT_WAIT),
        ("$fetch.py:12 next", Activity.HOST),
    ],
)
def test_rules_without_repetition_say_the_same(name, activity):
    assert activity_names.host_activity(name) == activity


@each_row(
    ("name", "key"),
    [
        ("/job:x/replica:0/task:0/device:GPU:0", ("/job:x/replica:0/task:0", "gpu:0")),
        ("/gpu:0", ("", "gpu:0")),
        ("gpu:0", ("", "gpu:0")),
        ("xdevice:GPU:1", ("x", "gpu:1")),
        ("nothing", ("", "nothing")),
    ],
)
def test_the_device_of_a_name(name, key):
    assert events.device_key(name) == key


@each_row(
    ("text", "name", "op_type", "category"),
    [
        ("a/b/MatMul:MatMul", "a/b/MatMul", "MatMul", TENSORFLOW),
        ("x:_FusedConv2D", "x", "_FusedConv2D", TENSORFLOW),
        ("a->b:Send", "a->b", "Send", TENSORFLOW),
        ("model/MatMul_1:", "model/MatMul_1", "MatMul", TENSORFLOW),
        ("jit(f)/add:add", "jit(f)/add", "add", JAX),
        ("x:dot_general[precision=(1, 2)]", "x", "dot_general", JAX),
        ("jit(f)/mul_12:", "jit(f)/mul_12", "mul", JAX),
        ("q_+1:", "q_+1", "q", JAX),
        ("5:", "5", "5", TENSORFLOW),
        (":", "", "", TENSORFLOW),
        (":mul", "", "mul", JAX),
        ("Iterator::Map::Range:x", "Iterator::Map::Range:x", "Dataset", TF_DATA),
        ("memcpyHtoD 4", "memcpyHtoD 4", "MemcpyHToD", COPY),
        ("MemcpyDToD", "MemcpyDToD", "MemcpyDToD", COPY),
        ("train", "train", "", UNKNOWN),
        ("MemcpyH2D", "MemcpyH2D", "", UNKNOWN),
        ("$file.py:12 run", "$file.py:12 run", "", UNKNOWN),
        ("foo: bar", "foo: bar", "", UNKNOWN),
        ("a b:Relu", "a b:Relu", "", UNKNOWN),
        (":Mul", ":Mul", "", UNKNOWN),
        ("x:add[a\nb]", "x:add[a\nb]", "", UNKNOWN),
    ],
)
def test_names(text, name, op_type, category):
    result = parse_op_name(text)
    assert (result.name, result.op_type, result.category) == (name, op_type, category)
    assert result.is_op == (category != UNKNOWN)


def test_a_number_beyond_64_bits_is_no_suffix():
    assert parse_op_name("b_99999999999999999999:").op_type == "b_99999999999999999999"


def test_an_op_of_jax_holds_its_type_in_its_last_scope():
    assert is_jax_op("jit(f)/transpose(jvp(g))/dot_general", "dot_general")
    assert not is_jax_op("dot_general/x", "dot_general")
    assert not is_jax_op("", "add")
