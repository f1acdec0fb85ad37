"""All about one item of a graph: what it is, what it is made from and used by, what it cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from peakline.arrays import Int64Array
from peakline.graph.index import short_name
from peakline.graph.scopes.graphs import graph_names
from peakline.graph.scopes.model import ScopedGraph
from peakline.graph.scopes.tree import KINDS
from peakline.hlo.op_times import runs_of
from peakline.hlo.row_costs import row_costs
from peakline.tables.columns import Columns, Names

_MOST_ENDS = 100
_MOST_TEXTS = 200
_MOST_FRAMES = 64
_MOST_RUNS = 20
_INSTRUCTION = (
    "opcode", "category", "fusion_kind", "called", "target", "op_name", "op_type", "shape",
    "layout", "parameter_number", "tuple_index", "schedule_index",
)  # fmt: skip


def item_details(graph: ScopedGraph, item: int) -> dict[str, Any]:
    """What is known of an item, a document. Raises InputError when the profile cannot be read."""
    tree, totals = graph.tree, graph.measures.totals
    is_node = item < tree.nodes
    result: dict[str, Any] = {
        "item": item,
        "kind": KINDS[int(tree.kind[item])],
        "label": tree.label(item),
        "within": [{"item": one, "label": tree.label(one)} for one in tree.ancestors(item)],
        "children": int(tree.child_counts[item]),
        **{name: int(values[item]) for name, values in totals.items()},
        "ops": _mix(graph, item, graph.categories),
        "devices": _mix(graph, item, graph.devices),
    }
    if not is_node:
        return result
    result |= {"name": graph.names[item] or "", "op": graph.ops[item] or "",
              "device": graph.devices[item] or ""}  # fmt: skip
    result |= {"inputs": _ends(graph, item, into=True), "outputs": _ends(graph, item, into=False)}
    result |= _of_instruction(graph, item) if graph.program is not None else _of_op(graph, item)
    return result


def nodes_in(graph: ScopedGraph, item: int) -> Int64Array:
    """The nodes that an item is or holds."""
    tree = graph.tree
    result, front = [np.array([item])], np.array([item])
    while front.size:
        front = tree.children_of(front)
        result.append(front)
    every = np.concatenate(result)
    return np.sort(every[every < tree.nodes])


def _mix(graph: ScopedGraph, item: int, column: Names) -> list[dict[str, Any]]:
    """How many nodes of an item have each text, the most frequent ones."""
    codes = column.codes[nodes_in(graph, item)]
    known, count = np.unique(codes[codes >= 0], return_counts=True)
    order = np.argsort(-count, kind="stable")[:12]
    return [
        {"text": short_name(column.values[code]), "nodes": number}
        for code, number in zip(known[order].tolist(), count[order].tolist(), strict=True)
        if column.values[code]
    ]


def _ends(graph: ScopedGraph, node: int, *, into: bool) -> dict[str, Any]:
    """What leads to a node, or what it leads to: at most so many, and how many there are."""
    edges, one = graph.edges, np.array([node])
    some = edges.into(one) if into else edges.out_of(one)
    order = np.lexsort((edges.place[some], edges.is_control[some]))
    some = some[order]
    other = (edges.source if into else edges.target)[some[:_MOST_ENDS]]
    sizes = graph.sizes
    rows = [
        {
            "item": item,
            "name": short_name(graph.names[item] or ""),
            "op": short_name(graph.ops[item] or ""),
            "is_control": bool(edges.is_control[edge]),
            "bytes": None if sizes.bytes[edge] < 0 else int(sizes.bytes[edge]),
            "shape": short_name(sizes.shape[edge] or "") or None,
        }
        for item, edge in zip(other.tolist(), some[:_MOST_ENDS].tolist(), strict=True)
    ]
    return {"total": int(some.size), "rows": rows}


def _of_op(graph: ScopedGraph, node: int) -> dict[str, Any]:
    """Attributes, functions that are called, executions and the stack that made the node."""
    profile, name = graph.profile, graph.names[node] or ""
    function_of = graph.function_of(node)
    attrs = _named(profile.columns_or_empty("node_attrs"), graph, function_of, name)
    listed = [
        {"name": attr or "", "value": (value or "")[: _MOST_TEXTS * 5]}
        for attr, value in attrs.each("attr", "value")
    ][:_MOST_TEXTS]
    known = {one.function for one in graph_names(profile) if one.graph == graph.graph}
    texts = [value or "" for (value,) in attrs.each("value")]
    called = [
        one
        for one in dict.fromkeys([graph.ops[node] or "", *map(_function, texts)])
        if one in known
    ]
    frames = profile.columns_or_empty("node_frames")
    key = name if function_of is None else f"{name}@{function_of}"
    of = frames.names("node")
    mine = frames.take(of.codes == of.code_of(key))
    stack = [
        {"function": function or "", "file": file or "", "line": line}
        for function, file, line in mine.take(np.argsort(mine.array("depth"), kind="stable")).each(
            "function", "file", "line"
        )
    ][:_MOST_FRAMES]
    events: list[int] = []
    if function_of is None:
        runs = profile.columns_or_empty("op_runs")
        names, kind = runs.names("name"), runs.names("kind")
        some = np.flatnonzero(
            (names.codes == names.code_of(name)) & (kind.codes == kind.code_of("executor"))
        )
        longest = some[np.argsort(-runs.array("duration_ps")[some], kind="stable")]
        events = longest[:_MOST_RUNS].tolist()
    return {"attributes": listed, "functions": called, "bodies": [], "stack": stack,
            "events": events, "source": None}  # fmt: skip


def _function(text: str) -> str:
    """The function that the text of an attribute names, as ``name`` or ``name(...)``."""
    return text.partition("(")[0].partition("{")[0].strip().strip('"')


def _named(table: Columns, graph: ScopedGraph, inside: str | None, name: str) -> Columns:
    """The rows of a node: of the graph, or inside a function."""
    names, graphs, functions = (table.names(one) for one in ("name", "graph", "function"))
    function = -1 if inside is None else functions.code_of(inside)
    mine = (names.codes == names.code_of(name)) & (graphs.codes == graphs.code_of(graph.graph))
    return table.take(mine & (functions.codes == function))


def _of_instruction(graph: ScopedGraph, node: int) -> dict[str, Any]:
    """What the program says of an instruction, the bodies it calls, its events and call stack."""
    profile = graph.profile
    programs, number = graph.of_program()
    wanted = {*_INSTRUCTION, "source_file", "source_line", "stack_id", "bytes"}
    (row,) = programs.instructions(number, np.array([node]), wanted).to_pylist()
    costs = row_costs(profile, number)
    listed = [
        {"name": name, "value": str(row[name])[: _MOST_TEXTS * 5]}
        for name in _INSTRUCTION
        if row[name] not in (None, "")
    ]
    listed += [
        {"name": name, "value": f"{value:,.0f}"}
        for name, value in (
            ("flops", costs.flops[node]),
            ("bytes_accessed", costs.bytes_accessed[node]),
        )
        if np.isfinite(value) and value >= 0
    ]
    frames = programs.read(number, "hlo_frames")
    mine = frames.take(
        frames.array("stack_id") == (-1 if row["stack_id"] is None else row["stack_id"])
    )
    stack = [
        {"function": function or "", "file": file or "", "line": line}
        for function, file, line in mine.each("function", "file", "line")
    ][:_MOST_FRAMES]
    events = runs_of(profile, number, graph.names[node] or "")
    if events.size:
        spent = profile.columns("events", {"duration_ps"}).array("duration_ps")[events]
        events = events[np.argsort(-spent, kind="stable")][:_MOST_RUNS]
    source = row["source_file"] and {"file": row["source_file"], "line": row["source_line"]}
    return {
        "attributes": listed, "functions": [], "bodies": _bodies(graph, node), "stack": stack,
        "events": events.tolist(), "source": source or None,
        "result_bytes": int(row["bytes"]), "flops": _number(costs.flops[node]),
        "bytes_accessed": _number(costs.bytes_accessed[node]),
        "own_peak_bytes": int(graph.measures.peak_bytes[node]),
    }  # fmt: skip


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _bodies(graph: ScopedGraph, node: int) -> list[dict[str, Any]]:
    """The computations that an instruction calls, each with the item that holds it."""
    programs, number = graph.of_program()
    calls = programs.read(number, "hlo_calls")
    computations = programs.read(number, "hlo_computations", frozenset(("name", "instructions")))
    of = programs.read(number, "hlo_instructions", {"computation_id"}).array("computation_id")
    result: list[dict[str, Any]] = []
    for callee in calls.array("computation_id")[calls.array("instruction_id") == node].tolist():
        rows = np.flatnonzero(of == callee)
        if rows.size:
            name = computations.names("name")[callee] or ""
            result.append({"name": name, "instructions": int(rows.size),
                          "holder": _holder(graph, int(rows[0]))})  # fmt: skip
    return result


def _holder(graph: ScopedGraph, node: int) -> int:
    """What holds the computation of an instruction: a body, or the instruction that calls it."""
    tree = graph.tree
    at = int(tree.parent[node])
    while at >= 0 and KINDS[int(tree.kind[at])] not in ("node", "body"):
        at = int(tree.parent[at])
    return at
