"""Slow steps and stragglers."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.analysis.timing.traces import HOST_PLANE, profile_of
from tests.each_row import each_row

import peakline
from peakline.timing.step_breakdown import step_times
from peakline.timing.steps.facts import step_facts_of
from peakline.timing.steps.variation import (
    MemberSteps,
    device_straggler,
    host_steps,
    straggler_among,
    variation_of,
)

PROGRAMS = Path(__file__).parents[2] / "data" / "programs" / "time"
TRUTH = Path(__file__).parents[2] / "programs" / "time_truth.json"
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
        (found,) = variation_of(step_facts_of(of_lengths([100, 101, 99, 100, 100])))
        assert (found.device, found.steps, found.median_ps, found.p95_ps) == (None, 5, 100, 101)
        assert (found.mean_ps, found.min_ps, found.max_ps, found.slow) == (100, 99, 101, ())
        assert found.coefficient == pytest.approx(np.std([100, 101, 99, 100, 100]) / 100)

    def test_of_twenty_steps_nineteen_took_no_longer(self):
        (found,) = variation_of(step_facts_of(of_lengths([*range(81, 101)])))
        assert found.p95_ps == 99

    def test_a_slow_step_and_the_part_that_made_it_slow(self):
        lengths = [100, 101, 150, 99, 400, 100, 100]
        (found,) = variation_of(step_facts_of(of_lengths(lengths)))
        assert [(one.name, one.wall_ps, one.beyond_ps) for one in found.slow] == [
            ("train 4", 400, 300)
        ]
        assert {(one.part, one.part_beyond_ps) for one in found.slow} == {("input_wait", 300)}

    def test_slow_is_twice_the_median_or_more(self):
        (found,) = variation_of(step_facts_of(of_lengths([100, 100, 200, 100, 199])))
        assert [(one.name, one.wall_ps, one.beyond_ps) for one in found.slow] == [
            ("train 2", 200, 100)
        ]

    def test_few_steps_have_no_slow_one(self):
        (found,) = variation_of(step_facts_of(of_lengths([100, 100, 400, 100])))
        assert found.slow == ()

    def test_no_steps(self):
        profile = profile_of({HOST_PLANE: {"python": [("work", 0, 10)]}})
        assert variation_of(step_facts_of(profile)) == ()

    @each_row("name", ["slow_step", "slow_step_healthy"])
    def test_the_program_with_slow_steps(self, name):
        wanted = [step for fault in json.loads(TRUTH.read_text())[name]["faults"]
                  for step in fault["steps"]]  # fmt: skip
        with peakline.open(PROGRAMS / f"{name}.xplane.pb.gz") as profile:
            (found,) = variation_of(step_facts_of(profile))
        assert sorted(one.step_id for one in found.slow) == wanted


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
        found = device_straggler(gpus([50, 80, 52, 51]))
        assert (found.name, found.evidence, found.steps) == ("/device:GPU:1", "communication", 4)
        assert (found.behind_ps, found.waited_ps, found.often) == (29, 116, 1.0)
        assert found.share == pytest.approx(116 / 360)

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
        found = straggler_among([member("a", 50), member("b", 52), member("c", 85)])
        assert (found.name, found.evidence, found.behind_ps) == ("c", "finish", 34)

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

    def test_hosts_by_the_names_of_their_steps_on_one_clock(self):
        slow, quick = gpus([50, 80], talk_until=90), gpus([50, 50], talk_until=90)
        hosts = [host_steps(quick, "a"), host_steps(slow, "b", 3), host_steps(quick, "c")]
        assert hosts[1].step == ["train 0", "train 1", "train 2", "train 3"]
        assert hosts[1].begin.tolist() == [3, 103, 203, 303]
        assert hosts[1].communication.tolist() == [10] * 4
        found = straggler_among(hosts)
        assert (found.name, found.behind_ps) == ("b", 30)
