"""The nodes and edges of a graph of ops, and of the bodies of its functions, by number.

Inside the nodes that call a function stands a copy of its body for each call, of a bounded size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.graph.index import GraphIndex, Scope, index_of
from peakline.graph.rules_library import functions_in
from peakline.graph.scopes.model import Copy, Edges
from peakline.tables import Columns, Names, Profile
from peakline.tables.joins import positions, ranges
from peakline.tables.once import once

ARGUMENT, RESULT = "_Arg", "_Retval"
"""The ops that stand for what a function is given and returns, as the runtime calls them."""
_CALLS = frozenset(("graph", "function", "name", "attr", "value", "kind"))
_GRADIENT = "SymbolicGradient"
"""Computes the gradient of the function that it names, and does not call it."""


@once
def _index(profile: Profile) -> GraphIndex:
    return index_of(profile)


@dataclass(frozen=True)
class Call:
    """That a node calls a function: by its attribute ``attr``, or ("") by its op."""

    node: int
    attr: str
    function: str


@dataclass(frozen=True, eq=False)
class Body:
    """What a graph or a function holds: its nodes, then the arguments and results of a function.

    ``rows`` are those in table ``nodes``, -1 for arguments and results, whose numbers are
    ``inputs`` and ``outputs``, in order.
    """

    rows: Int64Array
    names: list[str]
    ops: Names
    devices: Names
    edges: Edges
    inputs: Int64Array
    outputs: Int64Array
    calls: tuple[Call, ...]

    @property
    def size(self) -> int:
        """How many nodes, arguments and results there are."""
        return int(self.rows.size)


class Bodies:
    """The bodies of one graph, each made when it is wanted."""

    __retained__ = "functions _nodes _edges _outputs _called _made"

    def __init__(self, profile: Profile, graph: str) -> None:
        self._index = index = _index(profile)
        self._graph = graph
        functions = profile.columns_or_empty("functions")
        self.functions = {
            name or "" for of, name in functions.each("graph", "name") if (of or "") == graph
        }
        """The functions of the graph's library."""
        self._nodes = _by(index.node_scope)
        self._edges = _by(index.edge_scope)
        self._outputs: dict[str, list[str]] = {}
        for of, function, role, name in index.arguments.each("graph", "function", "role", "name"):
            if (of or "") == graph and role == "output":
                self._outputs.setdefault(function or "", []).append(name or "")
        self._called = self._calls(profile) if self.functions else {}
        self._made: dict[str | None, Body] = {}

    def body(self, function: str | None) -> Body:
        """The body of a function; of None the graph's own nodes."""
        if function not in self._made:
            self._made[function] = self._make(function)
        return self._made[function]

    def _calls(self, profile: Profile) -> dict[int, list[tuple[str, str]]]:
        """Per row of table ``nodes`` the attributes and the functions that it calls."""
        index, result = self._index, dict[int, list[tuple[str, str]]]()
        ops = index.nodes.names("op")
        graphs = index.nodes.names("graph")
        codes = [ops.code_of(name) for name in self.functions & set(ops.values)]
        named = np.isin(ops.codes, codes) & (graphs.codes == graphs.code_of(self._graph))
        for row in np.flatnonzero(named).tolist():
            result[row] = [("", ops[row] or "")]
        if "node_attrs" not in profile.tables:
            return result
        attrs = profile.columns("node_attrs", _CALLS)
        kinds, keys, graphs = (attrs.names(name) for name in ("kind", "attr", "graph"))
        mine = (kinds.codes == kinds.code_of("func")) | (keys.codes == keys.code_of("branches"))
        private = [code for code, key in enumerate(keys.values) if key.startswith("_")]
        mine &= ~np.isin(keys.codes, private) & (graphs.codes == graphs.code_of(self._graph))
        calls = attrs.take(mine)
        rows = index.find_nodes(index.scopes_of(calls), index.strings.codes(calls.names("name")))
        for row, (attr, value) in zip(rows.tolist(), calls.each("attr", "value"), strict=True):
            if row < 0 or ops[row] == _GRADIENT:
                continue
            several = functions_in(value or "")
            for place, function in enumerate(several):
                if function in self.functions:
                    text = f"{attr}[{place}]" if (value or "").startswith("[") else attr or ""
                    result.setdefault(row, []).append((text, function))
        for listed in result.values():
            # Attributes are a map: their order in the file says nothing.
            listed.sort(key=lambda one: one[0].partition("[")[0])
        return result

    def _make(self, function: str | None) -> Body:
        index = self._index
        wanted = Scope(self._graph, function)
        number = index.scopes.index(wanted) if wanted in index.scopes else -1
        rows = _of(self._nodes, number)
        listed = index.nodes.take(rows)
        arguments = _arguments(index.arguments, self._graph, function)
        roles = arguments.names("role").to_list()
        names = [name or "" for name in listed.names("name").to_list()]
        names += [name or "" for name in arguments.names("name").to_list()]
        kinds = [RESULT if role == "output" else ARGUMENT for role in roles]
        is_list = arguments.is_valid("number_attr") | arguments.is_valid("type_list_attr")
        is_result = np.array([role == "output" for role in roles], np.bool_)
        given = rows.size + np.flatnonzero(~is_result)
        results = rows.size + np.flatnonzero(is_result)
        if is_list.any():
            # How many values a list stands for is in the caller's attributes.
            given, results = given[:0], results[:0]
        ops = _extended(listed.names("op"), kinds)
        edges = self._edges_of(number, rows, ops, arguments)
        calls = tuple(
            Call(node, attr, called)
            for node, row in enumerate(rows.tolist())
            for attr, called in self._called.get(row, ())
        ) if self._called else ()  # fmt: skip
        return Body(
            np.append(rows, np.full(arguments.rows, -1)), names, ops,
            _extended(listed.names("device"), [""] * arguments.rows), edges, given, results, calls,
        )  # fmt: skip

    def _edges_of(self, number: int, rows: Int64Array, ops: Names, arguments: Columns) -> Edges:
        """The edges among the nodes, and those from arguments and to results."""
        index = self._index
        mine = _of(self._edges, number)
        source = positions(rows, index.source_row[mine])
        target = positions(rows, index.target_row[mine])
        listed = index.edges
        output, slot = listed.array("source_output")[mine], listed.array("target_input")[mine]
        output = self._outputs_of(ops, source, output, listed.names("source_argument").take(mine))
        control = listed.array("is_control")[mine].astype(np.bool_)
        if arguments.rows:
            given = _given(index, mine, rows.size, arguments)
            results = _returned(index, number, rows, arguments)
            source = np.where(source < 0, given, source)
            source = np.append(source, results[0])
            target = np.append(target, results[1])
            nothing = np.zeros(results[0].size, np.int64)
            output, slot = np.append(output, nothing), np.append(slot, nothing)
            control = np.append(control, nothing.astype(np.bool_))
        whole = (source >= 0) & (target >= 0)
        none = np.full(int(whole.sum()), -1)
        return Edges(
            source[whole], target[whole], output[whole], slot[whole], control[whole], none, none
        )

    def _outputs_of(
        self, ops: Names, source: Int64Array, output: Int64Array, named: Names
    ) -> Int64Array:
        """The numbers of outputs, also of a function's result that its body calls by name."""
        functions = [ops.code_of(name) for name in self.functions & set(ops.values)]
        some = np.flatnonzero(
            (source >= 0) & (named.codes >= 0) & np.isin(ops.codes[source], functions)
        )
        if not some.size:
            return output
        result = output.copy()
        for edge in some.tolist():
            results = self._outputs.get(ops[int(source[edge])] or "", [])
            if (name := named[edge]) in results:
                result[edge] = results.index(name)
        return result


def _by(scope: Int64Array) -> tuple[Int64Array, Int64Array]:
    order = np.argsort(scope, kind="stable")
    return order, scope[order]


def _of(table: tuple[Int64Array, Int64Array], number: int) -> Int64Array:
    """The rows of a scope, ascending."""
    order, scopes = table
    begin, end = (np.searchsorted(scopes, number, side) for side in ("left", "right"))
    return order[begin:end]


def _extended(column: Names, more: list[str]) -> Names:
    """A column with more rows, whose texts are few."""
    if not more:
        return column
    extra = Names.encode(more)
    codes = np.append(column.codes, extra.codes + len(column.values))
    return Names(codes.astype(np.int32), [*column.values, *extra.values])


def _arguments(table: Columns, graph: str, function: str | None) -> Columns:
    """The arguments and results of a function, in order."""
    if function is None:
        return table.take(np.zeros(0, np.int64))
    graphs, functions, roles = (table.names(name) for name in ("graph", "function", "role"))
    mine = (graphs.codes == graphs.code_of(graph)) & (
        functions.codes == functions.code_of(function)
    )
    return table.take(mine & (roles.codes != roles.code_of("control_output")))


def _given(index: GraphIndex, mine: Int64Array, nodes: int, arguments: Columns) -> Int64Array:
    """Per edge the number of the argument that it comes from; -1 for none."""
    names = index.strings.codes(arguments.names("name"))
    is_input = arguments.names("role").per_row("input".__eq__, np.bool_)
    by_name = {
        name: nodes + row
        for row, (name, given) in enumerate(zip(names.tolist(), is_input.tolist(), strict=True))
        if given
    }
    result = [by_name.get(name, -1) for name in index.edge_source[mine].tolist()]
    return np.array(result, np.int64)


def _returned(
    index: GraphIndex, number: int, rows: Int64Array, arguments: Columns
) -> tuple[Int64Array, Int64Array]:
    """Edges from nodes and arguments to the results of a function."""
    nodes = int(rows.size)
    own = {
        name: nodes + row
        for row, (name, role) in enumerate(arguments.each("name", "role"))
        if role == "input"
    }
    ends: list[tuple[int, int]] = []
    for row, (role, text) in enumerate(arguments.each("role", "source")):
        if role != "output" or not text:
            continue
        name, colon, _ = text.partition(":")
        code = np.array([index.strings.code(name)], np.int64)
        result = index.find_nodes(np.array([number]), code)
        node = int(positions(rows, result)[0]) if colon else -1
        source = node if node >= 0 else own.get(name, -1)
        if source >= 0:
            ends.append((source, nodes + row))
    both = np.array(ends, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


MOST_COPIED = 50_000
"""Bodies that would make more nodes than these are left closed."""
DEEPEST = 16
"""Calls in calls that are shown inside each other."""
RECURSIONS = 3
"""So many times a function that calls itself opens inside itself."""
_LOOP = {"body": 0, "cond": 0}
_CHOICE = {"then_branch": 1, "else_branch": 1}
_OPERANDS = {"PartitionedCall": {"f": 0}, "StatefulPartitionedCall": {"f": 0},
             "TPUPartitionedCall": {"f": 0}, "RemoteCall": {"f": 1},
             "While": _LOOP, "StatelessWhile": _LOOP, "If": _CHOICE, "StatelessIf": _CHOICE,
             "Case": {"branches": 1}, "StatelessCase": {"branches": 1}}  # fmt: skip
"""Ops whose operands, but for some first ones, are a body's arguments and whose outputs are its
results, by the attribute that names it (tensorflow/core/ops/functional_ops.cc). What a loop's
condition returns is no output."""
_CONDITION = "cond"
_WIDE = np.int64(1) << 31


@dataclass(frozen=True, eq=False)
class Expanded:
    """A body with copies of those that it calls; ``copies`` say which nodes are whose."""

    body: Body
    copies: tuple[Copy, ...]


def expanded(bodies: Bodies, function: str | None) -> Expanded:
    """The body of a function (None: the graph's own nodes) with what its nodes call, those of
    outer calls first.
    """
    own = bodies.body(function)
    copies = tuple(_planned(bodies, function))
    if not copies:
        return Expanded(own, ())
    parts = [own, *(bodies.body(copy.function) for copy in copies)]
    starts = np.array([0, *(copy.start for copy in copies)])
    names = [name for part in parts for name in part.names]
    none = np.zeros(0, np.int64)
    whole = Body(
        np.concatenate([part.rows for part in parts]), names,
        _joined([part.ops for part in parts]), _joined([part.devices for part in parts]),
        _edges(bodies, own, copies, parts, starts), none, none, own.calls,
    )  # fmt: skip
    return Expanded(whole, copies)


def _planned(bodies: Bodies, function: str | None) -> list[Copy]:
    """The copies in the order in which their nodes are numbered."""
    own = bodies.body(function)
    result: list[Copy] = []
    size, most = own.size, own.size + MOST_COPIED
    # A body, where it begins, and the functions that it stands in.
    outermost: tuple[str, ...] = () if function is None else (function,)
    front = [(own, 0, outermost)]
    for _ in range(DEEPEST):
        inner: list[tuple[Body, int, tuple[str, ...]]] = []
        for body, start, around in front:
            many = np.bincount([call.node for call in body.calls], minlength=1)
            for call in body.calls:
                called = bodies.body(call.function)
                if around.count(call.function) > RECURSIONS or size + called.size > most:
                    continue
                result.append(Copy(
                    call.function, size, called.size, start + call.node, call.attr,
                    bool(many[call.node] == 1),
                ))  # fmt: skip
                inner.append((called, size, (*around, call.function)))
                size += called.size
        front = inner
        if not front:
            break
    return result


def _joined(columns: list[Names]) -> Names:
    """One column after the other, in one dictionary."""
    numbers: dict[str, int] = {}
    known: dict[int, Int64Array] = {}
    codes: list[Int64Array] = []
    for column in columns:
        if id(column) not in known:
            mapping = [numbers.setdefault(value, len(numbers)) for value in column.values]
            known[id(column)] = np.array([*mapping, -1], np.int64)
        codes.append(known[id(column)][column.codes])
    return Names(np.concatenate(codes).astype(np.int32), list(numbers))


def _edges(
    bodies: Bodies, own: Body, copies: tuple[Copy, ...], parts: list[Body], starts: Int64Array
) -> Edges:
    """The edges of all parts, and what in a copy stands for operands and outputs of its caller."""
    shift = np.repeat(starts, [part.edges.source.size for part in parts])
    columns = [
        np.concatenate([getattr(part.edges, name) for part in parts])
        for name in ("source", "target", "output", "place", "is_control")
    ]
    source, target = columns[0] + shift, columns[1] + shift
    operands, results = _ends(bodies, own, copies)
    is_data = ~columns[4]
    inner = _found(operands, target, np.where(is_data, columns[3], -1))
    result = _found(results, source, np.where(is_data, columns[2], -1))
    return Edges(
        source, target, columns[2], columns[3], columns[4], inner[0], result[0], inner[1], result[1]
    )


def _ends(
    bodies: Bodies, own: Body, copies: tuple[Copy, ...]
) -> tuple[list[Int64Array], list[Int64Array]]:
    """Caller, place and node inside, of operands and of results."""
    callers = {0: own, **{copy.start: bodies.body(copy.function) for copy in copies}}
    begins = np.array(list(callers))
    operands, results = [np.zeros((0, 3), np.int64)], [np.zeros((0, 3), np.int64)]
    for copy in copies:
        begin = int(begins[np.searchsorted(begins, copy.caller, "right") - 1])
        op = callers[begin].ops[copy.caller - begin] or ""
        attr = copy.attr.partition("[")[0]
        leaves_out = _OPERANDS.get(op, {"": 0}).get(attr)
        if leaves_out is None:
            continue
        body = bodies.body(copy.function)
        returned = body.outputs[:0] if attr == _CONDITION else body.outputs
        for result, ends, skip in ((operands, body.inputs, leaves_out), (results, returned, 0)):
            result.append(np.stack([
                np.full(ends.size, copy.caller), skip + np.arange(ends.size), copy.start + ends,
            ], axis=1))  # fmt: skip
    return operands, results


def _found(
    ends: list[Int64Array], node: Int64Array, place: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Per edge what stands inside ``node`` for its operand or output at ``place``, -1 for none; and
    where several do the others, as rows of an edge and such a node.
    """
    table = np.concatenate(ends)
    key = table[:, 0] * _WIDE + table[:, 1]
    order = np.argsort(key, kind="stable")
    wanted = node * _WIDE + place
    first, last = (np.searchsorted(key[order], wanted, side) for side in ("left", "right"))
    last = np.where(place >= 0, last, first)
    inside = np.append(table[order, 2], -1)
    result: Int64Array = np.where(last > first, inside[np.minimum(first, order.size)], -1)
    many = np.maximum(last - first - 1, 0)
    edge = np.repeat(np.arange(node.size), many)
    return result, np.stack([edge, inside[ranges(first + 1, first + 1 + many)]], axis=1)
