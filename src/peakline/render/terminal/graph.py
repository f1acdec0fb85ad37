"""Graphs and their broken rules as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.document import limits
from peakline.document.graph import NO_GRAPH, contents_tables, graph_facts, graphs_table
from peakline.document.model import more_text, rest_text
from peakline.document.wording import ALL_IN_JSON
from peakline.graph.index import short_name
from peakline.graph.rules import RULES
from peakline.render.terminal.screen import (
    Shown,
    Text,
    drawn,
    drawn_facts,
    in_order,
    indented,
    show,
)
from peakline.text import counted

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.graph.rules import BrokenRule
    from peakline.graph.summary import GraphRow, GraphSummary


def print_graph(profile: Profile, summary: GraphSummary, broken: list[BrokenRule] | None) -> None:
    """Print what the graphs hold; or what a check found, when ``broken`` is not None."""
    if not summary.graphs:
        show([Text(f"{profile.path}: {NO_GRAPH}", hang=2)])
        return
    parts: list[Shown] = [Text(_headline(summary, broken), "bold", 2)]
    parts += [Text(f"{profile.path} ({profile.format})", "dim", 2), ""]
    parts.append(drawn_facts(graph_facts(summary)))
    if len(summary.graphs) > 1:
        parts += ["", _title("graphs"), *_graphs(summary.graphs)]
    if broken is None:
        parts += _contents(summary)
    else:
        parts += _check(broken, several=len(summary.graphs) > 1)
    show(parts)


def _headline(summary: GraphSummary, broken: list[BrokenRule] | None) -> str:
    """How large the graph is, and whether its rules hold where that was checked."""
    size = counted(max((one.nodes for one in summary.graphs), default=0), "node")
    if len(summary.graphs) > 1:
        size += f" in the largest of {len(summary.graphs):,} graphs"
    if broken is None:
        return size
    errors = sum(one.is_error for one in broken)
    return f"{size}: {counted(errors, 'broken rule') if errors else 'every rule holds'}"


def _contents(summary: GraphSummary) -> list[Shown]:
    parts: list[Shown] = []
    for one in contents_tables(summary, limits.NODES.terminal):
        parts += ["", _title(one.title), drawn(one)]
        if one.rest:
            parts.append(indented(Text(f"{rest_text(one, 'kind', 'node')}{ALL_IN_JSON}")))
    return parts


def _title(text: str) -> Text:
    return Text(text, "bold")


def _graphs(graphs: tuple[GraphRow, ...]) -> list[Shown]:
    table = graphs_table(graphs, limits.GRAPHS.terminal)
    parts: list[Shown] = [in_order(table)]
    if table.rest:
        parts.append(Text(f"{rest_text(table, 'graph', 'node')}{ALL_IN_JSON}"))
    return parts


def _check(broken: list[BrokenRule], *, several: bool) -> list[Shown]:
    parts: list[Shown] = []
    for title, result in (
        ("error", [one for one in broken if one.is_error]),
        ("note", [one for one in broken if not one.is_error]),
    ):
        rules = dict.fromkeys(one.rule for one in result)
        for rule in rules:
            these = [one for one in result if one.rule == rule]
            style = "bold red" if title == "error" else "bold yellow"
            parts += ["", Text(f"{title}: {rule} ({len(these):,}): {RULES[rule]}", style, 2)]
            parts += [
                indented(_broken(one, several=several)) for one in these[: limits.NODES.terminal]
            ]
            if more := more_text(len(these) - limits.NODES.terminal, where=ALL_IN_JSON):
                parts.append(indented(Text(more)))
    if not any(one.is_error for one in broken):
        parts += ["", Text("every rule holds", "green")]
    return parts


def _broken(one: BrokenRule, *, several: bool) -> Text:
    where = [short_name(one.graph)] if several and one.graph else []
    where += [one.node] if one.node else []
    return Text(": ".join([*where, one.message]), hang=2)
