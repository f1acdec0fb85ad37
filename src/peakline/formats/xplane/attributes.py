"""Attributes of nodes: the stats that step grouping reads, as sparse columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array, UInt8Array, UInt64Array
from peakline.formats.xplane.store import Found
from peakline.kernels.xplane_numbers import Role
from peakline.tables.joins import positions

_UINT64, _INT64 = 3, 4


@dataclass(frozen=True, eq=False)
class Picked:
    """One stat: the nodes that have it (ascending) and its value on each."""

    node: Int32Array
    case: UInt8Array
    bits: Int64Array

    @property
    def signed(self) -> Int64Array:
        """The value read as int64: zero unless it was stored as one."""
        return np.where(self.case == _INT64, self.bits, 0)

    @property
    def unsigned(self) -> UInt64Array:
        """The value read as uint64, from either kind of integer."""
        either = (self.case == _INT64) | (self.case == _UINT64)
        return np.where(either, self.bits, 0).view(np.uint64)

    def at(self, nodes: AnyArray) -> tuple[BoolArray, Int64Array]:
        """For each of ``nodes``: whether it has the stat, and where in `node`."""
        place = positions(self.node, nodes)
        return place >= 0, place

    def only(self, mask: BoolArray) -> Picked:
        """The rows of a mask."""
        return Picked(self.node[mask], self.case[mask], self.bits[mask])


class Attributes:
    """All attributes, in the order of their nodes and, within one, of the file."""

    def __init__(
        self, node: Int32Array, role: UInt8Array, case: UInt8Array, bits: Int64Array
    ) -> None:
        self.node, self.role, self.case, self.bits = node, role, case, bits
        self._picked: dict[tuple[Role, bool], Picked] = {}

    @classmethod
    def of(cls, result: Found) -> Attributes:
        """The attributes of one plane, by its own node numbers."""
        return cls(*(result.get(f"attr_{name}") for name in ("node", "role", "case", "bits")))

    @classmethod
    def join(cls, parts: list[tuple[int, Attributes]]) -> Attributes:
        """Those of several planes; each comes with the number of its first node."""
        if len(parts) == 1 and parts[0][0] == 0:
            return parts[0][1]
        return cls(
            np.concatenate(
                [np.zeros(0, np.int32), *(part.node + np.int32(first) for first, part in parts)]
            ),
            *(
                np.concatenate([np.zeros(0, dtype), *(getattr(part, name) for _, part in parts)])
                for name, dtype in (("role", np.uint8), ("case", np.uint8), ("bits", np.int64))
            ),
        )

    def _pick(self, role: Role, *, last: bool) -> Picked:
        if (role, last) not in self._picked:
            rows = np.flatnonzero(self.role == role)
            node = self.node[rows]
            if node.size > 1:
                change = node[1:] != node[:-1]
                if not change.all():
                    edge = np.ones(1, np.bool_)
                    rows = rows[np.concatenate([change, edge] if last else [edge, change])]
            self._picked[role, last] = Picked(self.node[rows], self.case[rows], self.bits[rows])
        return self._picked[role, last]

    def first(self, role: Role) -> Picked:
        """The first stat of that name on each node."""
        return self._pick(role, last=False)

    def last(self, role: Role) -> Picked:
        """The last stat of that name on each node."""
        return self._pick(role, last=True)
