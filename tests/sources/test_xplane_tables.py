"""Tables of small XSpaces: a tiny file, one question, the exact rows."""

import gzip

import pytest

from peakline.errors import UsageError
from reference.xspace_builder import SpaceBuilder, Uint

MEMORY = {
    "allocator_name": "GPU_0_bfc", "bytes_reserved": 0, "bytes_allocated": 256,
    "bytes_available": 1000, "fragmentation": 0.5, "peak_bytes_in_use": 512, "requested_bytes": 200,
    "allocation_bytes": 256, "addr": 4096, "tf_op": "net/MatMul", "region_type": "output",
    "data_type": 1, "shape": "[2, 100]",
}  # fmt: skip


def test_an_allocation_keeps_everything_the_runtime_said(opened):
    builder = SpaceBuilder()
    builder.host().line("t", 5).event("MemoryAllocation", 7000, 0, MEMORY)
    (row,) = opened(builder).columns("allocator_events").to_pylist()
    assert row == {
        "time_ps": 7000, "sequence": 0, "allocator": "GPU_0_bfc", "activity": "allocation",
        "address": 4096, "allocation_id": None, "requested_bytes": 200, "allocated_bytes": 256,
        "op": "net/MatMul", "region_type": "output", "data_type": "float", "shape": "[2, 100]",
        "step_id": None, "in_use_bytes": 256, "reserved_bytes": 0, "free_bytes": 1000,
        "fragmentation": 0.5, "peak_bytes": 512, "deferred": None, "returned_sequence": None,
        "stream": None, "stack_id": None, "line_id": 0, "is_before": None, "count": None,
    }  # fmt: skip


def test_what_the_runtime_did_not_say_is_null(opened):
    builder = SpaceBuilder()
    builder.host().line("t", 0).event("MemoryDeallocation", 1, 0, {"tf_op": "", "data_type": 0})
    (row,) = opened(builder).columns("allocator_events").to_pylist()
    assert row["allocator"] == ""
    known = {name: value for name, value in row.items() if value not in (None, "", 0, 1)}
    assert known == {"activity": "deallocation"}
    assert [row[name] for name in ("op", "data_type", "address", "allocated_bytes")] == [None] * 4


def test_numbers_of_any_kind_are_accepted_where_upstream_reads_zero(opened):
    stats = MEMORY | {"bytes_allocated": Uint(300), "addr": Uint(2**63 + 5), "fragmentation": 1}
    builder = SpaceBuilder()
    builder.host().line("t", 0).event("MemoryAllocation", 1, 0, stats)
    profile = opened(builder)
    (row,) = profile.columns("allocator_events").to_pylist()
    assert (row["in_use_bytes"], row["address"], row["fragmentation"]) == (300, 2**63 + 5, 1.0)
    (snapshot,) = profile.columns("memory_snapshots").to_pylist()
    read = ("heap_allocated_bytes", "address", "fragmentation")
    assert [snapshot[name] for name in read] == [0, 0, 0.0]


def test_lines_with_different_bases_are_on_one_clock(opened):
    builder = SpaceBuilder()
    host = builder.host()
    host.line("late", 9).event("MemoryAllocation", 100, 0, MEMORY | {"addr": 1})
    host.line("early", 4).event("MemoryAllocation", 2000, 0, MEMORY | {"addr": 2})
    profile = opened(builder)
    events = profile.columns("allocator_events").to_pylist()
    assert [(e["address"], e["time_ps"], e["sequence"]) for e in events] == [
        (2, 2000, 1),
        (1, 5100, 0),
    ]
    snapshots = profile.columns("memory_snapshots").to_pylist()
    assert [s["time_offset_ps"] for s in snapshots] == [100, 2000]
    lines = profile.columns("lines").to_pylist()
    assert [(line["name"], line["start_ps"]) for line in lines] == [("late", 5000), ("early", 0)]


def test_memory_belongs_to_the_step_around_it(opened):
    builder = SpaceBuilder()
    line = builder.host().line("t", 0)
    line.event("train", 100, 50, {"_r": 1, "step_num": 170})
    line.event("MemoryAllocation", 120, 0, MEMORY)
    line.event("MemoryDeallocation", 200, 0, MEMORY)
    profile = opened(builder)
    assert profile.columns("steps").to_pylist() == [
        {
            "step_id": 0, "name": "train 170", "start_ps": 100, "end_ps": 150, "found_by": "mark",
            "is_cut_off": False,
        }
    ]  # fmt: skip
    assert [e["step_id"] for e in profile.columns("allocator_events").to_pylist()] == [0, None]
    assert [e["step_id"] for e in profile.columns("events").to_pylist()] == [0, 0, None]


def test_stats_of_events_are_texts_of_their_values(opened):
    builder = SpaceBuilder()
    line = builder.host().line("t", 0)
    line.event("a", 1, 2, {"count": -3, "share": 0.25, "who": "me", "big": Uint(2**64 - 1)})
    line.event("b", 4, 0, {})
    profile = opened(builder)
    rows = profile.columns("event_stats").to_pylist()
    assert {row["name"]: row["value"] for row in rows} == {
        "count": "-3",
        "share": "0.25",
        "who": "me",
        "big": str(2**64 - 1),
    }
    assert {row["event_id"] for row in rows} == {0}
    assert [e["name"] for e in profile.columns("events").to_pylist()] == ["a", "b"]


def test_gz_and_the_host_in_the_name(opened):
    builder = SpaceBuilder()
    builder.host().line("t", 0).event("MemoryAllocation", 1, 0, MEMORY)
    profile = opened(gzip.compress(builder.space.SerializeToString()), "worker-7.xplane.pb.gz")
    assert (profile.host, profile.format) == ("worker-7", "xplane")
    assert profile.columns("allocator_events").rows == 1


def test_without_a_host_plane_there_are_no_snapshots(opened):
    builder = SpaceBuilder()
    builder.plane("/device:GPU:0").line("Stream", 0).event("kernel", 1, 2, {})
    profile = opened(builder)
    assert "memory_snapshots" not in profile.tables
    with pytest.raises(UsageError):
        profile.columns("memory_snapshots")
    assert profile.columns("allocator_events").rows == 0
    assert [p["kind"] for p in profile.columns("planes").to_pylist()] == ["device"]


def test_a_question_about_memory_leaves_other_planes_alone(opened, monkeypatch):
    from peakline.formats.xplane import passes

    builder = SpaceBuilder()
    builder.host().line("t", 0).event("MemoryAllocation", 1, 0, MEMORY)
    builder.plane("/device:GPU:0").line("Stream", 0).event("kernel", 1, 2, {"correlation_id": 1})
    read = []
    real = passes.PlanePass

    def spy(file, plane, **options):
        read.append(plane.name)
        return real(file, plane, **options)

    monkeypatch.setattr(passes, "PlanePass", spy)
    opened(builder).columns("memory_snapshots")
    assert read == ["/host:CPU"]


def test_the_profiler_s_own_complaints_are_warnings(opened):
    builder = SpaceBuilder()
    builder.space.errors.append("no device\ntracer")
    builder.space.warnings.append("dropped 3 events")
    builder.host().line("t", 0).event("MemoryAllocation", 1, 0, MEMORY)
    profile = opened(builder)
    profile.columns("planes")
    assert [tuple(w) for w in profile.warnings] == [
        ("profiler_error", 1, "no device tracer"),
        ("profiler_warning", 1, "dropped 3 events"),
    ]


@pytest.mark.parametrize("large", [41, 2**31, 2**40, -(2**31), -(2**63) + 1])
def test_groups_that_stand_in_the_file_are_of_any_size(opened, large):
    builder = SpaceBuilder()
    line = builder.host().line("t", 5)
    for start, group in enumerate([{}, {"group_id": -1}, {"group_id": large}]):
        line.event("work", start, 1, group)
    line.event("MemoryAllocation", 4, 0, MEMORY | {"group_id": large})
    line.event("MemoryAllocation", 5, 0, MEMORY)
    profile = opened(builder)
    events = profile.with_runtime_steps().columns("events", frozenset(("step_id",)))
    known = events.is_valid("step_id")
    assert known.tolist() == [False, True, True, True, False]
    assert events.array("step_id")[known].tolist() == [-1, large, large]
    assert profile.columns("memory_snapshots").array("step_id").tolist() == [large, -1]
