"""Real traced runs against message objects and a slow reference; allocations of any run."""

import gzip

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.sources.step_stats_files import (
    CPU,
    add_device,
    add_memory,
    add_node,
    add_output,
    open_run,
    run_metadata,
)
from tests.sources.step_stats_reference import Event, allocator_events

from peakline.formats.run_metadata.runs import Run
from peakline.formats.run_metadata.tables import RunTables
from peakline.tables.reader import Warnings
from peakline.tables.tables import check_columns
from peakline.wire import as_buffer

_SAMPLES = ("tf1_cnn_2", "tf1_control_flow_4", "tf1_grpc")


def rows(profile, table):
    return profile.columns(table).to_pylist()


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
    found = check_columns("allocator_events", tables.read("allocator_events", Warnings(), None))
    events = found.to_pylist()
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
