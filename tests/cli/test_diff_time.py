"""``peakline diff``: the half about time, and Markdown."""

import json

import pytest
from tests.analysis.timing.traces import HOST_PLANE, profile_of
from tests.engine.ending import DATA

PAIR = [DATA / "programs/time" / f"recompiling{name}.xplane.pb.gz" for name in ("", "_healthy")]
EVIL = "x`|<b>@me\x1b[2J"


def test_the_screen(peakline):
    run = peakline("diff", *PAIR)
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[lines.index("time") :] == [
        "time",
        "  step time      220.504 ms -> 5.712 ms, -214.792 ms (-97.4%) (median)",
        "  shortest       6.850 ms -> 4.522 ms, -2.329 ms (-34.0%)",
        "  95 of 100      within 517.625 ms -> 7.225 ms, -510.400 ms (-98.6%)",
        "  mean           271.159 ms -> 5.753 ms, -265.406 ms (-97.9%)",
        "  between steps  0.058 ms -> 0.060 ms, +0.002 ms (+2.6%) (median)",
        "",
        "  where the mean step's time goes",
        "       CHANGE      BEFORE     AFTER",
        "  -245.837 ms  245.837 ms      0 ns  compilation",
        "   -18.167 ms   22.891 ms  4.723 ms  host compute",
        "    -0.848 ms    1.015 ms  0.167 ms  launching work",
        "    -0.553 ms    1.416 ms  0.862 ms  no event recorded",
        "",
        "  ops whose self time changed most, per step",
        "      CHANGE     BEFORE     AFTER  ON    OP",
        "  -13.550 ms  15.477 ms  1.927 ms  host  jit(train)/jvp()/dot_general",
        "   -3.659 ms   5.177 ms  1.519 ms  host  jit(train)/transpose(jvp())/dot_general",
        "   -0.444 ms   0.564 ms  0.120 ms  host  jit(train)/transpose(jvp())/select_n",
        "   -0.368 ms   0.919 ms  0.551 ms  host  jit(train)/transpose(jvp())/transpose",
        "",
        (
            "gone: warning: 10 of 10 steps after the first 2 compile train: 91% of their time; "
            "argument 1 changes: f32[424,128], f32[432,128], f32[440,128], ..."
        ),
    ]


def test_the_json(peakline):
    told = json.loads(peakline("diff", *PAIR, "--json").out)["time"]
    assert list(told) == [
        "before", "after", "chance", "is_chance", "parts", "ops_per", "ops", "other_ops",
        "findings", "notes",
    ]  # fmt: skip
    steps = json.loads(peakline("steps", PAIR[0], "--json").out)
    assert told["before"]["times"] == steps["times"]
    assert told["before"]["steps"] == len(steps["steps"]) == 12
    means = [told[side]["times"]["mean_ps"] for side in ("before", "after")]
    assert sum(part["delta_ps"] for part in told["parts"]) == means[1] - means[0]
    assert [finding["kind"] for finding in told["findings"]["gone"]] == ["recompilation"]
    # What op_stats tells of the two profiles: 185,722,160,000 and 23,118,401,000 ps in 12 steps.
    assert told["ops"][0] == {
        "side": "host", "op": "jit(train)/jvp()/dot_general", "op_type": "dot_general",
        "change": "time", "was": None, "before_ps": 15476846667, "after_ps": 1926533417,
        "delta_ps": -13550313250, "before_runs": 2.0, "after_runs": 2.0,
        "before_ops": 1, "after_ops": 1, "text": "",
    }  # fmt: skip


def test_an_allocator_that_is_named_is_about_memory_alone(peakline):
    pair = [DATA / "programs/time" / f"{name}.xplane.pb.gz" for name in ("eager_loop", "slow_step")]
    run = peakline("diff", *pair, "--json", "--allocator", "bfc_cpu_allocator_for_gpu")
    assert json.loads(run.out)["time"] is None


@pytest.fixture
def evil(monkeypatch, tmp_path):
    """Two profiles with a step each, the later with an op of a hostile name besides."""
    readers = {}
    for name, ops in (("before.pb", ()), ("after.pb", (f"{EVIL}:matmul",))):
        step = [("train 0", 0, 100, 0), *((op, 10, 90, 0) for op in ops)]
        made = profile_of({HOST_PLANE: {"main": step}}, [("train 0", 0, 100)])
        path = tmp_path / name
        path.write_bytes(b"x")
        readers[str(path)] = made._reader
        made._reader.path = str(path)
    monkeypatch.setattr("peakline.formats.open_reader", lambda path, **_: readers[path])
    return tuple(readers)


def test_markdown(peakline):
    out = peakline("diff", *PAIR, "--markdown").out
    assert out.startswith("### What changed\n\nBefore: `")
    lines = out.splitlines()
    assert "| step time (median) | 220.504 ms | 5.712 ms | -214.792 ms (-97.4%) |" in lines
    assert "- `before: no memory events in this profile`" in lines
    assert "| -245.837 ms | 245.837 ms | 0 ns | compilation |" in lines
    assert (
        "| -13.550 ms | 15.477 ms | 1.927 ms | host | `jit(train)/jvp()/dot_general` |  |" in lines
    )
    assert lines.count("<details>") == lines.count("</details>") == 7
    assert sum("of jit" in line and line.startswith("<summary>") for line in lines) == 4


def test_a_profile_and_itself_in_markdown(peakline):
    out = peakline("diff", PAIR[0], PAIR[0], "--markdown").out
    assert out.endswith("\n\nNothing changed.\n")


def test_hostile_names_are_shown_as_text(peakline, evil):
    assert "\x1b" not in peakline("diff", *evil).out
    out = peakline("diff", *evil, "--markdown").out
    assert "\x1b" not in out
    assert "<b>" not in out
    assert "@me" not in out
    (row,) = [line for line in out.splitlines() if "me" in line and line.startswith("| +")]
    assert row.count("|") == 7


def test_json_and_markdown_exclude_each_other(peakline):
    run = peakline("diff", *PAIR, "--json", "--markdown")
    assert (run.code, run.out) == (2, "")
    assert "--json or --markdown, not both" in run.err
