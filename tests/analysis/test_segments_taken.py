"""Segments that a caching allocator took although enough was free, and the finding of it."""

from tests.analysis.histories import history
from tests.analysis.records import alloc, free
from tests.analysis.stacks import of_kind, profile_with

from peakline.memory.fragmentation.segments import segments_taken

MIB = 1 << 20


def segment(size, op, action="segment_alloc"):
    return {
        "activity": "reservation", "allocated_bytes": size, "region_type": action, "op": op,
    }  # fmt: skip


def job(count, *, op="encode"):
    """Each step needs a little more than the one before, and takes a segment for it."""
    rows = []
    for number in range(count):
        size = (100 + number) * MIB
        rows += [segment(size, op), alloc(number, size, op=op), free(number)]
    return rows


def test_what_was_taken_in_vain():
    found = segments_taken(history(job(4)), 0)
    assert (found.segments, found.forced) == (4, 2)
    assert (found.reserved_bytes, found.used_bytes) == ((100 + 101 + 102 + 103) * MIB, 103 * MIB)
    assert found.ops == (("encode", 205 * MIB, 2),)


def test_what_is_too_little_or_not_recorded():
    assert segments_taken(history(job(1)), 0) is None
    assert segments_taken(history([alloc(1, 8), free(1)]), 0) is None
    # Each segment is given back before the next is taken.
    rows = []
    for number in range(4):
        size = (100 + number) * MIB
        rows += [segment(size, "x"), alloc(number, size), free(number)]
        rows += [segment(size, "x", "segment_free")]
    assert segments_taken(history(rows), 0) is None


def test_fragmentation_of_segments():
    (finding,) = of_kind(profile_with(job(4)), "fragmentation")
    assert "2 of 4 segments were taken while enough was free" in finding.title
    assert (finding.evidence["op"], finding.evidence["forced"]) == ("encode", 2)
    assert finding.evidence["wasted_bytes"] == 205 * MIB
    assert of_kind(profile_with(job(1)), "fragmentation") == []


def growing(count, *, settles=False):
    """A small pool in which a tensor grows by each token, or has one of two sizes."""
    rows = []
    for number in range(count):
        size = (5 + (number % 2 if settles else number)) * MIB
        rows += [segment(20 * MIB, "extend")] if number % 4 == 0 else []
        rows += [alloc(number, size, op="extend"), free(number)]
    return rows


def test_a_small_pool_counts_where_sizes_never_settle():
    found = segments_taken(history(growing(12)), 0)
    assert (found.reserved_bytes, found.used_bytes) == (60 * MIB, 16 * MIB)
    assert found.ops[0][0] == "extend"
    assert segments_taken(history(growing(12, settles=True)), 0) is None
    # State that is made once for each weight.
    assert segments_taken(history(growing(11)), 0) is None
