"""Graphs and their broken rules as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from peakline.graph.index import short_name
from peakline.graph.rules import RULES
from peakline.render.document.graph import contents_tables, graph_facts, graphs_table
from peakline.render.document.model import Table, text_of
from peakline.render.terminal.screen import indented, plain_table, show
from peakline.text import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable

    from peakline.api import Profile
    from peakline.graph.rules import BrokenRule
    from peakline.graph.summary import GraphRow, GraphSummary

_ROWS = 20
_GRAPHS = 100


def print_graph(profile: Profile, summary: GraphSummary, broken: list[BrokenRule] | None) -> None:
    """Print what the graphs hold; or what a check found, when ``broken`` is not None."""
    head = f"{profile.path} ({profile.format})"
    parts: list[RenderableType] = [Text(one_line(head)), ""]
    parts.append(indented(_facts(summary)))
    if len(summary.graphs) > 1:
        parts += ["", _title("graphs"), *map(indented, _graphs(summary.graphs))]
    if broken is None:
        parts += _contents(summary)
    else:
        parts += _check(broken, several=len(summary.graphs) > 1)
    show(parts)


def _contents(summary: GraphSummary) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for one in contents_tables(summary, _ROWS):
        parts += ["", _title(one.title), indented(_plain(one, "share"))]
        if one.rest:
            kinds, nodes = one.rest
            more = f"and {kinds} more kinds, {nodes:,} nodes (all with --json)"
            parts.append(indented(Text(more)))
    return parts


def _title(text: str) -> Text:
    return Text(one_line(text), style="bold")


def _facts(summary: GraphSummary) -> RichTable:
    table = plain_table(("", ""), [(fact.label, fact.text) for fact in graph_facts(summary)])
    table.show_header = False
    return table


def _graphs(graphs: tuple[GraphRow, ...]) -> list[RenderableType]:
    table = graphs_table(graphs, _GRAPHS)
    parts: list[RenderableType] = [_plain(table)]
    if table.rest:
        hidden, nodes = table.rest
        parts.append(Text(f"and {hidden:,} more, {nodes:,} nodes (all with --json)"))
    return parts


def _plain(table: Table, *more_right: str) -> RichTable:
    """A table of the document; columns of numbers, and those named, are set to the right."""
    heads = [column.label.upper() for column in table.columns]
    right = [
        head
        for head, column in zip(heads, table.columns, strict=True)
        if column.is_number or column.label in more_right
    ]
    cells = [
        [text_of(cell, column.unit) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    return plain_table(heads, cells, right=right)


def _check(broken: list[BrokenRule], *, several: bool) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for title, found in (
        ("error", [one for one in broken if one.is_error]),
        ("note", [one for one in broken if not one.is_error]),
    ):
        rules = dict.fromkeys(one.rule for one in found)
        for rule in rules:
            these = [one for one in found if one.rule == rule]
            style = "bold red" if title == "error" else "bold yellow"
            parts += ["", Text(f"{title}: {rule} ({len(these):,}): {RULES[rule]}", style=style)]
            parts += [indented(_broken(one, several=several)) for one in these[:_ROWS]]
            if len(these) > _ROWS:
                more = f"and {len(these) - _ROWS:,} more (all with --json)"
                parts.append(indented(Text(more)))
    if not any(one.is_error for one in broken):
        parts += ["", Text("every rule holds", style="bold green")]
    return parts


def _broken(one: BrokenRule, *, several: bool) -> Text:
    where = [short_name(one.graph)] if several and one.graph else []
    where += [one.node] if one.node else []
    return Text(one_line(": ".join([*where, one.message])))
