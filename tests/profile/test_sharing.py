"""What shared profiles need: rows without reading, sizes, warnings by question."""

import numpy as np
import pyarrow as pa
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.profile.fake import FakeReader
from tests.sweeps import each_sample

import peakline
from peakline.tables import Columns, Derivation, Names, Profile
from peakline.tables.retained import retained_bytes

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
