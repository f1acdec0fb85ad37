"""Floating point operations of one execution, where TensorFlow has a formula for the op.

The formulas are those that TensorFlow registers as ``flops`` statistics
(tensorflow/python/profiler/internal/flops_registry.py, tensorflow/python/ops/nn_ops.py). They need
all shapes they speak of, and convolution and pooling the data format NHWC.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.deadline import checked
from peakline.tfprof.graph import OpGraph
from peakline.tfprof.shapes import Shapes, parse_shape


class _Unknown(Exception):
    """A shape or an attribute that the formula needs is not known."""


@dataclass(frozen=True, eq=False)
class _Node:
    """One node as the formulas see it."""

    number: int
    graph: OpGraph
    shapes: Shapes
    inputs: range

    def input(self, place: int) -> tuple[int, ...]:
        """The shape of an input."""
        if place >= len(self.inputs):
            raise _Unknown
        row = self.inputs[place]
        return self._shape(int(self.graph.sources[row]), int(self.graph.ports[row]))

    @property
    def output(self) -> tuple[int, ...]:
        """The shape of the first output."""
        return self._shape(self.number, 0)

    def sizes(self, attribute: str) -> tuple[int, ...]:
        """An attribute that is a list of numbers."""
        return parse_shape(self.graph.attribute(attribute).get(self.number, "[]")) or ()

    def flag(self, attribute: str) -> bool:
        """An attribute that is true or false."""
        return self.graph.attribute(attribute).get(self.number) == "true"

    def require_nhwc(self) -> None:
        """Raise for another data format; NHWC is what an absent attribute means."""
        if self.graph.attribute("data_format").get(self.number, "NHWC") != "NHWC":
            raise _Unknown

    def _shape(self, node: int, port: int) -> tuple[int, ...]:
        known = self.shapes.get(node, [])
        shape = known[port] if node >= 0 and port < len(known) else None
        if shape is None or min(shape, default=0) < 0:
            raise _Unknown
        return shape


_Formula = Callable[[_Node], float]


def _per_input_element(flops: int) -> _Formula:
    return lambda node: math.prod(node.input(0)) * flops


def _per_output_element(flops: int) -> _Formula:
    return lambda node: math.prod(node.output) * flops


def _reduction(finalize: int) -> _Formula:
    # One operation joins two elements, so a result costs one less than it has elements.
    return lambda node: math.prod(node.input(0)) + math.prod(node.output) * (finalize - 1)


def _add_n(node: _Node) -> float:
    if not len(node.inputs):
        return 0
    return math.prod(node.input(0)) * (len(node.inputs) - 1)


def _matmul(rows: int, columns: int) -> _Formula:
    """``rows`` and ``columns`` are the axes of the matrix in the shape of the first input."""

    def flops(node: _Node) -> float:
        shape = node.input(0)
        if len(shape) < 2:
            raise _Unknown
        inner = shape[rows if node.flag("transpose_a") else columns]
        return 2 * inner * math.prod(node.output)

    return flops


def _convolution(filter_sizes: int) -> _Formula:
    """Two operations per element of the output and per weight that goes into it.

    Those are the first ``filter_sizes`` sizes of the filter multiplied.
    """

    def flops(node: _Node) -> float:
        node.input(0)
        weights = node.input(1)
        if len(weights) < filter_sizes:
            raise _Unknown
        return 2 * math.prod(node.output) * math.prod(weights[:filter_sizes])

    return flops


def _convolution_gradient(image: tuple[int, ...], kernel: tuple[int, ...], node: _Node) -> float:
    node.require_nhwc()
    strides = node.sizes("strides")
    if len(strides) < 3 or not image or not image[-1] * strides[1] * strides[2]:
        raise _Unknown
    # A floating point division, whose result is cut, as in the original.
    return 2 * math.prod(image) * math.prod(kernel) / (image[-1] * (strides[1] * strides[2]))


def _pool(node: _Node) -> float:
    node.require_nhwc()
    return math.prod(node.sizes("ksize")) * math.prod(node.output)


def _average_pool_gradient(node: _Node) -> float:
    node.require_nhwc()
    return math.prod(node.sizes("ksize")) * math.prod(node.input(1)) * 2


def _max_pool_gradient(node: _Node) -> float:
    node.require_nhwc()
    # The pooling is done again, and each element of its output goes to one place.
    return (math.prod(node.sizes("ksize")) + 1) * math.prod(node.input(1))


_FORMULAS: Mapping[str, _Formula] = {
    **dict.fromkeys(
        "Reciprocal Square Log Neg AssignSub AssignAdd BiasAdd".split(), _per_input_element(1)
    ),
    "Rsqrt": _per_input_element(2),
    "Softmax": _per_input_element(5),
    "L2Loss": lambda node: 3 * math.prod(node.input(0)) - 1,
    **dict.fromkeys(
        "Add AddV2 Sub Mul RealDiv Maximum Minimum Pow GreaterEqual Greater LessEqual Less Equal"
        " NotEqual".split(),
        _per_output_element(1),
    ),
    "SquaredDifference": _per_output_element(2),
    "RsqrtGrad": _per_output_element(4),
    "Mean": _reduction(1),
    **dict.fromkeys("Sum ArgMax ArgMin BiasAddGrad".split(), _reduction(0)),
    **dict.fromkeys(("AvgPool", "MaxPool"), _pool),
    "AvgPoolGrad": _average_pool_gradient,
    "MaxPoolGrad": _max_pool_gradient,
    "Conv2DBackpropInput": lambda node: _convolution_gradient(node.output, node.input(1), node),
    "Conv2DBackpropFilter": lambda node: _convolution_gradient(node.input(0), node.output, node),
    "Conv2D": _convolution(3),
    "Conv3D": _convolution(4),
    **dict.fromkeys(("DepthwiseConv2dNative", "Dilation2D"), _convolution(2)),
    "AddN": _add_n,
    "MatMul": _matmul(0, 1),
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _matmul(-2, -1)),
}


def float_ops(graph: OpGraph, shapes: Shapes) -> Int64Array:
    """Per node, the operations of one execution; 0 where that is not known."""
    flops = np.zeros(len(graph.names), np.int64)
    nodes = [number for number, op in enumerate(graph.ops) if op in _FORMULAS]
    begin = np.searchsorted(graph.targets, nodes).tolist()
    end = np.searchsorted(graph.targets, nodes, "right").tolist()
    most = np.iinfo(np.int64).max
    for number, first, last in checked(zip(nodes, begin, end, strict=True)):
        node = _Node(number, graph, shapes, range(first, last))
        try:
            result = int(_FORMULAS[graph.ops[number]](node))
        except (_Unknown, OverflowError):
            continue
        flops[number] = max(-most, min(result, most))
    return flops
