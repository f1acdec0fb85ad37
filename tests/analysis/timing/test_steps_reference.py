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


def expected_to_fail(wrong):
    return [
        pytest.param(name, marks=pytest.mark.xfail(reason=reason)) for name, reason in wrong.items()
    ]


@cache
def marks_of(name):
    """Name, begin and end of every mark (ps of the profile's clock), and whether it is cut off."""
    if name in KINETO:
        trace = kineto.Trace.of(recording(name))
        zero, steps = trace.first_ps, trace.steps()
        return [
            (step.shown, step.start_ps - zero, step.end_ps - zero, step.is_cut_off)
            for step in steps
        ]
    events = xspace_steps.host_events(xspace_steps.read(XSPACES[name]))
    zero = profile_of(name).start_ns * 1000
    return [
        (mark.shown, mark.start_ps - zero, mark.end_ps - zero, False)
        for mark in xspace_steps.marks_of(events)
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
