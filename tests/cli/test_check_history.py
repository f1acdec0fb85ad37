"""A baseline of several runs: how it grows, what it refuses, and that it is whole at any moment."""

import json
import random
import signal
import subprocess
import sys
import threading

import pytest
from tests.cli.made import made, step
from tests.each_row import each_row
from tests.memory.records import alloc

from peakline.check.allowance import MOST_RUNS
from peakline.check.history import read_history


@pytest.fixture
def run_of(monkeypatch, tmp_path):
    """A profile whose steps take so many ms, a twentieth of that waiting for input."""

    def make(ms):
        rows = [step(n, 1000 * n, "gpu", compute=ms, idle=1) for n in range(3)]
        return made(monkeypatch, tmp_path, step_breakdown=rows)

    return make


@pytest.fixture
def figures(tmp_path):
    return tmp_path / "figures.json"


def test_the_first_run_makes_the_file(peakline, run_of, figures):
    missing = peakline("check", run_of(100), "--baseline", figures)
    assert (missing.code, missing.err.count("\n")) == (3, 1)
    assert "no such file or directory; --update-baseline creates the file" in missing.err
    run = peakline("check", run_of(100), "--baseline", figures, "--update-baseline")
    assert (run.code, run.err) == (
        0,
        f"peakline: {figures}: this run was added, it holds 1 run; noise is learned from 5 on\n",
    )
    assert peakline("check", run_of(120), "--baseline", figures).code == 0
    assert peakline("check", run_of(130), "--baseline", figures).code == 1


def test_noise_is_learned_and_shown(peakline, run_of, figures):
    for ms in (118, 121, 119, 122, 120, 117, 123, 120):
        assert peakline("check", run_of(ms), "--baseline", figures, "--update-baseline").code == 0
    run = peakline("check", run_of(124), "--baseline", figures)
    assert run.code == 0
    row = next(line for line in run.out.splitlines() if "step time" in line)
    assert row == ("pass    step time   steps  125.000 ms  129.547 ms  121.000 ms ± 2.000 ms")
    run = peakline("check", run_of(133), "--baseline", figures)
    assert run.err == (
        f"peakline: {run_of(133)}: step time against the baseline: step time 134.000 ms, baseline "
        "121.000 ms ± 2.000 ms (8 runs), 129.547 ms allowed; device compute takes 13.000 ms more "
        "in the mean step\n"
    )


def test_a_run_that_fails_is_not_added_but_may_be_accepted(peakline, run_of, figures):
    peakline("check", run_of(100), "--baseline", figures, "--update-baseline")
    before = figures.read_bytes()
    run = peakline("check", run_of(200), "--baseline", figures, "--update-baseline")
    assert (run.code, figures.read_bytes()) == (1, before)
    assert "is as it was, for a limit failed; --reset-baseline accepts this run" in run.err
    assert peakline("check", run_of(200), "--baseline", figures, "--reset-baseline").code == 0
    assert peakline("check", run_of(200), "--baseline", figures).code == 0
    assert len(read_history(figures.read_bytes(), "").runs) == 1


def test_only_the_latest_runs_are_held(peakline, run_of, figures):
    for _ in range(MOST_RUNS + 2):
        peakline("check", run_of(100), "--baseline", figures, "--update-baseline")
    assert len(read_history(figures.read_bytes(), "").runs) == MOST_RUNS
    assert figures.stat().st_size < 30_000


def test_several_baselines_are_the_runs_of_all(peakline, run_of, tmp_path):
    words = []
    for ms in (118, 120, 122, 119, 121):
        place = tmp_path / f"{ms}.json"
        place.write_text(peakline("check", run_of(ms), "--max-idle", "1", "--json").out)
        words += ["--baseline", place]
    assert "BASELINE OF 5 RUNS" in peakline("check", run_of(120), *words).out
    run = peakline("check", run_of(120), *words, "--update-baseline")
    assert (run.code, "needs one --baseline, the file to write" in run.err) == (2, True)


@each_row(
    ("content", "message"),
    [
        (b"\x0a\x04plane", "is no file of figures, and is not replaced"),
        (b'{"other": 1}', "is no file of figures, and is not replaced"),
        (
            b'{"profile": {}, "allocators": [], "runs": [[{"name": 3}]]}',
            "has no name, of and value",
        ),
        (b'{"profile": {}, "allocators": [], "runs": 3}', "runs is no list"),
        (b'{"profile": {}, "allocators": [], "time": {"step_time_ps": -1}}', "no positive number"),
    ],
)
def test_what_is_no_baseline_stays_as_it_is(peakline, run_of, figures, content, message):
    figures.write_bytes(content)
    run = peakline("check", run_of(100), "--baseline", figures, "--update-baseline")
    assert (run.code in {2, 3}, run.out, run.err.count("\n")) == (True, "", 1)
    assert message in run.err
    assert figures.read_bytes() == content


@each_row(
    ("options", "message"),
    [
        (("--update-baseline",), "no limit is given"),
        (("--max-peak", "1", "--update-baseline"), "--update-baseline needs one --baseline"),
        (("--baseline", ".", "--reset-baseline"), "--reset-baseline writes a file; '.' is none"),
        (("--baseline", "a", "--update-baseline", "--reset-baseline"), "exclude each other"),
    ],
)
def test_usage_errors(peakline, run_of, options, message):
    run = peakline("check", run_of(1), *options)
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert message in run.err


def test_memory_that_never_varies_is_held_tightly(peakline, opened, figures):
    def path(size):
        return opened([alloc(1, size, op="p", allocator="gpu", in_use_bytes=size)])

    for _ in range(5):
        peakline("check", path(100 << 20), "--baseline", figures, "--update-baseline")
    assert peakline("check", path(100 << 20), "--baseline", figures).code == 0
    run = peakline("check", path(102 << 20), "--baseline", figures)
    assert "100.0 MiB ± 0 B (5 runs) in the baseline (+2.0%), 101.0 MiB allowed" in run.err


UPDATES = """
import sys
from peakline.check.history import Baseline, baseline_document, baseline_text
from peakline.compare.state import MemoryState
from peakline.check.time import TimeState
from peakline.render.ci.files import write_text
number = 0
while True:
    number += 1
    run = {("step time", ""): float(number), ("sum", ""): 2.0 * number}
    held = Baseline(MemoryState(()), TimeState(1, number), (run,) * 20)
    write_text(sys.argv[1], baseline_text(baseline_document(held, {})))
    print(number, flush=True)
"""


@pytest.mark.parametrize("times", [2, pytest.param(8, marks=pytest.mark.nightly)])
def test_a_baseline_is_whole_whenever_its_writer_is_killed(figures, times):
    draw, last = random.Random(3), 0
    for _ in range(times):
        process = subprocess.Popen(
            [sys.executable, "-c", UPDATES, str(figures)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(1 + draw.randrange(20)):
            last = int(process.stdout.readline())
        # At any place of an update, or between two.
        threading.Event().wait(draw.random() * 0.004)
        process.send_signal(signal.SIGKILL)
        written = process.stdout.read().split()
        process.wait()
        process.stdout.close()
        last = int(written[-1]) if written else last
        runs = [run["step time", ""] for run in read_history(figures.read_bytes(), "figures").runs]
        assert runs[0] in {last, last + 1}, "neither the old nor the new"
        assert runs == [runs[0]] * 20
        assert json.loads(figures.read_bytes())["time"]["step_time_ps"] == runs[0]
    assert list(figures.parent.glob("*.json")) == [figures]


def trace(folder, name, steps, ops):
    """A trace of PyTorch: steps that take so many us, in which ops by name take theirs."""
    events, at = [], 0
    for number, length in enumerate(steps):
        events.append(_event(f"ProfilerStep#{number}", "user_annotation", at, length))
        start = at + 1
        for op, share in ops.items():
            events.append(_event(op, "cpu_op", start, int(share * (length - 2))))
            start += int(share * (length - 2))
        at += length + 5
    path = folder / f"{name}.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def _event(name, category, start, length):
    return {"ph": "X", "name": name, "cat": category, "pid": 1, "tid": 1, "ts": start,
            "dur": length, "args": {}}  # fmt: skip


def noisy(seed, middle, count=12):
    """Steps of a shared machine: a tenth of noise, and now and then a slow one."""
    rng = random.Random(seed)
    return [int(middle * rng.lognormvariate(0, 0.1)) + (rng.random() < 0.1) * middle
            for _ in range(count)]  # fmt: skip


def test_a_tolerance_does_not_make_noise_a_failure(peakline, tmp_path):
    """The healthy twins of a noisy run pass a tolerance of 1 %; a step half as long again fails."""
    ops = {"aten::mm": 0.6, "aten::relu": 0.3}
    failed, slow = [], 0
    for seed in range(20):
        before, after = (trace(tmp_path, f"{seed}{side}", noisy(2 * seed + n, 10_000), ops)
                         for n, side in enumerate("ab"))  # fmt: skip
        options = ("--baseline", before, "--tolerance", "1%")
        failed += [seed] if peakline("check", after, *options).code else []
        worse = trace(tmp_path, f"{seed}c", noisy(2 * seed + 1, 15_000), ops)
        slow += peakline("check", worse, *options).code
    assert len(failed) <= 1
    assert slow >= 19


def test_a_share_needs_room_in_points(peakline, monkeypatch, tmp_path):
    def run_of(name, wait):
        rows = [step(n, 1000 * n, "gpu", compute=1000 - wait, input_wait=wait) for n in range(3)]
        folder = tmp_path / name
        folder.mkdir()
        return made(monkeypatch, folder, step_breakdown=rows)

    baseline = run_of("before", 4)
    peakline("check", baseline, "--baseline", tmp_path / "b.json", "--update-baseline")
    for wait, code in ((9, 0), (23, 0), (60, 1)):
        after = run_of(f"after{wait}", wait)
        run = peakline("check", after, "--baseline", tmp_path / "b.json", "--tolerance", "5%")
        assert (wait, run.code) == (wait, code)


@pytest.mark.parametrize("form", ["profile", "file"])
def test_the_op_that_grew_is_named(peakline, tmp_path, form):
    before = trace(tmp_path, "a", [10_000] * 8, {"aten::mm": 0.5, "aten::relu": 0.3})
    after = trace(tmp_path, "b", [15_000] * 8, {"aten::mm": 1 / 3, "aten::relu": 0.2,
                                               "aten::sort": 0.4})  # fmt: skip
    baseline = before
    if form == "file":
        baseline = tmp_path / "b.json"
        peakline("check", before, "--baseline", baseline, "--update-baseline")
    run = peakline("check", after, "--baseline", baseline)
    assert run.code == 1
    assert "aten::sort takes 5.999 ms of a step, was not there" in run.err
    grown = trace(tmp_path, "c", [15_000] * 8, {"aten::mm": 2 / 3, "aten::relu": 0.2})
    run = peakline("check", grown, "--baseline", baseline)
    assert "aten::mm takes 9.998 ms of a step, took 4.999 ms" in run.err
