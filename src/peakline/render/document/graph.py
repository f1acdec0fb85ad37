"""What is said of graphs: what they hold, and the largest scopes of one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from peakline.graph.index import short_name
from peakline.graph.scopes.tree import SCOPE
from peakline.graph.summary import GraphRow, GraphSummary
from peakline.hlo.graphs import KIND as HLO
from peakline.render.document.model import Fact, Row, Table, columns_of
from peakline.text import shares_text

if TYPE_CHECKING:
    from peakline.graph.scopes.model import ScopedGraph

ANYWHERE = "(any)"
UNNAMED = "(unnamed)"
_SCOPES = 15
_GRAPHS = columns_of("graph", "kind", nodes="count", edges="count", functions="count")
_COUNTS = columns_of("count", "share", name="")


def graph_facts(summary: GraphSummary) -> list[Fact]:
    """Nodes, edges and versions; a sum over several graphs would count what they have in common
    several times.
    """
    nodes, edges = f"{summary.nodes:,}", f"{summary.edges:,}"
    if summary.functions:
        nodes += f", and {summary.function_nodes:,} in {_number(summary.functions, 'function')}"
        edges += f", and {summary.function_edges:,} in functions"
    facts = [Fact("nodes", nodes), Fact("edges", edges)]
    if len(summary.graphs) > 1:
        facts = [Fact("graphs", f"{len(summary.graphs):,}")]
    bad = sorted({version for graph in summary.graphs for version in graph.bad_consumers})
    producer = summary.producer or "(not recorded)"
    versions = f"written by {producer}, for readers from {summary.min_consumer} on"
    if bad:
        *but_last, last = map(str, bad)
        listed = f"{', '.join(but_last)} or {last}" if but_last else last
        versions += f", but not {listed}"
    if any(graph.kind != HLO for graph in summary.graphs):
        facts.append(Fact("versions", versions))
    return facts


def _number(count: int, thing: str) -> str:
    return f"one {thing}" if count == 1 else f"{count:,} {thing}s"


def graphs_table(graphs: tuple[GraphRow, ...], most: int) -> Table:
    """A row per graph; ``rest`` is how many more there are, and their nodes."""
    rows: list[Row] = [
        (
            short_name(graph.graph) or UNNAMED,
            graph.kind + (f" ({short_name(graph.tags)})" if graph.tags else ""),
            graph.nodes,
            graph.edges,
            graph.functions,
        )
        for graph in graphs[:most]
    ]
    hidden = graphs[most:]
    rest = (len(hidden), sum(graph.nodes for graph in hidden)) if hidden else ()
    return Table("graphs", _GRAPHS, rows, rest)


def contents_tables(summary: GraphSummary, most: int) -> Iterator[Table]:
    """What is in the graph; of several only the largest, as the others may be the same again."""
    shown, where = summary.largest, ""
    if shown is None:
        return
    if len(summary.graphs) > 1:
        where = f" of the largest graph, {shown.graph or UNNAMED}"
    counted = [(f"ops{where}", shown.ops), (f"ops in functions{where}", shown.function_ops)]
    if any(shown.devices.keys() - {""}):
        devices = {name or ANYWHERE: count for name, count in shown.devices.items()}
        counted.append((f"requested devices{where}", devices))
    yield from (counts_table(title, counts, most) for title, counts in counted if counts)


def counts_table(title: str, counts: Mapping[str, int], most: int) -> Table:
    """How often each name occurs; ``rest`` is how many more names there are, and their count."""
    total = sum(counts.values())
    shown = list(counts.items())[:most]
    sizes = [count for _, count in shown]
    shares = shares_text([*sizes, total - sum(sizes)])
    rows: list[Row] = [
        (count, share, name) for (name, count), share in zip(shown, shares, strict=False)
    ]
    hidden = list(counts.values())[most:]
    return Table(title, _COUNTS, rows, (len(hidden), sum(hidden)) if hidden else ())


def depth_of(graph: ScopedGraph) -> int:
    """How many scopes stand in each other at most."""
    tree = graph.tree
    return max(
        (place + 1 for place, level in enumerate(tree.levels) if (tree.kind[level] == SCOPE).any()),
        default=0,
    )


def scopes_table(graph: ScopedGraph) -> Table:
    """The largest of the outermost scopes that are more than one, by their nodes; with the time and
    the memory of each where the profile has them.
    """
    tree, measures = graph.tree, graph.measures
    inner, path = tree.children(-1), ""
    while inner.size == 1 and int(inner[0]) >= tree.nodes and tree.child_counts[inner[0]]:
        path += f"{tree.label(int(inner[0]))}/"
        inner = tree.children(int(inner[0]))
    totals = measures.totals
    scopes = inner[inner >= tree.nodes]
    order = scopes[np.argsort(-totals["nodes"][scopes], kind="stable")][:_SCOPES]
    units = {"nodes": "count", "share": "share"}
    if measures.has_time:
        units["self time"] = "run_ps"
    if measures.has_memory:
        units["live at the peak"] = "bytes"
    columns = columns_of(**{**units, "scope": "name"})
    rows: list[Row] = []
    for item in order.tolist():
        nodes = int(totals["nodes"][item])
        cells: list[int | str] = [nodes, f"{nodes / max(tree.nodes, 1):.1%}"]
        if measures.has_time:
            cells.append(int(totals["time_ps"][item]))
        if measures.has_memory:
            cells.append(int(totals["peak_bytes"][item]))
        rows.append((*cells, f"{path}{tree.label(item)}"))
    left = (scopes.size - len(rows),) if scopes.size > len(rows) else ()
    return Table("the largest scopes", columns, rows, left)
