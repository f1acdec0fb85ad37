import numpy as np
from tests.analysis.records import alloc, events, free
from tests.each_row import each_row

from peakline.kernels.memory_layout import (
    ALLOCATION,
    DEALLOCATION,
    OTHER,
    UNTRACKED_ALLOCATION,
    UNTRACKED_DEALLOCATION,
)
from peakline.memory.lifetimes import match_lifetimes


def matched(rows):
    found = match_lifetimes(events(rows))
    return found.begin.tolist(), found.end.tolist()


def test_a_deallocation_ends_the_allocation_at_its_address():
    begin, end = matched([alloc(1, 10), alloc(2, 10), free(1), free(2)])
    assert begin == [-1, -1, 0, 1]
    assert end == [2, 3, -1, -1]


def test_an_address_can_be_used_again():
    begin, end = matched([alloc(1, 10), free(1), alloc(1, 20), free(1)])
    assert begin == [-1, 0, -1, 2]
    assert end == [1, -1, 3, -1]


def test_a_deallocation_after_the_end_is_unmatched():
    begin, _ = matched([alloc(1, 10), free(1), free(1)])
    assert begin == [-1, 0, -1]


def test_a_double_allocation_ends_the_earlier_buffer_and_the_latest_is_freed():
    begin, end = matched([alloc(1, 10), alloc(1, 20), free(1), free(1)])
    assert begin == [-1, 0, 1, -1]
    assert end == [1, 2, -1, -1]


def test_equal_addresses_of_two_allocators_are_two_buffers():
    rows = [alloc(1, 10, allocator="b"), alloc(1, 10, allocator="a"), free(1, allocator="b")]
    found = match_lifetimes(events(rows))
    assert found.allocators == ("a", "b")
    assert found.allocator.tolist() == [1, 0, 1]
    assert found.end.tolist() == [2, -1, -1]


def test_an_allocation_id_counts_before_the_address():
    rows = [alloc(1, 10, allocation_id=7), alloc(1, 10, allocation_id=8), free(1, allocation_id=7)]
    assert matched(rows)[1] == [2, -1, -1]


def test_an_id_is_not_an_address():
    assert matched([alloc(7, 10), free(None, allocation_id=7)])[0] == [-1, -1]


def test_addresses_use_all_64_bits():
    high = 2**64 - 1
    assert matched([alloc(high, 10), free(high)])[1] == [1, -1]


def test_records_without_a_key_are_untracked_and_other_activities_are_left_alone():
    rows = [
        alloc(None, 10),
        free(None),
        {"activity": "reservation", "address": 1},
        alloc(1, 1),
        free(1),
    ]
    assert match_lifetimes(events(rows)).kind.tolist() == [
        UNTRACKED_ALLOCATION, UNTRACKED_DEALLOCATION, OTHER, ALLOCATION, DEALLOCATION,
    ]  # fmt: skip


@each_row("live", [1, 3000])
def test_many_addresses_with_few_or_many_live_at_a_time(live):
    rows = []
    for number in range(6000):
        rows.append(alloc(number * 256, 1))
        if number >= live:
            rows.append(free((number - live) * 256))
    found = match_lifetimes(events(rows))
    ended = np.flatnonzero(found.begin >= 0)
    address = np.array([row["address"] for row in rows])
    assert ended.size == 6000 - live
    assert (address[found.begin[ended]] == address[ended]).all()
    assert (found.end[found.begin[ended]] == ended).all()


def test_live_after_a_moment():
    rows = [alloc(1, 10), alloc(2, 10), free(1), alloc(1, 10, allocator="b")]
    found = match_lifetimes(events(rows))
    assert found.live_after(np.array([1, -1])).tolist() == [0, 1]
    assert found.live_after(np.array([2, 3])).tolist() == [1, 3]
    assert found.live_after(np.array([-1, -1])).tolist() == []


def test_no_records():
    found = match_lifetimes(events([]))
    assert found.allocators == ()
    assert found.live_after(np.zeros(0, np.int64)).tolist() == []
