"""Signatures of a library's functions, and where their results come from.

Source: ``InstantiateFunction`` (tensorflow/core/framework/function.cc). That a control result
names a node is what ``function_def_to_graph`` (tensorflow/python/framework) asks for when a
SavedModel is loaded; calling the function does not look at it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from peakline.arrays import BoolArray
from peakline.graph.index import GraphIndex, Scope
from peakline.graph.rules import BrokenRule, quoted
from peakline.tables.columns import Columns

_RESULT = re.compile(r"([^:^]+)(?::([A-Za-z]\w*))?(?::(0|[1-9]\d*))?", re.ASCII)


class Signatures:
    """What the functions of every library take and give."""

    def __init__(self, index: GraphIndex, functions: Columns) -> None:
        self.functions: set[tuple[str, str]] = {
            (graph or "", name or "") for graph, name in functions.each("graph", "name")
        }
        inputs = index.inputs
        self.is_list: BoolArray = inputs.is_valid("number_attr") | inputs.is_valid("type_list_attr")
        """Per row of the index's ``inputs`` whether the argument is a list of values."""
        self._outputs: dict[tuple[str, str], dict[str, bool]] = {
            function: {} for function in self.functions
        }
        role = index.arguments.names("role")
        results = index.arguments.take(role.codes == role.code_of("output"))
        is_list = results.is_valid("number_attr") | results.is_valid("type_list_attr")
        arguments = results.each("graph", "function", "name")
        for (graph, function, name), several in zip(arguments, is_list.tolist(), strict=True):
            outputs = self._outputs.setdefault((graph or "", function or ""), {})
            outputs[name or ""] = several

    def outputs(self, graph: str, function: str) -> dict[str, bool] | None:
        """A function's outputs in order and whether each is a list; None for no function."""
        return self._outputs.get((graph, function))


def check_returns(index: GraphIndex, signatures: Signatures) -> Iterator[BrokenRule]:
    """That results and control results of functions come from their bodies."""
    arguments = index.arguments
    role = arguments.names("role")
    rows = arguments.take(role.codes != role.code_of("input"))
    scopes = index.scopes_of(rows)
    sources, names, roles = rows.names("source"), rows.names("name"), rows.names("role")
    for row in range(rows.rows):
        scope, source = index.scopes[int(scopes[row])], sources[row]
        body = _Body(index, int(scopes[row]), scope)
        if roles[row] == "output":
            what = f"result {quoted(names[row] or '')}"
            problem = _result(body, signatures, source)
            rule = "function_return"
        else:
            what = f"control result {quoted(names[row] or '')}"
            problem = _control_result(body, source)
            rule = "function_control_return"
        if problem:
            yield BrokenRule(rule, scope.function or "", f"{what} {problem}", scope.graph)


class _Body:
    """Looks up names in one function body."""

    def __init__(self, index: GraphIndex, number: int, scope: Scope) -> None:
        self._index, self.scope = index, scope
        self._scope = np.array([number], np.int64)

    def node(self, name: str) -> int:
        code = np.array([self._index.strings.code(name)], np.int64)
        return int(self._index.find_nodes(self._scope, code)[0])

    def argument(self, name: str) -> int:
        code = np.array([self._index.strings.code(name)], np.int64)
        return int(self._index.find_inputs(self._scope, code)[0])

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
