"""Offsets and lengths beyond 4 GiB, in sparse files that take next to no room."""

import mmap
import os
from pathlib import Path

import numpy as np
import pytest
from tests.wire.wirebytes import len_field, tag, varint, varint_field

from peakline import schema
from peakline.wire import Buffer, Plan, Spans, as_buffer, decode, stream

_SPACE = schema.descriptor("tensorflow.profiler.XSpace")
_SIZE = 5 << 30
_EVENTS = ("planes.name", "planes.lines.events.metadata_id")
_CONTAINERS = ("", "planes", "planes.lines")


@pytest.fixture
def sparse(tmp_path):
    """Maps a file of some bytes, 5 GiB of zeros that are not stored, and some bytes."""

    def make(head: bytes, tail: bytes) -> Buffer:
        path = tmp_path / "large"
        path.write_bytes(head)
        return _mapped(path, len(head) + _SIZE, tail)

    return make


def _mapped(path: Path, size: int, tail: bytes) -> Buffer:
    try:
        os.truncate(path, size)
    except OSError as error:
        pytest.skip(f"no large files here: {error}")
    if path.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("this file system stores the zeros of a sparse file")
    with path.open("r+b") as file:
        file.seek(size)
        file.write(tail)
    with path.open("rb") as file:
        return as_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _plane(name: bytes) -> bytes:
    return len_field(1, len_field(3, len_field(4, varint_field(1, 7)) * 5) + len_field(2, name))


def test_offsets_beyond_4_gib(sparse):
    head = tag(15, 2) + varint(_SIZE)
    buffer = sparse(head, _plane(b"one") + _plane(b"two"))
    plan = Plan(_SPACE, _EVENTS, containers=_CONTAINERS)
    whole = decode(buffer, plan)
    assert not whole.damage
    assert whole["planes.lines.events"].array("metadata_id").tolist() == [7] * 10
    names = whole["planes"].spans("name")
    assert names.texts(buffer) == ["one", "two"]
    assert names.start.dtype == np.int64
    at = len(head) + _SIZE
    part = decode(buffer, plan, Spans(np.array([at]), np.array([buffer.size - at])))
    assert part["planes"].spans("name").start.tolist() == names.start.tolist()


def test_one_large_field_needs_no_large_memory(sparse):
    buffer = sparse(tag(15, 2) + varint(_SIZE), _plane(b"one"))
    plan, rows = Plan(_SPACE, _EVENTS, containers=_CONTAINERS), 0
    for part in stream(buffer, plan):
        rows += part.tables["planes.lines.events"].rows
    assert rows == 5


@pytest.mark.parametrize("containers", [("",), ("", "planes")])
def test_lengths_beyond_4_gib(sparse, containers):
    name = tag(2, 2) + varint(_SIZE)
    buffer = sparse(tag(1, 2) + varint(len(name) + _SIZE) + name, _plane(b"two"))
    plan = Plan(_SPACE, ["planes.name", "planes.@span"], containers=containers)
    whole = decode(buffer, plan)["planes"]
    assert whole.spans("name").length.tolist() == [_SIZE, 3]
    assert whole.spans("@span").length.tolist()[0] == _SIZE + len(name)
    found = []
    for part in stream(buffer, plan):
        lengths = part.tables["planes"].spans("name").length.tolist()
        found = lengths if "planes" in containers else found + lengths
    assert found == [_SIZE, 3]


def test_a_length_beyond_the_end_of_a_large_file(sparse):
    buffer = sparse(tag(1, 2) + varint(_SIZE + 100) + tag(2, 2) + varint(_SIZE), len_field(2, b"x"))
    damage = decode(buffer, Plan(_SPACE, ["planes.id"], containers=_CONTAINERS[:2])).damage
    assert damage.places == 1
    assert damage.missing_bytes == _SIZE + 100 + len(tag(1, 2) + varint(_SIZE)) - buffer.size
