"""A peak that stands alone, and the findings of it."""

from tests.analysis.histories import history, steps_at
from tests.analysis.records import alloc, free
from tests.analysis.stacks import of_kind, profile_with
from tests.each_row import each_row
from tests.profile.fake import columns_of

from peakline.memory.marks import find_marks
from peakline.memory.peak.lone import EVALUATION, ONE_STEP, OUTSIDE, lone_peak
from peakline.tables.tables import check_columns, empty_columns
from peakline.trace.steps import Steps

MIB = 1 << 20
LENGTH = 10


def job(large_at, *, op="large", size=8 * MIB, before=False, times=1):
    """Six steps of ten records that hold 2 MiB; in one, or before all, a large buffer lives."""
    large = [alloc(5, size, op=op, shape="[9]"), free(5)] * times
    first = 2 * times * before
    rows = large if before else []
    for number in range(6):
        usual = [alloc(1, 2 * MIB, op="usual", shape="[2]"), free(1)]
        own = large if number == large_at else []
        rows = rows + own + usual * ((LENGTH - len(own)) // 2)
    timed = [row | {"time_ps": n} for n, row in enumerate(rows)]
    return timed, [first + LENGTH * n for n in range(7)]


def peak_of(rows, steps, capacity=None):
    made = history(rows)
    return lone_peak(made, 0, find_marks(made, 0, steps), Steps.of(steps), capacity)


def named(bounds, names):
    rows = [
        {"step_id": n, "name": name, "start_ps": bounds[n], "end_ps": bounds[n + 1] - 1}
        for n, name in enumerate(names)
    ]
    return check_columns("steps", columns_of("steps", rows))


def test_in_one_step():
    rows, bounds = job(3)
    found = peak_of(rows, steps_at(*bounds))
    assert (found.where, found.when, found.step) == (
        ONE_STEP, "in step 3 (train 3) alone", "step 3 (train 3)"
    )  # fmt: skip
    assert (found.peak_bytes, found.others_bytes) == (8 * MIB, 2 * MIB)


def test_before_the_steps():
    rows, bounds = job(None, before=True)
    found = peak_of(rows, steps_at(*bounds))
    assert (found.where, found.when, found.step) == (OUTSIDE, "before the first step", "")


def test_in_evaluation():
    rows, bounds = job(3)
    names = ["train 0", "train 1", "train 2", "eval 0", "train 3", "train 4"]
    found = peak_of(rows, named(bounds, names))
    assert (found.where, found.when) == (EVALUATION, "in eval")


@each_row(
    ("size", "capacity"),
    [
        (2 * MIB, None),
        # Not 1.3 times as much, not 1 MiB more, a trifle of the device.
        (int(2.5 * MIB), None),
        (int(2.9 * MIB), None),
        (8 * MIB, 1 << 40),
    ],
)
def test_a_peak_that_others_come_near(size, capacity):
    rows, bounds = job(3, size=size)
    assert peak_of(rows, steps_at(*bounds), capacity) is None


def test_too_few_steps_are_no_others():
    rows, bounds = job(1)
    assert peak_of(rows[: 2 * LENGTH], steps_at(*bounds[:3])) is None
    assert peak_of(rows, empty_columns("steps")) is None


def test_peak_in_one_step():
    rows, bounds = job(3)
    (finding,) = of_kind(profile_with(rows, steps_at(*bounds)), "peak_in_one_step")
    assert finding.severity == "warning"
    assert (finding.evidence["op"], finding.evidence["step"]) == ("large", "step 3 (train 3)")
    assert finding.evidence["saved_bytes"] == 6 * MIB
    rows, bounds = job(None)
    assert of_kind(profile_with(rows, steps_at(*bounds)), "peak_in_one_step") == []


def test_what_every_step_makes_overlaps_by_chance():
    # Step 3 holds two of its buffers at once, which the others make one after the other.
    one, two = alloc(1, 4 * MIB, op="a", shape="[2]"), alloc(2, 4 * MIB, op="b", shape="[3]")
    rows = []
    for number in range(6):
        rows += [one, two, free(1), free(2)] if number == 3 else [one, free(1), two, free(2)]
    timed = [row | {"time_ps": n} for n, row in enumerate(rows)]
    steps = steps_at(*range(0, 25, 4))
    assert peak_of(timed, steps).where == ONE_STEP
    assert of_kind(profile_with(timed, steps), "peak_in_one_step") == []


def test_peak_outside_steps():
    rows, bounds = job(None, before=True)
    (finding,) = of_kind(profile_with(rows, steps_at(*bounds)), "peak_outside_steps")
    assert "memory is fullest before the first step, with 8.0 MiB" in finding.title
    rows, bounds = job(None)
    assert of_kind(profile_with(rows, steps_at(*bounds)), "peak_outside_steps") == []


def test_peak_in_evaluation():
    rows, bounds = job(3)
    names = ["train 0", "train 1", "train 2", "eval 0", "train 3", "train 4"]
    (finding,) = of_kind(profile_with(rows, named(bounds, names)), "peak_in_evaluation")
    assert "memory is fullest in eval, with 8.0 MiB" in finding.title
    rows, bounds = job(None)
    assert of_kind(profile_with(rows, named(bounds, names)), "peak_in_evaluation") == []


def test_an_evaluation_within_a_step_is_known_by_its_function():
    rows, bounds = job(3)
    twice, _ = job(5)
    # Two of six steps hold it, so that none stands alone.
    rows = rows[: bounds[4]] + twice[bounds[4] :]
    rows = [row | {"stack_id": int(row.get("op") == "large"), "time_ps": n}
            for n, row in enumerate(rows)]  # fmt: skip
    stacks = [[("train", "/me/train.py", 4)], [("evaluate", "/me/train.py", 9)]]
    (finding,) = of_kind(profile_with(rows, steps_at(*bounds), stacks=stacks), "peak_in_evaluation")
    assert "memory is fullest in evaluate (train.py:9), with 8.0 MiB" in finding.title
    other = [stacks[0], [("transform", "/me/train.py", 9)]]
    assert of_kind(profile_with(rows, steps_at(*bounds), stacks=other), "peak_in_evaluation") == []
