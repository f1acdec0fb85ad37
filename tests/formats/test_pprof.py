"""Heaps in pprof's format."""

from pathlib import Path

import pytest

import peakline
from peakline import schema
from peakline.errors import DamagedError
from peakline.formats.common.files import SourceFile
from peakline.formats.pprof.reader import PprofReader

SAMPLE = "tests/data/pprof/device_memory.pprof.pb.gz"


def heap(types=(("objects", "count"), ("space", "bytes"))):
    """An empty profile, and what adds strings to it."""
    profile = schema.message("perftools.profiles.Profile")()
    profile.string_table.append("")

    def text(string):
        if string not in profile.string_table:
            profile.string_table.append(string)
        return list(profile.string_table).index(string)

    for kind, unit in types:
        profile.sample_type.add(type=text(kind), unit=text(unit))
    return profile, text


def two_functions():
    profile, text = heap()
    profile.function.add(id=7, name=text("inner"), filename=text("/x/site-packages/lib/a.py"))
    profile.function.add(id=9, name=text("train"), filename=text("/home/me/train.py"))
    # Inlined code: the last line is the caller.
    both = profile.location.add(id=3)
    both.line.add(function_id=7, line=1)
    both.line.add(function_id=9, line=2)
    profile.location.add(id=4, address=0xABC)
    return profile, text


def opened(tmp_path, profile, data=None):
    path = tmp_path / "heap.pb"
    path.write_bytes(profile.SerializeToString() if data is None else data)
    return peakline.open(str(path))


def rows(profile, table, *columns):
    return [tuple(row[column] for column in columns) for row in profile.columns(table).to_pylist()]


def test_a_row_per_sample_with_memory(tmp_path):
    profile, text = two_functions()
    sample = profile.sample.add(location_id=[3], value=[2, 64])
    sample.label.add(key=text("device"), str=text("gpu:1"))
    sample.label.add(key=text("kind"), str=text("buffer"))
    profile.sample.add(location_id=[3], value=[5, 0])
    profile.sample.add(location_id=[4, 3], value=[1, 8])
    assert rows(
        opened(tmp_path, profile), "buffers", "allocator", "op", "region_type",
        "allocated_bytes", "count", "stack_id", "start_ps", "end_ps",
    ) == [
        ("gpu:1", "train train.py:2", "buffer", 64, 2, 0, None, None),
        ("", "train train.py:2", None, 8, 1, 1, None, None),
    ]  # fmt: skip


def test_sizes_below_zero_are_counted(tmp_path):
    profile, text = two_functions()
    for size, kind in ((64, "buffer"), (-1, "executable"), (-1, "executable"), (0, "executable")):
        sample = profile.sample.add(location_id=[3], value=[1, size])
        sample.label.add(key=text("kind"), str=text(kind))
    result = opened(tmp_path, profile)
    assert rows(result, "buffers", "region_type", "allocated_bytes") == [("buffer", 64)]
    assert result.warnings == [
        (
            "unknown_sizes",
            2,
            "samples (executable) of a size that the runtime does not know, left out",
        )
    ]


def test_stacks_are_innermost_first_and_each_there_once(tmp_path):
    profile, _ = two_functions()
    profile.sample.add(location_id=[4, 3], value=[1, 8])
    profile.sample.add(location_id=[4, 3], value=[1, 9])
    profile.sample.add(location_id=[3], value=[1, 9])
    assert rows(opened(tmp_path, profile), "stacks", "stack_id", "depth", "function", "line") == [
        (0, 0, "0xabc", 0),
        (0, 1, "inner", 1),
        (0, 2, "train", 2),
        (1, 0, "inner", 1),
        (1, 1, "train", 2),
    ]


def test_the_live_memory_of_a_heap_that_also_counts_what_is_freed(tmp_path):
    profile, _ = heap(
        (("alloc_objects", "count"), ("alloc_space", "bytes"),
         ("inuse_objects", "count"), ("inuse_space", "bytes"))
    )  # fmt: skip
    profile.sample.add(value=[10, 1000, 3, 300])
    profile.sample.add(value=[10, 1000, 0, 0])
    assert rows(opened(tmp_path, profile), "buffers", "allocated_bytes", "count", "stack_id") == [
        (300, 3, None)
    ]


def test_labels_of_other_writers(tmp_path):
    profile, text = heap((("space", "kilobytes"),))
    sample = profile.sample.add(value=[3])
    sample.label.add(key=text("pool"), str=text("a"))
    sample.label.add(key=text("tag"), str=text("b"))
    sample.label.add(key=text("bytes"), num=8)
    assert rows(
        opened(tmp_path, profile), "buffers", "region_type", "allocated_bytes", "count"
    ) == [("pool=a, tag=b", 3072, None)]


def test_a_profile_of_something_else(tmp_path):
    profile, text = heap((("samples", "count"), ("cpu", "nanoseconds")))
    profile.location.add(id=1, address=16)
    profile.sample.add(location_id=[1], value=[1, 10])
    profile.duration_nanos = 5
    with opened(tmp_path, profile) as result:
        assert result.tables == ["stacks", "warnings"]
        assert rows(result, "stacks", "function") == [("0x10",)]
        assert result.duration_ps == 5000
        assert result.warnings == [
            (
                "no_memory_values",
                1,
                "the profile measures samples/count, cpu/nanoseconds, not memory",
            )
        ]
    assert text("cpu")


def test_references_to_nothing_are_counted(tmp_path):
    profile, _ = heap()
    profile.location.add(id=1).line.add(function_id=99, line=4)
    profile.sample.add(location_id=[1, 5], value=[1, 10])
    profile.sample.add(location_id=[1], value=[1])
    with opened(tmp_path, profile) as result:
        assert rows(result, "stacks", "function", "line") == [("", 4)]
        assert [(w.kind, w.count) for w in result.warnings] == [
            ("missing_locations", 2), ("sample_values", 1),
        ]  # fmt: skip


def test_a_file_cut_after_the_names_of_its_values(tmp_path):
    profile, text = two_functions()
    profile.sample.add(location_id=[3], value=[1, 10])
    text("a name that comes last")
    with opened(tmp_path, None, profile.SerializeToString()[:-5]) as result:
        assert rows(result, "buffers", "allocated_bytes") == [(10,)]
        assert [w.kind for w in result.warnings] == ["damaged"]


def test_a_file_cut_before_the_names_of_its_values(root):
    file = SourceFile(str(root / SAMPLE))
    with pytest.raises(DamagedError, match="does not say what the profile measures"):
        PprofReader(file.translated(file.buffer[:1500]))


def test_a_real_device_memory_profile(root: Path):
    with peakline.open(str(root / SAMPLE)) as profile:
        result = rows(profile, "buffers", "allocator", "region_type", "allocated_bytes", "count")
        peaks = {}
        for allocator, region, size, count in result:
            assert region == "buffer"
            total, number = peaks.get(allocator, (0, 0))
            peaks[allocator] = total + size, number + count
        assert peaks == {
            "cpu:0": (10162184, 25),
            "cpu:1": (196608, 2),
            "cpu:2": (196608, 2),
            "cpu:3": (196608, 2),
        }
        assert profile.warnings == []
