"""What a large temporary is: an intermediate that a fused or rearranged computation never makes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from peakline.arrays import IntpArray
from peakline.memory.at_peak import AtPeak
from peakline.memory.broadcasts import (
    LOOKUPS,
    is_broadcast,
    is_for_each_pair,
    is_table,
    is_written_out,
)
from peakline.memory.composition import gradients
from peakline.memory.op_events import OpEvents
from peakline.memory.origins import Origins
from peakline.memory.repeats import REPEATS, WRITTEN_OUT, is_elementwise, joins_repeated
from peakline.memory.signatures import History, dimensions
from peakline.trace.work_classes import Work, work_of

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
    found: AtPeak,
    codes: tuple[int, ...],
    types: Mapping[str, str],
    origins: Origins | None,
    ops: OpEvents | None,
) -> Materialised | None:
    """What the temporaries of the signatures ``codes`` are, None for those that a model needs:
    results of products and convolutions, and what has their shape.

    ``types`` has the types of ops by name.
    """
    own = history.rows_of(found.allocator)
    mine = own[np.isin(history.signatures.codes[own], codes)]
    if not mine.size:
        return None
    if found.starts.size:
        step = np.searchsorted(found.starts, mine, "right") - 1
        inside = mine[step == found.own_step]
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
        is_one = not is_needed and joins_repeated(history, found, first, of_row)
        return Materialised(REPEATED, first) if is_one else None
    is_softmax = any(one in _SOFTMAX for one in made) or _has_softmax(history, first, types)
    if any(one in _BATCHED for one in made) and is_softmax:
        return Materialised(ATTENTION, first) if _is_square(history, first) else None
    # A product of that shape is what the model needs, whatever else has its shape.
    if any(work_of("", one) == Work.MATMUL for one in made):
        return None
    is_repeated = root in REPEATS and any(is_elementwise(one) for one in made)
    is_table_of = is_repeated and is_table(history, found, first)
    if root in WRITTEN_OUT and (is_table_of or is_written_out(history, first, ops)):
        return Materialised(BROADCAST, first)
    if root in _AS_LARGE or not (is_repeated or is_elementwise(root)):
        return None
    is_one = is_broadcast(history, found, first, codes, ops)
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
    found: list[int] = rows[np.sort(first)].tolist()
    return found


def _type(history: History, row: int, types: Mapping[str, str], origins: Origins | None) -> str:
    """The type of the op that made a buffer, in lower case: the outermost of nested ones."""
    op = history.signatures[int(history.signatures.codes[row])].op
    stack = None if origins is None else origins.of(np.array([row]))[0]
    if stack is not None and stack.types and not stack.ops:
        return stack.types[0]
    if stack is not None and stack.ops:
        inner = [one for one in stack.ops if one.startswith("aten::")]
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
