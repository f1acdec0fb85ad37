"""Steps of every sample and recording against the plain readers of what the program marked.

In all of them the host alone works, so a step lasts as long as its mark. Where nothing is marked
there is nothing to compare. What is still wrong is expected to fail, with the reason: whoever mends
it takes it out.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from tests.each_row import each_row
from tests.programs.known import DATA as PROGRAMS
from tests.programs.known_steps import KINETO, XSPACE
from tests.programs.known_steps import path as recording
from tests.shared import DATA, shared

from reference import kineto, xspace_steps

XSPACES = {
    **{name: recording(name) for name in XSPACE},
    **{
        str(file.relative_to(DATA)): file
        for file in [
            *sorted(PROGRAMS.glob("*.xplane.pb.gz")),
            *sorted((PROGRAMS / "time").glob("*.xplane.pb.gz")),
            *sorted((DATA / "sessions").glob("*/plugins/profile/*/*.xplane.pb*")),
        ]
    },
}
ALL = [*XSPACES, *KINETO]
LOOP = "the rounds of a loop inside the model are taken for steps"
FUNCTION = "a step is the function that runs inside a mark without _r, not the mark"
NAME = "marks without a number are no steps"
CUT_OFF = "a function of a step that was cut off is a step of its own, or a part of one a whole one"
WRONG = {
    "tf_keras_gru": LOOP, "tf_while_loop": LOOP, "tf_keras_callback": FUNCTION,
    "tf_trace_number": FUNCTION, "tf_cut_off": CUT_OFF, "jax_annotation": NAME,
    "torch_by_hand": NAME, "torch_train_eval": NAME,
}  # fmt: skip
WRONG_STATISTICS = {
    **{name: reason for name, reason in WRONG.items() if name != "torch_train_eval"},
    "torch_short_loop": CUT_OFF, "torch_break": CUT_OFF,
}  # fmt: skip
FRAME = "a call within a mark, in a frame of Python that is left after the mark, has no step"
WRONG_EVENTS = WRONG | {"jax_scan": FRAME}


def expected_to_fail(wrong):
    return [
        pytest.param(name, marks=pytest.mark.xfail(raises=AssertionError, reason=reason))
        for name, reason in wrong.items()
    ]


@cache
def plainly(name):
    """The marks and the events of a file, and where its clock is zero, in ps."""
    if name in KINETO:
        trace = kineto.Trace.of(recording(name))
        return trace.steps(), trace.events, trace.first_ps
    events = xspace_steps.host_events(xspace_steps.read(XSPACES[name]))
    return xspace_steps.marks_of(events), events, profile_of(name).start_ns * 1000


def marks_of(name):
    """Name, begin and end of every mark (ps of the profile's clock), and whether it is cut off."""
    marks, _, zero = plainly(name)
    return [
        (mark.shown, mark.start_ps - zero, mark.end_ps - zero, getattr(mark, "is_cut_off", False))
        for mark in marks
    ]


def profile_of(name):
    return shared(recording(name) if name in KINETO else XSPACES[name])


def check_steps(name):
    """The rows are the marks."""
    for table in ("steps", "step_breakdown"):
        rows = profile_of(name).columns(table).to_pylist()
        found = sorted((row["name"], row["start_ps"], row["end_ps"]) for row in rows)
        assert found == sorted(mark[:3] for mark in marks_of(name))


def check_statistics(name):
    """The statistics are those of the steps that are whole."""
    times = profile_of(name).time().times
    lengths = [end - start for _, start, end, is_cut_off in marks_of(name) if not is_cut_off]
    assert times is not None
    found = times.count, times.min_ps, times.max_ps
    assert found == (len(lengths), min(lengths), max(lengths))


def check_events(name):
    """An event on the thread of the marks has the step of the mark that it lies in, or none.

    What crosses the begin or the end of a mark is left out.
    """
    marks, events, zero = plainly(name)
    threads = {mark.thread for mark in marks}
    expected = set()
    for event in (event for event in events if event.thread in threads):
        near = [m for m in marks if m.start_ps < event.end_ps and event.start_ps < m.end_ps]
        inside = [m for m in near if m.start_ps <= event.start_ps and event.end_ps <= m.end_ps]
        if near == inside:
            step = inside[-1].shown if inside else None
            length = event.end_ps - event.start_ps
            expected.add((event.name, event.start_ps - zero, length, step))
    query = """
        select e.name, e.start_ps, e.duration_ps, s.name as step
        from events e left join steps s on s.step_id = e.step_id
    """
    found = {tuple(row.values()) for row in profile_of(name).sql(query).to_pylist()}
    assert expected - found == set()


@each_row("name", [name for name in ALL if name not in WRONG])
def test_steps_are_the_marks(name):
    if marks_of(name):
        check_steps(name)


@pytest.mark.parametrize("name", expected_to_fail(WRONG))
def test_steps_that_are_not_the_marks_yet(name):
    check_steps(name)


@each_row("name", [name for name in ALL if name not in WRONG_STATISTICS])
def test_statistics_are_those_of_the_whole_steps(name):
    kinds = {re.sub(r"[# ]\d+$", "", mark[0]) for mark in marks_of(name)}
    # Of several kinds of steps there is no one statistic.
    if len(kinds) == 1:
        check_statistics(name)


@pytest.mark.parametrize("name", expected_to_fail(WRONG_STATISTICS))
def test_statistics_that_are_of_other_steps_yet(name):
    check_statistics(name)


@each_row("name", [name for name in ALL if name not in WRONG_EVENTS])
def test_events_have_the_step_of_the_mark_they_lie_in(name):
    if marks_of(name):
        check_events(name)


@pytest.mark.parametrize("name", expected_to_fail(WRONG_EVENTS))
def test_events_that_have_another_step_yet(name):
    check_events(name)
