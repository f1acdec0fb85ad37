"""The table at the peak: order, merging, and the snapshots kept for it (rules 4h and 4i)."""

from tests.each_row import each_row
from tests.tools.snapshots import alloc, only, rows_of, steps, times


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
