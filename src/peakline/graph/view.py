"""Part of a graph with what each node cost in a step."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.errors import NotFoundError, UsageError
from peakline.graph.critical_path import StepRuns
from peakline.graph.index import GraphIndex, Scope, index_of
from peakline.graph.step_graph import graphs_of_step
from peakline.hlo.graphs import labels_of
from peakline.hlo.op_times import OpTime, op_times
from peakline.hlo.row_costs import row_costs
from peakline.patterns import Pattern
from peakline.suggest import there_is
from peakline.tables import Profile
from peakline.tables.columns import Columns

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Selection:
    """What to show: nodes of ``graph`` (None: those that ran, else all that were written), in a
    ``function``'s body or outside, whose name has a match of the regular expression ``name``,
    and that are at most ``depth`` edges away from ``node``; of these the ``max_nodes`` that
    took longest, or without executions the first.
    """

    graph: str | None = None
    function: str | None = None
    name: str | None = None
    node: str | None = None
    depth: int = 1
    max_nodes: int = 1000


@dataclass(frozen=True)
class Cost:
    """All executions of a node in the step.

    ``compute_ps`` is the time of its computation, ``duration_ps`` with bookkeeping,
    ``accelerator_ps`` that of its kernels and copies. ``allocated_bytes`` is what was allocated
    while it ran (frees not subtracted), ``output_bytes`` what its outputs take. Of an instruction
    of a compiled program they are sums over the whole profile, ``output_bytes`` of one execution,
    as are ``flops`` and ``bytes_accessed``, None for other nodes.
    """

    runs: int = 0
    compute_ps: int = 0
    duration_ps: int = 0
    accelerator_ps: int = 0
    allocated_bytes: int = 0
    output_bytes: int = 0
    flops: float | None = None
    bytes_accessed: float | None = None


@dataclass(frozen=True)
class ViewNode:
    """One node; ``cost`` is None when it was not executed."""

    graph: str
    name: str
    op: str
    device: str
    cost: Cost | None


@dataclass(frozen=True)
class ViewEdge:
    """One edge between two shown nodes (positions in the list of nodes)."""

    source: int
    target: int
    source_output: int
    target_input: int
    is_control: bool


@dataclass(frozen=True)
class GraphView:
    """The nodes and the edges among them; ``matching`` counts the nodes before the limit."""

    nodes: tuple[ViewNode, ...]
    edges: tuple[ViewEdge, ...]
    matching: int


def view_graph(profile: Profile, selection: Selection, step: StepRuns | None) -> GraphView:
    """The part of the graphs that ``selection`` names.

    Raises NotFoundError for a graph, function or node that is not there, UsageError for a bad
    regular expression.
    """
    index = index_of(profile)
    graphs = _graphs(profile, selection.graph, step)
    shown = _in_scope(index, graphs, selection.function)
    if selection.node is not None:
        shown &= _around(index, shown, selection.node, selection.depth)
    if selection.name is not None:
        shown &= _named(index, selection.name)
    rows = np.flatnonzero(shown)
    matching = int(rows.size)
    costs = _costs(profile, step, inside=selection.function is not None)
    costs.programs = _program_costs(profile, graphs)
    if matching > selection.max_nodes:
        rows = _most_costly(index, rows, costs, selection.max_nodes)
    return GraphView(_nodes(index, rows, costs), _edges(index, rows), matching)


def _graphs(profile: Profile, wanted: str | None, step: StepRuns | None) -> list[str]:
    graphs = profile.columns_or_empty("graphs")
    known = [name or "" for name in graphs.names("graph").to_list()]
    if wanted is None:
        return graphs_of_step(graphs, step.name if step else "") or known
    if wanted not in known:
        raise NotFoundError(f"no graph {wanted!r} in {profile.path}{there_is(wanted, known)}")
    return [wanted]


def _in_scope(index: GraphIndex, graphs: list[str], function: str | None) -> BoolArray:
    wanted = {Scope(graph, function) for graph in graphs}
    numbers = [number for number, scope in enumerate(index.scopes) if scope in wanted]
    if function is not None and not numbers:
        raise NotFoundError(f"no function {function!r} with nodes in these graphs")
    return np.isin(index.node_scope, numbers)


def _named(index: GraphIndex, pattern: str) -> BoolArray:
    try:
        expression = Pattern(pattern)
    except UsageError as error:
        raise UsageError(f"graph: parameter name: {error}") from None
    names = index.nodes.names("name")
    return expression.is_in(names.values)[names.codes]


def _around(index: GraphIndex, among: BoolArray, node: str, depth: int) -> BoolArray:
    near: BoolArray = among & (index.node_name == index.strings.code(node))
    if not near.any():
        raise NotFoundError(f"no node {node!r} in these graphs")
    whole = np.flatnonzero((index.source_row >= 0) & (index.target_row >= 0))
    ends = np.stack([index.source_row[whole], index.target_row[whole]])
    # The edges at node n, both those that it has as its source and as its target, lead to
    # other[first[n] : first[n + 1]].
    order = np.argsort(ends.ravel(), kind="stable")
    other = ends[::-1].ravel()[order]
    first = np.append(0, np.cumsum(np.bincount(ends.ravel(), minlength=near.size)))
    front = np.flatnonzero(near)
    for _ in range(depth):
        # What was reached is not gone back to, so that a long chain takes each node once.
        begins, counts = first[front], first[front + 1] - first[front]
        places = np.repeat(begins - np.cumsum(counts) + counts, counts)
        reached = np.unique(other[places + np.arange(places.size)])
        front = reached[~near[reached]]
        if not front.size:
            break
        near[front] = True
    return near


class _Costs:
    """Costs of the executor by device and name; kernels and copies by name alone."""

    def __init__(self) -> None:
        self.by_node: dict[tuple[str, str], Cost] = {}
        self.by_name: dict[str, Cost] = {}
        self.kernels: dict[str, int] = {}
        self.devices: set[str] = set()
        self.programs: dict[str, dict[str, Cost]] = {}
        """Of instructions of compiled programs, by graph and name."""

    def of(self, graph: str, device: str, name: str) -> Cost | None:
        """What the node cost. One that requests no device that ran is known by its name."""
        if graph in self.programs:
            return self.programs[graph].get(name)
        is_known = device in self.devices
        cost = self.by_node.get((device, name)) if is_known else self.by_name.get(name)
        kernels = self.kernels.get(name, 0)
        return replace(cost or Cost(), accelerator_ps=kernels) if kernels else cost


def _costs(profile: Profile, step: StepRuns | None, *, inside: bool) -> _Costs:
    """What the nodes cost; nothing for function bodies, whose nodes run under other names."""
    result = _Costs()
    if step is None or inside:
        return result
    kind = step.runs.names("kind")
    runs = step.runs.take(kind.codes == kind.code_of("executor"))
    measures = {
        "runs": np.ones(runs.rows, np.int64),
        "compute_ps": np.where(runs.is_valid("compute_ps"), runs.array("compute_ps"), 0),
        "duration_ps": runs.array("duration_ps"),
        "allocated_bytes": _per_run(profile, "op_memory", "total_bytes", runs),
        "output_bytes": _per_run(profile, "op_outputs", "allocated_bytes", runs),
    }
    nodes = [(device or "", name or "") for device, name in runs.each("device", "name")]
    result.devices.update(device for device, _ in nodes)
    result.by_node = _sums(nodes, measures)
    result.by_name = _sums([name for _, name in nodes], measures)
    kernels = step.runs.take(
        np.isin(kind.codes, [kind.code_of(one) for one in ("stream", "stream_all", "memcpy")])
    )
    # A kernel's row is named node:op.
    for name, duration in kernels.each("name", "duration_ps"):
        node = (name or "").partition(":")[0]
        result.kernels[node] = result.kernels.get(node, 0) + duration
    return result


def _program_costs(profile: Profile, graphs: list[str]) -> dict[str, dict[str, Cost]]:
    """What the instructions of compiled programs cost, of those that are shown."""
    if not profile.programs():
        return {}
    labels = {label: number for number, label in enumerate(labels_of(profile))}
    return {graph: instruction_costs(profile, labels[graph]) for graph in graphs if graph in labels}


def instruction_costs(profile: Profile, number: int) -> dict[str, Cost]:
    """By name what the instructions of a program cost and how long they took."""
    programs = profile.programs()
    if programs is None:
        return {}
    table = programs.read(number, "hlo_instructions", {"name", "bytes"})
    costs, times = row_costs(profile, number), op_times(profile).get(number, {})
    result: dict[str, Cost] = {}
    for name, size, flops, moved in zip(
        table.names("name").to_list(), table.array("bytes").tolist(), costs.flops.tolist(),
        costs.bytes_accessed.tolist(), strict=True,
    ):  # fmt: skip
        ran = times.get(name or "", OpTime(0, 0))
        cost = Cost(
            runs=ran.runs, compute_ps=ran.self_ps, duration_ps=ran.self_ps, output_bytes=size,
            flops=flops, bytes_accessed=moved,
        )  # fmt: skip
        result.setdefault(name or "", cost)
    return result


def _per_run(profile: Profile, table: str, column: str, runs: Columns) -> Int64Array:
    """The sum of ``column`` by execution, for the executions ``runs``."""
    ids = runs.array("op_run_id")
    rows = profile.columns_or_empty(table)
    values = np.where(rows.is_valid(column), rows.array(column), 0)
    owners = rows.array("op_run_id")
    sums = np.zeros(int(max(ids.max(initial=-1), owners.max(initial=-1))) + 1, np.int64)
    np.add.at(sums, owners, values)
    result: AnyArray = sums[ids]
    return result


def _sums(keys: list[Key], measures: dict[str, Int64Array]) -> dict[Key, Cost]:
    numbers: dict[Key, int] = {}
    codes = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    sums: dict[str, list[int]] = {}
    for measure, values in measures.items():
        total = np.zeros(len(numbers), np.int64)
        np.add.at(total, codes, values)
        sums[measure] = total.tolist()
    return {
        key: Cost(**{measure: total[number] for measure, total in sums.items()})
        for key, number in numbers.items()
    }


def _most_costly(index: GraphIndex, rows: Int64Array, costs: _Costs, most: int) -> Int64Array:
    graph, device, name = (index.nodes.names(one) for one in ("graph", "device", "name"))
    result = [
        costs.of(graph[row] or "", device[row] or "", name[row] or "") for row in rows.tolist()
    ]
    spent = np.array([cost.compute_ps + cost.accelerator_ps if cost else -1 for cost in result])
    order = np.argsort(-spent, kind="stable")
    return np.sort(rows[order[:most]])


def _nodes(index: GraphIndex, rows: Int64Array, costs: _Costs) -> tuple[ViewNode, ...]:
    result = index.nodes.take(rows)
    return tuple(
        ViewNode(graph, name, op, device, costs.of(graph, device, name))
        for graph, name, op, device in result.each("graph", "name", "op", "device")
    )


def _edges(index: GraphIndex, rows: Int64Array) -> tuple[ViewEdge, ...]:
    place = np.full(index.nodes.rows, -1, np.int64)
    place[rows] = np.arange(rows.size)
    chosen = np.flatnonzero((index.source_row >= 0) & (index.target_row >= 0))
    sources, targets = place[index.source_row[chosen]], place[index.target_row[chosen]]
    both = (sources >= 0) & (targets >= 0)
    edges = index.edges.take(chosen[both])
    ends = zip(sources[both].tolist(), targets[both].tolist(), strict=True)
    more = edges.each("source_output", "target_input", "is_control")
    return tuple(ViewEdge(*pair, *values) for pair, values in zip(ends, more, strict=True))
