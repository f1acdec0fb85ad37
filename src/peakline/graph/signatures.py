"""Signatures of a library's functions, and where their results come from.

Source: ``InstantiateFunction`` (tensorflow/core/framework/function.cc). That a control result
names a node is what ``function_def_to_graph`` (tensorflow/python/framework) requires when a
SavedModel is loaded; calling the function does not look at it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.graph.index import GraphIndex, short_name
from peakline.graph.rules import BrokenRule, quoted
from peakline.tables.columns import Columns

_RESULT = re.compile(r"([^:^]+)(?::([A-Za-z]\w*))?(?::(0|[1-9]\d{0,17}))?", re.ASCII)


class Signatures:
    """What the functions of every library take and give."""

    def __init__(self, index: GraphIndex, functions: Columns) -> None:
        self.functions: set[tuple[str, str]] = {
            (graph or "", name or "") for graph, name in functions.each("graph", "name")
        }
        self.is_list = _is_list(index.inputs)
        """Per row of the index's ``inputs`` whether the argument is a list of values."""
        self._outputs: dict[tuple[str, str], dict[str, bool]] = {
            function: {} for function in self.functions
        }
        role = index.arguments.names("role")
        results = index.arguments.take(role.codes == role.code_of("output"))
        arguments = results.each("graph", "function", "name")
        lists = _is_list(results).tolist()
        for (graph, function, name), several in zip(arguments, lists, strict=True):
            outputs = self._outputs.setdefault((graph or "", function or ""), {})
            outputs[name or ""] = several

    def outputs(self, graph: str, function: str) -> dict[str, bool] | None:
        """A function's outputs in order and whether each is a list; None for no function."""
        return self._outputs.get((graph, function))


def _is_list(arguments: Columns) -> BoolArray:
    return arguments.is_valid("number_attr") | arguments.is_valid("type_list_attr")


def check_returns(index: GraphIndex, signatures: Signatures) -> Iterator[BrokenRule]:
    """That results and control results of functions come from their bodies."""
    arguments = index.arguments
    role = arguments.names("role")
    rows = arguments.take(role.codes != role.code_of("input"))
    results = rows.each("role", "name", "source")
    for number, (kind, name, source) in zip(index.scopes_of(rows).tolist(), results, strict=True):
        body, scope = _Body(index, number), index.scopes[number]
        if kind == "output":
            what, rule = "result", "function_return"
            problem = _result(body, signatures, source)
        else:
            what, rule = "control result", "function_control_return"
            problem = _control_result(body, source)
        if problem:
            message = f"{what} {quoted(name or '')} {problem}"
            yield BrokenRule(rule, short_name(scope.function or ""), message, scope.graph)


class _Body:
    """Looks up names in one function body."""

    def __init__(self, index: GraphIndex, number: int) -> None:
        self._index, self.scope = index, index.scopes[number]
        self._scope = np.array([number], np.int64)

    def node(self, name: str) -> int:
        return int(self._index.find_nodes(self._scope, self._code(name))[0])

    def argument(self, name: str) -> int:
        return int(self._index.find_inputs(self._scope, self._code(name))[0])

    def _code(self, name: str) -> Int64Array:
        return np.array([self._index.strings.code(name)], np.int64)

    def op(self, node: int) -> str:
        return self._index.nodes.names("op")[node] or ""


def _result(body: _Body, signatures: Signatures, source: str | None) -> str:
    """What is wrong with a result's source; empty when nothing is."""
    if not source:
        return "has no source"
    parts = _RESULT.fullmatch(source)
    if parts is None:
        return f"is {quoted(source)}, which is no argument and no node:output_argument:index"
    name, output, number = parts[1], parts[2], int(parts[3] or 0)
    if output is None:
        row = body.argument(name)
        if row >= 0 and (number == 0 or bool(signatures.is_list[row])):
            return ""
        if row >= 0:
            return f"is {quoted(source)}, but the argument is a single value"
        if body.node(name) >= 0:
            return f"is {quoted(source)}, a node without output: write node:output_argument:index"
        return f"is {quoted(source)}, but the function has no argument of that name"
    node = body.node(name)
    if node < 0:
        return f"is {quoted(source)}, but the function has no node {quoted(name)}"
    outputs = signatures.outputs(body.scope.graph, body.op(node))
    if outputs is not None and output not in outputs:
        return f"is {quoted(source)}, but {quoted(body.op(node))} has no output {quoted(output)}"
    if outputs is not None and number > 0 and not outputs[output]:
        return f"is {quoted(source)}, but output {quoted(output)} is a single value"
    return ""


def _control_result(body: _Body, source: str | None) -> str:
    if not source:
        return "names no node"
    if body.node(source) < 0 and body.argument(source) < 0:
        return f"is {quoted(source)}, but the function has no such node"
    return ""
