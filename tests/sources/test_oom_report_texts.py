"""Failures told in one message: PyTorch, XLA programs, TPU."""

from tests.each_row import each_row
from tests.sources.test_oom_report import dump, read, rows, warned

GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10
TORCH = ("allocator", "requested_bytes", "limit_bytes", "pool_bytes", "in_use_bytes",
         "free_bytes", "device_free_bytes", "is_complete")  # fmt: skip

NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 24.00 MiB. GPU 1 has a total "
    "capacity of 8.00 GiB of which 16.00 MiB is free. Process 4 has 2.00 GiB memory in use. "
    "Including non-PyTorch memory, this process has 4.00 GiB memory in use. Of the allocated "
    "memory 3.00 GiB is allocated by PyTorch, and 64.00 MiB is reserved by PyTorch but "
    "unallocated. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF"
)
NEW_ROW = ("cuda:1", 24 * MIB, 8 * GIB, 3 * GIB + 64 * MIB, 3 * GIB, 64 * MIB, 16 * MIB, True)
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
        (
            NEW.replace("Of the", "6.00 GiB allowed; Of the"),
            (*NEW_ROW[:2], 6 * GIB, *NEW_ROW[3:]),
        ),
        (OLD, ("cuda:0", 20 * MIB, 4 * GIB, 7 * GIB // 2, 3 * GIB, GIB // 2, 0, True)),
        (
            OLD.replace("3.50 GiB reserved in total by PyTorch", "512.00 MiB cached"),
            ("cuda:0", 20 * MIB, 4 * GIB, 7 * GIB // 2, 3 * GIB, GIB // 2, 0, True),
        ),
        (
            "CUDA out of memory. Tried to allocate 1.00 GiB.",
            ("cuda", GIB, None, None, None, None, None, False),
        ),
        (
            MPS,
            ("mps", 12 * MIB, 9 * GIB, None, 7 * GIB, None, None, True),
        ),
        (
            CPU,
            ("cpu", 4096, None, None, None, None, None, True),
        ),
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
    assert rows(reports, "oom_reports", "requested_bytes", "is_complete") == [(3 * MIB, True)]
    assert rows(
        reports, "buffers", "op", "region_type", "data_type", "shape", "allocated_bytes"
    ) == [
        ('jit(f)/dot[precision=\\"x\\"] a.py:3', None, "f32", "[1024, 1024]", 4 * MIB),
        # A thousand bytes are 1000B: the size that the shape has is not what is told.
        (None, "parameter", "u8", "[1000]", 1024),
        ("fusion", None, "f32", "[2]", 8),
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
        ("one_hot", "f32", "[4, 128, 128, 9, 18]", 512 * MIB),
        ("fusion.20231", "bf16", "[4, 512, 512, 64]", 256 * MIB),
        ("net/copy b.py:77", None, None, 128 * MIB),
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
