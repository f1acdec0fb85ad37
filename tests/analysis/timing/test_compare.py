"""What changed in time between two profiles."""

import numpy as np
import pytest
from tests.analysis.timing.traces import GPU, HOST_PLANE, profile_of
from tests.each_row import each_row

from peakline.compare.time import _chance, compare_time, time_state


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
    found = compare_time(before, after)
    return [(op.op, op.before_ps, op.after_ps, op.change, op.text) for op in found.ops]


def test_the_same_profile_twice():
    found = compare_time(loop(("a:MatMul", 60)), loop(("a:MatMul", 60)))
    assert found.is_empty
    assert (found.parts, found.ops, found.notes) == ((), (), ())


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
    found = compare_time(before, loop(("a:MatMul", 70), steps=3, length=150))
    told = [(part.part, part.before_ps, part.after_ps, part.delta_ps) for part in found.parts]
    assert told == [("unknown_ps", 40, 80, 40), ("host_compute_ps", 60, 70, 10)]
    assert (found.before.times.mean_ps, found.after.times.mean_ps) == (100, 150)


def test_ops_are_compared_per_step_and_only_within_the_steps():
    compile_first = [("a:MatMul", 0, 500), ("setup:Init", 500, 900)]
    before = loop(("a:MatMul", 60), ("b:Relu", 10), steps=2, before=compile_first)
    after = loop(("a:MatMul", 30), ("a:MatMul", 20), ("b:Relu", 10), steps=4)
    assert changes(before, after) == [("a", 60, 50, "time", "1 -> 2 runs")]


def test_what_runs_between_the_steps_counts():
    between = [("load:Read", 1110, 1140)]
    found = compare_time(
        loop(("a:MatMul", 60), gap=50), loop(("a:MatMul", 60), before=between, gap=50)
    )
    assert [(op.op, op.change, op.after_ps) for op in found.ops] == [("load", "new", 15)]
    assert found.before.between_ps == found.after.between_ps == 50


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
    found = compare_time(before, loop(("large:MatMul", 950), ("small:Relu", 14), length=1000))
    assert [op.op for op in found.ops] == ["large"]
    assert found.others_ps("host") == (10, 14)
    assert found.as_json()["other_ops"]["host"] == {
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

    found = compare_time(on_gpu(20), on_gpu(50))
    assert [(op.side, op.op, op.delta_ps) for op in found.ops] == [("device", "relu", 30)]


def test_without_steps_whole_profiles_are_compared():
    events = [("a:MatMul", 0, 40), ("a:MatMul", 50, 90)]
    before = time_state(profile_of({HOST_PLANE: {"main": events}}))
    found = compare_time(before, loop(("a:MatMul", 60)))
    assert not found.by_step
    assert found.as_json()["ops_per"] == "profile"
    assert [(op.op, op.before_ps, op.after_ps) for op in found.ops] == [("a", 80, 120)]
    assert found.notes == (
        "nothing in the earlier profile records what a step is",
        "ops are compared over the whole profiles, which may be of different lengths",
    )


def test_a_profile_that_tells_nothing_about_time():
    nothing = time_state(profile_of({}))
    assert compare_time(nothing, nothing) is None
    found = compare_time(loop(("a:MatMul", 60)), nothing)
    assert found.notes == ("the later profile has nothing about time",)
    assert (found.parts, found.ops, found.is_empty) == ((), (), False)


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
    found = _chance(np.array(one), np.array(other))
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-6))


def test_steps_that_differ_by_chance_are_told():
    found = compare_time(
        loop(("a:MatMul", 60), steps=3), loop(("a:MatMul", 60), steps=3, length=120)
    )
    assert found.chance is None
    assert found.notes == (
        "3 steps before, 3 after: fewer than 5 do not show whether steps differ by chance",
    )
    found = compare_time(
        loop(("a:MatMul", 60), steps=9), loop(("a:MatMul", 60), steps=9, length=120)
    )
    assert found.chance < 0.001
    assert found.notes == ()


def test_findings_are_new_and_gone(root):
    import peakline

    time = root / "tests" / "data" / "programs" / "time"
    states = []
    for name in ("input_bound_healthy", "input_bound"):
        with peakline.open(time / f"{name}.xplane.pb.gz") as profile:
            states.append(time_state(profile))
    healthy, ill = states
    found = compare_time(healthy, ill)
    assert [finding.kind for finding in found.new_findings] == ["input_bound"]
    assert found.gone_findings == ()
    assert [f.kind for f in compare_time(ill, healthy).gone_findings] == ["input_bound"]
