"""The short look for memory events never says no where the outline says yes."""

import gzip
import random

import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA, EndingAt

from peakline.deadline import within
from peakline.errors import DeadlineError
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

SAMPLES = sorted((DATA / "sessions").glob("**/*.xplane.pb*"))
JAX = [path for path in SAMPLES if "jax" in str(path)]
MEMORY = [path for path in SAMPLES if "tf2" in str(path)]


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


@each_row("path", MEMORY)
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
    "content",
    [b"", b"\n", b"\n\xff", gzip.compress(b"a"), b"\n\x10\x12\x09/host:CPU", b"text"],
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
    whole = content_of(next(path for path in MEMORY if path.suffix == ".pb"))
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
