"""framework_op_stats, kernel_stats, hlo_stats and roofline_model against XProf's own: every table,
column and row.

Samples, random spaces full of ops and of instructions, the random spaces of the other tests with
times that a clock can give, several hosts together; which names mean tensor cores, and the text of
every kind of instruction.
"""

import json

import pytest

import peakline
from peakline.tools import run_tool
from reference.hlo_spaces import every_instruction, hlo_space
from reference.op_spaces import random_op_space
from reference.random_xspace import random_xspace
from reference.xspace_builder import SpaceBuilder
from tests.conformance.oracle import OWN_SAMPLES, SEEDS, space_of
from tests.conformance.stats_tables import (
    difference,
    different,
    ours,
    ours_together,
    rows,
    theirs,
    written,
)

FRAMEWORK, KERNELS, HLO, ROOFLINE = TOOLS = (
    "framework_op_stats", "kernel_stats", "hlo_stats", "roofline_model",
)  # fmt: skip
LONGEST = 2**53
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


def is_ordinary(space) -> bool:
    """Whether its times are those of a clock, and not what overflows it."""
    return all(
        0 <= line.timestamp_ns < LONGEST // 1000
        and 0 <= event.offset_ps < LONGEST
        and 0 <= event.duration_ps < LONGEST
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    )


@pytest.mark.parametrize("tool", TOOLS)
def test_every_sample(xprof, tool):
    assert len(xprof.spaces) > (20 if xprof.is_recorded and xprof.is_whole else 5)
    assert different(xprof, tool, xprof.spaces) == {}


@pytest.mark.conformance
@pytest.mark.parametrize("tool", TOOLS)
def test_spaces_full_of_ops(live_xprof, tmp_path, tool):
    spaces = {f"ops{seed}": random_op_space(seed) for seed in range(SEEDS)}
    assert different(live_xprof, tool, written(tmp_path, spaces)) == {}


@pytest.mark.conformance
@pytest.mark.parametrize(("tool", "kind"), [(HLO, ""), (ROOFLINE, "gpu"), (ROOFLINE, "tpu")])
def test_spaces_full_of_instructions(live_xprof, tmp_path, tool, kind):
    spaces = {f"hlo{seed}": hlo_space(seed, kind=kind) for seed in range(SEEDS)}
    assert different(live_xprof, tool, written(tmp_path, spaces)) == {}


@pytest.mark.conformance
@pytest.mark.parametrize("tool", [FRAMEWORK, HLO])
def test_random_spaces(live_xprof, tmp_path, tool):
    spaces = {f"random{seed}": random_xspace(seed) for seed in range(SEEDS + SEEDS // 2)}
    ordinary = {name: space for name, space in spaces.items() if is_ordinary(space)}
    assert len(ordinary) > SEEDS * 0.9
    assert different(live_xprof, tool, written(tmp_path, ordinary)) == {}


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("tool", "kind", "seeds"),
    [
        (FRAMEWORK, "ops", (9, 11, 29)),
        (KERNELS, "ops", (9, 11, 29)),
        (HLO, "tpu", (1, 2, 3)),
        (ROOFLINE, "gpu", (4, 5, 6)),
        (ROOFLINE, "tpu", (4, 5, 6)),
    ],
)
def test_several_hosts(live_xprof, tmp_path, tool, kind, seeds):
    spaces = {
        f"host{seed}": random_op_space(seed) if kind == "ops" else hlo_space(seed, kind=kind)
        for seed in seeds
    }
    paths = written(tmp_path, spaces)
    own = ours_together(paths, tool, compatible="xprof")
    assert difference(own, theirs(live_xprof, tool, *paths)) is None


@pytest.mark.conformance
def test_which_ops_are_cut(live_xprof, tmp_path):
    builder = SpaceBuilder()
    line = builder.host().line("thread")
    for number in range(620):
        line.event(f"op{number}:Op", number * 10_000, 1000 + number)
    (path,) = written(tmp_path, {"many": builder.space})
    assert different(live_xprof, FRAMEWORK, [path]) == {}
    with peakline.open(str(path)) as profile:
        table = json.loads(run_tool(profile, FRAMEWORK, {"compatible": "xprof"}).content)[0]
        # 620 ops and IDLE.
        assert len(table["rows"]) == 500
        assert [(w.kind, w.count) for w in profile.warnings] == [("ops_cut", 121)]
        assert len(json.loads(run_tool(profile, FRAMEWORK).content)[0]["rows"]) == 621


@pytest.mark.conformance
def test_which_kernels_are_cut(live_xprof, tmp_path):
    builder = SpaceBuilder()
    line = builder.plane("/device:GPU:0").line("Stream")
    for number in range(1030):
        line.event(f"k{number}", number * 10_000, 10**6, {"kernel_details": "regs:1"})
    (path,) = written(tmp_path, {"many": builder.space})
    assert different(live_xprof, KERNELS, [path]) == {}
    with peakline.open(str(path)) as profile:
        run_tool(profile, KERNELS, {"compatible": "xprof"})
        assert [(w.kind, w.count) for w in profile.warnings] == [("kernels_cut", 30)]
        assert len(json.loads(run_tool(profile, KERNELS).content)["rows"]) == 1030


@pytest.mark.conformance
def test_an_allocation_is_no_execution(live_xprof, tmp_path):
    """The case of docs/differences/framework_op_stats.md: 16 runs with an allocation each."""
    builder = SpaceBuilder()
    line = builder.host().line("thread")
    for number in range(16):
        line.event("a/MatMul:MatMul", number * 10_000, 4000)
        line.event("MemoryAllocation", number * 10_000 + 1000, 0, {"tf_op": "a/MatMul:MatMul"})
    (path,) = written(tmp_path, {"allocations": builder.space})
    other = {row[3]: row for row in rows(theirs(live_xprof, FRAMEWORK, path)[1])}
    own = {row[3]: row for row in rows(ours(path, FRAMEWORK)[1])}
    # Occurrences, total time, average time.
    assert other["a/MatMul"][4:7] == [32.0, 0.064, 0.002]
    assert own["a/MatMul"][4:7] == [16.0, 0.064, 0.004]


def test_ours_differs_by_the_allocations_alone(xprof):
    """On TensorFlow's samples, which run no op eagerly, nothing else is different."""
    paths = [path for path in xprof.spaces if OWN_SAMPLES[0] / "tf2_cnn" in path.parents]
    assert paths
    for path in paths:
        other = {row[3]: row for row in rows(theirs(xprof, FRAMEWORK, path)[1])}
        own = {row[3]: row for row in rows(ours(path, FRAMEWORK)[1])}
        allocations = allocated(path)
        for name, row in own.items():
            if name in other and row[-1] != "Eager":
                assert row[5] == pytest.approx(other[name][5], rel=1e-9)
                assert other[name][4] - row[4] == allocations.get(name, 0), name
        # What XProf has besides was only ever seen to allocate, or is eager here.
        for name in other.keys() - own.keys():
            assert other[name][5] == 0.0
            assert other[name][4] == allocations[name]


def allocated(path):
    """How often memory was allocated or freed for each op."""
    with peakline.open(str(path)) as profile:
        result = profile.sql(
            "SELECT split_part(s.value, ':', 1) AS op, count(*) AS n FROM event_stats s "
            "JOIN events e USING (event_id) WHERE s.name = 'tf_op' AND s.value <> '' "
            "AND e.name LIKE 'Memory%' GROUP BY 1"
        ).to_pylist()
    return {row["op"]: row["n"] for row in result}


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
    assert different(live_xprof, KERNELS, written(tmp_path, spaces)) == {}


@pytest.mark.conformance
def test_parts_of_a_nanosecond_are_lost_by_xprof(live_xprof, tmp_path):
    """The case of docs/differences/kernel_stats.md: 1000 runs of 1999 ps."""
    builder = SpaceBuilder()
    line = builder.plane("/device:GPU:0").line("Stream")
    for number in range(1000):
        line.event("k", number * 10_000, 1999, {"kernel_details": "regs:1"})
    (path,) = written(tmp_path, {"parts": builder.space})
    # Total and average in microseconds.
    assert rows(theirs(live_xprof, KERNELS, path))[0][11:13] == [1.0, 0.001]
    assert rows(ours(path, KERNELS))[0][11:13] == [1.999, 0.001999]


@pytest.mark.conformance
def test_the_text_of_every_instruction(live_xprof, tmp_path):
    """A GPU that runs each instruction of each program of the samples once."""
    count = 0
    for number, path in enumerate(live_xprof.spaces):
        programs = programs_of(path)
        count += len(programs)
        if programs:
            space = every_instruction(programs)
            paths = written(tmp_path, {f"programs{number}": space})
            assert different(live_xprof, HLO, paths) == {}
    assert count


def programs_of(path):
    """The compiled programs of a file by id."""
    result = {}
    for plane in space_of(path).planes:
        if plane.name == "/host:metadata":
            for number, metadata in plane.event_metadata.items():
                data = [stat.bytes_value for stat in metadata.stats if stat.bytes_value]
                if data:
                    result[number] = data[0]
    return result
