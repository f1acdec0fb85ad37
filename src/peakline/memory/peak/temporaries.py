"""What a large temporary is: an intermediate that a fused or rearranged computation never makes.

It is blown up: a broadcast of smaller tensors, or rows that are looked up again and again, in a
form that another order of the same computation never makes. Or it was repeated for each of many
items, and then joined to them or computed with: framework functions that repeat write every copy
out (``tf.tile`` and ``tf.repeat``, ``jnp.tile``, ``torch.Tensor.repeat``, where ``expand`` makes a
view; their pages of PyTorch's documentation). A product with what is joined is the sum of a product
with each part, so the part that is the same for many items need not be repeated before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from peakline.arrays import IntpArray
from peakline.memory.origins.op_events import OpEvents
from peakline.memory.origins.stacks import Origins
from peakline.memory.peak.buffers import AtPeak
from peakline.memory.peak.copies import gradients
from peakline.memory.signatures import History, dimensions
from peakline.trace.op_inputs import DIMS
from peakline.trace.work_classes import Work, work_of

REPEATS = frozenset((
    "tile", "repeat", "repeat_interleave", "broadcastto", "broadcast_to", "broadcast_in_dim",
    "expand", "expand_as",
))  # fmt: skip
"""Ops that write a tensor again and again."""
WRITTEN_OUT = frozenset(("tile", "repeat", "repeat_interleave"))
"""Those of them that never are views."""
_PART = 0.25
"""What is repeated is so much of what it is joined into, or more."""
_DEEP = 3
"""Items of several examples, each a vector, make so many dimensions."""
_COMBINES = frozenset(
    "gt ge lt le ne eq greaterequal lessequal notequal greater_equal less_equal "
    "not_equal where select selectv2 logaddexp logaddexp2 xlogy xdivy hypot exp2 remainder "
    "floormod floordiv floor_divide true_divide bitwise_and bitwise_or bitwise_xor "
    "bitwiseand bitwiseor bitwisexor logicaland logicalor logicalnot __and__ __or__ __xor__ "
    "isclose heaviside copysign fmax fmin complex polar mse_loss l1_loss smooth_l1_loss "
    "huber_loss kl_div cosine_similarity pairwise_distance".split()
)
"""Element-wise ops that `peakline.trace.work_classes` has no kind for, and functions of them."""
_ELEMENTWISE = frozenset((Work.ELEMENTWISE, Work.CAST, Work.LAYOUT))


def is_elementwise(op_type: str) -> bool:
    """Whether an op makes each number of its result of one of each of its inputs, which broadcast;
    copies of what is broadcast already count too. Products and recurrent layers make what they
    need.
    """
    is_known = op_type in _COMBINES or op_type.rstrip("_") in _COMBINES
    return is_known or work_of(f"aten::{op_type}", "") in _ELEMENTWISE


def joins_repeated(
    history: History, result: AtPeak, joined: int, type_of: Callable[[int], str]
) -> bool:
    """Whether an op joined what had been repeated to other tensors of as many items: the buffer of
    the record ``joined`` has three dimensions or more, and when it was made a buffer of the same
    step lived that an op that repeats had made, a part of it, with the same dimensions but one; as
    far as dimensions are recorded.
    """
    sides = _recorded_sides(history, joined)
    if 0 < len(sides) < _DEEP:
        return False
    own = history.rows_of(result.allocator)
    before = own[: int(np.searchsorted(own, joined))]
    if result.starts.size:
        step = int(np.searchsorted(result.starts, joined, "right"))
        before = before[np.searchsorted(result.starts, before, "right") == step]
    whole, end = int(history.requested[joined]), history.lifetimes.end[before]
    is_part = (history.requested[before] >= _PART * whole) & (history.requested[before] < whole)
    parts = before[is_part & ((end < 0) | (end > joined))]
    parts = parts[history.signatures.codes[parts] >= 0]
    first = np.unique(history.signatures.codes[parts], return_index=True)[1]
    return any(
        (not sides or _differ_in_one(sides, _recorded_sides(history, row)))
        and type_of(row) in REPEATS
        for row in parts[first].tolist()
    )


def _recorded_sides(history: History, row: int) -> tuple[int, ...]:
    return dimensions(history.signatures[int(history.signatures.codes[row])].shape) or ()


def _differ_in_one(joined: tuple[int, ...], part: tuple[int, ...]) -> bool:
    """Whether ``part`` is shorter in one dimension, and as long in the others."""
    differ = [a > b for a, b in zip(joined, part, strict=False) if a != b]
    return len(joined) == len(part) and differ == [True]


BLOWN_UP = 3.0
"""A temporary is blown up when it is so many times as large as the largest buffer of another form,
..."""
BROADCASTS = 2.0
"""... or so many times as large as the largest input of its op, where that is recorded."""
WRITTEN = 16.0
"""What is written again and again is so many times as large as what the op read."""
DEEP = 3
"""Pairs of vectors make a tensor of so many dimensions, of which the last is summed up. With fewer,
pairs of numbers, the result itself may be needed: unless an op on record reduces it."""
LOOKUPS = frozenset(("gather", "gatherv2", "resourcegather", "embedding", "index_select", "take"))
"""Ops that look up rows of a table."""
REDUCES = frozenset(
    f"aten::{name}"
    for name in "sum nansum mean prod norm linalg_vector_norm amax amin max min argmax argmin "
    "logsumexp var std any all count_nonzero".split()
)
"""Ops whose result has fewer dimensions than their input."""


def is_broadcast(
    history: History, result: AtPeak, first: int, codes: tuple[int, ...], ops: OpEvents | None
) -> bool:
    """Whether the buffer of the record ``first`` is much larger than what its op reads, else than
    any buffer of another form than ``codes``; and what it was made for is to be summed up.
    """
    if not _is_blown_up(history, result, first, codes, ops):
        return False
    sides = _sides(history, first, ops)
    if sides is None or len(sides) >= DEEP or not sides:
        return True
    return ops is not None and _is_reduced(ops, sides)


def is_table(history: History, result: AtPeak, first: int) -> bool:
    """Whether what an op wrote again and again is a table of all pairs of two vectors, larger than
    all else: two dimensions, twice as large as any buffer of another shape. Nobody needs copies of
    a vector, whatever is computed from them; images are repeated to make them larger.
    """
    sides = _sides(history, first, None)
    if sides is None or len(sides) != DEEP - 1:
        return False
    signatures = history.signatures
    own = history.rows_of(result.allocator)
    own = own[signatures.codes[own] >= 0]
    shape = signatures.shape[int(signatures.codes[first])]
    others = own[signatures.shape[signatures.codes[own]] != shape]
    size = int(history.requested[first])
    return size >= BROADCASTS * int(history.requested[others].max(initial=0))


def is_written_out(history: History, first: int, ops: OpEvents | None) -> bool:
    """Whether what an op wrote again and again is many times what it read, where that is recorded:
    broadcasting needs none of the copies. An image that is made larger is a few times as large.
    """
    read = 0 if ops is None or not ops.inputs.is_recorded else ops.elements_read(first)
    return 0 < read * 4 * WRITTEN <= int(history.requested[first])


def is_for_each_pair(history: History, first: int, ops: OpEvents | None) -> bool:
    """Whether the rows that ``first`` holds were looked up for each pair of positions: the first
    two of three or more dimensions are equal, and so are the last two, of as many positions, of
    another buffer of the allocator: scores of each pair. Rows of relative positions are often made
    so (Huang et al., Music Transformer, arXiv:1809.04281, which says how to do without).
    """
    sides = _sides(history, first, ops) or ()
    if len(sides) < DEEP or sides[0] != sides[1] or sides[0] < 2:
        return False
    texts = [*history.signatures.shapes, *(() if ops is None else ops.inputs.shapes)]
    shapes = {dimensions(text) or () for text in texts} - {sides}
    return any(len(one) >= DEEP and one[-1] == one[-2] == sides[0] for one in shapes)


def _is_blown_up(
    history: History, result: AtPeak, first: int, codes: tuple[int, ...], ops: OpEvents | None
) -> bool:
    size = int(history.requested[first])
    if ops is not None and ops.inputs.is_recorded:
        read = ops.elements_read(first)
        if read:
            wide = 8 if bool(ops.is_float64[first]) else 4
            return size >= BROADCASTS * wide * read
    own = history.rows_of(result.allocator)
    others = own[
        (history.signatures.codes[own] >= 0) & ~np.isin(history.signatures.codes[own], codes)
    ]
    return size >= BLOWN_UP * int(history.requested[others].max(initial=0))


def _sides(history: History, row: int, ops: OpEvents | None) -> tuple[int, ...] | None:
    """The dimensions of a buffer: recorded, or those that its op's inputs broadcast to, or of the
    rows that it gathers; None where neither is known.
    """
    known = dimensions(history.signatures[int(history.signatures.codes[row])].shape)
    if known or ops is None:
        return known or None
    codes, texts = ops.texts(DIMS)
    at = int(ops.event[row])
    while at >= 0:
        text = texts[int(codes[at])] if codes[at] >= 0 else ""
        if any(sign.isdigit() for sign in text):
            name = ops.names[int(ops.code[at])].removeprefix("aten::")
            return _result(name, text)
        at = int(ops.parent[at])
    return None


def _result(name: str, dims: str) -> tuple[int, ...] | None:
    try:
        read = json.loads(dims)
    except (ValueError, RecursionError):
        return None
    inputs = read if isinstance(read, list) else []
    shapes = [tuple(one) for one in inputs if isinstance(one, list)]
    if not all(isinstance(side, int) for shape in shapes for side in shape):
        return None
    if name == "embedding" and len(shapes) > 1:
        return shapes[1] + shapes[0][1:]
    try:
        return np.broadcast_shapes(*shapes)
    except (OverflowError, ValueError):
        return None


def _is_reduced(ops: OpEvents, sides: tuple[int, ...]) -> bool:
    """Whether an op of a forward pass reduces a tensor of this shape; a gradient of what was
    broadcast is summed up in any case.
    """
    shape = str(list(sides))
    if shape not in ops.inputs.shapes:
        return False
    reduces = np.array([*(name in REDUCES for name in ops.names), False], np.bool_)
    reads = ops.inputs.shape == ops.inputs.shapes.index(shape)
    at = np.flatnonzero(reads & reduces[ops.code]).astype(np.int64)
    is_forward = np.ones(at.size, np.bool_)
    while (at >= 0).any():
        is_forward &= (at < 0) | ~ops.autograd.is_node[at]
        at = np.where(at >= 0, ops.parent[at], -1)
    return bool(is_forward.any())


ATTENTION = "the whole attention matrix"
ONE_HOT = "one-hot vectors"
PATCHES = "all patches of an image (im2col)"
DENSE = "a dense gradient of an embedding"
PER_EXAMPLE = "a gradient for each example"
BROADCAST = "a broadcast intermediate"
PAIRS = "rows looked up for each pair of positions"
SPARSE = "a sparse matrix, written out with its zeros"
REPEATED = "what is the same for many items, repeated for each"

_ONE_HOT = frozenset(("onehot", "one_hot", "scatter_", "scatter"))
_PATCHES = frozenset(("im2col", "unfold", "extractimagepatches", "extractvolumepatches", "col2im"))
_DENSE = frozenset((
    "embedding_dense_backward", "unsortedsegmentsum", "embedding_backward", "scatternd",
    "index_put_", "_index_put_impl_", "tensorscatteradd",
))  # fmt: skip
_JOINS = frozenset(("concat", "concatv2", "concatenate", "cat"))
_AS_LARGE = frozenset(("stack", "pack", "pad", "padv2"))
"""What is as large as all its inputs together, or was meant to be."""
_SOFTMAX = frozenset(("softmax", "_softmax", "_softmax_backward_data", "softmax_backward_data"))
_BATCHED = frozenset(("bmm", "baddbmm", "matmul", "batchmatmul", "batchmatmulv2", "batchmatmulv3",
                      "einsum"))  # fmt: skip


@dataclass(frozen=True)
class Materialised:
    """``what`` it is, and the record of its first buffer in the step: who makes it."""

    what: str
    first: int


def materialised(
    history: History,
    result: AtPeak,
    codes: tuple[int, ...],
    types: Mapping[str, str],
    origins: Origins | None,
    ops: OpEvents | None,
) -> Materialised | None:
    """What the temporaries of the signatures ``codes`` are, None for those that a model needs:
    results of products and convolutions, and what has their shape.

    ``types`` has the types of ops by name.
    """
    own = history.rows_of(result.allocator)
    mine = own[np.isin(history.signatures.codes[own], codes)]
    if not mine.size:
        return None
    if result.starts.size:
        step = np.searchsorted(result.starts, mine, "right") - 1
        inside = mine[step == result.own_step]
        mine = inside if inside.size else mine
    made = [_type(history, int(row), types, origins) for row in _one_of_each(history, mine)]
    first = int(mine[0])
    root = made[0]
    if root in _PATCHES or any(one in _PATCHES for one in made):
        return Materialised(PATCHES, first)
    if root in _ONE_HOT:
        return Materialised(ONE_HOT, first)
    if root in _DENSE:
        sides = dimensions(history.signatures[int(history.signatures.codes[first])].shape) or ()
        # A gradient has the table's shape: rows of a width.
        is_graph = root == "scatternd" and len(sides) > 1 and sides[-1] == sides[-2]
        return Materialised(SPARSE if is_graph else DENSE, first)
    if root in LOOKUPS:
        # As many rows as are used are what a model needs.
        is_pairs = is_for_each_pair(history, first, ops) and not _has_product(
            history, mine, types, origins, ops
        )
        return Materialised(PAIRS, first) if is_pairs else None
    if root in _JOINS:
        # The gradient of a product of what is joined has its shape, and goes with it.
        is_needed = _has_product(history, mine, types, origins, ops)
        of_row = partial(_type, history, types=types, origins=origins)
        is_one = not is_needed and joins_repeated(history, result, first, of_row)
        return Materialised(REPEATED, first) if is_one else None
    is_softmax = any(one in _SOFTMAX for one in made) or _has_softmax(history, first, types)
    if any(one in _BATCHED for one in made) and is_softmax:
        return Materialised(ATTENTION, first) if _is_square(history, first) else None
    # A product of that shape is what the model needs, whatever else has its shape.
    if any(work_of("", one) == Work.MATMUL for one in made):
        return None
    is_repeated = root in REPEATS and any(is_elementwise(one) for one in made)
    is_table_of = is_repeated and is_table(history, result, first)
    if root in WRITTEN_OUT and (is_table_of or is_written_out(history, first, ops)):
        return Materialised(BROADCAST, first)
    if root in _AS_LARGE or not (is_repeated or is_elementwise(root)):
        return None
    is_one = is_broadcast(history, result, first, codes, ops)
    return Materialised(BROADCAST, first) if is_one else None


def _has_softmax(history: History, row: int, types: Mapping[str, str]) -> bool:
    """Whether a softmax ran in the scope of the op that made a buffer: TensorFlow's writes over its
    input, and allocates nothing (``forward_input_or_allocate_output`` in softmax_op.cc).
    """
    scope = history.signatures[int(history.signatures.codes[row])].op.rpartition("/")[0]
    return bool(scope) and any(
        kind.lower() in _SOFTMAX and name.startswith(f"{scope}/") for name, kind in types.items()
    )


def _has_product(
    history: History,
    rows: IntpArray,
    types: Mapping[str, str],
    origins: Origins | None,
    ops: OpEvents | None,
) -> bool:
    """Whether a product of the forward pass made one of some buffers; the gradient of a product is
    a product too.
    """
    is_backward = gradients(history) if ops is None else ops.is_backward
    made = _one_of_each(history, rows[~is_backward[rows]])
    return any(work_of("", _type(history, row, types, origins)) == Work.MATMUL for row in made)


def _one_of_each(history: History, rows: IntpArray) -> list[int]:
    """The first record of each signature, in order of time."""
    first = np.unique(history.signatures.codes[rows], return_index=True)[1]
    result: list[int] = rows[np.sort(first)].tolist()
    return result


def _type(history: History, row: int, types: Mapping[str, str], origins: Origins | None) -> str:
    """The type of the op that made a buffer, in lower case: the outermost of nested ones."""
    op = history.signatures[int(history.signatures.codes[row])].op
    stack = None if origins is None else origins.of(np.array([row]))[0]
    inner = [] if stack is None else [one for one in stack.ops if one.startswith("aten::")]
    if stack is not None and stack.types and not inner:
        # Of C++ an op may be a node of autograd, BmmBackward0: its type is that of its op.
        return stack.types[0]
    if stack is not None and stack.ops:
        outer = inner[-1] if inner else op
        return outer.removeprefix("aten::").lower()
    known = types.get(op, "")
    if known:
        return known.lower()
    last = op.rpartition("/")[2].partition("::")[2] or op.rpartition("/")[2]
    # Which of several it is (Softmax_1) says nothing; the version (BatchMatMulV2) is the type's.
    return re.sub(r"_\d+$", "", last).lower()


def _is_square(history: History, row: int) -> bool:
    """Whether the last two dimensions are equal, as far as the shape is recorded."""
    signature = history.signatures[int(history.signatures.codes[row])]
    sides = dimensions(signature.shape)
    return not sides or (len(sides) > 2 and sides[-1] == sides[-2])
