"""Damaged and odd files of every format: an error in one line, never a crash."""

import gzip
import io
import os
import pickle
import re
import sys
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from google.protobuf import text_format
from tests.each_row import each_row
from tests.formats.format_checks import (
    ask_everything,
    content,
    content_or_error,
    error_of,
    run_verb,
    verbs,
)
from tests.formats.format_damage import damaged, dice
from tests.formats.format_samples import ALL, BY_NAME, ONE_OF_EACH, Sample, every
from tests.hanging import no_hang
from tests.wire.slices import read_sample, slice_of
from tests.wire.wirebytes import len_field, read_varint, tag, varint

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
from peakline.formats.common.format import message_names
from peakline.formats.run_metadata.texts import label_parts

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
    with pytest.raises(UnknownFormatError, match=r"reads in this log|not a profile .*JSON"):
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
    found = [0]
    while found[-1] < len(data):
        _, at = read_varint(data, found[-1])
        length, at = read_varint(data, at)
        found.append(at + length)
    return found


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


_LEVELS = 100_000


# Whole files, and damaged in any way.


@every(ONE_OF_EACH.values())
def test_a_whole_file_answers_every_verb(write, made):
    path = write(made.file, made.name)
    assert content(path)[0] == made.format
    for words in verbs(path):
        code, text = run_verb(words)
        # A graph that breaks a rule is 1, a table or a trace that the format lacks 3.
        assert code in {0, 1, 3}, text


def _ask_mutants(write, numbers):
    for n in numbers:
        rng = dice(2026, n)
        sample = rng.choice(ALL)
        path = write(damaged(rng, sample), f"{n}-{sample.name}")
        try:
            ask_everything(path, rng)
        except Exception as error:
            raise AssertionError(f"mutant {n}") from error


@pytest.mark.parametrize(
    "numbers", [range(12), pytest.param(range(12, 40), marks=pytest.mark.nightly)]
)
def test_mutants_of_every_format(write, numbers):
    _ask_mutants(write, numbers)


@pytest.mark.soak
def test_many_mutants_of_every_format(write):
    _ask_mutants(write, range(40, 1000))


def test_mutants_are_repeatable():
    made = [damaged(dice(1, n), ALL[n % len(ALL)]) for n in range(60)]
    assert made == [damaged(dice(1, n), ALL[n % len(ALL)]) for n in range(60)]
    assert sum(one == ALL[n % len(ALL)].file for n, one in enumerate(made)) < 10


# Truncated.


def _seams(sample: Sample) -> set[int]:
    """Where a file can be cut so that nobody can tell: between two fields or records."""
    data, at, found = sample.file, 0, {0}
    if sample.format == "tfevents":
        while at < len(data):
            at += 16 + int.from_bytes(data[at : at + 8], "little")
            found.add(at)
    elif sample.kind == "wire":
        while at < len(data):
            key, at = read_varint(data, at)
            size, at = read_varint(data, at)
            at += size if key & 7 == 2 else 0
            found.add(at)
    elif data.startswith(b"HloModule"):
        found |= {n for n in range(len(data)) if not data[n:].strip()}
    elif data.startswith(b"["):
        # The end of a trace that is an array need not be there, nor need the comma.
        found |= {n for n in range(len(data)) if data[:n].rstrip(b"\n ,").endswith(b"\n }")}
    return found


def _reads_as_text(sample: Sample, data: bytes) -> bool:
    message = schema.message(message_names()[sample.format])()
    try:
        text_format.Parse(data, message, descriptor_pool=schema.POOL)
    except text_format.ParseError:
        return False
    return True


@every([s for s in ALL if not s.name.endswith(".log")])
def test_a_cut_is_an_error_or_a_warning(write, made):
    form, whole, before = content(write(made.file, made.name))
    seams, answered = _seams(made), 0
    size = len(made.file)
    cuts = {1, 2, size - 1, size - 2, *Random(made.name).sample(range(3, size - 2), 6)}
    for cut in sorted(cuts - seams):
        path = write(made.file[:cut], made.name)
        answer, error = content_or_error(path)
        if answer is None:
            assert str(path) in error
            continue
        found, rows, after = answer
        if found != form:
            # A few bytes are whole messages of many kinds.
            assert cut < 20
            continue
        answered += 1
        if made.name.endswith(".pbtxt") and _reads_as_text(made, made.file[:cut]):
            continue
        assert before != after, f"a cut at {cut} of {size} that nobody was told of"
        for table, kept in rows.items():
            assert len(kept) <= len(whole[table])
    # Binary messages, records and traces are read as far as they go.
    assert answered > 2 or not (made.kind == "wire" or "trace" in made.name)


@each_row("name", ["tf1_control_flow.log", "session_default_allocator.log"])
def test_a_log_whose_lines_are_cut(write, name):
    lines = BY_NAME[name].data.splitlines(keepends=True)
    held = [n for n, line in enumerate(lines) if b"__LOG_MEMORY__" in line]
    _, whole, _ = content(write(b"".join(lines)))
    for cut in held[3:6]:
        half = lines[cut][: lines[cut].index(b"__LOG_MEMORY__") + 60]
        # The process ended here; or another one wrote on.
        _, rows, told = content(write(b"".join(lines[:cut]) + half))
        assert told["cut_lines"] == 1
        assert len(rows["log_records"]) == held.index(cut)
        _, rows, told = content(write(b"".join([*lines[:cut], half, *lines[cut + 1 :]])))
        assert told["cut_lines"] == 1
        assert len(rows["log_records"]) in {len(held) - 1, len(held) - 2}
        expected = [row["op"] for row in whole["log_records"]]
        assert [row["op"] for row in rows["log_records"]][: held.index(cut)] == (
            expected[: held.index(cut)]
        )


def test_a_report_whose_end_is_missing(write):
    data = BY_NAME["tf_bfc_oom.log"].data
    _, whole, _ = content(write(data))
    begin, end = data.index(b"ran out of memory"), data.rindex(b"Stats:")
    for cut in range(begin + 400, end, (end - begin) // 6):
        _, rows, told = content(write(data[:cut]))
        assert "truncated_oom_report" in told
        assert len(rows["blocks"]) <= len(whole["blocks"])


def test_a_trace_is_kept_up_to_the_cut(write):
    data = BY_NAME["tiny_trace.json"].data
    starts = [n for n in range(len(data)) if data.startswith(b"\n {", n)]
    middles = [(start + end) // 2 for start, end in pairwise(starts)]
    assert "no event is whole" in error_of(write(data[: middles[0]]))
    found = []
    for cut in middles[1:]:
        path = write(data[:cut])
        _, rows, told = content(path)
        assert told["truncated"] == 1
        assert run_verb(["memory", "--strict", str(path)])[0] == 3
        found.append((len(rows["events"]), len(rows["flows"]), len(rows["counters"])))
    assert found == [
        (0, 0, 0), (0, 0, 0), (1, 0, 0), (2, 0, 0), (2, 0, 0), (3, 0, 0), (3, 0, 0), (3, 1, 0),
        (3, 2, 0), (3, 2, 2), (4, 2, 2),
    ][: len(found)]  # fmt: skip


# Pickles that want more than containers.


class _Runs:
    def __reduce__(self):
        return (os.system, ("touch was-here",))


@each_row("protocol", range(6))
def test_a_pickle_that_runs_code(write, monkeypatch, tmp_path, protocol):
    monkeypatch.chdir(tmp_path)
    path = write(pickle.dumps({"segments": [], "device_traces": [_Runs()]}, protocol))
    error = error_of(path)
    assert f"{path}: the pickle needs {os.system.__module__}.system: refused" in error
    assert not Path("was-here").exists()


# Graphs that go round.


def test_a_graph_with_a_cycle(write):
    graph = schema.GraphDef()
    for name, source in (("a", "c"), ("b", "a"), ("c", "b")):
        graph.node.add(name=name, op="Identity", input=[source]).attr["T"].type = 1
    graph.versions.producer = 2474
    path = write(graph.SerializeToString())
    code, text = run_verb(["graph", "--check", str(path)])
    assert code == 1
    assert text.startswith(f"peakline: {path}: ")
    assert content(path)[1]["edges"]
    for words in verbs(path):
        run_verb(words)


# Lengths that are not true, and nesting that nobody writes.


@every([s for s in ALL if s.kind == "wire" and s.format != "tfevents"])
@each_row("length", [2**31 - 1, 2**63 - 1, 2**64 - 1])
def test_a_length_beyond_the_end(write, made, length):
    expected = content(write(made.data))
    field = next(f for f in schema.descriptor(made.message).fields if f.type == f.TYPE_MESSAGE)
    form, rows, told = content(write(made.data + tag(field.number, 2) + varint(length)))
    assert form == expected[0]
    for table, kept in rows.items():
        # What the field would hold may be there, without anything in it.
        assert len(kept) - len(expected[1][table]) in {0, 1}
    assert {"truncated", "damaged"} & told.keys()


def _nested(*numbers: int) -> bytes:
    """Fields of these numbers in one another, over and over."""
    parts, size = [], 0
    for level in range(_LEVELS):
        head = tag(numbers[level % len(numbers)], 2) + varint(size)
        parts.append(head)
        size += len(head)
    return b"".join(reversed(parts))


_DEEP = {
    "graph": lambda: len_field(1, b"\x0a\x01b" + len_field(5, _nested(2, 2, 10)[6:])),
    "step stats": lambda: len_field(1, b"\x0a\x06/cpu:0" + len_field(2, _nested(2, 6))),
    "fields": lambda: _nested(1),
    "text": lambda: b"node { attr { value { func { " * _LEVELS,
    "unknown text": lambda: b"node { unknown " + b"{ x " * _LEVELS + b"}" * (_LEVELS + 1),
    "JSON": lambda: b'{"node":' + b"[" * _LEVELS,
    "other JSON": lambda: b'{"a":' * _LEVELS + b"1" + b"}" * _LEVELS,
    "trace": lambda: b'{"traceEvents":' + b"[" * _LEVELS + b"]" * _LEVELS + b"}",
    "event": lambda: b'[{"ph":"X","args":' + b"[" * _LEVELS + b"]" * _LEVELS + b"}]",
    "log": lambda: b"__LOG_MEMORY__ MemoryLogTensorAllocation { " + b"tensor { " * _LEVELS,
    "lists": lambda: b"\x80\x02" + b"]" * _LEVELS + b"a" * (_LEVELS - 1) + b".",
    "marks": lambda: b"\x80\x02" + b"(" * _LEVELS,
    "old pickle": lambda: b"(lp0\n" + b"(lp1\n" * _LEVELS,
}


@each_row("kind", _DEEP)
def test_deep_nesting(write, kind):
    path = write(_DEEP[kind]())
    for words in verbs(path):
        with no_hang():
            run_verb(words)


# Text that a search could take long over.


def test_labels_are_what_the_pattern_of_the_timeline_finds():
    pattern, rng = re.compile(r"(.*) = (.*)\((.*)\)"), Random(1)
    for _ in range(5000):
        label = "".join(rng.choices(["(", ")", " = ", " ", "=", "a", ", ", "\n"], k=9))
        found = pattern.match(label)
        inputs = found and (found[3].split(", ") if found[3] else [])
        assert label_parts(label) == (found and (found[2], inputs))


@each_row("label", [" = " * 50_000 + "(" * 50_000, " = (" * 50_000 + ")\n)"])
def test_strange_labels_do_not_take_the_cube_of_their_length(label):
    with no_hang():
        label_parts(label)


_XSPACE = "sessions/tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"


# Empty, tiny, and no file at all.


def test_an_empty_file_of_odd_files(write):
    path = write(b"")
    assert error_of(path) == f"{path}: the file is empty"
    assert error_of(write(gzip.compress(b"")), "--json") == f"{path}: the file is empty"


def test_files_of_one_byte(write):
    for byte in range(256):
        path = write(bytes([byte]))
        if byte == ord("["):
            # A trace may be an array whose end is missing.
            assert content(path)[0] == "chrome_trace"
            continue
        with pytest.raises(InputError, match="profile: "):
            peakline.open(str(path))
    assert error_of(write(b"\x0a")).endswith("no out-of-memory report")


def test_a_directory_without_profiles(tmp_path):
    assert "no sessions here" in error_of(tmp_path)
    assert "no sessions here" in error_of(tmp_path, "--strict")


def test_no_such_file(tmp_path):
    assert "no such file" in error_of(tmp_path / "nowhere.pb")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        assert "neither a file nor a directory" in error_of(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="may read any file")
def test_a_file_that_may_not_be_read(write):
    path = write(BY_NAME["graph.pb"].file)
    path.chmod(0)
    assert error_of(path) == f"{path}: cannot be read: Permission denied"


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="the system has no such file")
def test_a_file_whose_reading_fails():
    assert "/proc/self/mem: cannot be read: " in error_of("/proc/self/mem")


# Standard input, and a file that is still written.


class _Stdin:
    def __init__(self, data: bytes):
        self.buffer = io.BytesIO(data)


@every(ALL)
def test_standard_input(write, monkeypatch, made):
    expected = content(write(made.file, made.name))
    for data in (made.file, gzip.compress(made.file)):
        monkeypatch.setattr(sys, "stdin", _Stdin(data))
        assert content("-") == expected


def test_standard_input_with_nothing_in_it(monkeypatch):
    monkeypatch.setattr(sys, "stdin", _Stdin(b""))
    assert error_of("-") == "-: the file is empty"
    monkeypatch.setattr(sys, "stdin", _Stdin(b"\x1f\x8b\x08"))
    assert error_of("-").startswith("-: damaged gzip file")
    monkeypatch.setattr(sys, "stdin", None)
    assert error_of("-") == "-: standard input is closed"


@every(ONE_OF_EACH.values())
def test_a_file_that_grows_while_it_is_read(write, made):
    path = write(made.file, made.name)
    expected = content(path)
    with peakline.open(str(path)) as profile:
        with path.open("ab") as file:
            file.write(made.file[: len(made.file) // 2])
        rows = {t: profile.columns(t).to_pylist() for t in profile.tables if t != "warnings"}
    assert rows == expected[1]


# Compressed.


@every(ONE_OF_EACH.values())
def test_a_file_that_expands_too_much(write, made):
    path = write(gzip.compress(made.file + b" " * 3_000_000), "bomb.gz")
    assert error_of(path, "--max-unpacked", "10KB") == (
        f"{path}: expands to more than 10000 bytes; "
        "--max-unpacked allows more if it is what it should be"
    )


def test_a_bomb_goes_off_nowhere(write, monkeypatch):
    """The limit that holds without the option, made small."""
    monkeypatch.setattr("peakline.formats.common.files._LEAST_LIMIT", 4 << 20)
    log = BY_NAME["tf1_control_flow.log"].data
    path = write(gzip.compress(log + b"nothing\n" * 2_000_000))
    assert f"{path}: expands to more than " in error_of(path)
    monkeypatch.setattr("peakline.formats.common.files._LEAST_LIMIT", 32 << 20)
    assert content(path) == content(write(log))


# Text in other clothes.


_TEXTS = [s for s in ALL if s.kind == "text" or s.name.endswith(".json")]


@every(_TEXTS)
def test_line_ends_and_a_byte_order_mark_change_nothing(write, made):
    expected = content(write(made.data))
    assert content(write(b"\xef\xbb\xbf" + made.data)) == expected
    assert content(write(made.data.replace(b"\n", b"\r\n"))) == expected


@every(_TEXTS)
@each_row("encoding", ["utf-16", "utf-32"])
def test_a_wide_encoding_is_named(write, made, encoding):
    path = write(made.data.decode().encode(encoding))
    with pytest.raises(UnknownFormatError, match="text in UTF-16 or UTF-32: save it as UTF-8"):
        peakline.open(str(path))


@every([s for s in _TEXTS if not s.name.endswith(".log")])
def test_zero_bytes_in_text(write, made):
    """An error with its place, or a warning: never another answer in silence."""
    expected = content(write(made.data))
    end = made.data.rindex(b"\n")
    for at in (end, end + 2):
        answer, error = content_or_error(write(made.data[:at] + b"\0" + made.data[at:]))
        if answer is None:
            assert "line " in error
        else:
            assert "trace" in made.name
            assert answer[1] == expected[1]


def test_zero_bytes_in_a_log(write):
    """What a log loses to one who empties it while it is written, and what a crash leaves."""
    log = BY_NAME["tf1_control_flow.log"].data
    expected = content(write(log))
    assert content(write(bytes(5000) + log)) == expected
    assert content(write(log + bytes(5000))) == expected
    _, rows, told = content(write(log[:3000] + b"\0" + log[3000:]))
    assert told["malformed_lines"] == 1
    assert len(rows["log_records"]) == len(expected[1]["log_records"]) - 1


# Text in JSON that is no text, and numbers that are none.


@each_row(
    ("value", "reason"),
    [
        (b'"\\ud800"', "an escape is half a character"),
        (b"9" * 5000, "too many digits"),
        (b"[" * 3000 + b"]" * 3000, "nested too deeply"),
        (b"tru", "line 1, column"),
        (b"1e400", "producer"),
        (b"NaN", "producer"),
        (b"2147483648", "producer"),
        (b"[1]", "producer"),
    ],
)
def test_json_that_no_message_can_hold(write, value, reason):
    error = error_of(write(b'{"versions": {"producer": ' + value + b"}}"))
    assert reason in error
    assert error.endswith("(GraphDef in JSON)")
