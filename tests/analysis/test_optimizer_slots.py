"""Slots of TensorFlow's optimizers that are made twice."""

from tests.analysis.histories import steps_at
from tests.analysis.records import alloc, free
from tests.analysis.stacks import of_kind, profile_with
from tests.each_row import each_row

MIB = 1 << 20


def job(slots, *, update="train/ResourceApplyAdam_1", zeros="Fill", weight="AddV2"):
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
    (finding,) = job(4)
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
    assert job(**given) == []
