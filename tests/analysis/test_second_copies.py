"""Copies held several times, and those that a program makes by hand."""

from tests.analysis.histories import steps_at
from tests.analysis.records import alloc, free
from tests.analysis.stacks import of_kind, profile_with
from tests.each_row import each_row

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
