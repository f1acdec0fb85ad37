"""What a pass over a plane finds, in arrays that grow with it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from peakline.arrays import AnyArray

_FIRST_ROOM = 1 << 12
_SLACK = 3.0
"""Lines differ in what their events hold; room that nobody writes costs nothing until it is given
back, and moving the rows costs most of all.
"""
# Groups of arrays of equal length: their dtypes by name, without the group's name before it.
_GROUPS: dict[str, dict[str, str]] = {
    "event": {"begin": "int64", "length": "int64", "place": "int32", "case": "uint8"},
    "owner": {"node": "int32"},
    "stat": {
        "event": "int64", "number": "int64", "case": "uint8", "bits": "int64", "length": "int32",
    },
    "node": {"kind": "uint8", "parent": "int32"},
    "time": {"begin": "int64", "length": "int64", "line": "int32"},
    "root": {
        "node": "int32", "begin": "int64", "length": "int64", "metadata": "int64", "line": "int32",
    },
    "producer": {"node": "int32", "key": "uint64"},
    "consumer": {"node": "int32", "key": "uint64"},
    "attr": {"node": "int32", "role": "uint8", "case": "uint8", "bits": "int64"},
    "mem": {
        "node": "int32", "line": "int32", "offset": "int64", "kind": "uint8", "numbers": "int64",
        "codes": "int32", "dtype": "int32", "id": "int8", "have": "uint16", "odd": "uint16",
    },
}  # fmt: skip
_TWO_DIMENSIONS = {"mem_numbers": 9, "mem_codes": 4}
"""Arrays that hold so many rows of what others hold one of."""


def _zeros(name: str, size: int, dtype: Any) -> AnyArray:
    rows = _TWO_DIMENSIONS.get(name)
    return np.zeros(size if rows is None else (rows, size), dtype)


@dataclass
class Found:
    """Nodes, roots, ends of contexts, attributes and memory records of one plane; and, where they
    are wanted, its events with some of their stats, and when its nodes are (begins on the file's
    clock, in ps).

    ``event_place`` is the place of an event's metadata among the plane's (see `places_of`), in 16
    bits where those are few enough; ``types`` is how many there are.
    ``owner_node`` is n for the node n itself, -2 - n for an event inside of it, else -1.
    ``stat_event`` is the number of the event in the plane, ``stat_number`` the stat's id.

    Every array has room for more rows than are used; ``used`` counts the rows by group. Fresh rows
    are zero. Nodes are numbered from 0 within the plane.
    """

    types: int = 1 << 31
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_GROUPS, 0))

    def __post_init__(self) -> None:
        for group, members in _GROUPS.items():
            for member, dtype in members.items():
                name = f"{group}_{member}"
                self.arrays[name] = _zeros(name, 0, dtype)
        if self.types < 1 << 15:
            self.arrays["event_place"] = np.zeros(0, np.int16)

    def reserve(self, group: str, more: int, share: float) -> None:
        """Make room for ``more`` rows; ``share`` of the input has been read so far, so that a
        growing array is given about what it will need in all.
        """
        names = [f"{group}_{member}" for member in _GROUPS[group]]
        size = self.used[group]
        room = self.arrays[names[0]].shape[-1]
        if size + more <= room:
            return
        expected = int(size / share * _SLACK) if share > 0.0 else 0
        room = max(size + more, size * 2, expected, _FIRST_ROOM)
        for name in names:
            old = self.arrays[name]
            # Zeroed memory comes from the system untouched: rows nobody writes cost nothing.
            new = _zeros(name, room, old.dtype)
            new[..., :size] = old[..., :size]
            self.arrays[name] = new

    def trim(self) -> None:
        """Give up the room that nobody needs any more; what is used stays where it is."""
        for name in self.arrays.keys() - _TWO_DIMENSIONS.keys():
            # In place: a copy would touch as much memory again. Not with views of it.
            with contextlib.suppress(ValueError):
                self.arrays[name].resize(self.used[name.partition("_")[0]])

    def get(self, name: str) -> AnyArray:
        """The used rows of an array."""
        return self.arrays[name][..., : self.used[name.partition("_")[0]]]

    def free(self, name: str) -> AnyArray:
        """The rows of an array that are not used yet."""
        return self.arrays[name][..., self.used[name.partition("_")[0]] :]


# Putting the events of a line in order of time, and its nodes with them.


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


def renumber(result: Found, first_used: dict[str, int], node: AnyArray, order: AnyArray) -> None:
    """Number the nodes of one line in their new order, and all that refers to them.

    ``first_used`` says where the line's rows begin; ``node`` (the nodes in their new order, -1
    for other events) is renumbered in place. Memory records, which hold the number of their event
    in the line, are put in the new order too; ``order`` is that of the events.
    """
    placed = node[node >= 0]
    first = first_used["node"]
    new = np.empty(placed.size, np.int32)
    new[placed - first] = np.arange(first, first + placed.size, dtype=np.int32)
    kinds = result.arrays["node_kind"][first : result.used["node"]]
    kinds[:] = kinds[placed - first]
    rows = slice(first_used["time"], result.used["time"])
    if rows.start < rows.stop:
        _reorder(result, "time", rows, placed - first)
    for group in ("root", "consumer", "attr"):
        rows = slice(first_used[group], result.used[group])
        nodes = result.arrays[f"{group}_node"]
        nodes[rows] = new[nodes[rows] - first]
        _reorder(result, group, rows, np.argsort(nodes[rows], kind="stable"))
    node[node >= 0] = new[placed - first]
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    rows = slice(first_used["mem"], result.used["mem"])
    events = result.arrays["mem_node"][rows]
    _reorder(result, "mem", rows, np.argsort(place[events], kind="stable"))


def _reorder(result: Found, group: str, rows: slice, order: AnyArray) -> None:
    for name, array in result.arrays.items():
        if name.startswith(f"{group}_"):
            array[..., rows] = array[..., rows][..., order]
