"""Finding nodes of a graph by name, op, device or where the framework made them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.graph.scopes.model import ScopedGraph
from peakline.tables.columns import Names


@dataclass(frozen=True, eq=False)
class Found:
    """Nodes in order, those first whose name is or ends with the text; and how many there are."""

    nodes: Int64Array
    total: int


def search(graph: ScopedGraph, text: str, most: int) -> Found:
    """The nodes with ``text``, in any case, in their name, op, device or the framework's name."""
    wanted = text.casefold()
    columns = (graph.names, graph.ops, graph.devices, graph.origins)
    found = np.zeros(graph.nodes, np.bool_)
    for column in columns:
        found |= _has(column, wanted)
    rows = np.flatnonzero(found)
    total = int(rows.size)
    ends = np.array([name.casefold().endswith(wanted) for name in graph.names.values], np.bool_)
    if ends.size:
        best = ends[graph.names.codes[rows]]
        rows = np.append(rows[best], rows[~best])
    return Found(rows[:most], total)


def _has(column: Names, wanted: str) -> BoolArray:
    return column.per_row(lambda text: wanted in text.casefold(), np.bool_)
