"""The threads of steps: whose time is whose, against a slow reader."""

from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.timing.traces import HOST_PLANE, profile_of

from peakline.timing.steps.threads import step_threads_of
from peakline.trace.calls import call_of
from reference.step_threads import read_thread

NAMES = ["$train.py:1 step", "$train.py:9 load", "$numpy.py:3 dot", "$time sleep", "op", "jit"]


def is_program(name):
    return name.startswith("$train.py")


def marked(events, *bounds):
    """A profile of one thread whose steps are marked between the ``bounds``."""
    steps = [(f"train {n}", begin, end) for n, (begin, end) in enumerate(bounds)]
    marks = [(name, begin, end, n) for n, (name, begin, end) in enumerate(steps)]
    line = sorted([*marks, *events], key=lambda one: (one[1], -one[2]))
    return profile_of({HOST_PLANE: {"main": line}}, steps), line


def read(profile):
    found = step_threads_of(profile)
    return found, [
        (int(found.event[k]), int(found.own_ps[k]), int(found.step[k]),
         *(int(found.event[at]) if at >= 0 else -1
           for at in (found.frame[k], found.call[k], found.parent[k])))
        for k in range(found.event.size)
    ]  # fmt: skip


def test_a_step_lasts_to_the_next_one():
    events = [("$train.py:1 step", 10, 30), ("$train.py:9 load", 60, 80)]
    profile, _ = marked(events, (0, 50), (100, 150))
    found, rows = read(profile)
    assert found.begin.tolist() == [0, 100]
    assert found.end.tolist() == [100, 150]
    assert [step for _, _, step, *_ in rows] == [0, 0, 0, 1]


def test_the_first_steps_of_many_are_left_out():
    frames = [("$train.py:1 step", 100 * n, 100 * n + 50) for n in range(9)]
    profile, _ = marked(frames, *((100 * n, 100 * n + 90) for n in range(9)))
    assert step_threads_of(profile).begin.tolist() == [100 * n for n in range(2, 9)]


def test_without_steps_the_thread_with_most_frames_is_one():
    profile = profile_of(
        {HOST_PLANE: {"other": [("op", 0, 500)], "main": [("$train.py:1 step", 10, 30)]}}
    )
    found = step_threads_of(profile)
    assert not found.has_steps
    assert found.event.tolist() == [1]
    assert (found.begin.tolist(), found.end.tolist()) == ([0], [500])


def test_nothing_says_which_thread_it_is():
    assert step_threads_of(profile_of({HOST_PLANE: {"a": [("op", 0, 5)]}})) is None
    assert step_threads_of(profile_of({})) is None


def test_what_lies_in_which():
    events = [("$train.py:1 step", 10, 90), ("op", 20, 60), ("jit", 30, 50)]
    profile, _ = marked(events, (0, 100))
    found = step_threads_of(profile)
    names = [found.names.values[code] for code in found.code.tolist()]
    assert names == ["train 0", "$train.py:1 step", "op", "jit"]
    is_op = found.code == found.names.code_of("op")
    assert found.within(is_op).tolist() == [False, False, True, True]
    assert found.above(is_op).tolist() == [-1, -1, 2, 2]
    assert found.per_step(is_op).tolist() == [20]


@st.composite
def nested(draw):
    """Events that lie in each other or apart, some of them before and after the steps."""
    events = []

    def fill(begin, end, depth):
        at = begin
        while at < end and len(events) < 25 and draw(st.booleans()):
            start = draw(st.integers(at, end - 1))
            stop = draw(st.integers(start + 1, end))
            events.append((draw(st.sampled_from(NAMES)), start, stop))
            if depth:
                fill(start, stop, depth - 1)
            at = stop

    fill(0, 300, 3)
    return events


@given(nested(), st.integers(0, 60), st.integers(0, 60))
def test_any_thread_equals_the_slow_answer(events, first, gap):
    bounds = (first, first + 50), (first + 50 + gap, first + 100 + gap)
    begin, end = [one[0] for one in bounds], [bounds[1][0], bounds[1][1]]
    # A marker that lies across others nests in them in more than one way.
    events = [
        one for one in events
        if all(one[2] <= a or one[1] >= b or (a < one[1] and one[2] < b) for a, b in bounds)
    ]  # fmt: skip
    profile, line = marked(events, *bounds)
    slow = read_thread([one[:3] for one in line], list(zip(begin, end, strict=True)), is_program)
    says = any(is_program(one[0]) or call_of(one[0]) for one in line)
    if not says:
        assert step_threads_of(profile) is None
        return
    _, rows = read(profile)
    assert rows == [
        (one.place, one.own_ps, one.step, one.frame, one.call, one.parent) for one in slow
    ]
