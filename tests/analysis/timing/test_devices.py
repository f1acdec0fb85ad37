"""How long devices are busy, and what PyTorch's records call communication."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.timing.traces import GPU, HOST_PLANE, TPU, profile_of

from peakline.timing.device_time import device_times
from peakline.trace.activity import Activity, activity_of, collectives_of, recorded_collectives
from peakline.trace.events import trace_of

NCCL = "ncclDevKernel_AllReduce"


def table_of(profile):
    return profile.columns("device_time").to_pylist()


def test_streams_of_a_device_count_once():
    profile = profile_of({GPU: {
        "Stream #1": [("kernel", 10, 30), ("kernel", 60, 70)],
        "Stream #2": [(NCCL, 20, 40)],
        "Stream #3": [("MemcpyD2H", 25, 45), ("MemcpyH2D", 90, 95)],
        "XLA Modules": [("jit_f", 0, 200)],
    }})  # fmt: skip
    assert table_of(profile) == [{
        "plane_id": 0, "device": GPU, "start_ps": 10, "end_ps": 95, "busy_ps": 50, "idle_ps": 35,
        "compute_ps": 30, "communication_ps": 20, "copy_ps": 25, "longest_idle_ps": 20,
    }]  # fmt: skip
    (device,) = device_times(profile)
    assert (device.compute_ps, device.communication_ps, device.copy_ps, device.idle_ps) == (
        30, 10, 10, 35
    )  # fmt: skip


def test_a_device_that_waits_for_its_infeed_is_idle():
    profile = profile_of({TPU: {"XLA Ops": [
        ("%fusion.1 = x", 0, 10), ("%infeed.1 = x", 10, 80), ("%fusion.1 = x", 80, 90),
    ]}})  # fmt: skip
    (row,) = table_of(profile)
    assert (row["busy_ps"], row["idle_ps"], row["longest_idle_ps"]) == (20, 70, 70)


def test_a_collective_beside_the_ops_of_a_tpu_counts():
    profile = profile_of({TPU: {
        "XLA Ops": [("%fusion.1 = x", 0, 50)],
        "Async XLA Ops": [("%all-gather-start.1 = x", 20, 70)],
    }})  # fmt: skip
    (row,) = table_of(profile)
    assert (row["busy_ps"], row["communication_ps"], row["compute_ps"]) == (70, 50, 50)
    assert device_times(profile)[0].communication_ps == 20


def test_devices_without_work_and_hosts_have_no_row():
    profile = profile_of({GPU: {"Stream #1": []}, HOST_PLANE: {"python": [("work", 0, 9)]}})
    assert table_of(profile) == []
    assert device_times(profile) == ()


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["kernel", NCCL, "MemcpyH2D"]), st.integers(0, 50), st.integers(0, 20)
    ),
    max_size=8,
)


@given(EVENTS, EVENTS)
def test_moment_by_moment(one, other):
    lines = {
        name: [(event, start, start + length) for event, start, length in events]
        for name, events in (("Stream #1", one), ("Stream #2", other))
    }
    at = [
        {name for line in lines.values() for name, start, end in line if start <= t < end}
        for t in range(80)
    ]
    rows = table_of(profile_of({GPU: lines}))
    busy = [t for t in range(80) if at[t]]
    if not busy:
        assert rows == []
        return
    (row,) = rows
    assert (row["start_ps"], row["end_ps"]) == (busy[0], busy[-1] + 1)
    assert row["busy_ps"] == len(busy)
    assert row["idle_ps"] == busy[-1] + 1 - busy[0] - len(busy)
    for column, name in (("compute", "kernel"), ("communication", NCCL), ("copy", "MemcpyH2D")):
        assert row[f"{column}_ps"] == sum(name in names for names in at)
    gaps = [b - a - 1 for a, b in pairwise(busy)]
    assert row["longest_idle_ps"] == max(gaps, default=0)


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


def test_which_group_did_which_collective_is_what_pytorch_records_of_it():
    """Names of groups may be numbers; what is not recorded is not known."""
    host = [("record_param_comms", 10 * k, 10 * k + 5, None, "cpu_op") for k in range(3)]
    first = {
        "Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 100, "Seq": 7,
        "Out msg nelems": 200, "Process Group Name": 0, "Process Group Ranks": "[0, 3]",
    }  # fmt: skip
    second = {
        "Collective name": "barrier", "dtype": "Opaque", "In msg nelems": 1,
        "Process Group Name": "default_pg", "Process Group Ranks": "[0, 1, ...]",
    }  # fmt: skip
    stats = [
        (row, key, value) for row, one in ((0, first), (2, second)) for key, value in one.items()
    ]
    profile = profile_of({"python": {"thread 1": host}}, kind="chrome_trace", stats=stats)
    found = collectives_of(profile)
    assert found.event.tolist() == [0, 2]
    assert found.name.to_list() == ["allreduce", "barrier"]
    assert found.group.to_list() == ["0", "default_pg"]
    assert [found.ranks_of(row) for row in (0, 1)] == [[0, 3], []]
    assert found.sequence.tolist() == [7, -1]
    assert found.input_bytes.tolist() == [200, -1]
    assert found.output_bytes.tolist() == [400, -1]
    assert collectives_of(profile_of({GPU: {"Stream #1": [(NCCL, 0, 9)]}})).event.size == 0
