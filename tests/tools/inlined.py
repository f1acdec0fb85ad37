"""A graph with the functions that its nodes call inside them, read plainly from the message."""

from dataclasses import dataclass, field

from peakline.schema import GraphDef

_DEEPEST, _RECURSIONS = 16, 3
_OPERANDS = {
    ("PartitionedCall", "f"): 0, ("StatefulPartitionedCall", "f"): 0, ("While", "body"): 0,
    ("While", "cond"): 0, ("If", "then_branch"): 1, ("If", "else_branch"): 1,
    ("StatelessCase", "branches[0]"): 1, ("StatelessCase", "branches[1]"): 1,
}  # fmt: skip
"""The operands of an op that are no arguments of the function that its attribute names."""


@dataclass
class Inlined:
    """Names and ops by number; edges as source, target, whether it only orders, operand, output;
    and by node the numbers of what stands inside it for its operands and outputs.
    """

    names: list = field(default_factory=list)
    ops: list = field(default_factory=list)
    caller: list = field(default_factory=list)
    edges: list = field(default_factory=list)
    operands: dict = field(default_factory=dict)
    results: dict = field(default_factory=dict)

    def seen(self, edge, opened):
        """The ends of an edge with some items open: a pair for each body that has its end."""
        source, target, control, place, output = edge
        if control:
            return [(source, target)]
        sources, targets = [source], [target]
        if target in opened:
            targets = self.operands.get(target, {}).get(place) or targets
        if source in opened:
            sources = self.results.get(source, {}).get(output) or sources
        return [(one, other) for one in sources for other in targets]


def inlined(graph):
    """The graph, and level by level what its nodes call, in their order."""
    library = {one.signature.name: one for one in graph.library.function}
    made = Inlined()
    front = [(_add(made, graph.node, None, -1), graph.node, ())]
    for _ in range(_DEEPEST):
        inner = []
        for start, nodes, around in front:
            for place, node in enumerate(nodes):
                calls = _calls(node, library)
                for attr, name in calls:
                    if around.count(name) > _RECURSIONS:
                        continue
                    body, caller = library[name], start + place
                    begin = _add(made, body.node_def, body, caller)
                    first = begin + len(body.node_def)
                    many = len(body.signature.input_arg)
                    skipped = _OPERANDS.get((node.op, attr), None if attr else 0)
                    if skipped is not None:
                        given = made.operands.setdefault(caller, {})
                        for at in range(many):
                            given.setdefault(skipped + at, []).append(first + at)
                    if skipped is not None and attr != "cond":
                        returned = made.results.setdefault(caller, {})
                        for at in range(len(body.signature.output_arg)):
                            returned.setdefault(at, []).append(first + many + at)
                    inner.append((begin, body.node_def, (*around, name)))
        front = inner
    return made


def _calls(node, library):
    if node.op == "SymbolicGradient":
        return []
    result = [("", node.op)] if node.op in library else []
    for key, value in sorted(node.attr.items()):
        if key.startswith("_"):
            continue
        if value.func.name:
            result.append((key, value.func.name))
        result += [(f"{key}[{at}]", one.name) for at, one in enumerate(value.list.func)]
    return [one for one in result if one[1] in library]


def _add(made, nodes, function, caller):
    """Number the nodes of a body, and its edges; returns the first number."""
    start = len(made.names)
    number = {node.name: start + place for place, node in enumerate(nodes)}
    given, results = {}, []
    made.names += [node.name for node in nodes]
    made.ops += [node.op for node in nodes]
    if function is not None:
        for one in function.signature.input_arg:
            given[one.name] = len(made.names)
            made.names.append(one.name)
            made.ops.append("_Arg")
        for one in function.signature.output_arg:
            results.append((len(made.names), function.ret[one.name]))
            made.names.append(one.name)
            made.ops.append("_Retval")
    made.caller += [caller] * (len(made.names) - start)
    for node in nodes:
        for place, text in enumerate(node.input):
            name, *rest = text.removeprefix("^").split(":")
            source = given.get(name) if function is not None and not rest else None
            output = int(rest[-1]) if rest else 0
            if text.startswith("^") or source is None:
                source = number[name]
            made.edges.append((source, number[node.name], text.startswith("^"), place, output))
    for result, text in results:
        name, *rest = text.split(":")
        made.edges.append((number[name] if rest else given[name], result, False, 0, 0))
    return start


def with_functions(path):
    """A graph of calls in calls, a loop, a choice, an op that is a function, and a recursion."""
    graph = GraphDef()

    def function(name, nodes, given=("x",), result="y:z:0"):
        made = graph.library.function.add()
        made.signature.name = name
        for one in given:
            made.signature.input_arg.add(name=one, type=1)
        made.signature.output_arg.add(name="out", type=1)
        made.ret["out"] = result
        for node, op, inputs, called in nodes:
            _node(made.node_def, node, op, inputs, called)

    function("leaf", [("a/neg", "Neg", ["x"], {}), ("a/exp", "Exp", ["a/neg:y:0"], {}),
                      ("y", "Relu", ["a/exp:y:0"], {})])  # fmt: skip
    function("outer", [("y", "PartitionedCall", ["x"], {"f": "leaf"}),
                       ("z", "leaf", ["y:output:0"], {})], result="z:out:0")  # fmt: skip
    function("again", [("y", "StatefulPartitionedCall", ["x"], {"f": "again"})])
    function("less", [("y", "Less", ["i", "i"], {})], given=("i",))
    function("step", [("y", "PartitionedCall", ["i"], {"f": "outer"})], given=("i",))
    _node(graph.node, "in", "Placeholder", [], {})
    _node(graph.node, "net/call", "PartitionedCall", ["in"], {"f": "outer"})
    _node(graph.node, "net/loop", "While", ["net/call"], {"cond": "less", "body": "step"})
    _node(graph.node, "net/choice", "If", ["in", "net/loop"],
          {"then_branch": "leaf", "else_branch": "outer"})  # fmt: skip
    _node(graph.node, "net/case", "StatelessCase", ["in", "net/choice"], {})
    for name in ("outer", "leaf"):
        graph.node[-1].attr["branches"].list.func.add(name=name)
    _node(graph.node, "net/self", "StatefulPartitionedCall", ["net/case", "^in"], {"f": "again"})
    _node(graph.node, "net/op", "leaf", ["net/self"], {})
    _node(graph.node, "out", "Identity", ["net/op"], {})
    path.write_bytes(graph.SerializeToString())
    return path


def _node(nodes, name, op, inputs, called):
    made = nodes.add(name=name, op=op)
    made.input.extend(inputs)
    for key, value in called.items():
        made.attr[key].func.name = value
