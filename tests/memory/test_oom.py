"""Why an allocation failed, from the numbers of its report."""

import numpy as np
from tests.each_row import each_row

from peakline.findings.context import MemoryContext
from peakline.findings.kinds import out_of_memory
from peakline.memory.oom import failed_moments
from peakline.tables.columns import Columns, Names
from peakline.tables.tables import check_columns, empty_columns

MIB = 1 << 20
NUMBERS = (
    "requested_bytes", "rounded_bytes", "limit_bytes", "pool_bytes", "in_use_bytes", "free_bytes",
    "largest_free_bytes", "device_free_bytes",
)  # fmt: skip


def report(allocator="GPU_0_bfc", op="MatMul", shape=None, **numbers):
    data = {
        "report_id": np.array([0]),
        "time_ps": np.array([0]),
        "allocator": Names.encode([allocator]),
        "op": Names.encode([op]),
        "shape": Names.encode([shape]),
        "data_type": Names.encode([shape and "float"]),
        "is_complete": np.array([True]),
    }
    valid = {}
    for name in NUMBERS:
        data[name] = np.array([numbers.get(name, 0)])
        valid[name] = np.array([name in numbers])
    return check_columns("oom_reports", Columns(data, valid))


def oom_findings(oom_reports, listed):
    return list(out_of_memory.find(MemoryContext(failures=failed_moments(oom_reports, listed))))


def blocks(*chunks):
    sizes, states = zip(*chunks, strict=True)
    count = len(chunks)
    return check_columns(
        "blocks",
        Columns(
            {
                "segment_id": np.zeros(count, np.int64),
                "report_id": np.zeros(count, np.int64),
                "address": np.arange(count, dtype=np.uint64),
                "bytes": np.array(sizes),
                "state": Names.encode(states),
            }
        ),
    )


def finding(**numbers):
    (result,) = oom_findings(report(**numbers), empty_columns("blocks"))
    return result


@each_row(
    ("numbers", "cause", "word"),
    [
        ({"requested_bytes": 9, "limit_bytes": 8}, "larger_than_limit", "alone exceeds"),
        (
            {"requested_bytes": 4, "free_bytes": 6, "largest_free_bytes": 4},
            "held_back",
            "large enough",
        ),
        (
            {"requested_bytes": 4, "free_bytes": 6, "largest_free_bytes": 3},
            "fragmented",
            "cuda_malloc_async",
        ),
        ({"requested_bytes": 4, "free_bytes": 6}, "fragmented", "in pieces"),
        (
            {"requested_bytes": 4, "free_bytes": 3, "pool_bytes": 9, "limit_bytes": 13},
            "device_full",
            "other processes",
        ),
        (
            # The rest of the device is nearly nothing: 96 in the pool, 3 free, 1 of the driver.
            {
                "requested_bytes": 4,
                "free_bytes": 2,
                "pool_bytes": 96,
                "limit_bytes": 100,
                "device_free_bytes": 3,
            },
            "device_full",
            "at least 1 B more must be free, this pool fills the device.",
        ),
        (
            {
                "requested_bytes": 20,
                "free_bytes": 2,
                "pool_bytes": 70,
                "limit_bytes": 100,
                "device_free_bytes": 10,
            },
            "device_full",
            "other processes on it, and for memory that the driver and libraries take. 20 B of",
        ),
        (
            {"requested_bytes": 4, "free_bytes": 3, "pool_bytes": 9, "limit_bytes": 10},
            "full",
            "at least 1 B more must be free, and in one piece",
        ),
        (
            {"requested_bytes": 4, "rounded_bytes": 256, "free_bytes": 250},
            "full",
            "at least 6 B more must be free, and in one piece",
        ),
        (
            {"requested_bytes": 9, "free_bytes": 6, "largest_free_bytes": 4},
            "full",
            "pieces of at most 4 B, so 5 B next to the largest, or 9 B in one piece elsewhere,",
        ),
        (
            {"requested_bytes": 9, "free_bytes": 6, "largest_free_bytes": 6},
            "full",
            "at least 3 B more must be free, next to the piece that is",
        ),
        ({"requested_bytes": 9, "free_bytes": 0}, "full", "at least 9 B more must be free."),
        ({"requested_bytes": 4}, "unknown", "does not say what was free."),
        ({"free_bytes": 4}, "unknown", "does not say"),
    ],
)
def test_causes(numbers, cause, word):
    result = finding(**numbers)
    assert result.evidence["cause"] == cause
    assert word in result.suggestion


def test_the_title_tells_the_story():
    result = finding(
        requested_bytes=9 * MIB, limit_bytes=64 * MIB, in_use_bytes=60 * MIB, free_bytes=MIB,
        pool_bytes=64 * MIB, shape="[3, 4]",
    )  # fmt: skip
    assert (result.kind, result.severity) == ("out_of_memory", "error")
    assert result.title == (
        "GPU_0_bfc ran out of memory: 9.0 MiB requested by MatMul, float [3, 4], "
        "60.0 MiB of 64.0 MiB in use, 1.0 MiB free"
    )


def test_the_title_of_a_fragmented_pool():
    result = finding(
        op=None, requested_bytes=9 * MIB, free_bytes=12 * MIB, largest_free_bytes=4 * MIB
    )
    assert result.title == (
        "GPU_0_bfc ran out of memory: 9.0 MiB requested, 12.0 MiB free, the largest piece 4.0 MiB"
    )


def test_pytorch_is_told_its_own_setting():
    result = finding(allocator="cuda:0", requested_bytes=4, free_bytes=6)
    assert "expandable_segments:True" in result.suggestion


def test_memory_outside_the_pool():
    result = finding(
        requested_bytes=4 * MIB, free_bytes=0, pool_bytes=20 * MIB, limit_bytes=80 * MIB,
        device_free_bytes=MIB,
    )  # fmt: skip
    assert result.evidence["outside_bytes"] == 59 * MIB
    assert result.suggestion.endswith("59.0 MiB of the device are held outside this pool.")


def test_the_largest_groups_of_chunks():
    (result,) = oom_findings(
        report(requested_bytes=4),
        blocks((10, "in_use"), (30, "in_use"), (99, "free"), (10, "in_use"), (20, "in_use")),
    )
    assert result.suggestion == (
        "The report does not say what was free; see what the buffers in it hold."
    )
    assert result.evidence["top_chunks"] == [
        {"bytes": 30, "count": 1, "total_bytes": 30},
        {"bytes": 20, "count": 1, "total_bytes": 20},
        {"bytes": 10, "count": 2, "total_bytes": 20},
    ]


def test_what_is_not_known_is_left_out():
    result = finding(op=None)
    assert result.title == "GPU_0_bfc ran out of memory"
    assert result.evidence == {"allocator": "GPU_0_bfc", "cause": "unknown", "is_complete": True}


def reports(*rows):
    """Reports at times in milliseconds, with the allocator, the bytes in use and the device."""
    times, allocators, in_use, devices = zip(*rows, strict=True)
    count = len(rows)
    data = {
        "report_id": np.arange(count),
        "time_ps": np.array(times) * 10**9,
        "allocator": Names.encode(allocators),
        "op": Names.encode([f"op_{number}" for number in range(count)]),
        "device": Names.encode(devices),
        "requested_bytes": np.full(count, MIB),
        "in_use_bytes": np.array([use or 0 for use in in_use]),
        "is_complete": np.ones(count, np.bool_),
    }
    valid = {"in_use_bytes": np.array([use is not None for use in in_use])}
    return check_columns("oom_reports", Columns(data, valid))


def moments(*rows):
    """The op of the first request of every finding, how many failed, and until when."""
    return [
        (
            one.evidence["op"],
            one.evidence.get("failed_requests", 1),
            one.evidence.get("last_after_ps", 0),
        )
        for one in oom_findings(reports(*rows), empty_columns("blocks"))
    ]


def test_requests_that_fail_together_are_one_finding():
    rows = [(0, "a", 1, None), (400, "a", 2, None), (400, "b", 1, None), (1000, "a", 3, None)]
    result = oom_findings(reports(*rows), empty_columns("blocks"))
    assert [one.title for one in result] == [
        (
            "a ran out of memory: 3 failed requests in one moment, the first: "
            "1.0 MiB requested by op_0, 1 B in use"
        ),
        "b ran out of memory: 1.0 MiB requested by op_2, 1 B in use",
    ]
    assert result[0].evidence["failed_requests"] == 3
    assert result[0].evidence["last_after_ps"] == 10**12
    assert "failed_requests" not in result[1].evidence


def test_a_second_later_is_another_moment_unless_nothing_was_freed():
    assert moments((0, "a", 1, None), (1001, "a", 2, None)) == [("op_0", 1, 0), ("op_1", 1, 0)]
    assert moments((0, "a", 1, None), (1001, "a", None, None)) == [("op_0", 1, 0), ("op_1", 1, 0)]
    # A BFC allocator waits ten seconds before each of its requests fails.
    rows = [(10_000 * number, "a", 7, None) for number in range(4)]
    assert moments(*rows) == [("op_0", 4, 3 * 10**13)]
    assert oom_findings(reports(*rows), empty_columns("blocks"))[0].title.startswith(
        "a ran out of memory: 4 failed requests in 30.000 s, the first: "
    )


def test_without_times_only_the_same_state_is_one_moment():
    assert moments((0, "a", 1, None), (0, "a", 2, None), (0, "a", 2, None)) == [
        ("op_0", 1, 0),
        ("op_1", 2, 0),
    ]
    assert moments((0, "a", None, None), (0, "a", None, None)) == [("op_0", 1, 0), ("op_1", 1, 0)]


def test_two_devices_fail_apart():
    assert moments((0, "a", 1, "x"), (1, "a", 1, "y")) == [("op_0", 1, 0), ("op_1", 1, 0)]
    assert moments((0, "a", 1, "x"), (1, "a", 1, None)) == [("op_0", 2, 10**9)]
