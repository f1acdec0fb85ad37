"""Summaries of memory that frameworks print."""

from tests.each_row import each_row
from tests.formats.oom_texts import GIB, MIB, findings_of, parts_of

TABLE = """
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 2                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: {ooms}            |        cudaMalloc retries: {retries}         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |    1062 {u} |    4877 {u} |   89299 {u} |   88237 {u} |
|       from large pool |    1048 {u} |    4865 {u} |   89263 {u} |   88215 {u} |
|---------------------------------------------------------------------------|
| GPU reserved memory   |   12420 {u} |   12421 {u} |   16924 {u} |    4504 {u} |
| Non-releasable memory |     300 {u} |     400 {u} |   16924 {u} |    4504 {u} |
"""


@each_row("unit", ["MB ", "MiB"])
def test_a_memory_summary(unit):
    (result,) = findings_of(TABLE.format(u=unit, ooms=0, retries=0))
    evidence = result.evidence
    assert (result.severity, evidence["cause"], evidence["allocator"]) == (
        "info",
        "summary",
        "cuda:2",
    )
    assert (evidence["in_use_bytes"], evidence["pool_bytes"]) == (1062 * MIB, 12420 * MIB)
    assert parts_of(result) == {
        "peak_allocated": 4877 * MIB,
        "peak_reserved": 12421 * MIB,
        "non_releasable": 300 * MIB,
    }
    assert "_dump_snapshot" in result.suggestion
    assert "It counts" not in result.suggestion


def test_a_summary_that_counts_failures():
    (result,) = findings_of(TABLE.format(u="MiB", ooms=1, retries=3))
    assert "It counts 1 out-of-memory errors, 3 retries" in result.suggestion


def test_a_summary_beside_a_failure_is_part_of_it():
    text = (
        "OOM: CUDA out of memory. Tried to allocate 62.00 MiB (GPU 2; 15.90 GiB total capacity; "
        "14.59 GiB already allocated; 9.88 MiB free; 15.19 GiB reserved in total by PyTorch)\n"
    )
    (result,) = findings_of(text + TABLE.format(u="MiB", ooms=1, retries=3))
    assert result.evidence["requested_bytes"] == 62 * MIB
    assert parts_of(result)["peak_allocated"] == 4877 * MIB


def test_deepspeed_and_megatron():
    lines = [
        "[2022-02-21 23:37:49,246] [INFO] [utils.py:822:see_memory_usage] before backward 1",
        (
            "[2022-02-21 23:37:49] [INFO] [utils.py:827:see_memory_usage] MA 5.19 GB         "
            "Max_MA 5.5 GB         CA 6.5 GB         Max_CA 7 GB "
        ),
        "[2022-02-21 23:37:50,246] [INFO] [utils.py:822:see_memory_usage] after step",
        (
            "[2022-02-21 23:37:50] [INFO] [utils.py:827:see_memory_usage] MA 4 GB Max_MA 5.25 GB "
            "CA 6.5 GB Max_CA 7 GB"
        ),
        (
            "[Rank 3] (after 2 steps) memory (MB) | allocated: 512.5 | max allocated: 1024.0 | "
            "reserved: 2048.0 | max reserved: 2050.0"
        ),
    ]
    first, second = findings_of("\n".join(lines))
    assert (first.evidence["allocator"], first.evidence["op"]) == ("cuda", "before backward 1")
    assert parts_of(first) == {"peak_allocated": round(5.5 * GIB), "peak_reserved": 7 * GIB}
    assert second.evidence["allocator"] == "cuda, rank 3"
    assert second.evidence["in_use_bytes"] == round(512.5 * MIB)
    assert parts_of(second) == {"peak_allocated": GIB, "peak_reserved": 2050 * MIB}
