"""Tables of traced runs: by hand, damaged, and real ones against a slow reference."""

import gzip
from random import Random

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.formats.step_stats_reference import (
    CPU,
    ZERO,
    Event,
    add_device,
    add_memory,
    add_node,
    add_output,
    allocator_events,
    open_run,
    run_metadata,
)
from tests.wire.mutations import mutate, sized_fields

from peakline.errors import DamagedError, StrictError
from peakline.formats.run_metadata.runs import Run
from peakline.formats.run_metadata.tables import RunTables
from peakline.tables import Profile
from peakline.tables.reader import Warnings
from peakline.tables.tables import TABLES, check_columns
from peakline.wire import as_buffer


def rows(profile, table):
    return profile.columns(table).to_pylist()


@pytest.fixture
def full():
    """One execution with every field set, and one that has only times."""
    run = run_metadata()
    device = add_device(run)
    device.thread_names[7] = "worker"
    node = device.node_stats.add(
        node_name="conv",
        all_start_micros=ZERO + 5,
        op_start_rel_micros=1,
        op_end_rel_micros=8,
        all_end_rel_micros=9,
        timeline_label="[bfc 1.0MB 1.0MB] conv = Conv2D(x, w:1, ^init)",
        scheduled_micros=ZERO + 2,
        thread_id=7,
        all_start_nanos=ZERO * 1000 + 5_500,
        op_start_rel_nanos=1_100,
        op_end_rel_nanos=8_800,
        all_end_rel_nanos=9_900,
        scheduled_nanos=ZERO * 1000 + 2_200,
    )
    memory = node.memory.add(
        allocator_name="bfc",
        total_bytes=96,
        peak_bytes=80,
        live_bytes=64,
        allocator_bytes_in_use=1000,
    )
    memory.allocation_records.add(alloc_micros=ZERO + 6, alloc_bytes=64)
    memory.allocation_records.add(alloc_micros=ZERO + 30, alloc_bytes=-64)
    tensor = node.output.add(slot=2).tensor_description
    tensor.dtype = 1
    tensor.shape.dim.add(size=4)
    tensor.shape.dim.add(size=-1)
    buffer = tensor.allocation_description
    buffer.requested_bytes, buffer.allocated_bytes, buffer.allocator_name = 60, 64, "bfc"
    buffer.allocation_id, buffer.has_single_reference, buffer.ptr = 12, True, 2**63 + 5
    node.output.add(slot=3)
    node.referenced_tensor.add(
        requested_bytes=1, allocated_bytes=2, allocator_name="host", allocation_id=3,
        has_single_reference=True, ptr=4,
    )  # fmt: skip
    stats = node.memory_stats
    stats.temp_memory_size, stats.persistent_memory_size = 21, 22
    stats.device_temp_memory_size, stats.device_persistent_memory_size = 23, 24
    stats.persistent_tensor_alloc_ids.extend([31, 32])
    stats.device_persistent_tensor_alloc_ids.append(33)
    add_node(device, "first", length=3, label="")
    return run


def test_executions(full, tmp_path):
    conv, first = rows(open_run(tmp_path, full), "op_runs")
    assert conv == {
        "op_run_id": 0, "device": CPU, "name": "conv", "op_type": "Conv2D", "start_ps": 5_500_000,
        "duration_ps": 9_900_000, "scheduled_ps": 2_200_000, "thread": 7, "step_id": 0,
        "compute_start_ps": 6_600_000, "compute_ps": 7_700_000,
        "label": "[bfc 1.0MB 1.0MB] conv = Conv2D(x, w:1, ^init)", "kind": "executor",
        "is_duplicate": False, "device_entry": 0,
    }  # fmt: skip
    assert (first["start_ps"], first["duration_ps"]) == (0, 3_000_000)
    assert [first[name] for name in ("op_type", "label", "thread", "scheduled_ps")] == [None] * 4


def test_times_as_written(full, tmp_path):
    conv, first = rows(open_run(tmp_path, full), "op_times")
    node = full.step_stats.dev_stats[0].node_stats[0]
    assert conv.pop("op_run_id") == 0
    assert conv == {name: getattr(node, name) for name in conv}
    assert len(conv) == len(TABLES["op_times"].columns) - 1
    assert first["thread_id"] == 0
    assert first["all_start_micros"] == ZERO


def test_outputs(full, tmp_path):
    whole, bare = rows(open_run(tmp_path, full), "op_outputs")
    assert whole == {
        "op_run_id": 0, "position": 0, "slot": 2, "data_type": "float", "shape": "[4, ?]",
        "requested_bytes": 60, "allocated_bytes": 64, "allocator": "bfc", "allocation_id": 12,
        "address": 2**63 + 5,
        "has_single_reference": True,
        "has_description": True,
        "has_allocation": True,
    }  # fmt: skip
    assert (bare["position"], bare["slot"]) == (1, 3)
    known = {"op_run_id", "position", "slot"}
    assert {bare[name] for name in bare.keys() - known} == {None, False}


def test_references(full, tmp_path):
    assert rows(open_run(tmp_path, full), "op_references") == [
        {
            "op_run_id": 0, "requested_bytes": 1, "allocated_bytes": 2, "allocator": "host",
            "allocation_id": 3, "has_single_reference": True, "address": 4,
        }
    ]  # fmt: skip


def test_memory(full, tmp_path):
    profile = open_run(tmp_path, full)
    assert rows(profile, "op_memory") == [
        {
            "op_run_id": 0, "allocator": "bfc", "total_bytes": 96, "peak_bytes": 80,
            "live_bytes": 64, "allocator_bytes_in_use": 1000,
        }
    ]  # fmt: skip
    assert rows(profile, "op_allocations") == [
        {"op_run_id": 0, "allocator": "bfc", "time_ps": 6_000_000, "bytes": 64},
        {"op_run_id": 0, "allocator": "bfc", "time_ps": 30_000_000, "bytes": -64},
    ]
    assert rows(profile, "op_memory_stats") == [
        {
            "op_run_id": 0,
            "temp_bytes": 21,
            "persistent_bytes": 22,
            "device_temp_bytes": 23,
            "device_persistent_bytes": 24,
        }
    ]
    assert rows(profile, "op_persistent") == [
        {"op_run_id": 0, "allocation_id": 31, "is_device": False},
        {"op_run_id": 0, "allocation_id": 32, "is_device": False},
        {"op_run_id": 0, "allocation_id": 33, "is_device": True},
    ]


def test_thread_names(full, tmp_path):
    assert rows(open_run(tmp_path, full), "thread_names") == [
        {"device_entry": 0, "device": CPU, "thread_id": 7, "name": "worker"}
    ]


def test_step(full, tmp_path):
    profile = open_run(tmp_path, full)
    assert rows(profile, "steps") == [
        {
            "step_id": 0, "name": "run 0", "start_ps": 0, "end_ps": 15_400_000, "found_by": None,
            "is_cut_off": None,
        }
    ]  # fmt: skip
    assert profile.duration_ps == 15_400_000


def test_step_stats_are_the_same_below_their_root(full, tmp_path):
    whole = open_run(tmp_path, full)
    expected = {name: rows(whole, name) for name in whole.tables}
    alone = open_run(tmp_path, full.step_stats, "step_stats")
    assert {name: rows(alone, name) for name in alone.tables} == expected


def test_only_the_columns_asked_for(full, tmp_path):
    profile = open_run(tmp_path, full)
    everything = rows(profile, "op_runs")
    for column in TABLES["op_runs"].columns:
        result = open_run(tmp_path, full)._reader.read("op_runs", profile._warnings, {column.name})
        assert list(result) == [column.name]
        assert [row[column.name] for row in result.to_pylist()] == [
            row[column.name] for row in everything
        ]


# Labels, kinds, duplicates.


@each_row(
    ("device", "node", "label", "kind", "op_type"),
    [
        (CPU, "a/b", "a/b = MatMul(x, ^y)", "executor", "MatMul"),
        (CPU, "a", "a = b = Sum(c(d), e)", "executor", "Sum(c"),
        (CPU, "a", "a", "executor", None),
        (CPU, "a", "", "executor", None),
        (CPU, "RecvTensor", "[65536B] [1.7Gb/s] w = Mul(x)", "rpc", "RecvTensor"),
        ("/gpu:0", "a", "a = Add(x, y)", "executor", "Add"),
        ("/device:GPU:0/stream:13", "x", "grid 1 @@a/b:Add#id=1#", "stream", "Add"),
        ("/device:GPU:0/stream:13", "x:Mul", "grid 1", "stream", "Mul"),
        ("/device:GPU:0/stream:13", "x", "grid = One(1)", "stream", None),
        ("/device:GPU:0/stream:14<MemcpyH2D>", "x:Mul", "@@#", "stream", "Mul"),
        ("/device:GPU:0/stream:", "a:Mul:b", "", "stream", "Mul"),
        ("/device:GPU:0/stream:all", "x", "@@a:Add#", "stream_all", "Add"),
        ("/gpu:0/stream:all", "x", "@@a:Add#", "stream_all", "Add"),
        ("/device:GPU:0/memcpy", "x:Send", "MEMCPYHtoD", "memcpy", "Send"),
        ("/device:GPU:0/sync", "x", "ThreadId 3", "sync", None),
    ],
)
def test_kind_and_op_type(device, node, label, kind, op_type, tmp_path):
    run = run_metadata()
    add_node(add_device(run, device), node, label=label)
    row = rows(open_run(tmp_path, run), "op_runs")[0]
    assert (row["kind"], row["op_type"], row["is_duplicate"]) == (kind, op_type, False)


def duplicates(profile):
    return [row["name"] for row in rows(profile, "op_runs") if row["is_duplicate"]]


def test_work_in_a_stream_and_in_a_summary_counts_once(tmp_path):
    run = run_metadata()
    everything = add_device(run, "/device:GPU:0/stream:all")
    add_node(everything, "kernel all", 10)
    add_node(everything, "only in all", 20)
    copies = add_device(run, "/device:GPU:0/memcpy")
    add_node(copies, "copy", 30)
    add_node(copies, "copy", 30)
    for name, kernels in (("stream:1", ["kernel all"]), ("stream:2<MemcpyH2D>", ["copy"])):
        stream = add_device(run, f"/device:GPU:0/{name}")
        for kernel in kernels:
            add_node(stream, kernel, 10 if kernel == "kernel all" else 30)
    # The same on another device is other work; a host row always counts.
    add_node(add_device(run, "/device:GPU:1/stream:all"), "kernel all", 10)
    add_node(add_device(run), "kernel all", 10)
    assert duplicates(open_run(tmp_path, run)) == ["kernel all", "copy"]


def test_work_that_only_a_summary_holds_counts(tmp_path):
    run = run_metadata()
    add_node(add_device(run, "/device:GPU:0/stream:all"), "kernel")
    add_node(add_device(run, "/device:GPU:0/memcpy"), "copy")
    assert duplicates(open_run(tmp_path, run)) == []


# Times.


def test_a_row_without_a_start_neither_sets_the_clock_nor_leaves_it(tmp_path):
    run = run_metadata()
    device = add_device(run)
    device.node_stats.add(node_name="none", all_end_rel_micros=4)
    add_node(device, "later", 7)
    add_node(device, "zero", 0)
    profile = open_run(tmp_path, run)
    assert profile.columns("op_runs").array("start_ps").tolist() == [0, 7_000_000, 0]
    assert [(w.kind, w.count) for w in profile.warnings] == [("no_start_time", 1)]


def test_times_out_of_all_range_saturate(tmp_path):
    run = run_metadata()
    device = add_device(run)
    add_node(device, "now")
    device.node_stats.add(node_name="never", all_start_nanos=2**63 - 1, all_end_rel_nanos=-(2**63))
    start, duration = (
        open_run(tmp_path, run).columns("op_runs").array(name).tolist()
        for name in ("start_ps", "duration_ps")
    )
    most = (2**63 - 1) // 1000 * 1000
    assert (start, duration) == ([0, most], [10_000_000, -most])


def test_a_collector_that_was_full(tmp_path, monkeypatch):
    monkeypatch.setattr("peakline.formats.run_metadata.tables._COLLECTOR_LIMIT", 3)
    run = run_metadata()
    for number in range(3):
        add_node(add_device(run), f"op {number}")
    profile = open_run(tmp_path, run)
    profile.columns("op_runs")
    assert [(w.kind, w.count) for w in profile.warnings] == [("collector_limit", 1)]


# What a file holds decides which tables it has.


def test_a_run_without_step_stats_has_only_its_step(tmp_path):
    profile = open_run(tmp_path, run_metadata().FromString(b"\x0a\x00"))
    assert set(profile.tables) == {"steps", "traced_runs", "warnings"}


def test_cost_graph(tmp_path):
    run = run_metadata()
    graph = run.cost_graph
    node = graph.node.add(
        name="mul", device=CPU, id=4, temporary_memory_size=1, is_final=True,
        control_input=[2, 3],
        compute_cost=5, host_temp_memory_size=6, device_temp_memory_size=7,
        persistent_memory_size=8, compute_time=9, memory_time=10, device_persistent_memory_size=11,
        inaccurate=True,
    )  # fmt: skip
    node.input_info.add(preceding_node=1, preceding_port=6)
    output = node.output_info.add(size=64, alias_input_port=-1, dtype=3)
    output.shape.unknown_rank = True
    node.output_info.add(size=4)
    graph.node.add(id=-5).input_info.add()
    graph.cost.add(cost=1.5, dimension="bytes")
    profile = open_run(tmp_path, run)
    first, second = rows(profile, "cost_nodes")
    assert first == {
        "step_id": 0, "name": "mul", "device": CPU, "cost_id": 4, "is_final": True,
        "is_inaccurate": True, "compute_micros": 5, "compute_time": 9, "memory_time": 10,
        "temporary_bytes": 1, "persistent_bytes": 8, "host_temp_bytes": 6, "device_temp_bytes": 7,
        "device_persistent_bytes": 11,
    }  # fmt: skip
    assert second["cost_id"] == -5
    edges = [tuple(row.values()) for row in rows(profile, "cost_edges")]
    assert edges == [(0, 4, 1, 6), (0, 4, 2, None), (0, 4, 3, None), (0, -5, 0, 0)]
    assert [tuple(row.values()) for row in rows(profile, "cost_outputs")] == [
        (0, 4, 0, 64, -1, "int32", "<unknown>"),
        (0, 4, 1, 4, 0, "INVALID", None),
    ]
    assert rows(profile, "cost_totals") == [{"step_id": 0, "dimension": "bytes", "cost": 1.5}]
    assert "op_runs" not in profile.tables


def test_graphs_have_kinds_and_names(tmp_path):
    run = run_metadata()
    run.partition_graphs.add().node.add(name="p0")
    run.partition_graphs.add().node.add(name="p1")
    function = run.function_graphs.add()
    function.partition_graphs.add().node.add(name="f0")
    function.post_optimization_graph.node.add(name="after")
    function = run.function_graphs.add()
    function.pre_optimization_graph.node.add(name="before")
    function.partition_graphs.add().node.add(name="f1")
    profile = open_run(tmp_path, run)
    assert [(row["graph"], row["kind"]) for row in rows(profile, "graphs")] == [
        ("partition 0", "partition"),
        ("partition 1", "partition"),
        ("function 0 partition 0", "function_partition"),
        ("function 0 post optimization", "post_optimization"),
        ("function 1 partition 0", "function_partition"),
        ("function 1 pre optimization", "pre_optimization"),
    ]
    names = [row["name"] for row in rows(profile, "nodes")]
    assert names == ["p0", "p1", "f0", "after", "f1", "before"]


def test_the_only_graph_needs_no_name(tmp_path):
    run = run_metadata()
    run.partition_graphs.add().node.add(name="a")
    assert rows(open_run(tmp_path, run), "nodes")[0]["graph"] == ""


def test_devices_and_the_session_of_a_run(tmp_path):
    run = run_metadata()
    run.step_stats.dev_stats.add(device="/gpu:0")
    run.step_stats.dev_stats.add(device="/cpu:0").node_stats.add(node_name="a", all_start_micros=1)
    run.session_metadata.name, run.session_metadata.version = "resnet", 7
    profile = open_run(tmp_path, run)
    assert profile.columns("op_devices").to_pylist() == [
        {"device_entry": 0, "device": "/gpu:0", "step_id": 0, "nodes": 0},
        {"device_entry": 1, "device": "/cpu:0", "step_id": 0, "nodes": 1},
    ]
    assert profile.columns("traced_runs").to_pylist() == [
        {
            "step_id": 0, "name": "run 0", "session_name": "resnet", "session_version": 7,
            "wall_time_s": None, "event_step": None,
        }
    ]  # fmt: skip


@pytest.fixture(scope="module")
def small():
    """A run with a little of everything, as bytes."""
    run = run_metadata()
    device = add_device(run)
    device.thread_names[3] = "worker"
    for number in range(4):
        node = add_node(device, f"op {number}", number, label=f"op {number} = MatMul(x)")
        add_memory(node, [(number, 64), (number + 5, -64)])
        add_output(node, 64, number + 1)
        node.memory_stats.temp_memory_size = 8
        node.memory_stats.persistent_tensor_alloc_ids.append(9)
        node.referenced_tensor.add(allocation_id=1)
    add_node(add_device(run, "/device:GPU:0/stream:all"), "x:Mul")
    cost = run.cost_graph.node.add(name="a", control_input=[1])
    cost.input_info.add(preceding_port=1)
    cost.output_info.add(size=4)
    run.partition_graphs.add().node.add(name="a", op="Mul", input=["b"])
    run.function_graphs.add().partition_graphs.add().node.add(name="b")
    return run.SerializeToString()


def read_all(profile: Profile) -> dict[str, list[dict[str, object]]]:
    result = {table: profile.columns(table).to_pylist() for table in profile.tables}
    assert profile.duration_ps >= 0
    return result


def kinds(profile):
    return {warning.kind: warning.count for warning in profile.warnings}


def test_a_whole_file_warns_of_nothing(small, tmp_path):
    profile = open_run(tmp_path, small)
    assert len(read_all(profile)) == 26
    assert profile.warnings == []


@pytest.mark.parametrize("step", [27, pytest.param(9, marks=pytest.mark.nightly)])
def test_any_cut_is_told(small, tmp_path, step):
    message, refused = run_metadata(), 0
    for cut in (*range(1, 12), *range(12, len(small), step), *range(595, len(small))):
        try:
            message.ParseFromString(small[:cut])
            expected = {}
        except DecodeError:
            expected = {"truncated": 1}
        try:
            profile = open_run(tmp_path, small[:cut])
        except DamagedError:
            refused += 1
            continue
        read_all(profile)
        assert kinds(profile) == expected, cut
    # Before the first device's entry begins there is nothing to show.
    assert refused == 5


@pytest.mark.parametrize("step", [5, pytest.param(2, marks=pytest.mark.nightly)])
def test_executions_keep_their_numbers_whatever_is_damaged(small, tmp_path, step):
    """An output that is read belongs to the execution that it was written for."""
    checked = 0
    for at in range(0, len(small), step):
        data = small[:at] + bytes([small[at] ^ 0x80]) + small[at + 1 :]
        try:
            profile = open_run(tmp_path, data)
        except DamagedError:
            continue
        if "op_runs" not in profile.tables:
            continue
        names = profile.columns("op_runs").names("name").to_list()
        for output in profile.columns("op_outputs").to_pylist():
            number, name = output["allocation_id"], names[output["op_run_id"]]
            if number in range(1, 5) and output["address"] == 4096 * number and name[:3] == "op ":
                # The name itself may be what was damaged.
                assert name[3:] in {str(number - 1), "\N{REPLACEMENT CHARACTER}"}
                checked += bool(profile.warnings)
    assert checked > 400 / step


def test_no_damage_stops_the_reading(small, tmp_path):
    rng, sized = Random(5), sized_fields(small, run_metadata().DESCRIPTOR)
    read = 0
    for _ in range(60):
        try:
            profile = open_run(tmp_path, mutate(rng, small, sized))
        except DamagedError:
            continue
        tables = read_all(profile)
        rows = len(tables.get("op_runs", ()))
        for name, result in tables.items():
            assert all(row.get("op_run_id", 0) < max(rows, 1) for row in result), name
        read += rows > 0
    assert read > 40


def test_columns_do_not_change_the_rows(small, tmp_path):
    rng, sized = Random(6), sized_fields(small, run_metadata().DESCRIPTOR)
    for _ in range(40):
        data = mutate(rng, small, sized)
        try:
            profile = open_run(tmp_path, data)
        except DamagedError:
            continue
        if "op_runs" not in profile.tables:
            continue
        everything = profile.columns("op_runs").to_pylist()
        for column in TABLES["op_runs"].columns:
            result = profile._reader.read("op_runs", profile._warnings, {column.name})
            assert [row[column.name] for row in result.to_pylist()] == [
                row[column.name] for row in everything
            ]


def test_damage_is_counted_once_however_often_it_is_met(small, tmp_path):
    # The length of the first output's tensor, made longer than the output.
    at = small.index(b"\x1a", small.index(b"\x3a", small.index(b"op 0")))
    profile = open_run(tmp_path, (small[: at + 1] + b"\x7f" + small[at + 2 :]))
    profile.columns("op_runs")
    assert profile.warnings == []
    for _ in range(2):
        profile._reader.read("op_outputs", profile._warnings)
        profile._reader.read("allocator_events", profile._warnings)
    assert kinds(profile) == {"damaged": 1}
    assert {row["op_run_id"] for row in profile.columns("op_outputs").to_pylist()} == {1, 2, 3}


def test_strict_refuses_a_cut_file(small, tmp_path):
    strict = Profile(open_run(tmp_path, small[:-3])._reader, strict=True)
    with pytest.raises(StrictError, match="truncated"):
        strict.columns("op_runs")


def test_a_real_run_cut_at_random_places(root, tmp_path):
    data = gzip.decompress((root / "tests/data/run_metadata/tf1_grpc.pb.gz").read_bytes())
    rng = Random(7)
    rows = -1
    for cut in sorted(rng.sample(range(200, len(data)), 12)):
        now = len(read_all(open_run(tmp_path, data[:cut]))["op_runs"])
        assert now >= rows
        rows = now
    assert rows == 47


_SAMPLES = ("tf1_cnn_2", "tf1_control_flow_4", "tf1_grpc")


@each_row("name", _SAMPLES)
def test_samples_are_read_as_their_messages_say(name, root, tmp_path):
    data = gzip.decompress((root / f"tests/data/run_metadata/{name}.pb.gz").read_bytes())
    profile = open_run(tmp_path, data)
    nodes = [
        (entry, device.device, node)
        for entry, device in enumerate(run_metadata().FromString(data).step_stats.dev_stats)
        for node in device.node_stats
    ]
    zero = min(node.all_start_nanos or node.all_start_micros * 1000 for _, _, node in nodes)
    runs = rows(profile, "op_runs")
    for row, (entry, device, node) in zip(runs, nodes, strict=True):
        start = node.all_start_nanos or node.all_start_micros * 1000
        length = node.all_end_rel_nanos or node.all_end_rel_micros * 1000
        expected = (entry, device, node.node_name, node.timeline_label or None)
        assert (row["device_entry"], row["device"], row["name"], row["label"]) == expected
        assert (row["start_ps"], row["duration_ps"]) == ((start - zero) * 1000, length * 1000)
    times = rows(profile, "op_times")
    for row, (_, _, node) in zip(times, nodes, strict=True):
        assert all(row[field] == getattr(node, field) for field in row if field != "op_run_id")
    outputs = iter(rows(profile, "op_outputs"))
    memory = iter(rows(profile, "op_memory"))
    records = iter(rows(profile, "op_allocations"))
    for number, (_, _, node) in enumerate(nodes):
        for position, output in enumerate(node.output):
            row = next(outputs)
            held = output.tensor_description.allocation_description
            assert (row["op_run_id"], row["position"]) == (number, position)
            assert row["slot"] == output.slot
            assert (row["allocation_id"] or 0, row["address"] or 0) == (
                held.allocation_id,
                held.ptr,
            )
            assert (row["requested_bytes"] or 0) == held.requested_bytes
            assert (row["allocated_bytes"] or 0) == held.allocated_bytes
        for used in node.memory:
            row = next(memory)
            assert (row.pop("op_run_id"), row.pop("allocator")) == (number, used.allocator_name)
            assert row == {field: getattr(used, field) for field in row}
            for record in used.allocation_records:
                row = next(records)
                assert (row["op_run_id"], row["bytes"]) == (number, record.alloc_bytes)
                assert row["time_ps"] == (record.alloc_micros * 1000 - zero) * 1000
    assert [list(rest) for rest in (outputs, memory, records)] == [[], [], []]


def as_events(profile):
    return sorted(
        Event(
            row["time_ps"],
            row["allocator"],
            row["activity"],
            row["allocated_bytes"],
            row["op"],
            max(row["allocation_id"], 0),
            row["address"] or 0,
            row["region_type"] or "",
            row["data_type"] or "",
            row["shape"] or "",
            -1 if row["step_id"] is None else row["step_id"],
        )
        for row in profile.columns("allocator_events").to_pylist()
    )


@each_row("name", _SAMPLES)
def test_samples_are_read_as_by_the_reference(name, root, tmp_path):
    data = gzip.decompress((root / f"tests/data/run_metadata/{name}.pb.gz").read_bytes())
    expected = allocator_events(run_metadata().FromString(data).step_stats)
    assert as_events(open_run(tmp_path, data)) == expected


def test_the_peak_of_a_sample_is_what_the_allocator_reported(root, tmp_path):
    """Found buffers and the allocator's own account differ by the same little at all times."""
    data = gzip.decompress((root / "tests/data/run_metadata/tf1_control_flow_4.pb.gz").read_bytes())
    profile = open_run(tmp_path, data)
    ends = {row["op_run_id"]: row["start_ps"] + row["duration_ps"]
            for row in profile.columns("op_runs").to_pylist()}  # fmt: skip
    events = [row for row in profile.columns("allocator_events").to_pylist()
              if row["allocator"] != "cpu"]  # fmt: skip
    assert [(row["allocated_bytes"], row["time_ps"]) for row in events
            if row["op"] == "(before profile)"] == [(24_832, 0)]  # fmt: skip
    unknown = []
    for row in profile.columns("op_memory").to_pylist():
        known = sum(
            event["allocated_bytes"] * (1 if event["activity"] == "allocation" else -1)
            for event in events
            if event["time_ps"] <= ends[row["op_run_id"]]
        )
        unknown.append(row["allocator_bytes_in_use"] - known)
    unknown.sort()
    # The optimizer's slots, never put out, are a row; the rest is how exactly times are known.
    assert unknown[0] == 0
    assert unknown[-len(unknown) // 20] <= 31_000 - 24_832


@st.composite
def runs(draw):
    run = run_metadata()
    for place in range(draw(st.integers(1, 2))):
        device = add_device(run, CPU if place else "/job:w/replica:0/task:1/cpu:0")
        for number in range(draw(st.integers(0, 4))):
            node = add_node(device, f"n{number}", draw(st.integers(0, 9)))
            for name in draw(st.lists(st.sampled_from("ab"), max_size=2)):
                record = st.tuples(st.integers(0, 9), st.sampled_from((-8, -4, 4, 8)))
                memory = add_memory(node, draw(st.lists(record, max_size=5)), name)
                memory.peak_bytes = draw(st.integers(0, 2))
            for _ in range(draw(st.integers(0, 3))):
                size, buffer, address, name = (
                    draw(st.sampled_from(choice)) for choice in ((4, 8), range(4), range(3), "ab")
                )
                add_output(node, size, buffer, address, name)
    return run


@settings(max_examples=100)
@given(runs())
def test_every_record_counts_once_and_every_buffer_is_told_from_all_others(run):
    data = run.SerializeToString()
    tables = RunTables(as_buffer(data), [Run("run 0", 0, 0, len(data))])
    result = check_columns("allocator_events", tables.read("allocator_events", Warnings(), None))
    events = result.to_pylist()
    times = [event["time_ps"] for event in events]
    assert times == sorted(times)
    written = sorted(
        record.alloc_bytes
        for device in run.step_stats.dev_stats
        for node in device.node_stats
        for memory in node.memory
        for record in memory.allocation_records
    )
    signed = [
        event["allocated_bytes"] * (1 if event["activity"] == "allocation" else -1)
        for event in events
    ]
    silent = sum(
        bool(memory.peak_bytes and not memory.allocation_records)
        for device in run.step_stats.dev_stats
        for node in device.node_stats
        for memory in node.memory
    )
    if not silent:
        for size in {-8, -4}:
            assert signed.count(size) == written.count(size)
        assert all(signed.count(size) >= written.count(size) for size in (4, 8))
    begun = [(e["allocator"], e["allocation_id"]) for e in events if e["activity"] == "allocation"]
    assert len(set(begun)) == len(begun)
    sizes = {
        (e["allocator"], e["allocation_id"]): e["allocated_bytes"]
        for e in events
        if e["activity"] == "allocation"
    }
    ended = [e for e in events if e["activity"] == "deallocation"]
    keys = [(e["allocator"], e["allocation_id"]) for e in ended]
    assert len(set(keys)) == len(keys)
    assert all(
        e["allocated_bytes"] == sizes.get(k, e["allocated_bytes"])
        for e, k in zip(ended, keys, strict=True)
    )
