"""Directories with recordings of PyTorch, as its handler for TensorBoard writes them."""

import os
from pathlib import Path

import fsspec
import pytest
from tests.repository.places import put

from peakline.errors import NotFoundError, UsageError
from peakline.repository import Repository, hosts, local, resolve, resolve_hosts

PLUGIN = "plugins/profile"
T1, T2, T3 = "1795856066108631811", "1795856067103235100", "1795856067518485289"


@pytest.fixture(params=["local", "memory"])
def place(request, tmp_path):
    """A log directory, and what puts files into it."""
    if request.param == "local":
        logs = tmp_path / "logs"
        yield str(logs), lambda *names: put(logs, *names)
        return
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield (
        "memory://bucket/logs",
        lambda *names: [system.pipe_file(f"/bucket/logs/{name}", b"x") for name in names],
    )
    system.store.clear()


def found_in(session):
    return [(file.host, Path(file.path).name) for file in session.hosts()]


def names(found):
    return [one.name for one in found]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([f"vm_7.{T1}.pt.trace.json"], ["vm_7"]),
        ([f"vm_7.{T1}.pt.trace.json.gz", f"vm_8.{T2}.pt.trace.json"], ["vm_7", "vm_8"]),
        (
            [f"vm_7.{T2}.pt.trace.json", f"vm_7.{T1}.pt.trace.json.gz", f"vm_8.{T2}.pt.trace.json"],
            [f"vm_7.{T1}", f"vm_7.{T2}", "vm_8"],
        ),
        (["step.pt.trace.json", f"step.{T1}.pt.trace.json"], ["step", f"step.{T1}"]),
        # A worker that is called as another one's recording is.
        (
            [f"a.{T1}.{T2}.pt.trace.json", f"a.{T1}.pt.trace.json", f"a.{T3}.pt.trace.json"],
            [f"a.{T1}", f"a.{T1}.{T2}", f"a.{T3}"],
        ),
        # Another program's copy for browsers, and what no host can be called.
        ([f"vm_7.{T1}.pt.trace.json", "vm.trace.json.gz", "-a.1.pt.trace.json"], ["vm_7"]),
    ],
)
def test_every_recording_is_a_host(tmp_path, files, expected):
    put(tmp_path, *(f"s/{name}" for name in files))
    found = hosts(str(tmp_path / "s"))
    assert [file.host for file in found] == expected
    assert found == Repository(tmp_path).session("s").hosts()


def test_which_file_of_a_host_counts(tmp_path):
    put(tmp_path, f"s/a.{T1}.pt.trace.json.gz", f"s/a.{T1}.pt.trace.json")
    put(tmp_path, "s/b.xplane.pb.gz", f"s/b.{T1}.pt.trace.json")
    assert found_in(Repository(tmp_path).session("s")) == [
        ("a", f"a.{T1}.pt.trace.json"),
        ("b", "b.xplane.pb.gz"),
    ]


def test_a_directory_of_recordings_is_its_own_session(place):
    path, put_there = place
    put_there(f"vm_7.{T1}.pt.trace.json", "fit-profile.txt")
    repository = Repository(path)
    assert names(repository.sessions()) == names(repository.runs()) == ["logs"]
    assert found_in(repository.session("logs")) == [("vm_7", f"vm_7.{T1}.pt.trace.json")]
    assert repository.root == path
    assert resolve(path) == resolve(path, "logs") == f"{path}/vm_7.{T1}.pt.trace.json"
    with pytest.raises(UsageError, match="--session needs a log directory"):
        resolve_hosts(f"{path}/vm_7.{T1}.pt.trace.json", "logs")
    with pytest.raises(NotFoundError, match="no session 'x'; there is: logs"):
        resolve(path, "x")


def test_directories_of_recordings_are_sessions(place):
    path, put_there = place
    put_there(f"run1/vm_7.{T1}.pt.trace.json", f"run2/vm_8.{T2}.pt.trace.json.gz", "run3/notes")
    repository = Repository(path)
    assert sorted(names(repository.sessions())) == ["run1", "run2"]
    assert sorted(names(repository.runs())) == ["run1", "run2"]
    assert repository.root == path
    assert resolve(path, "run2").endswith("run2/vm_8.1795856067103235100.pt.trace.json.gz")
    assert resolve(f"{path}/run1").endswith(f"vm_7.{T1}.pt.trace.json")


def test_deeper_directories_of_recordings_are_nested_runs(place):
    path, put_there = place
    put_there(
        f"lightning_logs/version_0/fit.{T1}.pt.trace.json",
        "lightning_logs/version_0/hparams.yaml",
        f"lightning_logs/.h/fit.{T1}.pt.trace.json",
        f"node_modules/x/fit.{T1}.pt.trace.json",
    )
    repository = Repository(path)
    assert repository.sessions() == []
    assert names(repository.runs()) == ["lightning_logs/version_0"]
    expected = f"{path}/lightning_logs/version_0/fit.{T1}.pt.trace.json"
    assert resolve(path) == resolve(path, "lightning_logs/version_0") == expected
    assert repository.session("lightning_logs/version_0").hosts()[0].path == expected


def test_recordings_beside_sessions_of_other_frameworks(place):
    path, put_there = place
    put_there(f"{PLUGIN}/s/vm.xplane.pb", f"run1/a.{T1}.pt.trace.json", f"b.{T2}.pt.trace.json")
    repository = Repository(path)
    assert names(repository.sessions()) == ["s"]
    assert sorted(names(repository.runs())) == ["logs", "run1", "s"]
    assert resolve(path, "run1").endswith(f"a.{T1}.pt.trace.json")
    assert resolve(path, "logs").endswith(f"b.{T2}.pt.trace.json")
    assert resolve(path, "s").endswith("vm.xplane.pb")
    assert repository.session("run1").path == f"{path}/run1"
    assert repository.root == f"{path}/{PLUGIN}"


def test_a_directory_of_recordings_with_others_in_it(tmp_path):
    logs = tmp_path / "logs"
    put(logs, f"a.{T1}.pt.trace.json", f"run2/a.{T2}.pt.trace.json", f"logs/a.{T3}.pt.trace.json")
    for name, moment in (("run2", 9), ("logs", 5), (".", 7)):
        os.utime(logs / name, (moment, moment))
    noted = []

    def newest(session, count):
        noted.append((session.name, count))

    # One in it has its name.
    assert names(Repository(logs).sessions()) == ["run2", "logs_", "logs"]
    assert resolve_hosts(str(logs), newest=newest) == str(logs / f"run2/a.{T2}.pt.trace.json")
    assert noted == [("run2", 3)]
    assert resolve(str(logs), "logs") == str(logs / f"logs/a.{T3}.pt.trace.json")
    assert resolve(str(logs), "logs_") == str(logs / f"a.{T1}.pt.trace.json")


def test_the_directory_where_one_is(tmp_path, monkeypatch):
    put(tmp_path, f".run/a.{T1}.pt.trace.json", f"run/a.{T2}.pt.trace.json")
    monkeypatch.chdir(tmp_path / "run")
    assert names(Repository(".").sessions()) == ["run"]
    assert resolve(".", "run").endswith(f"a.{T2}.pt.trace.json")
    assert resolve(str(tmp_path / ".run")).endswith(f"a.{T1}.pt.trace.json")
    assert names(Repository(tmp_path / ".run").sessions()) == ["session"]


def test_a_listing_of_recordings_that_did_not_change_is_the_last_one(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_SETTLED_NS", -1)
    put(tmp_path, f"a.{T1}.pt.trace.json", f"run/a.{T1}.pt.trace.json")
    repository = Repository(tmp_path)
    repository.survey()
    found = repository.survey()
    assert repository.survey() is found
    assert len(found.sessions) == 2
    (tmp_path / f"a.{T1}.pt.trace.json").unlink()
    assert names(repository.sessions()) == ["run"]


def test_nothing_beside_sessions_is_cleaned(tmp_path):
    """A directory that others share has the bit of a session that is being made."""
    put(tmp_path, f"logs/exp/run/a.{T1}.pt.trace.json")
    for shared in (tmp_path / "shared", tmp_path / "logs/exp/shared"):
        shared.mkdir()
        shared.chmod(0o1777)
    Repository(tmp_path / "logs").clean(nested=True)
    for shared in (tmp_path / "shared", tmp_path / "logs/exp/shared"):
        assert shared.stat().st_mode & 0o7777 == 0o1777
