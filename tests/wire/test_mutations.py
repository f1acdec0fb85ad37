"""Decoding mutated, random and large messages."""

import mmap
import os
import random
from pathlib import Path

import numpy as np
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.wire.cases import Case
from tests.wire.fuzzing import Fuzzer
from tests.wire.mutations import mutate, sized_fields
from tests.wire.parts import uninitialised_memory_shows
from tests.wire.slices import read_sample, slice_of
from tests.wire.wirebytes import len_field, tag, varint, varint_field
from tests.wire.zoo import ZOO

from peakline import schema
from peakline.wire import Buffer, Damage, Plan, Spans, as_buffer, decode, stream


@pytest.fixture(scope="module")
def fuzzer(sessions, tmp_path_factory):
    return Fuzzer(2026, sessions, tmp_path_factory.mktemp("mutants"))


def run(fuzzer: Fuzzer, numbers: range, *, reader: bool) -> None:
    for n in numbers:
        mutant = fuzzer.mutant(n, reader=reader)
        try:
            fuzzer.check(mutant)
        except Exception as error:
            raise AssertionError(f"mutant {n} of {mutant.describe()}") from error


@pytest.mark.parametrize(
    "numbers", [range(100), pytest.param(range(100, 500), marks=pytest.mark.nightly)]
)
def test_the_decoder_withstands_mutants(fuzzer, numbers):
    run(fuzzer, numbers, reader=False)


def test_the_readers_withstand_mutants(fuzzer):
    run(fuzzer, range(200), reader=True)


def test_rows_from_several_fields_are_compared_in_one_order(sessions, tmp_path):
    # Two rows that differ only in what hangs on them, found in another order than protobuf's.
    run(Fuzzer(91975, sessions, tmp_path), range(9022, 9023), reader=False)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_the_decoder_withstands_many_mutants(fuzzer, part):
    run(fuzzer, range(500 + part * 1200, 1700 + part * 1200), reader=False)


@pytest.mark.soak
def test_the_readers_withstand_many_mutants(fuzzer):
    run(fuzzer, range(200, 3000), reader=True)


def test_slices_of_real_files_keep_their_lines(sample):
    small = slice_of(read_sample(sample), 60)
    assert 3000 < len(small) < 60_000
    assert slice_of(small, 60) == small


def test_mutants_are_damaged_and_repeatable():
    data = len_field(ZOO.fields_by_name["leaf"].number, varint_field(1, 5)) * 20
    sized = sized_fields(data, ZOO)
    assert [end - start for _, start, end in sized] == [2] * 20
    mutants = [mutate(random.Random(n), data, sized) for n in range(200)]
    assert mutants == [mutate(random.Random(n), data, sized) for n in range(200)]
    assert sum(mutant != data for mutant in mutants) > 180


_QUICK = settings(suppress_health_check=[HealthCheck.data_too_large])


def check(case: Case, data: bytes, spans: Spans | None = None) -> None:
    pairs = None
    if spans is not None:
        pairs = list(zip(spans.start.tolist(), spans.length.tolist(), strict=True))
    expected = case.projection.expected(data, pairs, case.keep)
    with uninitialised_memory_shows():
        assert case.decode_every_way(as_buffer(data), spans) == (expected, Damage())


@settings(_QUICK, max_examples=150)
@given(st.randoms(use_true_random=False))
def test_any_bytes_of_any_message_through_any_projection(rng):
    case = Case.arbitrary(rng)
    check(case, b"".join(case.data() for _ in range(rng.choice((1, 1, 2)))))


@settings(_QUICK, max_examples=60)
@given(st.randoms(use_true_random=False))
def test_any_spans_of_a_buffer(rng):
    """Every span is a message of its own: in any order, empty, twice, with rubbish between."""
    case = Case.arbitrary(rng)
    buffer = bytearray(b"\xff" * rng.randrange(3))
    pairs = []
    for _ in range(rng.choice((0, 1, 2, 4))):
        data = case.data()
        pairs.append((len(buffer), len(data)))
        buffer += data + b"\x00\xff\x07" * rng.randrange(2)
    pairs += rng.sample(pairs, rng.randrange(len(pairs) + 1)) + [(len(buffer), 0)] * rng.randrange(
        2
    )
    rng.shuffle(pairs)
    start, length = np.array(pairs, np.int64).reshape(-1, 2).T
    check(case, bytes(buffer), Spans(start, length))


@settings(_QUICK, max_examples=60)
@given(st.randoms(use_true_random=False))
def test_messages_as_protobuf_writes_them(rng):
    """Bytes that a real message object wrote, which drops what the writer's variants added."""
    case = Case.arbitrary(rng)
    message = GetMessageClass(case.message).FromString(case.data())
    message.DiscardUnknownFields()
    check(case, message.SerializeToString(deterministic=True))


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
    result = []
    for part in stream(buffer, plan):
        lengths = part.tables["planes"].spans("name").length.tolist()
        result = lengths if "planes" in containers else result + lengths
    assert result == [_SIZE, 3]


def test_a_length_beyond_the_end_of_a_large_file(sparse):
    buffer = sparse(tag(1, 2) + varint(_SIZE + 100) + tag(2, 2) + varint(_SIZE), len_field(2, b"x"))
    damage = decode(buffer, Plan(_SPACE, ["planes.id"], containers=_CONTAINERS[:2])).damage
    assert damage.places == 1
    assert damage.missing_bytes == _SIZE + 100 + len(tag(1, 2) + varint(_SIZE)) - buffer.size
