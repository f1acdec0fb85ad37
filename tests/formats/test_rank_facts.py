"""What a profile says of its rank: PyTorch's traces above all, and what other formats have."""

import gzip
import json

import pytest
from tests.each_row import each_row
from tests.shared import DATA, shared

import peakline
from peakline.formats.chrome_trace.ranks import facts_of_ends
from peakline.repository.readable import rank_facts_of
from peakline.schema import RunMetadata, XSpace
from peakline.tables.rank_facts import RankFacts, RankGroup

EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 70, "tid": 7, "ts": 1, "dur": 2}
GROUPS = [
    {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 4, "ranks": [0, 1, 2, 3]},
    {"pg_name": "1", "pg_desc": "mesh_dp", "pg_size": 2, "ranks": [3, 1]},
]
INFO = {"backend": "nccl", "rank": 3, "world_size": 4, "pg_config": GROUPS, "nccl_version": "2.29"}
ON_DEMAND = {
    "backend": "nccl", "rank": "3", "world_size": "4", "pg_count": "2", "nccl_version": "unknown",
    "pg_config": [
        {**group, "pg_size": str(group["pg_size"]), "ranks": json.dumps(group["ranks"])}
        for group in GROUPS
    ],
}  # fmt: skip
MANY = [{**EVENT, "args": {"rank": 5, "distributedInfo": {"rank": 6, "world_size": 8}}}]


def opened(folder, content, name="trace.json"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with peakline.open(str(path)) as profile:
        return profile.rank_facts


@pytest.mark.parametrize("info", [INFO, ON_DEMAND])
def test_what_pytorch_writes(tmp_path, info):
    more = {"host_name": "node7", "deviceProperties": [{"id": 0}], "group_trace_id": "6e4c"}
    expected = RankFacts(
        3, 4, "nccl",
        (RankGroup("0", "default_pg", (0, 1, 2, 3)), RankGroup("1", "mesh_dp", (1, 3))),
        "node7", 70, "group_trace_id=6e4c", 1,
    )  # fmt: skip
    for trace in (
        {**more, "distributedInfo": info, "traceEvents": [EVENT]},
        {**more, "traceEvents": [EVENT], "distributedInfo": info, "traceName": "a.json"},
    ):
        assert opened(tmp_path, trace) == expected
        text = json.dumps(trace).encode()
        bom = b"\xef\xbb\xbf" + json.dumps(trace, indent=1).replace("\n", "\r\n").encode()
        for content in (text, bom):
            name = "trace.json"
            (tmp_path / name).write_bytes(content)
            (tmp_path / "t.json.gz").write_bytes(gzip.compress(content, mtime=0))
            for place in (name, "t.json.gz"):
                facts, _ = rank_facts_of(str(tmp_path / place), {}, budget=1 << 30)
                assert (facts.rank, facts.world_size, facts.groups) == (3, 4, expected.groups)


@each_row(
    "trace",
    [
        {"traceEvents": MANY},
        {"traceEvents": [EVENT]},
        {"rank": 3, "traceEvents": [EVENT]},
        {"metadata": {"distributedInfo": INFO}, "traceEvents": [EVENT]},
        {"traceEvents": [EVENT], "metadata": {"distributedInfo": INFO}},
        {"traceEvents": [{**EVENT, "args": {"distributedInfo": INFO}}]},
        {"distributedInfo": {"rank": 4, "world_size": 4}, "traceEvents": [EVENT]},
        {"distributedInfo": {"rank": -1, "world_size": 4}, "traceEvents": [EVENT]},
        {"distributedInfo": {"rank": True, "world_size": 4}, "traceEvents": [EVENT]},
        {"distributedInfo": {"rank": 1.5, "world_size": 4}, "traceEvents": [EVENT]},
        {"distributedInfo": {"rank": "three"}, "traceEvents": [EVENT]},
        {"distributedInfo": [3, 4], "traceEvents": [EVENT]},
        {"distributedInfo": "3", "traceEvents": [EVENT]},
        {"distributedInfo": {"pg_config": [{"ranks": [3]}, 7, None]}, "traceEvents": [EVENT]},
    ],
)
def test_what_is_no_rank(tmp_path, trace):
    assert opened(tmp_path, trace).rank is None
    text = json.dumps(trace).encode()
    for size in (len(text), 40, 60):
        assert facts_of_ends(text[:size], text[-size:]).rank is None


def test_a_list_of_ranks_that_was_shortened_is_not_taken_for_all(tmp_path):
    for ranks in ("[0, 1, ...]", "[0, 1]", [0, 1], None, [0, 1, "x", 3]):
        config = [{"pg_name": 0, "pg_size": 4, "ranks": ranks}]
        info = {"rank": 0, "world_size": 4, "pg_config": config}
        facts = opened(tmp_path, {"distributedInfo": info, "traceEvents": [EVENT]})
        assert facts.groups == (RankGroup("0", "", ()),)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_at_the_end_of_a_large_file(tmp_path, name):
    """What an event says of ranks on the way there does not count."""
    trace = {"traceEvents": MANY * 40_000, "distributedInfo": INFO, "traceName": "x"}
    text = json.dumps(trace).encode()
    assert len(text) > 5 << 20
    path = tmp_path / name
    path.write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
    facts, read = rank_facts_of(str(path), {}, budget=64 << 20)
    assert (facts.rank, read > 0) == (3, name.endswith(".gz"))
    with peakline.open(str(path)) as profile:
        assert profile.rank_facts.rank == 3
    facts, read = rank_facts_of(str(path), {}, budget=1 << 20)
    assert (facts.rank, read < 4 << 20) == (None if name.endswith(".gz") else 3, True)


def test_a_file_that_is_cut_says_what_stands_before(tmp_path):
    trace = {"distributedInfo": INFO, "traceEvents": [EVENT] * 100}
    assert opened(tmp_path, json.dumps(trace).encode()[:-1000]).rank == 3


def test_xspaces_have_a_machine_and_a_process(tmp_path):
    space = XSpace(hostnames=["node7"])
    for name in ("/host:CPU", "/device:TPU:0", "/device:TPU:1", "/device:TPU:0 SparseCore 0"):
        plane = space.planes.add(name=name)
        plane.lines.add(name="x").events.add(metadata_id=1)
        plane.event_metadata[1].name = "e"
        if name == "/host:CPU":
            plane.stat_metadata[1].id = 1
            plane.stat_metadata[1].name = "process_id"
            plane.stats.add(metadata_id=1, int64_value=4711)
    facts = opened(tmp_path, space.SerializeToString(), "a.xplane.pb")
    assert facts == RankFacts(host_name="node7", process=4711, devices=2)


@each_row(
    "devices, rank",
    [
        (["/job:worker/replica:0/task:3/device:GPU:0", "/job:worker/task:3/device:CPU:0"], 3),
        (["/job:worker/task:1/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:0"], None),
        (["/job:chief/replica:0/task:0/device:CPU:0"], None),
        (["/device:GPU:0"], None),
    ],
)  # fmt: skip
def test_tasks_of_tensorflow(tmp_path, devices, rank):
    run = RunMetadata()
    for name in devices:
        device = run.step_stats.dev_stats.add(device=name)
        device.node_stats.add(node_name="a", all_start_micros=1, all_end_rel_micros=2)
    assert opened(tmp_path, run.SerializeToString(), "run.pb").rank == rank


@each_row(
    "prefixes, rank",
    [
        (["[rank3]: ", "[rank3]: "], 3),
        (["[default3]:", "[default3]:"], None),
        (["[default3]:[rank11]: ", "[default3]:[rank11]: "], 11),
        (["[rank3]: ", "[rank4]: "], None),
        (["", ""], None),
    ],
)
def test_logs_have_the_rank_before_their_lines(tmp_path, prefixes, rank):
    first, second = prefixes
    text = (
        f"{first}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has "
        "a total capacity of 15.77 GiB of which 1.44 GiB is free. Of the allocated memory 13.20 GiB"
        " is allocated by PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated.\n"
        f"{second}the end\n"
    )
    assert opened(tmp_path, text.encode(), "train.log").rank == rank


def plain_facts(path):
    """What the whole file says, read as any JSON."""
    with gzip.open(path) as file:
        root = json.load(file)
    root = root if isinstance(root, dict) else {}
    info = root.get("distributedInfo", {})
    config = info.get("pg_config", [])
    return (
        info.get("rank"), info.get("world_size"), info.get("backend", ""),
        tuple((one["pg_desc"], tuple(one["ranks"])) for one in config), root.get("host_name", ""),
        {e["pid"] for e in root.get("traceEvents", []) if e.get("cat") == "cpu_op"},
    )  # fmt: skip


def test_recorded_traces_say_what_a_plain_reader_reads():
    """Ranks of jobs on gloo among traces of one process."""
    paths = sorted([*(DATA / "ranks").iterdir(), *(DATA / "chrome_trace").iterdir()])
    ranks = []
    for path in paths:
        facts = shared(path).rank_facts
        groups = tuple((one.description, one.ranks) for one in facts.groups)
        said = facts.rank, facts.world_size, facts.backend, groups, facts.host_name
        *expected, processes = plain_facts(path)
        assert said == tuple(expected), path
        assert {facts.process} - {None} <= processes, path
        ends, _ = rank_facts_of(str(path), {}, budget=1 << 30)
        assert (ends.rank, ends.world_size, ends.groups) == (said[0], said[1], facts.groups), path
        ranks.append(facts.rank)
    assert set(ranks) == {None, 0, 1}
