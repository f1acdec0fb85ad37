"""What a report says of graphs: how large they are, how deep, and what their scopes hold."""

from __future__ import annotations

from dataclasses import replace

from peakline.document import limits
from peakline.document.graph import (
    UNNAMED,
    contents_tables,
    depth_of,
    graph_facts,
    graphs_table,
    scopes_table,
)
from peakline.document.model import Fact, Table, capital, rest_text
from peakline.graph.scopes.graphs import default_graph, scoped_graph
from peakline.graph.summary import summarize_graphs
from peakline.render.html.context import Context
from peakline.render.html.html import Child, Markup, clip, join, tag
from peakline.text import counted


def graphs(context: Context) -> Markup | None:
    """The graphs of the profile; nothing without one."""
    profile = context.profile
    name = default_graph(profile)
    if name is None:
        return None
    summary = summarize_graphs(profile)
    facts = [] if name.kind == "hlo" else graph_facts(summary)
    shown: list[Child] = [context.tables.facts("what the graphs hold", facts) if facts else None]
    if len(summary.graphs) > 1 and name.kind != "hlo":
        shown.append(_rows(context, graphs_table(summary.graphs, limits.GRAPHS.report), "graph"))
    shown.append(_scopes(context))
    if name.kind != "hlo":
        shown += [
            _rows(context, one, "kind") for one in contents_tables(summary, limits.NODES.report)
        ]
    several = "s" if len(summary.graphs) > 1 else ""
    title = tag("h2", f"Graph{several}", id="graphs")
    return tag("section", title, *shown, aria_labelledby="graphs")


def _scopes(context: Context) -> Markup:
    """The graph that the page shows first: its size, its depth and its largest scopes."""
    graph = scoped_graph(context.profile)
    table = scopes_table(graph)
    what = "instruction" if graph.program is not None else "node"
    facts = [
        Fact(
            "shown", graph.graph or UNNAMED, "name", f", {graph.function}" if graph.function else ""
        ),
        Fact(f"{what}s", graph.nodes, "count"),
        Fact("depth", counted(depth_of(graph), "scope")),
    ]
    if graph.measures.has_time and graph.measures.step is not None:
        facts.append(Fact("times are of", f"step {graph.measures.step}"))
    shown: list[Child] = [
        context.tables.facts("the graph that takes most time, or is largest", facts)
    ]
    if table.rows:
        shown.append(_rows(context, replace(table, title=clip(table.title, 300)), "scope"))
    return join(shown)


def _rows(context: Context, table: Table, what: str) -> Markup:
    rest = tag("p", f"{capital(rest_text(table, what, 'node'))}.") if table.rest else None
    return join([context.tables.write(replace(table, rest=())), rest])
