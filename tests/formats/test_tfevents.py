"""Events files: records and their checksums, runs by tag, graphs."""

import gzip
import struct
from random import Random

import numpy as np
import pytest
from tests.each_row import each_row
from tests.formats.step_stats_reference import (
    add_device,
    add_memory,
    add_node,
    add_output,
    open_run,
    run_metadata,
)
from tests.tables.fake import FakeReader
from tests.wire.wirebytes import len_field

import peakline
from peakline import schema
from peakline.errors import DamagedError
from peakline.formats import open_reader
from peakline.formats.common.files import SourceFile
from peakline.formats.tfevents.reader import TABLES, EventsFileReader, read_events
from peakline.kernels.tfrecord import checksums, walk_records
from peakline.tables import Profile
from peakline.wire import as_buffer
from reference.xspace_builder import SpaceBuilder


def crc32c(data: bytes) -> int:
    """RFC 3720's checksum, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return length + masked(length) + content + masked(content)


def event(**what) -> bytes:
    return record(
        schema.message("tensorflow.Event")(**{"wall_time": 1.5, **what}).SerializeToString()
    )


def tagged(tag: str, run) -> bytes:
    content = run if isinstance(run, bytes) else run.SerializeToString()
    return event(tagged_run_metadata={"tag": tag, "run_metadata": content})


def exported(tag: str, run, plugin: str = "graph_run_metadata") -> bytes:
    """As ``tf.summary.trace_export`` writes it."""
    return event(summary={"value": [value_of(tag, run, plugin)]}, step=7)


def value_of(tag, run, plugin="graph_run_metadata_graph"):
    about = {"plugin_data": {"plugin_name": plugin}}
    return {
        "tag": tag, "metadata": about,
        "tensor": {"dtype": 7, "string_val": [run.SerializeToString(), b"no run"]},
    }  # fmt: skip


VERSION = event(file_version="brain.Event:2")


@pytest.fixture
def read(tmp_path):
    def open_events(data: bytes) -> Profile:
        path = tmp_path / "events.out.tfevents.1.host"
        path.write_bytes(data)
        return Profile(EventsFileReader(SourceFile(str(path))))

    return open_events


@pytest.fixture
def run():
    """One execution that allocates 64 bytes, whose buffer is number 5, and a graph."""
    message = run_metadata()
    node = add_node(add_device(message), "a")
    add_memory(node, [(1, 64), (5, -64)])
    add_output(node, 64, 5)
    message.partition_graphs.add().node.add(name="a", op="Mul")
    return message


def kinds(profile):
    return {warning.kind: warning.count for warning in profile.warnings}


def test_the_checksum_of_the_known_example():
    """RFC 3720, appendix B.4: 32 bytes of zeros."""
    assert crc32c(bytes(32)) == 0x8A9136AA


def test_checksums_are_those_of_the_definition():
    rng = Random(3)
    contents = [rng.randbytes(size) for size in (*range(18), 64)]
    data = b"".join(record(content) for content in contents)
    result = read_events(as_buffer(data))
    assert (result.records, result.bad_checksums, result.missing_bytes) == (len(contents), 0, 0)
    starts = np.cumsum([0, *(len(c) + 16 for c in contents[:-1])]) + 12
    lengths = np.array([len(c) for c in contents])
    good = np.zeros(len(contents), np.bool_)
    checksums(as_buffer(data), TABLES, starts, lengths, good)
    assert good.all()


@each_row("level", [0, 1, 2])
@each_row("more", [len_field(16, b"x"), len_field(5000, bytes(128)), b"\x80\x01\x05"])
def test_a_run_stands_behind_fields_that_are_new(read, run, level, more):
    """Numbers from 16 on take more than one byte, on every level down to the value."""
    value = schema.message("tensorflow.Summary.Value")(**value_of("step0", run))
    parts = [more if n == level else b"" for n in range(3)]
    summary = parts[1] + len_field(1, parts[2] + value.SerializeToString())
    profile = read(VERSION + record(parts[0] + len_field(5, summary)))
    assert profile.columns("op_runs").rows == 1
    assert not kinds(profile)


@each_row("level", [0, 1, 2])
@each_row("broken", [b"\xff" * 11, b"\x0f", b"\x0a\xff\xff\x7f", b"\x09\x01", b"\xf8"])
def test_an_event_that_is_broken_is_said_to_be(read, run, level, broken):
    parts = [broken if n == level else b"" for n in range(3)]
    summary = len_field(1, len_field(1, b"tag") + parts[2]) + parts[1]
    profile = read(VERSION + tagged("step0", run) + record(len_field(5, summary) + parts[0]))
    assert profile.columns("op_runs").rows == 1
    assert kinds(profile) == {"damaged": 1}


def test_runs_are_named_by_their_tags(read, run):
    profile = read(VERSION + tagged("step0", run) + event(step=3) + tagged("", run))
    steps = profile.columns("steps").to_pylist()
    assert [(row["step_id"], row["name"]) for row in steps] == [(0, "step0"), (1, "run 1")]
    assert profile.columns("op_runs").array("step_id").tolist() == [0, 1]
    assert profile.columns("op_runs").array("op_run_id").tolist() == [0, 1]
    assert profile.columns("op_runs").array("device_entry").tolist() == [0, 1]
    assert profile.columns("op_outputs").array("op_run_id").tolist() == [0, 1]


def test_runs_that_were_exported_stand_among_the_others(read, run):
    scalar = {"tag": "loss", "simple_value": 1.0}
    of_another = value_of("text", run, "graph_run_metadata_of_another")
    several = [scalar, value_of("three", run), of_another, value_of("four", run), {"tag": "graph"}]
    profile = read(
        VERSION
        + exported("one", run)
        + tagged("two", run)
        + event(summary={"value": several}, step=9)
        + event(summary={"value": [of_another, scalar]})
        + exported("empty", run).replace(b"empty", b"wrong")
    )
    rows = profile.columns("traced_runs").to_pylist()
    assert [(row["name"], row["event_step"]) for row in rows] == [
        ("one", 7), ("two", 0), ("three", 9), ("four", 9),
    ]  # fmt: skip
    assert profile.columns("op_runs").array("step_id").tolist() == [0, 1, 2, 3]
    assert profile.columns("graphs").rows == 4
    assert [w.kind for w in profile.warnings] == ["bad_checksum"]


@each_row(
    ("value", "found"),
    [
        ({"metadata": {"plugin_data": {"plugin_name": "graph_run_metadata"}}}, 1),
        ({"metadata": {"plugin_data": {"plugin_name": "scalars"}}, "tag": "graph_run_metadata"}, 0),
        ({"tensor": {"dtype": 7, "string_val": [b"graph_run_metadata"]}}, 0),
        ({"image": {"encoded_image_string": b"J\x12graph_run_metadata"}}, 0),
    ],
)
def test_of_other_summaries_nothing_but_what_they_are_is_read(value, found):
    """An events file may have gigabytes of images."""
    scalar = {"tag": "loss", "simple_value": 1.0}
    data = as_buffer(VERSION + event(summary={"value": [scalar, value]}))
    starts, lengths = np.empty(2, np.int64), np.empty(2, np.int64)
    assert walk_records(data, TABLES, starts, lengths)[:2] == (2, found)


def test_a_summary_that_is_no_message_is_passed_over(read):
    for inside in (b"\x0a\x7f", b"\x0a\x03\x4a\x7f\x00", b"\xff" * 12, b"\x0b"):
        assert read(VERSION + record(b"\x2a" + bytes([len(inside)]) + inside)).warnings == []


def test_an_exported_run_without_content_is_none(read):
    value = {"tag": "a", "metadata": {"plugin_data": {"plugin_name": "graph_run_metadata"}}}
    profile = read(VERSION + event(summary={"value": [value, {**value, "tensor": {"dtype": 7}}]}))
    assert profile.columns("traced_runs").rows == 0


def test_one_run_gives_the_tables_of_its_own_file(read, run, tmp_path):
    alone, among = open_run(tmp_path, run), read(VERSION + tagged("run 0", run))
    assert set(alone.tables) == set(among.tables)
    for table in set(alone.tables) - {"traced_runs"}:
        assert among.columns(table).to_pylist() == alone.columns(table).to_pylist()


def test_a_run_keeps_the_time_and_step_of_its_event(read, run):
    data = event(
        wall_time=12.5,
        step=340,
        tagged_run_metadata={"tag": "s", "run_metadata": run.SerializeToString()},
    )
    row = read(VERSION + data).columns("traced_runs").to_pylist()[0]
    assert (row["name"], row["wall_time_s"], row["event_step"]) == ("s", 12.5, 340)


def test_graphs_are_named_by_kind_and_place(read, run):
    graph = schema.GraphDef()
    graph.node.add(name="g", op="NoOp")
    meta = schema.message("tensorflow.MetaGraphDef")(graph_def=graph)
    meta.meta_info_def.tags.extend(["serve", "gpu"])
    data = [
        event(graph_def=graph.SerializeToString()),
        event(meta_graph_def=meta.SerializeToString()),
        event(graph_def=graph.SerializeToString()),
        tagged("first", run),
        tagged("second", run),
    ]
    result = read(b"".join(data)).columns("graphs").to_pylist()
    assert [(row["graph"], row["kind"], row["tags"]) for row in result] == [
        ("graph_def 0", "graph_def", ""),
        ("graph_def 1", "graph_def", ""),
        ("meta_graph 0", "meta_graph", "serve,gpu"),
        ("first partition 0", "partition", ""),
        ("second partition 0", "partition", ""),
    ]


def test_the_only_graph_needs_no_name(read):
    graph = schema.GraphDef()
    graph.node.add(name="g", op="NoOp")
    profile = read(VERSION + event(graph_def=graph.SerializeToString()))
    assert profile.columns("nodes").to_pylist()[0]["graph"] == ""
    assert "op_runs" not in profile.tables


def test_a_file_of_summaries_alone_has_no_runs(read):
    profile = read(VERSION + event(summary={"value": [{"tag": "loss", "simple_value": 1.0}]}))
    assert set(profile.tables) == {"steps", "traced_runs", "warnings"}
    assert profile.columns("steps").rows == profile.columns("traced_runs").rows == 0
    assert profile.duration_ps == 0


def test_the_file_is_known_by_its_content(run, tmp_path):
    path = tmp_path / "anything.gz"
    path.write_bytes(gzip.compress(VERSION + tagged("step0", run)))
    assert open_reader(str(path)).format == "tfevents"


# Damage.


def test_a_run_with_a_wrong_checksum_is_left_out(read, run):
    broken = bytearray(tagged("step0", run))
    broken[-20] ^= 1
    profile = read(VERSION + bytes(broken) + tagged("step1", run))
    assert profile.columns("steps").names("name").to_list() == ["step1"]
    assert kinds(profile) == {"bad_checksum": 1}
    assert f"offset {len(VERSION)}" in profile.warnings[0].detail


def test_a_summary_with_a_wrong_checksum_does_not_matter(read, run):
    broken = bytearray(event(step=5))
    broken[-1] ^= 1
    profile = read(bytes(broken) + tagged("step0", run))
    assert profile.columns("steps").rows == 1
    assert kinds(profile) == {}


@each_row("junk", [b"", b"x", bytes(50), b"\xff" * 11])
def test_after_a_broken_length_the_next_record_is_found(read, run, junk):
    broken = bytearray(VERSION)
    broken[0] ^= 1
    profile = read(tagged("step0", run) + bytes(broken) + junk + tagged("step1", run))
    assert profile.columns("steps").names("name").to_list() == ["step0", "step1"]
    assert kinds(profile) == {"bad_checksum": 1}


def test_a_cut_last_record_is_told(read, run):
    whole = VERSION + tagged("step0", run)
    data = whole + tagged("step1", run)
    for cut in range(len(whole) + 1, len(data)):
        profile = read(data[:cut])
        assert profile.columns("steps").names("name").to_list() == ["step0"]
        assert kinds(profile) == {"truncated": 1}
        if cut >= len(whole) + 16:
            assert f"{len(data) - cut} bytes before" in profile.warnings[0].detail


def test_a_length_beyond_all_bounds_is_a_cut(read, run):
    length = struct.pack("<Q", 2**64 - 1)
    profile = read(tagged("step0", run) + length + masked(length) + b"abcdefgh")
    assert profile.columns("steps").rows == 1
    assert kinds(profile) == {"truncated": 1}


def test_nothing_but_broken_records(read):
    with pytest.raises(DamagedError, match="no whole record"):
        read(VERSION[:-1])


def test_a_run_that_is_no_message_is_damage(read, run):
    profile = read(tagged("bad", b"\x0a\xff\xff\x03abc") + tagged("good", run))
    assert profile.columns("op_runs").names("name").to_list() == ["a"]
    assert profile.columns("op_runs").array("step_id").tolist() == [1]
    assert kinds(profile) == {"damaged": 1}


def test_no_damage_stops_the_reading(read, run):
    rng = Random(9)
    whole = VERSION + tagged("step0", run) + tagged("step1", run)
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 2, 5))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        del data[rng.randrange(len(data) + 200) :]
        try:
            profile = read(bytes(data))
        except DamagedError:
            continue
        for table in profile.tables:
            profile.columns(table)
        assert data == whole or profile.warnings


def whole(profile, rows):
    stats = profile.columns("event_stats")
    return stats.take(np.flatnonzero(np.isin(stats.array("event_id"), rows))).to_pylist()


def many_events(lines, events):
    builder = SpaceBuilder()
    for name in ("/host:CPU", "/device:GPU:0"):
        plane = builder.plane(name)
        for number in range(lines):
            line = plane.line(f"line {number}", timestamp_ns=number)
            for event in range(events):
                line.event("e", event, 1, {"at": event, "line": f"{name} {number}"})
    return builder.space


def test_stats_of_events_in_any_block(opened):
    with opened(many_events(3, 700)) as profile:
        rows = np.array([0, 1, 255, 256, 257, 699, 700, 1399, 1400, 2099, 2100, 4199])
        result = profile.stats_of(rows)
        assert result.to_pylist() == whole(profile, rows)
        assert sorted(set(result.array("event_id").tolist())) == rows.tolist()


def test_order_and_repetition_do_not_matter(opened):
    with opened(many_events(1, 5)) as profile:
        result = profile.stats_of(np.array([3, 1, 3, 99, -1]))
        assert result.array("event_id").tolist() == [1, 1, 3, 3]


def test_no_events(opened):
    with opened(SpaceBuilder().space.SerializeToString() or b"\x22\x01h") as profile:
        assert profile.stats_of(np.array([0, 1])).rows == 0


def test_a_cut_file_has_the_stats_of_what_is_whole(opened):
    content = many_events(2, 400).SerializeToString()
    with opened(content[: len(content) // 3]) as profile:
        rows = np.arange(profile.columns("event_stats").array("event_id").max() + 5)
        assert profile.stats_of(rows).to_pylist() == whole(profile, rows)


def test_recorded_sessions(sessions):
    for path in sorted(sessions.rglob("*.xplane.pb*")):
        with peakline.open(path) as profile:
            rows = np.arange(0, profile.columns("events").rows, 7)
            assert profile.stats_of(rows).to_pylist() == whole(profile, rows), path


def test_other_formats_look_into_the_table():
    rows = [{"event_id": 2, "name": "a", "value": "1"}, {"event_id": 0, "name": "b", "value": "2"}]
    result = Profile(FakeReader({"event_stats": rows})).stats_of(np.array([2, 0, 1]))
    assert result.array("event_id").tolist() == [0, 2]
    assert result.names("value").to_list() == ["2", "1"]
    assert Profile(FakeReader({})).stats_of(np.array([0])).rows == 0
