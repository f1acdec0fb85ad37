"""Versions, attributes, and functions that are called but not there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from peakline.graph.index import GraphIndex, short_name
from peakline.graph.rules import BrokenRule, broken_at, quoted
from peakline.graph.signatures import Signatures
from peakline.tables.columns import Columns

_MIN_PRODUCER = 0
"""TF_GRAPH_DEF_VERSION_MIN_PRODUCER (tensorflow/core/public/release_version.h)."""

_KEY = re.compile(r"_.*|[A-Za-z][A-Za-z0-9_]*", re.DOTALL)
"""Names of TensorFlow's own attributes, and those that an op can declare
(tensorflow/core/framework/op_def_builder.cc)."""

_REGISTERED_OP = re.compile(r"[A-Z][A-Za-z0-9_>]*|_.*", re.DOTALL)
_TRACED = re.compile(r"__(?:inference|forward|backward)_.*", re.DOTALL)
_LIST_ITEMS = re.compile(r"[^,{}\[\]\s]+(?:\{[^{}]*\})?")


def check_versions(graphs: Columns, consumer: int) -> Iterator[BrokenRule]:
    """That a reader of version ``consumer`` may read each graph (versions.proto)."""
    for row in graphs.to_pylist():
        graph, producer, least = row["graph"], row["producer"], row["min_consumer"]
        if producer < _MIN_PRODUCER:
            message = f"producer {producer} is below {_MIN_PRODUCER}, the oldest that is read"
            yield BrokenRule("producer", "", message, graph)
        if least > consumer:
            message = f"the graph needs a reader of version {least}; the consumer is {consumer}"
            yield BrokenRule("min_consumer", "", message, graph)
        if str(consumer) in row["bad_consumers"].split(","):
            message = f"the graph must not be read by version {consumer}, the consumer's"
            yield BrokenRule("bad_consumers", "", message, graph)


def check_attributes(index: GraphIndex, attrs: Columns) -> Iterator[BrokenRule]:
    """The names of attributes. Importing ignores attributes that the op does not declare."""
    keys = attrs.names("attr")
    bad = [code for code, key in enumerate(keys.values) if not _KEY.fullmatch(key)]
    if not bad:
        return
    result = attrs.take(np.isin(keys.codes, bad))
    scopes, names = index.scopes_of(result), result.names("name")
    for row, key in enumerate(result.names("attr").to_list()):
        scope = index.scopes[int(scopes[row])]
        message = f"attribute {quoted(key or '')}: no op can have it; names begin with a letter"
        message += " or _ and go on with letters, digits and _"
        yield BrokenRule("attribute_key", scope.path(names[row] or ""), message, scope.graph)


def check_calls(
    index: GraphIndex, attrs: Columns, signatures: Signatures, *, without: frozenset[str]
) -> Iterator[BrokenRule]:
    """That functions which nodes call are in the library.

    A call is an attribute that holds a function, or an op type that no op can have. Not looked
    at are ``without``: graphs whose library is stored elsewhere.
    """
    kinds, keys, values = attrs.names("kind"), attrs.names("attr"), attrs.names("value")
    own = [code for code, key in enumerate(keys.values) if key.startswith("_")]
    is_call = kinds.codes == kinds.code_of("func")
    is_call |= (kinds.codes == kinds.code_of("list")) & (keys.codes == keys.code_of("branches"))
    calls = attrs.take(is_call & ~np.isin(keys.codes, own))
    scopes = index.scopes_of(calls)
    nodes = index.find_nodes(scopes, index.strings.codes(calls.names("name")))
    ops = index.nodes.names("op")
    called = {code: functions_in(values.values[code]) for code in set(calls.names("value").codes)}
    for at, node in enumerate(nodes.tolist()):
        scope = index.scopes[int(scopes[at])]
        # SymbolicGradient may name an op.
        if scope.graph in without or ops[node] == "SymbolicGradient":
            continue
        for function in called[calls.names("value").codes[at]]:
            if (scope.graph, function) not in signatures.functions:
                key = calls.names("attr")[at] or ""
                message = f"attribute {key} calls {quoted(function)}, which the library lacks"
                yield broken_at(index, node, "absent_function", message)
    strange = [
        code
        for code, op in enumerate(ops.values)
        if op and (_TRACED.fullmatch(op) or not _REGISTERED_OP.fullmatch(op))
    ]
    for node in np.flatnonzero(np.isin(ops.codes, strange)).tolist():
        scope, op = index.scopes[int(index.node_scope[node])], ops[node] or ""
        if scope.graph not in without and (scope.graph, op) not in signatures.functions:
            message = f"the op {quoted(op)} is a function's name, which the library lacks"
            yield broken_at(index, node, "absent_function", message)


def functions_in(value: str) -> list[str]:
    """The functions that an attribute's text names: ``f{...}``, or a list of such."""
    if not value.startswith("["):
        name = value.partition("{")[0]
        return [name] if name else []
    return [item.partition("{")[0] for item in _LIST_ITEMS.findall(value)]


def check_gradients(functions: Columns, signatures: Signatures) -> Iterator[BrokenRule]:
    """That gradient functions are there, and that none is its own gradient in the end.

    Importing refuses circles only where no function of the library is without a gradient.
    Source: ``from_library`` (tensorflow/python/framework/function.py).
    """
    gradient: dict[tuple[str, str], str] = {}
    for graph, name, of in functions.each("graph", "name", "gradient"):
        if not of:
            continue
        gradient[graph or "", name or ""] = of
        if (graph or "", of) not in signatures.functions:
            message = f"the gradient function {quoted(of)} is not in the library"
            yield BrokenRule("absent_function", short_name(name or ""), message, graph or "")
    refused = all(function in gradient for function in signatures.functions)
    done: set[tuple[str, str]] = set()
    for start in gradient:
        path: list[tuple[str, str]] = []
        at = start
        while at in gradient and at not in done:
            done.add(at)
            path.append(at)
            at = (at[0], gradient[at])
        if at in path:
            circle = [name for _, name in path[path.index(at) :]]
            text = " -> ".join(quoted(name) for name in [*circle, circle[0]])
            message = f"gradients in a circle: {text}"
            yield BrokenRule("gradient_cycle", short_name(at[1]), message, at[0], refused)
