"""SavedModels and MetaGraphDefs: graphs inside, and much beside them."""

from tests.amplification.cases import graph_def
from tests.amplification.wire import many, number, part, repeated


def _model(meta: bytes) -> bytes:
    return number(1, 1) + part(2, meta)


def graphs(size: int) -> bytes:
    """Very many graphs of one node."""
    meta = part(1, part(4, "serve")) + part(2, graph_def.nodes(20))
    return number(1, 1) + many(size, part(2, meta))


def long_tags(size: int) -> bytes:
    """Very many graphs, one of which has a long tag."""
    node = part(1, part(1, "a") + part(2, "X"))
    small = part(2, part(1, part(4, "x")) + part(2, node))
    return _model(part(1, part(4, "s" * (size // 2))) + part(2, node)) + many(size // 2, small)


def empty_graphs(size: int) -> bytes:
    return _model(part(2, graph_def.nodes(20))) + many(size, part(2))


def deep_graph(size: int) -> bytes:
    return _model(part(1, part(4, "serve")) + part(2, graph_def.deep_scopes(size)))


def op_list(size: int) -> bytes:
    ops = part(2, many(size, part(1)))
    return _model(part(1, ops + part(4, "serve")) + part(2, graph_def.nodes(20)))


def ops(size: int) -> bytes:
    listed = part(2, repeated(size, lambda n: part(1, part(1, f"Op{n}"))))
    return _model(part(1, listed + part(4, "serve")) + part(2, graph_def.op_types(size // 2)))


def signatures(size: int) -> bytes:
    return _model(part(2, graph_def.nodes(20)) + many(size, part(5)))
