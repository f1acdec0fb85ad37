"""``peakline diff`` over a series of profiles, and over a folder of them."""

import json

import pytest
from tests.analysis.records import alloc, events, free
from tests.profile.fake import FakeReader

KIB = 1024


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder of profiles, by name: each holds so many KiB of a history."""

    def make(**sizes):
        readers = {}
        for name, size in sizes.items():
            path = tmp_path / name.replace("_", ".")
            path.write_bytes(b"x")
            rows = [alloc(1, 100 * KIB, op="weights"), alloc(2, size * KIB, op="history")]
            rows += [alloc(3, 1), free(3)]
            readers[str(path)] = FakeReader({"allocator_events": events(rows)})
            readers[str(path)].path = str(path)
        monkeypatch.setattr("peakline.formats.open_reader", lambda path, **_: readers[path])
        return tmp_path, list(readers)

    return make


def test_a_folder_is_read_in_the_order_of_its_numbers(peakline, folder):
    path, _ = folder(heap_10=50, heap_9=40, heap_1=10, heap_2=20)
    (path / ".hidden").write_bytes(b"x")
    (path / "inner").mkdir()
    run = peakline("diff", path, "--json")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    series = document["series"]
    assert [one.rpartition("/")[2] for one in series["paths"]] == [
        "heap.1", "heap.2", "heap.9", "heap.10"
    ]  # fmt: skip
    (grown,) = series["growing"]
    assert grown["op"] == "history"
    assert grown["bytes"] == [size * KIB for size in (10, 20, 40, 50)]
    assert [one["kind"] for one in series["findings"]] == ["leak"]
    # Of all of them the first is compared with the last.
    assert document["before"]["path"].endswith("heap.1")
    assert document["after"]["path"].endswith("heap.10")


def test_the_screen_of_a_series(peakline, folder):
    _, paths = folder(a=10, b=20, c=30)
    run = peakline("diff", *paths)
    assert (run.code, run.err) == (0, "")
    assert "\nover all 3 profiles\n" in run.out
    assert (
        "\ngrows: warning: (unnamed allocator): 10.0 KiB more live in each of 3 profiles: history\n"
    ) in run.out


def test_a_series_in_which_nothing_grows(peakline, folder):
    _, paths = folder(a=10, b=30, c=10)
    run = peakline("diff", *paths)
    assert run.code == 0
    assert run.out.endswith("over all 3 profiles\n  nothing grows from each to the next\n")


def test_two_profiles_are_no_series(peakline, folder):
    _, paths = folder(a=10, b=30)
    assert "series" not in json.loads(peakline("diff", *paths, "--json").out)


def test_one_profile_has_no_difference(peakline, folder):
    path, (one,) = folder(a=10)
    for given, why in ((one, "one profile has no difference"), (path, "fewer than two profiles")):
        run = peakline("diff", given)
        assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
        assert why in run.err
