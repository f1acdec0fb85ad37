"""What each view of the ``graph_scopes`` tool shows, as documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from peakline.arrays import Int64Array
from peakline.errors import NotFoundError, UsageError
from peakline.graph.check import check_graphs
from peakline.graph.index import short_name
from peakline.graph.scopes.details import item_details
from peakline.graph.scopes.graphs import default_graph, graph_names, scoped_graph
from peakline.graph.scopes.model import ScopedGraph
from peakline.graph.scopes.visible import opened_first, visible
from peakline.graph.scopes.walks import Walks, search
from peakline.graph.summary import summarize_graphs
from peakline.hlo.graphs import labels_of
from peakline.hlo.schedule import schedule_of
from peakline.tables import Profile
from peakline.text import check_repeated
from peakline.tools.graph_scopes.picture import nodes_picture, scopes_picture

if TYPE_CHECKING:
    from peakline.tools.graph_scopes.parameters import GraphScopesParameters


_MOST = 12
_MOST_BROKEN = 20
_PROGRAM = (
    "name", "instructions", "computations", "is_scheduled", "peak_bytes", "argument_bytes",
    "output_bytes", "temporary_bytes", "flops", "bytes_accessed", "runs", "run_ps",
)  # fmt: skip


def overview(profile: Profile) -> dict[str, Any]:
    """What `peakline inspect` and `peakline check` say of graphs, and of the program that matters
    most its sizes. Raises InputError when the profile cannot be read.
    """
    names, first = graph_names(profile), default_graph(profile)
    result = summarize_graphs(profile)
    broken = check_graphs(profile)
    ops = result.ops
    program = None
    if first is not None and first.kind == "hlo":
        # The entry's instructions alone would be those of one computation among many.
        ops = _sum(result.ops, result.function_ops)
        modules = profile.table("hlo_modules").to_pylist()
        number = next(at for at, one in enumerate(labels_of(profile)) if one == first.graph)
        program = {name: modules[number][name] for name in _PROGRAM}
    return {
        "graphs_total": sum(one.function is None for one in names),
        "functions_total": sum(one.function is not None for one in names),
        "kinds": sorted({one.kind for one in names if one.function is None}),
        "first": None if first is None else vars(first),
        "nodes": result.nodes,
        "edges": result.edges,
        "function_nodes": result.function_nodes,
        "producer": result.producer,
        "ops": _listed(ops),
        "ops_total": len(ops),
        "devices": [one for one in _listed(result.devices) if one["text"]],
        "program": program,
        "broken": [
            {**one.as_json(with_graph=True), "is_error": one.is_error}
            for one in broken[:_MOST_BROKEN]
        ],
        "broken_total": len(broken),
    }


def _sum(*counts: dict[str, int]) -> dict[str, int]:
    total: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            total[name] = total.get(name, 0) + number
    return dict(sorted(total.items(), key=lambda one: (-one[1], one[0])))


def _listed(counts: dict[str, int]) -> list[dict[str, Any]]:
    return [
        {"text": short_name(text), "nodes": number} for text, number in list(counts.items())[:_MOST]
    ]


_MOST_GRAPHS = 2000
_LARGE = 50_000
"""Of a graph of more nodes reading the attributes takes seconds."""


def _graphs(profile: Profile, _parameters: GraphScopesParameters) -> dict[str, Any]:
    names, first = graph_names(profile), default_graph(profile)
    # A name stands beside each of its functions.
    check_repeated([one.graph for one in names[:_MOST_GRAPHS]])
    return {
        "graphs": [vars(one) for one in names[:_MOST_GRAPHS]],
        "graphs_total": len(names),
        "default": None if first is None else {"graph": first.graph, "function": first.function},
    }


def _overview(profile: Profile, _parameters: GraphScopesParameters) -> dict[str, Any]:
    return overview(profile)


def _scopes(profile: Profile, parameters: GraphScopesParameters) -> dict[str, Any]:
    graph = _graph(profile, parameters)
    tree = graph.tree
    if parameters.opened is None:
        wanted = opened_first(tree)
    else:
        wanted = [int(one) for one in parameters.opened.split(",") if one.isdecimal()]
    if parameters.reveal is not None:
        # What holds it comes first: it must not be what does not fit.
        wanted = [*tree.ancestors(_checked(graph, parameters.reveal)), *wanted]
    shown = visible(tree, wanted)
    return {
        **_head(graph),
        **scopes_picture(graph, shown, sizes=_sizes(graph, parameters)),
        "sizes_left_out": _leaves_out_sizes(graph, parameters),
    }


def _search(profile: Profile, parameters: GraphScopesParameters) -> dict[str, Any]:
    graph = _graph(profile, parameters)
    result = search(graph, parameters.search, parameters.limit)
    measures = graph.measures
    return {
        **_head(graph),
        "search": parameters.search,
        "rows": [
            {
                "item": node,
                "name": short_name(graph.names[node] or ""),
                "op": short_name(graph.ops[node] or ""),
                "device": short_name(graph.devices[node] or ""),
                "time_ps": int(measures.time_ps[node]),
            }
            for node in result.nodes.tolist()
        ],
        "rows_total": result.total,
    }


def _around(profile: Profile, parameters: GraphScopesParameters) -> dict[str, Any]:
    graph = _graph(profile, parameters)
    nodes, more = Walks(graph).around(_node(graph, parameters), parameters.depth)
    return {
        **_head(graph),
        **nodes_picture(graph, nodes, sizes=_sizes(graph, parameters)),
        "sizes_left_out": _leaves_out_sizes(graph, parameters),
        "more": more,
    }


def _path(profile: Profile, parameters: GraphScopesParameters) -> dict[str, Any]:
    graph = _graph(profile, parameters)
    nodes = Walks(graph).path(_node(graph, parameters), to_inputs=parameters.to == "inputs")
    shown = np.array(nodes[:_MOST_PATH], np.int64)
    if len(nodes) > _MOST_PATH:
        half = _MOST_PATH // 2
        shown = np.array([*nodes[:half], *nodes[-half:]], np.int64)
    picture = nodes_picture(graph, shown, sizes=_sizes(graph, parameters))
    return {
        **_head(graph),
        **picture,
        "sizes_left_out": _leaves_out_sizes(graph, parameters),
        "more": len(nodes) - int(shown.size),
    }


_MOST_PATH = 200


def _item(profile: Profile, parameters: GraphScopesParameters) -> dict[str, Any]:
    graph = _graph(profile, parameters)
    return {**_head(graph), **item_details(graph, _checked(graph, parameters.item))}


def _schedule(profile: Profile, parameters: GraphScopesParameters) -> dict[str, Any]:
    graph = _graph(profile, parameters)
    if graph.program is None:
        raise UsageError("graph_scopes: only compiled programs have a schedule")
    schedule = schedule_of(profile, graph.program)
    measures = graph.measures
    begin = parameters.offset
    rows = schedule.rows[begin : begin + parameters.limit]
    live = schedule.live_bytes
    curve, begins = _most(live, parameters.width)
    spent, _ = _sums(measures.time_ps[schedule.rows], parameters.width)
    return {
        **_head(graph),
        "instructions": int(schedule.rows.size),
        "is_given": schedule.is_given,
        "found_by": schedule.found_by,
        "peak": schedule.peak,
        "peak_bytes": int(live[schedule.peak]) if schedule.peak >= 0 else None,
        "lasting_bytes": schedule.lasting_bytes,
        "curve": {"begin": begins, "live_bytes": curve, "time_ps": spent},
        "rows": [
            {
                "place": begin + place,
                "item": row,
                "name": short_name(graph.names[row] or ""),
                "op": short_name(graph.ops[row] or ""),
                "live_bytes": int(live[begin + place]) if live.size else None,
                "peak_bytes": int(measures.peak_bytes[row]),
                "time_ps": int(measures.time_ps[row]),
            }
            for place, row in enumerate(rows.tolist())
        ],
    }


def _most(values: Int64Array, width: int) -> tuple[list[int], list[int]]:
    """The largest value of each of at most ``width`` parts, and where the parts begin."""
    begins = _parts(values.size, width)
    return (np.maximum.reduceat(values, begins).tolist() if values.size else []), begins.tolist()


def _sums(values: Int64Array, width: int) -> tuple[list[int], list[int]]:
    """The sum of each of at most ``width`` parts, and where the parts begin."""
    begins = _parts(values.size, width)
    return (np.add.reduceat(values, begins).tolist() if values.size else []), begins.tolist()


def _parts(size: int, width: int) -> Int64Array:
    count = min(size, width)
    return np.arange(count, dtype=np.int64) * size // max(count, 1)


def _graph(profile: Profile, parameters: GraphScopesParameters) -> ScopedGraph:
    return scoped_graph(profile, parameters.graph, parameters.function)


def _sizes(graph: ScopedGraph, parameters: GraphScopesParameters) -> bool:
    return parameters.sizes and not _leaves_out_sizes(graph, parameters)


def _leaves_out_sizes(graph: ScopedGraph, parameters: GraphScopesParameters) -> bool:
    """Whether bytes of edges come later: they are not known yet, and take long to be known."""
    is_large = graph.nodes > _LARGE and not graph.knows_sizes
    return parameters.sizes and parameters.quick and is_large


def _head(graph: ScopedGraph) -> dict[str, Any]:
    return {
        "graph": graph.graph,
        "function": graph.function,
        "kind": graph.kind,
        "nodes": graph.own,
        "nodes_inside": graph.nodes - graph.own,
        "edges_total": int((graph.edges.target < graph.own).sum()),
    }


def _checked(graph: ScopedGraph, item: int | None) -> int:
    if item is None:
        raise UsageError("graph_scopes: this view is of an item: give one")
    if item >= graph.tree.size:
        raise NotFoundError(f"no item {item} in this graph: there are {graph.tree.size}")
    return item


def _node(graph: ScopedGraph, parameters: GraphScopesParameters) -> int:
    item = _checked(graph, parameters.item)
    if item >= graph.nodes:
        raise UsageError(f"graph_scopes: item {item} is no node but holds several")
    return item


VIEWS: Mapping[str, Callable[[Profile, GraphScopesParameters], dict[str, Any]]] = {
    "scopes": _scopes, "graphs": _graphs, "overview": _overview, "search": _search,
    "around": _around, "path": _path, "item": _item, "schedule": _schedule,
}  # fmt: skip
