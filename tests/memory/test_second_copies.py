"""Memory held more often or longer than needed: copies, crossings, batches ahead, outputs."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.formats.chrome_traces import event, opened
from tests.memory.records import alloc, free, history, of_kind, profile_with, records, steps_at

from peakline.memory.crossings import find_crossing, marks_passed
from peakline.memory.marks import find_marks
from peakline.memory.peak.buffers import buffers_at_peak
from peakline.memory.savings.answer import find_savings
from reference.memory_history import buffers, lives_at

MIB = 1 << 20
SIZES = (4 * MIB, 3 * MIB, 2 * MIB, MIB)
MAIN = ("main", "/me/train.py", 2)
MAKE = ["aten::empty", ("build", "/me/train.py", 8), MAIN]
CLONE = ["aten::clone", ("keep_weights", "/me/train.py", 30), MAIN]
ADD = ["aten::div", ("add_gradients", "/me/train.py", 40), MAIN]


def many(stack, times):
    """Weights, and so many copies of them."""
    rows = [alloc(n, size, op="aten::empty", stack_id=0) for n, size in enumerate(SIZES)]
    for turn in range(1, times + 1):
        rows += [
            alloc(10 * turn + n, size, op="aten::clone", stack_id=1) for n, size in enumerate(SIZES)
        ]
    return profile_with([*rows, alloc(99, 1), free(99)], stacks=[MAKE, stack])


def test_all_copies_count():
    (finding,) = of_kind(many(CLONE, 3), "redundant_copy")
    assert finding.title.endswith(
        "30.0 MiB are 3 more copies: 12 buffers made by keep_weights (train.py:30), of the sizes "
        "of what build (train.py:8) made"
    )
    assert finding.evidence["copy_bytes"] == 30 * MIB


@each_row(
    ("steps", "is_freed", "is_redundant"), [(5, True, False), (5, False, True), (1, True, True)]
)
def test_the_first_of_copies_that_each_step_makes_anew_is_meant(steps, is_freed, is_redundant):
    """A target network that a deep copy replaces: the peak lies where the first is still held."""
    update = ["aten::clone", ("update_target", "/me/train.py", 50), MAIN]
    rows = [alloc(100 * stack + n, size, op="aten::clone", stack_id=stack, time_ps=n)
            for stack in (0, 1) for n, size in enumerate(SIZES)]  # fmt: skip
    rows += [alloc(99, 40 * MIB, time_ps=11), free(99, time_ps=12)]
    for step in range(steps):
        at = 20 + 100 * step
        for n, size in enumerate(SIZES):
            key = 100 * (step + 1) + n
            if is_freed or step:
                rows.append(free(key, time_ps=at + 2 * n))
            rows.append(
                alloc(key + 100, size, op="aten::clone", stack_id=2, time_ps=at + 2 * n + 1)
            )
    bounds = steps_at(*(10 + 100 * step for step in range(6)))
    result = of_kind(profile_with(rows, bounds, stacks=[MAKE, CLONE, update]), "redundant_copy")
    functions = [one.evidence["function"] for one in result]
    assert functions == (["keep_weights"] if is_redundant else [])


def test_a_thread_begins_with_clone_and_is_no_copy():
    relu = ["at::_ops::relu::call(at::Tensor const&)", ("update_nodes", "/me/train.py", 30), MAIN]
    native = [*relu, ("start_thread", "pthread_create.c", 0), ("clone", "??", 0)]
    assert of_kind(many(native, 3), "redundant_copy") == []
    call = "at::_ops::clone::call(at::Tensor const&, std::optional<c10::MemoryFormat>)"
    assert of_kind(many([call, *native[1:]], 3), "redundant_copy")


def test_an_average_that_each_step_updates_is_meant(tmp_path):
    def trace(update):
        rows, time = [event("X", 0, "train.py(5): main", dur=10_000, cat="python_function")], 1
        for function, op in (("build", "aten::rand"), ("average", "aten::clone")):
            rows.append(event("X", time, f"train.py(9): {function}", dur=50, cat="python_function"))
            for n, size in enumerate(SIZES):
                rows.append(event("X", time + 1 + 5 * n, op, dur=3, cat="cpu_op"))
                given = {"Bytes": size, "Addr": 1000 * time + n, "Device Type": 0, "Device Id": -1}
                rows.append(event("i", time + 2 + 5 * n, "[memory]", cat="cpu_instant_event", s="t",
                                  args=given))  # fmt: skip
            time += 100
        for step in range(4):
            rows.append(event("X", time, f"ProfilerStep#{step}", dur=100, cat="user_annotation"))
            rows += [event("X", time + 5 * n, update, dur=3, cat="cpu_op") for n in range(4)]
            time += 100
        return rows

    # In place, or into new tensors: then this is the average's first state.
    for update in ("aten::lerp_", "aten::mul"):
        with opened(tmp_path, trace(update)) as profile:
            assert [one for one in profile.memory().findings if one.kind == "redundant_copy"] == []
    with opened(tmp_path, trace("aten::relu")) as profile:
        (finding,) = [one for one in profile.memory().findings if one.kind == "redundant_copy"]
        assert finding.evidence["function"] == "average"


def test_layers_of_a_model_may_be_copies_of_one():
    init = ["aten::clone", ("__init__", "/me/model.py", 30), MAIN]
    assert of_kind(many(init, 3), "redundant_copy") == []


def test_all_copies_of_a_model_that_several_functions_made():
    rows = [
        alloc(n, size, op="aten::empty", stack_id=n % 2, time_ps=n) for n, size in enumerate(SIZES)
    ]
    copies = [alloc(10 * turn + n, size, op="aten::clone", stack_id=2)
              for turn in (1, 2) for n, size in enumerate(SIZES)]  # fmt: skip
    other = ["aten::empty", ("build_head", "/me/train.py", 9), MAIN]
    stacks = [MAKE, other, CLONE]
    (finding,) = of_kind(profile_with([*rows, *copies], stacks=stacks), "redundant_copy")
    assert finding.title.endswith(
        "20.0 MiB are 2 more copies: 8 buffers made by keep_weights (train.py:30), of the sizes of "
        "all weights"
    )
    # Half of the model is none.
    some = [one for one in copies if one["address"] % 10 < 2]
    assert of_kind(profile_with([*rows, *some], stacks=stacks), "redundant_copy") == []


def test_an_op_that_copies_within_another_makes_no_copy():
    loss = ["aten::clone", "aten::contiguous", "aten::cross_entropy_loss", CLONE[1], MAIN]
    assert of_kind(many(loss, 3), "redundant_copy") == []


def heap(times, *, sizes=SIZES, more=()):
    """A file of one moment: weights, and a list of so many buffers of each size."""
    rows = [alloc(n, size, op="record", stack_id=0) for n, size in enumerate(SIZES)]
    rows += [alloc(100 + n, size, op="sum", stack_id=1) for n, size in enumerate(sizes * times)]
    rows += [alloc(300 + n, size, op="sum", stack_id=1) for n, size in enumerate(more)]
    return profile_with(rows, stacks=[MAKE[1:], ADD[1:]])


def test_a_list_of_gradients():
    (finding,) = of_kind(heap(6), "redundant_copy")
    assert finding.title.endswith(
        "60.0 MiB are 6 more copies: 24 buffers made by add_gradients (train.py:40), of the sizes "
        "of what build (train.py:8) made"
    )
    evidence = finding.evidence
    assert (evidence["copy_bytes"], evidence["least_saved_bytes"]) == (60 * MIB, 50 * MIB)


@each_row(
    "given",
    [
        # What an optimizer holds; layers, of which one size more; other sizes.
        {"times": 3},
        {"times": 6, "more": (MIB,)},
        {"times": 6, "sizes": (4 * MIB, 3 * MIB)},
        {"times": 6, "sizes": (4 * MIB, 3 * MIB, 2 * MIB, 5 * MIB)},
    ],
)
def test_what_is_no_list_of_gradients(given):
    assert of_kind(heap(**given), "redundant_copy") == []


def by_hand(stack=ADD, *, sizes=SIZES, together=True, always=False):
    """Weights, and steps that each hold buffers of the second stack for a while."""
    rows = [alloc(n, size, op="aten::empty", stack_id=0) for n, size in enumerate(SIZES)]
    begins = [len(rows)]
    for number in range(5):
        at = 100 * (number % 2 + 1)
        rows += [alloc(at + n, size, op="aten::div", stack_id=1) for n, size in enumerate(sizes)]
        old = 100 * ((number + 1) % 2 + 1) if always else at
        for n in range(len(sizes)):
            if not always or number:
                rows.append(free(old + n))
            rows += [] if together else [alloc(50, 1), free(50)] * 4
        rows += [alloc(60, 1), free(60)]
        begins.append(len(rows))
    return profile_with(rows, steps_at(*begins), stacks=[MAKE, stack])


def test_a_copy_that_is_made_by_hand():
    (finding,) = of_kind(by_hand(), "redundant_copy")
    assert "4 buffers made by add_gradients (train.py:40)" in finding.title
    assert (finding.evidence["copy_bytes"], finding.evidence["function"]) == (
        10 * MIB,
        "add_gradients",
    )


@each_row(
    "given",
    [
        # Activations of layers go one by one; state is there at all times; other sizes.
        {"together": False},
        {"always": True},
        {"sizes": (4 * MIB, 3 * MIB, 2 * MIB, 2 * MIB)},
        {"sizes": (4 * MIB, 3 * MIB)},
        {"stack": ["aten::div", ("step", "/v/site-packages/torch/optim/adam.py", 9), MAIN]},
        {"stack": ["aten::div"]},
    ],
)
def test_what_is_no_copy_made_by_hand(given):
    assert of_kind(by_hand(**given), "redundant_copy") == []


FLAT = ["aten::cat", ("flat_gradients", "/me/train.py", 40), MAIN]


def job(*flat, sizes=SIZES, stack=FLAT, beside=0):
    """Weights of these sizes, vectors, and something else."""
    rows = [alloc(n, size, op="aten::empty", stack_id=0) for n, size in enumerate(sizes)]
    rows += [alloc(20 + n, size, op="aten::cat", stack_id=1) for n, size in enumerate(flat)]
    rows += [alloc(40, beside, op="aten::relu", stack_id=2)] * bool(beside)
    return profile_with(rows, stacks=[MAKE, stack, [MAIN]])


def test_a_vector_of_all_weights():
    (finding,) = of_kind(job(10 * MIB), "redundant_copy")
    assert finding.title.endswith(
        "10.0 MiB are a buffer made by flat_gradients (train.py:40), as large as all that build "
        "(train.py:8) made together"
    )
    evidence = finding.evidence
    assert (evidence["copy_bytes"], evidence["count"], evidence["line"]) == (10 * MIB, 1, 40)
    assert evidence["least_saved_bytes"] == 10 * MIB


def test_several_of_them_and_sizes_that_are_rounded_up():
    (finding,) = of_kind(job(10 * MIB - 2048, 10 * MIB - 2048), "redundant_copy")
    assert "2 buffers made by flat_gradients (train.py:40), each as large as" in finding.title


@each_row(
    ("flat", "given"),
    [
        # Another size, weights of two sizes, few of them, a small part of the peak, state.
        (9 * MIB, {}),
        (10 * MIB, {"sizes": (4 * MIB, 4 * MIB, MIB, MIB)}),
        (10 * MIB, {"sizes": (5 * MIB, 3 * MIB, 2 * MIB)}),
        (10 * MIB, {"beside": 90 * MIB}),
        (10 * MIB, {"stack": [("step", "/v/site-packages/torch/optim/adam.py", 9), MAIN]}),
    ],
)
def test_what_is_none(flat, given):
    assert of_kind(job(flat, **given), "redundant_copy") == []


def test_many_of_one_size_are_no_vectors():
    assert of_kind(job(*[10 * MIB] * 4), "redundant_copy") == []


def test_without_stacks_nothing_is_said():
    rows = [alloc(n, size, op="w") for n, size in enumerate((*SIZES, 10 * MIB))]
    assert of_kind(profile_with(rows), "redundant_copy") == []


marks = st.lists(st.integers(0, 45), max_size=6).map(sorted)


@settings(max_examples=150)
@given(records, marks)
def test_who_lives_across_which_mark_equals_the_slow_answer(rows, marks):
    made = history(rows)
    for number, allocator in enumerate(made.lifetimes.allocators):
        result = find_crossing(made, number, np.array(marks, np.int64))
        slow = {
            one.begin: {place for place, mark in enumerate(marks) if lives_at(one, mark)}
            for one in buffers(rows)
            if one.allocator == allocator
        }
        spans = zip(result.rows.tolist(), result.first.tolist(), result.until.tolist(), strict=True)
        assert {row: set(range(first, until)) for row, first, until in spans} == {
            row: places for row, places in slow.items() if places
        }


def test_the_sums_at_the_marks_leave_out_what_has_no_place():
    rows = [
        {"activity": "allocation", "address": n, "allocated_bytes": 10**n} for n in range(3)
    ] + [{"activity": "deallocation", "address": 1}]
    result = find_crossing(history(rows), 0, np.array([1, 3, 4]))
    assert result.rows.tolist() == [0, 1, 2]
    live = result.live_at_marks(np.array([1, 0, -1]), 2, np.array([1, 10, 100]))
    assert live.tolist() == [[0, 10, 0], [1, 1, 1]]


def test_marks_that_go_back_count_from_where_the_largest_lies():
    assert marks_passed(np.array([2, 1, 9]), 4).tolist() == [0, 0, 2, 2]
    assert marks_passed(np.array([], np.int64), 2).tolist() == [0, 0]


MAKE_OF_BATCHES_AHEAD = [("build", "/me/train.py", 8), MAIN]
PUT = [
    ("asarray", "/v/site-packages/jax/_src/numpy/array_constructors.py", 453),
    ("to_device", "/me/train.py", 63), ("prefetch", "/me/train.py", 30), MAIN,
]  # fmt: skip
SCALED = [("to_device", "/me/train.py", 62), ("prefetch", "/me/train.py", 30), MAIN]


def job_of_batches_ahead(batches=16, labels=None, *, put=PUT, size=MIB, weight=MIB):
    """Batches of images, which are computed on the device, and of labels, which are put there."""
    count = batches if labels is None else labels
    rows = [alloc(0, weight, op="w", stack_id=0)]
    rows += [alloc(100 + n, size, op="images", stack_id=1) for n in range(batches)]
    rows += [alloc(200 + n, size // 4, op="labels", stack_id=2) for n in range(count)]
    return profile_with(rows, stacks=[MAKE_OF_BATCHES_AHEAD, SCALED, put])


def test_many_batches():
    (finding,) = of_kind(job_of_batches_ahead(), "batches_ahead")
    assert finding.severity == "warning"
    assert finding.title.endswith(
        "16 batches of input are in memory at once, 20.0 MiB of 21.0 MiB, put there by to_device "
        "(train.py:63)"
    )
    evidence = finding.evidence
    assert (evidence["batches"], evidence["saved_bytes"]) == (16, 20 * MIB * 14 // 16)


def test_half_of_the_peak_makes_it_a_warning():
    (finding,) = of_kind(job_of_batches_ahead(weight=25 * MIB), "batches_ahead")
    assert finding.severity == "info"


@each_row(
    "given",
    [
        # Few, a small part, weights of a file (some once), and nothing that says that it is input.
        {"batches": 7},
        {"weight": 99 * MIB},
        {"labels": 1},
        {"put": MAKE_OF_BATCHES_AHEAD},
        {"size": 1 << 16, "weight": 1},
    ],
)
def test_what_is_none_of_batches_ahead(given):
    assert of_kind(job_of_batches_ahead(**given), "batches_ahead") == []


def test_one_more_of_a_size_is_as_often():
    (finding,) = of_kind(job_of_batches_ahead(batches=9, labels=8), "batches_ahead")
    assert finding.evidence["batches"] == 8


STEPS = steps_at(0, 200, 400, 600)


def older(rows):
    made = history(rows)
    marks = find_marks(made, 0, STEPS)
    result = buffers_at_peak(made, 0, marks, made.measured)
    savings = find_savings(made, 0, marks, counted=made.measured, found=result)
    return [saving for saving in savings if saving.kind == "older_copy"]


def outputs(*, early=True, together=True):
    """Three steps that each make outputs of one size, which the next frees once it has its own."""
    rows, first = [], [alloc(50, 1, op="x", shape="[1]"), free(50)] * 30
    for number in range(3):
        body = [] if early else first
        body = body + [alloc(10 * number + n, 40, op="out", shape="[4]") for n in range(4)]
        if number:
            gap = [] if together else [alloc(51, 1, op="y", shape="[1]"), free(51)] * 4
            body += [one for n in range(4) for one in [free(10 * number - 10 + n), *gap]]
        body += first if early else []
        filler = [alloc(7, 1, op="tick", shape="[1]"), free(7)] * (60 - len(body) // 2)
        rows += [
            row | {"time_ps": 200 * number + n} for n, row in enumerate([*body, *filler][:120])
        ]
    return rows


def test_outputs_of_the_step_before_are_older_copies():
    (saving,) = older(outputs())
    assert saving.title == "4 x out [4] of the step before"
    assert saving.rows[0]["count"] == 4
    assert (saving.bytes, saving.peak_after) == (159, 161)


def test_what_is_made_late_in_a_step_or_goes_one_by_one_is_state():
    assert older(outputs(early=False)) == []
    assert older(outputs(together=False)) == []


def test_held_after_use():
    rows = [row | {"allocated_bytes": MIB * (row["allocated_bytes"] or 0)} for row in outputs()]
    (finding,) = of_kind(profile_with(rows, STEPS), "held_after_use")
    assert finding.severity == "warning"
    assert "4 x out [4] of the step before live at the peak" in finding.title
    assert finding.evidence["saved_bytes"] == 159 * MIB
