"""What counts as whose time and memory: the rules of tfprof, one tiny run per question."""

import pytest
from tests.each_row import each_row
from tests.profile.fake import FakeReader

from peakline.errors import NotFoundError
from peakline.tables import Profile
from peakline.tfprof import MEASURES, read_op_stats

CPU = "/job:w/replica:0/task:0/device:CPU:0"
GPU = "/job:w/replica:0/task:0/device:GPU:0"
STREAMS = "/device:GPU:0/stream:all"


def profile_of(*runs, **tables):
    """Executions as ``(device, name, start, micros)``, or with the step as a fifth."""
    rows = [
        {
            "op_run_id": number,
            "device": device,
            "name": name,
            "step_id": step[0] if step else None,
            "op_type": f"{name}Op",
            "all_start_micros": start,
            "op_end_rel_micros": micros,
        }
        for number, (device, name, start, micros, *step) in enumerate(runs)
    ]
    return Profile(FakeReader({"op_runs": rows, "op_times": rows, **tables}))


def measures(profile, *names, step=-1):
    nodes = read_op_stats(profile).at(step)
    columns = [MEASURES.index(name) for name in names]
    return {
        name: tuple(nodes.measures[node, columns].tolist()) for node, name in enumerate(nodes.names)
    }


TIMES = ("run_count", "accelerator_exec_micros", "cpu_exec_micros", "exec_micros")


def test_host_time_and_stream_time_add_up():
    profile = profile_of(
        (GPU, "a", 10, 5), (STREAMS, "a", 12, 30), ("/gpu:0/stream:1", "a", 12, 30)
    )
    assert measures(profile, *TIMES) == {"a": (1, 30, 5, 35)}


def test_a_run_of_no_time_takes_one_microsecond():
    assert measures(profile_of((CPU, "a", 10, 0)), *TIMES) == {"a": (1, 0, 1, 1)}


def test_a_run_without_a_start_counts_for_nothing():
    assert measures(profile_of((CPU, "a", 0, 7)), *TIMES) == {"a": (0, 0, 0, 0)}


def test_a_node_stays_with_the_first_device_it_ran_on():
    profile = profile_of((CPU, "a", 10, 5), (GPU, "a", 10, 70), (CPU, "a", 20, 6))
    assert measures(profile, *TIMES) == {"a": (2, 0, 11, 11)}
    assert read_op_stats(profile).devices.to_list() == [CPU.lower()]


def test_what_follows_a_colon_is_no_part_of_the_name():
    assert measures(profile_of((STREAMS, "a:MatMul", 1, 3)), *TIMES) == {"a": (0, 3, 0, 3)}


@each_row("name", ["RecvTensor", "_SOURCE", "MEMCPYHtoD", "xMEMCPY:y"])
def test_some_names_are_no_nodes(name):
    assert measures(profile_of((CPU, name, 1, 3))) == {}


def test_memory_adds_persistent_and_temporary_bytes():
    profile = profile_of(
        (CPU, "a", 1, 3),
        op_memory=[
            {"op_run_id": 0, "allocator": "cpu", "total_bytes": 100, "peak_bytes": 80,
             "live_bytes": 7},
            {"op_run_id": 0, "allocator": "x", "total_bytes": 1, "peak_bytes": 1, "live_bytes": 1},
        ],
        op_memory_stats=[
            {"op_run_id": 0, "temp_bytes": 1000, "persistent_bytes": 20_000},
        ],
        op_outputs=[
            {"op_run_id": 0, "requested_bytes": 5, "allocated_bytes": 3, "has_allocation": True},
            {"op_run_id": 0, "requested_bytes": 5, "allocated_bytes": 256, "has_allocation": True},
            {"op_run_id": 0, "requested_bytes": 99, "has_allocation": False},
        ],
    )  # fmt: skip
    names = ("requested_bytes", "peak_bytes", "residual_bytes", "output_bytes")
    assert measures(profile, *names) == {"a": (21_101, 21_081, 20_008, 261)}


def test_memory_counts_on_the_nodes_own_device_only():
    profile = profile_of(
        (STREAMS, "a", 1, 3),
        op_memory=[{"op_run_id": 0, "allocator": "gpu", "total_bytes": 100}],
    )
    assert measures(profile, "requested_bytes") == {"a": (0,)}


def test_steps_are_averaged_over_those_that_ran_the_node():
    profile = profile_of((CPU, "a", 1, 3, 4), (CPU, "a", 9, 8, 6), (CPU, "b", 9, 8, 6))
    assert measures(profile, "exec_micros") == {"a": (5,), "b": (8,)}
    assert measures(profile, "exec_micros", step=4) == {"a": (3,), "b": (0,)}
    with pytest.raises(NotFoundError, match="no step 5 in the profile; there is: 4, 6"):
        measures(profile, step=5)


def test_a_step_of_nothing_is_there():
    profile = profile_of((CPU, "a", 1, 3, 4), steps=[{"step_id": 4}, {"step_id": 6}])
    assert measures(profile, "exec_micros", step=6) == {"a": (0,)}


def test_without_a_graph_types_come_from_the_labels():
    assert read_op_stats(profile_of((CPU, "a", 1, 3))).ops.to_list() == ["aOp"]


def test_a_gpu_without_stream_rows_is_told():
    for runs, lacks in (
        ([(CPU, "a", 1, 3)], False),
        ([(GPU, "a", 1, 3)], True),
        ([(GPU, "a", 1, 3), (STREAMS, "a", 1, 3)], False),
    ):
        assert read_op_stats(profile_of(*runs)).costs.lacks_streams is lacks
