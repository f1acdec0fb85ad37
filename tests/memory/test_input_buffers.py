"""What stages of tf.data hold at the peak: the elements of a shuffle, a cache, a prefetch."""

from dataclasses import replace

import pytest
from tests.each_row import each_row
from tests.memory.records import of_kind

from peakline.findings.finding import Finding
from peakline.findings.kind import SIGNATURE
from peakline.findings.overlaps import without_lesser_savings
from reference.xspace_builder import SpaceBuilder

MIB = 1 << 20
US = 10**6
PREFETCH = "Iterator::Root::Prefetch"
SHAPES = {"shapes": "[256,256] []", "types": "float int64"}
"""An element of 256 KiB, and a label."""


@pytest.fixture
def held(opened):
    """The findings of so many buffers, made on the threads of a pipeline whose stages say so."""

    def findings(sizes, stages, kind="input_buffers", dense=0):
        builder = SpaceBuilder()
        host = builder.host()
        python, worker = host.line("python"), host.line("tf_data")
        used = 0
        for place, size in enumerate([dense * MIB, *sizes] if dense else sizes):
            used += size
            stats = {
                "allocator_name": "cpu_bfc", "bytes_reserved": 0, "bytes_allocated": used,
                "bytes_available": 1 << 30, "fragmentation": 0.0, "peak_bytes_in_use": used,
                "requested_bytes": size, "allocation_bytes": size, "addr": 4096 * (place + 1),
            }  # fmt: skip
            worker.event("MemoryAllocation", (10 + place) * US, 0, stats)
        for number, (name, stats) in enumerate(stages):
            python.event(name, (1 + number) * US, US // 2, SHAPES | stats)
        for step in range(4):
            python.event("train", (1000 + 100 * step) * US, 90 * US, {"step_num": step, "_r": 1})
        return of_kind(opened(builder), kind)

    return findings


ELEMENT = 256 << 10
SHUFFLE = (f"{PREFETCH}::Shuffle", {"buffered_elements": 63, "buffer_size": 64})
BATCHED = (f"{PREFETCH}::BatchV2", {"batch_size": 4})
SINGLE = (f"{PREFETCH}::BatchV2::Shuffle", SHUFFLE[1])
CACHE = (f"{PREFETCH}::BatchV2::Shuffle::MemoryCacheImpl", {"buffered_elements": 100})
UNKNOWN = {"shapes": "[?,256] []", "buffered_elements": 16, "buffer_limit": 16}
SAYS = {
    "a shuffle of batches": (
        64, 4, [SHUFFLE], "warning", 63, "shuffle of tf.data holds 63 batches of at most 64, 15",
    ),
    "a shuffle of single examples": (
        64, 12, [BATCHED, SINGLE], "info", 63, "shuffle of tf.data holds 63 elements of at most 64",
    ),
    "a cache, whose elements are shuffled": (
        100, 4, [BATCHED, SINGLE, CACHE], "warning", 100, "cache of tf.data holds 100 elements, 25",
    ),
    "a prefetch of batches of unknown size": (
        16, 1, [(PREFETCH, UNKNOWN), (f"{PREFETCH}::BatchV2", {"batch_size": 256})], "warning", 16,
        "prefetch of tf.data holds 16 batches of at most 16, 4.0 MiB of 5.0 MiB",
    ),
    "what it held last": (
        64, 4, [SHUFFLE, (SHUFFLE[0], {"buffered_elements": 40})], "warning", 40,
        "shuffle of tf.data holds 40 batches, 10.0 MiB",
    ),
}  # fmt: skip


@each_row(("count", "dense", "stages", "severity", "number", "words"), SAYS.values())
def test_the_stage_that_holds_most_is_named(held, count, dense, stages, severity, number, words):
    (finding,) = held([ELEMENT] * count, stages, dense=dense)
    assert words in finding.title
    assert finding.severity == severity
    assert finding.evidence["bytes"] == number * ELEMENT
    assert finding.evidence["share"] == number * ELEMENT / (count * ELEMENT + dense * MIB)
    assert finding.evidence["least_saved_bytes"] <= finding.evidence["saved_bytes"]
    assert finding.evidence["saved_bytes"] == (number - 2) * ELEMENT


SILENT = {
    "two batches ahead": (20, [(PREFETCH, {"buffered_elements": 2, "buffer_limit": 2})]),
    "buffers of another size": (64, [(SHUFFLE[0], SHUFFLE[1] | {"shapes": "[256,255] []"})]),
    "fewer buffers than elements": (20, [SHUFFLE]),
    "texts": (64, [(SHUFFLE[0], SHUFFLE[1] | {"shapes": "[]", "types": "string"})]),
    "stages that say nothing": (64, [(SHUFFLE[0], {"buffer_size": 64})]),
}


@each_row(("count", "stages"), SILENT.values())
def test_what_no_stage_says_is_not_held_by_one(held, count, stages):
    assert held([ELEMENT] * count, stages) == []


def test_a_buffer_that_fills_is_no_leak(held):
    (finding,) = held([ELEMENT] * 64, [SHUFFLE])
    same = {name: finding.evidence[name] for name in SIGNATURE}
    grown = Finding("leak", "warning", "more with every step", same, "")
    other = replace(grown, evidence=same | {"shape": "[3]"})
    assert without_lesser_savings([grown, other, finding]) == [other, finding]
    assert without_lesser_savings([grown]) == [grown]
