"""The files of a job: which belong together, what they are called, and which rank each is of."""

import gzip
import json
import os
import pickle
import zipfile
from functools import partial

import fsspec
import pytest
from tests.each_row import each_row
from tests.repository.places import put

import peakline
from peakline.engine import Engine
from peakline.errors import ForbiddenError, InputError, NotFoundError, UsageError
from peakline.repository import (
    RankFiles,
    Session,
    rank_files,
    rank_of_file,
    readable,
    resolve,
    resolve_hosts,
)
from peakline.repository.confined import Confinement
from peakline.repository.rank_names import rank_name, stem_of

EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 1, "dur": 2}
SNAPSHOT = pickle.dumps({"segments": [], "device_traces": [[]]}, protocol=4)
OOM = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total \
capacity of 15.77 GiB of which 1.44 GiB is free. Of the allocated memory 13.20 GiB is allocated by \
PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated.\n"


def trace(rank=None, world=2, *, at_end=False, **more):
    """A trace, as text; of ``rank`` where it is not None."""
    events = {"traceEvents": [EVENT]}
    info = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": world}}
    return json.dumps({**more, **(events | info if at_end else info | events)}).encode()


@pytest.fixture(params=["local", "memory"])
def place(request, tmp_path):
    """A directory, and what puts files into it."""
    if request.param == "local":
        logs = tmp_path / "logs"
        yield str(logs), partial(put, logs)
        return
    system = fsspec.filesystem("memory")
    system.store.clear()

    def put_there(*names, content=b"x"):
        for name in names:
            system.pipe_file(f"/bucket/logs/{name}", content)

    yield "memory://bucket/logs", put_there
    system.store.clear()


def job_in(path):
    """The hosts of the job in a directory, each with its rank by name."""
    job = resolve_hosts(str(path))
    assert isinstance(job, RankFiles), job
    return {file.host: file.rank for file in job.hosts()}


@each_row(
    "name, rank, place, stem",
    [
        ("rank0.json.gz", 0, "rank0", "rank0"),
        ("rank-3.json", 3, "rank3", "rank-3"),
        ("Rank_3.pt.trace.json", 3, "rank3", "Rank_3"),
        ("rank[3]_trace.json", 3, "rank3", "rank[3]_trace"),
        ("trace_rank_3_step_10.json", 3, "rank3", "trace_rank_3_step_10"),
        ("kineto.rank_3_step_7.json", 3, "rank3", "kineto.rank_3_step_7"),
        ("kineto_3.json", 3, "kineto3", "kineto_3"),
        ("global_rank_7.json", 7, "rank7", "global_rank_7"),
        ("dp0_tp1.json", None, "dp0 tp1", "dp0_tp1"),
        ("dp0_pp0_tp1_dcp0_ep1_rank1.json", 1, "dcp0 dp0 ep1 pp0 rank1 tp1", None),
        ("tp_rank_0_pp_rank_1.json", None, "pprank1 tprank0", "tp_rank_0_pp_rank_1"),
        ("local_rank_3.json", None, "localrank3", "local_rank_3"),
        ("1700000000.5-TP-0-DP-1.trace.json.gz", None, "dp1 tp0", "1700000000.5-TP-0-DP-1"),
        ("snap_rank3.pickle", 3, "rank3", "snap_rank3"),
        ("oom_rank-3_x.pickle", 3, "rank3", "oom_rank-3_x"),
        ("rank_3.log", 3, "rank3", "rank_3"),
        ("worker-3/trace.json", 3, "worker3", "worker-3/trace"),
        ("node0/rank1.json.gz", 1, "node0 rank1", "node0/rank1"),
        ("0/trace.json", 0, "folder0", "0/trace"),
        ("attempt_0/3/stderr.log", 3, "folder3", "attempt_0/3/stderr"),
        ("100/rank0.json", 0, "rank0", "100/rank0"),
        ("gpu3.json", None, "gpu3", "gpu3"),
        # No ranks: runs, steps, process ids, parts of words.
        ("run1.json", None, "", "run1"),
        ("before.json", None, "", "before"),
        ("step_3.json", None, "", "step_3"),
        ("libkineto_activities_4711.json", None, "", "libkineto_activities_4711"),
        ("crank3.json", None, "", "crank3"),
        ("vm_4711.1795906355107696422.pt.trace.json", None, "", "vm_4711.1795906355107696422"),
        ("2026_11_20_17_33_46/localhost_47507.json", None, "", None),
        ("rank.json", None, "", "rank"),
    ],
)
def test_what_a_name_says(name, rank, place, stem):
    said = rank_name(name)
    assert (said.rank, " ".join(f"{word}{n}" for word, n in said.place)) == (rank, place)
    assert stem_of(name) == (stem or name.removesuffix(".json"))


@pytest.mark.parametrize(
    ("names", "hosts"),
    [
        (["rank0.json", "rank1.json", "rank10.json"], {"rank0": 0, "rank1": 1, "rank10": 10}),
        (["a/rank0.json", "b/rank1.json"], {"a/rank0": 0, "b/rank1": 1}),
        (["0/trace.json", "1/trace.json"], {"0/trace": 0, "1/trace": 1}),
        (["dp0_tp0.json", "dp0_tp1.json"], {"dp0_tp0": None, "dp0_tp1": None}),
        # Within each node another rank 0.
        (["node0/rank0.json", "node1/rank0.json"], {"node0/rank0": None, "node1/rank0": None}),
        (["worker-3/t.json", "worker-7/t.json"], {"worker-3/t": 3, "worker-7/t": 7}),
        (["rank0.json", "rank0.json.gz", "rank1.json.gz"], {"rank0": 0, "rank1": 1}),
    ],
)
def test_files_of_ranks_are_a_job(place, names, hosts):
    path, put_there = place
    for name in names:
        packed = name.endswith(".gz")
        put_there(name, content=gzip.compress(trace(), mtime=0) if packed else trace())
    put_there("README.json", content=b'{"lr": 0.1}')
    put_there(".rank7.json", content=trace())
    assert job_in(path) == hosts
    for host in hosts:
        assert resolve(path, host=host).removeprefix(f"{path}/").startswith(host)


@each_row(
    "names",
    [
        ["before.json", "after.json"],
        ["run1.json", "run2.json"],
        ["tp2.json", "tp4.json", "tp8.json"],
        ["step_1.json", "step_2.json"],
        ["kineto_4711.json", "kineto_4822.json"],
        ["ep1.json", "ep2.json"],
        ["stage0.json", "stage1.json"],
        ["gpu1.json", "gpu2.json", "gpu4.json"],
        ["1/trace.json", "2/trace.json"],
        ["0/trace.json", "10/trace.json", "20/trace.json"],
        ["node1_before.json", "node2_after.json"],
        ["gpu0_a.json", "gpu1_b.json"],
        ["pp512.json", "pp1024.json"],
        ["before_rank0.json", "after_rank0.json"],
        ["run1_rank0.json", "run2_rank0.json"],
    ],
)
def test_other_files_are_no_job_unless_they_say_so(place, names):
    path, put_there = place
    folder = "+".join(names).replace("/", "-")
    path = f"{path}/{folder}"
    put_there(*(f"{folder}/{name}" for name in names), content=trace())
    some = f"no session here, but {len(names)} files .*; name one, such as "
    with pytest.raises((InputError, UsageError), match=f"no sessions here|{some}"):
        resolve_hosts(path)
    for rank, name in enumerate(names):
        put_there(f"{folder}/{name}", content=trace(rank, len(names), at_end=bool(rank)))
    assert sorted(job_in(path).values()) == list(range(len(names)))
    assert resolve_hosts(path, rank=1) == f"{path}/{names[1]}"


def test_the_rank_is_what_the_content_says(place):
    path, put_there = place
    put_there("rank0.json", content=trace(1))
    put_there("rank1.json", content=trace(0))
    assert resolve_hosts(path, rank=0).endswith("rank1.json")
    with pytest.raises(NotFoundError, match=r"no rank 7; there is: 0-1$"):
        resolve_hosts(path, rank=7)
    with pytest.raises(UsageError, match="--rank or --host, not both"):
        resolve_hosts(path, None, "rank0", rank=0)
    with pytest.raises(UsageError, match="is one file; --rank needs"):
        resolve_hosts(f"{path}/rank0.json", rank=0)


def test_several_files_of_one_rank(place):
    path, put_there = place
    for name, rank in (("a", 0), ("b", 1), ("c", 1)):
        put_there(f"{name}.json", content=trace(rank))
    assert resolve_hosts(path, rank=0).endswith("a.json")
    with pytest.raises(UsageError, match="several files of rank 1: b, c; use --host"):
        resolve_hosts(path, rank=1)


def test_a_job_is_a_session(place):
    path, put_there = place
    put_there("rank0.json", "rank1.json", content=trace())
    job = resolve_hosts(path)
    assert (job.name, job.path, isinstance(job, Session)) == ("logs", path, True)
    assert job.host("rank1").path == f"{path}/rank1.json"
    with pytest.raises(NotFoundError, match="no host 'x'; there is: rank0, rank1"):
        job.host("x")
    engine = Engine()
    assert "trace_viewer" in engine.tools(job)
    assert b"aten::mm" in engine.tool(job, "trace_viewer", host="rank1").content
    with pytest.raises(UsageError, match="there is: rank0, rank1"):
        engine.tool(job, "trace_viewer")


def test_a_file_that_is_added_is_seen(tmp_path):
    put(tmp_path, "rank0.json", "rank1.json", content=trace())
    job = resolve_hosts(str(tmp_path))
    before = job.stamp()
    put(tmp_path, "rank2.json", content=trace())
    assert job.stamp() != before
    assert [file.host for file in job.hosts()] == ["rank0", "rank1", "rank2"]


def test_a_session_has_ranks_too(tmp_path):
    put(tmp_path, "rank0.1795906355107696422.pt.trace.json", content=trace(0))
    put(tmp_path, "rank1.1795906355107696422.pt.trace.json", content=trace(1))
    session = resolve_hosts(str(tmp_path))
    assert [(file.host, file.rank) for file in session.hosts()] == [("rank0", 0), ("rank1", 1)]
    assert "rank1" in resolve_hosts(str(tmp_path), rank=1)
    put(tmp_path, "s/vm.xplane.pb", "s/worker.xplane.pb")
    with pytest.raises(NotFoundError, match="neither the files nor their names say a rank"):
        resolve_hosts(str(tmp_path / "s"), rank=1)


def test_traces_are_the_job_and_the_rest_is_said(place):
    path, put_there = place
    put_there("rank0.json", "rank1.json", content=trace())
    put_there("snap_rank0.pickle", "snap_rank1.pickle", content=SNAPSHOT)
    put_there("rank_0.log", "rank_1.log", content=OOM)
    put_there("merged.json", content=trace())
    put_there("config.json", "rank0_config.json", content=b'{"lr": 0.1}')
    assert job_in(path) == {"rank0": 0, "rank1": 1}
    apart = "name one, or put them into a folder of their own"
    assert [str(one) for one in resolve_hosts(path).others] == [
        f"2 files such as rank_0.log: log: {apart}",
        f"2 files such as snap_rank0.pickle: torch_snapshot: {apart}",
        "merged.json: chrome_trace: no rank of this job",
    ]


def test_words_that_mean_other_things_as_well_are_checked(place):
    """The runs of a sweep, each in a folder with a number."""
    path, put_there = place
    for rank, world in ((0, 1), (0, 8), (None, 8)):
        put_there("0/trace.json", "1/trace.json", content=trace(rank, world))
        if rank is None:
            assert list(job_in(path)) == ["0/trace", "1/trace"]
        else:
            with pytest.raises(InputError, match="no sessions here"):
                resolve_hosts(path)


RECORDING = "vm_{}.17958563551076964{}0.pt.trace.json"


@pytest.mark.parametrize("folders", [["rank0", "rank1"], ["0", "1"], ["logs/node0", "logs/node1"],
                                     ["host-a", "host-b"]])  # fmt: skip
def test_each_rank_in_a_session_of_its_own(place, folders):
    """As ``tensorboard_trace_handler(f"logs/rank{rank}")`` writes them, each two cycles."""
    path, put_there = place
    for rank, folder in enumerate(folders):
        name = RECORDING.format(70 + rank, rank + 2)
        put_there(f"{folder}/{name}", content=trace(rank))
    expected = [f"{folder}/{RECORDING.format(70 + n, n + 2)}" for n, folder in enumerate(folders)]
    assert list(job_in(path)) == folders
    assert resolve_hosts(path, None, folders[1]) == f"{path}/{expected[1]}"
    assert resolve_hosts(path, rank=1) == f"{path}/{expected[1]}"
    assert resolve_hosts(path, folders[1]) == f"{path}/{expected[1]}"
    if folders[0].startswith("host"):
        put_there(f"host-b/{RECORDING.format(71, 3)}", content=trace(0))
        assert isinstance(resolve_hosts(path), str)


def test_of_each_ranks_cycles_the_newest(tmp_path):
    for rank in range(2):
        put(tmp_path, *(f"rank{rank}/{RECORDING.format(70 + rank, cycle)}" for cycle in (3, 5)),
            content=trace(rank))  # fmt: skip
    assert list(job_in(tmp_path)) == ["rank0", "rank1"]
    newest = RECORDING.format(71, 5)
    assert resolve_hosts(str(tmp_path), rank=1) == f"{tmp_path}/rank1/{newest}"
    (other,) = resolve_hosts(str(tmp_path)).others
    assert str(other).startswith(f"2 files such as rank0/{RECORDING.format(70, 3)}: of other steps")


def test_runs_one_after_the_other_are_no_job(tmp_path):
    """Of each another rank was recorded, hours apart."""
    put(tmp_path, "a/vm_70.1795856355107696400.pt.trace.json", content=trace(0))
    put(tmp_path, "b/vm_71.1795866355107696400.pt.trace.json", content=trace(1))
    newest = []
    assert isinstance(resolve_hosts(str(tmp_path), newest=lambda *one: newest.append(one)), str)
    assert [count for _, count in newest] == [2]


def test_local_ranks_of_two_machines_are_one_job_where_they_say_so(place):
    path, put_there = place
    for node in range(2):
        for local in range(3):
            put_there(f"host-{'ab'[node]}/rank{local}.json", content=trace(node * 3 + local, 6))
    put_there("host-b/rank1.json", content=b"")
    expected = {"host-a/rank0": 0, "host-a/rank1": 1, "host-a/rank2": 2, "host-b/rank0": 3,
                "host-b/rank1": None, "host-b/rank2": 5}  # fmt: skip
    assert job_in(path) == expected
    assert resolve_hosts(path, rank=5).endswith("host-b/rank2.json")
    with pytest.raises(NotFoundError, match=r"no rank 4; there is: 0-3, 5$"):
        resolve_hosts(path, rank=4)


def test_snapshots_and_logs_alone_are_jobs(place):
    path, put_there = place
    put_there("0/stderr.log", "1/stderr.log", content=OOM)
    put_there("2/stderr.log", content=b"nothing here\n")
    assert list(job_in(path)) == ["0/stderr", "1/stderr"]
    put_there("oom_rank-1.pickle", content=SNAPSHOT)
    put_there("snap_rank0.pickle", "snap_rank1.pickle", content=SNAPSHOT)
    assert job_in(path) == {"snap_rank0": 0, "snap_rank1": 1}
    (other,) = resolve_hosts(path).others
    assert str(other) == (
        "oom_rank-1.pickle: torch_snapshot: not named as snap_rank0.pickle and the others"
    )


def test_a_job_in_folders_counts_before_a_log_beside_them(place):
    path, put_there = place
    put_there("train.log", content=OOM)
    assert resolve_hosts(path) == f"{path}/train.log"
    put_there("rank0/trace.json", "rank1/trace.json", content=trace())
    assert list(job_in(path)) == ["rank0/trace", "rank1/trace"]
    assert [str(one) for one in resolve_hosts(path).others] == [
        "train.log: log: no rank of this job"
    ]


def test_links_and_pipes_in_a_job(tmp_path):
    put(tmp_path, "rank0.json", "rank1.json", "other/rank0.json", content=trace())
    (tmp_path / "rank2.json").symlink_to(tmp_path / "rank1.json")
    (tmp_path / "rank3.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "round").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "rank4.json")
    assert list(job_in(tmp_path)) == ["rank0", "rank1", "rank2"]
    folders = tmp_path / "folders"
    put(folders, "node0/rank0.json", "node1/rank1.json", content=trace())
    (folders / "latest").symlink_to(folders / "node1")
    (folders / "node0/up").symlink_to(folders)
    assert sorted(job_in(folders).values()) == [0, 1]


def test_a_confined_job_reads_nothing_outside(tmp_path):
    put(tmp_path, "job/rank0.json", content=trace(0))
    put(tmp_path, "secret.json", content=trace(7, 8))
    (tmp_path / "job/rank1.json").symlink_to(tmp_path / "secret.json")
    job = rank_files(str(tmp_path / "job"), confinement=Confinement((str(tmp_path / "job"),)))
    first, second = job.hosts()
    assert [file.confinement for file in (first, second)] == [job.confinement] * 2
    assert [rank_of_file(file) for file in (first, second)] == [0, 1]  # the second by its name
    with pytest.raises(ForbiddenError):
        second.stamp()
    assert pickle.loads(pickle.dumps(job)).hosts() == job.hosts()  # noqa: S301


def test_a_job_in_an_archive(tmp_path):
    archive = tmp_path / "job.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for rank in range(2):
            file.writestr(f"rank{rank}.json", trace(rank))
    job = resolve_hosts(f"zip://::{archive}")
    assert [file.host for file in job.hosts()] == ["rank0", "rank1"]
    with peakline.open(job.hosts()[1].path) as profile:
        assert profile.rank_facts.rank == 1


def test_several_jobs_are_named(place):
    path, put_there = place
    put_there("good_rank0.json", "good_rank1.json", "bad_rank0.json", "bad_rank1.json",
              content=trace())  # fmt: skip
    with pytest.raises(UsageError, match=r"2 jobs: .*good_rank0\.json \(2 files\).*; name one"):
        resolve_hosts(path)


def test_of_steps_and_times_the_newest_is_taken(place):
    path, put_there = place
    for step in (5, 20, 100):
        put_there(*(f"trace_rank_{rank}_step_{step}.json" for rank in range(3)), content=trace())
    # Not all were written yet.
    put_there("trace_rank_0_step_200.json", content=trace())
    assert list(job_in(path)) == [f"trace_rank_{rank}_step_100" for rank in range(3)]
    (other,) = resolve_hosts(path).others
    assert str(other) == (
        "7 files such as trace_rank_0_step_20.json: of other steps or times than "
        "trace_rank_0_step_100.json"
    )


def test_an_empty_rank_is_one_of_the_job(place):
    path, put_there = place
    put_there("rank0.json", content=b"")
    put_there("rank1.json", "rank2.json", content=trace())
    # The only one of a machine, in a name that no other has.
    put_there("host-b_rank3.json", "host-c_rank4.json", content=b"")
    put_there("rank5_notes.json", content=b"{}")
    assert list(job_in(path).values()) == [0, 1, 2, 3, 4]


def test_what_is_no_profile_makes_no_job(place):
    path, put_there = place
    put_there("rank0.json", "rank1.json", content=b'{"loss": 1}')
    with pytest.raises(InputError, match="no sessions here"):
        resolve_hosts(path)


@pytest.fixture
def reads(monkeypatch):
    """The files that are opened for their first bytes."""
    result, real = [], readable._opened
    monkeypatch.setattr(
        readable, "_opened", lambda path, *more: result.append(path) or real(path, *more)
    )
    return result


def test_a_thousand_files_are_not_all_read(tmp_path, reads):
    put(tmp_path, *(f"rank{rank}.json" for rank in range(1000)), content=trace())
    assert len(job_in(tmp_path)) == 1000
    assert resolve_hosts(str(tmp_path), rank=999).endswith("rank999.json")
    assert len(reads) < 10


def test_files_that_say_nothing_of_ranks_are_not_all_read(tmp_path, reads):
    put(tmp_path, *(f"deep/run{number}.json" for number in range(300)), content=trace())
    with pytest.raises(InputError):
        resolve_hosts(str(tmp_path))
    assert len(reads) <= 64
