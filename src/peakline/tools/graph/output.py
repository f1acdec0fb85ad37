"""The answer of the ``graph`` tool as JSON, as DOT and as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from peakline.graph.critical_path import CriticalPath
from peakline.graph.index import short_name
from peakline.graph.view import GraphView, Selection, ViewNode
from peakline.safe_text import one_line


@dataclass(frozen=True)
class Report:
    """What was chosen and found; ``path`` is None without executions."""

    selection: Selection
    view: GraphView
    path: CriticalPath | None

    @property
    def left_out(self) -> int:
        """Nodes that were chosen but are beyond the limit."""
        return self.view.matching - len(self.view.nodes)

    def texts(self) -> list[str]:
        """The texts of files that stand in the answer, as often as they do."""
        result = [
            text
            for node in self.view.nodes
            for text in (node.graph, node.name, node.op, node.device)
        ]
        if self.path is not None:
            for one in self.path.pieces:
                result += one.device, one.name, one.op_type, one.tensor
        return result


def to_json(report: Report) -> str:
    """Costs are null for nodes that were not executed; ``critical_path`` without executions."""
    view = report.view
    document = {
        "nodes": [
            {
                "graph": node.graph,
                "name": node.name,
                "op": node.op,
                "device": node.device,
                "cost": None if node.cost is None else vars(node.cost),
            }
            for node in view.nodes
        ],
        "edges": [vars(edge) for edge in view.edges],
        "nodes_left_out": report.left_out,
        "critical_path": None if report.path is None else report.path.as_json(),
    }
    return json.dumps(document, separators=(",", ":"))


def to_dot(report: Report) -> str:
    """A Graphviz digraph; nodes on the critical path are red, control edges dashed."""
    view = report.view
    on_path = _on_path(report.path)
    devices = {device for device, _ in on_path}
    several = len({node.graph for node in view.nodes}) > 1
    lines = ["digraph graph_def {", "  node [shape=box, fontname=sans];"]
    if report.left_out:
        lines.append(f"  // {report.left_out} more nodes were left out")
    for number, node in enumerate(view.nodes):
        label = [node.name, node.op]
        if several:
            label.append(node.graph)
        if node.cost is not None and node.cost.runs:
            times = "one run" if node.cost.runs == 1 else f"{node.cost.runs} runs"
            label.append(f"{_short_time(node.cost.compute_ps)} in {times}")
        colour = ", color=red, penwidth=2" if _is_on(node, on_path, devices) else ""
        lines.append(f"  n{number} [label={_dot_text(label)}{colour}];")
    for edge in view.edges:
        style = " [style=dashed]" if edge.is_control else ""
        if edge.source_output > 0:
            style = f' [taillabel="{edge.source_output}"]'
        lines.append(f"  n{edge.source} -> n{edge.target}{style};")
    return "\n".join([*lines, "}", ""])


def to_text(report: Report) -> str:
    """Tables for a person: the nodes, the most costly first, then the critical path."""
    view = report.view
    nodes = sorted(view.nodes, key=lambda node: -node.cost.compute_ps if node.cost else 1)
    lines = [f"{len(view.nodes):,} nodes, {len(view.edges):,} edges among them"]
    if report.left_out:
        lines[0] += f"; {report.left_out:,} more nodes match"
    lines.append("")
    if not nodes:
        lines = ["no nodes"]
    elif any(node.cost for node in nodes):
        lines += _table([_NODE_COLUMNS, *map(_node_row, nodes)], right=3)
    else:
        lines += _table([_NODE_COLUMNS[3:], *(_node_row(node)[3:] for node in nodes)], right=0)
    if report.path is not None:
        lines += ["", *_path_text(report.path)]
    return "\n".join([*lines, ""])


_NODE_COLUMNS = ("COMPUTE MS", "RUNS", "ALLOCATED BYTES", "OP", "NAME")


def _node_row(node: ViewNode) -> tuple[str, ...]:
    cost = node.cost
    spent = ("", "", "")
    if cost is not None:
        spent = (_milliseconds(cost.compute_ps), str(cost.runs), f"{cost.allocated_bytes:,}")
    return (*spent, _shown(node.op), _shown(node.name))


def _path_text(path: CriticalPath) -> Iterator[str]:
    time = path.end_ps - path.start_ps
    share = path.busy_ps / time if time else 0
    yield (
        f"critical path of step {path.step_id}: {_milliseconds(time)} ms, "
        f"{_milliseconds(path.busy_ps)} ms ({share:.1%}) of it busy, "
        f"{_milliseconds(path.wait_ps)} ms waiting"
    )
    yield ""
    columns: tuple[str, ...] = (
        "AT MS", "WAITED MS", "QUEUED MS", "BUSY MS", "AFTER", "OP", "NAME", "DEVICE",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = [
        (
            _milliseconds(piece.begin_ps),
            _milliseconds(piece.wait_ps),
            _milliseconds(piece.queued_ps),
            _milliseconds(piece.busy_ps),
            piece.why,
            _shown(piece.op_type),
            _shown(f"{piece.name} (of {piece.tensor})" if piece.tensor else piece.name),
            _shown(piece.device),
        )
        for piece in path.pieces
    ]
    if len({piece.device for piece in path.pieces}) == 1:
        yield f"all on {rows[0][-1]}"
        yield ""
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    yield from _table([columns, *rows], right=4)


def _on_path(path: CriticalPath | None) -> set[tuple[str, str]]:
    """Devices and names of nodes on the path, and names alone for graphs without devices."""
    if path is None:
        return set()
    pieces = path.pieces
    return {(piece.device, piece.name) for piece in pieces} | {("", one.name) for one in pieces}


def _is_on(node: ViewNode, on_path: set[tuple[str, str]], devices: set[str]) -> bool:
    if node.cost is None:
        return False
    return (node.device if node.device in devices else "", node.name) in on_path


def _shown(text: str) -> str:
    # A row is as wide as the longest.
    return one_line(short_name(text))


def _milliseconds(picoseconds: int) -> str:
    return f"{picoseconds / 10**9:.3f}"


def _short_time(picoseconds: int) -> str:
    """In milliseconds; below one in microseconds, or a kernel of 350 ns would be 0.000."""
    if picoseconds >= 10**9:
        return f"{_milliseconds(picoseconds)} ms"
    return f"{picoseconds / 10**6:.2f} us"


def _dot_text(lines: list[str]) -> str:
    escaped = [one_line(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + "\\n".join(escaped) + '"'


def _table(rows: Sequence[tuple[str, ...]], *, right: int) -> Iterator[str]:
    """Columns side by side; the first ``right`` of them end at the same place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if number < right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


FORMATS: dict[str, Callable[[Report], str]] = {"json": to_json, "dot": to_dot, "text": to_text}
