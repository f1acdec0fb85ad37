"""The threads of steps and the ops in them: whose time is whose, against a slow reader."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.timing.kineto_jobs import US, job, of_kind
from tests.timing.traces import GPU, HOST_PLANE, profile_of

from peakline.timing.ops.elementwise import chains_of, in_optimizer
from peakline.timing.ops.in_steps import is_float64, step_ops_of
from peakline.timing.ops.tiny import tiny_ops_of
from peakline.timing.steps.threads import step_threads_of
from peakline.trace.calls import call_of
from peakline.trace.work_classes import Work
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
    result = step_threads_of(profile)
    return result, [
        (int(result.event[k]), int(result.own_ps[k]), int(result.step[k]),
         *(int(result.event[at]) if at >= 0 else -1
           for at in (result.frame[k], result.call[k], result.parent[k])))
        for k in range(result.event.size)
    ]  # fmt: skip


def test_a_step_lasts_to_the_next_one():
    events = [("$train.py:1 step", 10, 30), ("$train.py:9 load", 60, 80)]
    profile, _ = marked(events, (0, 50), (100, 150))
    result, rows = read(profile)
    assert result.begin.tolist() == [0, 100]
    assert result.end.tolist() == [100, 150]
    assert [step for _, _, step, *_ in rows] == [0, 0, 0, 1]


def test_the_first_steps_of_many_are_left_out():
    frames = [("$train.py:1 step", 100 * n, 100 * n + 50) for n in range(9)]
    profile, _ = marked(frames, *((100 * n, 100 * n + 90) for n in range(9)))
    assert step_threads_of(profile).begin.tolist() == [100 * n for n in range(2, 9)]


def test_without_steps_the_thread_with_most_frames_is_one():
    profile = profile_of(
        {HOST_PLANE: {"other": [("op", 0, 500)], "main": [("$train.py:1 step", 10, 30)]}}
    )
    result = step_threads_of(profile)
    assert not result.has_steps
    assert result.event.tolist() == [1]
    assert (result.begin.tolist(), result.end.tolist()) == ([0], [500])


def test_nothing_says_which_thread_it_is():
    assert step_threads_of(profile_of({HOST_PLANE: {"a": [("op", 0, 5)]}})) is None
    assert step_threads_of(profile_of({})) is None


def test_what_lies_in_which():
    events = [("$train.py:1 step", 10, 90), ("op", 20, 60), ("jit", 30, 50)]
    profile, _ = marked(events, (0, 100))
    result = step_threads_of(profile)
    names = [result.names.values[code] for code in result.code.tolist()]
    assert names == ["train 0", "$train.py:1 step", "op", "jit"]
    is_op = result.code == result.names.code_of("op")
    assert result.within(is_op).tolist() == [False, False, True, True]
    assert result.above(is_op).tolist() == [-1, -1, 2, 2]
    assert result.per_step(is_op).tolist() == [20]


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


MM = ("aten::mm", 6000, 9000)
FRAME = "train.py(9): forward"


def test_the_outermost_op_that_is_known_counts():
    ops = step_ops_of(job([("aten::sort", 0, 4000), ("aten::copy_", 1000, 2000), MM]))
    assert (ops.side, ops.steps, ops.lanes, ops.has_steps) == ("host", 6, 1, True)
    assert ops.wall_ps == 6 * 10_000 * US
    kinds = {(ops.keys[op][0], Work(work)) for op, work in zip(ops.op, ops.work, strict=True)}
    assert kinds == {
        ("aten::sort", Work.SORT), ("aten::copy_", Work.OTHER), ("aten::mm", Work.MATMUL)
    }  # fmt: skip
    assert [ops.keys[op][0] for op in ops.op[ops.is_inner]] == ["aten::copy_"] * 6
    assert [ops.keys[op][0] for op in ops.op[~ops.is_leaf]] == ["aten::sort"] * 6
    assert np.array_equal(ops.is_outermost, ~ops.is_inner)
    sorts = ops.work == Work.SORT
    assert ops.by_op(sorts) == [("aten::sort", "", 6 * 4000 * US, 1.0)]
    assert ops.self_ps(sorts) == 6 * 3000 * US
    assert ops.covered_ps(sorts) == ops.alone_ps(sorts) == 6 * 4000 * US


def test_time_that_another_op_shares_is_not_lost():
    steps = [("train 0", 0, 100)]
    lines = {"a": [("train 0", 0, 100, 0), ("aten::sort", 10, 60, None, "cpu_op")],
             "b": [("aten::mm", 40, 90, None, "cpu_op")]}  # fmt: skip
    ops = step_ops_of(profile_of({HOST_PLANE: lines}, steps, kind="chrome_trace"))
    assert ops.alone_ps(ops.work == Work.SORT) == 30
    assert ops.covered_ps(ops.work == Work.SORT) == 50


def test_where_a_device_works_its_ops_count():
    stats = [(1, "tf_op", "model/Sort:Sort"), (2, "tf_op", "model/Sort:Sort")]
    planes = {HOST_PLANE: {"main": [("train 0", 0, 100, 0)]},
              GPU: {"Stream #1": [("kernel", 10, 60, 0), ("kernel", 70, 80, 0)]}}  # fmt: skip
    ops = step_ops_of(profile_of(planes, [("train 0", 0, 100)], stats=stats))
    assert (ops.side, ops.lanes) == ("device", 1)
    assert ops.alone_ps(ops.work == Work.SORT) == 60


def test_no_op_ran():
    assert step_ops_of(profile_of({})) is None
    assert step_ops_of(profile_of({HOST_PLANE: {"1": [("nothing", 0, 5)]}})) is None


@each_row(
    ("op", "least", "much", "phrase"),
    [
        ("aten::sort", 1000, 2500, "sorting"),
        ("aten::_to_copy", 1200, 2500, "casts between types"),
        ("aten::clone", 1500, 3000, "copies and transposes"),
        ("aten::index", 3500, 6000, "gathering and scattering single elements"),
        ("aten::randperm", 4000, 6000, "making random numbers"),
        ("aten::linalg_svd", 1000, 2500, "decompositions and inverses of matrices"),
        ("aten::linalg_cholesky", 3500, 6000, "Cholesky and triangular solves"),
    ],
)
def test_expensive_op(op, least, much, phrase):
    def found(length):
        return of_kind(job([(op, 10, 10 + length), ("aten::mm", 6100, 9000)]), "expensive_op")

    assert found(least - 20) == []
    (little,), (more,) = found(least), found(much)
    assert (little.severity, more.severity) == ("info", "warning")
    assert more.title == f"{much / 10_000:.0%} of the step time goes to {phrase}: {op}"
    assert more.evidence["gain_share"] == much / 10_000


def test_expensive_op_has_its_function():
    (finding,) = of_kind(job([("aten::sort", 10, 4000), MM], frame=FRAME), "expensive_op")
    assert finding.title.endswith("sorting: aten::sort, in forward (train.py:9)")
    assert (finding.evidence["file"], finding.evidence["line"]) == ("train.py", 9)


def loop(count, length=20, *, apart=10):
    return [
        ("aten::add" if n % 2 else "aten::mul", n * (length + apart), n * (length + apart) + length)
        for n in range(count)
    ]


def test_tiny_ops():
    profile = job(loop(240), frame=FRAME)
    ops = step_ops_of(profile)
    result = tiny_ops_of(ops, in_optimizer(profile, ops))
    assert (result.per_step, result.median_ps) == (240.0, 20 * US)
    assert result.ops == (("aten::mul", 120.0), ("aten::add", 120.0))
    # Short gaps belong to the loop.
    assert result.loop_ps == 6 * (239 * 30 + 20) * US
    (finding,) = of_kind(profile, "tiny_ops")
    # Models of cells and layers run so many; what goes is a range that pairs gave.
    assert finding.severity == "info"
    share = finding.evidence["share"]
    assert (finding.evidence["gain_share"], finding.evidence["most_gain_share"]) == (
        0.2 * share, min(1.75 * share, 0.95)
    )  # fmt: skip
    assert finding.evidence["function"] == "forward"
    assert finding.title.startswith("240 small ops a step (aten::")


def test_a_few_ops_and_layers_are_no_loop():
    assert of_kind(job(loop(12)), "tiny_ops") == []
    layers = [(f"aten::op{n}", 30 * n, 30 * n + 20) for n in range(240)]
    assert of_kind(job(layers), "tiny_ops") == []
    # Each of these does much.
    assert of_kind(job(loop(60, 150)), "tiny_ops") == []


def test_an_optimizer_goes_from_tensor_to_tensor():
    around = ("Optimizer.step#SGD.step", 0, 9000)
    profile = job([around, *loop(240)])
    assert in_optimizer(profile, step_ops_of(profile)).all()
    (finding,) = of_kind(profile, "tiny_ops")
    assert (finding.severity, finding.title.split(" (")[0]) == ("info", "the optimizer's step")


def chain(*names, dims="[[64, 64]]"):
    return [(f"aten::{name}", 1000 * n, 1000 * n + 900, dims) for n, name in enumerate(names)]


GELU = ("pow", "mul", "add", "mul", "tanh")


def test_unfused_elementwise():
    profile = job([*chain(*GELU), ("aten::mm", 6000, 9000)], frame=FRAME)
    result = chains_of(profile, step_ops_of(profile))
    assert (result.length, result.shape, result.is_optimizer) == (5, "[64, 64]", False)
    assert np.count_nonzero(result.chosen) == 6 * 5
    (finding,) = of_kind(profile, "unfused_elementwise")
    assert finding.title == (
        "45% of the step time goes to chains of element-wise ops over [64, 64], 5 in a row: "
        "aten::mul, aten::pow, aten::add, in forward (train.py:9)"
    )
    assert finding.severity == "warning"
    # One pass of five is left.
    assert finding.evidence["gain_share"] == 0.36


@each_row(
    "ops",
    [
        [*chain("add", "relu", "mul"), MM],
        [*chain("add", "mul"), ("aten::mm", 2000, 2900), ("aten::add", 3000, 3900, "[[64, 64]]"),
         ("aten::mul", 4000, 4900, "[[64, 64]]"), MM],
        chain("mul", "mul", "mul", "mul", "mul"),
        [(f"aten::{name}", 20 * n, 20 * n + 5) for n, name in enumerate(GELU)],
    ],
)  # fmt: skip
def test_bias_and_activation_one_op_and_short_ones_are_no_chain(ops):
    assert of_kind(job(ops), "unfused_elementwise") == []


def test_a_chain_ends_with_its_shape():
    halves = [*chain("add", "mul", "tanh"), ("aten::exp", 4000, 4900, "[[8]]")]
    assert of_kind(job(halves), "unfused_elementwise") == []


def test_an_optimizers_chain_is_for_information():
    inside = [("Optimizer.step#Adam.step", 0, 9500), *chain(*GELU)]
    (finding,) = of_kind(job(inside), "unfused_elementwise")
    assert finding.severity == "info"
    assert finding.title.endswith(", in the optimizer")


def test_float64_compute():
    def found(kind):
        types = f'["{kind}", "{kind}"]'
        profile = job([("aten::mm", 0, 4000, "[[8, 8], [8, 8]]", types), MM], frame=FRAME)
        return of_kind(profile, "float64_compute"), is_float64(profile, step_ops_of(profile))

    (finding,), chosen = found("double")
    assert np.count_nonzero(chosen) == 6
    assert finding.title == (
        "40% of the step time computes in float64: aten::mm, in forward (train.py:9)"
    )
    assert (finding.severity, finding.evidence["gain_share"]) == ("warning", 0.2)
    findings, chosen = found("float")
    assert (findings, chosen.any()) == ([], False)


def test_types_by_what_ops_put_out():
    events = [("train 0", 0, 100, 0), ("model/MatMul:MatMul", 0, 60), ("model/Add:AddV2", 60, 90)]
    profile = profile_of({HOST_PLANE: {"main": events}}, [("train 0", 0, 100)])
    assert not is_float64(profile, step_ops_of(profile)).any()


def test_steps_without_length_are_none():
    lines = {"a": [("train 0", 50, 50, 0), ("aten::sort", 10, 60, None, "cpu_op")]}
    profile = profile_of({HOST_PLANE: lines}, [("train 0", 50, 50)], kind="chrome_trace")
    ops = step_ops_of(profile)
    assert (ops.has_steps, ops.wall_ps) == (False, 50)
    assert of_kind(profile, "expensive_op")
