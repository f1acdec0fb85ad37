"""Single buffers as large as all weights together."""

from tests.analysis.records import alloc
from tests.analysis.stacks import of_kind, profile_with
from tests.each_row import each_row

MIB = 1 << 20
SIZES = (4 * MIB, 3 * MIB, 2 * MIB, MIB)
MAIN = ("main", "/me/train.py", 2)
MAKE = ["aten::empty", ("build", "/me/train.py", 8), MAIN]
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
