"""A MetaGraphDef: a graph, and much beside it."""

from tests.amplification.cases import graph_def
from tests.amplification.wire import many, part


def deep_graph(size: int) -> bytes:
    return part(1, part(4, "serve")) + part(2, graph_def.deep_scopes(size))


def collections(size: int) -> bytes:
    return part(1, part(4, "serve")) + part(2, graph_def.nodes(20)) + many(size, part(4))
