"""Graphs and their broken rules as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from peakline.graph.index import short_name
from peakline.graph.rules import RULES
from peakline.hlo.graphs import KIND as HLO
from peakline.render.terminal.screen import indented, plain_table, show
from peakline.text import one_line, shares_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from peakline.api import Profile
    from peakline.graph.rules import BrokenRule
    from peakline.graph.summary import GraphRow, GraphSummary

_ROWS = 20
_GRAPHS = 100
_ANYWHERE = "(any)"
_UNNAMED = "(unnamed)"


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
    """What is in the graph; of several only the largest, as the others may be the same again."""
    shown, where = summary.largest, ""
    if shown is None:
        return []
    if len(summary.graphs) > 1:
        where = f" of the largest graph, {shown.graph or _UNNAMED}"
    parts = _counted(f"ops{where}", shown.ops)
    parts += _counted(f"ops in functions{where}", shown.function_ops)
    if any(shown.devices.keys() - {""}):
        devices = {name or _ANYWHERE: count for name, count in shown.devices.items()}
        parts += _counted(f"requested devices{where}", devices)
    return parts


def _title(text: str) -> Text:
    return Text(one_line(text), style="bold")


def _facts(summary: GraphSummary) -> Table:
    nodes, edges = f"{summary.nodes:,}", f"{summary.edges:,}"
    if summary.functions:
        nodes += f", and {summary.function_nodes:,} in {_number(summary.functions, 'function')}"
        edges += f", and {summary.function_edges:,} in functions"
    # A sum over several graphs would count what they have in common several times.
    facts = [("nodes", nodes), ("edges", edges)]
    if len(summary.graphs) > 1:
        facts = [("graphs", f"{len(summary.graphs):,}")]
    bad = sorted({version for graph in summary.graphs for version in graph.bad_consumers})
    producer = summary.producer or "(not recorded)"
    versions = f"written by {producer}, for readers from {summary.min_consumer} on"
    if bad:
        *but_last, last = map(str, bad)
        listed = f"{', '.join(but_last)} or {last}" if but_last else last
        versions += f", but not {listed}"
    if any(graph.kind != HLO for graph in summary.graphs):
        facts.append(("versions", versions))
    table = plain_table(("", ""), facts)
    table.show_header = False
    return table


def _number(count: int, thing: str) -> str:
    return f"one {thing}" if count == 1 else f"{count:,} {thing}s"


def _graphs(graphs: tuple[GraphRow, ...]) -> list[RenderableType]:
    rows = [
        (
            short_name(graph.graph) or _UNNAMED,
            graph.kind + (f" ({short_name(graph.tags)})" if graph.tags else ""),
            f"{graph.nodes:,}",
            f"{graph.edges:,}",
            f"{graph.functions:,}",
        )
        for graph in graphs[:_GRAPHS]
    ]
    columns = ("GRAPH", "KIND", "NODES", "EDGES", "FUNCTIONS")
    parts: list[RenderableType] = [plain_table(columns, rows, right=columns[2:])]
    if hidden := graphs[_GRAPHS:]:
        nodes = sum(graph.nodes for graph in hidden)
        parts.append(Text(f"and {len(hidden):,} more, {nodes:,} nodes (all with --json)"))
    return parts


def _counted(title: str, counts: dict[str, int]) -> list[RenderableType]:
    if not counts:
        return []
    total = sum(counts.values())
    shown = list(counts.items())[:_ROWS]
    shares = shares_text([*dict(shown).values(), total - sum(dict(shown).values())])
    rows = [
        (f"{count:,}", share, name) for (name, count), share in zip(shown, shares, strict=False)
    ]
    table = plain_table(("COUNT", "SHARE", "NAME"), rows, right=("COUNT", "SHARE"))
    parts: list[RenderableType] = ["", _title(title), indented(table)]
    if hidden := list(counts.values())[_ROWS:]:
        more = f"and {len(hidden)} more kinds, {sum(hidden):,} nodes (all with --json)"
        parts.append(indented(Text(more)))
    return parts


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
