"""Bad input as a user meets it: one clear error, or what is whole and a warning."""

import gzip

import numpy as np
import pytest
from tests.each_row import each_row
from tests.wire.slices import read_sample, slice_of
from tests.wire.wirebytes import len_field, read_varint

import peakline
from peakline import schema
from peakline.errors import (
    DamagedError,
    InputError,
    NotFoundError,
    PeaklineError,
    StrictError,
    UnknownFormatError,
)

_SESSION = "tf2_multihost/plugins/profile/2026_11_20_17_33_46/localhost_47507.xplane.pb"


@pytest.fixture(scope="module")
def whole(sessions) -> bytes:
    """A small slice of a real profile with allocator events."""
    return slice_of(read_sample(sessions / _SESSION), 80)


@pytest.fixture(scope="module")
def names_first(whole) -> bytes:
    """The same with the metadata of every plane before its lines, as some writers do.

    A truncated file then still knows its names.
    """
    planes = []
    for plane in schema.XSpace.FromString(whole).planes:
        lines = schema.XPlane(lines=plane.lines)
        plane.ClearField("lines")
        planes.append(len_field(1, plane.SerializeToString() + lines.SerializeToString()))
    return b"".join(planes)


@pytest.fixture
def write(write):
    return lambda data, name="host.xplane.pb": str(write(data, name))


def read_all(path: str, *, strict: bool = False) -> peakline.Profile:
    """Open a profile and read every table of it."""
    profile = peakline.open(path, strict=strict)
    for table in profile.tables:
        profile.columns(table)
    assert profile.duration_ps >= 0
    return profile


def kinds(profile: peakline.Profile) -> set[str]:
    return {warning.kind for warning in profile.warnings}


# No profile at all.


def test_an_empty_file(write):
    with pytest.raises(InputError, match=r"host\.xplane\.pb: the file is empty"):
        peakline.open(write(b""))


def test_no_file(tmp_path):
    with pytest.raises(NotFoundError, match="nowhere"):
        peakline.open(str(tmp_path / "nowhere.xplane.pb"))


@each_row(
    "text",
    [
        b"hello\n", b"<html>\n404</html>", b'{"unit": "ns"}', "größe".encode(), b"\n\n",
        b"a,b\r\n" * 99,
    ],
)  # fmt: skip
def test_a_text_file(write, text):
    with pytest.raises(UnknownFormatError, match=r"in this log|not a profile .*(JSON|site)"):
        peakline.open(write(text))


def _others() -> dict[str, bytes]:
    """Files of other formats, which no reader takes."""
    memory = schema.MemoryProfile(num_hosts=1)
    memory.memory_profile_per_allocator[
        "GPU_0_bfc"
    ].profile_summary.peak_stats.heap_allocated_bytes = 1
    profile = schema.ProfileProto(steps=[1])
    profile.nodes[1].name = "y"
    return {
        "MemoryProfile": memory.SerializeToString(),
        "ProfileProto": profile.SerializeToString(),
        "Event": schema.Event(wall_time=1.5, file_version="brain.Event:2").SerializeToString(),
        "zeros": bytes(1000),
        "ones": b"\xff" * 1000,
        "zip": b"PK\x03\x04\x14\x00\x00\x00\x08\x00" + bytes(range(256)),
    }


@each_row("data", _others().values())
def test_another_kind_of_file(write, data):
    with pytest.raises(UnknownFormatError, match=r"host\.xplane\.pb: not a profile"):
        peakline.open(write(data))


# Truncated.


def _boundaries(data: bytes) -> list[int]:
    """Where the fields of a message end, and 0."""
    result = [0]
    while result[-1] < len(data):
        _, at = read_varint(data, result[-1])
        length, at = read_varint(data, at)
        result.append(at + length)
    return result


def _cuts(data: bytes) -> list[int]:
    few = np.random.default_rng(7).choice(len(data), 40, replace=False).tolist()
    near = {at + n for at in _boundaries(data) for n in range(-3, 5)}
    return sorted(cut for cut in {*range(1, 40), *few, *near} if 0 < cut < len(data))


def test_a_file_truncated_anywhere_is_answered_from_what_is_whole(write, whole):
    boundaries = _boundaries(whole)
    answered, refused = 0, dict[int, PeaklineError]()
    for cut in _cuts(whole):
        path = write(whole[:cut])
        try:
            profile = read_all(path)
        except PeaklineError as caught:
            refused[cut] = caught
            continue
        answered += 1
        # In the first bytes of a field its length, and so what is missing, is still unknown.
        behind = min(cut - at for at in boundaries if at <= cut)
        assert kinds(profile) & {"truncated", "damaged"} or behind == 0, cut
        assert "truncated" in kinds(profile) or behind < 3 or cut > boundaries[-2], cut
        assert not (behind == 0 and profile.warnings), cut
    assert answered > 60
    for cut, error in refused.items():
        # A handful of bytes tell of no format yet, the first hundred hold nothing whole.
        assert isinstance(error, DamagedError if cut >= 8 else InputError), cut
        assert cut < 100, error
        assert "host.xplane.pb" in str(error)
        assert "\n" not in str(error)


def test_a_truncated_profile_has_the_first_allocator_events(write, names_first):
    full = read_all(write(names_first))
    assert not full.warnings
    expected = full.columns("allocator_events").to_pylist()
    expected.sort(key=lambda row: row["sequence"])
    assert len(expected) > 20
    counts = set()
    first_plane = schema.XSpace.FromString(names_first).planes[0].ByteSize()
    for cut in range(first_plane // 4, first_plane, first_plane // 60):
        profile = read_all(write(names_first[:cut]))
        assert "truncated" in kinds(profile)
        rows = profile.columns("allocator_events").to_pylist()
        rows.sort(key=lambda row: row["sequence"])
        shift = {a["time_ps"] - b["time_ps"] for a, b in zip(rows, expected, strict=False)}
        assert len(shift) <= 1, "the clock's zero may move, but for all alike"
        for row, other in zip(rows, expected, strict=False):
            # Later events decide about steps and about the earliest line.
            ignored = {"step_id": None, "time_ps": None}
            assert row | ignored == other | ignored
        counts.add(len(rows))
    assert len(counts) > 3


def test_strict_refuses_a_truncated_file(write, names_first):
    path = write(names_first[: len(names_first) // 2])
    assert "truncated" in kinds(read_all(path))
    with pytest.raises(StrictError, match="truncated") as caught:
        read_all(path, strict=True)
    assert path in str(caught.value)
    assert caught.value.exit_code == 3
    read_all(write(names_first), strict=True)


def test_the_warning_tells_how_much_is_missing(write, names_first):
    one = len_field(1, schema.XSpace.FromString(names_first).planes[0].SerializeToString())
    (detail,) = [w.detail for w in read_all(write(one[:-1000])).warnings if w.kind == "truncated"]
    assert "1000 bytes" in detail
    assert str(len(one) - 1000) in detail


def test_nothing_whole_left_is_one_error(write, whole):
    with pytest.raises(DamagedError, match="nothing whole is left") as caught:
        peakline.open(write(whole[:12]))
    assert caught.value.offset == 0


# Compressed.


def test_a_compressed_file_gives_the_same(write, whole):
    plain = read_all(write(whole)).columns("allocator_events").to_pylist()
    packed = read_all(write(gzip.compress(whole), "host.xplane.pb.gz"))
    assert packed.columns("allocator_events").to_pylist() == plain
    assert packed.host == "host"


@each_row("share", [0.0, 0.01, 0.5, 0.999])
def test_a_truncated_gzip_file(write, whole, share):
    packed = gzip.compress(whole)
    with pytest.raises(InputError, match=r"host\.xplane\.pb\.gz: damaged gzip file"):
        peakline.open(write(packed[: 2 + int(share * (len(packed) - 3))], "host.xplane.pb.gz"))


def test_a_gzip_file_with_a_flipped_bit(write, whole):
    packed = bytearray(gzip.compress(whole))
    packed[len(packed) // 2] ^= 16
    with pytest.raises(InputError, match="damaged gzip file"):
        peakline.open(write(bytes(packed)))


def test_a_gzip_file_of_nothing(write):
    with pytest.raises(InputError, match="the file is empty"):
        peakline.open(write(gzip.compress(b"")))


def test_what_is_inside_a_gzip_file_is_looked_at(write):
    with pytest.raises(UnknownFormatError, match="reads in this log"):
        peakline.open(write(gzip.compress(b"hello\n" * 50)))


# Through a text conversion.


def test_a_file_that_went_through_a_text_conversion(write, sample):
    path = write(read_sample(sample).decode("utf-8", errors="replace").encode())
    with pytest.raises(DamagedError, match=r"text \(UTF-8\) conversion") as caught:
        peakline.open(path)
    assert path in str(caught.value)
    assert "binary" in str(caught.value)
    assert caught.value.exit_code == 3


def test_the_character_itself_is_no_conversion(write):
    space = schema.XSpace(hostnames=["host"])
    plane = space.planes.add(name="/host:CPU")
    for n in range(30):
        plane.event_metadata[n].name = f"\ufffd{n}"
    plane.lines.add(name="line").events.add(metadata_id=3)
    profile = read_all(write(space.SerializeToString()))
    assert profile.columns("events").names("name").to_list() == ["\ufffd3"]


# Damage inside.


def test_a_broken_event_costs_that_event(write):
    plane = schema.XPlane(name="/host:CPU")
    plane.event_metadata[1].name = "MatMul"
    good = b"".join(len_field(4, bytes([8, 1, 16, n])) for n in range(5))
    line = len_field(2, b"thread") + good + len_field(4, b"\x08") + good
    data = len_field(1, plane.SerializeToString() + len_field(3, line))
    profile = read_all(write(data))
    assert profile.columns("events").rows == 10
    (warning,) = profile.warnings
    assert (warning.kind, warning.count) == ("damaged", 1)
    assert str(data.index(len_field(4, b"\x08")) + 2) in warning.detail
    with pytest.raises(StrictError, match="damaged"):
        read_all(write(data), strict=True)


def test_an_empty_space_is_a_profile(write):
    profile = read_all(write(len_field(4, b"host")))
    assert profile.host == "host"
    assert profile.columns("events").rows == 0
    assert profile.columns("planes").rows == 0
