"""Which large temporaries are blown up: a broadcast of smaller tensors, or rows that are looked up
again and again, in a form that another order of the same computation never makes.
"""

from __future__ import annotations

import json

import numpy as np

from peakline.memory.at_peak import AtPeak
from peakline.memory.op_events import OpEvents
from peakline.memory.signatures import History, dimensions
from peakline.trace.op_inputs import DIMS

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
    history: History, found: AtPeak, first: int, codes: tuple[int, ...], ops: OpEvents | None
) -> bool:
    """Whether the buffer of the record ``first`` is much larger than what its op reads, else than
    any buffer of another form than ``codes``; and what it was made for is to be summed up.
    """
    if not _is_blown_up(history, found, first, codes, ops):
        return False
    sides = _sides(history, first, ops)
    if sides is None or len(sides) >= DEEP or not sides:
        return True
    return ops is not None and _is_reduced(ops, sides)


def is_table(history: History, found: AtPeak, first: int) -> bool:
    """Whether what an op wrote again and again is a table of all pairs of two vectors, larger than
    all else: two dimensions, twice as large as any buffer of another shape. Nobody needs copies of
    a vector, whatever is computed from them; images are repeated to make them larger.
    """
    sides = _sides(history, first, None)
    if sides is None or len(sides) != DEEP - 1:
        return False
    signatures = history.signatures
    own = history.rows_of(found.allocator)
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
    history: History, found: AtPeak, first: int, codes: tuple[int, ...], ops: OpEvents | None
) -> bool:
    size = int(history.requested[first])
    if ops is not None and ops.inputs.is_recorded:
        read = ops.elements_read(first)
        if read:
            wide = 8 if bool(ops.is_float64[first]) else 4
            return size >= BROADCASTS * wide * read
    own = history.rows_of(found.allocator)
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
    except ValueError:
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
