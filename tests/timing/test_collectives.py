"""The table of collectives against a slow reader of the same JSON, and by hand."""

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.each_row import each_row
from tests.timing.slow_collectives import slow_collectives

import peakline
from peakline.timing import bus_bandwidth, collective_rows, step_times
from peakline.trace.events import trace_of
from peakline.trace.intervals import covered, union

US = 10**6
DATA = Path(__file__).parents[1] / "data"


def x(cat, name, ts, dur, pid=7, tid=7, **args):
    """A complete event of a thread."""
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
            "args": args}  # fmt: skip


def kernel(name, ts, dur, correlation, *, device=0, stream=20, **args):
    """A kernel of a device."""
    return x("kernel", name, ts, dur, device, stream, device=device, stream=stream,
             correlation=correlation, **args)  # fmt: skip


def enqueued(call, at, correlation, *, label="", tid=7, call_args=None, inputs=None, **record):
    """The call of a host that launches a collective, its record, and the annotation in it."""
    events = [
        x("cpu_op", call, at, 40, tid=tid, **(call_args or {})),
        x("cpu_op", "record_param_comms", at + 5, 30, tid=tid, **record),
        x("cuda_runtime", "cudaLaunchKernelExC", at + 10, 5, tid=tid, correlation=correlation),
    ]
    if label:
        events.append(x("user_annotation", label, at + 7, 20, tid=tid, **(inputs or {})))
    return events


RING = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GENERIC = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
MESSAGE = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
WORLD = {"Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3]", "Group size": 4}
CUT = {"Process Group Name": "3", "Process Group Ranks": "[0, 2, ..., 14]", "Group size": 8}


def newest():
    """Metadata on the kernels and on the records."""
    reduce = {"Collective name": "allreduce", "In msg nelems": 100, "Out msg nelems": 100,
              "dtype": "BFloat16", "Seq": 4, "Comms Id": 18446744073709551615, **WORLD}  # fmt: skip
    gather = {"Collective name": "_allgather_base", "In msg nelems": 10, "Out msg nelems": 80,
              "dtype": "Float", "Seq": 0, **CUT}  # fmt: skip
    send = {"Collective name": "send", "In msg nelems": 6, "Out msg nelems": 6, "dtype": "Float",
            "Dst Rank": 3, "Seq": 1, **WORLD}  # fmt: skip
    recv = {"Collective name": "recv", "In msg nelems": 6, "Out msg nelems": 6, "dtype": "Float",
            "Src Rank": 2, **WORLD}  # fmt: skip
    barrier = {"Collective name": "coalesced", **WORLD}
    return [
        *enqueued("c10d::allreduce_", 0, 1, **reduce, Rank=1),
        kernel(GENERIC, 50, 100, 1, **reduce),
        *enqueued("c10d::_allgather_base_", 100, 2, **gather,
                  **{"Global rank start": 0, "Global rank stride": 2}),
        kernel(MESSAGE, 160, 10, 2, **gather),
        *enqueued("c10d::send", 200, 3, **send), kernel(MESSAGE, 240, 10, 3, **send),
        *enqueued("c10d::recv_", 300, 4, **recv), kernel(MESSAGE, 340, 10, 4, **recv),
        *enqueued("c10d::barrier", 400, 5, **barrier), kernel(MESSAGE, 440, 10, 5),
        # Launched by nothing that is recorded, as when a graph is replayed.
        kernel(RING, 500, 10, 99),
        x("cpu_op", "aten::mm", 600, 40),
        x("cuda_runtime", "cudaLaunchKernel", 610, 5, correlation=6),
        kernel("gemm", 620, 11, 6, stream=7),
    ]  # fmt: skip


def older():
    """Metadata on the records alone, texts quoted twice, a group whose name is a number; and of
    2023, with shapes alone.
    """
    record = {"Collective name": '"reduce_scatter"', "In msg nelems": 64, "Out msg nelems": 16,
              "dtype": '"Half"', "Process Group Name": 11, "Process Group Ranks": "[4, 5, 6, 7]",
              "Group size": 4}  # fmt: skip
    shards = {"Input Dims": [[64], [16], []], "Input type": ["c10::Half", "c10::Half", ""]}
    listed = {"Input Dims": [[], [], [], []], "Input type": ["TensorList", "", "", "Scalar"]}
    given = {"Input Dims": [[5, 7]], "Input type": ["float"]}
    exchanged = {"Input Dims": [[30], [40], []], "Input type": ["long", "long", ""]}
    return [
        *enqueued("c10d::reduce_scatter_", 0, 1, **record), kernel(MESSAGE, 60, 5, 1),
        *enqueued("c10d::_allgather_base_", 100, 2, call_args=shards), kernel(MESSAGE, 150, 5, 2),
        *enqueued("c10d::allreduce_", 200, 3, call_args=listed, label="nccl:all_reduce",
                  inputs=given), kernel(MESSAGE, 260, 5, 3),
        *enqueued("c10d::alltoall_base_", 300, 4, call_args=exchanged), kernel(MESSAGE, 350, 5, 4),
    ]  # fmt: skip


def gloo():
    """Two threads of gloo, calls of equal and of other sizes, and one from before the trace."""

    def sized(*shape):
        return {"Input Dims": [[*shape]], "Input type": ["float"]}

    def calls(*shape):
        return {"Input Dims": [[[*shape]], []], "Input type": ["TensorList", ""]}

    return [
        x("user_annotation", "gloo:all_reduce", 0, 30, tid=31, **sized(8)),
        x("cpu_op", "c10d::allreduce_", 10, 4, **calls(9)),
        x("cpu_op", "c10d::allreduce_", 20, 4, **calls(8)),
        x("user_annotation", "gloo:all_reduce", 32, 50, tid=31, **sized(9)),
        x("user_annotation", "gloo:all_reduce", 33, 20, tid=32, **sized(8)),
        x("cpu_op", "c10d::_allgather_base_", 100, 4, **{
            "Input Dims": [[16], [8], []], "Input type": ["float", "float", ""]}),
        x("user_annotation", "gloo:all_gather", 110, 20, tid=32, **sized(8)),
        x("cpu_op", "c10d::barrier", 140, 4),
        x("user_annotation", "gloo:barrier", 150, 20, tid=32),
    ]  # fmt: skip


def written(path, events, **more):
    """A trace of ``events`` in a file."""
    path.write_text(json.dumps({"schemaVersion": 1, **more, "traceEvents": events}))
    return path


def two_groups():
    """Groups as on-demand traces list them, with ranks as text."""
    config = [
        {"pg_name": "0", "backend_config": "cpu:gloo,cuda:nccl", "pg_size": 2, "ranks": "[4, 9]"},
        {"pg_name": "1", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": [4, 5]},
        {"pg_name": "3", "backend_config": "cuda:nccl", "pg_size": 8, "ranks": [*range(0, 16, 2)]},
        {"pg_name": "me", "backend_config": "cpu:gloo", "pg_size": 1, "ranks": [4]},
    ]
    return {"distributedInfo": {"rank": 4, "world_size": 10, "pg_config": config}}


@pytest.mark.parametrize(
    ("events", "more"),
    [(newest, {}), (newest, two_groups()), (older, {}), (gloo, {}), (gloo, two_groups())],
)
def test_a_slow_reader_of_the_json_says_the_same(tmp_path, events, more):
    path = written(tmp_path / "trace.json", events(), **more)
    rows = peakline.open(str(path)).table("collectives").to_pylist()
    slow = slow_collectives(json.loads(path.read_text()))
    assert len(slow) > 3
    assert [{name: row[name] for name in slow[0]} for row in rows] == slow


@pytest.mark.parametrize("rank", [0, 1])
def test_of_two_real_ranks_on_gloo(rank):
    path = DATA / "chrome_trace" / f"ddp_gloo.rank{rank}.trace.json.gz"
    slow = slow_collectives(json.loads(gzip.decompress(path.read_bytes())))
    profile = peakline.open(str(path))
    rows = profile.table("collectives").to_pylist()
    assert [{name: row[name] for name in slow[0]} for row in rows] == slow
    assert {(row["kind"], row["group_ranks"], row["size_bytes"]) for row in rows} == {
        ("all-reduce", "[0, 1]", 4239400), ("all-reduce", "[0, 1]", 528384)
    }  # fmt: skip
    assert all(row["launch_ps"] <= row["arrive_ps"] <= row["end_ps"] for row in rows)
    assert {row["step_id"] for row in rows} == set(range(8))
    # Two threads did them, and the main thread none.
    assert np.unique(collective_rows(profile).thread_line).size == 2


def test_every_collective_of_gloo():
    """What tests/programs/gloo_groups.py did: of which sizes, in which groups where that is known.

    The two groups of two are known apart by nothing but their threads.
    """
    profile = peakline.open(str(DATA / "chrome_trace" / "gloo_groups.trace.json.gz"))
    rows = collective_rows(profile)
    world, either = ("0", "[0, 1, 2, 3]", 4), (None, None, -1)
    one = [
        ("all-reduce", 400, world), ("all-reduce", 28, either), ("all-reduce", 36, either),
        ("all-gather", 4 * 5 * 4, world), ("all-gather", 4 * 6 * 4, world),
        ("all-gather", 4 * 6 * 2, (None, None, 2)), ("all-reduce", 4 * 3 * 4, world),
        *[("all-reduce", 12, world)] * 4, ("all-to-all", 32, world), ("all-to-all", 32, world),
        ("broadcast", 44, world), ("reduce", 48, world), ("gather", 4 * 13 * 4, world),
        ("scatter", -1, world), ("barrier", -1, world), ("recv", 60, either), ("send", 68, either),
        ("recv", 68, either),
    ]  # fmt: skip
    groups = zip(rows.group.to_list(), rows.group_ranks.to_list(), rows.group_size, strict=True)
    result = list(zip(rows.kind.to_list(), rows.size_bytes.tolist(), groups, strict=True))
    assert [row[:2] for row in result] == [row[:2] for row in one] * 2
    # A thread that once did a collective whose size says it is always of that group.
    assert all(
        row == other or other[2] == either for row, other in zip(result, one * 2, strict=True)
    )
    assert (rows.launch >= 0).all()
    assert (rows.launch <= rows.arrive).all()


def test_with_whom_messages_are_exchanged(tmp_path):
    """The call says a place in the group, of which the file lists the members."""
    events = []
    for at, (call, work, place) in enumerate([("send", "send", 1), ("recv_", "recv", 0)]):
        inputs = {"Input Dims": [[[15]], [], [], []], "Input type": ["TensorList", "", "", ""]}
        given = {"Input Dims": [[15]], "Input type": ["float"]}
        said = {"Concrete Inputs": ["", "", str(place), "0"]}
        events.append(x("cpu_op", f"c10d::{call}", 100 * at, 20, **inputs, **said))
        events.append(x("user_annotation", f"gloo:{work}", 100 * at + 5, 80, **given))
    groups = [{"pg_name": "0", "backend_config": "cpu:gloo", "pg_size": 2, "ranks": [5, 8]}]
    path = written(tmp_path / "trace.json", events, distributedInfo={"pg_config": groups})
    rows = peakline.open(str(path)).table("collectives").to_pylist()
    assert [(row["kind"], row["peer"], row["launch_ps"], row["size_bytes"]) for row in rows] == [
        ("send", 8, 0, 60), ("recv", 5, 100 * US, 60)
    ]  # fmt: skip


def test_what_surprises_a_reader(tmp_path):
    """The kind is what is recorded, whatever the kernel is called; nothing is 0 that is unknown."""
    path = written(tmp_path / "trace.json", newest(), **two_groups())
    rows = peakline.open(str(path)).table("collectives").to_pylist()
    names = "kind", "group_ranks", "size_bytes", "peer", "sequence", "launch_ps"
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("all-reduce", "[0, 1, 2, 3]", 200, None, 4, 0),
        ("all-gather", "[0, 2, 4, 6, 8, 10, 12, 14]", 320, None, 0, 100 * US),
        ("send", "[0, 1, 2, 3]", 24, 3, 1, 200 * US),
        ("recv", "[0, 1, 2, 3]", 24, 2, None, 300 * US),
        ("barrier", "[0, 1, 2, 3]", None, None, None, 400 * US),
        ("all-reduce", None, None, None, None, None),
    ]
    assert {(row["late_ps"], row["wait_ps"], row["transfer_ps"]) for row in rows} == {(None,) * 3}
    assert collective_rows(peakline.open(str(path))).key[0] == "comms_id -1"


def test_devices_of_one_process_that_meet(tmp_path):
    """Several devices in a file: who was late, how long each waited, what remained."""
    record = {"Collective name": "allreduce", "Seq": 7, **WORLD}
    cast = {"Collective name": "broadcast", "Seq": 8, **WORLD}
    events = []
    for number, (at, end) in enumerate([(100, 190), (130, 192), (120, 191), (110, 125)]):
        events += enqueued("c10d::allreduce_", 0, 2 * number + 1, tid=number, **record)
        events.append(kernel(RING, at, end - at, 2 * number + 1, device=number, **record))
        events += enqueued("c10d::broadcast_", 50, 2 * number + 2, tid=number, **cast)
        events.append(kernel(RING, 2 * at, 5, 2 * number + 2, device=number, **cast))
    path = written(tmp_path / "trace.json", events)
    rows = peakline.open(str(path)).table("collectives").to_pylist()
    names = "collective_id", "late_ps", "wait_ps", "transfer_ps"
    assert [tuple(row[name] for name in names) for row in rows if row["kind"] == "all-reduce"] == [
        (0, -20 * US, 30 * US, 60 * US),
        (0, 20 * US, 0, 62 * US),
        (0, 10 * US, 10 * US, 61 * US),
        (0, -10 * US, 20 * US, 0),
    ]
    others = [tuple(row[name] for name in names) for row in rows if row["kind"] == "broadcast"]
    assert others == [(1, late * US, None, None) for late in (-40, 40, 20, -20)]


@pytest.mark.parametrize(
    "name", ["chrome_trace/ddp_gloo.rank0.trace.json.gz", "jax_mesh/worker0.xplane.pb.gz"]
)
def test_together_they_take_as_long_as_the_breakdown_says(name):
    """The same events are communication there, and calls that wait for them."""
    profile = peakline.open(str(DATA / name))
    rows, steps = collective_rows(profile), step_times(profile)
    begins, ends = union(rows.arrive, rows.end)
    assert steps.communication_total.min() > 0
    together = covered((begins, ends), steps.start, steps.end)
    trace = trace_of(profile)
    calls = trace.name.per_row(lambda text: text.startswith("c10d::") and not steps.devices, bool)
    most = union(np.append(rows.arrive, trace.start[calls]), np.append(rows.end, trace.end[calls]))
    assert (together <= steps.communication_total).all()
    assert (steps.communication_total <= covered(most, steps.start, steps.end)).all()


@each_row(("kind", "factor"), [
    ("all-reduce", 1.75), ("all-gather", 0.875), ("reduce-scatter", 0.875), ("all-to-all", 0.875),
    ("gather", 0.875), ("scatter", 0.875), ("broadcast", 1), ("reduce", 1), ("send", 1),
    ("barrier", math.nan), ("collective", math.nan),
])  # fmt: skip
def test_bus_bandwidth(kind, factor):
    result = bus_bandwidth(
        kind, np.array([8 * 10**9, 8, -1]), np.array(8), np.array([10**12, 0, 5])
    )
    assert np.array_equal(result, [factor * 8e9, math.nan, math.nan], equal_nan=True)


def test_numbers_that_cannot_be_are_not_known(tmp_path):
    """Of a damaged or hostile file the rest is read."""
    most = 2**63 - 1
    record = {"Collective name": "allreduce", "In msg nelems": most, "Out msg nelems": most,
              "dtype": "Float", "Group size": most, "Process Group Name": "0", "Seq": most,
              "Global rank start": most, "Global rank stride": most, "Src Rank": most,
              "Process Group Ranks": "[" * 2000}  # fmt: skip
    shapes = {"Input Dims": [[most, most], [most]], "Input type": ["float", "float"]}
    groups = [{"pg_name": "0", "backend_config": "gloo", "pg_size": 2**70, "ranks": [2**70, 1.5]}]
    events = [
        *enqueued("c10d::allreduce_", 0, 1, **record), kernel(RING, 60, 5, 1),
        *enqueued("c10d::_allgather_base_", 100, 2, call_args=shapes), kernel(RING, 150, 5, 2),
        x("cpu_op", "c10d::send", 200, 20, **{"Concrete Inputs": [0, 0, float("inf")]}),
        x("user_annotation", "gloo:send", 205, 10, **shapes),
    ]  # fmt: skip
    path = written(tmp_path / "trace.json", events, distributedInfo={"pg_config": groups})
    rows = peakline.open(str(path)).table("collectives").to_pylist()
    assert [row["kind"] for row in rows] == ["send", "all-reduce", "all-gather"]
    assert all(row["group_ranks"] is None and row["peer"] is None for row in rows)
    assert all(0 < (row["size_bytes"] or 1) < 2**63 for row in rows)


def test_without_collectives_there_are_no_rows(tmp_path):
    path = written(tmp_path / "trace.json", [x("cpu_op", "aten::mm", 0, 40)])
    assert peakline.open(str(path)).table("collectives").num_rows == 0
