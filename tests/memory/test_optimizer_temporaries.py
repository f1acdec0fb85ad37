"""What an optimizer keeps for each weight, and what its update takes for a while."""

from tests.each_row import each_row
from tests.memory.records import alloc, free, of_kind, profile_with, steps_at

MIB = 1 << 20
SIZES = (5 * MIB, 4 * MIB, 3 * MIB, 2 * MIB)
ADAM = "/v/site-packages/torch/optim/adam.py"
MAIN = ("train", "/me/train.py", 20)
BUILD = ["aten::empty", ("build", "/me/train.py", 8), MAIN]
FOREACH = [("_multi_tensor_adam", ADAM, 611), ("step", ADAM, 246), MAIN]
EACH = [("_single_tensor_adam", ADAM, 420), ("step", ADAM, 246), MAIN]
CLEAR = [("zero_grad", "/v/site-packages/torch/optim/optimizer.py", 900), MAIN]


def job(stack, *, sizes=SIZES, lives=False, at_once=True, outside=False):
    """Weights and five steps: a gradient of each weight, then what the optimizer makes with
    ``stack``: all at once or one by one, freed in its step or only when the next pass has begun.
    """
    rows = [alloc(n, size, op="w", stack_id=0) for n, size in enumerate(SIZES)]
    begins = [len(rows)]
    for _ in range(5):
        rows += [alloc(50, MIB, op="act", stack_id=2), free(50)]
        rows += [alloc(10 + n, size, op="grad", stack_id=2) for n, size in enumerate(SIZES)]
        made = [alloc(20 + n, size, op="tmp", stack_id=1) for n, size in enumerate(sizes)]
        gone = [free(20 + n) for n in range(len(sizes))]
        if not at_once:
            made, gone = [one for pair in zip(made, gone, strict=True) for one in pair], []
        rows += made
        rows += [alloc(51, 1, op="next", stack_id=2), *gone, free(51)] if lives else gone
        rows += [free(10 + n) for n in range(len(SIZES))]
        begins.append(len(rows))
    if outside:
        rows += [alloc(60, 99 * MIB, op="evaluate", stack_id=2), free(60)]
        begins.append(len(rows))
    return profile_with(rows, steps_at(*begins), stacks=[BUILD, stack, [MAIN]])


def test_a_foreach_optimizer():
    (finding,) = of_kind(job(FOREACH), "huge_temporary")
    assert finding.severity == "warning"
    assert finding.title.endswith(
        "without what an optimizer computes for all weights at once (4 buffers, 14.0 MiB, made by "
        "_multi_tensor_adam (adam.py:611), called in train (train.py:20)), which are freed in the "
        "same step of the optimizer, the peak would be 28.0 MiB instead of 42.0 MiB"
    )
    evidence = finding.evidence
    assert (evidence["saved_bytes"], evidence["count"], evidence["line"]) == (14 * MIB, 4, 20)
    assert "fused=True" in finding.suggestion


def test_one_that_is_written_by_hand():
    by_hand = ["aten::mul", ("step", "/v/site-packages/torch/optim/optimizer.py", 484), MAIN]
    (finding,) = of_kind(job(by_hand), "huge_temporary")
    assert "made by step (optimizer.py:484)" in finding.title
    # Equal sizes may be of one weight, unless the function says that it goes over all.
    equal = (4 * MIB,) * 4
    assert of_kind(job(by_hand, sizes=equal), "huge_temporary") == []
    (finding,) = of_kind(job(FOREACH, sizes=equal), "huge_temporary")
    assert finding.evidence["count"] == 4


@each_row(
    "options",
    [
        # From weight to weight, state that lives on, what a later pass frees.
        {"stack": EACH, "at_once": False},
        {"stack": FOREACH, "lives": True},
        # No optimizer, none of its step, and a peak that is elsewhere.
        {"stack": [("scale", "/me/train.py", 9), MAIN]},
        {"stack": CLEAR},
        {"stack": FOREACH, "outside": True},
        # Little of the peak.
        {"stack": FOREACH, "sizes": (2 * MIB, MIB, MIB, MIB)},
    ],
)
def test_what_is_none(options):
    assert not [
        one for one in of_kind(job(**options), "huge_temporary") if "optimizer" in one.title
    ]


def job_of_optimizer_slots(
    slots, *, update="train/ResourceApplyAdam_1", zeros="Fill", weight="AddV2"
):
    """Two weights with so many slots each, and two steps that make a gradient and update."""
    rows = []
    for n, size in enumerate((3, 2)):
        shape = f"[{size}, 1024]"
        rows.append(alloc(10 * n, size * MIB, op=weight, shape=shape))
        rows += [alloc(10 * n + 1 + k, size * MIB, op=zeros, shape=shape) for k in range(slots)]
    begins = [len(rows)]
    for _ in range(4):
        rows += [alloc(90, MIB, op="grad/MatMul", shape="[3, 1024]"), free(90)]
        rows += [alloc(91, MIB, op=update, shape="[3, 1024]"), free(91)]
        begins.append(len(rows))
    return of_kind(profile_with(rows, steps_at(*begins)), "optimizer_state")


def test_state_that_no_update_needs():
    (finding,) = job_of_optimizer_slots(4)
    assert finding.severity == "warning"
    assert finding.evidence["saved_bytes"] == 10 * MIB
    assert (finding.evidence["op"], finding.evidence["count"]) == ("Fill", 4)
    assert finding.title.endswith(
        "the state of the optimizer is there twice: 8 buffers of zeros (Fill [3, 1024] first), "
        "where train/ResourceApplyAdam_1 needs 4 for these weights"
    )


@each_row(
    "given",
    [
        # What Adam has, with gradients that are added up; an optimizer with one slot; a program
        # whose weights are from before; what is no zeros.
        {"slots": 2},
        {"slots": 3},
        {"slots": 2, "update": "ResourceApplyMomentum"},
        {"slots": 4, "update": "ResourceApplyMomentum"},
        {"slots": 4, "update": "AssignSubVariableOp"},
        {"slots": 4, "weight": "Fill"},
        {"slots": 4, "zeros": "RandomUniform"},
    ],
)
def test_what_is_no_second_state(given):
    assert job_of_optimizer_slots(**given) == []
