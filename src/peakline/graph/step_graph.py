"""What an execution of an op may have waited for: the edges of the graph that ran.

The executor does not record ``_Send`` and ``_Recv``; a pair of them is one edge, found by the
tensor's name that both carry. Executions whose node stands in no graph are led by the inputs
that their label names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from peakline.tables import Profile
from peakline.tables.columns import Columns

_LABEL = re.compile(r"(?=.*\)\Z).* = (?:(?! = )[^(])*\((.*)\)", re.DOTALL)
_SEND = frozenset(("_Send", "_HostSend"))
_RECV = frozenset(("_Recv", "_HostRecv"))
_SOURCE = "_SOURCE"

Node = tuple[str, str]
"""Device and name; an empty device stands for any."""


@dataclass(frozen=True)
class Wait:
    """A node that another waits for: ``why`` is data, control, transfer or source.

    ``tensor`` is what was sent between devices, empty for other edges.
    """

    node: Node
    why: str
    tensor: str = ""


class StepGraph:
    """The nodes before each node, in the graphs of one step."""

    def __init__(self, profile: Profile, step_name: str) -> None:
        self._before: dict[Node, list[Wait]] = {}
        self._by_name: dict[str, list[Node]] = {}
        self._sends: dict[str, list[Node]] = {}
        graphs = profile.columns_or_empty("graphs")
        chosen = graphs_of_step(graphs, step_name)
        heads = graphs.each("graph", "kind")
        ran = any(kind == "partition" for graph, kind in heads if graph in chosen)
        nodes = _in_graphs(profile.columns_or_empty("nodes"), chosen)
        devices: dict[tuple[str, str], Node] = {}
        ops: dict[Node, str] = {}
        for graph, device, name, op in nodes.each("graph", "device", "name", "op"):
            # A graph as a program wrote it names no devices, or only wishes.
            node = ((device or "") if ran else "", name or "")
            devices[graph or "", name or ""] = node
            ops[node] = op or ""
            self._before[node] = []
            self._by_name.setdefault(name or "", []).append(node)
        self._connect(profile, devices, chosen)
        if any(op in _RECV for op in ops.values()):
            self._join(profile, devices, ops)

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self._before)

    @property
    def edges(self) -> int:
        """How many edges there are between them."""
        return sum(map(len, self._before.values()))

    def _connect(
        self, profile: Profile, nodes: dict[tuple[str, str], Node], chosen: list[str]
    ) -> None:
        edges = _in_graphs(profile.columns_or_empty("edges"), chosen)
        for graph, source, target, control in edges.each("graph", "source", "target", "is_control"):
            before, after = nodes.get((graph, source)), nodes.get((graph, target))
            if before is not None and after is not None:
                self._before[after].append(Wait(before, "control" if control else "data"))

    def _join(
        self, profile: Profile, nodes: dict[tuple[str, str], Node], ops: dict[Node, str]
    ) -> None:
        """An edge from every send to the receive of the same tensor between the same devices."""
        attrs = profile.columns_or_empty("node_attrs")
        keys = attrs.names("attr")
        wanted = ("tensor_name", "send_device", "recv_device")
        attrs = attrs.take(np.isin(keys.codes, [keys.code_of(key) for key in wanted]))
        result: dict[Node, dict[str, str]] = {}
        for graph, name, key, value in attrs.each("graph", "name", "attr", "value"):
            node = nodes.get((graph or "", name or ""))
            if node is not None:
                result.setdefault(node, {})[key or ""] = value or ""
        sends = {
            tuple(attr.get(key, "") for key in wanted): node
            for node, attr in result.items()
            if ops[node] in _SEND
        }
        for key, node in sends.items():
            self._sends.setdefault(key[0], []).append(node)
        for node, attr in result.items():
            send = sends.get(tuple(attr.get(key, "") for key in wanted))
            if ops[node] in _RECV and send is not None:
                tensor = attr.get("tensor_name", "")
                self._before[node].append(Wait(send, "transfer", tensor))

    def before(self, node: Node, label: str | None) -> list[Wait]:
        """What ``node`` waits for, nodes that are never recorded included.

        ``label`` is the execution's ``timeline_label``. A node without inputs waits for the
        source of its device.
        """
        known = self._find(node)
        waits = self._before[known] if known is not None else list(_of_label(node, label))
        return waits or [Wait((node[0], _SOURCE), "source")]

    def has(self, node: Node) -> bool:
        """Whether the graph says what ``node`` waits for, so that no label does."""
        return self._find(node) is not None

    def sent(self, tensor: str) -> list[Wait]:
        """The nodes that send ``tensor`` to other devices."""
        return [Wait(node, "data") for node in self._sends.get(tensor, [])]

    def _find(self, node: Node) -> Node | None:
        if node in self._before:
            return node
        same = self._by_name.get(node[1], [])
        return same[0] if len(same) == 1 else None


def _in_graphs(table: Columns, graphs: list[str]) -> Columns:
    """The rows of ``graphs`` that are outside functions."""
    wanted = table.names("graph").per_row(set(graphs).__contains__, np.bool_)
    return table.take(wanted & (table.names("function").codes < 0))


def graphs_of_step(graphs: Columns, step_name: str) -> list[str]:
    """The graphs that ran in a step: its partitions, else those that programs wrote."""
    rows = graphs.to_pylist()
    partitions = [row["graph"] for row in rows if row["kind"] == "partition"]
    own = [graph for graph in partitions if graph.startswith(f"{step_name} ")]
    written = [row["graph"] for row in rows if row["kind"] in {"graph_def", "meta_graph"}]
    return own or partitions or written


def _of_label(node: Node, label: str | None) -> Iterator[Wait]:
    """The inputs of ``[...] name = Op(input, input:1, ^control)``."""
    result = _LABEL.fullmatch(label or "")
    for text in result[1].split(", ") if result else ():
        name = text.removeprefix("^").partition(":")[0]
        # Where a send or receive stands, its label names the tensor instead.
        if name and " " not in name:
            yield Wait((node[0], name), "control" if text.startswith("^") else "data")
