"""``peakline sessions``, and directories in place of files."""

import json
import os
import shutil
from datetime import UTC, datetime

import pytest
from tests.engine.ending import DATA
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


def test_every_verb_answers_for_several_hosts_or_names_them(peakline, sessions):
    place = sessions / "tf2_multihost"
    names = "localhost_47507, localhost_56665\n"
    for words, choose in (
        (("trace", place), "choose one with --host"),
        (("graph", place), "choose one with --host"),
        (("export", place, "--list"), "choose one with --host"),
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
        assert (run.code, f"{place} (job of 2 ranks, xplane)" in run.out) == (0, True)
    run = peakline("sql", place, "select host from ranks")
    assert run.out.split() == ["host", *names.replace(",", "").split()]


def test_a_table_for_people(peakline, sessions):
    (result,) = json.loads(peakline("sessions", sessions / "tf2_cnn", "--json").out)
    run = peakline("sessions", sessions / "tf2_cnn")
    assert run.code == 0
    head, row = run.out.splitlines()
    assert head.split() == ["SESSION", "HOSTS", "SIZE", "MODIFIED", "TOOLS"]
    assert row.split() == [
        "2026_11_20_16_57_05",
        "vm",
        *size_text(result["bytes"]).split(),
        result["modified"],
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
    first, second = run.err.splitlines()
    assert first == "peakline: warning: left out: loop\\n: Too many levels of symbolic links"
    assert second.startswith(f"peakline: warning: left out: {tmp_path}/{PLUGIN}/s/vm.xplane.pb: ")
    run = peakline("sessions", tmp_path, "--strict", *json_flag)
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)


def test_a_file_is_no_log_directory(peakline, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("{}")
    run = peakline("sessions", path)
    says = f"peakline: {path}: a file, no log directory; peakline summary reads it\n"
    assert (run.code, run.err) == (3, says)


T1, T2, T3 = "1795856066108631811", "1795856067103235100", "1795856067518485289"


@pytest.fixture
def record(tmp_path):
    """Puts a recording of PyTorch, called as its handler calls it, into the directory."""

    def put_there(*names):
        for name in names:
            place = tmp_path / "logs" / f"{name}.pt.trace.json.gz"
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(DATA / "chrome_trace/noleak.pt.trace.json.gz", place)
        return str(tmp_path / "logs")

    return put_there


def test_a_directory_of_one_recording(peakline, record):
    logs = record(f"vm_7.{T1}")
    run = peakline("summary", logs)
    assert (run.code, run.err) == (0, "")
    assert f"vm_7.{T1}.pt.trace.json.gz (chrome_trace" in run.out
    (row,) = json.loads(peakline("sessions", logs, "--json").out)
    assert (row["session_id"], row["hosts"]) == ("logs", ["vm_7"])
    assert "summary" in row["tools"]
    assert peakline("diff", logs, logs).code == 0


def test_a_directory_of_runs(peakline, record, tmp_path):
    logs = record(f"run1/vm_7.{T1}", f"run2/vm_8.{T2}")
    os.utime(tmp_path / "logs/run1", (1, 1))
    run = peakline("summary", logs)
    assert run.err == f"peakline: {logs}: session run2, the newest of 2\n"
    assert f"run2/vm_8.{T2}" in run.out
    assert f"run1/vm_7.{T1}" in peakline("summary", logs, "--session", "run1").out
    assert peakline("diff", f"{logs}/run1", f"{logs}/run2").code == 0
    listed = json.loads(peakline("sessions", logs, "--json").out)
    assert [row["session_id"] for row in listed] == ["run2", "run1"]


def test_every_recording_of_a_worker_is_answered_for(peakline, record):
    logs = record(f"vm_7.{T1}", f"vm_7.{T2}")
    document = json.loads(peakline("summary", logs, "--json").out)
    assert len(document["hosts"]) == 2
    run = peakline("summary", logs)
    assert f"host vm_7.{T1}\n" in run.out
    assert f"host vm_7.{T2}\n" in run.out
    assert "keeps the others waiting" not in run.out
    assert "which one the others wait for" not in run.out
    assert f"vm_7.{T2}" in peakline("summary", logs, "--host", f"vm_7.{T2}").out
    run = peakline("memory", logs)
    assert run.code == 2
    assert f"2 hosts, choose one with --host: vm_7.{T1}, vm_7.{T2}" in run.err


def test_workers_are_compared(peakline, record):
    run = peakline("summary", record(f"rank0.{T1}", f"rank0.{T2}", f"rank1.{T3}"))
    assert "who waits for whom is not known" in run.out.splitlines()[0]
    (line,) = [line for line in run.out.splitlines() if line.strip().startswith("left out")]
    assert line.endswith(f" rank0.{T1} is an earlier recording of a worker")


def test_names_are_shown_in_one_line(peakline, tmp_path):
    put(tmp_path, "a\x1b[2J\n.json", "b.json", content=b'{"traceEvents": []}')
    run = peakline("summary", tmp_path)
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert "a\\x1b[2J\\n.json (chrome_trace)" in run.err
    (tmp_path / "b.json").unlink()
    run = peakline("sql", tmp_path, "select 1 as one")
    assert run.code == 0
    assert run.err.splitlines()[0].isprintable()
    assert "no session here; its only readable file is taken: a\\x1b[2J" in run.err


def test_sessions_without_a_host_in_common_are_compared_as_a_whole(peakline, record):
    logs = record(f"run1/vm_7.{T1}", f"run1/vm_8.{T1}", f"run2/vm_9.{T2}", f"run2/vm_10.{T2}")
    run = peakline("diff", f"{logs}/run1", f"{logs}/run2")
    assert run.code == 0
    assert "\nonly before: vm_7, vm_8\nonly after: vm_9, vm_10\n" in run.out
    assert (
        "\nno rank is in both jobs by its number or name: they are compared as a whole" in run.out
    )
    chosen = ("--host-before", "vm_8", "--host-after", "vm_10")
    assert peakline("diff", f"{logs}/run1", f"{logs}/run2", *chosen).code == 0
