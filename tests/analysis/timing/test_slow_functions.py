"""Which function of the program makes some steps slow, and what runs between steps."""

import numpy as np
from tests.analysis.timing.traces import HOST_PLANE, profile_of

from peakline.findings.time_answer import answer_time
from peakline.timing.launches.gaps import runs_between
from peakline.timing.steps.facts import step_facts_of
from peakline.timing.steps.slow import function_of
from peakline.trace.frames import frame_of

MS = 10**9
STEP, SAVE = "$train.py:1 step", "$train.py:9 save_all"


def job(slow, inside, *, gap=0, between=(), steps=12):
    """Steps of 10 ms; the ``slow`` ones last 100 ms and run what is ``inside`` them."""
    marks, line, at = [], [], 0
    for number in range(steps):
        wall = 100 if number in slow else 10
        marks.append((f"train {number}", at * MS, (at + wall) * MS))
        line.append((*marks[-1], number))
        line.append((STEP, at * MS, (at + wall) * MS))
        if number in slow:
            line += [(name, (at + a) * MS, (at + b) * MS) for name, a, b in inside]
        line += [(name, (at + wall) * MS, (at + wall + gap) * MS) for name in between]
        at += wall + gap
    return profile_of({HOST_PLANE: {"main": line}}, marks)


def of_kind(profile, kind):
    return [finding for finding in answer_time(profile).findings if finding.kind == kind]


def test_the_function_that_slow_steps_alone_run():
    profile = job({4, 8}, [(SAVE, 5, 95), ("$train.py:20 write_one", 6, 94)])
    (finding,) = of_kind(profile, "step_variation")
    assert finding.title.endswith(", in save_all (train.py:9), which the others do not run")
    assert (finding.evidence["function"], finding.evidence["line"]) == ("save_all", 9)
    assert "save_all (train.py:9) takes 90.000 ms of a slow step" in finding.suggestion
    assert of_kind(job((), []), "step_variation") == []


def test_an_evaluation_takes_its_time():
    inside = [("$train.py:9 evaluate", 5, 95)]
    (finding,) = of_kind(job({4}, inside, steps=24), "step_variation")
    assert finding.title.endswith(", in evaluate (train.py:9), which the others do not run")
    assert finding.severity == "info"
    # Less is an alarm of something else, and of an evaluation more.
    (finding,) = of_kind(job({4}, [(SAVE, 5, 95)], steps=24), "step_variation")
    assert finding.severity == "warning"
    (finding,) = of_kind(job({4, 8}, inside), "step_variation")
    assert finding.severity == "warning"


def test_the_loop_over_the_next_steps_is_none_of_a_step():
    # It begins in a slow step, and goes on until the next slow one.
    inside = [("$train.py:9 save_all", 5, 65), ("$train.py:30 train_epoch", 70, 130)]
    (finding,) = of_kind(job({4, 8}, inside), "step_variation")
    assert finding.evidence["function"] == "save_all"


def test_a_function_that_all_steps_run_takes_longer():
    profile = job({4, 8}, [])
    facts = step_facts_of(profile)
    start, wall = facts.part("start_ps"), facts.part("wall_ps")
    found = function_of(profile, start, wall > 50 * MS, 90 * MS)
    assert found == {"function": frame_of(STEP), "function_ps": 90 * MS, "is_alone": False}
    assert function_of(profile, start, np.zeros(12, np.bool_), 90 * MS) == {}
    # It takes less than half of this.
    assert function_of(profile, start, wall > 50 * MS, 200 * MS) == {}


def test_what_runs_between_the_steps():
    profile = job((), [], gap=20, between=[SAVE])
    assert runs_between(profile, step_facts_of(profile)) == ["save_all (train.py:9)"]
    # Something runs, so that it is no idle time.
    assert of_kind(profile, "idle_between_steps") == []
    quiet = job((), [], gap=20)
    assert runs_between(quiet, step_facts_of(quiet)) == []
    (finding,) = of_kind(quiet, "idle_between_steps")
    assert finding.evidence["runs"] == []
