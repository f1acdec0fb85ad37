"""What a pass over a plane keeps, in arrays that grow with what is found."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

import numpy as np

from peakline.arrays import AnyArray

_FIRST_ROOM = 1 << 12
_SLACK = 3.0
"""Lines differ in what their events hold; room that nobody writes costs nothing until it is given
back, and moving what is there costs most of all.
"""
NUMBER_ROWS = 9

# Groups of arrays of equal length: name, dtype, rows (0: one-dimensional).
_GROUPS: dict[str, tuple[tuple[str, str, int], ...]] = {
    "event": (
        ("event_begin", "int64", 0),
        ("event_length", "int64", 0),
        ("event_place", "int32", 0),
        ("event_case", "uint8", 0),
    ),
    "owner": (("owner_node", "int32", 0),),
    "stat": (
        ("stat_event", "int64", 0),
        ("stat_number", "int64", 0),
        ("stat_case", "uint8", 0),
        ("stat_bits", "int64", 0),
        ("stat_length", "int32", 0),
    ),
    "node": (("node_kind", "uint8", 0), ("node_parent", "int32", 0)),
    "time": (
        ("time_begin", "int64", 0),
        ("time_length", "int64", 0),
        ("time_line", "int32", 0),
    ),
    "root": (
        ("root_node", "int32", 0),
        ("root_begin", "int64", 0),
        ("root_length", "int64", 0),
        ("root_metadata", "int64", 0),
        ("root_line", "int32", 0),
    ),
    "producer": (("producer_node", "int32", 0), ("producer_key", "uint64", 0)),
    "consumer": (("consumer_node", "int32", 0), ("consumer_key", "uint64", 0)),
    "attr": (
        ("attr_node", "int32", 0),
        ("attr_role", "uint8", 0),
        ("attr_case", "uint8", 0),
        ("attr_bits", "int64", 0),
    ),
    "mem": (
        ("mem_node", "int32", 0),
        ("mem_line", "int32", 0),
        ("mem_offset", "int64", 0),
        ("mem_kind", "uint8", 0),
        ("mem_numbers", "int64", NUMBER_ROWS),
        ("mem_codes", "int32", 4),
        ("mem_dtype", "int32", 0),
        ("mem_id", "int8", 0),
        ("mem_have", "uint16", 0),
        ("mem_odd", "uint16", 0),
    ),
}


@dataclass
class Found:
    """Nodes, roots, ends of contexts, attributes and memory records of one plane; and, where they
    are kept, its events with some of their stats, and when its nodes are (begins on the file's
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
        for members in _GROUPS.values():
            for name, dtype, rows in members:
                self.arrays[name] = np.zeros((rows, 0) if rows else 0, dtype)
        if self.types < 1 << 15:
            self.arrays["event_place"] = np.zeros(0, np.int16)

    def reserve(self, group: str, more: int, share: float) -> None:
        """Make room for ``more`` rows; ``share`` of the input has been read so far, so that a
        growing array is given about what it will need in all.
        """
        members = _GROUPS[group]
        size = self.used[group]
        room = self.arrays[members[0][0]].shape[-1]
        if size + more <= room:
            return
        expected = int(size / share * _SLACK) if share > 0.0 else 0
        room = max(size + more, size * 2, expected, _FIRST_ROOM)
        for name, _, rows in members:
            old = self.arrays[name]
            # Zeroed memory comes from the system untouched: rows nobody writes cost nothing.
            new = np.zeros((rows, room) if rows else room, old.dtype)
            new[..., :size] = old[..., :size]
            self.arrays[name] = new

    def trim(self) -> None:
        """Give up the room that nobody needs any more; what is used stays where it is."""
        for group, members in _GROUPS.items():
            for name, _, rows in members:
                if not rows:
                    # In place: a copy would touch as much memory again. Not with views of it.
                    with contextlib.suppress(ValueError):
                        self.arrays[name].resize(self.used[group])

    def get(self, name: str) -> AnyArray:
        """The used rows of an array."""
        return self.arrays[name][..., : self.used[name.partition("_")[0]]]

    def free(self, name: str) -> AnyArray:
        """The rows of an array that are not used yet."""
        return self.arrays[name][..., self.used[name.partition("_")[0]] :]
