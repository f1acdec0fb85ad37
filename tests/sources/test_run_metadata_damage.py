"""Damaged runs: what is whole is read, the rest is counted, and rows keep their numbers."""

import gzip
from random import Random

import pytest
from google.protobuf.message import DecodeError
from tests.sources.step_stats_files import (
    add_device,
    add_memory,
    add_node,
    add_output,
    open_run,
    run_metadata,
)
from tests.wire.mutations import mutate, sized_fields

from peakline.errors import DamagedError, StrictError
from peakline.tables import Profile
from peakline.tables.tables import TABLES


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
    found = {table: profile.columns(table).to_pylist() for table in profile.tables}
    assert profile.duration_ps >= 0
    return found


def kinds(profile):
    return {warning.kind: warning.count for warning in profile.warnings}


def test_a_whole_file_warns_of_nothing(small, tmp_path):
    profile = open_run(tmp_path, small)
    assert len(read_all(profile)) == 26
    assert profile.warnings == []


def test_any_cut_is_told(small, tmp_path):
    message, refused = run_metadata(), 0
    for cut in (*range(1, 12), *range(12, len(small), 9), *range(595, len(small))):
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


def test_executions_keep_their_numbers_whatever_is_damaged(small, tmp_path):
    """An output that is read belongs to the execution that it was written for."""
    checked = 0
    for at in range(0, len(small), 2):
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
    assert checked > 200


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
        for name, found in tables.items():
            assert all(row.get("op_run_id", 0) < max(rows, 1) for row in found), name
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
            found = profile._reader.read("op_runs", profile._warnings, {column.name})
            assert [row[column.name] for row in found.to_pylist()] == [
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
