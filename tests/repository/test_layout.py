import os

import pytest
from tests.each_row import each_row

from peakline.errors import InputError, NotFoundError, UsageError
from peakline.repository import (
    HostFile,
    Repository,
    Session,
    hosts,
    resolve,
    resolve_hosts,
)

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
    told = []

    def newest(session, count):
        told.append((session.name, count))

    path = logdir(tmp_path, f"{OLD}/vm.xplane.pb")
    resolve_hosts(path, newest=newest)
    logdir(tmp_path, f"{NEW}/a.xplane.pb", f"{NEW}/b.xplane.pb")
    resolve_hosts(path, OLD, newest=newest)
    resolve_hosts(str(tmp_path / "plugins/profile" / NEW), newest=newest)
    assert told == []
    resolve_hosts(path, newest=newest)
    resolve_hosts(path, host="a", newest=newest)
    assert told == [(NEW, 2), (NEW, 2)]


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
