"""Steps of two profiles, and steps of one that differ."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.each_row import each_row
from tests.timing.traces import GPU, HOST_PLANE, profile_of

import peakline
from peakline.compare.time import chance_of, compare_time, time_state
from peakline.timing.step_breakdown import step_times
from peakline.timing.steps.facts import step_facts_of
from peakline.timing.steps.variation import (
    MemberSteps,
    device_straggler,
    straggler_among,
    variation_of,
)


def loop(*ops, steps=2, gap=0, before=(), length=100):
    """A host's loop: in each of ``steps`` the ``ops``, (name, how long), one after the other."""
    events, marks = list(before), []
    for number in range(steps):
        begin = 1000 + number * (length + gap)
        events.append((f"train {number}", begin, begin + length, number))
        marks.append((f"train {number}", begin, begin + length))
        at = begin
        for name, took in ops:
            events.append((name, at, at + took, number))
            at += took
    return time_state(profile_of({HOST_PLANE: {"main": events}}, marks))


def changes(before, after):
    """Of each op that changed: its name, what it was and is per step, how, and in words."""
    result = compare_time(before, after)
    return [(op.op, op.before_ps, op.after_ps, op.change, op.text) for op in result.ops]


def test_the_same_profile_twice():
    result = compare_time(loop(("a:MatMul", 60)), loop(("a:MatMul", 60)))
    assert result.is_empty
    assert (result.parts, result.ops, result.notes) == ((), (), ())


def test_steps_of_all_names_count_and_those_with_most_time_are_compared():
    lengths = {"train 0": 100, "eval 0": 30, "train 1": 120, "eval 1": 40, "eval 2": 50}
    at, marks = 0, []
    for name, length in lengths.items():
        marks.append((name, at, at + length))
        at += length
    events = [(*mark, number) for number, mark in enumerate(marks)]
    state = time_state(profile_of({HOST_PLANE: {"main": events}}, marks))
    assert (state.steps, state.times.count, state.times.mean_ps) == (5, 2, 110)
    assert state.walls.tolist() == [100, 120]


def test_steps_of_other_names_are_compared_with_a_note():
    def of(name, length):
        marks = [(f"{name} {n}", 100 * n, 100 * n + length) for n in range(5)]
        events = [(*mark, number) for number, mark in enumerate(marks)]
        return time_state(profile_of({HOST_PLANE: {"main": events}}, marks))

    note = "the steps of most time are compared: train before, eval after"
    assert note in compare_time(of("train", 50), of("eval", 80)).notes
    assert note not in compare_time(of("train", 50), of("train", 80)).notes


def test_parts_make_the_difference_of_the_mean_step():
    before = loop(("a:MatMul", 60), steps=2)
    result = compare_time(before, loop(("a:MatMul", 70), steps=3, length=150))
    answer = [(part.part, part.before_ps, part.after_ps, part.delta_ps) for part in result.parts]
    assert answer == [("unknown_ps", 40, 80, 40), ("host_compute_ps", 60, 70, 10)]
    assert (result.before.times.mean_ps, result.after.times.mean_ps) == (100, 150)


def test_ops_are_compared_per_step_and_only_within_the_steps():
    compile_first = [("a:MatMul", 0, 500), ("setup:Init", 500, 900)]
    before = loop(("a:MatMul", 60), ("b:Relu", 10), steps=2, before=compile_first)
    after = loop(("a:MatMul", 30), ("a:MatMul", 20), ("b:Relu", 10), steps=4)
    assert changes(before, after) == [("a", 60, 50, "time", "1 -> 2 runs")]


def test_what_runs_between_the_steps_counts():
    between = [("load:Read", 1110, 1140)]
    result = compare_time(
        loop(("a:MatMul", 60), gap=50), loop(("a:MatMul", 60), before=between, gap=50)
    )
    assert [(op.op, op.change, op.after_ps) for op in result.ops] == [("load", "new", 15)]
    assert result.before.between_ps == result.after.between_ps == 50


def test_new_gone_and_renamed_ops():
    before = loop(("net/a_1:MatMul", 40), ("old:Relu", 20))
    assert changes(before, loop(("net/a_7:MatMul", 50), ("new:Tanh", 30))) == [
        ("new", 0, 30, "new", "new"),
        ("old", 20, 0, "gone", "gone"),
        ("net/a_7", 40, 50, "renamed", "renamed from net/a_1"),
    ]


def test_several_ops_that_only_numbers_tell_apart_are_one_row():
    before = loop(("fusion.1:XlaOp", 10), ("fusion.2:XlaOp", 20))
    assert changes(
        before, loop(("fusion.8:XlaOp", 10), ("fusion.9:XlaOp", 20), ("fusion.10:XlaOp", 30))
    ) == [("fusion", 30, 60, "several", "2 -> 3 ops of that name and a number, 2 -> 3 runs")]


def test_what_matters_little_is_told_as_a_sum():
    before = loop(("large:MatMul", 900), ("small:Relu", 10), length=1000)
    result = compare_time(before, loop(("large:MatMul", 950), ("small:Relu", 14), length=1000))
    assert [op.op for op in result.ops] == ["large"]
    assert result.others_ps("host") == (10, 14)
    assert result.as_json()["other_ops"]["host"] == {
        "before_ps": 10, "after_ps": 14, "delta_ps": 4,
    }  # fmt: skip


def test_devices_and_hosts_are_told_apart():
    marks = [("train 0", 0, 100), ("train 1", 100, 200)]

    def on_gpu(took):
        kernels = [("relu", 10, 10 + took, 0), ("relu", 110, 110 + took, 1)]
        host = [(name, begin, end, number) for number, (name, begin, end) in enumerate(marks)]
        return time_state(
            profile_of({HOST_PLANE: {"main": host}, GPU: {"Stream #1": kernels}}, marks)
        )

    result = compare_time(on_gpu(20), on_gpu(50))
    assert [(op.side, op.op, op.delta_ps) for op in result.ops] == [("device", "relu", 30)]


def test_without_steps_whole_profiles_are_compared():
    events = [("a:MatMul", 0, 40), ("a:MatMul", 50, 90)]
    before = time_state(profile_of({HOST_PLANE: {"main": events}}))
    result = compare_time(before, loop(("a:MatMul", 60)))
    assert not result.by_step
    assert result.as_json()["ops_per"] == "profile"
    assert [(op.op, op.before_ps, op.after_ps) for op in result.ops] == [("a", 80, 120)]
    assert result.notes == (
        "nothing in the earlier profile records what a step is",
        "ops are compared over the whole profiles, which may be of different lengths",
    )


def test_a_profile_that_tells_nothing_about_time():
    nothing = time_state(profile_of({}))
    assert compare_time(nothing, nothing) is None
    result = compare_time(loop(("a:MatMul", 60)), nothing)
    assert result.notes == ("the later profile has nothing about time",)
    assert (result.parts, result.ops, result.is_empty) == ((), (), False)


@each_row(
    ("one", "other", "expected"),
    [
        # U = 0, 12 apart from its mean after the correction, variance 25 * 11 / 12.
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 0.012186),
        # All values tied in twos: U = 12.5 is its mean.
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], 1.0),
        ([7, 7, 7, 7, 7], [7, 7, 7, 7, 7], 1.0),
        ([1, 2, 3, 4], [6, 7, 8, 9, 10], None),
    ],
)
def test_the_chance_of_a_difference(one, other, expected):
    result = chance_of(np.array(one), np.array(other))
    assert result == (None if expected is None else pytest.approx(expected, abs=1e-6))


def test_steps_that_differ_by_chance_are_told():
    result = compare_time(
        loop(("a:MatMul", 60), steps=3), loop(("a:MatMul", 60), steps=3, length=120)
    )
    assert result.chance is None
    assert result.notes == (
        "3 steps before, 3 after: fewer than 5 do not show whether steps differ by chance",
    )
    result = compare_time(
        loop(("a:MatMul", 60), steps=9), loop(("a:MatMul", 60), steps=9, length=120)
    )
    assert result.chance < 0.001
    assert result.notes == ()


def test_findings_are_new_and_gone(root):
    import peakline

    time = root / "tests" / "data" / "programs" / "time"
    states = []
    for name in ("input_bound_healthy", "input_bound"):
        with peakline.open(time / f"{name}.xplane.pb.gz") as profile:
            states.append(time_state(profile))
    healthy, ill = states
    result = compare_time(healthy, ill)
    assert [finding.kind for finding in result.new_findings] == ["input_bound"]
    assert result.gone_findings == ()
    assert [f.kind for f in compare_time(ill, healthy).gone_findings] == ["input_bound"]


PROGRAMS = Path(__file__).parents[1] / "data" / "programs" / "time"
TRUTH = Path(__file__).parents[1] / "programs" / "time_truth.json"
NCCL = "ncclDevKernel_AllReduce"


def of_lengths(lengths):
    """A host that computes for each length, a step after the other."""
    ends = np.cumsum(lengths).tolist()
    steps = [(f"train {n}", end - length, end) for n, (length, end) in enumerate(
        zip(lengths, ends, strict=True))]  # fmt: skip
    python = [("train", start, end, n) for n, (_, start, end) in enumerate(steps)]
    ops = [("a:MatMul", start, start + 50, n) for n, (_, start, _) in enumerate(steps)]
    waits = [("IteratorGetNext", start + 50, end, n) for n, (_, start, end) in enumerate(steps)]
    return profile_of({HOST_PLANE: {"python": python + ops + waits}}, steps)


class TestVariation:
    def test_figures_of_steps(self):
        (result,) = variation_of(step_facts_of(of_lengths([100, 101, 99, 100, 100])))
        assert (result.device, result.steps, result.median_ps, result.p95_ps) == (None, 5, 100, 101)
        assert (result.mean_ps, result.min_ps, result.max_ps, result.slow) == (100, 99, 101, ())
        assert result.coefficient == pytest.approx(np.std([100, 101, 99, 100, 100]) / 100)

    def test_of_twenty_steps_nineteen_took_no_longer(self):
        (result,) = variation_of(step_facts_of(of_lengths([*range(81, 101)])))
        assert result.p95_ps == 99

    def test_a_slow_step_and_the_part_that_made_it_slow(self):
        lengths = [100, 101, 150, 99, 400, 100, 100]
        (result,) = variation_of(step_facts_of(of_lengths(lengths)))
        assert [(one.name, one.wall_ps, one.beyond_ps) for one in result.slow] == [
            ("train 4", 400, 300)
        ]
        assert {(one.part, one.part_beyond_ps) for one in result.slow} == {("input_wait", 300)}

    def test_slow_is_twice_the_median_or_more(self):
        (result,) = variation_of(step_facts_of(of_lengths([100, 100, 200, 100, 199])))
        assert [(one.name, one.wall_ps, one.beyond_ps) for one in result.slow] == [
            ("train 2", 200, 100)
        ]

    def test_few_steps_have_no_slow_one(self):
        (result,) = variation_of(step_facts_of(of_lengths([100, 100, 400, 100])))
        assert result.slow == ()

    def test_no_steps(self):
        profile = profile_of({HOST_PLANE: {"python": [("work", 0, 10)]}})
        assert variation_of(step_facts_of(profile)) == ()

    @each_row("name", ["slow_step", "slow_step_healthy"])
    def test_the_program_with_slow_steps(self, name):
        wanted = [step for fault in json.loads(TRUTH.read_text())[name]["faults"]
                  for step in fault["steps"]]  # fmt: skip
        with peakline.open(PROGRAMS / f"{name}.xplane.pb.gz") as profile:
            (result,) = variation_of(step_facts_of(profile))
        assert sorted(one.step_id for one in result.slow) == wanted


def gpus(compute, *, talk_until=90, steps=4):
    """GPUs that compute for so long and then are in a collective until all are done."""
    planes = {
        f"/device:GPU:{n}": {"Stream #1": [
            event
            for k in range(steps)
            for event in (
                ("kernel", 100 * k, 100 * k + long, k),
                (NCCL, 100 * k + long, 100 * k + talk_until, k),
            )
        ]}
        for n, long in enumerate(compute)
    }  # fmt: skip
    marks = [(f"train {k}", 100 * k, 100 * k + 5) for k in range(steps)]
    python = [("train", start, end, k) for k, (_, start, end) in enumerate(marks)]
    return step_times(profile_of({**planes, HOST_PLANE: {"python": python}}, marks))


class TestDevices:
    def test_whoever_comes_last_to_the_collective(self):
        result = device_straggler(gpus([50, 80, 52, 51]))
        assert (result.name, result.evidence, result.steps) == ("/device:GPU:1", "communication", 4)
        assert (result.behind_ps, result.waited_ps, result.often) == (29, 116, 1.0)
        assert result.share == pytest.approx(116 / 360)

    def test_none_where_all_are_alike(self):
        assert device_straggler(gpus([50, 51, 50, 50])) is None

    def test_none_with_one_device(self):
        assert device_straggler(gpus([50])) is None


def member(name, last, *, begin=0, talk=0, steps=4, numbers=None):
    first = begin + 100 * np.arange(steps)
    return MemberSteps(
        name, numbers or list(range(steps)), first, first + 90, first + last,
        np.full(steps, talk),
    )  # fmt: skip


class TestAmong:
    def test_without_collectives_whose_computation_ends_last(self):
        result = straggler_among([member("a", 50), member("b", 52), member("c", 85)])
        assert (result.name, result.evidence, result.behind_ps) == ("c", "finish", 34)

    def test_only_steps_that_all_have_and_at_the_same_time(self):
        others = [member("a", 50), member("b", 50)]
        assert straggler_among([*others, member("c", 85, numbers=[0, 1, 7, 8])]).steps == 2
        assert straggler_among([*others, member("c", 85, numbers=[0, 7, 8, 9])]) is None
        assert straggler_among([*others, member("c", 85, begin=1000)]) is None

    def test_nobody_is_last_most_of_the_time(self):
        one, other = member("a", 50), member("b", 50)
        last = np.array([80, 20, 80, 20])
        one = MemberSteps("a", one.step, one.begin, one.end, one.begin + last, one.communication)
        assert straggler_among([one, other]) is None

    @each_row(("waits", "name"), [
        # One of two is last in 5 of 8 steps, in 6, and in all of them by much.
        ([(9, 1), (8, 0), (1, 7), (9, 2), (0, 9), (8, 1), (7, 1), (2, 9)], None),
        ([(9, 1), (8, 0), (1, 7), (9, 2), (9, 0), (8, 1), (7, 1), (2, 9)], None),
        ([(30, 1), (28, 0), (33, 7), (29, 2), (30, 0), (28, 1), (27, 1), (32, 2)], "b"),
        # Last in all but two, by as much as steps differ anyhow.
        ([(40, 1), (2, 1), (2, 0), (0, 3), (1, 0), (0, 2), (2, 1), (2, 1)], None),
        # Four healthy ones that differ a little, always in the same way.
        ([(14, 18, 23, 21)] * 8, None),
        ([(20, 21, 20, 1)] * 3, "d"),
    ])  # fmt: skip
    def test_a_lead_that_may_be_chance_is_none(self, waits, name):
        first = 100 * np.arange(len(waits))
        members = [
            MemberSteps(called, range(len(waits)), first, first + 90, first + 50, np.array(talk))
            for called, talk in zip("abcd", zip(*waits, strict=True), strict=False)
        ]
        result = straggler_among(members)
        assert (None if result is None else result.name) == name
