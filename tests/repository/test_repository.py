import os
import shutil
import tempfile
from pathlib import Path

import fsspec
import pytest
from tests.repository.places import FOREIGN, as_nobody, put

from peakline.errors import InputError, NotFoundError, UsageError
from peakline.repository import Repository, Session, hosts, local, resolve, resolve_hosts
from peakline.repository.local import LocalFolder

OLD, NEW = "2026_11_20_16_57_05", "2026_11_21_09_00_00"
PLUGIN = "plugins/profile"


@pytest.fixture
def open_place():
    """A folder that every user may look into, unlike pytest's own."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    yield place
    for result in place.rglob("*"):
        if result.is_dir() and not result.is_symlink():
            result.chmod(0o755)
    shutil.rmtree(place)


def names(result):
    return [item.name for item in result]


def test_both_spellings_of_a_log_directory(tmp_path):
    put(tmp_path, f"{PLUGIN}/{OLD}/vm.xplane.pb")
    for spelling in (tmp_path, f"{tmp_path}/", tmp_path / PLUGIN, f"{tmp_path}/{PLUGIN}/"):
        repository = Repository(spelling)
        assert repository.root == str(tmp_path / PLUGIN)
        assert repository.sessions() == [Session(OLD, OLD, str(tmp_path / PLUGIN / OLD))]
        assert repository.session(OLD).path == str(tmp_path / PLUGIN / OLD)


def test_sessions_that_lie_directly_in_the_directory(tmp_path):
    put(tmp_path, "s/vm.xplane.pb")
    repository = Repository(tmp_path)
    assert repository.root == str(tmp_path)
    assert names(repository.sessions()) == ["s"]


def test_where_the_first_session_will_lie(tmp_path):
    assert Repository(tmp_path).root == str(tmp_path / PLUGIN)
    assert Repository(tmp_path / "new").root == str(tmp_path / "new" / PLUGIN)
    assert Repository(tmp_path / PLUGIN).root == str(tmp_path / PLUGIN)
    assert Repository(tmp_path).sessions() == []


def test_nothing_there(tmp_path):
    with pytest.raises(NotFoundError, match="no such directory"):
        Repository(tmp_path / "nothing").sessions()
    put(tmp_path, "file")
    with pytest.raises((InputError, NotFoundError)):
        Repository(tmp_path / "file").sessions()
    with pytest.raises(NotFoundError, match=r"no session 'x'; there is: none$"):
        Repository(tmp_path).session("x")


def test_nested_runs(tmp_path):
    put(
        tmp_path,
        f"{PLUGIN}/{NEW}/vm.xplane.pb",
        f"train/{PLUGIN}/{OLD}/vm.xplane.pb",
        f"new_job/tensorboard/{PLUGIN}/{OLD}/vm.xplane.pb",
        f".hidden/{PLUGIN}/{OLD}/vm.xplane.pb",
        f"{PLUGIN}/deep/{PLUGIN}/{OLD}/vm.xplane.pb",
        f"eval/plugins/other/{OLD}/vm.xplane.pb",
    )
    repository = Repository(tmp_path)
    assert names(repository.sessions()) == [NEW]
    assert names(repository.runs()) == [NEW, f"train/{OLD}", f"new_job/tensorboard/{OLD}"]
    run = repository.session(f"train/{OLD}")
    assert (run.session_id, run.name) == (OLD, f"train/{OLD}")
    assert run.path == str(tmp_path / "train" / PLUGIN / OLD)
    assert names(Repository(tmp_path / PLUGIN).runs()) == [NEW]
    with pytest.raises(NotFoundError, match=f"there is: {NEW}, train/{OLD}"):
        repository.session("train/other")


@pytest.mark.parametrize("name", ["../x", "a/../b", "/a", "a/", "a//b", ".h", "a/.h/b", "a\0"])
def test_no_name_leads_out_of_the_directory(tmp_path, name):
    with pytest.raises(UsageError):
        Repository(tmp_path).session(name)


def test_linked_runs_are_followed_once(tmp_path):
    put(tmp_path, f"elsewhere/{PLUGIN}/{OLD}/vm.xplane.pb")
    logdir = tmp_path / "logs"
    logdir.mkdir()
    (logdir / "a").symlink_to(tmp_path / "elsewhere")
    (logdir / "round").symlink_to(logdir)
    assert names(Repository(logdir).runs()) == [f"a/{OLD}"]


def test_foreign_files_are_neither_hosts_nor_touched(tmp_path):
    put(tmp_path, f"{PLUGIN}/{OLD}/vm.xplane.pb", *(f"{PLUGIN}/{OLD}/{name}" for name in FOREIGN))
    put(tmp_path, *(f"{PLUGIN}/{NEW}/{name}" for name in FOREIGN))
    (session,) = Repository(tmp_path).sessions()
    assert [file.host for file in session.hosts()] == ["vm"]
    assert len(list((tmp_path / PLUGIN).rglob("*.*"))) == 2 * len(FOREIGN) + 1


def test_which_file_of_a_host_counts(tmp_path):
    put(tmp_path, *(f"s/a{suffix}" for suffix in (".profile", ".xplane.pb.gz", ".xplane.pb")))
    put(tmp_path, "s/b.profile", "s/b.xplane.pb.gz", "s/c.profile")
    result = Repository(tmp_path).session("s").hosts()
    assert [(file.host, Path(file.path).name) for file in result] == [
        ("a", "a.xplane.pb"),
        ("b", "b.xplane.pb.gz"),
        ("c", "c.profile"),
    ]


def test_an_empty_file_is_a_host(tmp_path):
    put(tmp_path, "s/vm.xplane.pb", content=b"")
    assert [file.host for file in Repository(tmp_path).session("s").hosts()] == ["vm"]


def test_a_host_by_both_spellings(tmp_path):
    put(tmp_path, "s/localhost_1.xplane.pb", "s/w.xplane.pb")
    session = Repository(tmp_path).session("s")
    assert session.host("localhost:1") == session.host("localhost_1")
    with pytest.raises(NotFoundError, match=r"session 's': no host 'x'; there is: localhost_1, w$"):
        session.host("x")


def test_odd_entries_do_no_harm(tmp_path):
    root = tmp_path / PLUGIN
    put(root, f"{OLD}/vm.xplane.pb", "a file", "d/d.xplane.pb/inner", "with space/Ω 雪.xplane.pb")
    (root / "gone").symlink_to(root / "nowhere")
    (root / OLD / "gone.xplane.pb").symlink_to(root / "nowhere")
    put(root, "x" * 200 + "/" + "h" * 200 + ".xplane.pb")
    assert sorted(names(Repository(tmp_path).sessions())) == [OLD, "with space", "x" * 200]
    assert [file.host for file in Repository(tmp_path).session("with space").hosts()] == ["Ω 雪"]


def test_what_cannot_be_named_is_told(tmp_path):
    root = tmp_path / PLUGIN
    put(root, f"{OLD}/vm.xplane.pb", "back\\slash/vm.xplane.pb", "x" * 201 + "/vm.xplane.pb")
    odd = os.fsencode(root) + b"/\xff"
    os.mkdir(odd)  # noqa: PTH102  (no text names it)
    Path(os.fsdecode(odd + b"/vm.xplane.pb")).write_bytes(b"x")
    result = Repository(tmp_path).survey()
    assert names(result.sessions) == [OLD]
    assert sorted(problem.name for problem in result.problems) == [
        "back\\slash",
        "x" * 201,
        "\udcff",
    ]


def test_a_session_that_cannot_be_read_is_left_out_and_told(open_place):
    root = open_place / PLUGIN
    put(root, f"{OLD}/vm.xplane.pb", f"{NEW}/vm.xplane.pb")
    (root / "loop").symlink_to(root / "loop")
    (root / NEW).chmod(0)
    with as_nobody():
        result = Repository(open_place).survey()
        assert names(Repository(str(open_place)).sessions()) == names(result.sessions) == [OLD]
        assert [problem.name for problem in result.problems] == [NEW, "loop"]
        assert str(result.problems[0]) == f"{NEW}: Permission denied"
        with pytest.raises(InputError, match=f"session '{NEW}' cannot be read: Permission denied"):
            Repository(open_place).session(NEW)


def test_a_run_that_cannot_be_looked_into_is_told(open_place):
    put(open_place, f"{PLUGIN}/{OLD}/vm.xplane.pb", f"train/{PLUGIN}/{NEW}/vm.xplane.pb")
    (open_place / "train").chmod(0)
    with as_nobody():
        result = Repository(open_place).survey(nested=True)
    assert names(result.sessions) == [OLD]
    assert [(problem.name, problem.reason) for problem in result.problems] == [
        ("train", "Permission denied")
    ]


def test_a_log_directory_that_cannot_be_read(open_place):
    put(open_place, f"logs/{PLUGIN}/{OLD}/vm.xplane.pb")
    (open_place / "logs").chmod(0)
    with as_nobody(), pytest.raises(InputError, match="Permission denied"):
        Repository(open_place / "logs").sessions()


def test_a_session_that_goes_while_it_is_listed(tmp_path, monkeypatch):
    put(tmp_path, f"{PLUGIN}/{OLD}/vm.xplane.pb", f"{PLUGIN}/{NEW}/vm.xplane.pb")
    ask = LocalFolder.holds_profile

    def gone_in_between(folder):
        if folder.name == NEW:
            shutil.rmtree(folder.path)
        return ask(folder)

    monkeypatch.setattr(LocalFolder, "holds_profile", gone_in_between)
    result = Repository(tmp_path).survey()
    assert (names(result.sessions), result.problems) == ([OLD], ())


def test_a_session_that_is_gone(tmp_path):
    put(tmp_path, "s/vm.xplane.pb")
    session = Repository(tmp_path).session("s")
    (file,) = session.hosts()
    shutil.rmtree(tmp_path / "s")
    for ask in (session.hosts, session.stamp, file.stamp):
        with pytest.raises(NotFoundError, match="gone"):
            ask()


def test_stamps_change_with_what_they_stand_for(tmp_path):
    put(tmp_path, "s/vm.xplane.pb")
    session = Repository(tmp_path).session("s")
    (file,) = session.hosts()
    before, content = session.stamp(), file.stamp()
    assert (hash(before), hash(content)) == (hash(session.stamp()), hash(file.stamp()))
    put(tmp_path, "s/vm.xplane.pb", content=b"longer")
    assert file.stamp() != content
    os.utime(tmp_path / "s", ns=(0, 0))
    before = session.stamp()
    put(tmp_path, "s/other.xplane.pb")
    assert session.stamp() != before


def test_a_repository_sees_what_others_do(tmp_path):
    put(tmp_path, f"{PLUGIN}/s/vm.xplane.pb")
    os.utime(tmp_path / PLUGIN / "s", (1, 1))
    repository = Repository(tmp_path)
    assert names(repository.sessions()) == names(repository.sessions()) == ["s"]
    (tmp_path / PLUGIN / "s/vm.xplane.pb").unlink()
    assert repository.sessions() == []
    put(tmp_path, f"{PLUGIN}/t/vm.xplane.pb")
    assert names(repository.sessions()) == ["t"]


def test_a_listing_knows_settled_sessions_without_reading_them(tmp_path, monkeypatch):
    put(tmp_path, f"{PLUGIN}/s/vm.xplane.pb", f"{PLUGIN}/t/vm.xplane.pb")
    monkeypatch.setattr("peakline.repository.local._SETTLED_NS", -1)
    repository = Repository(tmp_path)
    assert len(repository.sessions()) == 2
    read = []
    monkeypatch.setattr(LocalFolder, "files", lambda folder: read.append(folder.name) or iter(()))
    assert (len(repository.sessions()), read) == (2, [])


def test_a_listing_of_what_did_not_change_is_the_last_one(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_SETTLED_NS", -1)
    for number, name in enumerate("abc"):
        put(tmp_path, f"{PLUGIN}/{name}/vm.xplane.pb")
        os.utime(tmp_path / PLUGIN / name, (number + 1, number + 1))
    repository = Repository(tmp_path)
    repository.rule = list
    assert repository.survey() == repository.survey()
    first = repository.survey()
    assert repository.survey() is first
    assert names(first.sessions) == ["c", "b", "a"]

    def now():
        result = names(repository.sessions())
        assert result == names(Repository(tmp_path).sessions())
        return result

    os.utime(tmp_path / PLUGIN / "a", (9, 9))
    assert now() == ["a", "c", "b"]
    (tmp_path / PLUGIN / "c").rename(tmp_path / PLUGIN / "d")
    assert now() == ["a", "d", "b"]
    shutil.rmtree(tmp_path / PLUGIN / "d")
    assert now() == ["a", "b"]
    put(tmp_path, f"{PLUGIN}/e/vm.xplane.pb")
    os.utime(tmp_path / PLUGIN / "e", (5, 5))
    assert now() == ["a", "e", "b"]
    (tmp_path / PLUGIN / "e/vm.xplane.pb").unlink()
    assert now() == ["a", "b"]
    repository.rule = lambda _: []
    assert repository.sessions() == []


def test_a_listing_with_a_link_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_SETTLED_NS", -1)
    put(tmp_path, f"{PLUGIN}/a/vm.xplane.pb")
    put(tmp_path, "elsewhere/vm.xplane.pb")
    (tmp_path / PLUGIN / "b").symlink_to(tmp_path / "elsewhere")
    repository = Repository(tmp_path)
    assert sorted(names(repository.sessions())) == ["a", "b"]
    (tmp_path / "elsewhere/vm.xplane.pb").unlink()
    assert names(repository.sessions()) == ["a"]


def test_digits_that_are_no_date_are_ordered_by_their_time(tmp_path):
    put(tmp_path, f"{PLUGIN}/9999_99_99_99_99_99/a.xplane.pb", f"{PLUGIN}/other/a.xplane.pb")
    os.utime(tmp_path / PLUGIN / "9999_99_99_99_99_99", (1, 1))
    assert names(Repository(tmp_path).sessions()) == ["other", "9999_99_99_99_99_99"]


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


def names_of_recordings(result):
    return [one.name for one in result]


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
    result = hosts(str(tmp_path / "s"))
    assert [file.host for file in result] == expected
    assert result == Repository(tmp_path).session("s").hosts()


def test_which_file_of_a_host_counts_of_recordings(tmp_path):
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
    assert (
        names_of_recordings(repository.sessions())
        == names_of_recordings(repository.runs())
        == ["logs"]
    )
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
    assert sorted(names_of_recordings(repository.sessions())) == ["run1", "run2"]
    assert sorted(names_of_recordings(repository.runs())) == ["run1", "run2"]
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
    assert names_of_recordings(repository.runs()) == ["lightning_logs/version_0"]
    expected = f"{path}/lightning_logs/version_0/fit.{T1}.pt.trace.json"
    assert resolve(path) == resolve(path, "lightning_logs/version_0") == expected
    assert repository.session("lightning_logs/version_0").hosts()[0].path == expected


def test_recordings_beside_sessions_of_other_frameworks(place):
    path, put_there = place
    put_there(f"{PLUGIN}/s/vm.xplane.pb", f"run1/a.{T1}.pt.trace.json", f"b.{T2}.pt.trace.json")
    repository = Repository(path)
    assert names_of_recordings(repository.sessions()) == ["s"]
    assert sorted(names_of_recordings(repository.runs())) == ["logs", "run1", "s"]
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
    assert names_of_recordings(Repository(logs).sessions()) == ["run2", "logs_", "logs"]
    assert resolve_hosts(str(logs), newest=newest) == str(logs / f"run2/a.{T2}.pt.trace.json")
    assert noted == [("run2", 3)]
    assert resolve(str(logs), "logs") == str(logs / f"logs/a.{T3}.pt.trace.json")
    assert resolve(str(logs), "logs_") == str(logs / f"a.{T1}.pt.trace.json")


def test_the_directory_where_one_is(tmp_path, monkeypatch):
    put(tmp_path, f".run/a.{T1}.pt.trace.json", f"run/a.{T2}.pt.trace.json")
    monkeypatch.chdir(tmp_path / "run")
    assert names_of_recordings(Repository(".").sessions()) == ["run"]
    assert resolve(".", "run").endswith(f"a.{T2}.pt.trace.json")
    assert resolve(str(tmp_path / ".run")).endswith(f"a.{T1}.pt.trace.json")
    assert names_of_recordings(Repository(tmp_path / ".run").sessions()) == ["session"]


def test_a_listing_of_recordings_that_did_not_change_is_the_last_one(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_SETTLED_NS", -1)
    put(tmp_path, f"a.{T1}.pt.trace.json", f"run/a.{T1}.pt.trace.json")
    repository = Repository(tmp_path)
    repository.survey()
    result = repository.survey()
    assert repository.survey() is result
    assert len(result.sessions) == 2
    (tmp_path / f"a.{T1}.pt.trace.json").unlink()
    assert names_of_recordings(repository.sessions()) == ["run"]


def test_nothing_beside_sessions_is_cleaned(tmp_path):
    """A directory that others share has the bit of a session that is being made."""
    put(tmp_path, f"logs/exp/run/a.{T1}.pt.trace.json")
    for shared in (tmp_path / "shared", tmp_path / "logs/exp/shared"):
        shared.mkdir()
        shared.chmod(0o1777)
    Repository(tmp_path / "logs").clean(nested=True)
    for shared in (tmp_path / "shared", tmp_path / "logs/exp/shared"):
        assert shared.stat().st_mode & 0o7777 == 0o1777
