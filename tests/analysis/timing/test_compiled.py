"""Which programs are compiled in some steps, and whose functions they are."""

import numpy as np
from tests.analysis.timing.traces import HOST_PLANE, profile_of
from tests.each_row import each_row
from tests.shared import shared

from peakline.findings.time_answer import answer_time
from peakline.timing.programs.compiled import (
    Compiled,
    first_calls_ps,
    programs_compiled,
    what_changed,
)
from peakline.timing.steps.facts import step_facts_of
from peakline.trace.frames import frame_of

STEP, INNER = "$train.py:54 step", "$train.py:56 loss"


def job(*events, steps=8, compiling=range(8)):
    """Eight steps of 100; in the ``compiling`` ones these events run."""
    marks = [(f"train {n}", 100 * n, 100 * n + 100) for n in range(steps)]
    line = []
    for number, (name, begin, end) in enumerate(marks):
        line.append((name, begin, end, number))
        if number in compiling:
            line += [(event, begin + a, begin + b) for event, a, b in events]
    return profile_of({HOST_PLANE: {"main": line}}, marks)


def compiled(profile):
    facts = step_facts_of(profile)
    return programs_compiled(profile, facts, np.arange(facts.rows))


def test_a_program_has_its_function_and_who_called_it():
    # Tracing runs the function itself, between the call and the compiler.
    profile = job(
        (STEP, 5, 95), ("PjitFunction(loss)", 10, 90), ("$jaxlib lower", 12, 88),
        ("backend_compile", 15, 85), (INNER, 20, 30),
    )  # fmt: skip
    assert compiled(profile) == [Compiled("loss", frame_of(INNER), frame_of(STEP))]
    assert compiled(profile)[0].title == "loss (train.py:56), called in step (train.py:54)"


@each_row(
    ("one", "title"),
    [
        (Compiled("f"), "f"),
        (Compiled("f", frame_of(INNER)), "loss (train.py:56)"),
        (Compiled("step", None, frame_of(STEP)), "step"),
        (Compiled("f", None, frame_of(STEP)), "f, called in step (train.py:54)"),
    ],
)
def test_titles(one, title):
    assert one.title == title


def test_without_frames_the_call_alone_is_named():
    profile = job(("PjitFunction(loss)", 10, 90), ("backend_compile", 15, 85))
    assert compiled(profile) == [Compiled("loss")]


def test_the_first_call_of_a_function_prepares_it():
    call = "EagerLocalExecute: __inference_evaluate_{}"
    steps = [(f"train {n}", 100 * n, 100 * n + 100) for n in range(3)]
    line = []
    for number, mark in enumerate(steps):
        line.append((*mark, number))
        line.append((call.format(7), 100 * number + 10, 100 * number + 60))
        line.append(("op", 100 * number + 20, 100 * number + 30))
    profile = profile_of({HOST_PLANE: {"main": line}}, steps)
    assert first_calls_ps(profile, step_facts_of(profile), np.arange(3)).tolist() == [40, 0, 0]


def test_what_changed_by_the_shapes_of_arguments():
    path = "programs/time/recompiling.xplane.pb.gz"
    said = what_changed(shared(path), ["train"])
    assert said.startswith("argument 1 changes: f32[424,128], f32[432,128], f32[440,128], ...")
    assert what_changed(shared(path), ["nothing"]) == ""


@each_row(
    ("counts", "said"),
    [
        ([4, 5, 22], "it is traced for the 22nd time"),
        ([4, 11, 12], "it is traced for the 12th time"),
        ([1, 2, 3], ""),
        ([5, 5, 5], ""),
        ([], ""),
    ],
)
def test_what_changed_by_how_often_it_was_traced(counts, said):
    events = [("step", 10 * n, 10 * n + 5) for n in range(3)]
    stats = [(n, "tracing_count", count) for n, count in enumerate(counts)]
    assert what_changed(profile_of({HOST_PLANE: {"a": events}}, stats=stats), ["step"]) == said


def test_recompilation_has_the_function():
    calls = (
        (STEP, 5, 95),
        ("PjitFunction(loss)", 10, 90),
        ("backend_compile", 15, 85),
        (INNER, 20, 30),
    )

    def found(profile):
        return [one for one in answer_time(profile).findings if one.kind == "recompilation"]

    (finding,) = found(job(*calls))
    assert (finding.evidence["function"], finding.evidence["line"]) == ("loss", 56)
    # The twin compiles in its first step alone.
    assert found(job(*calls, compiling=[0])) == []


@each_row(("times", "own"), [(8, True), (5, True), (4, False), (8, False)])
def test_recompilation_where_no_steps_are_marked(times, own):
    """Libraries compile for each shape of the weights, and a function once for each of a few."""
    line = []
    for at in range(0, 100 * times, 100):
        line += [("PjitFunction(loss)", at, at + 90), ("backend_compile", at + 5, at + 80)]
        line.append((INNER if own else "$lax.py:5 loss", at + 10, at + 20))
    line.append(("PjitFunction(loss)", 900, 1000))
    found = [
        one
        for one in answer_time(profile_of({HOST_PLANE: {"main": line}})).findings
        if one.kind == "recompilation"
    ]
    if times < 5 or not own:
        assert found == []
        return
    (finding,) = found
    share = 75 * times / 1000
    assert finding.title == (
        f"loss (train.py:56) is compiled {times} times, {share:.0%} of the profile's time goes to "
        "compilation"
    )
    assert finding.evidence["share"] == share
    assert finding.evidence["gain_share"] == share * (times - 1) / times
