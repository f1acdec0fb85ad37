import re

import pytest

from peakline.errors import UsageError
from peakline.replay.torch_settings import MIB, CachingSettings


def test_the_default_is_pytorchs():
    assert CachingSettings.parse("") == CachingSettings()
    assert CachingSettings().rounding_bytes == 20 * MIB


def test_a_text_is_read():
    found = CachingSettings.parse(
        "max_split_size_mb:64, max_non_split_rounding_mb:40,garbage_collection_threshold:0.8,"
        "expandable_segments:True,large_segment_size_mb:32,per_process_memory_fraction:0.5,"
        "roundup_power2_divisions:[2:8,16:4,>:2],pinned_num_register_threads:4,backend:native"
    )
    assert found.max_split_bytes == 64 * MIB
    assert found.rounding_bytes == 40 * MIB
    assert found.garbage_collection_threshold == 0.8
    assert found.expandable_segments
    assert found.large_segment_bytes == 32 * MIB
    assert found.memory_fraction == 0.5
    assert found.roundup_power2_divisions == (8, 8, 0, 0, 4) + (2,) * 11
    assert CachingSettings.parse("roundup_power2_divisions:4").roundup_power2_divisions == (4,) * 16
    # Its own least is the large segment, wherever that stands.
    assert CachingSettings.parse("max_split_size_mb:12,large_segment_size_mb:11").max_split_bytes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_split:5", "no setting 'max_split'; did you mean 'max_split_size_mb'?"),
        ("max_split_size_mb", "has no value"),
        ("max_split_size_mb:", "has no value"),
        ("max_split_size_mb:19", "too small, PyTorch takes 20 or more"),
        ("max_split_size_mb:-1", "no whole number"),
        ("max_split_size_mb:many", "no whole number"),
        ("large_segment_size_mb:10", "too small"),
        ("large_segment_size_mb:32,max_non_split_rounding_mb:20", "takes 32 or more"),
        ("garbage_collection_threshold:1.0", "not below 1"),
        ("garbage_collection_threshold:nan", "no part"),
        ("garbage_collection_threshold:x", "no part"),
        ("per_process_memory_fraction:1.5", "no part"),
        ("expandable_segments:yes", "neither True nor False"),
        ("roundup_power2_divisions:3", "no power of 2"),
        ("roundup_power2_divisions:[2:8", "no closing bracket"),
        ("roundup_power2_divisions:[3:8]", "3 MiB is no power of 2"),
        ("roundup_power2_divisions:[8]", "not written SIZE:DIVISIONS"),
        ("backend:cudaMallocAsync", "only native is modelled"),
    ],
)
def test_what_pytorch_does_not_know_is_named(text, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        CachingSettings.parse(text)


def test_the_settings_of_a_snapshot_are_read():
    found = CachingSettings.of_snapshot(
        {
            "PYTORCH_CUDA_ALLOC_CONF": "large_segment_size_mb:48",
            "max_split_size": 64 * MIB,
            "garbage_collection_threshold": 0.5,
            "expandable_segments": True,
            "roundup_power2_divisions": {"1": 4, "2": 0, "64": 2, "4": "x"},
        }
    )
    assert found == CachingSettings(
        max_split_bytes=64 * MIB,
        roundup_power2_divisions=(4, 0, 0, 0, 0, 0, 2) + (0,) * 9,
        garbage_collection_threshold=0.5,
        expandable_segments=True,
        large_segment_bytes=48 * MIB,
    )
    assert CachingSettings.of_snapshot({"max_split_size": -1}) == CachingSettings()
    assert CachingSettings.of_snapshot({"max_split_size": "x", 5: None}) == CachingSettings()


def test_a_fraction_of_one_limits_nothing():
    whole = CachingSettings(memory_fraction=1.0, garbage_collection_threshold=0.8)
    assert whole.allowed(100) is None
    assert whole.threshold(100) is None
    part = CachingSettings(memory_fraction=0.5, garbage_collection_threshold=0.8)
    assert (part.allowed(1000), part.threshold(1000)) == (500, 400)
    assert CachingSettings(garbage_collection_threshold=0.8).threshold(1000) is None
