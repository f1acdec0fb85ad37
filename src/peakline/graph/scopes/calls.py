"""Bodies of functions inside the nodes that call them: a copy for each call, of a bounded size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.graph.scopes.bodies import Bodies, Body
from peakline.graph.scopes.model import Copy, Edges
from peakline.tables.columns import Names
from peakline.tables.joins import ranges

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
    found: list[Copy] = []
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
                found.append(Copy(
                    call.function, size, called.size, start + call.node, call.attr,
                    bool(many[call.node] == 1),
                ))  # fmt: skip
                inner.append((called, size, (*around, call.function)))
                size += called.size
        front = inner
        if not front:
            break
    return found


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
        for found, ends, skip in ((operands, body.inputs, leaves_out), (results, returned, 0)):
            found.append(np.stack([
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
    found: Int64Array = np.where(last > first, inside[np.minimum(first, order.size)], -1)
    many = np.maximum(last - first - 1, 0)
    edge = np.repeat(np.arange(node.size), many)
    return found, np.stack([edge, inside[ranges(first + 1, first + 1 + many)]], axis=1)
