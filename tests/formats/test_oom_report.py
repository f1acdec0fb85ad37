"""Dumps of BFC allocators: every wording, cut and mixed lines, and what is made of them."""

import gzip
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.hanging import no_hang

from peakline.formats.oom_report.report import human, parse_size
from peakline.formats.oom_report.scanner import OomScanner
from peakline.formats.oom_report.tables import OomReports
from peakline.memory.oom import failed_moments
from peakline.tables.reader import Warnings
from peakline.tables.tables import check_columns

MIB = 1 << 20


def read(text: str | bytes, block: int = 1 << 20) -> OomReports:
    data = text.encode() if isinstance(text, str) else text
    scanner = OomScanner()
    for start in range(0, len(data), block):
        scanner.feed(data[start : start + block])
    return scanner.finish()


def rows(reports: OomReports, table: str, *columns: str) -> list[tuple]:
    result = check_columns(table, reports.read(table)).to_pylist()
    return [tuple(row[column] for column in columns) for row in result]


def warned(reports: OomReports) -> list[tuple[str, int, str]]:
    warnings = Warnings()
    reports.report(warnings)
    return warnings.entries()


REQUEST = "ran out of memory trying to allocate 3.00MiB (rounded to 3145728)requested by op MatMul"
TENSOR = (
    "OOM when allocating tensor with shape[3,262144] and type float on /device:GPU:0 by allocator"
)
BINS = (1, 2, 13, 14)
"""The bins that the chunks of `dump` belong to."""


def dump(allocator: str = "GPU_0_bfc", base: int = 0x7F0000000000) -> list[str]:
    """A whole report as TensorFlow 2.21 words it: two regions, 1280 and 5 MiB in use."""
    second = base + 16 * MIB
    return [
        f"Allocator ({allocator}) {REQUEST}",
        "Current allocation summary follows.",
        f"BFCAllocator dump for {allocator}",
        *(
            f"Bin ({256 << n}): \tTotal Chunks: {n in BINS:d}, Chunks in use: 0. 0B allocated"
            for n in range(21)
        ),
        "Bin for 3.00MiB was 2.00MiB, Chunk State: ",
        "Next region of size 2048",
        f"InUse at {base:x} of size 1280 next 1",
        f"Free  at {base + 1280:x} of size 768 next 18446744073709551615",
        "Next region of size 7340032",
        f"Free  at {second:x} of size 2097152 next 3",
        f"InUse at {second + 2 * MIB:x} of size 5242880 next 18446744073709551615",
        "     Summary of in-use Chunks by size: ",
        "1 Chunks of size 1280 totalling 1.2KiB",
        "1 Chunks of size 5242880 totalling 5.00MiB",
        "Sum Total of in-use chunks: 5.00MiB",
        "Total size in pool: 7.00MiB memory_limit_: 8.00MiB available size: 1.00MiB",
        "Stats: ",
        "Limit:                         8.00MiB",
        "InUse:                         5.00MiB",
        "MaxInUse:                      6.00MiB",
        "NumAllocs:                          12",
        "",
        "*" * 60 + "x" * 10 + "_" * 30,
        f"OP_REQUIRES failed at matmul.cc:9 : RESOURCE_EXHAUSTED: {TENSOR} {allocator}",
    ]


def with_prefix(lines: list[str], thread: int = 7) -> list[str]:
    """The lines as absl logs them; the statistics are one message and have no prefix."""
    return [
        line if line[:1].isupper() and ":   " in line else
        f"I0520 10:00:0{n % 10}.000000   {thread} bfc_allocator.cc:1] {line}"
        for n, line in enumerate(lines)
    ]  # fmt: skip


REPORT = {
    "report_id": 0, "time_ps": 0, "allocator": "GPU_0_bfc", "requested_bytes": 3 * MIB,
    "rounded_bytes": 3 * MIB, "op": "MatMul", "device": "/device:GPU:0", "data_type": "float",
    "shape": "[3, 262144]", "limit_bytes": 8 * MIB, "pool_bytes": 7 * MIB + 2048,
    "in_use_bytes": 5 * MIB + 1280, "peak_bytes": 6 * MIB, "free_bytes": 2 * MIB + 768,
    "largest_free_bytes": 2 * MIB, "fragmentation": 768 / (2 * MIB + 768),
    "device_free_bytes": None, "capacity_bytes": None, "kind": None, "source": None,
    "message": None, "is_complete": True,
}  # fmt: skip


@each_row("block", [1, 13, 400, 1 << 20])
@each_row("lines", [dump(), with_prefix(dump())])
def test_a_whole_report(lines, block):
    reports = read("\n".join(lines), block)
    assert check_columns("oom_reports", reports.read("oom_reports")).to_pylist() == [REPORT]
    assert warned(reports) == []


def test_chunks_are_blocks_of_their_regions():
    reports = read("\n".join(dump()))
    assert rows(reports, "blocks", "report_id", "segment_id", "address", "bytes", "state") == [
        (0, 0, 0x7F0000000000, 1280, "in_use"),
        (0, 0, 0x7F0000000500, 768, "free"),
        (0, 1, 0x7F0001000000, 2 * MIB, "free"),
        (0, 1, 0x7F0001200000, 5 * MIB, "in_use"),
    ]


def test_chunks_in_use_are_buffers_named_by_their_size():
    reports = read("\n".join(dump()))
    assert rows(reports, "buffers", "allocator", "address", "region_type", "allocated_bytes") == [
        ("GPU_0_bfc", 0x7F0000000000, "chunk of 1.2KiB", 1280),
        ("GPU_0_bfc", 0x7F0001200000, "chunk of 5.00MiB", 5 * MIB),
    ]


@each_row(
    ("old", "new"),
    [
        # TensorFlow before 1.13 has no regions, and "Chunk" for "InUse".
        ("InUse at ", "Chunk at 0x"),
        ("Free  at ", "Free at 0x"),
        # 1.14 to 2.3 swap the two.
        ("1280 next 1", "1280"),
        ("in pool: 7.00MiB memory_limit_: 8.00MiB", "in pool: 7342080 memory_limit_: 8388608"),
        ("Total size in pool:", "total_region_allocated_bytes_:"),
        ("Limit:                         8.00MiB", "Limit:                         8388608"),
        # The newest.
        ("3145728)requested", "3145728) requested"),
        ("5242880 next", "5242880 tag 3 (lower end) next"),
        ("Chunks in use: 0. 0B", "Chunks in use: 0 0B"),
    ],
)
def test_every_wording(old, new):
    text = "\n".join(dump())
    assert old in text
    reports = read(text.replace(old, new))
    assert check_columns("oom_reports", reports.read("oom_reports")).to_pylist() == [REPORT]


def test_size_after_next():
    lines = [line.replace(" of size 1280 next 1", " next 1 of size 1280") for line in dump()]
    assert rows(read("\n".join(lines)), "blocks", "bytes")[0] == (1280,)


def test_without_regions_a_gap_begins_the_next_one():
    reports = read("\n".join([line for line in dump() if not line.startswith("Next region")]))
    assert rows(reports, "blocks", "segment_id", "bytes") == [
        (0, 1280), (0, 768), (1, 2 * MIB), (1, 5 * MIB),
    ]  # fmt: skip
    assert rows(reports, "oom_reports", "is_complete") == [(True,)]


def test_the_earliest_wording_tells_the_request_after_the_dump():
    lines = [
        *dump()[3:-1],
        "Ran out of memory trying to allocate 91.6KiB.  See logs for memory state.",
        "Resource exhausted: OOM when allocating tensor with shape[67,350]",
    ]
    reports = read("\n".join(lines))
    assert rows(reports, "oom_reports", "allocator", "requested_bytes", "shape", "in_use_bytes",
                "is_complete") == [("", 93798, "[67, 350]", 5 * MIB + 1280, True)]  # fmt: skip


def test_a_chunk_may_tell_its_op():
    lines = [line.replace("1280 next", "1280 by op a/Conv2D action_count 3 step 1 next")
             for line in dump()]  # fmt: skip
    assert rows(read("\n".join(lines)), "buffers", "op") == [("a/Conv2D",), (None,)]


def test_what_an_op_can_do_without_is_no_failure():
    text = (
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.25GiB with freed_by_count=0."
        " The caller indicates that this is not a failure, but may mean that there could be"
        " performance gains if more memory were available.\n"
    )
    assert read(text).reports == 0


def test_the_error_is_printed_again_and_again():
    assert read("\n".join([*dump(), *dump()[-1:] * 3])).reports == 1


def test_two_reports_of_an_allocator():
    reports = read("\n".join([*dump(), "step 4", *dump()]))
    assert rows(reports, "oom_reports", "report_id", "allocator", "is_complete") == [
        (0, "GPU_0_bfc", True), (1, "GPU_0_bfc", True),
    ]  # fmt: skip
    # Twice the same memory would be too much: the buffers are those of the later one.
    assert len(rows(reports, "buffers", "address")) == 2


def test_two_threads_dump_at_once():
    first = with_prefix(dump(), 7)
    second = with_prefix(dump("GPU_1_bfc", 0x500000000000), 8)
    mixed = []
    for a, b in zip(first, second, strict=True):
        # The statistics follow their message.
        mixed += [a, b] if "]" in a and "Stats" not in a else [a]
    at = next(n for n, line in enumerate(mixed) if "OP_REQUIRES" in line)
    mixed[at:at] = second[second.index(next(x for x in second if "Stats" in x)) : -1]
    reports = read("\n".join(mixed))
    assert rows(reports, "oom_reports", "allocator", "in_use_bytes", "is_complete") == [
        ("GPU_0_bfc", 5 * MIB + 1280, True),
        ("GPU_1_bfc", 5 * MIB + 1280, True),
    ]


def test_addresses_keep_dumps_apart_where_no_thread_is_named():
    first, second = dump(), dump("GPU_1_bfc", 0x500000000000)
    reports = read("\n".join([line for pair in zip(first, second, strict=True) for line in pair]))
    assert rows(reports, "blocks", "report_id", "bytes", "state") == [
        (report, size, state)
        for report in (0, 1)
        for size, state in ((1280, "in_use"), (768, "free"), (2 * MIB, "free"), (5 * MIB, "in_use"))
    ]


def test_a_report_that_ends_in_the_middle():
    reports = read("\n".join(dump()[:28]))
    assert rows(reports, "oom_reports", "requested_bytes", "in_use_bytes", "is_complete") == [
        (3 * MIB, None, False)
    ]
    assert warned(reports) == [
        ("truncated_oom_report", 1, "GPU_0_bfc: the report's end is missing")
    ]


def test_a_report_that_begins_in_the_middle():
    reports = read("\n".join(dump()[28:]))
    assert rows(reports, "oom_reports", "allocator", "op", "is_complete") == [
        ("GPU_0_bfc", None, False)
    ]
    assert ("truncated_oom_report", 1, "GPU_0_bfc: the report's beginning is missing") in warned(
        reports
    )


def test_a_line_cut_in_the_middle_is_counted():
    lines = dump()
    lines[26] = "InUse at 7f00000"
    reports = read("\n".join(lines))
    assert [kind for kind, _, _ in warned(reports)] == ["oom_report_mismatch", "cut_oom_lines"]
    assert rows(reports, "oom_reports", "is_complete") == [(False,)]


def test_sums_that_do_not_add_up():
    text = "\n".join(dump())
    text = text.replace("in-use chunks: 5.00MiB", "in-use chunks: 6.00MiB")
    text = text.replace("Bin (1024): \tTotal Chunks: 1", "Bin (1024): \tTotal Chunks: 2")
    assert warned(read(text)) == [
        (
            "oom_report_mismatch",
            2,
            "GPU_0_bfc: the chunks in use are 5.00MiB, the report says 6.00MiB",
        )
    ]


def test_a_log_without_its_info_lines():
    lines = [dump()[0], *dump()[-2:]]
    reports = read("\n".join(lines))
    assert rows(reports, "oom_reports", "requested_bytes", "is_complete") == [(3 * MIB, False)]
    assert [kind for kind, _, _ in warned(reports)] == ["oom_report_without_chunks"]


def test_times_count_from_the_first_report():
    text = (
        "2024-05-01 10:00:00.000000: W Allocator (a) ran out of memory trying to allocate 1B.\n"
        "2024-05-01 10:00:01.500000: W Allocator (b) ran out of memory trying to allocate 1B.\n"
        "W0501 10:00:02.000000 7 x.cc:1] Allocator (c) ran out of memory trying to allocate 1B.\n"
    )
    assert rows(read(text), "oom_reports", "time_ps") == [
        (0,), (1_500_000_000_000,), (2_000_000_000_000,),
    ]  # fmt: skip


def test_tensors_of_the_step_name_chunks_of_their_size():
    usage = [
        "Current usage from device: /device:GPU:0, allocator: GPU_0_bfc",
        "  5.00MiB from net/Conv2D",
        "Remaining 3 nodes with 1.2KiB",
        "",
    ]
    reports = read("\n".join([*dump(), *usage, *usage]))
    assert reports.reports == 1
    assert rows(reports, "buffers", "op", "allocated_bytes") == [
        (None, 1280), ("net/Conv2D", 5 * MIB),
    ]  # fmt: skip


def test_tensors_of_the_step_alone():
    text = (
        "Current usage from device: /device:GPU:0, allocator: GPU_0_bfc\n"
        "  2.00MiB from a/MatMul\n  1.00KiB from b\n"
    )
    assert rows(read(text), "buffers", "allocator", "op", "allocated_bytes") == [
        ("GPU_0_bfc", "a/MatMul", 2 * MIB), ("GPU_0_bfc", "b", 1024),
    ]  # fmt: skip


def test_a_progress_bar_before_a_report():
    assert read("\r".join(f"{n}% done" for n in range(100)) + "\r" + "\n".join(dump())).reports == 1


def test_a_log_with_windows_line_ends():
    reports = read("\r\n".join(dump()))
    assert check_columns("oom_reports", reports.read("oom_reports")).to_pylist() == [REPORT]


def test_lines_inside_json():
    text = "\n".join('{"log":"' + line.replace("\t", "\\t") + '\\n","stream":"stderr"}'
                     for line in dump())  # fmt: skip
    assert rows(read(text), "oom_reports", "op", "in_use_bytes") == [("MatMul", 5 * MIB + 1280)]


def test_a_long_log_that_reports_nothing():
    line = b"step 17 loss 0.25 memory is fine, out of patience, in use at most\n"
    assert read(line * 20000, 4096).reports == 0


def test_a_line_without_an_end():
    assert read(b"x" * (3 << 20) + b"\n" + "\n".join(dump()).encode(), 1 << 16).reports == 1


def test_the_report_of_a_real_run(root: Path):
    reports = read(gzip.decompress((root / "tests/data/oom_report/tf_bfc_oom.log.gz").read_bytes()))
    assert rows(reports, "oom_reports", "allocator", "requested_bytes", "op", "in_use_bytes",
                "pool_bytes", "free_bytes", "largest_free_bytes", "is_complete") == [
        ("bfc_cpu_allocator_for_gpu", 2 * MIB, "AddV2", 65216768, 64 * MIB, 1892096, 1226496, True)
    ]  # fmt: skip
    assert len(rows(reports, "blocks", "address")) == 35
    assert sum(size for (size,) in rows(reports, "buffers", "allocated_bytes")) == 65216768
    assert warned(reports) == []


@given(
    edits=st.lists(
        st.tuples(
            st.integers(0, 48),
            st.integers(0, 60),
            st.integers(0, 60),
            st.sampled_from(["", "9", "9" * 40, "\n", "\xff", " at ", "InUse at 7f", "-", "."]),
        ),
        max_size=12,
    ),
    block=st.integers(1, 5000),
)
def test_no_damage_stops_the_reading(edits, block):
    lines = [*dump(), "  1.00KiB from a", *dump("b", 1 << 63)]
    for row, start, end, text in edits:
        line = lines[row % len(lines)]
        lines[row % len(lines)] = line[:start] + text + line[end:]
    reports = read("\n".join(lines), block)
    result = {table: check_columns(table, reports.read(table)) for table in reports.tables}
    moments = failed_moments(result["oom_reports"], result["blocks"], result["oom_parts"])
    assert result["oom_reports"].rows == reports.reports == len(moments)
    warned(reports)


@each_row(
    ("text", "size"),
    [("0B", 0), ("256B", 256), ("200.0KiB", 204800), ("64.00MiB", 64 * MIB), ("1.5GiB", 3 << 29),
     ("15.38 MiB", 16127099), ("63.80G", 68504728371), ("0 bytes", 0), ("1490198528", 1490198528)],
)  # fmt: skip
def test_sizes(text, size):
    assert parse_size(text) == size


@each_row(
    ("size", "text"),
    [(0, "0B"), (1023, "1023B"), (1280, "1.2KiB"), (204800, "200.0KiB"), (9000192, "8.58MiB")],
)
def test_sizes_as_the_runtime_spells_them(size, text):
    assert human(size) == text


@each_row(
    "hostile",
    [
        # One chunk again and again, and one phrase on one line.
        b"BFCAllocator dump for gpu\n" + b"Chunk at 0x7f00 of size 256\n" * 60_000,
        b"Attempting to allocate 1.0GiB. " * 20_000 + b"\n",
    ],
)
def test_what_repeats_costs_no_more_than_its_length(hostile):
    # Each once took the square of its length.
    scanner = OomScanner()
    with no_hang():
        scanner.feed(hostile)
    assert scanner.finish().reports == int(hostile.startswith(b"BFC"))


GIB, MIB_OF_OOM_REPORT_TEXTS, KIB = 1 << 30, 1 << 20, 1 << 10
TORCH = ("allocator", "requested_bytes", "limit_bytes", "pool_bytes", "in_use_bytes",
         "free_bytes", "device_free_bytes", "is_complete")  # fmt: skip

NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 24.00 MiB. GPU 1 has a total "
    "capacity of 8.00 GiB of which 16.00 MiB is free. Process 4 has 2.00 GiB memory in use. "
    "Including non-PyTorch memory, this process has 4.00 GiB memory in use. Of the allocated "
    "memory 3.00 GiB is allocated by PyTorch, and 64.00 MiB is reserved by PyTorch but "
    "unallocated. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF"
)
NEW_ROW = (
    "cuda:1",
    24 * MIB_OF_OOM_REPORT_TEXTS,
    8 * GIB,
    3 * GIB + 64 * MIB_OF_OOM_REPORT_TEXTS,
    3 * GIB,
    64 * MIB_OF_OOM_REPORT_TEXTS,
    16 * MIB_OF_OOM_REPORT_TEXTS,
    True,
)
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 4.00 GiB total "
    "capacity; 3.00 GiB already allocated; 0 bytes free; 3.50 GiB reserved in total by PyTorch)"
)
MPS = (
    "MPS backend out of memory (MPS allocated: 7.00 GB, other allocations: 1.00 KB, max "
    "allowed: 9.00 GB). Tried to allocate 12.00 MB on private pool."
)
CPU = (
    "[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory: you "
    "tried to allocate 4096 bytes. Error code 12"
)


@each_row(
    ("text", "row"),
    [
        (NEW, NEW_ROW),
        (NEW.replace("CUDA out", "HIP out"), NEW_ROW),
        (NEW.replace("total capacity", "total capacty"), NEW_ROW),
        (NEW.replace("Of the", "6.00 GiB allowed; Of the"), (*NEW_ROW[:2], 6 * GIB, *NEW_ROW[3:])),
        (
            OLD,
            (
                "cuda:0",
                20 * MIB_OF_OOM_REPORT_TEXTS,
                4 * GIB,
                7 * GIB // 2,
                3 * GIB,
                GIB // 2,
                0,
                True,
            ),
        ),
        (
            OLD.replace("3.50 GiB reserved in total by PyTorch", "512.00 MiB cached"),
            (
                "cuda:0",
                20 * MIB_OF_OOM_REPORT_TEXTS,
                4 * GIB,
                7 * GIB // 2,
                3 * GIB,
                GIB // 2,
                0,
                True,
            ),
        ),
        (
            "CUDA out of memory. Tried to allocate 1.00 GiB.",
            ("cuda", GIB, None, None, None, None, None, False),
        ),
        (
            MPS,
            (
                "mps",
                12 * MIB_OF_OOM_REPORT_TEXTS,
                9 * GIB,
                None,
                7 * GIB,
                None,
                2 * GIB - KIB,
                True,
            ),
        ),
        (CPU, ("cpu", 4096, None, None, None, None, None, True)),
    ],
)
def test_pytorch(text, row):
    assert rows(read(text), "oom_reports", *TORCH) == [row]


def test_pytorch_message_on_several_lines():
    assert rows(read(NEW.replace(". ", ".\n") + "\nnext line"), "oom_reports", *TORCH) == [NEW_ROW]


def test_pytorch_message_printed_twice_is_one_report():
    assert read(f"{NEW}\nDuring handling of the above exception\n{NEW}\n").reports == 1


def test_pytorch_message_of_two_devices():
    reports = read(f"{NEW}\n{NEW.replace('GPU 1', 'GPU 0')}\n")
    assert rows(reports, "oom_reports", "allocator") == [("cuda:1",), ("cuda:0",)]


def test_a_pytorch_message_that_is_cut():
    reports = read(NEW[:200])
    assert rows(reports, "oom_reports", "is_complete") == [(False,)]
    assert warned(reports) == [("truncated_oom_report", 1, "cuda:1: the report's end is missing")]


XLA = """
E0528 1 x.cc:1] Execution failed: RESOURCE_EXHAUSTED: Out of memory while trying to allocate {size}.
BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    1.02GiB
Peak buffers:
\tBuffer 1:
\t\tSize: 4.00MiB
\t\tOperator: op_name="jit(f)/dot[precision=\\"x\\"]" source_file="a.py" source_line=3
\t\tXLA Label: custom-call
\t\tShape: f32[1024,1024]
\t\t==========================

\tBuffer 2:
\t\tSize: 1.00KiB
\t\tEntry Parameter Subshape: u8[1000]
\t\t==========================

\tBuffer 3:
\t\tSize: 8B
\t\tXLA Label: fusion
\t\tShape: (f32[2]{0}, s32[])
\t\t==========================
"""


def test_an_xla_program():
    reports = read(XLA.replace("{size}", "3145728 bytes"))
    assert rows(reports, "oom_reports", "requested_bytes", "is_complete") == [
        (3 * MIB_OF_OOM_REPORT_TEXTS, True)
    ]
    assert rows(
        reports, "buffers", "op", "region_type", "data_type", "shape", "allocated_bytes"
    ) == [
        (
            'jit(f)/dot[precision=\\"x\\"] a.py:3',
            None,
            "f32",
            "[1024, 1024]",
            4 * MIB_OF_OOM_REPORT_TEXTS,
        ),
        # A thousand bytes are 1000B: the size that the shape has is not what is told.
        (None, "parameter", "u8", "[1000]", 1024),
        ("fusion", None, "tuple", "(f32[2], s32[])", 8),
    ]


@each_row("size", ["3145600 bytes", "3.00MiB"])
def test_an_xla_program_whose_allocator_reported_first(size):
    assert read("\n".join(dump()[:-1]) + XLA.replace("{size}", size)).reports == 1


def test_an_xla_error_printed_again():
    text = XLA.replace("{size}", "77 bytes")
    reports = read(text + text)
    assert reports.reports == 1
    assert len(rows(reports, "buffers", "op")) == 3


TPU = """
XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 5.00G of 4.00G hbm. Exceeded hbm capacity by 1.00G.

Total hbm usage >= 5.25G:
    reserved        256.00M

  Largest program allocations in hbm:

  1. Size: 3.00G
     Operator: op_name="jit(step)/dot_general" source_file="m.py" source_line=8
     Shape: bf16[32,2048]{1,0}
     Unpadded size: 2.00G
     XLA label: fusion.7 = fusion(p0), kind=kLoop
     Allocation type: HLO temp
     ==========================

  2. Size: 512.0K
     XLA label: copy.1 = copy(p1)
     Allocation type: global
     ==========================
"""  # noqa: E501 (one line, as it is printed)


def test_a_program_that_does_not_fit_a_tpu():
    reports = read(TPU)
    assert rows(reports, "oom_reports", "allocator", "requested_bytes", "limit_bytes") == [
        ("hbm", 5 * GIB, 4 * GIB)
    ]
    assert rows(
        reports, "buffers", "op", "region_type", "data_type", "shape", "allocated_bytes"
    ) == [
        ("jit(step)/dot_general m.py:8", "HLO temp", "bf16", "[32, 2048]", 3 * GIB),
        ("copy.1", "global", None, None, 512 * KIB),
    ]


def test_a_tpu_without_room_at_run_time():
    text = (
        "RESOURCE_EXHAUSTED: Attempting to allocate 1.50G. That was not possible. There are "
        "1.25G free.; (0x0x0_HBM0)"
    )
    assert rows(read(text), "oom_reports", "allocator", "requested_bytes", "device_free_bytes") == [
        ("0x0x0_HBM0", 3 * GIB // 2, 5 * GIB // 4)
    ]


@each_row(
    "prefix",
    ["2020-05-04 09:05:40.721128: E    1578 tensorflow/compiler/xla/xla_client/xla_util.cc:76] ",
     "(Worker pid=17, ip=10.0.0.2) ", "worker-3| ", "E0528 07:02:44.350251   27487 a.cc:76] "],
)  # fmt: skip
def test_a_list_whose_lines_all_have_a_prefix(prefix):
    text = "\n".join(prefix + line for line in TPU.splitlines())
    assert rows(read(text), "buffers", "op", "region_type", "allocated_bytes") == rows(
        read(TPU), "buffers", "op", "region_type", "allocated_bytes"
    )


OLD_TPU = """
Compilation failure: Ran out of memory in memory space hbm. Used 17.60G of 16.00G hbm. Exceeded hbm capacity by 1.60G.

  Largest program allocations in hbm:

  1. Size: 512.00M
     Operator: op_type="OneHot" op_name="one_hot"
     Shape: f32[4,128,128,9,18]{4,3,0,2,1:T(8,128)}
     Unpadded size: 40.50M
     Extra memory due to padding: 471.50M (12.6x expansion)
     XLA label: %fusion.1668 = f32[4,128,128,9,18]{4,3,0,2,1:T(8,128)} fusion(s32[4]{0} %copy.130), kind=kLoop, metadata={op_type="OneHot" op_name="one_hot"}
     Allocation type: HLO temp
     ==========================

  2. Size: 256.00M
     Shape: bf16[4,512,512,64]{3,0,2,1:T(4,128)(2,1)}
     XLA label: %fusion.20231 = (bf16[4,512,512,64]{3,0,2,1:T(4,128)(2,1)}) fusion(f32[64]{0:T(256)} %get-tuple-ele...
     Allocation type: HLO temp
     ==========================

  3. Size: 128.00M
     XLA label: %copy.7 = bf16[8,8]{1,0} copy(%p), metadata={op_name="net/copy" source_file="/a/b.py" source_line=77}
     Allocation type: HLO temp
     ==========================
"""  # noqa: E501 (lines as they are printed)


def test_the_wording_of_2019():
    assert rows(read(OLD_TPU), "buffers", "op", "data_type", "shape", "allocated_bytes") == [
        ("one_hot", "f32", "[4, 128, 128, 9, 18]", 512 * MIB_OF_OOM_REPORT_TEXTS),
        ("fusion.20231", "bf16", "[4, 512, 512, 64]", 256 * MIB_OF_OOM_REPORT_TEXTS),
        ("net/copy b.py:77", None, None, 128 * MIB_OF_OOM_REPORT_TEXTS),
    ]


def test_the_wording_of_2025():
    text = (
        "RESOURCE_EXHAUSTED: TPU TensorCore Hbm usage: 34.50G, SparseCore Hbm usage 174.25G, "
        "exceeding available bytes: 95.75G"
    )
    assert rows(read(text), "oom_reports", "allocator", "requested_bytes", "limit_bytes") == [
        ("hbm", int(208.75 * GIB), int(95.75 * GIB))
    ]


def test_a_program_that_cannot_be_loaded_is_named():
    text = (
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Error loading program 'jit_step_fn': Attempting to "
        "reserve 29.50G at the bottom of memory. That was not possible. There are 147.64M free, 0B "
        "reserved, and 147.64M reservable. Scope: unknown..: while running replica 0"
    )
    assert rows(read(text), "oom_reports", "op", "requested_bytes") == [
        ("jit_step_fn", int(29.5 * GIB))
    ]
