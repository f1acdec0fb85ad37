"""What the graph check can find: the rules by name, and one broken rule."""

from __future__ import annotations

from dataclasses import dataclass

from peakline.graph.index import GraphIndex, short_name

RULES = {
    "producer": "the graph's producer is older than any reader supports",
    "min_consumer": "the graph needs a newer reader than the consumer",
    "bad_consumers": "the graph refuses the consumer's version",
    "node_name": "a node's name has characters or a form that names cannot have",
    "missing_op": "a node does not say which op it is",
    "duplicate_node": "two nodes of a graph or of a function body share a name",
    "duplicate_function": "two functions of a library share a name",
    "input_syntax": "an input is no reference to an output or a node",
    "input_order": "a data input follows a control input",
    "unknown_input": "an input comes from a node or output that is not there",
    "function_return": "a function's result comes from nowhere in its body",
    "function_control_return": "a function's control result names no node of its body",
    "cycle": "nodes wait for each other without a NextIteration between them",
    "device": "a device specification that TensorFlow does not read",
    "colocation": "a node is to be placed with a node that is not there",
    "attribute_key": "an attribute that no op can have",
    "attribute_kind": "an attribute of TensorFlow's own whose value has the wrong kind",
    "absent_function": "a function is called, or said to be a gradient, but not in the library",
    "gradient_cycle": "functions that are the gradients of each other",
}
"""The rules by name, and what it means to break one."""


@dataclass(frozen=True)
class BrokenRule:
    """A rule of `RULES` that a graph breaks.

    ``node`` is the node's name, inside a function body ``function/node``; of a rule about a
    function as a whole the function's name; empty for the whole graph. Very long names are
    shortened. ``is_error`` is False for what TensorFlow reads but may refuse or ignore later.
    """

    rule: str
    node: str
    message: str
    graph: str
    is_error: bool = True

    def as_json(self, *, with_graph: bool) -> dict[str, str]:
        """The document; ``with_graph`` adds the graph's name, for files that hold several."""
        document = {"rule": self.rule, "node": self.node, "message": self.message}
        return {**document, "graph": short_name(self.graph)} if with_graph else document


def broken_at(
    index: GraphIndex, row: int, rule: str, message: str, *, is_error: bool = True
) -> BrokenRule:
    """A rule that the node in this row breaks."""
    graph = index.scopes[int(index.node_scope[row])].graph
    return BrokenRule(rule, index.path(row), message, graph, is_error)


def quoted(name: str, most: int = 120) -> str:
    """A name from a file in quotes; a very long one is shortened."""
    return f"'{name}'" if len(name) <= most else f"'{name[: most - 3]}...'"
