"""The marks in the recordings lie where the programs' own clock says that they set them."""

import gzip
import re

from tests.each_row import each_row
from tests.programs.known_steps import KINETO, MARKED, STEPS, TRUTH, XSPACE, path, whole_steps

from reference import kineto, xspace_steps

CUT_OFF = [name for name in XSPACE if any(step.get("cut_off") for step in TRUTH[name]["steps"])]


def marks_of(name):
    """Name, number, begin and end (ns since 1970, rounded down) of every mark."""
    if name in KINETO:
        trace = kineto.Trace.of(path(name))
        base, marks = trace.base_ns, trace.steps()
    else:
        base = 0
        marks = xspace_steps.marks_of(xspace_steps.host_events(xspace_steps.read(path(name))))
    return [
        (mark.name, mark.number, base + mark.start_ps // 1000, base + mark.end_ps // 1000)
        for mark in marks
    ]


def test_every_file_is_in_the_truth_and_small():
    files = list(STEPS.glob("*.gz"))
    assert {file.name for file in files} == {truth["file"] for truth in TRUTH.values()}
    assert all(file.stat().st_size <= 150_000 for file in files)
    readme = (STEPS / "README.md").read_text()
    assert [name for name in TRUTH if f"`{name}`" not in readme] == []


@each_row("name", TRUTH)
def test_no_name_of_the_machine(name):
    content = gzip.decompress(path(name).read_bytes())
    assert not re.search(rb"/(?:root|home|tmp|usr|var|mnt|work)/", content)
    if name in XSPACE:
        assert xspace_steps.read(path(name)).hostnames == ["host"]
    else:
        assert re.findall(rb'"host_name": "(.*?)"', content) == [b"host"]


@each_row("name", MARKED)
def test_every_mark_lies_where_the_clock_says(name):
    result, steps = marks_of(name), whole_steps(name)
    assert [mark[:2] for mark in result] == [(step["name"], step["number"]) for step in steps]
    for (_, _, start, end), step in zip(result, steps, strict=True):
        assert step["begins_ns"][0] <= start <= step["begins_ns"][1]
        assert step["ends_ns"][0] <= end <= step["ends_ns"][1]


@each_row("name", [name for name in TRUTH if name not in MARKED])
def test_what_is_not_marked_has_no_marks(name):
    assert marks_of(name) == []


@each_row("name", [name for name in XSPACE if name not in MARKED])
def test_the_calls_of_what_is_not_marked(name):
    calls = xspace_steps.runs_of(xspace_steps.host_events(xspace_steps.read(path(name))))
    for call, step in zip(calls, TRUTH[name]["steps"], strict=True):
        assert step["name"] in call.name
        assert step["begins_ns"][0] <= call.start_ps // 1000 <= call.end_ps // 1000
        assert call.end_ps // 1000 <= step["ends_ns"][1]


@each_row("name", XSPACE)
def test_a_step_without_an_end_is_seen_by_its_calls(name):
    events = xspace_steps.host_events(xspace_steps.read(path(name)))
    since = xspace_steps.cut_off_from(events, xspace_steps.marks_of(events))
    if name not in CUT_OFF:
        assert since is None
        return
    last = TRUTH[name]["steps"][-1]
    assert last["begins_ns"][0] < since // 1000 < TRUTH[name]["profile_ns"][1]


@each_row("name", KINETO)
def test_which_of_pytorch_s_steps_are_cut_off(name):
    if name in MARKED:
        result = [step.is_cut_off for step in kineto.Trace.of(path(name)).steps()]
        assert result == [step.get("cut_off", False) for step in whole_steps(name)]
