"""Directories of dumped programs, which are files of their own."""

from collections import Counter

import pytest
from tests.amplification.cases import hlo_dump

import peakline
from peakline.formats.hlo_dump import reader


@pytest.fixture
def opened(monkeypatch):
    """How often each file was."""
    counts = Counter()
    content_of = reader.content_of

    def counting(path, *words):
        counts[path] += 1
        return content_of(path, *words)

    monkeypatch.setattr(reader, "content_of", counting)
    return counts


def _profile(tmp_path):
    for name, content in hlo_dump.programs(2000).items():
        (tmp_path / name).write_bytes(content)
    return peakline.open(str(tmp_path))


def test_small_programs_are_opened_once_for_all_tables(tmp_path, opened):
    with _profile(tmp_path) as profile:
        for table in reader.DumpReader.tables:
            profile.columns(table)
    assert len(opened) > 10
    assert set(opened.values()) == {1}


def test_whether_a_table_has_rows_is_known_from_the_first_program(tmp_path, opened):
    with _profile(tmp_path) as profile:
        assert profile.has_rows("hlo_instructions")
        assert len(opened) == 1
        assert not profile.has_rows("hlo_heap_events")
        opened.clear()
        assert not profile.has_rows("hlo_heap_events")
        assert not opened, "it is known"


def test_of_very_many_tiny_programs_some_are_left_out(tmp_path):
    for number in range(1100):
        (tmp_path / f"module_{number:04}.f.cpu_after_optimizations.hlo.pb").write_bytes(b"x" * 64)
    with peakline.open(str(tmp_path)) as profile:
        # One more for each 2 KiB.
        assert len(profile.programs()) == 1024 + 1100 * 64 // 2048
        profile.programs()
        (warning,) = profile.warnings
        assert (warning.kind, warning.count) == ("hlo_programs", 42)
    (tmp_path / "module_0000.f.cpu_after_optimizations.hlo.pb").write_bytes(bytes(128 << 10))
    with peakline.open(str(tmp_path)) as profile:
        assert (len(profile.programs()), profile.warnings) == (1100, [])
