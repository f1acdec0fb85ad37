"""What profiles share: work done once, answers retained."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.formats.format_samples import samples
from tests.hanging import HANG_S
from tests.sweeps import each_sample
from tests.tables.fake import FakeReader

import peakline
from peakline.errors import PeaklineError, UsageError
from peakline.tables import Columns, Derivation, Names, Profile
from peakline.tables.once import once
from peakline.tables.retained import retained_bytes
from peakline.tools import available_tools, run_tool

STEP = {"step_id": 0, "name": "train 1", "start_ps": 10, "end_ps": 20}


class Knowing(FakeReader):
    """Knows of some tables whether they have rows."""

    known: dict[str, bool] = {}  # noqa: RUF012 (set by tests)

    def has_rows(self, table):
        return self.known.get(table)


class TestHasRows:
    def test_tables_that_are_not_there_and_empty_ones(self):
        tables = {"steps": [STEP], "events": []}
        profile = Profile(FakeReader(tables))
        assert profile.has_rows("steps")
        assert not profile.has_rows("events")
        assert not profile.has_rows("buffers")
        assert not profile.has_rows("nonsense")
        assert not profile.has_rows("warnings")
        profile.warn("odd", "one")
        assert profile.has_rows("warnings")

    @each_row("known", [True, False])
    def test_a_reader_that_knows_is_not_asked_to_read(self, known):
        reader = Knowing({"steps": [STEP]})
        reader.known = {"steps": known}
        assert Profile(reader).has_rows("steps") is known
        assert not reader.reads

    def test_what_is_made_of_empty_tables_is_not_made(self):
        def make(profile):
            return profile.columns("steps")

        reader = Knowing({"events": []})
        derived = {"steps": Derivation(("events",), make)}
        assert not Profile(reader, derived=derived).has_rows("steps")

    @each_sample("path", sorted(p for p in DATA.rglob("*.xplane.pb*") if p.is_file()))
    def test_an_xspace_says_the_same_as_its_tables(self, path):
        with peakline.open(path) as profile:
            said = {name: profile.has_rows(name) for name in profile.tables}
        with peakline.open(path) as profile:
            assert said == {name: profile.columns(name).rows > 0 for name in profile.tables}


class TestQuestion:
    def test_what_it_warns_of_is_its_own(self):
        losses = {"steps": ("truncated", "12 bytes lost", 12)}
        profile = Profile(FakeReader({"steps": [STEP]}, losses=losses))
        with profile.question() as first:
            profile.warn("odd", "one")
            profile.columns("steps")
            assert [w.kind for w in first()] == ["truncated", "odd"]
        with profile.question() as second:
            profile.warn("odd", "two")
            assert second() == [("truncated", 12, "12 bytes lost"), ("odd", 1, "two")]
        assert profile.warnings == [("truncated", 12, "12 bytes lost")]

    def test_it_belongs_to_one_profile(self):
        one, other = (Profile(FakeReader({}, host=host)) for host in "ab")
        with one.question() as warnings:
            other.warn("odd", "of the other")
            assert warnings() == []
        assert other.warnings == [("odd", 1, "of the other")]


class TestRetained:
    def test_arrays_count_once(self):
        array = np.zeros(1000, np.int64)
        assert 8000 <= retained_bytes([array, array[10:], array.view(np.uint8)]) < 8400
        assert 8000 <= retained_bytes(Columns({"a": array}), [array]) < 9000

    def test_arrow_shares_with_numpy(self):
        array = np.arange(100_000, dtype=np.int64)
        table = pa.table({"a": array, "b": pa.array(["x"] * 100_000)})
        assert 1_200_000 < retained_bytes(array, table) < 1_400_000
        assert retained_bytes(Columns({"a": array}).arrow(), array) < 810_000

    def test_texts_and_names(self):
        size = retained_bytes(Names.encode([f"some name {number}" for number in range(10_000)]))
        assert 10_000 * 60 < size < 10_000 * 100

    def test_a_mapped_file_does_not_count(self, tmp_path):
        path = tmp_path / "file"
        path.write_bytes(bytes(1 << 20))
        assert retained_bytes(np.memmap(path, np.uint8, "r")[5:]) < 1000
        assert retained_bytes(np.frombuffer(path.read_bytes(), np.uint8)) > 1 << 20

    def test_a_profile_grows_with_what_is_read(self):
        path = DATA / "chrome_trace/noleak.pt.trace.json.gz"
        with peakline.open(path) as profile:
            before = profile.nbytes
            profile.columns("events")
            events = profile.nbytes
            profile.table("events")
            assert 0 < before < events < profile.nbytes


def _reader():
    return FakeReader({"steps": []})


@pytest.fixture
def profile():
    with Profile(_reader()) as result:
        yield result


def test_it_is_made_once_for_each_profile_and_argument(profile):
    calls = []

    @once
    def made(_profile, number=0, *, word=""):
        calls.append((number, word))
        return [number]

    assert made(profile) is made(profile)
    assert made(profile, 1) is made(profile, 1)
    assert made(profile, word="a") is not made(profile)
    with Profile(_reader()) as other:
        assert made(other) is not made(profile)
    assert calls == [(0, ""), (1, ""), (0, "a"), (0, "")]


def test_after_an_error_it_is_tried_again(profile):
    errors = [ValueError("no")]

    @once
    def made(_):
        if errors:
            raise errors.pop()
        return 7

    with pytest.raises(ValueError, match="no"):
        made(profile)
    assert made(profile) == 7


def test_a_result_counts_as_retained_and_ends_with_the_profile():
    @once
    def made(_):
        return bytes(100_000)

    profile = Profile(_reader())
    before = profile.nbytes, profile.held
    made(profile)
    assert (profile.nbytes - before[0]) // 100_000 == 1
    assert profile.held > before[1]
    profile.close()
    with pytest.raises(UsageError, match="closed"):
        made(profile)


def test_who_wants_the_same_waits_and_who_wants_another_does_not(profile):
    begun, other_is_made = threading.Event(), threading.Event()
    calls = []

    @once
    def slow(_):
        calls.append("slow")
        begun.set()
        assert other_is_made.wait(HANG_S)
        return object()

    @once
    def quick(_):
        return "quick"

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(slow, profile)
        assert begun.wait(HANG_S)
        second = threads.submit(slow, profile)
        assert quick(profile) == "quick"
        assert profile.tables
        other_is_made.set()
        assert first.result(HANG_S) is second.result(HANG_S)
    assert calls == ["slow"]


def test_no_lock_is_held_that_a_table_needs(profile):
    table = next(name for name in profile.tables if name != "warnings")
    begun, is_read = threading.Event(), threading.Event()

    @once
    def slow(_):
        begun.set()
        assert is_read.wait(HANG_S)

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(slow, profile)
        assert begun.wait(HANG_S)
        profile.columns(table)
        is_read.set()
        waiting.result(HANG_S)


_DATA = Path(__file__).parent.parent / "data"
_SESSION = "sessions/tf2_multihost/plugins/profile/2026_11_20_17_33_46/localhost_47507.xplane.pb"


def read_all(path):
    """The profile of ``path``, still open, after every table and tool was asked for."""
    profile = peakline.open(path)
    for table in profile.tables:
        profile.columns(table)
    for tool in available_tools(profile):
        try:
            run_tool(profile, tool)
        except PeaklineError:
            continue
    return profile


def arrays_below(root):
    """Bytes of all NumPy arrays that attributes of ours lead to, each once."""
    seen, sizes, waiting, alive = set(), {}, [root], []
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        alive.append(item)
        if isinstance(item, np.ndarray):
            while isinstance(item.base, np.ndarray):
                item = item.base
            if item.base is None:
                sizes[item.__array_interface__["data"][0]] = item.nbytes
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, (list, tuple, set, frozenset)):
            waiting += item
        elif type(item).__module__.startswith("peakline.") and hasattr(item, "__dict__"):
            waiting += vars(item).values()
    return sum(sizes.values())


def check_declared(path):
    with read_all(path) as profile:
        undeclared = set()
        size = retained_bytes(profile, undeclared=undeclared)
        assert [kind for kind in undeclared if kind.__module__.startswith("peakline.")] == []
        assert profile.nbytes == size >= arrays_below(profile)


def test_every_reader_declares_what_it_holds(tmp_path):
    for sample in samples(_DATA):
        path = tmp_path / sample.name
        path.write_bytes(sample.file)
        check_declared(path)


@each_row("name", [_SESSION, "programs/leak_list.xplane.pb.gz"])
def test_every_answer_declares_what_it_holds(name):
    check_declared(_DATA / name)


def test_what_declares_nothing_is_noticed():
    class Holder:
        def __init__(self):
            self.values = np.zeros(1000, np.int64)

    undeclared = set()
    assert retained_bytes(Holder(), undeclared=undeclared) < 100
    assert undeclared == {Holder}
    Holder.__retained__ = "values missing"
    assert retained_bytes(Holder()) > 8000
