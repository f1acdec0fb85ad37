"""What slow steps run that the others do not, where no frame was recorded."""

from tests.analysis.timing.kineto_jobs import of_kind
from tests.analysis.timing.traces import HOST_PLANE, profile_of

from peakline.timing.steps.slow import OnlySlow, only_slow

MS = 10**9
TRAIN = "EagerLocalExecute: __inference_train_step_40"
PREDICT = "EagerLocalExecute: __inference_predict_step_77"
ITERATOR = "EagerLocalExecute: MakeIterator"


def job(extra, every=4, first=1, steps=14):
    """Steps of 10 ms; each fourth runs what is ``extra`` (name and ms) besides."""
    events, marks, now = [], [], 0
    for number in range(steps):
        begin = now
        at = begin + 10
        events.append((TRAIN, begin * MS, (begin + 9) * MS))
        if (number - first) % every == 0:
            for name, length in extra:
                events.append((name, at * MS, (at + length) * MS))
                at += length
        now = at
        marks.append((f"train {number}", begin * MS, now * MS))
        events.append((*marks[-1], number))
    return profile_of({HOST_PLANE: {"1": events}}, marks)


def test_a_function_that_slow_steps_alone_run():
    (finding,) = of_kind(job([(ITERATOR, 10), *[(PREDICT, 2)] * 5]), "step_variation")
    assert finding.title.endswith(
        ", every 4th: 33% of the time, in predict_step and MakeIterator, which the others do not "
        "run"
    )
    assert finding.evidence["only_in_slow"] == "predict_step, MakeIterator"
    assert finding.suggestion.startswith("predict_step and what is run with it take 20.000 ms of a")


def test_what_slow_steps_run_alone_and_how_long_it_takes_of_one():
    profile = job([(ITERATOR, 10), (PREDICT, 5)], steps=8)
    steps = profile.columns("steps")
    begin, end = steps.array("start_ps"), steps.array("end_ps")
    slow = end - begin > 10 * MS
    assert slow.tolist() == [number % 4 == 1 for number in range(8)]
    alone = OnlySlow(("predict_step", "MakeIterator"), 15 * MS, has_function=True)
    assert only_slow(profile, begin, end, slow, 30 * MS) == alone
    # It takes less than half of what they take longer; or there are no others.
    assert only_slow(profile, begin, end, slow, 31 * MS) is None
    assert only_slow(profile, begin, end, slow | True, 30 * MS) is None
    assert only_slow(job([], steps=8), begin, end, slow, 0) is None


def test_what_all_steps_run_and_what_takes_little_says_nothing():
    (finding,) = of_kind(job([(TRAIN, 20)]), "step_variation")
    assert finding.evidence["only_in_slow"] is None
    (finding,) = of_kind(job([(PREDICT, 2), (TRAIN, 18)]), "step_variation")
    assert finding.evidence["only_in_slow"] is None


def test_a_period_may_begin_in_the_steps_that_are_left_out():
    (finding,) = of_kind(job([(PREDICT, 30)], steps=12), "step_variation")
    assert (finding.evidence["slow_steps"], finding.evidence["period_steps"]) == (2, 4)
    (finding,) = of_kind(job([(PREDICT, 30)], first=3, steps=11), "step_variation")
    assert (finding.evidence["slow_steps"], finding.evidence["period_steps"]) == (2, None)


def same_work(slow):
    """Steps of 10 ms, the ``slow`` ones of 40 ms, that all run one function."""
    events, marks, now = [], [], 0
    for number in range(14):
        begin, now = now, now + (40 if number in slow else 10)
        events.append((TRAIN, begin * MS, (now - 1) * MS))
        marks.append((f"train {number}", begin * MS, now * MS))
        events.append((*marks[-1], number))
    return profile_of({HOST_PLANE: {"1": events}}, marks)


def test_the_same_work_that_takes_longer_now_and_then_is_no_alarm():
    (finding,) = of_kind(same_work({5, 7}), "step_variation")
    assert finding.severity == "info"
    (finding,) = of_kind(same_work({4, 8, 12}), "step_variation")
    assert (finding.severity, finding.evidence["period_steps"]) == ("warning", 4)
