"""Kinds of events, their stats and those of planes; stats as numbers; compiled programs."""

import pytest
from tests.each_row import each_row
from tests.reference.xspace_builder import Ref, SpaceBuilder, Uint

import peakline

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
    found = profile.typed_stats({"correlation_id", "share", "hlo_op", "odd", "nothing"})
    none = {"integer": None, "real": None, "text": None}
    assert found.to_pylist() == [
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
        found = profile.typed_stats({"correlation", "share", "kind"})
        values = [(row["integer"], row["real"], row["text"]) for row in found.to_pylist()]
        assert found.names("name").to_list() == ["correlation", "share", "kind"]
        assert values == [(7, None, None), (None, 0.25, None), (None, None, "x")]
        assert profile.hlo_modules() == []
        assert profile.plane_bytes("details") == {}
