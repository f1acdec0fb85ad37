import json
import os
from datetime import UTC, datetime

import pytest
from tests.repository.places import put
from tests.tool_lists import JAX_TOOLS, XSPACE_TOOLS

from peakline.text import size_text

PLUGIN = "plugins/profile"


def test_every_session_and_run_newest_first(peakline, sessions):
    run = peakline("sessions", sessions, "--json")
    assert (run.code, run.err) == (0, "")
    rows = {row["session_id"]: row for row in json.loads(run.out)}
    assert list(rows)[-1] == "tf2_cnn/2026_11_20_16_57_05"
    place = sessions / "tf2_multihost" / PLUGIN / "2026_11_20_17_33_46"
    files = [each.stat() for each in place.iterdir()]
    newest = datetime.fromtimestamp(int(max(each.st_mtime for each in files)), UTC)
    assert rows["tf2_multihost/2026_11_20_17_33_46"] == {
        "session_id": "tf2_multihost/2026_11_20_17_33_46",
        "hosts": ["localhost_47507", "localhost_56665"],
        "tools": XSPACE_TOOLS,
        "bytes": sum(each.st_size for each in files),
        "modified": newest.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    assert rows["jax_cpu/2026_11_20_17_20_28"]["tools"] == JAX_TOOLS


def test_every_verb_says_which_session_of_several_it_takes(peakline, sessions, tmp_path):
    file = sessions / "tf2_cnn" / PLUGIN / "2026_11_20_16_57_05/vm.xplane.pb.gz"
    for name in ("2026_11_20_16_57_05", "2026_11_21_09_00_00"):
        put(tmp_path, f"{PLUGIN}/{name}/vm.xplane.pb.gz", content=file.read_bytes())
    note = f"peakline: {tmp_path}: session 2026_11_21_09_00_00, the newest of 2\n"
    for words in (
        ("memory", tmp_path),
        ("summary", tmp_path, "--json"),
        ("steps", tmp_path),
        ("ops", tmp_path),
        ("trace", tmp_path),
        ("graph", tmp_path),
        ("sql", tmp_path, "select 1"),
        ("export", tmp_path, "--list"),
        ("tool", "memory_profile", tmp_path),
        ("tool", "--list", tmp_path),
        ("report", tmp_path, "-o", tmp_path / "page.html"),
        ("check", tmp_path, "--max-peak", "1GB", "--baseline", file),
        ("check", file, "--baseline", tmp_path),
        ("diff", file, tmp_path),
    ):
        run = peakline(*words)
        assert (run.code, run.err) == (0, note), words
    run = peakline("memory", tmp_path, "--session", "2026_11_20_16_57_05")
    assert (run.code, run.err) == (0, "")


def test_every_verb_answers_for_several_hosts_or_names_them(peakline, sessions, tmp_path):
    place = sessions / "tf2_multihost"
    names = "localhost_47507, localhost_56665\n"
    for words, choose in (
        (("memory", place), "choose one with --host"),
        (("trace", place), "choose one with --host"),
        (("graph", place), "choose one with --host"),
        (("sql", place, "select 1"), "choose one with --host"),
        (("export", place, "--list"), "choose one with --host"),
        (("report", place, "-o", tmp_path / "x.html"), "choose one with --host"),
        (("check", place, "--max-peak", "1GB"), "choose one with --host"),
        (("tool", "trace_viewer", place), "choose one with --host"),
        (("diff", place, sessions / "tf2_cnn"), "choose one with --host-before"),
        (("diff", sessions / "tf2_cnn", place), "choose one with --host-after"),
        (("check", sessions / "tf2_cnn", "--baseline", place), "name the file of one"),
    ):
        run = peakline(*words)
        assert run.code == 2, words
        assert run.err.endswith(f": 2 hosts, {choose}: {names}"), words
    for verb in ("summary", "steps", "ops"):
        run = peakline(verb, place)
        assert run.code == 0
        assert [f"host {name}\n" in run.out for name in names.strip().split(", ")] == [True, True]


def test_a_table_for_people(peakline, sessions):
    (told,) = json.loads(peakline("sessions", sessions / "tf2_cnn", "--json").out)
    run = peakline("sessions", sessions / "tf2_cnn")
    assert run.code == 0
    head, row = run.out.splitlines()
    assert head.split() == ["SESSION", "HOSTS", "SIZE", "MODIFIED", "TOOLS"]
    assert row.split() == [
        "2026_11_20_16_57_05",
        "vm",
        *size_text(told["bytes"]).split(),
        told["modified"],
        *", ".join(XSPACE_TOOLS[:3]).split(),
        *f"and {len(XSPACE_TOOLS) - 3} more".split(),
    ]


def test_many_hosts_are_cut_in_the_table_only(peakline, tmp_path):
    hosts = [f"h{number}" for number in range(6)]
    put(tmp_path, *(f"{PLUGIN}/s/{host}.xplane.pb" for host in hosts))
    assert "h0, h1, h2 and 3 more" in peakline("sessions", tmp_path).out
    (row,) = json.loads(peakline("sessions", tmp_path, "--json").out)
    assert (row["session_id"], row["hosts"], row["tools"]) == ("s", hosts, [])
    assert row["bytes"] == 6


def test_the_newest_profile_tells_the_time_and_other_files_nothing(peakline, tmp_path):
    put(tmp_path, f"{PLUGIN}/s/a.xplane.pb", f"{PLUGIN}/s/b.xplane.pb", f"{PLUGIN}/s/notes.txt")
    place = tmp_path / PLUGIN / "s"
    for name, moment in (("a.xplane.pb", 10.75), ("b.xplane.pb", 5), ("notes.txt", 99)):
        os.utime(place / name, (moment, moment))
    (place / "gone.xplane.pb").symlink_to(place / "nothing")
    (row,) = json.loads(peakline("sessions", tmp_path, "--json").out)
    assert (row["bytes"], row["modified"]) == (2, "1970-01-01T00:00:10Z")


def test_a_directory_without_sessions(peakline, tmp_path):
    run = peakline("sessions", tmp_path)
    assert (run.code, run.out) == (0, f"{tmp_path}: no sessions here\n")
    assert peakline("sessions", tmp_path, "--json").out == "[]\n"


def test_what_is_no_log_directory(peakline, sessions, tmp_path):
    run = peakline("sessions", tmp_path / "nothing")
    assert (run.code, run.err) == (3, f"peakline: {tmp_path}/nothing: no such directory\n")
    (place,) = (sessions / "tf2_cnn" / PLUGIN).iterdir()
    run = peakline("sessions", place)
    assert (run.code, run.out) == (2, "")
    assert "is a session; its log directory is needed" in run.err
    run = peakline("sessions", next(place.iterdir()))
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)


@pytest.mark.parametrize("json_flag", [(), ("--json",)])
def test_what_is_left_out_is_told(peakline, tmp_path, json_flag):
    put(tmp_path, f"{PLUGIN}/s/vm.xplane.pb")
    (tmp_path / PLUGIN / "loop\n").symlink_to(tmp_path / PLUGIN / "loop\n")
    run = peakline("sessions", tmp_path, *json_flag)
    assert run.code == 0
    assert run.err == ("peakline: warning: left out: loop\\n: Too many levels of symbolic links\n")
    run = peakline("sessions", tmp_path, "--strict", *json_flag)
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)


def test_a_file_is_no_log_directory(peakline, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("{}")
    run = peakline("sessions", path)
    says = f"peakline: {path}: a file, no log directory; peakline summary reads it\n"
    assert (run.code, run.err) == (3, says)
