"""The graph check: every rule that a graph breaks, before a runtime finds out.

Rules are those that TensorFlow applies (docs/graph-check.md says where and how it was tried).
Nothing is assumed about which ops exist: types, numbers of inputs and outputs of ops are not
checked, but for calls of functions in the graph's own library.
"""

from __future__ import annotations

from peakline.graph.index import index_of
from peakline.graph.rules import BrokenRule
from peakline.graph.rules_cycles import check_cycles
from peakline.graph.rules_devices import check_colocation, check_devices
from peakline.graph.rules_inputs import (
    check_functions,
    check_inputs,
    check_names,
    repeated_functions,
)
from peakline.graph.rules_library import (
    check_attributes,
    check_calls,
    check_gradients,
    check_versions,
)
from peakline.graph.signatures import Signatures, check_returns
from peakline.hlo.graphs import KIND as HLO
from peakline.tables import Profile

CONSUMER = 2474
"""TF_GRAPH_DEF_VERSION of TensorFlow 2.21."""

_WRITTEN_KINDS = {"graph_def", "meta_graph"}
"""Graphs that programs write and read; the runtime made the others, with names of its own."""


def check_graphs(profile: Profile, *, consumer: int = CONSUMER) -> list[BrokenRule]:
    """Every broken rule of every graph of the profile, graph by graph.

    ``consumer`` is the version of the reader that is assumed (versions.proto).
    """
    graphs = profile.columns_or_empty("graphs")
    kinds = graphs.names("kind")
    if graphs.rows and (kinds.codes == kinds.code_of(HLO)).all():
        # XLA checks its programs by rules of its own, before it writes them.
        return []
    functions = profile.columns_or_empty("functions")
    attrs = profile.columns_or_empty("node_attrs")
    index = index_of(profile)
    heads = [*graphs.each("graph", "kind", "functions")]
    made = {name or "" for name, kind, _ in heads if kind not in _WRITTEN_KINDS}
    bare = {name or "" for name, _, count in heads if not count}
    signatures = Signatures(index, functions)
    repeated = repeated_functions(functions)
    colocation, colocated = check_colocation(index, attrs)
    broken = [
        *check_versions(graphs, consumer),
        *check_names(index, frozenset(made), repeated),
        *check_functions(repeated),
        *check_inputs(index, signatures),
        *check_returns(index, signatures),
        *check_cycles(index),
        *check_devices(index, colocated),
        *colocation,
        *check_attributes(index, attrs),
        *check_calls(index, attrs, signatures, without=frozenset(made & bare)),
        *check_gradients(functions, signatures),
    ]
    order = {name or "": number for number, (name, _, _) in enumerate(heads)}
    return sorted(broken, key=lambda one: order[one.graph])
