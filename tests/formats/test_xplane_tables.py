"""Tables of XSpaces: columns, types, what is absent, what is repeated."""

import gzip
import random

import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA, EndingAt

import peakline
from peakline.deadline import within
from peakline.errors import DeadlineError, UsageError
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane import presence
from peakline.formats.xplane.outline import read_outline
from peakline.formats.xplane.presence import (
    has_memory_events,
    may_hold_programs,
    may_name_memory_events,
    names_in,
)
from peakline.schema import XSpace
from reference.xspace_builder import Ref, SpaceBuilder, Uint

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
        "pool_bytes": None, "capacity_bytes": None,
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


HLO = b"\x0a\x00"


@pytest.fixture
def profile(opened):
    """Two planes: one with stats on its kinds of events and on itself, one with programs."""
    space = SpaceBuilder()
    gpu = space.plane("/device:GPU:0", {"clock_rate": 7, "name": "x", "details": b"\x08\x01"})
    line = gpu.line("stream")
    line.event("kernel", 1, 2, {"correlation_id": 5, "share": 0.5, "hlo_op": Ref("dot")})
    line.event("copy", 3, 4, {"correlation_id": Uint(2**64 - 1), "odd": None})
    line.event("lost", 5, 6, metadata_id=99)
    kind = gpu.message.event_metadata[gpu.event_id("kernel")]
    kind.display_name = "k"
    gpu.add_stats(kind, {"hlo_category": "dot", "flops": 12})
    programs = space.plane("/host:metadata")
    for name in ("jit_f(1)", "jit_g(2)"):
        entry = programs.message.event_metadata[programs.event_id(name)]
        programs.add_stats(entry, {"Hlo Proto": HLO})
    return opened(space)


def test_kinds_of_events_are_numbered_by_plane_and_id(profile):
    assert profile.columns("event_types").to_pylist() == [
        {"type_id": 0, "plane_id": 0, "native_id": 1, "name": "kernel", "display_name": "k"},
        {"type_id": 1, "plane_id": 0, "native_id": 2, "name": "copy", "display_name": ""},
        {"type_id": 2, "plane_id": 1, "native_id": 1, "name": "jit_f(1)", "display_name": ""},
        {"type_id": 3, "plane_id": 1, "native_id": 2, "name": "jit_g(2)", "display_name": ""},
    ]


@each_row("columns", [{"type_id"}, None])
def test_events_name_their_kind(profile, columns):
    events = profile.columns("events", columns)
    assert [row["type_id"] for row in events.to_pylist()] == [0, 1, None]


def test_stats_of_kinds_and_planes(profile):
    assert profile.columns("event_type_stats").to_pylist() == [
        {"type_id": 0, "name": "hlo_category", "value": "dot"},
        {"type_id": 0, "name": "flops", "value": "12"},
        {"type_id": 2, "name": "Hlo Proto", "value": "<2 bytes>"},
        {"type_id": 3, "name": "Hlo Proto", "value": "<2 bytes>"},
    ]
    assert profile.columns("plane_stats").to_pylist() == [
        {"plane_id": 0, "name": "clock_rate", "value": "7"},
        {"plane_id": 0, "name": "name", "value": "x"},
        {"plane_id": 0, "name": "details", "value": "<2 bytes>"},
    ]


def test_entries_of_a_map_in_any_order(tmp_path):
    """Their texts are in the file's order, the rows in that of the ids."""
    entries = []
    for number in (3, 1, 2):
        plane = SpaceBuilder().plane("/device:TPU:0")
        plane.message.id = 0
        entry = plane.message.event_metadata[number]
        plane.add_stats(entry, {"hlo_category": f"kind {number}", "info": bytes([number])})
        entries.append(plane.message.SerializeToString())
    # The parts of a message one after the other are the message. A damaged file is read in place.
    profile = _opened(tmp_path, _field(1, b"".join(entries)) + b"\xff")
    stats = profile.columns("event_type_stats").to_pylist()
    assert [row["value"] for row in stats if row["name"] == "hlo_category"] == [
        "kind 1", "kind 2", "kind 3",
    ]  # fmt: skip
    assert profile.type_bytes("info") == {0: b"\x01", 1: b"\x02", 2: b"\x03"}
    assert profile.type_bytes("hlo_category") == {}


def _opened(folder, content):
    path = folder / "host.xplane.pb"
    path.write_bytes(content)
    return peakline.open(path)


def _field(number, content):
    """A field of bytes, up to 16 KiB of these."""
    size = bytes([len(content) & 127 | 128, len(content) >> 7])
    return bytes([number << 3 | 2]) + size + content


def test_bytes_of_planes_and_programs(profile):
    assert profile.plane_bytes("details") == {0: b"\x08\x01"}
    assert profile.plane_bytes("name") == {}
    assert profile.hlo_modules() == [("jit_f(1)", HLO), ("jit_g(2)", HLO)]


@each_row(
    ("name", "key", "stats", "shown"),
    [
        ("jit_f(7)", 1, {}, "jit_f(7)"),
        ("jit_f", 9, {}, "jit_f(9)"),
        ("jit_f", -1, {}, "jit_f(18446744073709551615)"),
        ("jit_f(7)", 1, {"program_id": 8}, "jit_f(8)"),
        ("jit_f(7)x", 9, {}, "jit_f(7)x(9)"),
    ],
)
def test_a_program_has_a_number(opened, name, key, stats, shown):
    for stat in ("Hlo Proto", "HLO Proto"):
        builder = SpaceBuilder()
        plane = builder.plane("/host:metadata")
        kind = plane.message.event_metadata[key]
        kind.id, kind.name = key, name
        plane.add_stats(kind, {stat: HLO, **stats})
        assert opened(builder).hlo_modules() == [(shown, HLO)]


def test_numbers_are_numbers(profile):
    result = profile.typed_stats({"correlation_id", "share", "hlo_op", "odd", "nothing"})
    none = {"integer": None, "real": None, "text": None}
    assert result.to_pylist() == [
        {**none, "event_id": 0, "name": "correlation_id", "integer": 5},
        {**none, "event_id": 0, "name": "share", "real": 0.5},
        {**none, "event_id": 0, "name": "hlo_op", "text": "dot"},
        {**none, "event_id": 1, "name": "correlation_id", "integer": -1},
        {**none, "event_id": 1, "name": "odd"},
    ]


def test_other_formats_tell_numbers_from_texts_too(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(
        '{"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 1, "name": "a",'
        ' "args": {"correlation": 7, "share": 0.25, "kind": "x", "other": 1}}]}'
    )
    with peakline.open(path) as profile:
        result = profile.typed_stats({"correlation", "share", "kind"})
        values = [(row["integer"], row["real"], row["text"]) for row in result.to_pylist()]
        assert result.names("name").to_list() == ["correlation", "share", "kind"]
        assert values == [(7, None, None), (None, 0.25, None), (None, None, "x")]
        assert profile.hlo_modules() == []
        assert profile.plane_bytes("details") == {}


SAMPLES = sorted((DATA / "sessions").glob("**/*.xplane.pb*"))
JAX = [path for path in SAMPLES if "jax" in str(path)]
MEMORY_OF_XPLANE_PRESENCE = [path for path in SAMPLES if "tf2" in str(path)]


def content_of(path):
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


@pytest.fixture
def asked(tmp_path):
    def ask(content):
        path = tmp_path / "a.xplane.pb"
        path.write_bytes(content)
        return may_name_memory_events(str(path))

    return ask


@each_row("path", JAX)
def test_it_rules_out_what_has_none(path, asked):
    assert not asked(content_of(path))


@each_row("path", MEMORY_OF_XPLANE_PRESENCE)
def test_it_finds_the_names(path, asked):
    assert asked(content_of(path))


@each_row("name", ["MemoryAllocation", "MemoryDeallocation"])
def test_one_name_alone_is_found_in_any_plane_behind_any_number_of_lines(name, asked):
    space = XSpace()
    space.planes.add(name="/host:metadata").event_metadata[1].name = "a"
    plane = space.planes.add(name="/host:CPU", id=3)
    for _ in range(3):
        plane.lines.add(name="x" * 100_000).events.add(metadata_id=7)
    assert not asked(space.SerializeToString())
    plane.event_metadata[7].name = name
    assert asked(space.SerializeToString())


def test_a_name_across_two_blocks_is_found(asked, monkeypatch):
    space = XSpace()
    plane = space.planes.add(name="/host:CPU")
    plane.event_metadata[1].name = "x" * 200
    plane.event_metadata[2].name = "MemoryDeallocation"
    monkeypatch.setattr(presence, "_HEAD", 64)
    for size in range(18, 120):
        monkeypatch.setattr(presence, "_BLOCK", size)
        assert asked(space.SerializeToString())


@pytest.mark.parametrize("block", [8, 17, 1 << 16])
def test_of_several_names_those_that_stand_there_are_found(tmp_path, monkeypatch, block):
    monkeypatch.setattr(presence, "_HEAD", 64)
    monkeypatch.setattr(presence, "_BLOCK", block)
    space = XSpace()
    space.planes.add(name="/host:CPU").event_metadata[1].name = "a ProcessBatch"
    other = space.planes.add(name="/device:TPU:0")
    other.lines.add(name="inline")
    other.stat_metadata[1].name = "graph"
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space.SerializeToString())
    names = {b"Process", b"graph", b"inline", b"nowhere"}
    assert names_in(str(path), names) == {b"Process", b"graph"}
    assert len(names_in(str(path), names, first=True)) == 1
    path.write_bytes(b"text")
    assert names_in(str(path), names) == names


def test_lines_are_not_searched(asked):
    space = XSpace()
    plane = space.planes.add(name="/host:CPU")
    plane.lines.add(name="MemoryAllocation")
    plane.event_metadata[1].name = "a"
    assert not asked(space.SerializeToString())


@each_row(
    "content", [b"", b"\n", b"\n\xff", gzip.compress(b"a"), b"\n\x10\x12\x09/host:CPU", b"text"]
)
def test_of_what_is_no_whole_xspace_it_knows_nothing(content, asked):
    assert asked(content)


def test_of_what_cannot_be_read_it_knows_nothing(tmp_path):
    assert may_name_memory_events(str(tmp_path / "none"))
    assert may_name_memory_events(str(tmp_path))
    assert may_name_memory_events("memory://bucket/a.xplane.pb")


def test_it_ends_at_the_deadline(asked):
    with within(EndingAt(1)), pytest.raises(DeadlineError):
        asked(content_of(JAX[0]))


def test_damage_never_makes_it_overlook_memory(asked, tmp_path):
    path = tmp_path / "host.xplane.pb"
    whole = content_of(next(path for path in MEMORY_OF_XPLANE_PRESENCE if path.suffix == ".pb"))
    rng = random.Random(1)
    yes = 0
    for _ in range(60):
        content = bytearray(whole[: rng.randrange(1000, len(whole))])
        if rng.random() < 0.7:
            content = bytearray(whole)
        for _ in range(rng.choice((0, 1, 20))):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(content)
        file = SourceFile(str(path))
        if has_memory_events(file, read_outline(file)):
            yes += 1
            assert asked(content)
    assert yes > 10


def test_a_file_without_their_plane_holds_no_programs(tmp_path):
    space = XSpace()
    space.planes.add(name="/host:CPU", id=3).lines.add(name="x" * 100_000)
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space.SerializeToString())
    assert not may_hold_programs(str(path))
    space.planes.add(name="/host:metadata")
    path.write_bytes(space.SerializeToString())
    assert may_hold_programs(str(path))
    assert may_hold_programs(str(tmp_path / "none"))


def of_events(profile):
    """The step of every event, in file order."""
    return [row["step_id"] for row in profile.columns("events").to_pylist()]


def repeated(profile):
    """How many ids the profile says repeat."""
    return [warning.count for warning in profile.warnings if warning.kind == "repeated_ids"]


def step(line, at, length=50, **stats):
    """A marked step, and within it an event that produces context 7."""
    line.event("train", at, length, {"_r": 1, "step_num": 0, **stats})
    line.event("Schedule", at + 5, 1, {"_pt": 1, "_p": 7})


def work(line, at):
    """An event that consumes context 7, and what runs within it."""
    line.event("Closure", at, 10, {"_ct": 1, "_c": 7})
    line.event("op:MatMul", at + 1, 5)


def repeat(parts):
    """So many parts, one after the other, of a step whose work another thread takes up."""
    builder = SpaceBuilder()
    plane = builder.host()
    main, worker = plane.line("main"), plane.line("worker")
    for part in range(parts):
        step(main, 100 * part)
        work(worker, 100 * part + 20)
        # Later than the step's own end.
        work(worker, 100 * part + 80)
    return builder


@pytest.mark.parametrize("parts", [2, 3, 100])
def test_what_takes_up_work_belongs_to_the_part_that_it_comes_from(opened, parts):
    """Also where upstream gives up: from 64 producers and consumers of one context on."""
    profile = opened(repeat(parts))
    own = [part for part in range(parts) for _ in range(4)]
    assert of_events(profile) == [own[2 * k] for k in range(2 * parts)] + own
    assert repeated(profile) == [1]
    theirs = 0 if parts < 64 else None
    assert of_events(profile.with_runtime_steps())[2 * parts :] == [theirs] * 4 * parts


def test_steps_alone_are_the_same_and_say_it_too(opened):
    whole, alone = opened(repeat(3)), opened(repeat(3))
    whole.columns("events")
    assert alone.columns("steps").to_pylist() == whole.columns("steps").to_pylist()
    assert repeated(alone) == repeated(whole) == [1]


def test_one_part_repeats_nothing(opened):
    profile = opened(repeat(1))
    assert of_events(profile) == [0] * 6
    assert not profile.warnings


def test_a_step_that_produces_twice_repeats_nothing(opened):
    builder = SpaceBuilder()
    plane = builder.host()
    main, worker = plane.line("main"), plane.line("worker")
    step(main, 0)
    main.event("Schedule", 8, 1, {"_pt": 1, "_p": 7})
    work(worker, 20)
    profile = opened(builder)
    assert of_events(profile) == [0] * 5
    assert not profile.warnings


def test_a_batch_takes_up_what_several_requests_put_into_it(opened):
    builder = SpaceBuilder()
    plane = builder.host()
    requests, batches = plane.line("requests"), plane.line("batches")
    for at in (0, 100):
        requests.event("BatchingSessionRun", at, 50)
        requests.event("Schedule", at + 5, 1, {"_pt": 10, "_p": 7})
    batches.event("ProcessBatch", 120, 10, {"_ct": 10, "_c": 7})
    profile = opened(builder)
    assert of_events(profile) == of_events(profile.with_runtime_steps())
    assert not profile.warnings


def test_work_before_all_that_produces_it_is_no_step_s(opened):
    builder = SpaceBuilder()
    plane = builder.host()
    main, worker = plane.line("main"), plane.line("worker")
    for at in (100, 200):
        step(main, at)
    work(worker, 50)
    work(worker, 220)
    assert of_events(opened(builder)) == [0, 0, 1, 1, None, None, 1, 1]


def test_work_of_steps_that_run_at_once_is_no_step_s(opened):
    builder = SpaceBuilder()
    plane = builder.host()
    step(plane.line("first"), 0)
    step(plane.line("second"), 20)
    work(plane.line("worker"), 60)
    profile = opened(builder)
    assert of_events(profile) == [0, 0, 1, 1, None, None]
    assert repeated(profile) == [1]


def test_threads_of_one_step_that_run_at_once_leave_nothing_open(opened):
    """Both produce the context, and both belong to the step of their part."""
    builder = SpaceBuilder()
    main, first, second, worker = map(builder.host().line, ("main", "first", "second", "worker"))
    for part in range(2):
        at = 100 * part
        main.event("train", at, 90, {"_r": 1, "step_num": 0})
        for thread, (line, later) in enumerate(((first, 10), (second, 12))):
            main.event("Schedule", at + 2 + thread, 1, {"_pt": 1, "_p": 2 * part + thread})
            line.event("Closure", at + later, 30, {"_ct": 1, "_c": 2 * part + thread})
            line.event("Schedule", at + later + 5, 1, {"_pt": 1, "_p": 7})
        work(worker, at + 60)
    profile = opened(builder)
    assert of_events(profile) == [0, 0, 0, 1, 1, 1] + [0, 0, 1, 1] * 3
    assert repeated(profile) == [1]


def test_processes_that_were_merged_are_apart(opened):
    """Both number their contexts from one on, at the same time."""
    builder = SpaceBuilder()
    for late in (0, 3):
        plane = builder.host()
        step(plane.line("main"), late)
        work(plane.line("worker"), 20 + late)
    profile = opened(builder)
    assert of_events(profile) == [0] * 4 + [1] * 4
    assert repeated(profile) == [1]


def test_a_kernel_belongs_to_the_launch_before_it(opened):
    builder = SpaceBuilder()
    host, device = builder.host().line("main"), builder.plane("/device:GPU:0").line("Stream #1")
    for at in (0, 100):
        host.event("train", at, 50, {"_r": 1, "step_num": 0})
        host.event("cuLaunchKernel", at + 5, 2, {"correlation_id": 4})
        device.event("gemm", at + 60, 10, {"correlation_id": 4})
    profile = opened(builder)
    assert of_events(profile) == [0, 0, 1, 1, 0, 1]
    assert repeated(profile) == [1]
    assert of_events(profile.with_runtime_steps())[4:] == [1, 1]


def test_events_out_of_order_are_joined_by_their_times(opened):
    builder = SpaceBuilder()
    plane = builder.host()
    main, worker = plane.line("main"), plane.line("worker")
    for at in (100, 0):
        step(main, at)
        main.event("ThreadpoolListener::StartRegion", at + 10, 0, {"_ct": 1, "_c": 9})
        main.event("ThreadpoolListener::StopRegion", at + 40, 0, {"_ct": 1, "_c": 9})
        work(worker, at + 20)
    assert of_events(opened(builder)) == [1] * 4 + [0] * 4 + [1, 1, 0, 0]


def test_a_kernel_of_annotated_steps_belongs_to_the_launch_before_it(opened):
    builder = SpaceBuilder()
    host, device = builder.host().line("main"), builder.plane("/device:GPU:0").line("Stream #1")
    for at in (0, 100, 200):
        host.event("train_step", at, 90)
        host.event("PjitFunction(step)", at + 2, 20)
        host.event("cuLaunchKernel", at + 5, 2, {"correlation_id": 4})
        device.event("gemm", at + 60, 10, {"correlation_id": 4})
    assert of_events(opened(builder)) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 1, 2]
