"""Each rule of xplane_to_memory_profile.cc on its own: a few snapshots, the exact answer."""

from tests.each_row import each_row
from tests.tools.snapshots import alloc, answer, free, only, rows_of, steps, times


class TestSummary:
    """Rule 3: peaks and capacity, in file order."""

    def test_lifetime_peak_is_the_last_one_reported_not_the_largest(self):
        rows = [
            alloc(0, 1, 8, peak_bytes_in_use=900),
            alloc(1, 2, 8, peak_bytes_in_use=50),
        ]
        assert only(rows)["profileSummary"]["peakBytesUsageLifetime"] == "50"

    def test_last_means_last_in_the_file_even_if_earlier_in_time(self):
        rows = [
            alloc(9, 1, 8, peak_bytes_in_use=900),
            alloc(1, 2, 8, peak_bytes_in_use=50),
        ]
        assert only(rows)["profileSummary"]["peakBytesUsageLifetime"] == "50"

    def test_peak_is_the_largest_stack_and_heap_and_ties_go_to_the_later_in_the_file(self):
        first = {"stack_reserved_bytes": 30, "heap_allocated_bytes": 70, "fragmentation": 0.5}
        second = {"stack_reserved_bytes": 40, "heap_allocated_bytes": 60, "fragmentation": 0.25}
        rows = [
            alloc(5, 1, 8, **first),
            alloc(3, 2, 8, **second, free_memory_bytes=11, peak_bytes_in_use=1),
            alloc(7, 3, 8, heap_allocated_bytes=99),
        ]
        assert only(rows)["profileSummary"] == {
            "peakBytesUsageLifetime": "0",
            "peakStats": {
                "stackReservedBytes": "40",
                "heapAllocatedBytes": "60",
                "freeMemoryBytes": "11",
                "fragmentation": 0.25,
                "peakBytesInUse": "100",
            },
            "peakStatsTimePs": "3",
            "memoryCapacity": "111",
        }

    def test_in_use_below_zero_all_along_leaves_an_empty_peak(self):
        result = only([alloc(4, 1, 8, heap_allocated_bytes=-5, free_memory_bytes=100)])
        assert result["profileSummary"] == {
            "peakBytesUsageLifetime": "0",
            "peakStats": {
                "stackReservedBytes": "0",
                "heapAllocatedBytes": "0",
                "freeMemoryBytes": "0",
                "fragmentation": 0,
                "peakBytesInUse": "0",
            },
            "peakStatsTimePs": "0",
            "memoryCapacity": "0",
        }

    def test_sums_wrap_as_int64(self):
        largest = 2**63 - 1
        rows = [alloc(0, 1, 8, heap_allocated_bytes=largest, free_memory_bytes=3)]
        assert only(rows)["profileSummary"]["memoryCapacity"] == str(-(2**63) + 2)
        # Stack and heap wrap to a negative sum, which is not a peak.
        rows = [alloc(0, 1, 8, heap_allocated_bytes=largest, stack_reserved_bytes=1)]
        assert only(rows)["profileSummary"]["peakStats"]["heapAllocatedBytes"] == "0"


class TestAllocators:
    """Rule 4, its head: one profile per memory that has a snapshot."""

    def test_ids_are_sorted_bytewise_and_snapshots_go_to_their_own(self):
        rows = [
            alloc(0, 1, 10, memory_id="é", heap_allocated_bytes=10),
            alloc(1, 1, 20, memory_id="b", heap_allocated_bytes=20),
            alloc(2, 2, 30, memory_id="Z", heap_allocated_bytes=30),
            alloc(3, 2, 40, memory_id="b", heap_allocated_bytes=60),
            alloc(4, 3, 50, memory_id="", heap_allocated_bytes=50),
        ]
        result = answer(rows)
        assert result["memoryIds"] == ["", "Z", "b", "é"]
        assert {
            name: times(profile["sampledTimelineSnapshots"])
            for name, profile in result["memoryProfilePerAllocator"].items()
        } == {"": [4], "Z": [2], "b": [1, 3], "é": [0]}
        assert (result["numHosts"], result["version"], result["hloModules"]) == (1, 1, [])

    def test_addresses_of_different_memories_have_nothing_to_do_with_each_other(self):
        rows = [alloc(0, 7, 8, memory_id="A", tf_op_name="a"), free(1, 7, 8, memory_id="B")]
        snapshot = only(rows, "B")["sampledTimelineSnapshots"][0]
        assert snapshot["activityMetadata"]["tfOpName"] == ""


class TestTimeOrder:
    """Rule 4a."""

    def test_snapshots_are_sorted_by_offset_and_equal_ones_keep_the_order_of_the_file(self):
        rows = [alloc(5, 1, 8), alloc(3, 2, 8), alloc(5, 3, 8), alloc(3, 4, 8), alloc(-1, 5, 8)]
        shown = only(rows)["sampledTimelineSnapshots"]
        assert [int(snapshot["activityMetadata"]["address"]) for snapshot in shown] == [
            5,
            2,
            4,
            1,
            3,
        ]


class TestSteps:
    """Rule 4b."""

    def test_a_snapshot_without_a_step_belongs_to_the_one_after_the_last_known(self):
        given = [-1, 0, -1, -1, 4, -1, 2, -1]
        rows = [alloc(time, time, 8, step_id=step) for time, step in enumerate(given)]
        assert steps(only(rows)) == [0, 0, 1, 1, 4, 5, 2, 3]

    def test_steps_are_known_in_time_order_not_in_file_order(self):
        rows = [alloc(9, 1, 8, step_id=-1), alloc(2, 2, 8, step_id=6), alloc(1, 3, 8, step_id=-1)]
        assert steps(only(rows)) == [0, 6, 7]


class TestInheritance:
    """Rule 4c."""

    def shown(self, rows):
        fields = ("tfOpName", "regionType", "dataType", "tensorShape")
        return [
            tuple(snapshot["activityMetadata"][field] for field in fields)
            for snapshot in only(rows)["sampledTimelineSnapshots"]
        ]

    def meta(self, letter):
        return {
            "tf_op_name": letter,
            "region_type": letter + "r",
            "data_type": letter + "d",
            "tensor_shape": letter + "s",
        }

    def test_a_free_shows_what_it_frees(self):
        rows = [
            alloc(0, 1, 8, **self.meta("a")),
            alloc(1, 2, 8, **self.meta("b")),
            free(2, 1, 8, data_type="INVALID"),
        ]
        assert self.shown(rows)[2] == ("a", "ar", "ad", "as")

    def test_a_free_of_nothing_shows_its_own(self):
        rows = [free(0, 1, 8, **self.meta("f")), alloc(1, 1, 8, **self.meta("a"))]
        assert self.shown(rows)[0] == ("f", "fr", "fd", "fs")

    def test_the_first_of_two_allocations_at_one_address_names_the_free(self):
        rows = [
            alloc(0, 1, 8, **self.meta("a")),
            alloc(1, 1, 8, **self.meta("b")),
            free(2, 1, 8),
            free(3, 1, 8, **self.meta("f")),
        ]
        # The first free also ends the entry: the second allocation was never in the map.
        assert self.shown(rows)[2:] == [("a", "ar", "ad", "as"), ("f", "fr", "fd", "fs")]

    def test_an_address_can_be_used_again(self):
        rows = [
            alloc(0, 1, 8, **self.meta("a")),
            free(1, 1, 8),
            alloc(2, 1, 8, **self.meta("b")),
            free(3, 1, 8),
        ]
        assert [row[0] for row in self.shown(rows)] == ["a", "a", "b", "b"]

    def test_many_addresses_up_to_the_largest(self):
        addresses = [2**64 - 1 - 977 * number for number in range(5000)]
        rows = [alloc(n, address, 8, tf_op_name=f"op{n}") for n, address in enumerate(addresses)]
        rows += [free(5000 + n, address, 8) for n, address in enumerate(addresses)]
        snapshots = only(rows, max_snapshots=10_000)["sampledTimelineSnapshots"]
        names = [snapshot["activityMetadata"]["tfOpName"] for snapshot in snapshots[5000:]]
        assert names == [f"op{number}" for number in range(5000)]


class TestSample:
    """Rule 4d."""

    def sampled(self, levels, limit):
        rows = [alloc(n, n, 8, heap_allocated_bytes=level) for n, level in enumerate(levels)]
        return times(only(rows, max_snapshots=limit)["sampledTimelineSnapshots"])

    def test_all_when_they_fit(self):
        assert self.sampled([3, 1, 2], 3) == [0, 1, 2]

    def test_the_largest_of_each_bucket_and_the_first_on_ties(self):
        assert self.sampled([1, 5, 5, 2, 2, 1], 2) == [1, 3]

    def test_narrow_buckets_come_first(self):
        # 8 into 3: widths 2, 3, 3.
        assert self.sampled([0, 1, 0, 0, 1, 0, 0, 1], 3) == [1, 4, 7]
        # 7 into 3: widths 2, 2, 3.
        assert self.sampled([0, 1, 0, 1, 0, 0, 1], 3) == [1, 3, 6]

    def test_the_stack_counts_too(self):
        rows = [
            alloc(0, 0, 8, heap_allocated_bytes=5),
            alloc(1, 1, 8, heap_allocated_bytes=1, stack_reserved_bytes=5),
        ]
        assert times(only(rows, max_snapshots=1)["sampledTimelineSnapshots"]) == [1]

    @each_row("total", [1000, 1001, 1999, 2000, 2500])
    def test_never_more_than_a_thousand_unless_asked(self, total):
        assert len(self.sampled([0] * total, 1000)) == 1000
        rows = [alloc(n, n, 8) for n in range(total)]
        assert len(only(rows)["sampledTimelineSnapshots"]) == 1000


class TestPeakStep:
    """Rule 4e."""

    def test_it_is_the_step_of_the_last_snapshot_at_the_peak_in_time_order(self):
        rows = [
            alloc(0, 1, 30, step_id=3, heap_allocated_bytes=100),
            alloc(8, 2, 40, step_id=5, heap_allocated_bytes=100),
            alloc(4, 3, 50, step_id=4, heap_allocated_bytes=100),
        ]
        result = only(rows)
        assert result["specialAllocations"][0]["stepId"] == "5"
        # Yet the peak's time is that of the last in the file, 4, before anything of step 5.
        assert rows_of(result) == [(100, "unused preallocated device memory", 1)]

    def test_it_is_0_when_no_snapshot_reaches_the_peak(self):
        rows = [
            alloc(-5, 1, 30, step_id=7, heap_allocated_bytes=-1, tf_op_name="seven"),
            alloc(-4, 2, 40, step_id=0, heap_allocated_bytes=-1, tf_op_name="zero"),
        ]
        # The empty peak is at time 0: step 0's allocation before it is live.
        assert rows_of(only(rows)) == [(40, "zero", 1)]


class TestActiveAtPeak:
    """Rules 4f and 4g."""

    def test_only_the_peak_step_up_to_the_peak(self):
        rows = [
            alloc(0, 1, 10, step_id=0, heap_allocated_bytes=10, tf_op_name="earlier step"),
            alloc(1, 2, 20, step_id=1, heap_allocated_bytes=30, tf_op_name="live"),
            alloc(2, 3, 40, step_id=1, heap_allocated_bytes=70, tf_op_name="freed"),
            free(3, 3, 40, step_id=1, heap_allocated_bytes=30),
            alloc(4, 4, 50, step_id=1, heap_allocated_bytes=80, tf_op_name="peak"),
            alloc(5, 5, 5, step_id=1, heap_allocated_bytes=60, tf_op_name="too late"),
        ]
        assert rows_of(only(rows)) == [
            (50, "peak", 1),
            (20, "live", 1),
            (10, "unused preallocated device memory", 1),
        ]

    def test_at_the_peaks_time_counts_even_after_it_in_the_file(self):
        rows = [
            alloc(4, 1, 50, heap_allocated_bytes=90, tf_op_name="peak"),
            alloc(4, 2, 40, heap_allocated_bytes=50, tf_op_name="same time"),
        ]
        assert rows_of(only(rows)) == [(50, "peak", 1), (40, "same time", 1)]

    def test_the_later_of_two_allocations_at_one_address_is_the_one(self):
        rows = [
            alloc(0, 1, 10, heap_allocated_bytes=10, tf_op_name="first"),
            alloc(1, 1, 20, heap_allocated_bytes=30, tf_op_name="second"),
        ]
        # Both were taken off the unmapped bytes: nothing is left of 30.
        assert rows_of(only(rows)) == [(20, "second", 1)]

    def test_a_free_of_another_steps_buffer_leaves_the_unmapped_bytes_alone(self):
        rows = [
            free(0, 9, 7, heap_allocated_bytes=13),
            alloc(1, 1, 10, heap_allocated_bytes=100, tf_op_name="a"),
        ]
        assert rows_of(only(rows)) == [(90, "unused preallocated device memory", 1), (10, "a", 1)]

    def test_a_free_gives_back_its_own_size_not_the_allocations(self):
        rows = [
            alloc(0, 1, 10, heap_allocated_bytes=10),
            free(1, 1, 4, heap_allocated_bytes=50),
        ]
        assert rows_of(only(rows)) == [(44, "unused preallocated device memory", 1)]

    @each_row("heap", [10, 9])
    def test_nothing_or_less_unmapped_is_dropped(self, heap):
        rows = [alloc(0, 1, 10, heap_allocated_bytes=heap, tf_op_name="a")]
        assert rows_of(only(rows)) == [(10, "a", 1)]

    def test_the_specials_exactly(self):
        rows = [
            alloc(0, 1, 10, step_id=3, heap_allocated_bytes=25, stack_reserved_bytes=6),
        ]
        assert only(rows)["specialAllocations"] == [
            {
                "memoryActivity": "ALLOCATION",
                "requestedBytes": "15",
                "allocationBytes": "15",
                "address": "0",
                "tfOpName": "unused preallocated device memory",
                "stepId": "3",
                "regionType": "persist/dynamic",
                "dataType": "INVALID",
                "tensorShape": "unknown",
            },
            {
                "memoryActivity": "ALLOCATION",
                "requestedBytes": "6",
                "allocationBytes": "6",
                "address": "0",
                "tfOpName": "stack",
                "stepId": "3",
                "regionType": "stack",
                "dataType": "INVALID",
                "tensorShape": "unknown",
            },
        ]

    def test_the_stack_alone_is_special_0(self):
        rows = [alloc(0, 1, 10, heap_allocated_bytes=10, stack_reserved_bytes=60)]
        assert rows_of(only(rows)) == [(60, "stack", 1), (10, "", 1)]

    def test_activities_other_than_allocation_and_deallocation_change_nothing(self):
        rows = [
            alloc(0, 1, 10, heap_allocated_bytes=10, tf_op_name="a"),
            alloc(1, 1, 99, activity=3, heap_allocated_bytes=10, tf_op_name="reserved"),
            free(2, 1, 99, activity=4, heap_allocated_bytes=10, tf_op_name="expanded"),
        ]
        result = only(rows)
        assert rows_of(result) == [(10, "a", 1)]
        assert [
            (
                snapshot["activityMetadata"]["memoryActivity"],
                snapshot["activityMetadata"]["tfOpName"],
            )
            for snapshot in result["sampledTimelineSnapshots"]
        ] == [("ALLOCATION", "a"), ("RESERVATION", "reserved"), ("EXPANSION", "expanded")]


class TestRows:
    """Rules 4h and 4i."""

    def table(self, allocations):
        """The rows' snapshots for allocations given as ``(allocated, requested, metadata)``."""
        rows = [
            alloc(
                number,
                number,
                allocated,
                requested_bytes=requested,
                heap_allocated_bytes=number,
                **dict(
                    zip(
                        ("tf_op_name", "region_type", "data_type", "tensor_shape"),
                        metadata,
                        strict=False,
                    )
                ),
            )
            for number, (allocated, requested, metadata) in enumerate(allocations)
        ]
        result = only(rows)
        assert result["specialAllocations"] == []
        assert [row["snapshotIndex"] for row in result["activeAllocations"]] == [
            str(number) for number in range(len(result["memoryProfileSnapshots"]))
        ]
        return list(
            zip(
                times(result["memoryProfileSnapshots"]),
                [int(row["numOccurrences"]) for row in result["activeAllocations"]],
                strict=True,
            )
        )

    def test_larger_first_then_larger_requests(self):
        assert self.table([(8, 1, ""), (64, 1, ""), (64, 60, ""), (-8, 1, "")]) == [
            (2, 1),
            (1, 1),
            (0, 1),
            (3, 1),
        ]

    @each_row("field", range(4))
    def test_then_by_each_text_bytewise(self, field):
        texts = ["b", "a", "é", "", "Z", "aa"]
        given = [(8, 8, ["x"] * field + [text] + ["x"] * (3 - field)) for text in texts]
        assert [texts[time] for time, _ in self.table(given)] == ["", "Z", "a", "aa", "b", "é"]

    def test_texts_compare_in_the_order_op_region_type_shape(self):
        given = [(8, 8, texts) for texts in ("baaa", "abaa", "aaba", "aaab")]
        assert [time for time, _ in self.table(given)] == [3, 2, 1, 0]

    def test_equal_rows_merge(self):
        given = [(8, 8, "abcd"), (8, 8, "abce"), (8, 8, "abcd"), (8, 7, "abcd"), (8, 8, "abcd")]
        assert self.table(given) == [(0, 3), (1, 1), (3, 1)]

    def test_the_smallest_size_has_no_opposite_and_comes_first(self):
        rows = [alloc(0, 1, 2**63 - 1), alloc(1, 2, -(2**63))]
        assert rows_of(only(rows)) == [
            (-(2**63), "", 1),
            (2**63 - 1, "", 1),
            # The sizes add up to -1, so one byte of the peak's 0 is left over.
            (1, "unused preallocated device memory", 1),
        ]

    def test_specials_sort_among_the_rows(self):
        rows = [
            alloc(0, 1, 300, heap_allocated_bytes=300, tf_op_name="big"),
            alloc(1, 2, 20, heap_allocated_bytes=400, stack_reserved_bytes=50, tf_op_name="small"),
        ]
        result = only(rows)
        assert rows_of(result) == [
            (300, "big", 1),
            (80, "unused preallocated device memory", 1),
            (50, "stack", 1),
            (20, "small", 1),
        ]
        assert [row["snapshotIndex"] for row in result["activeAllocations"]] == [
            "0",
            "-1",
            "-2",
            "1",
        ]

    def test_kept_snapshots_are_shown_with_their_step(self):
        rows = [alloc(0, 1, 8, heap_allocated_bytes=8, step_id=-1)]
        assert steps(only(rows), "memoryProfileSnapshots") == [0]
