"""Collectives: what PyTorch's records call communication."""

from tests.analysis.timing.traces import profile_of

from peakline.trace.activity import Activity, activity_of
from peakline.trace.collectives import recorded_collectives
from peakline.trace.events import trace_of


def communicating(profile):
    """The names of all that communicates, and of what records say does."""
    trace, activity = trace_of(profile), activity_of(profile)
    said = [trace.name[place] for place in recorded_collectives(profile).tolist()]
    return [trace.name[k] for k in range(trace.size) if activity[k] == Activity.COMMUNICATION], said


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
    found, said = communicating(profile)
    assert said == ["vendor_a2a", "vendor_thing"]
    assert set(said) <= set(found)
    assert "gemm" not in found


def test_a_record_s_label_is_on_the_kernel_itself():
    name = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
    events = [(name, 0, 10, None, "kernel"), ("other", 20, 25, None, "kernel"),
              ("gemm", 30, 31, None, "kernel")]  # fmt: skip
    stats = [(0, "Collective name", "allreduce"), (1, "Collective name", "_allgather_base")]
    profile = profile_of({"python (GPU 0)": {"stream 4": events}}, kind="chrome_trace", stats=stats)
    assert communicating(profile) == ([name, "other"], [name, "other"])
