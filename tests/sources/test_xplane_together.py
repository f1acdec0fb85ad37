"""Events and memory from one pass over the file: the same tables as from one for each. Columns that
need no grouping are read without it, and are the same.
"""

import itertools
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.sweeps import each_sample

import peakline
from peakline.errors import DeadlineError
from peakline.formats import open_reader
from peakline.formats.xplane import file_steps, memory, passes
from peakline.formats.xplane.events import PLAIN
from peakline.tables.reader import Warnings
from peakline.tables.tables import TABLES
from reference.cases import CASES
from reference.random_xspace import random_xspace

NAMES = sorted(CASES.keys() - {"no_planes"})
IN_EVERY_RUN = set(NAMES[::4])
"""A fourth of the cases; the night reads all, and `test_random_spaces` other files in every run."""
_TABLES = ("events", "allocator_events", "memory_snapshots", "steps")


def tables_of(path, order, *, expected):
    """The tables as rows, read in this order."""
    with peakline.open(path) as profile:
        profile.expect(*expected)
        names = [name for name in order if name in profile.tables]
        found = {name: profile.columns(name) for name in names}
        # Only now: what is read later must not change what was given out.
        rows = {name: list(map(repr, table.to_pylist())) for name, table in found.items()}
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


@each_sample("name", NAMES, chosen=IN_EVERY_RUN.__contains__)
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
            found = {name: list(map(repr, profile.columns(name).to_pylist())) for name in apart}
        assert found == apart
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


@each_sample("name", NAMES, chosen=IN_EVERY_RUN.__contains__)
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
