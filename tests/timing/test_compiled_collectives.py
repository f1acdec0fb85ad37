"""Collectives of XLA and TensorFlow: on CPUs against a slow reader of the XSpace, else by hand."""

import gzip
import re
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from tests.each_row import each_row
from tests.timing.traces import GPU, HOST_PLANE, TPU, profile_of

import peakline
from peakline.schema import XSpace
from peakline.timing import collective_rows
from peakline.timing.programs.collective_instructions import instruction_in

DATA = Path(__file__).parents[1] / "data"
REDUCE = "%all-reduce{} = f32[8]{{0}} all-reduce{}({}), channel_id=1, replica_groups={}"
WHOLE, HALVES = "{{0,1,2,3}}", "[2,2]<=[4]"


def slow_rendezvous(space):
    """Of each rendezvous its device, members, begin and end, by the key that members share."""
    meetings = defaultdict(list)
    for plane in space.planes:
        names = {key: one.name for key, one in plane.stat_metadata.items()}
        kinds = {key: one.name for key, one in plane.event_metadata.items()}

        def texts(event, names=names):
            result = {}
            for stat in event.stats:
                value = getattr(stat, stat.WhichOneof("value"))
                is_name = stat.WhichOneof("value") == "ref_value"
                result[names[stat.metadata_id]] = names[value] if is_name else value
            return result

        for line in plane.lines:
            if not any(kinds[event.metadata_id] == "Rendezvous" for event in line.events):
                continue
            ops = [(one, said) for one in line.events if "hlo_op" in (said := texts(one))]
            for event in line.events:
                if kinds[event.metadata_id] != "Rendezvous":
                    continue
                key = str(texts(event)["name"])
                first = line.timestamp_ns * 1000 + event.offset_ps
                last = first + event.duration_ps
                around = [
                    (one.duration_ps, said) for one, said in ops
                    if one.offset_ps <= event.offset_ps
                    and one.offset_ps + one.duration_ps >= event.offset_ps + event.duration_ps
                ]  # fmt: skip
                own = min(around, key=lambda one: one[0])[1]
                members = re.search(r"global_devices=(\[[^]]*\])", key)[1]
                meetings[key].append((own["device_ordinal"], members, first, last))
    return meetings


@pytest.mark.parametrize("name", ["sessions/jax_cpu", "programs/steps/jax_pmap.xplane.pb.gz"])
def test_of_cpus_a_slow_reader_says_the_same(name):
    path = DATA / name
    file = next(path.rglob("*.xplane.pb*")) if path.is_dir() else path
    content = file.read_bytes()
    meetings = slow_rendezvous(
        XSpace.FromString(gzip.decompress(content) if file.suffix == ".gz" else content)
    )
    profile = peakline.open(str(path))
    rows = profile.table("collectives").to_pylist()
    slow = []
    for members in meetings.values():
        last = max(first for _, _, first, _ in members)
        assert len({device for device, *_ in members}) == len(members) > 1
        for device, group, first, end in members:
            others = [at for one, _, at, _ in members if one != device]
            slow.append((f"/device:CPU:{device}", group, end - first, first - int(median(others)),
                         last - first, max(end - last, 0)))  # fmt: skip
    names = "device", "group_ranks", "lasts", "late_ps", "wait_ps", "transfer_ps"
    own = [{**row, "lasts": row["end_ps"] - row["arrive_ps"]} for row in rows]
    assert sorted(tuple(row[one] for one in names) for row in own) == sorted(slow)
    assert {row["kind"] for row in rows} == {"all-reduce"}
    assert all(row["size_bytes"] > 0 and row["data_type"] for row in rows)


def test_processes_of_jax_share_runs_and_groups():
    """What tests/programs/jax_mesh.py did: along one axis of its mesh each process meets the other,
    along the other axis its own devices meet. The second process keeps the first waiting.
    """
    workers = []
    for number in (0, 1):
        path = DATA / "jax_mesh" / f"worker{number}.xplane.pb.gz"
        rows = collective_rows(peakline.open(str(path)))
        texts = zip(rows.key.to_list(), rows.group_ranks.to_list(), strict=True)
        lasts = ((rows.end - rows.arrive) // 10**9).tolist()
        workers.append([*zip(texts, rows.kind.to_list(), lasts, strict=True)])
        assert rows.devices == tuple(f"/device:CPU:{2048 * number + one}" for one in (0, 1))
        assert np.bincount(rows.device).tolist() == [12, 12]
    here, there = (Counter(said for said, _, _ in rows) for rows in workers)
    assert {group for _, group in here} == {"[0, 1]", "[0, 2]", "[1, 3]"}
    assert {group for _, group in there} == {"[2, 3]", "[0, 2]", "[1, 3]"}
    across = [said for said in here if said[1] in ("[0, 2]", "[1, 3]")]
    assert len(across) == 18
    assert all(here[said] == there[said] == 1 for said in across)
    assert all(count == 2 for said, count in here.items() if said[1] == "[0, 1]")
    waits = [[one for _, kind, one in rows if kind == "all-gather"] for rows in workers]
    assert min(waits[0]) > 15
    assert max(waits[1]) < 5


@each_row(("text", "said"), [
    (REDUCE.format("", "", "f32[8]{0} %a", WHOLE),
     ("all-reduce", "", 32, "f32", 4, ((0, 1, 2, 3),))),
    (REDUCE.format("", "", "f32[8]{0} %a", HALVES),
     ("all-reduce", "", 32, "f32", 2, ((0, 1), (2, 3)))),
    (REDUCE.format(".2", "-start", "f32[8] %a", "{}"), ("all-reduce", "start", 32, "f32", -1, ())),
    ("%d = f32[8]{0} all-reduce-done(f32[8]{0} %all-reduce.2)",
     ("all-reduce", "done", 32, "f32", -1, ())),
    ("%g = bf16[4,8]{1,0:T(8,128)} all-gather(bf16[1,8] %a), replica_groups=[1,4]<=[2,2]T(1,0)",
     ("all-gather", "", 64, "bf16", 4, ((0, 2, 1, 3),))),
    ("%s = f32[2]{0} reduce-scatter(f32[8]{0} %a), replica_groups={{0,2},{1,3}}",
     ("reduce-scatter", "", 32, "f32", 2, ((0, 2), (1, 3)))),
    ("%s = f32[2]{0} reduce-scatter(%a), replica_groups={{0,2},{1,3}}",
     ("reduce-scatter", "", 16, "f32", 2, ((0, 2), (1, 3)))),
    ("%p = (f32[8], f32[8], u32[], u32[]) collective-permute-start(f32[8] %a)",
     ("collective-permute", "start", 32, "f32", -1, ())),
    ("%t = (f32[8], s8[4]) all-to-all(f32[8] %a, s8[4] %b), replica_groups={{0,1}}",
     ("all-to-all", "", 36, "f32", 2, ((0, 1),))),
    ("%all-reduce-fusion = f32[8] fusion(f32[8] %a, f32[9] %b), kind=kLoop",
     (None, "", -1, "f32", -1, ())),
    ("%m = f32[8] all-reduce(f32[8] %a), replica_groups=mesh['a'=2,'b'=2] {'a'}, channel_id=1",
     ("all-reduce", "", 32, "f32", 2, ((0, 2), (1, 3)))),
    ("%m = f32[8] all-reduce(f32[8] %a), replica_groups=mesh['a'=2,'b'=4] {'b':(2)2,'a'}",
     ("all-reduce", "", 32, "f32", 4, ((0, 1, 4, 5), (2, 3, 6, 7)))),
])  # fmt: skip
def test_what_the_text_of_an_instruction_says(text, said):
    made = instruction_in(text)
    names = "kind", "end", "size_bytes", "data_type", "group_size", "groups"
    assert tuple(getattr(made, name) for name in names) == said


@each_row("groups", [
    "[99999999999,99999999]<=[9]", "[2,2]<=[3]", "[2,2]<=[2,2]T(0,0)", "{{0,1},{2}}",
    "[1,1]<=[" + ",".join("1" * 70) + "]", "mesh['a'=0] {'a'}", "mesh['a'=4] {'a':(3)2}",
    "mesh['a'=4] {'b'}", "[" + "9" * 5000 + ",1]<=[1]", "nothing",
])  # fmt: skip
def test_groups_that_cannot_be(groups):
    """The rest of the instruction is read all the same."""
    made = instruction_in(f"%a = f32[8] all-reduce(f32[8] %b), replica_groups={groups}")
    assert (made.kind, made.size_bytes) == ("all-reduce", 32)
    assert made.group_size < 2**31


@each_row(
    "text",
    [
        "all-reduce.1",
        f"%a = f32[{'9' * 5000}] all-reduce(%b)",
        "%a = ",
        "%a = f32[8] ",
        "%a = (f32[8",
        "nccl = 3",
        "",
    ],
)
def test_what_is_no_instruction(text):
    assert instruction_in(text) is None


def test_the_ends_of_an_asynchronous_collective_are_one():
    """Its start and its end, on the line of ops and beside it; the groups of devices that are
    listed, and how late each came to the only one.
    """
    start = REDUCE.format("-start.1", "-start", "f32[8]{0} %a", WHOLE)
    done = "%all-reduce-done.1 = f32[8]{0} all-reduce-done(f32[8]{0} %all-reduce-start.1)"
    alone = REDUCE.format(".7", "", "f32[8]{0} %a", HALVES)
    beside = REDUCE.format("-start.3", "-start", "f32[4]{0} %a", WHOLE)
    planes = {
        TPU: {
            # The window begins between the two ends of one.
            "XLA Ops": [(done, 5, 9), (start, 10, 12), ("%fusion = f32[8] fusion(%x)", 12, 40),
                        (done, 40, 50), (start, 60, 61), (done, 70, 80), (alone, 90, 95),
                        (beside, 100, 101)],
            "Async XLA Ops": [(start, 10, 48), (beside, 100, 130)],
        },
        TPU.replace("0", "1"): {
            "XLA Ops": [(start, 20, 21), (done, 30, 49), (start, 62, 63), (done, 63, 64),
                        (alone, 90, 95)],
        },
    }  # fmt: skip
    rows = profile_of(planes).table("collectives").to_pylist()
    names = "collective_id", "device", "arrive_ps", "end_ps", "late_ps", "wait_ps", "transfer_ps"
    assert [tuple(row[name] for name in names) for row in rows] == [
        (0, "/device:TPU:0", 10, 50, -10, 10, 30),
        (1, "/device:TPU:0", 60, 80, -2, 2, 18),
        (2, "/device:TPU:0", 90, 95, None, None, None),
        (3, "/device:TPU:0", 100, 130, None, None, None),
        (0, "/device:TPU:1", 20, 49, 10, 0, 29),
        (1, "/device:TPU:1", 62, 64, 2, 0, 2),
        (6, "/device:TPU:1", 90, 95, None, None, None),
    ]
    assert [row["group_ranks"] for row in rows[:3]] == ["[0, 1, 2, 3]"] * 2 + [None]
    assert [row["group_size"] for row in rows[:3]] == [4, 4, 2]


def test_kernels_of_xla_are_what_their_instruction_is_called():
    kernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
    events = [(kernel, 0, 5), (kernel, 10, 15), ("ncclDevKernel_Generic", 20, 25)]
    stats = [(0, "hlo_op", "all-to-all.3"), (1, "hlo_op", "collective-permute-start.1")]
    rows = profile_of({GPU: {"Stream #1": events}}, stats=stats).table("collectives").to_pylist()
    assert [row["kind"] for row in rows] == ["all-to-all", "collective-permute", "collective"]


def test_values_handed_on_within_a_process_are_no_messages():
    """Of a graph's parts on several devices of one process, but RecvTensor is from another."""
    events = [
        ("CollectiveReduceV2_1/_6:_Send", 0, 5), ("x/_1:_HostRecv", 10, 15), ("RecvTensor", 20, 30),
        ("grads/NcclAllReduce:NcclAllReduce", 40, 50), ("RecvTensor", 42, 44),
    ]  # fmt: skip
    rows = profile_of({HOST_PLANE: {"main": events}}).table("collectives").to_pylist()
    assert [(row["kind"], row["arrive_ps"], row["device"]) for row in rows] == [
        ("recv", 20, None), ("all-reduce", 40, None)
    ]  # fmt: skip
    runs = peakline.open(str(DATA / "run_metadata" / "tf1_grpc.pb.gz"))
    rows = runs.table("collectives").to_pylist()
    assert [(row["kind"], row["event_id"]) for row in rows] == [("recv", None)] * 8
    assert collective_rows(runs).step_id.min() >= 0


@pytest.mark.parametrize("name", ["tf_document_workers/faulty", "tf_super_resolution/healthy"])
def test_workers_of_tensorflow_share_groups_and_numbers(name):
    """The same group and number is one collective on both: in the same order, of the same op."""
    folder = DATA / "diagnosis" / name / "plugins/profile/run"
    workers = []
    for number in (0, 1):
        profile = peakline.open(str(folder / f"worker{number}.xplane.pb.gz"))
        rows = profile.sql(
            "select group_name, sequence, e.name from collectives c join events e using (event_id)"
            " order by arrive_ps"
        ).to_pylist()
        workers.append({(row["group_name"], row["sequence"]): row["name"] for row in rows})
        assert len(workers[-1]) == len(rows)
    shared = workers[0].keys() & workers[1].keys()
    assert len(shared) >= 23
    assert all(workers[0][key] == workers[1][key] for key in shared)
    numbers = [number for _, number in workers[0]]
    assert all(after == before + 1 for before, after in pairwise(numbers))


def test_replicas_of_one_process_meet():
    profile = peakline.open(str(DATA / "sessions" / "tf2_two_devices"))
    rows = profile.table("collectives").to_pylist()
    assert len(rows) == 2 * len({row["collective_id"] for row in rows}) == 30
    assert [row["late_ps"] for row in rows[::2]] == [-row["late_ps"] for row in rows[1::2]]
    assert all(row["wait_ps"] == max(-row["late_ps"], 0) for row in rows)
