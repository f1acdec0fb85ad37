"""Shapes as text and as tuples, and what shapes the outputs of nodes have.

tfprof takes shapes from the graph as Python builds it, completed by what the run's outputs had
(tensorflow/python/profiler/tfprof_logger.py). Here they come from ``_output_shapes``, which
``as_graph_def(add_shapes=True)`` writes, from constants, placeholders and variables, and from the
run.
"""

from __future__ import annotations

import numpy as np

from peakline.arrays import Int64Array
from peakline.deadline import checked
from peakline.tables import Columns
from peakline.text import remembered, whole_number
from peakline.tfprof.graph import OpGraph

_MOST_DIMENSIONS = 254
"""Of a tensor (tensorflow/core/framework/tensor_shape.h)."""

Shape = tuple[int, ...] | None
"""Sizes, -1 where unknown; None when not even the rank is known."""

Shapes = dict[int, list[Shape]]
"""By node: the shapes of its outputs, as far as they are known."""

_SHAPED_BY_ATTRIBUTE = {
    "Placeholder",
    "PlaceholderV2",
    "Variable",
    "VariableV2",
    "TemporaryVariable",
}
"""Ops whose only output has the shape that their attribute ``shape`` says."""


def parse_shape(text: str) -> Shape:
    """``[3, ?, rows=2]`` as ``(3, -1, 2)``; None for anything that is not a list of sizes, and of
    more than TensorFlow takes.
    """
    return None if text.count(",") >= _MOST_DIMENSIONS else _parsed(text)


@remembered(1 << 16)
def _parsed(text: str) -> Shape:
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    inner = text[1:-1]
    sizes = [size.rpartition("=")[2].strip() for size in inner.split(",")] if inner else []
    numbers = tuple(number for number in map(_number, sizes) if number is not None)
    return numbers if len(numbers) == len(sizes) else None


def _number(size: str) -> int | None:
    """-1 where it is not known; None for what is no size of 63 bits."""
    number = -1 if size == "?" else whole_number(size, 19)
    return number if number is not None and number < 1 << 63 else None


def parse_shapes(text: str) -> tuple[Shape, ...]:
    """``[[3, ?], [], <unknown>]``: a list of shapes."""
    items: list[str] = []
    depth = start = 0
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return ()
    inner = text[1:-1]
    for at, character in enumerate(inner):
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            items.append(inner[start:at])
            start = at + 1
    if inner.strip():
        items.append(inner[start:])
    return tuple(parse_shape(item) for item in items)


def output_shapes(graph: OpGraph, outputs: Columns | None, node_of_run: Int64Array) -> Shapes:
    """The shapes of the outputs of the graph's nodes.

    ``outputs`` is the table ``op_outputs``; ``node_of_run`` says which node of the graph an
    execution is of, -1 for none.
    """
    shapes: Shapes = {
        node: list(parse_shapes(text))
        for node, text in checked(graph.attribute("_output_shapes").items())
    }
    counted = set(shapes)
    _from_attributes(graph, shapes)
    if outputs is not None and outputs.rows:
        for node, result in checked(_of_runs(outputs, node_of_run)):
            if node in counted and len(result) != len(shapes[node]):
                # A conditional op has one output at run time, and nothing says which.
                continue
            known = shapes.setdefault(node, [])
            known += [None] * (len(result) - len(known))
            for port, shape in enumerate(result):
                known[port] = _merge(known[port], shape)
    return shapes


def _from_attributes(graph: OpGraph, shapes: Shapes) -> None:
    for name, ops in (("shape", _SHAPED_BY_ATTRIBUTE), ("value", {"Const"})):
        for node, text in checked(graph.attribute(name).items()):
            if node not in shapes and graph.ops[node] in ops:
                # A constant's text is type, shape and size.
                inside = text[text.find("[") : text.find("]") + 1]
                shapes[node] = [parse_shape(inside)]


def _of_runs(outputs: Columns, node_of_run: Int64Array) -> list[tuple[int, list[Shape]]]:
    """The outputs of one execution per node and number of outputs, the first of them."""
    run = outputs.array("op_run_id")
    node = node_of_run[run]
    count = np.bincount(run)
    # Slots with a gap: more outputs than were written, so places in the list say nothing.
    highest = np.zeros(count.size, np.int64)
    np.maximum.at(highest, run, outputs.array("slot"))
    rows = np.flatnonzero((node >= 0) & (highest + 1 == count)[run])
    _, first = np.unique(np.stack([node[rows], count[run[rows]]]), axis=1, return_index=True)
    rows = rows[np.isin(run[rows], run[rows[first]])]
    text = outputs.names("shape")
    # An output without a description counts as a scalar, as in the original.
    shape = [*(parse_shape(value) or () for value in text.values), ()]
    result: list[tuple[int, list[Shape]]] = []
    last = -1
    for execution, number, code in zip(
        run[rows].tolist(), node[rows].tolist(), text.codes[rows].tolist(), strict=True
    ):
        if execution != last:
            result.append((number, []))
            last = execution
        result[-1][1].append(shape[code])
    return result


def _merge(known: Shape, seen: Shape) -> Shape:
    """``known`` completed by ``seen``; as it is where they contradict each other."""
    if known is None or seen is None:
        return seen if known is None else known
    if len(known) != len(seen):
        return known
    if any(a >= 0 and a != b for a, b in zip(known, seen, strict=True)):
        return known
    return seen
