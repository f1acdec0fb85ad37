"""Putting the events of a line in order of time, and its nodes with them."""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray
from peakline.formats.xplane.store import Found


def sort_line(
    begin: AnyArray, length: AnyArray, node: AnyArray, extra: AnyArray
) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """Add the events ``extra`` (begin, length) and sort all by begin, longest first, stably.

    Begins and lengths compare as unsigned numbers. The last array is the order.
    """
    all_begin = np.concatenate([begin, extra[0]])
    all_length = np.concatenate([length, extra[1]])
    all_node = np.concatenate([node, np.full(extra.shape[1], -1, node.dtype)])
    order = np.lexsort((~all_length.view(np.uint64), all_begin.view(np.uint64)))
    return all_begin[order], all_length[order], all_node[order], order


def unsort(values: AnyArray, order: AnyArray, events: int) -> AnyArray:
    """``values`` per sorted place, back in file order, without the added events."""
    back = np.empty_like(values)
    back[order] = values
    return back[:events]


def renumber(found: Found, first_used: dict[str, int], node: AnyArray, order: AnyArray) -> None:
    """Number the nodes of one line in their new order, and all that speaks of them.

    ``first_used`` tells where the line's rows begin; ``node`` (the nodes in their new order, -1
    for other events) is renumbered in place. Memory records, which hold the number of their event
    in the line, are put in the new order too; ``order`` is that of the events.
    """
    placed = node[node >= 0]
    first = first_used["node"]
    new = np.empty(placed.size, np.int32)
    new[placed - first] = np.arange(first, first + placed.size, dtype=np.int32)
    kinds = found.arrays["node_kind"][first : found.used["node"]]
    kinds[:] = kinds[placed - first]
    rows = slice(first_used["time"], found.used["time"])
    if rows.start < rows.stop:
        _reorder(found, "time", rows, placed - first)
    for group in ("root", "consumer", "attr"):
        rows = slice(first_used[group], found.used[group])
        nodes = found.arrays[f"{group}_node"]
        nodes[rows] = new[nodes[rows] - first]
        _reorder(found, group, rows, np.argsort(nodes[rows], kind="stable"))
    node[node >= 0] = new[placed - first]
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    rows = slice(first_used["mem"], found.used["mem"])
    events = found.arrays["mem_node"][rows]
    _reorder(found, "mem", rows, np.argsort(place[events], kind="stable"))


def _reorder(found: Found, group: str, rows: slice, order: AnyArray) -> None:
    for name, array in found.arrays.items():
        if name.startswith(f"{group}_"):
            array[..., rows] = array[..., rows][..., order]
