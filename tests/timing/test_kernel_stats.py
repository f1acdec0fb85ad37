"""Kernels of GPUs: launch parameters, tensor cores, what makes two kernels one."""

import json

from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder

import peakline
from peakline.formats.common.annotations import parse_details
from peakline.tables.event_rules import LaunchParameters
from peakline.timing.kernels import kernel_reports, merge_reports
from peakline.timing.launches.kernels import could_use, is_helper, is_product, uses
from peakline.xprof.rules.kernels import (
    WORDS_OF_NVIDIA,
    einsum_could_use,
    known_to_use,
    xprof_kernel_reports,
)

NVIDIA = "regs:32 static_shared:16 dynamic_shared:8 grid:4,2,1 block:256,1,1 occ_pct:50.5"
AMD = " grid:4,64,1 block:256,1,1 private_mem:0 group_mem:8704 occ_pct:0"


@each_row(
    ("text", "found"),
    [
        (NVIDIA, LaunchParameters((4, 2, 1), (256, 1, 1), 32, 16, 8, 50.5)),
        (AMD, LaunchParameters((4, 64, 1), (256, 1, 1), 0, 8704, 0, 0.0)),
        ("regs:+5\nblock:1,2,3", LaunchParameters(block=(1, 2, 3), registers=5)),
        ("regs:1 regs:2", LaunchParameters(registers=2)),
        ("regs:-1 grid:1,2 block:1,2,x occ_pct:abc regs:5:6", LaunchParameters()),
        ("regs:4294967296 static_shared:4294967295", LaunchParameters(static_shared=2**32 - 1)),
        ("occ_pct:0x1p3", LaunchParameters(occupancy_percent=8.0)),
        ("occ_pct:1_0", LaunchParameters()),
        ("", LaunchParameters()),
    ],
)
def test_launch_parameters(text, found):
    assert parse_details(text) == found


def test_xprof_knows_no_words_of_amd():
    assert parse_details(AMD, WORDS_OF_NVIDIA) == LaunchParameters((4, 64, 1), (256, 1, 1))


@each_row(
    ("kernel", "vendor", "ours", "xprof"),
    [
        ("volta_h884gemm", "Nvidia", True, True),
        ("nvjet_tst_128x8", "Nvidia", True, False),
        ("loop_fusion", "Nvidia", False, False),
        ("volta_h884gemm", "AMD", False, False),
        ("CijkMI16x16x16x1_SN", "AMD", False, False),
        ("Cijk_Ailk_MT8_MI16x16x16x1_SN", "AMD", True, True),
        ("void ck_tile::kentry<FmhaFwdKernel<TileFmhaShape<16>>>", "AMD", True, True),
        ("void ck_tile::kentry<BlockFmhaBwdOGradDotO<bf16>>", "AMD", False, False),
        ("void ck_tile::kentry<FmhaFwdKernel<TileFmhaShape<16>>>", "", True, False),
        ("aiter::fmha_bwd_hd128_odo_bf16", "AMD", False, False),
        ("volta_h884gemm", "", True, False),
    ],
)
def test_names_of_kernels(kernel, vendor, ours, xprof):
    assert uses(kernel, vendor) is ours
    assert known_to_use(kernel, vendor) is xprof


def test_names_of_ops():
    assert could_use("a/MatMul")
    assert not could_use("MatMul")
    assert could_use("jit(f)/dot_general")
    assert could_use("aten::addmm")
    assert not is_product("aten::addmm")
    assert not could_use("aten::add")
    for name in (
        "batched_transpose_32x32_half", "SubTensorOpWithScalar1d", "Im2Col", "OpTensorFwdBias",
        "void cudnn::ops::nchwToNhwcKernel<__half, __half, float>", "unrolled_elementwise_kernel",
        "void cublasLt::splitKreduce_kernel<32, 16, int>", "CatArrayBatchedCopy",
    ):  # fmt: skip
        assert is_helper(name), name
    for name in (
        "volta_scudnn_128x64_stridedB_splitK_xregs_large_nn_v1", "ampere_sgemm_128x64_tn",
        "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>",
        "void implicit_convolve_sgemm<float, float, 128>", "Cijk_Ailk_Bljk_HHS_BH_MT128x128x16_SE",
        "void dot_kernel<float, 128, 0>", "void gemv2T_kernel_val<int, int, float>",
    ):  # fmt: skip
        assert not is_helper(name), name
    assert einsum_could_use("ab,bc->ac")
    assert not einsum_could_use("ab->a")


class TestReports:
    def test_runs_of_one_kernel_are_one(self, opened):
        space = SpaceBuilder()
        line = space.plane("/device:GPU:0", {"device_vendor": "Nvidia"}).line("Stream")
        stats = {"kernel_details": NVIDIA, "tf_op": "a/MatMul:MatMul"}
        line.event("volta_h884gemm", 0, 1500, stats).event("volta_h884gemm", 9000, 2500, stats)
        line.event("volta_h884gemm", 20_000, 500, {"kernel_details": "regs:1"})
        line.event("Memcpy", 30_000, 500)
        rows = opened(space).table("kernels").to_pylist()
        assert rows[0] == {
            "kernel": "volta_h884gemm", "op": "a/MatMul", "grid": "4,2,1", "block": "256,1,1",
            "registers_per_thread": 32, "static_shared_bytes": 16, "dynamic_shared_bytes": 8,
            "occupancy_percent": 50.5, "uses_tensor_cores": True, "could_use_tensor_cores": True,
            "occurrences": 2, "total_ps": 4000, "min_ps": 1500, "median_ps": 1500, "p95_ps": 2500,
            "max_ps": 2500,
        }  # fmt: skip
        assert [(row["op"], row["total_ps"]) for row in rows] == [("a/MatMul", 4000), (None, 500)]

    def test_xprof_cuts_to_whole_nanoseconds(self, opened):
        space = SpaceBuilder()
        line = space.plane("/device:GPU:0").line("Stream")
        line.event("k", 0, 1999, {"kernel_details": "regs:1"})
        line.event("k", 5000, 1999, {"kernel_details": "regs:1"})
        profile = opened(space)
        assert [report.total_ps for report in kernel_reports(profile)] == [3998]
        assert [report.total_ps for report in xprof_kernel_reports(profile)] == [2000]

    def test_hosts_have_one_row_of_a_kernel(self, opened):
        spaces = []
        for durations in ((5000,), (1000, 2000, 9000)):
            space = SpaceBuilder()
            line = space.plane("/device:GPU:0").line("Stream")
            for number, duration in enumerate(durations):
                line.event("k", 10_000 * number, duration, {"kernel_details": "regs:1"})
            spaces.append(opened(space))
        (joined,) = merge_reports([kernel_reports(profile)[0] for profile in spaces])
        assert (joined.occurrences, joined.total_ps) == (4, 17_000)
        assert (joined.shortest_ps, joined.longest_ps) == (1000, 9000)
        # That of the host with three runs.
        assert joined.median_ps == 2000

    def test_without_a_device_no_event_is_read(self, opened):
        space = SpaceBuilder()
        space.host().line("t").event("a:A", 0, 10)
        profile = opened(space)
        assert not profile.has_rows("kernels")
        assert "trace_of" not in {key[0].__name__ for key in profile._results}

    def test_kineto_tells_them_by_category(self, tmp_path):
        events = [
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 9},
            {
                "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                "ts": 1, "dur": 2, "args": {"correlation": 5},
            },
            {
                "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 4,
                "args": {
                    "correlation": 5, "grid": [4, 2, 1], "block": [32, 1, 1],
                    "registers per thread": 40, "shared memory": 512,
                    "est. achieved occupancy %": 25, "stream": 7, "device": 0,
                },
            },
            {
                "ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0,
                "args": {"labels": "GPU 0"},
            },
        ]  # fmt: skip
        path = tmp_path / "x.pt.trace.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        with peakline.open(path) as profile:
            (report,) = kernel_reports(profile)
        launch = report.launch
        assert (launch.op, launch.grid, launch.block) == ("aten::mm", (4, 2, 1), (32, 1, 1))
        assert (launch.registers, launch.dynamic_shared) == (40, 512)
        assert (report.occupancy_percent, report.total_ps) == (25.0, 4_000_000)
        assert launch.could_use
