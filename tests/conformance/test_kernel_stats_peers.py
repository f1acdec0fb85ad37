"""kernel_stats against XProf's: every column and row, and which names mean tensor cores."""

import json

import pytest

import peakline
from peakline.tools import run_tool
from reference.op_spaces import random_op_space
from reference.xspace_builder import SpaceBuilder
from tests.conformance.oracle import SEEDS
from tests.conformance.stats_tables import different, ours, rows, theirs, written

TOOL = "kernel_stats"
NAMES = """
    16816 c1688 conv1x1 conv2d_c1_k1 dgrad_1x1_stride_2x2 direct_group first_layer_wgrad_kernel
    h1688 h884 hmma i16832 i8816 s884 s1688 xmma_gemm xmma_implicit_gemm xmma_sparse_conv
    xmma_sparse_gemm xmma_warp_specialized_implicit_gemm nvjet_tst cutlass_80_tensorop wgmma
    flash_fwd mfma smfmac wmma rocwmma MFMA WMMA Cijk_x _MI16x16x16x1 _MI16x16 MI16x16x16 _MI1x1x1
    _MIx1x1 _MI16x16xa _MI16x16y_MI4x4x4 _xdl gemm_xdl_x xdlops _Xdl gemm_fusion_dot Gemm_fusion
    aiter h_aiter_x Aiter loop_fusion Custom_Cijk_A _Cijk_ igemm_gtcx3 miopenSp3AsmConvRage_v4
    miopenSp3AsmConvFury moe_gemm1 moe_mxgemm moe_sorting FMHA_FWD fmha_fwd attn_fwd bwd_kernel_dq
    bwd_preprocess TileGemmShape<1> TileFmhaShape<1> TileFmhaBwdShape<1> TileFlatmmShape<1>
    TileSageAttnShape<1> TileFmhaShapeI TileGemmTraits<1> TileFooShape<1> ck_tile::FmhaFwdKernel
    ck_tile::BlockFmhaBwdOGradDotO<1> aiter_bwd_odo_bf16 aiter_odo aiter_dq_convert mfma_dq_shuffle
    aiter_topksoftmax TileFmhaBwdShape<DqAccPrezeroKernel topksoftmax
""".split()
OPS = """
    Conv2D x/Conv2DBackpropFilter Conv2DBackpropInput Conv3D Conv3DBackprop DepthwiseConv2dNative
    DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput a/BatchMatMulV2 MatMul
    x/MatMul FusedMatMul x/CudnnRNN CudnnRNNV3 CudnnRNNForward CudnnRNNBackprop XlaDot XlaDotV2
    XlaConv jit/dot_general a/dot_general/b conv_general_dilated ragged_dot x/einsum Einsum
""".split()
EQUATIONS = ["", "ab,bc->ac", "a,b,c->d", "ab->a", "a,b", "a,b->c->d"]


def test_every_sample(xprof):
    assert different(xprof, TOOL, xprof.spaces) == {}


@pytest.mark.conformance
def test_spaces_full_of_ops(live_xprof, tmp_path):
    spaces = {f"ops{seed}": random_op_space(seed) for seed in range(SEEDS)}
    assert different(live_xprof, TOOL, written(tmp_path, spaces)) == {}


@pytest.mark.conformance
def test_names_of_kernels_ops_and_equations(live_xprof, tmp_path):
    spaces = {}
    for vendor in ("Nvidia", "AMD", "NVIDIA", ""):
        builder = SpaceBuilder()
        plane = builder.plane("/device:GPU:0", {"device_vendor": vendor} if vendor else {})
        line, at = plane.line("Stream"), 0
        for name in NAMES:
            line.event(name, at := at + 10_000, 1000 + at // 10, {"kernel_details": "regs:1"})
        for op in OPS:
            stats = {"kernel_details": "regs:1", "tf_op": f"{op}:Op"}
            line.event("kernel", at := at + 10_000, 1000 + at // 10, stats)
        for equation in EQUATIONS:
            stats = {"kernel_details": "regs:1", "tf_op": f"e{at}:Op", "equation": equation}
            line.event("kernel", at := at + 10_000, 1000 + at // 10, stats)
        spaces[f"names_{vendor}"] = builder.space
    assert different(live_xprof, TOOL, written(tmp_path, spaces)) == {}


@pytest.mark.conformance
def test_what_is_cut(live_xprof, tmp_path):
    builder = SpaceBuilder()
    line = builder.plane("/device:GPU:0").line("Stream")
    for number in range(1030):
        line.event(f"k{number}", number * 10_000, 10**6, {"kernel_details": "regs:1"})
    (path,) = written(tmp_path, {"many": builder.space})
    assert different(live_xprof, TOOL, [path]) == {}
    with peakline.open(str(path)) as profile:
        run_tool(profile, TOOL, {"compatible": "xprof"})
        assert [(w.kind, w.count) for w in profile.warnings] == [("kernels_cut", 30)]
        assert len(json.loads(run_tool(profile, TOOL).content)["rows"]) == 1030


@pytest.mark.conformance
def test_parts_of_a_nanosecond_are_lost_by_xprof(live_xprof, tmp_path):
    """The case of docs/differences/kernel_stats.md: 1000 runs of 1999 ps."""
    builder = SpaceBuilder()
    line = builder.plane("/device:GPU:0").line("Stream")
    for number in range(1000):
        line.event("k", number * 10_000, 1999, {"kernel_details": "regs:1"})
    (path,) = written(tmp_path, {"parts": builder.space})
    # Total and average in microseconds.
    assert rows(theirs(live_xprof, TOOL, path))[0][11:13] == [1.0, 0.001]
    assert rows(ours(path, TOOL))[0][11:13] == [1.999, 0.001999]
