"""``peakline steps`` on tables made by hand: the screen line by line, and the document."""

import json
import os

import pytest
from tests.cli.made import MS, made, step
from tests.each_row import each_row
from tests.engine.ending import DATA, session_of
from tests.tools.test_step_breakdown import S2026, job

from peakline.document.hosts import straggler_text
from peakline.timing.steps.variation import Straggler

GPU = "/device:GPU:0"
TWO = [
    step(0, 0, device=GPU, compute=60, host_to_device=40),
    step(1, 110, device=GPU, gap_ms=10, compute=80, host_to_device=40),
]
BUSY = {
    "plane_id": 0, "device": GPU, "start_ps": 0, "end_ps": 250 * MS, "busy_ps": 220 * MS,
    "idle_ps": 30 * MS, "compute_ps": 140 * MS, "communication_ps": 0, "copy_ps": 80 * MS,
    "longest_idle_ps": 10 * MS,
}  # fmt: skip


@pytest.fixture(name="path")
def _path(monkeypatch, tmp_path):
    return made(monkeypatch, tmp_path, step_breakdown=TWO, device_time=[BUSY])


def test_the_screen(peakline, path):
    run = peakline("steps", path)
    assert (run.code, run.err) == (0, "")
    assert run.out == (
        f"""\
median step 110.000 ms: 64% device compute, 36% copies to the device
{path} (fake, host worker-0, 1.234 ns)

2 steps on 1 device, train 0 to train 1
  step time      110.000 ms (median)
  from ... to    100.000 ms ... 120.000 ms
  mean           110.000 ms ± 10.000 ms
  between steps  10.000 ms (median), 10.000 ms (mean)

  where it goes
                             MEAN  SHARE
  device compute        70.000 ms  63.6%  ███████████████████
  copies to the device  40.000 ms  36.4%  ███████████

  DEVICE          BUSY     COMPUTE     COPIES  LONGEST IDLE
  /device:GPU:0  88.0%  140.000 ms  80.000 ms     10.000 ms

  the steps
  STEP             AT        TIME  DEVICE COMPUTE  COPIES TO THE DEVICE
  train 0        0 ns  100.000 ms       60.000 ms             40.000 ms
  train 1  110.000 ms  120.000 ms       80.000 ms             40.000 ms

warning: 36% of the step time goes to copies, most of it to copies to the device
  Copy the next batch while the device computes on this one (prefetch_to_device, pinned memory, """
        """non_blocking=True), or send it in a smaller type and convert it on the device.
  STEP     DEVICE               TIME  COPIES TO THE DEVICE
  train 0  /device:GPU:0  100.000 ms             40.000 ms
  train 1  /device:GPU:0  120.000 ms             40.000 ms
"""
    )


def test_the_json(peakline, path):
    run = peakline("steps", path, "--json")
    assert (run.code, run.err) == (0, "")
    told = json.loads(run.out)
    assert list(told) == [
        "profile", "times", "times_by_name", "found_by", "parts", "devices",
        "utilisation", "to_record",
        "times_by_device", "steps", "findings", "warnings",
    ]  # fmt: skip
    assert told["profile"] == {
        "path": str(path),
        "format": "fake",
        "host": "worker-0",
        "duration_ps": 1234,
    }
    assert told["times"]["median_ps"] == 110 * MS
    assert told["parts"][1] == {
        "part": "host_to_device",
        "per_step_ps": 40 * MS,
        "share": 80 / 220,
    }
    assert told["devices"] == [BUSY]
    assert [row["is_slow"] for row in told["steps"]] == [False, False]
    assert (told["steps"][1]["step_id"], told["steps"][1]["gap_before_ps"]) == (1, 10 * MS)
    assert [finding["kind"] for finding in told["findings"]] == ["time_in_copies"]


def test_many_steps_are_cut_to_the_longest(monkeypatch, peakline, tmp_path):
    rows = [
        step(n, 200 * n, host_compute=100 if n in {7, 31} else 10 + (n in range(8, 16)))
        for n in range(40)
    ]
    out = peakline("steps", made(monkeypatch, tmp_path, step_breakdown=rows)).out
    assert "  the 10 longest of 40 steps (all with --json)\n" in out
    shown = [line.split()[1] for line in out.splitlines() if line.startswith("  train")]
    assert shown[:10] == ["7", "31", "8", "9", "10", "11", "12", "13", "14", "15"]
    marked = [line.split()[1] for line in out.splitlines() if line.endswith("  10.0 x median")]
    assert marked == ["7", "31"]


def test_a_profile_without_steps(monkeypatch, peakline, tmp_path):
    path = made(monkeypatch, tmp_path, device_time=[BUSY])
    run = peakline("steps", path)
    assert (run.code, run.err) == (0, "")
    assert "\nnothing in this profile says what a step is: mark them with jax.profiler." in run.out
    assert "  /device:GPU:0  88.0%" in run.out
    told = json.loads(peakline("steps", path, "--json").out)
    assert (told["times"], told["steps"]) == (None, [])
    assert [warning["kind"] for warning in told["warnings"]] == ["no_steps"]


def test_hostile_names_are_shown_as_text(monkeypatch, peakline, tmp_path):
    rows = [step(0, 0, device="\x1b[2J[red]", name="a\nb\x07", compute=9, idle=9)]
    out = peakline("steps", made(monkeypatch, tmp_path, step_breakdown=rows)).out
    assert "\\x1b[2J[red]" in out
    assert "a\\nb\\x07" in out
    assert "\x1b" not in out


def test_a_recorded_session(peakline, sessions):
    (path,) = sessions.glob("tf2_cnn/plugins/profile/*/*.xplane.pb*")
    run = peakline("steps", path)
    assert (run.code, run.err) == (0, "")
    assert "\n16 steps, train 0 to train 15\n  step time      11.740 ms (median)\n" in run.out
    assert "warning" not in run.out


TPUS = [
    step(n, at, device=f"/device:TPU:{core}", name=str(n), compute=60, host_to_device=length)
    for core, lengths in enumerate([(1, 40, 40), (40, 40)])
    for n, (at, length) in enumerate(zip((0, 100, 200)[-len(lengths) :], lengths, strict=True))
]


def test_devices_that_count_apart_are_shown_apart(monkeypatch, peakline, tmp_path):
    path = made(monkeypatch, tmp_path, step_breakdown=TPUS)
    out = peakline("steps", path).out
    assert "\n5 steps on 2 devices, which count them apart\n" in out
    assert "  /device:TPU:0      3  100.000 ms   87.000 ms   61.000 ms  100.000 ms\n" in out
    assert "  /device:TPU:1      2  100.000 ms  100.000 ms  100.000 ms  100.000 ms\n" in out
    shown = [line.split()[:4] for line in out.splitlines() if line.startswith(("  0  ", "  1  "))]
    assert [row[2] for row in shown[:4]] == ["0", "100.000", "100.000", "200.000"]
    told = json.loads(peakline("steps", path, "--json").out)
    assert told["times"]["count"] == 5
    assert sum(part["per_step_ps"] for part in told["parts"]) == told["times"]["mean_ps"]
    assert [times["count"] for times in told["times_by_device"]] == [3, 2]


def test_devices_that_run_side_by_side_have_common_steps(monkeypatch, peakline, tmp_path):
    rows = [
        step(n, 100 * n, device=f"/device:GPU:{core}", compute=90 + core)
        for core in range(2)
        for n in range(3)
    ]
    out = peakline("steps", made(monkeypatch, tmp_path, step_breakdown=rows)).out
    assert "\n3 steps on 2 devices, train 0 to train 2\n  step time    90.500 ms (median)\n" in out
    assert "  train 0  /device:GPU:1        0 ns  91.000 ms" in out


def test_a_single_step_has_no_median(monkeypatch, peakline, tmp_path):
    out = peakline("steps", made(monkeypatch, tmp_path, step_breakdown=[step(0, 0, launch=9)])).out
    assert "\n  step time  9.000 ms\n" in out
    assert "                      TIME   SHARE\n  launching work  9.000 ms  100.0%" in out


def test_a_file_without_time_gives_no_advice_about_steps(peakline):
    out = peakline("steps", DATA / "pprof" / "device_memory.pprof.pb.gz").out
    assert out.endswith("\n\nno time in this file\n")


@each_row("width", [80, 120])
def test_a_terminal_is_kept_to(terminal, peakline, width):
    terminal(width)
    out = peakline("steps", DATA / "programs/time/input_bound.xplane.pb.gz").out
    assert max(len(line) for line in out.splitlines()) <= width
    assert "(xplane, host input_bound, 546.900 ms)\n" in out.replace("\n\n", "\n", 1)
    assert "OCCURRENCES        SELF" in out


def test_a_large_part_of_the_time_stays_longer_than_the_begin(
    terminal, peakline, monkeypatch, tmp_path
):
    parts = {"host_compute": 60, "input_wait": 30, "launch": 2}
    steps = [step(n, 500 * n, name=f"ProfilerStep#{n}", **parts) for n in range(5)]
    steps.append(step(5, 2500, name="ProfilerStep#5", **parts | {"input_wait": 300}))
    path = made(monkeypatch, tmp_path, step_breakdown=steps)
    terminal(80)
    [head] = [line for line in peakline("steps", path).out.splitlines() if "STEP " in line]
    assert head.split() == "STEP TIME WAITING FOR INPUT HOST COMPUTE".split()


MULTIHOST = DATA / "sessions" / "tf2_multihost"


@each_row("verb", ["steps", "summary"])
def test_every_host_of_a_session(peakline, verb):
    run = peakline(verb, MULTIHOST)
    assert (run.code, run.err) == (0, "")
    heads = [line for line in run.out.splitlines() if line.startswith("host localhost_")]
    assert heads == ["host localhost_47507", "host localhost_56665"]
    assert run.out.endswith("\n\nno host keeps the others waiting\n")
    told = json.loads(peakline(verb, MULTIHOST, "--json").out)
    assert list(told) == ["hosts", "findings", "straggler"]
    alone = json.loads(peakline(verb, MULTIHOST, "--host", "localhost_56665", "--json").out)
    assert told["hosts"][1] == alone


def test_a_host_that_cannot_be_read_is_one_line(peakline, tmp_path):
    one, other = sorted(MULTIHOST.glob("plugins/profile/*/*.xplane.pb"))
    session = session_of(tmp_path, {"a.xplane.pb": one, "b.xplane.pb": other})
    os.truncate(session.host("b").path, 7)
    run = peakline("steps", session.path)
    assert run.code == 0
    assert "\n36 steps, train 170 to train 205\n" in run.out
    (line,) = run.err.splitlines()
    assert line.startswith("peakline: warning: left out: ")
    assert peakline("steps", session.path, "--strict").code == 3


def test_the_host_that_the_others_wait_for_is_named(peakline, tmp_path):
    files = {"a.xplane.pb": job(S2026, 6), "b.xplane.pb": job(S2026, 1, 9)}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    session = session_of(tmp_path / "session", {name: tmp_path / name for name in files})
    out = peakline("steps", session.path).out
    assert "\nstraggler: the other hosts wait for b: 50% of the step time (5.000 ms in" in out
    told = json.loads(peakline("summary", session.path, "--json").out)
    assert (told["straggler"]["name"], told["straggler"]["often"]) == ("b", 1.0)


def test_the_line_about_the_host_that_the_others_wait_for():
    assert straggler_text(Straggler("b", "communication", 20, 5 * MS, 100 * MS, 0.25, 0.9), 2) == (
        "straggler: the other hosts wait for b: 25% of the step time (5.000 ms in the median "
        "step); it is in collectives for the shortest time in 90% of 20 common steps"
    )
    assert "is not known" in straggler_text(None, 1)
