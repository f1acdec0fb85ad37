"""Names of nodes and functions: their form, and that each is there once.

The form is that of ``IsValidNodeName`` (tensorflow/core/framework/node_def_util.cc), which is
wider than the comment in graph.proto: parts that begin with a letter, digit or dot and go on
with these and ``_ / -``, joined by ``>``. Graphs that the runtime made, and function bodies, may
also hold names that begin with ``_``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from peakline.graph.index import GraphIndex, short_name
from peakline.graph.rules import BrokenRule, broken_at, quoted
from peakline.tables.columns import Columns

_PART = r"[A-Za-z0-9.][A-Za-z0-9_./\-]*"
NODE_NAME = rf"[A-Za-z0-9_.][A-Za-z0-9_./\-]*(?:>{_PART})*"
"""A node's name, internal ones included."""

_OUTSIDE = re.compile(rf"{_PART}(?:>{_PART})*")
_INTERNAL = re.compile(NODE_NAME)


def check_names(
    index: GraphIndex, internal: frozenset[str], repeated: frozenset[tuple[str, str]]
) -> Iterator[BrokenRule]:
    """Names of nodes, and their ops.

    ``internal`` are the graphs that the runtime made; ``repeated`` are functions (graph and
    name) that a library has twice, whose nodes cannot be distinguished.
    """
    yield from _forms(index, internal)
    ops = index.nodes.names("op")
    for row in np.flatnonzero(ops.codes == ops.code_of("")).tolist():
        yield broken_at(index, row, "missing_op", "the node does not say which op it is")
    yield from _duplicates(index, repeated)


def _forms(index: GraphIndex, internal: frozenset[str]) -> Iterator[BrokenRule]:
    values = index.strings.values
    used = np.unique(index.node_name).tolist()
    bad = [code for code in used if not _OUTSIDE.fullmatch(values[code])]
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
        found = " ".join(repr(character) for character in strange[:5])
        return f"{quoted(name)} holds {found}; names are made of letters, digits and . _ / - >"
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
    found = Counter((graph or "", name or "") for graph, name in functions.each("graph", "name"))
    return frozenset(function for function, count in found.items() if count > 1)


def check_functions(repeated: frozenset[tuple[str, str]]) -> Iterator[BrokenRule]:
    """That a library has every function once."""
    for graph, name in sorted(repeated):
        message = "several functions of the library have this name"
        yield BrokenRule("duplicate_function", short_name(name), message, graph)
