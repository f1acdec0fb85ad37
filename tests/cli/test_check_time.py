"""`peakline check` of time: the figures are those of `steps`; what cannot be answered fails."""

import json

import pytest
from tests.cli.made import made, step
from tests.each_row import each_row


@pytest.fixture
def train(monkeypatch, tmp_path):
    """A profile of steps on a device, most of whose time goes to computing."""
    rows = [
        step(n, 100 * n, "gpu", compute=10 + n % 3, input_wait=2, compile=8 * (n == 0), idle=1)
        for n in range(8)
    ]
    return made(monkeypatch, tmp_path, step_breakdown=rows)


def checks_of(run):
    return {one["name"]: one for one in json.loads(run.out)["checks"]}


def test_the_figures_are_those_of_steps(peakline, train):
    steps = json.loads(peakline("steps", train, "--json").out)
    run = peakline(
        "check", train, "--max-step-time", "1s", "--max-p95-step-time", "1s", "--max-input-wait",
        "50%", "--max-compile", "50%", "--max-idle", "50%", "--json",
    )  # fmt: skip
    assert run.code == 0
    found = {name: check["measured"] for name, check in checks_of(run).items()}
    shares = {part["part"]: part["share"] for part in steps["parts"]}
    assert found == {
        "step time": steps["times"]["median_ps"],
        "p95 step time": steps["times"]["p95_ps"],
        "input wait": shares["input_wait"],
        "compile": shares["compile"],
        "idle": shares["idle"],
    }
    run = peakline("check", train, "--max-compile", "20ms", "--json")
    each = {part["part"]: part["per_step_ps"] for part in steps["parts"]}
    assert checks_of(run)["compile"]["measured"] == each["compile"]
    assert checks_of(run)["compile"]["measure"] == "ps"


def test_a_limit_that_fails_says_where_the_time_goes(peakline, train):
    run = peakline("check", train, "--max-step-time", "10ms", "--max-input-wait", "25%")
    assert run.code == 1
    assert (
        run.out
        == f"""\
1 of 2 limits failed
{train} (fake)

RESULT  LIMIT       OF      MEASURED  ALLOWED
fail    step time   steps  14.000 ms    10 ms
pass    input wait  steps      13.4%    25.0%

fail: steps: step time: the median step takes 14.000 ms, 10 ms allowed; most of it \
device compute, 73.1%
   PER STEP  SHARE
  10.875 ms  73.1%  device compute
   2.000 ms  13.4%  waiting for input
   1.000 ms   6.7%  compilation
   1.000 ms   6.7%  idle, cause unknown
"""
    )
    assert run.err == (
        f"peakline: {train}: step time: the median step takes 14.000 ms, 10 ms allowed; most of it "
        "device compute, 73.1%\n"
    )


@each_row(
    ("option", "limit"),
    [("max-step-time", "1s"), ("max-p95-step-time", "1s"), ("max-input-wait", "1"),
     ("max-compile", "1"), ("max-compile", "1s"), ("max-idle", "1")],
)  # fmt: skip
def test_without_steps_a_limit_fails_and_says_what_to_record(peakline, root, option, limit):
    heap = root / "tests" / "data" / "pprof" / "device_memory.pprof.pb.gz"
    run = peakline("check", heap, f"--{option}", limit)
    assert (run.code, run.err.count("\n")) == (1, 1)
    assert "cannot be measured: no time in this file: record the job with jax.profiler" in run.err


def test_a_profile_without_a_device_does_not_pass_as_not_idle(peakline, sessions):
    run = peakline("check", sessions / "jax_cpu", "--max-idle", "50%")
    assert run.code == 1
    assert "idle: cannot be measured: nothing of a device is in this profile; record on" in run.err


def test_the_summary_names_what_was_checked(peakline, train, tmp_path):
    page = tmp_path / "page.md"
    peakline("check", train, "--max-step-time", "1s", "--summary", page)
    assert page.read_text().startswith("### ✅ Time: 1 limit passed\n")


def test_the_library_has_the_same_limits(root):
    import peakline as library

    with library.open(root / "tests" / "data" / "sessions" / "jax_cpu") as profile:
        (one, other) = profile.check(max_step_ps=10**9, max_compile=0.5)
        assert (one.name, one.passed, other.name, other.passed) == (
            "step time", False, "compile", True,
        )  # fmt: skip
        assert one.measured == profile.time().times.median_ps
