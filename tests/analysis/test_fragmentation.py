import math
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.histories import history, records
from tests.analysis.kinds import found_by
from tests.analysis.records import alloc, free
from tests.each_row import each_row

from peakline.findings.kinds import fragmentation as kind
from peakline.memory.fragmentation.holes import find_fragmentation
from reference.memory_history import buffers, fragmentation

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
    found = find(rows)
    assert found.time_ps.tolist() == list(range(6))
    assert found.free.tolist() == [0, 0, 0, 0, 10, 40]
    assert found.largest.tolist() == [0, 0, 0, 0, 10, 30]
    assert found.holes.tolist() == [0, 0, 0, 0, 1, 2]
    assert (found.touched_bytes, found.peak_bytes) == (60, 60)


def test_memory_that_no_buffer_lay_on_is_not_known_to_be_free():
    found = find([alloc(0, 10), alloc(1000, 10), free(0), free(1000)])
    assert (found.free[-1], found.largest[-1], found.holes[-1]) == (20, 10, 2)
    assert found.touched_bytes == 20


def test_the_figure_of_the_allocator_is_given_beside():
    found = find([alloc(0, 10, fragmentation=0.25), free(0)])
    assert found.reported[0] == 0.25
    assert math.isnan(found.reported[1])


def test_buffers_without_addresses_have_no_layout():
    assert find([alloc(None, 10, allocation_id=3)]) is None


def test_an_address_at_the_end_of_the_address_space():
    assert find([alloc(2**64 - 4, 100), free(2**64 - 4), alloc(0, 5)]).touched_bytes == 8


def test_the_request_that_found_enough_free_but_in_pieces():
    rows, place = blocks(6)
    rows.append(alloc(place, 256 * KIB, op="train", shape="[65536]"))
    found = find(rows)
    (forced,) = found.forced
    assert (forced.bytes, forced.free, forced.largest) == (256 * KIB, 6 * 64 * KIB, 64 * KIB)
    assert forced.signature.op == "train"
    assert forced.new_bytes == 256 * KIB
    assert found.worst == forced
    assert [(hole.from_bytes, hole.count, hole.bytes) for hole in found.at_worst] == [
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
    found = find(rows)
    assert found.recoverable_bytes == min(256 * KIB, found.touched_bytes - found.peak_bytes)
    (finding,) = found_by(kind, fragmentation=found, savings=())
    assert finding.evidence["wasted_bytes"] == found.recoverable_bytes
    replayed = SimpleNamespace(kind="fragmentation", is_replayed=True, bytes=KIB)
    (other,) = found_by(kind, fragmentation=found, savings=(replayed,))
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
        found = find_fragmentation(made, number)
        own = [one for one in buffers(rows) if one.allocator == allocator]
        if found is None:
            assert not [one for one in own if one.address is not None and one.allocated > 0]
            continue
        course, forced = fragmentation(rows, allocator)
        shown = zip(
            found.time_ps.tolist(),
            found.free.tolist(),
            found.largest.tolist(),
            found.holes.tolist(),
            strict=True,
        )
        for row, *figures in shown:
            assert tuple(figures) == course[row]
        assert len(found.time_ps) == len(made.rows_of(number))
        assert [(f.row, f.new_bytes, f.free, f.largest) for f in found.forced] == forced
