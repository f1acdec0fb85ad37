"""Directories as PyTorch users have them, by the verbs: recordings, and files without a session."""

import json
import os
import shutil

import pytest
from tests.engine.ending import DATA
from tests.repository.places import put

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
    # Both are equal: a straggler would be one of two cycles, which do not wait for each other.
    assert document["straggler"] is None
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
    assert run.out.rstrip().endswith("no host keeps the others waiting")


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


def test_sessions_without_a_host_in_common_say_their_hosts(peakline, record):
    logs = record(f"run1/vm_7.{T1}", f"run1/vm_8.{T1}", f"run2/vm_9.{T2}", f"run2/vm_10.{T2}")
    run = peakline("diff", f"{logs}/run1", f"{logs}/run2")
    assert (run.code, run.out) == (2, "")
    assert run.err == (
        "peakline: the sessions have no host in common: choose with --host-before (vm_7, vm_8) and "
        "--host-after (vm_10, vm_9), or record with the same worker_name= in each run (PyTorch)\n"
    )
    chosen = ("--host-before", "vm_8", "--host-after", "vm_10")
    assert peakline("diff", f"{logs}/run1", f"{logs}/run2", *chosen).code == 0
