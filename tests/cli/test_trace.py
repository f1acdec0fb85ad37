import json

import pytest
from tests.cli.made import MS, path_of
from tests.each_row import each_row
from tests.tables.fake import FakeReader
from tests.timing.timelines import profile_of

from peakline.render.terminal.trace import span_text

EVENTS = [("step", 10**9, 4 * 10**9), ("op\n", 2 * 10**9, 10**9), ("k", 10**9, 5000)]


@pytest.fixture
def traced(monkeypatch, tmp_path):
    """A path that opens as a profile with these lines of ``(name, start, duration)``."""

    def make(*lines):
        return path_of(profile_of(*lines)._reader, monkeypatch, tmp_path)

    return make


@pytest.fixture
def made(monkeypatch, tmp_path):
    """A path that opens as a profile whose one line has these steps ``(id, name, start, length)``,
    in milliseconds.
    """

    def make(*steps):
        rows = [
            {"step_id": number, "event_id": number, "line_id": 0, "name": name, "found_by": "mark",
             "start_ps": start * MS, "duration_ps": length * MS, "end_ps": (start + length) * MS}
            for number, name, start, length in steps
        ]  # fmt: skip
        planes = [{"plane_id": 0, "name": "/host:CPU", "kind": "host"}]
        lines = [{"line_id": 0, "plane_id": 0, "name": "main"}]
        tables = {"planes": planes, "lines": lines, "events": rows, "steps": rows}
        return path_of(FakeReader(tables), monkeypatch, tmp_path)

    return make


def test_a_stretch_line_by_line(peakline, traced):
    path = traced(EVENTS, [("x", 8 * 10**9, 10)])
    run = peakline("trace", path, "--from", "0ms", "--to", "8ms")
    assert (run.code, run.err) == (0, "")
    assert run.out.splitlines() == [
        "0.0000 to 8.0000 ms (8.000 ms): 3 events",
        f"{path} (fake, host worker-0, 1.234 ns)",
        "",
        "/host:CPU line 0: 3 events, busy 50.0%",
        "  start ms     duration         self  event",
        "    0.0000     1.000 ms               (gap)",
        "    1.0000     4.000 ms     3.000 ms  step",
        "    1.0000     5.000 ns     5.000 ns    k",
        "    2.0000     1.000 ms     1.000 ms    op\\n",
        "    5.0000     3.000 ms               (gap)",
    ]


def test_the_limit_says_what_is_not_shown(peakline, traced):
    run = peakline("trace", traced(EVENTS), "--limit", 1)
    assert "3 events, 1 shown, the longest of each line (more: --limit;" in run.out
    assert "step  (+2 shorter)" in run.out
    assert " op" not in run.out.split("\n", 1)[1]


def test_only_long_events(peakline, traced):
    run = peakline("trace", traced(EVENTS), "--min", "1us")
    assert "2 shown" in run.out
    assert "step  (+1 shorter)" in run.out


def test_lines_by_name(peakline, traced):
    path = traced(EVENTS, [("x", 0, 10)])
    run = peakline("trace", path, "--line", "LINE 1")
    assert ("line 0" in run.out, "line 1" in run.out) == (False, True)
    run = peakline("trace", path, "--line", "gpu")
    assert run.code == 3
    assert "no line called 'gpu'; there is: line 0, line 1" in run.err


def test_as_json(peakline, traced):
    run = peakline("trace", traced(EVENTS), "--from", "0ms", "--to", "8ms", "--limit", 2, "--json")
    result = json.loads(run.out)
    assert (result["from_ps"], result["to_ps"], result["events"], result["shown"]) == (
        0,
        8 * 10**9,
        3,
        2,
    )
    (line,) = result["lines"]
    assert (line["plane"], line["line"], line["busy_ps"]) == ("/host:CPU", "line 0", 4 * 10**9)
    assert [(row["event"], row["name"], row["depth"]) for row in line["rows"]] == [
        (None, None, 0),
        (0, "step", 0),
        (1, "op\n", 1),
        (None, None, 0),
    ]
    assert line["rows"][1]["own_ps"] == 3 * 10**9 - 5000
    assert (line["rows"][1]["hidden"], result["warnings"]) == (1, [])


def test_a_stretch_in_which_nothing_ran(peakline, traced):
    run = peakline("trace", traced(EVENTS), "--from", "6ms", "--to", "7ms")
    assert run.code == 0
    assert run.out.splitlines()[:1] == ["6.0000 to 7.0000 ms (1.000 ms): nothing ran"]


def test_a_profile_without_events(peakline, traced):
    path = traced()
    run = peakline("trace", path)
    assert (run.code, run.out, run.err) == (0, f"{path}: no events in this profile\n", "")
    run = peakline("trace", path, "--json")
    assert json.loads(run.out)["warnings"][0]["kind"] == "no_events"


@each_row(
    ("words", "message"),
    [
        (("--from", "3ms", "--to", "3ms"), "--to 3ms is not after --from 3ms"),
        (("--from", "soon"), "'soon' is no time"),
        (("--to", "1ms"), "--to 1.000 ms is not after the first event, at 1.000 ms"),
        (("--step", "3", "--from", "1ms"), "--from and --step ask for different times"),
        (("--step", "3", "--to", "1ms"), "--to and --step ask for different times"),
        (("--limit", "0"), "--limit"),
    ],
)
def test_what_cannot_be_asked(peakline, traced, words, message):
    run = peakline("trace", traced(EVENTS), *words)
    assert (run.code, run.out) == (2, "")
    assert message in run.err


def test_a_recorded_session(peakline, sessions):
    run = peakline("trace", sessions / "tf2_cnn", "--from", "8.5ms", "--to", "37ms", "--limit", 9)
    assert run.code == 0
    assert run.out.splitlines()[0].startswith("8.500 to 37.000 ms (28.500 ms): 1,551 events, 9 ")
    assert "/host:CPU python: 24 events, busy 99.2%, 11 shorter not shown" in run.out


@each_row("step", ["3", "train 3"])
def test_one_step(peakline, sessions, step):
    run = peakline("trace", sessions / "tf2_cnn", "--step", step, "--limit", 9, "--json")
    result = json.loads(run.out)
    steps = json.loads(peakline("steps", sessions / "tf2_cnn", "--json").out)["steps"]
    (own,) = (one for one in steps if one["step_id"] == 3)
    assert result["step_id"] == 3
    assert (result["from_ps"], result["to_ps"]) == (own["start_ps"], own["end_ps"])
    run = peakline("trace", sessions / "tf2_cnn", "--step", step, "--limit", 9)
    assert run.out.startswith("step 3 (train 3), 6")


def test_of_several_steps_of_a_name_the_longest(peakline, made):
    steps = [(number, "step", 10 * number, length) for number, length in enumerate((2, 5, 3))]
    path = made(*steps)
    result = json.loads(peakline("trace", path, "--step", "step", "--json").out)
    assert (result["step_id"], result["from_ps"], result["to_ps"]) == (1, 10 * MS, 15 * MS)
    result = json.loads(peakline("trace", path, "--step", "2", "--json").out)
    assert (result["from_ps"], result["to_ps"]) == (20 * MS, 23 * MS)


@each_row(
    ("step", "message"),
    [
        ("trian 3", "no step 'trian 3'; the profile has 16, ids 0 to 15; did you mean 'train 3'"),
        ("16", "no step '16'; the profile has 16, ids 0 to 15"),
    ],
)
def test_an_unknown_step(peakline, sessions, step, message):
    run = peakline("trace", sessions / "tf2_cnn", "--step", step)
    assert (run.code, run.out) == (3, "")
    assert message in run.err


def test_a_step_of_a_profile_without(peakline, traced):
    run = peakline("trace", traced(EVENTS), "--step", "1")
    assert (run.code, run.err) == (3, "peakline: no step '1': the profile has no steps\n")


@each_row(
    ("picoseconds", "text"),
    [
        (0, "0 ps"),
        (999, "999 ps"),
        (1000, "1.000 ns"),
        (999_999, "999.999 ns"),
        (999_999_499, "999.999 us"),
        (999_999_500, "1.000 ms"),
        (1_204_000_000_000, "1.204 s"),
    ],
)
def test_a_duration_has_its_own_unit(picoseconds, text):
    assert span_text(picoseconds) == text
