"""Names of nodes and functions, each there once; inputs: their form, order, and what they name.

The form of a name is that of ``IsValidNodeName`` (tensorflow/core/framework/node_def_util.cc),
which is wider than the comment in graph.proto: parts that begin with a letter, digit or dot and go
on with these and ``_ / -``, joined by ``>``. Graphs that the runtime made, and function bodies, may
also hold names that begin with ``_``.

Outside functions an input is ``node``, ``node:k`` or ``^node``. In a function body it is
``argument``, ``node:output_argument`` (all of a list), ``node:output_argument:k`` or ``^node``.
Sources: ``ParseTensorName`` (tensorflow/core/graph/tensor_id.cc), ``BuildNodeIndex`` and
``InitFromEdges`` (tensorflow/core/common_runtime/graph_constructor.cc) and
``InstantiateFunction`` (tensorflow/core/framework/function.cc).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.graph.index import GraphIndex, short_name
from peakline.graph.rules import BrokenRule, broken_at, quoted
from peakline.graph.signatures import Signatures
from peakline.tables.columns import Columns

_PART = r"[A-Za-z0-9.][A-Za-z0-9_./\-]*"
NODE_NAME = rf"[A-Za-z0-9_.][A-Za-z0-9_./\-]*(?:>{_PART})*"
"""A node's name, internal ones included."""

_NODE = re.compile(rf"{_PART}(?:>{_PART})*")
_INTERNAL = re.compile(NODE_NAME)


def check_names(
    index: GraphIndex, internal: frozenset[str], repeated: frozenset[tuple[str, str]]
) -> Iterator[BrokenRule]:
    """Names of nodes, and their ops.

    ``internal`` are the graphs that the runtime made; ``repeated`` are functions (graph and
    name) that a library has twice, whose nodes cannot be distinguished.
    """
    yield from _ill_formed(index, internal)
    ops = index.nodes.names("op")
    for row in np.flatnonzero(ops.codes == ops.code_of("")).tolist():
        yield broken_at(index, row, "missing_op", "the node does not say which op it is")
    yield from _duplicates(index, repeated)


def _ill_formed(index: GraphIndex, internal: frozenset[str]) -> Iterator[BrokenRule]:
    values = index.strings.values
    used = np.unique(index.node_name).tolist()
    bad = [code for code in used if not _NODE.fullmatch(values[code])]
    if not bad:
        return
    worst = {code for code in bad if not _INTERNAL.fullmatch(values[code])}
    for row in np.flatnonzero(np.isin(index.node_name, bad)).tolist():
        code = int(index.node_name[row])
        scope = index.scopes[int(index.node_scope[row])]
        if code in worst:
            yield broken_at(index, row, "node_name", _complaint(values[code]))
        elif scope.function is None and scope.graph not in internal:
            message = f"{quoted(values[code])} begins with '_', which only the runtime's nodes may"
            yield broken_at(index, row, "node_name", message)


def _complaint(name: str) -> str:
    if not name:
        return "the node has no name"
    strange = sorted(set(re.findall(r"[^A-Za-z0-9_./>\-]", name)))
    if strange:
        result = " ".join(repr(character) for character in strange[:5])
        return f"{quoted(name)} holds {result}; names are made of letters, digits and . _ / - >"
    return f"{quoted(name)}: every part between '>' begins with a letter, a digit or '.'"


def _duplicates(index: GraphIndex, repeated: frozenset[tuple[str, str]]) -> Iterator[BrokenRule]:
    merged = np.array([(scope.graph, scope.function) in repeated for scope in index.scopes], bool)
    keys = (index.node_scope << 32) | index.node_name
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    for row, count in zip(first[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        if not merged[index.node_scope[row]]:
            yield broken_at(index, row, "duplicate_node", f"{count} nodes have this name")
    inputs = index.find_inputs(index.node_scope, index.node_name)
    for row in np.flatnonzero(inputs >= 0).tolist():
        message = "the node has the name of an argument of its function"
        yield broken_at(index, row, "duplicate_node", message)


def repeated_functions(functions: Columns) -> frozenset[tuple[str, str]]:
    """Graph and name of the functions that a library has more than once."""
    result = Counter((graph or "", name or "") for graph, name in functions.each("graph", "name"))
    return frozenset(function for function, count in result.items() if count > 1)


def check_functions(repeated: frozenset[tuple[str, str]]) -> Iterator[BrokenRule]:
    """That a library has every function once."""
    for graph, name in sorted(repeated):
        message = "several functions of the library have this name"
        yield BrokenRule("duplicate_function", short_name(name), message, graph)


_OUTSIDE = re.compile(rf"\^{NODE_NAME}|{NODE_NAME}(?::\d+)?")
_INDEX = r"(?:0|[1-9]\d*)"
_BODY = re.compile(rf"\^{NODE_NAME}|{NODE_NAME}(?::{_INDEX}|:[A-Za-z]\w*(?::{_INDEX})?)?", re.ASCII)
_OUTPUT = re.compile(r"[A-Za-z]\w*", re.ASCII)
_BODY_CONTROL = re.compile(rf"\^({NODE_NAME}):.*", re.DOTALL)


def check_inputs(index: GraphIndex, signatures: Signatures) -> Iterator[BrokenRule]:
    """Every input of every node."""
    inputs = _Inputs(index, signatures)
    yield from inputs.order()
    yield from inputs.references()


class _Inputs:
    """The edges with what the rules look at."""

    def __init__(self, index: GraphIndex, signatures: Signatures) -> None:
        self._index, self._signatures = index, signatures
        edges = index.edges
        self._control = edges.array("is_control").astype(np.bool_)
        self._output = edges.array("source_output")
        self._raw = edges.names("input")
        self._argument = edges.names("source_argument")
        self._in_body = edges.names("function").codes >= 0
        self._there: dict[tuple[int, str], bool] = {}

    def _text(self, edge: int) -> str:
        """The input as it was written."""
        raw = self._raw[edge]
        if raw is not None:
            return raw
        source = self._index.edges.names("source")[edge] or ""
        if self._control[edge]:
            return f"^{source}"
        argument, output = self._argument[edge], int(self._output[edge])
        if argument is not None:
            return f"{source}:{argument}:{output}"
        return f"{source}:{output}" if output else source

    def _broken(self, edge: int, rule: str, message: str) -> BrokenRule:
        index = self._index
        scope = index.scopes[int(index.edge_scope[edge])]
        target = index.edges.names("target")[edge] or ""
        return BrokenRule(rule, scope.path(target), message, scope.graph)

    def order(self) -> Iterator[BrokenRule]:
        """That data inputs precede control inputs."""
        edges, index = self._index.edges, self._index
        if not edges.rows:
            return
        starts_control = self._control.copy()
        starts_control |= self._raw.per_row(lambda value: value.startswith("^"), np.bool_)
        place = edges.array("target_input")
        # Inputs of a node are neighbours in their order.
        follows = np.zeros(edges.rows, np.bool_)
        follows[1:] = (
            (place[1:] == place[:-1] + 1)
            & (index.edge_target[1:] == index.edge_target[:-1])
            & (index.edge_scope[1:] == index.edge_scope[:-1])
        )
        wrong = follows & ~starts_control
        wrong[1:] &= starts_control[:-1]
        named: set[int] = set()
        for edge in np.flatnonzero(wrong).tolist():
            node = edge - int(place[edge])
            if node not in named:
                named.add(node)
                before = quoted(self._text(edge - 1))
                message = f"input {place[edge]} {quoted(self._text(edge))} comes after {before}; "
                message += "data inputs come before control inputs"
                yield self._broken(edge, "input_order", message)

    def references(self) -> Iterator[BrokenRule]:
        """That every input has a valid form and comes from somewhere."""
        index, in_body = self._index, self._in_body
        is_node = index.source_row >= 0
        is_argument = index.find_inputs(index.edge_scope, index.edge_source)
        has_output = self._argument.codes >= 0
        plain = in_body & ~self._control & ~has_output
        # A node's output is named in a body; an argument is not, and has no second value.
        good = np.where(plain, is_argument >= 0, is_node)
        good |= in_body & self._control & (is_argument >= 0)
        single = plain & (is_argument >= 0) & (self._output > 0)
        good[single] = self._signatures.is_list[is_argument[single]]
        odd = np.array([not _OUTPUT.fullmatch(name) for name in self._argument.values] + [False])
        suspects = np.flatnonzero(
            ~good | (in_body & (self._raw.codes >= 0)) | odd[self._argument.codes].astype(np.bool_)
        )
        for edge in suspects.tolist():
            yield from self._reference(edge, good=bool(good[edge]))
        called = self._calls(np.flatnonzero(good & ~self._control & is_node))
        for edge in called.tolist():
            yield from self._call_output(edge)

    def _reference(self, edge: int, *, good: bool) -> Iterator[BrokenRule]:
        text, in_body = self._text(edge), bool(self._in_body[edge])
        form = _BODY if in_body else _OUTSIDE
        where = f"input {self._index.edges.array('target_input')[edge]} is {quoted(text)}"
        if in_body and (control := _BODY_CONTROL.fullmatch(text)):
            # What follows the node is not looked at.
            good = self._is_there(edge, control[1])
        elif not form.fullmatch(text):
            yield self._broken(edge, "input_syntax", f"{where}, which is no {_forms(in_body)}")
            return
        if not good:
            yield self._broken(edge, "unknown_input", f"{where}, {self._why(edge, text)}")

    def _is_there(self, edge: int, name: str) -> bool:
        index = self._index
        scope = index.edge_scope[edge : edge + 1]
        key = int(scope[0]), name
        if key not in self._there:
            code = np.array([index.strings.code(name)], np.int64)
            result = index.find_nodes(scope, code)[0], index.find_inputs(scope, code)[0]
            self._there[key] = max(result) >= 0
        return self._there[key]

    def _why(self, edge: int, text: str) -> str:
        """Why a well-formed input is refused."""
        name = text.removeprefix("^").partition(":")[0]
        if not self._in_body[edge]:
            return f"but the graph has no node {quoted(name)}"
        if not self._is_there(edge, name):
            return f"but the function has no node or argument {quoted(name)}"
        if ":" not in text:
            return "which is a node: write node:output_argument:index"
        index, at = self._index, slice(edge, edge + 1)
        if index.find_inputs(index.edge_scope[at], index.edge_source[at])[0] >= 0:
            return f"but the argument {quoted(name)} is a single value"
        return f"but {quoted(text)} names no output: write node:output_argument:index"

    def _calls(self, edges: AnyArray) -> Int64Array:
        """Those ``edges`` whose source calls a function of the library."""
        if not self._signatures.functions:
            return np.zeros(0, np.int64)
        ops = self._index.nodes.names("op")
        known = {name for _, name in self._signatures.functions}
        is_call = np.array([op in known for op in ops.values], np.bool_)
        return edges[is_call[ops.codes[self._index.source_row[edges]]]]

    def _call_output(self, edge: int) -> Iterator[BrokenRule]:
        """That an output of a call is one that the function's signature has."""
        index = self._index
        op = index.nodes.names("op")[int(index.source_row[edge])] or ""
        outputs = self._signatures.outputs(index.scopes[int(index.edge_scope[edge])].graph, op)
        if outputs is None:
            return
        output, argument = int(self._output[edge]), self._argument[edge]
        where = f"input {index.edges.array('target_input')[edge]} is {quoted(self._text(edge))}"
        if not self._in_body[edge]:
            if not any(outputs.values()) and output >= len(outputs):
                message = f"{where}, but function {quoted(op)} has {len(outputs)} outputs"
                yield self._broken(edge, "unknown_input", message)
        elif argument is not None and argument not in outputs:
            message = f"{where}, but function {quoted(op)} has no output {quoted(argument)}"
            yield self._broken(edge, "unknown_input", message)
        elif argument is not None and output > 0 and not outputs[argument]:
            message = f"{where}, but output {quoted(argument)} of {quoted(op)} is a single value"
            yield self._broken(edge, "unknown_input", message)


def _forms(in_body: bool) -> str:
    if in_body:
        return "argument, node:output_argument:index or ^node"
    return "node, node:index or ^node"
