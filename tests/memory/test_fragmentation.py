"""Free bytes that do not fit: fragmentation, segments, and who waits for memory."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.memory.kinds import found_by
from tests.memory.records import alloc, free, history, of_kind, profile_with, records

import peakline
from peakline.findings.kinds import fragmentation as kind
from peakline.memory.fit.late_allocations import LATE_PS
from peakline.memory.fit.waits import waits_of
from peakline.memory.fragmentation.holes import find_fragmentation
from peakline.memory.fragmentation.segments import segments_taken
from reference.memory_history import buffers, fragmentation
from reference.xspace_builder import SpaceBuilder

KIB = 1024


def find(rows, number=0):
    return find_fragmentation(history(rows), number)


def blocks(count, *, block=64 * KIB, pin=KIB, pinned=True):
    """Blocks side by side, each with a small buffer behind it; then the blocks are freed."""
    rows, place = [], 0
    for _ in range(count):
        rows.append(alloc(place, block, op="load"))
        place += block
        if pinned:
            rows.append(alloc(place, pin, op="summary", shape="[256]", data_type="float"))
            place += pin
    rows += [free(number * (block + (pin if pinned else 0))) for number in range(count)]
    return rows, place


def test_free_memory_between_buffers_and_its_largest_piece():
    rows = [alloc(0, 10), alloc(10, 10), alloc(20, 30), alloc(50, 10), free(0), free(20)]
    result = find(rows)
    assert result.time_ps.tolist() == list(range(6))
    assert result.free.tolist() == [0, 0, 0, 0, 10, 40]
    assert result.largest.tolist() == [0, 0, 0, 0, 10, 30]
    assert result.holes.tolist() == [0, 0, 0, 0, 1, 2]
    assert (result.touched_bytes, result.peak_bytes) == (60, 60)


def test_memory_that_no_buffer_lay_on_is_not_known_to_be_free():
    result = find([alloc(0, 10), alloc(1000, 10), free(0), free(1000)])
    assert (result.free[-1], result.largest[-1], result.holes[-1]) == (20, 10, 2)
    assert result.touched_bytes == 20


def test_the_figure_of_the_allocator_is_given_beside():
    result = find([alloc(0, 10, fragmentation=0.25), free(0)])
    assert result.reported[0] == 0.25
    assert math.isnan(result.reported[1])


def test_buffers_without_addresses_have_no_layout():
    assert find([alloc(None, 10, allocation_id=3)]) is None


def test_an_address_at_the_end_of_the_address_space():
    assert find([alloc(2**64 - 4, 100), free(2**64 - 4), alloc(0, 5)]).touched_bytes == 8


def test_the_request_that_found_enough_free_but_in_pieces():
    rows, place = blocks(6)
    rows.append(alloc(place, 256 * KIB, op="train", shape="[65536]"))
    result = find(rows)
    (forced,) = result.forced
    assert (forced.bytes, forced.free, forced.largest) == (256 * KIB, 6 * 64 * KIB, 64 * KIB)
    assert forced.signature.op == "train"
    assert forced.new_bytes == 256 * KIB
    assert result.worst == forced
    assert [(hole.from_bytes, hole.count, hole.bytes) for hole in result.at_worst] == [
        (64 * KIB, 6, 6 * 64 * KIB)
    ]


def test_what_stands_between_the_holes():
    rows, place = blocks(6)
    rows.append(alloc(place, 256 * KIB, op="train", shape="[65536]"))
    pins = find(rows).pins
    assert (pins.holes, pins.largest, pins.bytes) == (6, 64 * KIB, 6 * 64 * KIB + 5 * KIB)
    (pin,) = pins.pins
    assert (pin.signature.op, pin.count, pin.bytes, pin.since_ps) == ("summary", 5, 5 * KIB, 1)


def test_a_large_buffer_between_holes_is_no_pin():
    rows, place = blocks(6, pin=32 * KIB)
    rows.append(alloc(place, 256 * KIB, op="train"))
    assert find(rows).pins is None


def test_a_short_lived_buffer_between_holes_is_no_pin():
    rows, place = blocks(6)
    # All small buffers are freed soon after the request, and much happens later.
    rows.append(alloc(place, 256 * KIB, op="train"))
    rows += [free(row["address"]) for row in rows if row.get("op") == "summary"]
    rows += [alloc(0, 1, op="later"), free(0)] * 100
    assert find(rows).pins is None


def test_the_finding_names_the_pins_and_the_request():
    rows, place = blocks(6)
    rows.append(alloc(place, 256 * KIB, op="train", shape="[65536]"))
    result = find(rows)
    assert result.recoverable_bytes == min(256 * KIB, result.touched_bytes - result.peak_bytes)
    (finding,) = found_by(kind, fragmentation=result, savings=())
    assert finding.evidence["wasted_bytes"] == result.recoverable_bytes
    replayed = SimpleNamespace(kind="fragmentation", is_replayed=True, bytes=KIB)
    (other,) = found_by(kind, fragmentation=result, savings=(replayed,))
    assert other.evidence["wasted_bytes"] == KIB
    assert (finding.kind, finding.severity) == ("fragmentation", "warning")
    evidence = finding.as_json()["evidence"]
    assert (evidence["op"], evidence["shape"], evidence["pins"]) == ("summary", "[256]", 5)
    assert (evidence["asked_by"], evidence["asked_bytes"]) == ("train", 256 * KIB)
    assert evidence["rows"][0]["count"] == 5


@each_row(
    "healthy",
    [
        # No pins, few holes, what fits, and what is small.
        [*blocks(6, pinned=False)[0], alloc(0, 256 * KIB, op="train")],
        [*blocks(3)[0], alloc(10**6, 128 * KIB, op="train")],
        [*blocks(6)[0], alloc(0, 64 * KIB, op="train")],
        [*blocks(6)[0], alloc(10**6, 10 * KIB, op="train")],
    ],
)
def test_no_finding_without_damage(healthy):
    assert found_by(kind, fragmentation=find(healthy)) == []


@settings(max_examples=200)
@given(records, st.data())
def test_the_course_and_the_forced_requests_equal_the_slow_answer(rows, data):
    made = history(rows)
    del data
    for number, allocator in enumerate(made.lifetimes.allocators):
        result = find_fragmentation(made, number)
        own = [one for one in buffers(rows) if one.allocator == allocator]
        if result is None:
            assert not [one for one in own if one.address is not None and one.allocated > 0]
            continue
        course, forced = fragmentation(rows, allocator)
        shown = zip(
            result.time_ps.tolist(),
            result.free.tolist(),
            result.largest.tolist(),
            result.holes.tolist(),
            strict=True,
        )
        for row, *figures in shown:
            assert tuple(figures) == course[row]
        assert len(result.time_ps) == len(made.rows_of(number))
        assert [(f.row, f.new_bytes, f.free, f.largest) for f in result.forced] == forced


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
    result = segments_taken(history(job(4)), 0)
    assert (result.segments, result.forced) == (4, 2)
    assert (result.reserved_bytes, result.used_bytes) == ((100 + 101 + 102 + 103) * MIB, 103 * MIB)
    assert result.ops == (("encode", 205 * MIB, 2),)


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
    result = segments_taken(history(growing(12)), 0)
    assert (result.reserved_bytes, result.used_bytes) == (60 * MIB, 16 * MIB)
    assert result.ops[0][0] == "extend"
    assert segments_taken(history(growing(12, settles=True)), 0) is None
    # State that is made once for each weight.
    assert segments_taken(history(growing(11)), 0) is None


DATA = Path(__file__).parents[1] / "data" / "memory_waits"


@pytest.fixture
def tight():
    with peakline.open(DATA / "limit_24.xplane.pb.gz") as profile:
        yield profile


def test_ops_that_waited_for_other_threads_are_found(tight):
    result = waits_of(tight)
    assert len(result) > 20
    assert {one.allocator for one in result} == {"bfc_cpu_allocator_for_gpu"}
    assert min(one.wait_ps for one in result) > LATE_PS
    events = tight.columns("allocator_events")
    for one in result:
        assert events.names("activity")[one.row] == "allocation"
        assert one.begin_ps + one.wait_ps == events.array("time_ps")[one.row]
        # Just before it was served, another thread freed memory.
        earlier = events.array("time_ps")[: one.row]
        freed = np.array(events.names("activity").to_list()[: one.row]) == "deallocation"
        assert ((earlier > one.begin_ps) & freed).any()


def test_the_finding_says_how_long_and_for_what(tight):
    (finding,) = [one for one in tight.time().findings if one.kind == "allocation_wait"]
    assert finding.severity == "warning"
    assert "waited for memory that other threads held" in finding.title
    evidence = finding.evidence
    assert evidence["count"] == len(waits_of(tight))
    assert 0.05 < evidence["share"] <= 1
    assert len(finding.rows) == 20
    waited = [row["wait_ps"] for row in finding.rows]
    assert waited == sorted(waited, reverse=True)


def test_nothing_waits_where_there_is_enough():
    with peakline.open(DATA / "limit_65536.xplane.pb.gz") as profile:
        assert waits_of(profile) == []
        assert "allocation_wait" not in {one.kind for one in profile.time().findings}


MEMORY = {
    "allocator_name": "GPU_0_bfc", "bytes_reserved": 0, "fragmentation": 0.0,
    "peak_bytes_in_use": 0, "tf_op": "MatMul", "data_type": 1, "region_type": "temp",
    "tensor_shape": "[8]", "bytes_limit": 0,
}  # fmt: skip


def memory(line, kind, at, address, size, in_use, limit=4096):
    line.event(
        kind,
        at,
        0,
        MEMORY
        | {
            "bytes_allocated": in_use,
            "bytes_available": limit - in_use,
            "requested_bytes": size,
            "allocation_bytes": size,
            "addr": address,
        },
    )


def recorded(tmp_path, late_ps, room, *, busy_ps=0):
    """One thread holds 2,048 bytes; another op, which works for ``busy_ps`` first, needs as much
    and gets it when they are freed.
    """
    builder = SpaceBuilder()
    host = builder.host()
    holder, waiter = host.line("holder", 0), host.line("waiter", 0)
    memory(holder, "MemoryAllocation", 100, 4096, 2048, 2048, room)
    memory(holder, "MemoryDeallocation", 500 + late_ps - 10, 4096, 2048, 0, room)
    waiter.event("MatMul", 500, late_ps + 1000)
    if busy_ps:
        waiter.event("Transpose", 500, busy_ps)
        waiter.event("Inside", 510, busy_ps - 20)
    memory(waiter, "MemoryAllocation", 500 + late_ps, 4096, 2048, 2048, room)
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(builder.space.SerializeToString())
    return path


@pytest.mark.parametrize(
    ("late_ps", "room", "waits"),
    [(2 * LATE_PS, 2048, 1), (2 * LATE_PS, 8192, 0), (LATE_PS // 2, 2048, 0)],
)
def test_late_is_a_wait_only_where_there_was_no_room(tmp_path, late_ps, room, waits):
    with peakline.open(recorded(tmp_path, late_ps, room)) as profile:
        assert len(waits_of(profile)) == waits


@pytest.mark.parametrize(
    ("busy_ps", "wait_ps"), [(LATE_PS + 5, [LATE_PS + 95]), (LATE_PS + 101, []), (2 * LATE_PS, [])]
)
def test_a_thread_that_works_does_not_wait(tmp_path, busy_ps, wait_ps):
    path = recorded(tmp_path, 2 * LATE_PS + 100, 2048, busy_ps=busy_ps)
    with peakline.open(path) as profile:
        assert [one.wait_ps for one in waits_of(profile)] == wait_ps
