"""Collectives: their kinds, and what computation hides of them."""

from __future__ import annotations

from tests.analysis.timing.traces import GPU, HOST_PLANE, TPU, profile_of

from peakline.timing.communication import Communication, communication_of

REDUCE, GATHER = "ncclDevKernel_AllReduce_Sum_f32", "ncclDevKernel_AllGather_RING_LL"


def test_what_computation_hides():
    profile = profile_of({GPU: {
        "Stream #1": [("kernel", 0, 50)],
        "Stream #2": [(REDUCE, 30, 70), (REDUCE, 80, 90), (GATHER, 10, 20)],
        "Stream #3": [(REDUCE, 60, 75)],
    }})  # fmt: skip
    assert communication_of(profile) == (
        Communication(GPU, "all-reduce", 3, 55, 20, 35),
        Communication(GPU, "all-gather", 1, 10, 10, 0),
    )


def test_a_library_s_kernel_is_what_its_record_says():
    name = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
    events = [(name, 0, 10, None, "kernel"), (name, 20, 25, None, "kernel"),
              (name, 30, 31, None, "kernel")]  # fmt: skip
    stats = [(0, "Collective name", "allreduce"), (1, "Collective name", "_allgather_base")]
    profile = profile_of({"python (GPU 0)": {"stream 4": events}}, kind="chrome_trace", stats=stats)
    assert [(one.kind, one.events, one.total_ps) for one in communication_of(profile)] == [
        ("all-reduce", 1, 10), ("all-gather", 1, 5), ("unknown", 1, 1)
    ]  # fmt: skip


def test_barriers_and_transfers_beside_the_ops_of_a_tpu():
    profile = profile_of({TPU: {
        "XLA Ops": [("%fusion.1 = x", 0, 40), ("%all-gather-done.1 = x", 40, 60)],
        "Async XLA Ops": [("%all-gather-start.1 = x", 10, 60)],
        "XLA TraceMe": [("barrier-cores", 60, 65), ("dependency-wait", 65, 70)],
    }})  # fmt: skip
    assert communication_of(profile) == (
        Communication(TPU, "all-gather", 2, 50, 30, 20),
        Communication(TPU, "barrier", 1, 5, 0, 5),
    )


def test_threads_of_a_host_where_there_is_no_device():
    host = {
        "python": [("train", 0, 100, 0)],
        "tf_XLAEigen/1": [("dot", 0, 60)],
        "tf_XLAEigen/2": [("psum.7", 50, 90), ("Rendezvous", 60, 90)],
    }
    profile = profile_of({HOST_PLANE: host}, [("train 0", 0, 100)])
    assert communication_of(profile) == (Communication(None, "all-reduce", 1, 40, 10, 30),)


def test_a_kernel_that_nobody_knows_communicates_where_a_record_says_so():
    """PyTorch runs ``record_param_comms`` around what launches a collective."""
    host = [
        ("record_param_comms", 0, 10, None, "cpu_op"),
        ("cudaLaunchKernelExC", 2, 4, None, "cuda_runtime"),
        ("record_param_comms", 10, 20, None, "cpu_op"),
        ("cudaLaunchKernelExC", 12, 14, None, "cuda_runtime"),
        ("cudaLaunchKernelExC", 32, 34, None, "cuda_runtime"),
    ]
    device = [
        ("vendor_a2a", 5, 9, None, "kernel"),
        ("vendor_thing", 15, 19, None, "kernel"),
        ("gemm", 35, 39, None, "kernel"),
    ]
    stats = [
        (0, "Collective name", "all_to_allv"),
        *((row, "correlation", str(number)) for row, number in ((1, 1), (3, 2), (4, 3))),
        *((row, "correlation", str(number)) for row, number in ((5, 1), (6, 2), (7, 3))),
    ]
    profile = profile_of(
        {"python": {"thread 1": host}, "python (GPU 0)": {"stream 4": device}},
        kind="chrome_trace", stats=stats,
    )  # fmt: skip
    assert [(one.kind, one.events, one.total_ps) for one in communication_of(profile)] == [
        ("all-to-all", 1, 4), ("unknown", 1, 4)
    ]  # fmt: skip
