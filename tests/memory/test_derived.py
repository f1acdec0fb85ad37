"""Buffers from records, records from buffers, and snapshots from either."""

from tests.memory.records import alloc, events, free
from tests.tables.fake import FakeReader, columns_of

from peakline.memory.allocator_events import events_of
from peakline.memory.buffers import buffers_of
from peakline.memory.memory_snapshots import snapshots_of
from peakline.memory.peak.explained import find_peaks
from peakline.tables import Profile
from peakline.tables.derived import DERIVED


def pick(columns, *names):
    return [tuple(row[name] for name in names) for row in columns.to_pylist()]


class TestBuffersOfRecords:
    def test_a_buffer_lives_from_its_allocation_to_its_deallocation(self):
        result = buffers_of(
            events(
                [
                    alloc(1, 100, op="conv", step_id=7, allocator="gpu"),
                    alloc(2, 50, op="relu", allocator="gpu"),
                    free(1, allocator="gpu", step_id=8),
                ]
            )
        )
        assert pick(
            result, "op", "allocated_bytes", "start_ps", "end_ps", "start_step", "end_step"
        ) == [("conv", 100, 0, 2, 7, 8), ("relu", 50, 1, None, None, None)]

    def test_what_is_freed_without_an_allocation_was_there_before(self):
        result = buffers_of(events([free(9, 64, op="w")]))
        assert pick(result, "address", "start_ps", "end_ps", "allocated_bytes") == [
            (9, None, 0, 64)
        ]

    def test_a_row_for_a_buffer_that_was_there_before_has_no_start(self):
        rows = [alloc(9, 64, op="w", is_before=True), alloc(8, 32, is_before=False), free(9)]
        result = buffers_of(events(rows))
        assert pick(result, "address", "start_ps", "end_ps", "allocated_bytes") == [
            (9, None, 2, 64),
            (8, 1, None, 32),
        ]

    def test_an_untracked_allocation_never_ends(self):
        result = buffers_of(events([{"activity": "allocation", "requested_bytes": 8}]))
        assert pick(result, "requested_bytes", "start_ps", "end_ps") == [(8, 0, None)]

    def test_an_address_used_twice_is_two_buffers(self):
        result = buffers_of(events([alloc(1, 10), free(1), alloc(1, 20), free(1)]))
        assert pick(result, "allocated_bytes", "start_ps", "end_ps") == [(10, 0, 1), (20, 2, 3)]

    def test_no_records(self):
        assert buffers_of(events([])).rows == 0


class TestRecordsOfBuffers:
    def test_they_give_the_same_buffers_again(self):
        rows = [
            {"buffer_id": 0, "allocator": "gpu", "address": 5, "op": "a", "allocated_bytes": 10,
             "start_ps": 3, "end_ps": 9, "start_step": 1, "end_step": 2},
            {"buffer_id": 1, "allocator": "gpu", "address": 5, "op": "b", "allocated_bytes": 20,
             "start_ps": 9},
            {"buffer_id": 2, "allocator": "cpu", "op": "c", "allocated_bytes": 30, "start_ps": 1},
            {"buffer_id": 3, "allocator": "cpu", "op": "d", "allocated_bytes": 30, "start_ps": 4,
             "end_ps": 4},
        ]  # fmt: skip
        buffers = columns_of("buffers", rows)
        names = ("allocator", "op", "allocated_bytes", "start_ps", "end_ps", "end_step")
        again = buffers_of(_checked(events_of(buffers)))
        assert sorted(pick(again, *names), key=str) == sorted(pick(buffers, *names), key=str)

    def test_without_times_all_are_there_from_the_start(self):
        buffers = columns_of("buffers", [{"allocator": "x", "allocated_bytes": 7}] * 2)
        assert pick(events_of(buffers), "time_ps", "activity", "allocation_id") == [
            (0, "allocation", -1),
            (0, "allocation", -2),
        ]

    def test_a_row_may_stand_for_several_buffers(self):
        rows = [{"allocator": "x", "allocated_bytes": 100, "op": "a", "count": 3}]
        (peak,) = find_peaks(_checked(events_of(columns_of("buffers", rows))))
        assert [(b.op, b.bytes, b.count) for b in peak.peak_buffers] == [("a", 100, 3)]


class TestSnapshots:
    def test_the_sum_of_live_buffers_stands_for_what_nobody_reported(self):
        result = snapshots_of(
            events([alloc(1, 100, op="conv"), alloc(2, 50), free(1), free(77), free(2)])
        )
        assert pick(
            result, "activity", "heap_allocated_bytes", "peak_bytes_in_use", "allocation_bytes",
            "tf_op_name",
        ) == [
            (1, 100, 100, 100, "conv"),
            (1, 150, 150, 50, ""),
            (2, 50, 150, 100, "conv"),
            (2, 50, 150, 0, ""),
            (2, 0, 150, 50, ""),
        ]  # fmt: skip

    def test_what_the_allocator_reported_counts(self):
        result = snapshots_of(events([alloc(1, 100, in_use_bytes=4100, peak_bytes=5000)]))
        assert pick(result, "heap_allocated_bytes", "peak_bytes_in_use") == [(4100, 5000)]

    def test_allocators_are_apart(self):
        result = snapshots_of(events([alloc(1, 10, allocator="b"), alloc(1, 20, allocator="a")]))
        assert pick(result, "memory_id", "heap_allocated_bytes") == [("b", 10), ("a", 20)]


class TestProfiles:
    def test_a_format_with_records_has_buffers_and_snapshots(self):
        profile = Profile(FakeReader({"allocator_events": events([alloc(1, 8)])}), derived=DERIVED)
        assert profile.tables == ["allocator_events", "buffers", "memory_snapshots", "warnings"]
        assert profile.sql("select sum(allocated_bytes) n from buffers").to_pylist() == [{"n": 8}]

    def test_a_format_with_buffers_has_records_and_snapshots(self):
        buffers = columns_of("buffers", [{"allocator": "x", "allocated_bytes": 7}])
        profile = Profile(FakeReader({"buffers": buffers}), derived=DERIVED)
        assert profile.tables == ["allocator_events", "buffers", "memory_snapshots", "warnings"]
        assert profile.columns("memory_snapshots").rows == 1

    def test_a_format_without_memory_has_neither(self):
        assert Profile(FakeReader({"steps": []}), derived=DERIVED).tables == ["steps", "warnings"]


def _checked(columns):
    from peakline.tables.tables import check_columns

    return check_columns("allocator_events", columns)
