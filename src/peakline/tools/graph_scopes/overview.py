"""What the graphs of a profile are, in short: sizes, ops, devices, and rules that they break."""

from __future__ import annotations

from typing import Any

from peakline.graph.check import check_graphs
from peakline.graph.index import short_name
from peakline.graph.scopes.graphs import default_graph, graph_names
from peakline.graph.summary import summarize_graphs
from peakline.hlo.graphs import labels_of
from peakline.tables import Profile

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
    found = summarize_graphs(profile)
    broken = check_graphs(profile)
    ops = found.ops
    program = None
    if first is not None and first.kind == "hlo":
        # The entry's instructions alone would be those of one computation among many.
        ops = _sum(found.ops, found.function_ops)
        modules = profile.table("hlo_modules").to_pylist()
        number = next(at for at, one in enumerate(labels_of(profile)) if one == first.graph)
        program = {name: modules[number][name] for name in _PROGRAM}
    return {
        "graphs_total": sum(one.function is None for one in names),
        "functions_total": sum(one.function is not None for one in names),
        "kinds": sorted({one.kind for one in names if one.function is None}),
        "first": None if first is None else vars(first),
        "nodes": found.nodes,
        "edges": found.edges,
        "function_nodes": found.function_nodes,
        "producer": found.producer,
        "ops": _listed(ops),
        "ops_total": len(ops),
        "devices": [one for one in _listed(found.devices) if one["text"]],
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
