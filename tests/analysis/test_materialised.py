"""What a large temporary is, by the op that makes it, its shape and what else there is."""

from tests.analysis.histories import history, steps_at
from tests.analysis.records import alloc, free
from tests.analysis.stacks import origins
from tests.each_row import each_row

from peakline.memory.marks import find_marks
from peakline.memory.peak.buffers import buffers_at_peak
from peakline.memory.peak.temporaries import (
    ATTENTION,
    BROADCAST,
    DENSE,
    ONE_HOT,
    PATCHES,
    REPEATED,
    SPARSE,
    materialised,
)

MIB = 1 << 20


def what(*ops, shape="[64, 64, 9]", types=None, stacks=None, others=MIB):
    """What the temporaries of these ops are; beside them there is a weight."""
    rows = [alloc(1, others, op="weight", shape="[3]")]
    rows += [
        alloc(10 + n, 8 * MIB, op=op, shape=shape, **({} if stacks is None else {"stack_id": n}))
        for n, op in enumerate(ops)
    ]
    rows += [free(10 + n) for n in range(len(ops))]
    made = history(rows)
    found = buffers_at_peak(made, 0, find_marks(made, 0, steps_at(0, len(rows))), made.measured)
    codes = tuple(
        number for number in range(len(made.signatures)) if made.signatures[number].op in ops
    )
    who = None if stacks is None else origins(stacks, rows)
    said = materialised(made, found, codes, types or {}, who, None)
    return None if said is None else said.what


@each_row(
    ("ops", "shape", "expected"),
    [
        (["loss/one_hot"], "[64, 9]", ONE_HOT),
        (["model/ExtractImagePatches"], "[64, 9]", PATCHES),
        (["grad/UnsortedSegmentSum"], "[64, 9]", DENSE),
        (["a/BatchMatMulV2", "a/Softmax"], "[8, 64, 64]", ATTENTION),
        (["a/BatchMatMulV2", "a/Softmax"], "[8, 64, 9]", None),
        (["a/einsum", "a/softmax"], "", ATTENTION),
        (["distances/sub"], "[64, 64, 9]", BROADCAST),
        # What a model needs: the result of a product, and what is as large as its inputs together.
        (["model/MatMul"], "[64, 9]", None),
        (["model/Relu", "model/MatMul"], "[64, 9]", None),
        (["model/concat_1"], "[64, 9]", None),
        (["model/Tile"], "[64, 9]", None),
        # ... but where an element-wise op reads it.
        (["model/Tile", "model/mul"], "[64, 64, 9]", BROADCAST),
        # A table of all pairs of two vectors, and what another shape is half as large as.
        (["model/Tile", "model/mul"], "[64, 9]", BROADCAST),
        (["metric/Tile", "metric/Greater"], "[64, 9]", BROADCAST),
        (["model/Tile", "model/mul"], "[8, 9, 64, 3]", BROADCAST),
        (["graph/ScatterNd"], "[64, 64]", SPARSE),
        (["graph/ScatterNd"], "[64, 9]", DENSE),
        (["model/Tile", "model/Reshape"], "[64, 64, 9]", None),
        # What layers make for themselves is no broadcast.
        (["aten::lstm"], "[64, 64, 9]", None),
        (["model/CudnnRNNV3"], "[64, 64, 9]", None),
        # Pairs of numbers may be what is needed, and so are rows that are looked up.
        (["distances/sub"], "[64, 64]", None),
        (["words/embedding"], "[64, 32, 9]", None),
    ],
)
def test_what_it_is(ops, shape, expected):
    assert what(*ops, shape=shape) == expected


def test_it_is_much_larger_than_what_else_there_is():
    assert what("distances/sub", others=2 * MIB) == BROADCAST
    assert what("distances/sub", others=3 * MIB) is None


def test_types_say_more_than_names():
    assert what("x", types={"x": "OneHot"}) == ONE_HOT
    assert what("one_hot", types={"one_hot": "MatMul"}) is None


def test_the_outermost_op_of_a_stack_says_it():
    assert what("aten::copy_", stacks=[["aten::copy_", "aten::one_hot"]]) == ONE_HOT
    assert what("x", stacks=[[("at::_ops::im2col::call(at::Tensor)", "??", 0)]]) == PATCHES


def joined(shape="[24, 96, 384]", *, repeat="pair/Tile", part="[24, 96, 192]", size=4, ends=False):
    """What the join of ``shape`` is, of 8 MiB, made while what was repeated lived."""
    rows = [
        alloc(1, MIB, op="weight", shape="[3]"),
        alloc(2, size * MIB, op=repeat, shape=part),
        *([free(2)] if ends else []),
        alloc(3, 8 * MIB, op="pair/concat", shape=shape),
        *([] if ends else [free(2)]),
        free(3),
    ]
    made = history(rows)
    found = buffers_at_peak(made, 0, find_marks(made, 0, steps_at(0, len(rows))), made.measured)
    signatures = made.signatures
    code = next(n for n in range(len(signatures)) if signatures[n].op == "pair/concat")
    said = materialised(made, found, (code,), {"pair/concat": "ConcatV2"}, None, None)
    return None if said is None else said.what


def test_a_softmax_that_allocates_nothing():
    scores = "attention/MatMul_1"
    types = {scores: "BatchMatMulV2", "attention/Softmax": "Softmax", "logits/Softmax": "Softmax"}
    assert what(scores, shape="[8, 64, 64]", types=types) == ATTENTION
    del types["attention/Softmax"]
    assert what(scores, shape="[8, 64, 64]", types=types) is None


def test_what_is_repeated_and_joined():
    assert joined() == REPEATED
    assert joined(repeat="pair/BroadcastTo") == REPEATED
    # What is not repeated, is a small part (coordinates of pixels), has other items, or is gone.
    assert joined(repeat="pair/Relu") is None
    assert joined(part="[24, 96, 2]", size=1) is None
    assert joined(part="[96, 24, 192]") is None
    assert joined("[24, 384]", part="[24, 192]") is None
    # PyTorch's allocator records no shapes.
    assert joined("", part="") == REPEATED
    assert joined("", part="", repeat="pair/Relu") is None
    assert joined(ends=True) is None
