"""The layout of a repository: names, and what is readable."""

import gzip
import os
import sys
import unicodedata

import fsspec
import pytest
from tests.each_row import each_row
from tests.repository.places import put as put_of_readable

from peakline.errors import InputError, NotFoundError, UsageError
from peakline.repository import (
    HostFile,
    Repository,
    Session,
    check_name,
    host_file_name,
    hosts,
    resolve,
    resolve_hosts,
)
from peakline.repository.names import host_of, is_name, newest_of_workers, recording_of

OLD, NEW = "2026_11_20_16_57_05", "2026_11_21_09_00_00"


def put(root, *names):
    for name in names:
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"x")
    return str(root)


def logdir(tmp_path, *files):
    return put(tmp_path, *(f"plugins/profile/{name}" for name in files))


def test_a_file_is_itself_whatever_its_name(tmp_path):
    put(tmp_path, "anything")
    assert resolve(str(tmp_path / "anything")) == str(tmp_path / "anything")


def test_a_log_directory_means_its_newest_session(tmp_path):
    path = logdir(tmp_path, f"{NEW}/vm.xplane.pb", f"{OLD}/vm.xplane.pb")
    assert resolve(path) == str(tmp_path / "plugins/profile" / NEW / "vm.xplane.pb")
    assert resolve(path, session=OLD) == str(tmp_path / "plugins/profile" / OLD / "vm.xplane.pb")


def test_plugins_profile_names_the_same_sessions(tmp_path):
    path = logdir(tmp_path, f"{OLD}/vm.xplane.pb.gz")
    assert Repository(path).sessions() == Repository(str(tmp_path / "plugins/profile")).sessions()
    assert resolve(str(tmp_path / "plugins/profile")) == resolve(path)


def test_a_session_directory_means_its_only_host(tmp_path):
    put(tmp_path, "s/vm.xplane.pb.gz")
    assert resolve(str(tmp_path / "s")) == str(tmp_path / "s/vm.xplane.pb.gz")
    assert resolve(str(tmp_path / "s"), session="s").endswith("vm.xplane.pb.gz")


def test_foreign_and_hidden_files_are_ignored(tmp_path):
    names = (".vm2.xplane.pb", "vm.hlo_proto.pb", "ALL_HOSTS.op_stats.pb", ".xplane.pb", "x.pb")
    put(tmp_path, "s/vm.xplane.pb", *(f"s/{name}" for name in names), "s/d.xplane.pb/inner")
    assert hosts(str(tmp_path / "s")) == [HostFile("vm", str(tmp_path / "s/vm.xplane.pb"))]


def test_the_plain_file_counts_before_the_compressed_one(tmp_path):
    put(tmp_path, "s/a.xplane.pb.gz", "s/a.xplane.pb", "s/b.xplane.pb.gz")
    assert [(host.host, host.path) for host in hosts(str(tmp_path / "s"))] == [
        ("a", str(tmp_path / "s/a.xplane.pb")),
        ("b", str(tmp_path / "s/b.xplane.pb.gz")),
    ]


def test_sessions_hold_a_profile_and_come_newest_first(tmp_path):
    path = logdir(
        tmp_path, f"{OLD}/a.xplane.pb", f"{NEW}/a.xplane.pb", "empty/readme", ".h/a.xplane.pb"
    )
    root = tmp_path / "plugins/profile"
    assert Repository(path).sessions() == [
        Session(NEW, NEW, str(root / NEW)),
        Session(OLD, OLD, str(root / OLD)),
    ]


def test_sessions_with_other_names_are_ordered_by_their_time(tmp_path):
    path = logdir(tmp_path, "zebra/a.xplane.pb", "ant/a.xplane.pb", f"{OLD}/a.xplane.pb")
    root = tmp_path / "plugins/profile"
    os.utime(root / "zebra", (1, 1))
    os.utime(root / "ant", (4_000_000_000, 4_000_000_000))
    assert [session.session_id for session in Repository(path).sessions()] == ["ant", OLD, "zebra"]


def test_several_hosts_need_a_choice_and_a_colon_is_an_underscore(tmp_path):
    path = logdir(tmp_path, f"{OLD}/localhost_1.xplane.pb", f"{OLD}/localhost_2.xplane.pb")
    with pytest.raises(UsageError, match=r"2 hosts.*--host: localhost_1, localhost_2"):
        resolve(path)
    for host in ("localhost_2", "localhost:2"):
        assert resolve(path, host=host).endswith("localhost_2.xplane.pb")


def test_an_unknown_host_or_session_lists_what_there_is(tmp_path):
    path = logdir(tmp_path, f"{OLD}/a.xplane.pb", f"{OLD}/b.xplane.pb")
    with pytest.raises(NotFoundError, match=r"no host 'c'; there is: a, b"):
        resolve(path, host="c")
    with pytest.raises(NotFoundError, match=rf"no session 'x'; there is: {OLD}"):
        resolve(path, session="x")


def test_a_long_list_is_cut(tmp_path):
    path = logdir(tmp_path, *(f"s/h{n:02}.xplane.pb" for n in range(25)))
    with pytest.raises(UsageError, match=r"h19 and 5 more$"):
        resolve(path)


def test_options_that_a_path_has_no_use_for(tmp_path):
    put(tmp_path, "s/vm.xplane.pb")
    file = str(tmp_path / "s/vm.xplane.pb")
    with pytest.raises(UsageError, match="is one file"):
        resolve(file, session="s")
    with pytest.raises(UsageError, match="is one file"):
        resolve(file, host="other")
    assert resolve(file, host="vm") == file
    with pytest.raises(UsageError, match="is a session"):
        resolve(str(tmp_path / "s"), session="t")


@each_row("name", ["", ".", "..", "../x", "a/../b", "/a", "a\\b", "a\0b"])
def test_names_that_could_leave_the_directory_are_refused(tmp_path, name):
    path = logdir(tmp_path, f"{OLD}/a.xplane.pb")
    with pytest.raises(UsageError, match="is no session"):
        resolve(path, session=name)
    with pytest.raises(UsageError, match="is no host"):
        resolve(path, host=name)


def test_a_nested_run_is_named_by_its_place(tmp_path):
    put(tmp_path, "train/plugins/profile/s/vm.xplane.pb")
    path = str(tmp_path / "train/plugins/profile/s/vm.xplane.pb")
    assert resolve(str(tmp_path), session="train/s") == path
    assert resolve(str(tmp_path)) == path
    with pytest.raises(NotFoundError, match=r"no session 'eval/s'; there is: train/s$"):
        resolve(str(tmp_path), session="eval/s")


def test_the_sessions_themselves_count_before_nested_runs(tmp_path):
    logdir(tmp_path, f"{OLD}/vm.xplane.pb")
    put(tmp_path, f"train/plugins/profile/{NEW}/vm.xplane.pb")
    assert resolve(str(tmp_path)).endswith(f"profile/{OLD}/vm.xplane.pb")


def test_runs_are_not_looked_for_in_installed_programs(tmp_path):
    session = f"plugins/profile/{NEW}/vm.xplane.pb"
    places = (
        "env/lib/demo", "conda/demo", "node_modules/x", "a/site-packages/y", "b/dist-packages/z",
        "__pycache__", ".git/runs", "web/.cache",
    )  # fmt: skip
    put(tmp_path, *(f"{place}/{session}" for place in places))
    put(tmp_path, "env/pyvenv.cfg", "conda/conda-meta/history")
    with pytest.raises(InputError, match="no sessions here"):
        resolve(str(tmp_path))
    put(tmp_path, f"env-1/plugins/profile/{OLD}/vm.xplane.pb")
    assert [run.name for run in Repository(str(tmp_path)).runs()] == [f"env-1/{OLD}"]
    # Who names such a directory means it.
    assert [run.name for run in Repository(str(tmp_path / "env")).runs()] == [f"lib/demo/{NEW}"]


def test_that_the_newest_was_chosen_is_told(tmp_path):
    result = []

    def newest(session, count):
        result.append((session.name, count))

    path = logdir(tmp_path, f"{OLD}/vm.xplane.pb")
    resolve_hosts(path, newest=newest)
    logdir(tmp_path, f"{NEW}/a.xplane.pb", f"{NEW}/b.xplane.pb")
    resolve_hosts(path, OLD, newest=newest)
    resolve_hosts(str(tmp_path / "plugins/profile" / NEW), newest=newest)
    assert result == []
    resolve_hosts(path, newest=newest)
    resolve_hosts(path, host="a", newest=newest)
    assert result == [(NEW, 2), (NEW, 2)]


def test_a_file_url_is_a_path(tmp_path):
    path = logdir(tmp_path, f"{OLD}/vm.xplane.pb")
    assert resolve(f"file://{path}") == resolve(path)


def test_no_such_path(tmp_path):
    with pytest.raises(NotFoundError, match=r"no such file or directory$"):
        resolve(str(tmp_path / "nothing"))
    with pytest.raises(NotFoundError, match="empty"):
        resolve("")


def test_a_link_to_nowhere(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(NotFoundError, match="the link points nowhere"):
        resolve(str(tmp_path / "link"))


def test_a_link_to_a_session_is_followed(tmp_path):
    put(tmp_path, "real/vm.xplane.pb")
    (tmp_path / "plugins/profile").mkdir(parents=True)
    (tmp_path / "plugins/profile/s").symlink_to(tmp_path / "real")
    assert [session.session_id for session in Repository(str(tmp_path)).sessions()] == ["s"]


def test_a_directory_without_sessions(tmp_path):
    put(tmp_path, "notes.txt", "deep/deeper/vm.xplane.pb")
    with pytest.raises(InputError, match="no sessions here"):
        resolve(str(tmp_path))


def test_paths_that_cannot_be_read(tmp_path):
    put(tmp_path, "file")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("file/inside", "pipe", "loop", "n" * 300, "zero\0byte"):
        with pytest.raises(InputError) as caught:
            resolve(str(tmp_path / name))
        assert "\n" not in str(caught.value)


LIGHTNING = "fit-lightning-[Strategy]SingleDeviceStrategy.training_step"


@each_row(
    "name", ["s", "2026_11_20_17_02_06", "a b", "worker-0.example.com", "Ω雪", "a:1", "x" * 200]
)
def test_a_name_passes_as_it_is(name):
    assert check_name("host", name) == name


@each_row(
    "name",
    [
        "", ".", "..", ".hidden", "-rf", "\u202e", "a\u200bb", "\ufeffa", "\u2066a", "a/b", "/",
        "a\\b", "a\0", "a\nb", "\x1b[0m", "a\x7f", "a\x85b", "a\u2028b", "a\ud800b", "x" * 201,
        "雪" * 67,
    ],
)  # fmt: skip
def test_what_is_no_name_is_one_short_line(name):
    with pytest.raises(UsageError, match="is no session id: ") as caught:
        check_name("session id", name)
    message = str(caught.value)
    message.encode()
    assert message.isprintable()
    assert len(message) < 160


def test_every_invisible_character_is_refused():
    for code in range(sys.maxunicode + 1):
        one = chr(code)
        if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
            assert not is_name(f"a{one}"), hex(code)
    assert is_name("a\u00e9\u0301 \u4e2d\U0001f600")


def test_a_colon_is_an_underscore_in_a_file():
    assert host_file_name("localhost:9012") == "localhost_9012"


@each_row(
    ("file_name", "expected"),
    [
        ("vm.xplane.pb", ("vm", 0)),
        ("vm.xplane.pb.gz", ("vm", 1)),
        ("vm.profile", ("vm", 2)),
        ("a.b.c.xplane.pb", ("a.b.c", 0)),
        (".xplane.pb", None),
        (".vm.xplane.pb", None),
        ("xplane.pb", None),
        ("vm.xplane.pb.tmp", None),
        ("a\nb.xplane.pb", None),
        ("vm_1707.1795856066108631811.pt.trace.json", ("vm_1707", 3)),
        ("vm_1707.1795856066108631811.pt.trace.json.gz", ("vm_1707", 4)),
        ("a.b.17.pt.trace.json", ("a.b", 3)),
        (f"{LIGHTNING}.1795855858144846902.pt.trace.json", (LIGHTNING, 3)),
        ("step.pt.trace.json", ("step", 3)),
        ("17.pt.trace.json", ("17", 3)),
        ("a.\u0661.pt.trace.json", ("a.\u0661", 3)),
        ("-rank.17.pt.trace.json", None),
        (".17.pt.trace.json", None),
        ("a\nb.17.pt.trace.json", None),
        ("vm.trace.json.gz", None),
    ],
)
def test_which_files_are_hosts(file_name, expected):
    assert host_of(file_name) == expected


def test_which_files_are_recordings_of_pytorch():
    assert recording_of("a.17.pt.trace.json.gz") == "a.17"
    assert recording_of("step.pt.trace.json") == "step"
    for name in ("a.17.trace.json", "a.17.profile", "-a.17.pt.trace.json", ".pt.trace.json"):
        assert recording_of(name) is None


def test_the_newest_recording_of_each_worker():
    old, new = "1795856067518485289", "1795856067678188868"
    hosts = [(f"a.{new}", 1), (f"a.{old}", 2), ("b", 3), ("10.0.0.1", 4), ("10.0.0.2", 5)]
    assert newest_of_workers(hosts) == [hosts[0], *hosts[2:]]


OOM = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total \
capacity of 15.77 GiB of which 1.44 GiB is free. Of the allocated memory 13.20 GiB is allocated by \
PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated.\n"


@pytest.fixture(params=["local", "memory"])
def place(request, tmp_path):
    """A directory, and what puts a file into it."""
    if request.param == "local":
        logs = tmp_path / "logs"
        yield str(logs), lambda name, content: put_of_readable(logs, name, content=content)
        return
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield (
        "memory://bucket/logs",
        lambda name, content: system.pipe_file(f"/bucket/logs/{name}", content),
    )
    system.store.clear()


def put_others(put_there):
    """What can not be read."""
    put_there("config.json", b'{"lr": 0.1}')
    put_there("notes.txt", b"nothing of memory\n")
    put_there("weights.pb.zip", b"PK\x03\x04")
    put_there(".hidden.json", b'{"traceEvents": []}')
    put_there("README.md", OOM)
    put_there("empty.json", b"")
    put_there("cut.json.gz", b"\x1f\x8b")
    put_there("deeper/trace.json", b'{"traceEvents": []}')


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("trace.json", b'{"traceEvents": []}', "chrome_trace"),
        ("trace.json.gz", gzip.compress(b'{"traceEvents": []}', mtime=0), "chrome_trace"),
        ("snapshot.pickle", b"\x80\x04}q\x00.", "torch_snapshot"),
        ("train.log", b"step 1\n" * 100_000 + OOM, "log"),
        ("train.err.gz", gzip.compress(b"step 1\n" * 100_000 + OOM, mtime=0), "log"),
        # Nobody can be called so, but the file can be read.
        ("-rank.17.pt.trace.json", b'{"traceEvents": []}', "chrome_trace"),
    ],
)
def test_the_only_file_that_can_be_read_is_taken(place, name, content, form):
    path, put_there = place
    put_others(put_there)
    put_there(name, content)
    noted = []
    assert resolve_hosts(path, only=noted.append) == resolve(path) == f"{path}/{name}"
    assert [str(one) for one in noted] == [f"{name} ({form})"]
    with pytest.raises(InputError, match="no sessions here"):
        resolve(path, host="a")
    with pytest.raises(InputError, match="no sessions here"):
        resolve(path, session="a")


def test_of_several_one_has_to_be_named(place):
    path, put_there = place
    put_others(put_there)
    put_there("b.json", b'{"traceEvents": []}')
    put_there("a.pickle", b"\x80\x04}q\x00.")
    with pytest.raises(
        UsageError,
        match=r"logs: no session here, but 2 files that can be read: a\.pickle \(torch_snapshot\), "
        r"b\.json \(chrome_trace\); name one, such as \S+/logs/a\.pickle$",
    ):
        resolve(path)


def test_none_that_can_be_read(place):
    path, put_there = place
    put_others(put_there)
    with pytest.raises(InputError, match="no sessions here; expected HOST"):
        resolve(path)


def test_a_session_counts_before_other_files(place):
    path, put_there = place
    put_there("trace.json", b'{"traceEvents": []}')
    put_there("plugins/profile/s/vm.xplane.pb", b"")
    assert resolve(path).endswith("s/vm.xplane.pb")


def test_what_is_no_regular_file_holds_nobody_up(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no sessions here"):
        resolve(str(tmp_path))


def test_only_so_many_files_are_looked_at(tmp_path):
    put_of_readable(tmp_path, *(f"{number:03}.json" for number in range(64)), content=b"{}")
    put_of_readable(tmp_path, "zz.json", content=b'{"traceEvents": []}')
    with pytest.raises(InputError, match="no sessions here"):
        resolve(str(tmp_path))


def test_a_bomb_does_not_go_off(tmp_path, monkeypatch):
    monkeypatch.setattr("peakline.repository.readable._LOG_BYTES", 1 << 20)
    put_of_readable(tmp_path, "a.log.gz", content=gzip.compress(b"step\n" * (2 << 20) + OOM))
    with pytest.raises(InputError, match="no sessions here"):
        resolve(str(tmp_path))
