"""The fast reader against the slow reference, in any pieces, and tables read together or alone."""

import functools
import itertools
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tests.conformance.compare import compare_memory_profiles
from tests.each_row import each_row
from tests.sweeps import each_sample
from tests.wire.slices import read_sample
from tests.wire.wirebytes import fixed32, fixed64, len_field, tag, varint, varint_field

import peakline
from peakline.errors import DeadlineError, InputError
from peakline.formats import open_reader
from peakline.formats.common import files
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane import file_steps, line_reader, memory, passes
from peakline.formats.xplane.events import PLAIN
from peakline.formats.xplane.line_parts import Lookup
from peakline.formats.xplane.line_reader import LineReader
from peakline.formats.xplane.names import EventKind
from peakline.formats.xplane.outline import read_outline
from peakline.formats.xplane.times import FARTHEST_PS
from peakline.kernels import line_layout as layout
from peakline.schema import XLine, XSpace
from peakline.tables.reader import Warnings
from peakline.tables.tables import TABLES
from peakline.wire import Damage, Spans
from reference.cases import CASES
from reference.grouping import group_events
from reference.memory_profile import memory_profile
from reference.random_xspace import random_xspace
from reference.xspace_builder import SpaceBuilder

SEEDS = (*range(12), 194)
BUILDERS = {name: case.build for name, case in CASES.items()} | {
    f"seed {seed}": functools.partial(random_xspace, seed) for seed in SEEDS
}


def sorted_line_beside_another():
    """A line that sorting leaves as it is, in a plane whose lines are taken whole for another."""
    builder = SpaceBuilder()
    host = builder.host()
    for offsets in ((300, 200), (200, 300)):
        line = host.line()
        line.event("train", 50, 900, {"_r": 1, "step_num": offsets[0]})
        line.event("ThreadpoolListener::StartRegion", 100, 0, {"_c": 1})
        for offset in offsets:
            line.event("work", offset, 50)
        line.event("ThreadpoolListener::StopRegion", 400)
    return builder.space


BUILDERS["sorted line beside another"] = sorted_line_beside_another
NAMES = sorted(BUILDERS.keys() - {"no_planes"})
"""An empty file is an error, and no profile."""


def in_every_run(name):
    """The last takes a third of the reference's time for all, and is as `sampling_2500`."""
    return name in {"seed 0", "seed 194"} or not name.startswith(("seed ", "sampling_12345"))


@functools.cache
def space_of(name):
    return BUILDERS[name]()


@functools.cache
def grouping_of(name):
    return group_events(space_of(name))


@dataclass(frozen=True)
class Answer:
    memory: bytes | str
    steps: dict[int, str]
    events: dict[int, int]
    """The steps of the events that have one, by the event's number."""


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """What a profile of the space of this name answers, read whole or in tiny pieces; once."""
    path = tmp_path_factory.mktemp("reference") / "vm.xplane.pb"

    @functools.cache
    def read_space(name, *, whole):
        space = space_of(name)
        path.unlink(missing_ok=True)
        path.write_bytes(space.SerializeToString())
        events = sum(len(line.events) for plane in space.planes for line in plane.lines)
        with pytest.MonkeyPatch.context() as patch, peakline.open(str(path)) as profile:
            if not whole:
                patch.setattr(line_reader, "_PART_EVENTS", max(1, events // 50))
            # The reference is upstream's grouping; ours differs in what docs/steps.md says.
            grouped = profile.with_runtime_steps()
            steps, events = grouped.columns("steps").to_pylist(), grouped.columns("events")
            known = events.is_valid("step_id").nonzero()[0].tolist()
            return Answer(
                profile.tool("memory_profile").content,
                {step["step_id"]: step["name"] for step in steps},
                {event: int(events.array("step_id")[event]) for event in known},
            )

    return read_space


@each_sample("name", NAMES, in_every_run)
def test_memory_profile_is_that_of_the_reference(read, name):
    expected = memory_profile(space_of(name), grouping=grouping_of(name))
    for whole in (True, False):
        assert compare_memory_profiles(expected, read(name, whole=whole).memory) == [], whole


@each_sample("name", NAMES, in_every_run)
def test_steps_are_those_of_the_reference(read, name):
    space, expected = space_of(name), grouping_of(name)
    places = [
        (plane, line, event)
        for plane, plane_message in enumerate(space.planes)
        for line, line_message in enumerate(plane_message.lines)
        for event in range(len(line_message.events))
    ]
    for whole in (True, False):
        result = read(name, whole=whole)
        assert result.steps == expected.names, whole
        assert {places[event]: step for event, step in result.events.items()} == expected.groups


CASE_NAMES = sorted(CASES.keys() - {"no_planes"})
IN_EVERY_RUN = set(CASE_NAMES[::4])
"""A fourth of the cases; the night reads all, and `test_random_spaces` other files in every run."""
_TABLES = ("events", "allocator_events", "memory_snapshots", "steps")


def tables_of(path, order, *, expected):
    """The tables as rows, read in this order."""
    with peakline.open(path) as profile:
        profile.expect(*expected)
        names = [name for name in order if name in profile.tables]
        result = {name: profile.columns(name) for name in names}
        # Only now: what is read later must not change what was given out.
        rows = {name: list(map(repr, table.to_pylist())) for name, table in result.items()}
        return rows, profile.warnings


def assert_same(path, orders):
    apart, warnings = {}, []
    for name in _TABLES:
        rows, said = tables_of(path, [name], expected=())
        apart |= rows
        warnings += said
    for order in orders:
        together, said = tables_of(path, order, expected=("events", "allocator_events"))
        assert together == apart, order
        assert set(said) <= set(warnings)


@each_sample("name", CASE_NAMES, chosen=IN_EVERY_RUN.__contains__)
def test_every_case(name, tmp_path):
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(CASES[name].build().SerializeToString())
    assert_same(str(path), [_TABLES, _TABLES[::-1]])


@each_row("seed", range(20))
def test_random_spaces(seed, tmp_path):
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(random_xspace(seed).SerializeToString())
    assert_same(
        str(path),
        [
            ("allocator_events", "memory_snapshots", "events", "steps"),
            ("memory_snapshots", "allocator_events", "steps", "events"),
            ("events", "memory_snapshots", "allocator_events", "steps"),
        ],
    )


@pytest.mark.parametrize("first", ["allocator_events", "events"])
def test_what_is_given_up_is_read_again(opened, first):
    profile = opened(random_xspace(5))
    profile.expect("events", "allocator_events")
    profile.columns(first)
    before = repr(profile.columns("allocator_events").to_pylist())
    assert len(before) > 1000
    profile.release("allocator_events")
    assert repr(profile.columns("allocator_events").to_pylist()) == before


def test_a_deadline_at_any_moment_leaves_the_records_whole(tmp_path, monkeypatch):
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(random_xspace(5).SerializeToString())
    apart, _ = tables_of(str(path), ["allocator_events", "memory_snapshots"], expected=())
    for moment in itertools.count(1):
        left = [moment]

        def check(left=left):
            left[0] -= 1
            if left[0] == 0:
                raise DeadlineError

        with peakline.open(str(path)) as profile:
            profile.expect("events", "allocator_events")
            monkeypatch.setattr(memory, "check_deadline", check)
            try:
                profile.columns("allocator_events")
            except DeadlineError:
                ended = True
            else:
                ended = False
            monkeypatch.setattr(memory, "check_deadline", lambda: None)
            result = {name: list(map(repr, profile.columns(name).to_pylist())) for name in apart}
        assert result == apart
        if not ended:
            break
    assert moment > 3


SESSIONS = Path(__file__).parent.parent / "data" / "sessions"
FILES = sorted(SESSIONS.rglob("*.xplane.pb*"))


@each_row("path", FILES)
def test_plain_columns_are_those_of_the_whole_table(path):
    plain = open_reader(str(path)).read("events", Warnings(), PLAIN - {"category"})
    whole = open_reader(str(path)).read("events", Warnings())
    assert plain.rows == whole.rows > 0
    assert set(plain) == PLAIN - {"category"}
    for name in set(plain) - {"name"}:
        assert (plain.array(name) == whole.array(name)).all()
        assert (plain.is_valid(name) == whole.is_valid(name)).all()
    assert plain.names("name").to_list() == whole.names("name").to_list()


def assert_records_need_no_groups(path, monkeypatch):
    """All columns but the steps, and then all, are those of the whole table."""
    with peakline.open(str(path)) as profile:
        whole = profile.columns("allocator_events").to_pylist()
    with peakline.open(str(path)) as profile, monkeypatch.context() as patch:
        patch.setattr(passes, "group", lambda *_, **__: pytest.fail("records were grouped"))
        names = {column.name for column in TABLES["allocator_events"].columns} - {"step_id"}
        records = profile.columns("allocator_events", names).to_pylist()
        patch.undo()
        again = profile.columns("allocator_events").to_pylist()
    assert repr(again) == repr(whole)
    assert repr(records) == repr([{k: row[k] for k in row if k != "step_id"} for row in whole])


@each_row("seed", range(10))
def test_records_whose_steps_nobody_wants_are_not_grouped(seed, tmp_path, monkeypatch):
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(random_xspace(seed).SerializeToString())
    assert_records_need_no_groups(path, monkeypatch)


@each_sample("name", CASE_NAMES, chosen=IN_EVERY_RUN.__contains__)
def test_records_of_every_case_are_not_grouped(name, tmp_path, monkeypatch):
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(CASES[name].build().SerializeToString())
    assert_records_need_no_groups(path, monkeypatch)


def test_the_stats_names_need_no_values():
    path = str(FILES[0])
    some = open_reader(path).read("event_stats", Warnings(), frozenset({"event_id", "name"}))
    whole = open_reader(path).read("event_stats", Warnings())
    assert set(some) == {"event_id", "name"}
    assert some.names("name").to_list() == whole.names("name").to_list()


def test_events_that_are_expected_after_the_records_take_one_pass(opened, monkeypatch):
    wanted = frozenset(("name", "start_ps", "duration_ps"))

    def rows(profile):
        table = profile.columns("events", wanted)
        return list(zip(*(table.lists()[name] for name in sorted(wanted)), strict=True))

    plain = rows(opened(random_xspace(3)))

    def another(*_):
        raise AssertionError("a pass for some columns, before that for all of them")

    monkeypatch.setattr(file_steps, "read_plain_events", another)
    profile = opened(random_xspace(3))
    # As a page that shows memory first, and then the summary.
    profile.columns("allocator_events")
    profile.expect("events", "allocator_events")
    assert rows(profile) == plain
    assert len(plain) > 10


_STR, _BYTES = 5, 6
_KINDS = {1: EventKind.ALLOCATION, 2: EventKind.DEALLOCATION, 5: EventKind.KNOWN}
_ROLES = {1: 7, 3: 9}
_NUMBERS = (0, 1, 2, 3, 5, 127, 128, 300, 2**20, 2**31, 2**53, 2**63 - 1, 2**63, 2**64 - 1)


def read_of_xplane_line_reader(
    content, lines, path=None, *, stats=layout.ALL_STATS, kinds=None, roles=None
):
    """All that a reader finds: events, stats, facts, damage; from the file ``path`` or memory."""
    file = SourceFile(str(path)) if path else memory_file(content)
    reader = LineReader(
        file, lines, stats=stats, kinds=Lookup(_KINDS if kinds is None else kinds),
        roles=Lookup(_ROLES if roles is None else roles, layout.NOT_WANTED), begins=True,
    )  # fmt: skip
    events, values, memory, begins = [], [], 0, []
    for part in reader.parts():
        columns = (part.ids, part.kinds, part.case, part.bits, part.duration)
        first = len(events)
        events += zip(
            [part.line] * part.ids.size, *(column.tolist() for column in columns), strict=True
        )
        begins += part.begins.tolist()
        for event, *row, bits, length in zip(*(c.tolist() for c in part.stats), strict=True):
            value = bits
            if row[-1] in {_STR, _BYTES}:
                value = part.buffer[bits - part.base :][:length].tobytes()
            values.append((first + event, *row, value))
        memory += part.memory
    for begin, (line, *_) in zip(begins, events, strict=True):
        assert lines.start[line] <= begin < lines.start[line] + lines.length[line]
    assert begins == sorted(begins)
    file.close()
    return events, values, reader.facts, reader.damage, memory


def memory_file(content):
    # A file that needs no path: the bytes are its content.
    return SourceFile(__file__).translated(content)


TINY = ((64, 3, 4, 0), (1 << 10, 1, 100, 1 << 30))
"""Bytes of a window, most events and stats of a part, and from how many bytes on a second thread
reads.
"""
LARGE = ((1 << 14, 1000, 1000, 0),)


def every_way(monkeypatch, content, lines, path, sizes=TINY, **options):
    """What is found by the decoder and by the general walk alone, and by windows and parts of
    several sizes: once, since it is the same.
    """
    path.write_bytes(content)
    result = read_of_xplane_line_reader(content, lines, **options)
    with monkeypatch.context() as patch:
        patch.setattr(line_reader, "decode", lambda *_: layout.ODD)
        assert read_of_xplane_line_reader(content, lines, **options) == result
    for window, events, stats, ahead in sizes:
        with monkeypatch.context() as patch:
            patch.setattr(line_reader, "_WINDOW_BYTES", window)
            patch.setattr(line_reader, "_PART_EVENTS", events)
            patch.setattr(line_reader, "_PART_STATS", stats)
            patch.setattr(line_reader, "_LEAST_AHEAD", ahead)
            assert read_of_xplane_line_reader(content, lines, path, **options) == result
    return result


def by_messages(messages):
    """The same from protobuf's own messages."""
    events, values = [], []
    for line, message in enumerate(messages):
        for event in message.events:
            which = event.WhichOneof("data")
            case = event.DESCRIPTOR.fields_by_name[which].number if which else 0
            bits = getattr(event, which) if which else 0
            kind = _KINDS.get(event.metadata_id, 0)
            for stat in event.stats:
                which = stat.WhichOneof("value")
                number = stat.DESCRIPTOR.fields_by_name[which].number if which else 0
                value = getattr(stat, which) if which else 0
                if which == "double_value":
                    value = struct.unpack("<q", struct.pack("<d", value))[0]
                elif which == "str_value":
                    value = value.encode()
                elif number in {3, 7}:
                    value = (value + 2**63) % 2**64 - 2**63
                role = _ROLES.get(stat.metadata_id, layout.NOT_WANTED)
                values.append((len(events), stat.metadata_id, role, number, value))
            events.append((line, event.metadata_id, kind, case, bits, event.duration_ps))
    return events, values, [(m.id, m.name, m.display_name, m.timestamp_ns) for m in messages]


def as_tuples(facts):
    return [(f.native_id, f.name, f.display_name, f.timestamp_ns) for f in facts]


# Lines of real profiles.


def test_real_profiles(sample, monkeypatch, tmp_path):
    content = read_sample(sample)
    outline = read_outline(memory_file(content))
    planes = XSpace.FromString(content).planes
    for plane, message in zip(outline.planes, planes, strict=True):
        expected = by_messages(message.lines)
        result = every_way(monkeypatch, content, plane.lines, tmp_path / "file", LARGE)
        assert result[:2] == expected[:2]
        assert as_tuples(result[2]) == expected[2]
        assert result[3] == Damage()
        memory = {EventKind.ALLOCATION, EventKind.DEALLOCATION}
        assert result[4] == sum(event[2] in memory for event in expected[0])


# Lines that no profiler writes.


class Writer:
    """Writes lines in odd ways, all of which are protobuf, unless ``damaging``."""

    def __init__(self, seed, *, damaging):
        self.rng, self.damaging = Random(seed), damaging

    def number(self):
        rng = self.rng
        return rng.choice(_NUMBERS) if rng.random() < 0.7 else rng.randrange(2 ** rng.randrange(65))

    def field(self, number, value):
        """A varint field, now and then in more bytes than it takes."""
        size = self.rng.choice((0, 0, 0, 0, 3, 10))
        return tag(number, 0, self.rng.choice((0,) * 30 + (3,))) + varint(value, size)

    def unknown(self):
        rng, number = self.rng, self.rng.choice((9, 13, 15, 16, 1000))
        made = [
            lambda: varint_field(number, self.number()),
            lambda: len_field(number, rng.randbytes(rng.randrange(9))),
            lambda: fixed64(number, self.number()),
            lambda: fixed32(number, self.number()),
        ]
        return rng.choice(made)()

    def damage(self):
        """Bytes that are no field: of another wire type, a group, without an end, too long."""
        number = self.rng.choice((1, 2, 3, 4, 5))
        return self.rng.choice(
            (
                tag(number, 1) + bytes(8),
                tag(number, 5) + bytes(4),
                tag(number, 0) + b"\xff" * 11,
                tag(number, 2) + varint(self.number()),
                tag(number, 6),
                tag(0, 0) + b"\x01",
                tag(number, 4),
                tag(number, 3) + varint_field(1, 2) + tag(number, 4),
                b"\xff",
            )
        )

    def mixed(self, fields):
        """Fields, some in another order, with others among them that nobody knows."""
        rng = self.rng
        if rng.random() < 0.2:
            rng.shuffle(fields)
        while rng.random() < 0.1:
            fields.insert(rng.randrange(len(fields) + 1), self.unknown())
        if self.damaging and rng.random() < 0.02:
            fields.insert(rng.randrange(len(fields) + 1), self.damage())
        return b"".join(fields)

    def stat(self):
        rng = self.rng
        fields = [self.field(1, self.rng.choice((1, 2, 3, 4, self.number())))]
        for _ in range(rng.choice((0, 1, 1, 1, 1, 2))):
            number = rng.choice((2, 3, 4, 5, 6, 7))
            if number == 2:
                fields.append(fixed64(2, struct.unpack("<Q", struct.pack("<d", rng.random()))[0]))
            elif number in {5, 6}:
                text = rng.choice(("", "a", "tensor[2,3]", "é", "x" * rng.randrange(300)))
                fields.append(len_field(number, text.encode()))
            else:
                fields.append(self.field(number, self.number()))
        return self.mixed(fields)

    def event(self):
        rng = self.rng
        fields = [self.field(1, rng.choice((1, 2, 5, 6, self.number())))]
        data = rng.choice(((2,), (2,), (5,), (), (2, 5), (5, 2)))
        fields += [self.field(number, self.number()) for number in data]
        if rng.random() < 0.9:
            fields.append(self.field(3, self.number()))
        fields += [len_field(4, self.stat()) for _ in range(rng.choice((0, 0, 1, 2, 3, 7)))]
        return self.mixed(fields)

    def line(self):
        rng = self.rng
        fields = [
            self.field(1, self.number()),
            len_field(2, rng.choice(("", "tf_main/1", "é", "n" * 600)).encode()),
            self.field(3, self.number()),
        ]
        fields += [len_field(4, self.event()) for _ in range(rng.choice((0, 1, 5, 30)))]
        if rng.random() < 0.3:
            fields += [len_field(11, b"shown"), self.field(10, 5)]
        return self.mixed(fields)

    def space(self):
        """A space of one plane, and where its lines lie."""
        lines = [self.line() for _ in range(self.rng.randrange(1, 4))]
        content = len_field(1, varint_field(1, 0) + b"".join(len_field(3, line) for line in lines))
        if self.damaging and self.rng.random() < 0.3:
            content = bytearray(content)
            for _ in range(self.rng.choice((1, 5))):
                content[self.rng.randrange(8, len(content))] = self.rng.randrange(256)
        return bytes(content), lines


def spans_of(content):
    outline = read_outline(memory_file(content))
    return outline.planes[0].lines if outline.planes else Spans(np.zeros(0), np.zeros(0))


@each_sample("seed", range(60), chosen=range(30).__contains__)
def test_odd_lines(seed, monkeypatch, tmp_path):
    content, lines = Writer(seed, damaging=False).space()
    spans = spans_of(content)
    result = every_way(monkeypatch, content, spans, tmp_path / "file")
    expected = by_messages([XLine.FromString(line) for line in lines])
    assert result[:2] == expected[:2]
    assert as_tuples(result[2]) == expected[2]
    assert result[3] == Damage()
    some = every_way(monkeypatch, content, spans, tmp_path / "file", stats=layout.SOME_STATS)
    assert some[1] == [row for row in result[1] if row[2] != layout.NOT_WANTED]
    none = every_way(monkeypatch, content, spans, tmp_path / "file", stats=layout.NO_STATS)
    assert (none[0], none[1]) == (result[0], [])


@each_sample("seed", range(200), chosen=range(60).__contains__)
def test_damaged_lines(seed, monkeypatch, tmp_path):
    content, _ = Writer(seed, damaging=True).space()
    which = (layout.ALL_STATS, layout.SOME_STATS, layout.NO_STATS)[seed % 3]
    every_way(monkeypatch, content, spans_of(content), tmp_path / "file", stats=which)


def test_ids_that_no_table_holds(monkeypatch, tmp_path):
    content, _ = Writer(5, damaging=False).space()
    far = {"kinds": {**_KINDS, -1: 3, 2**40: 4}, "roles": {**_ROLES, -3: 2, 2**21: 5}}
    spans = spans_of(content)
    result = every_way(monkeypatch, content, spans, tmp_path / "file", **far)
    kinds, roles = Lookup(far["kinds"]), Lookup(far["roles"], layout.NOT_WANTED)
    assert kinds.table is None
    near = read_of_xplane_line_reader(content, spans)
    assert [row[:2] + row[3:] for row in result[0]] == [row[:2] + row[3:] for row in near[0]]
    assert [row[2] for row in result[0]] == kinds.of(np.array([row[1] for row in near[0]])).tolist()
    assert [row[2] for row in result[1]] == roles.of(np.array([row[1] for row in near[1]])).tolist()


def test_what_lines_say_is_the_same_whether_their_events_are_read(tmp_path):
    path = tmp_path / "file"
    for seed in range(40):
        content, _ = Writer(seed, damaging=True).space()
        path.write_bytes(content)
        spans, file = spans_of(content), SourceFile(str(path))
        facts = [
            replace(line, end_ps=-FARTHEST_PS)
            for line in read_of_xplane_line_reader(content, spans)[2]
        ]
        assert LineReader(file, spans).read_facts(whole=True) == facts
        file.close()


# A file that somebody cuts short while it is read.


def large(path):
    space = XSpace()
    plane = space.planes.add(name="/host:CPU")
    plane.event_metadata[1].name = "MemoryAllocation"
    line = plane.lines.add(timestamp_ns=5, name="t")
    for at in range(5000):
        line.events.add(metadata_id=1, offset_ps=at, duration_ps=1)
    path.write_bytes(space.SerializeToString())


@pytest.fixture
def on_disk(monkeypatch):
    """What is small is not read when it is opened either."""
    monkeypatch.setattr(files, "_HEAD_BYTES", 1024)


@pytest.mark.usefixtures("on_disk")
def test_a_file_cut_between_two_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(line_reader, "_WINDOW_BYTES", 1 << 10)
    path = tmp_path / "host.xplane.pb"
    large(path)
    file = SourceFile(str(path))
    parts = LineReader(file, read_outline(file).planes[0].lines).parts()
    assert next(parts).ids.size
    with path.open("r+b") as cut:
        cut.truncate(2000)
    with pytest.raises(InputError, match="became shorter while it was read; try again"):
        list(parts)


@pytest.mark.usefixtures("on_disk")
def test_a_file_cut_after_it_was_opened(tmp_path):
    for table in ("events", "event_stats", "memory_snapshots", "lines", "event_types"):
        path = tmp_path / f"{table}.xplane.pb"
        large(path)
        with peakline.open(path) as profile:
            with path.open("r+b") as cut:
                cut.truncate(100)
            with pytest.raises(InputError, match="became shorter while it was read; try again"):
                profile.columns(table)
