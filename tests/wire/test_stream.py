"""Decoding in pieces: the same rows, however the bytes are cut."""

import threading

import numpy as np
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from tests.each_row import each_row
from tests.wire.parts import decode_module, joined, uninitialised_memory_shows
from tests.wire.reference import Projection
from tests.wire.wirebytes import len_field, tag, varint, varint_field
from tests.wire.zoo import ZOO

from peakline import schema
from peakline.wire import Damage, Plan, Spans, as_buffer, decode, stream, threads

_SPACE = schema.descriptor("tensorflow.profiler.XSpace")
_PATHS = ("hostnames", "planes.name", "planes.lines.id", "planes.lines.events.metadata_id",
          "planes.lines.events.stats.value")  # fmt: skip
_CONTAINERS = ("", "planes", "planes.lines")


def number(name: str) -> int:
    return ZOO.fields_by_name[name].number


def _space() -> bytes:
    stat = len_field(4, varint_field(1, 1) + varint_field(3, 2**40))
    line = len_field(3, len_field(4, varint_field(1, 7) + stat * 2) * 5 + varint_field(1, 3))
    plane = len_field(1, line * 2 + len_field(2, b"name") + line)
    return plane + len_field(4, b"host") + len_field(1, b"") + plane


@each_row("piece_bytes", [1, 2, 5, 17, 64, 100, 1 << 20])
def test_a_stream_gives_what_decode_gives(piece_bytes):
    data = as_buffer(_space())
    plan, projection = Plan(_SPACE, _PATHS, containers=_CONTAINERS), Projection(_SPACE, _PATHS)
    whole = decode(data, plan)
    tables, damage = joined(data, plan, projection, _CONTAINERS, piece_bytes)
    assert projection.observed(tables, data) == projection.observed(whole.tables, data)
    assert tables["planes.lines.events"].rows == 30
    assert not damage


def test_rows_of_atoms_count_from_zero_in_every_part():
    plan = Plan(_SPACE, _PATHS, containers=_CONTAINERS)
    positions, lines = [], []
    for part in stream(as_buffer(_space()), plan, piece_bytes=20):
        events, stats = part.tables["planes.lines.events"], part.tables["planes.lines.events.stats"]
        assert stats.parent.tolist() == [row for row in range(events.rows) for _ in range(2)]
        lines += events.parent.tolist()
        positions.append(part.position)
    assert lines == [line for line in range(6) for _ in range(5)]
    assert len(positions) > 5
    assert positions == sorted(positions)
    assert positions[-1] == len(_space())


def test_the_last_part_has_every_container_and_no_atom():
    data = as_buffer(_space())
    *_, last = stream(data, Plan(_SPACE, _PATHS, containers=_CONTAINERS), piece_bytes=10)
    assert last.tables["planes.lines.events"].rows == 0
    assert last.tables["planes"].spans("name").texts(data) == ["name", "", "name"]
    assert last.tables["planes.lines"].array("id").tolist() == [3] * 6
    assert last.tables["hostnames"].rows == 1
    assert last.tables[""].rows == 1


def test_what_is_lost_adds_up_over_the_parts():
    bad = len_field(4, b"\x00")
    line = len_field(3, (len_field(4, varint_field(1, 7)) + bad) * 20 + tag(3, 3))
    data = as_buffer(len_field(1, line * 3) + tag(1, 2) + varint(len(line)) + line[:-10])
    plan = Plan(_SPACE, _PATHS, containers=_CONTAINERS)
    whole = decode(data, plan).damage
    assert whole.places > 60
    assert whole.groups == 3
    assert whole.missing_bytes == 10
    for piece_bytes in (1, 30, 100):
        parts = [part.damage for part in stream(data, plan, piece_bytes=piece_bytes)]
        assert sum(parts, Damage()) == whole


@each_row("piece_bytes", [1, 7, 40])
def test_spans_are_streamed_in_their_order(piece_bytes):
    data = _space()
    buffer = as_buffer(data)
    lines = decode(buffer, Plan(_SPACE, ["planes.lines"], containers=("", "planes")))
    spans = lines["planes.lines"].spans("value")
    backwards = spans.take(np.arange(len(spans))[::-1])
    mixed = Spans(np.insert(backwards.start, 2, [0, 5]), np.insert(backwards.length, 2, [0, 0]))
    line = schema.descriptor("tensorflow.profiler.XLine")
    paths = ("id", "events.metadata_id", "events.stats.int64_value")
    plan, projection = Plan(line, paths), Projection(line, paths)
    pairs = list(zip(mixed.start.tolist(), mixed.length.tolist(), strict=True))
    expected = projection.expected(data, pairs)
    tables, _ = joined(buffer, plan, projection, ("",), piece_bytes, mixed)
    assert projection.observed(tables, buffer) == expected
    assert projection.observed(decode(buffer, plan, mixed).tables, buffer) == expected


def test_no_spans_give_one_empty_part():
    none = Spans(np.zeros(0, np.int64), np.zeros(0, np.int64))
    parts = list(stream(as_buffer(_space()), Plan(_SPACE, _PATHS), none))
    assert [part.tables[""].rows for part in parts] == [0]


def test_rows_of_open_containers_do_not_hide_what_hangs_on_them():
    """Their cells are not written yet; nothing may be concluded from what memory holds."""
    paths = ("leaf.id", "tree.leaf.id", "tree.kids.id")
    kids = len_field(4, varint_field(1, 2)) * 10
    data = len_field(number("tree"), kids) + len_field(number("leaf"), b"")
    plan, projection = Plan(ZOO, paths), Projection(ZOO, paths)
    with uninitialised_memory_shows():
        tables, _ = joined(as_buffer(data), plan, projection, ("",), 1)
        assert tables["tree.kids"].array("id").tolist() == [1] * 10
        whole = decode(as_buffer(data), plan)
    assert whole["tree.kids"].array("id").dtype == np.int32


def test_what_hung_on_a_replaced_message_of_a_container_is_told_apart():
    """Its rows were handed out before; its own row says so at the end, and no row is renumbered."""
    tree, leaf = number("pick_tree"), number("pick_leaf")
    kid = len_field(4, varint_field(1, 2))
    data = len_field(tree, kid) + len_field(leaf, b"") + len_field(tree, kid + kid)
    plan = Plan(ZOO, ("pick_tree.kids.id", "pick_leaf.id"))
    assert decode(as_buffer(data), plan)["pick_tree.kids"].parent.tolist() == [0, 0]
    parents: list[int] = []
    for part in stream(as_buffer(data), plan, piece_bytes=1):
        parents += part.tables["pick_tree.kids"].parent.tolist()
    assert parents == [0, 1, 1]
    assert part.tables["pick_tree"].parent.tolist() == [-1, 0]


def test_growing_containers_lose_nothing():
    names = [str(n).encode() for n in range(2000)]
    data = b"".join(len_field(1, len_field(2, name) + varint_field(1, 5)) for name in names)
    plan = Plan(_SPACE, ["planes.name", "planes.id", "hostnames"], containers=("", "planes"))
    decoded = decode(as_buffer(data), plan)
    assert decoded["planes"].spans("name").texts(as_buffer(data)) == [n.decode() for n in names]
    *_, last = stream(as_buffer(data), plan, piece_bytes=16)
    assert last.tables["planes"].array("id").tolist() == [5] * 2000


def test_many_threads_may_decode_at_once(monkeypatch):
    monkeypatch.setattr(decode_module, "PIECE_BYTES", 64)
    data = as_buffer(_space() * 20)
    plan = Plan(_SPACE, _PATHS, containers=_CONTAINERS)
    result: list[list[int]] = []

    def work() -> None:
        for _ in range(5):
            events = decode(data, plan)["planes.lines.events"]
            result.append([events.rows, int(events.array("metadata_id").sum())])

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert result == [[600, 4200]] * 20
    assert threads() >= 1


@each_row("count", [1, 255, 256, 257, 300])
def test_positions_of_a_filter_fit_their_column(count):
    ids = list(range(7, 7 + count))
    data = b"".join(len_field(number("leaves"), varint_field(1, n)) for n in ids)
    plan = Plan(ZOO, ["leaves.id"], keep={"leaves.id": ids})
    first, *_ = stream(as_buffer(data), plan)
    assert first.tables["leaves"].array("id").tolist() == list(range(count))
    assert decode(as_buffer(data), plan)["leaves"].array("id").tolist() == list(range(count))


@each_row("many", [200, 300, 70000])
def test_a_oneof_may_have_large_field_numbers(many):
    file = FileDescriptorProto(name="large.proto", package="large", syntax="proto3")
    message = file.message_type.add(name="Large")
    message.oneof_decl.add(name="pick")
    for name, field in (("low", 1), ("high", many)):
        made = message.field.add(name=name, number=field, type=3, label=1)
        made.oneof_index = 0
    message.field.add(name="sub", number=2, type=11, label=3, type_name=".large.Large")
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    descriptor = pool.FindMessageTypeByName("large.Large")
    if many > 65535:
        with pytest.raises(ValueError, match="65535"):
            Plan(descriptor, ["sub.pick"])
        return
    data = as_buffer(
        len_field(2, varint_field(1, 5) + varint_field(many, 6)) + varint_field(many, 8)
    )
    plan = Plan(descriptor, ["sub.pick", "pick"])
    first, *_, last = stream(data, plan)
    for sub, root in (
        (first.tables["sub"].union("pick"), last.tables[""].union("pick")),
        (decode(data, plan)["sub"].union("pick"), decode(data, plan)[""].union("pick")),
    ):
        assert (sub.case.tolist(), sub.bits.tolist()) == ([many], [6])
        assert (root.case.tolist(), root.bits.tolist()) == ([many], [8])
