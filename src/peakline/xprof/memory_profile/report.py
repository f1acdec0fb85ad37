"""What the tool ``memory_profile`` writes about one host, before it is bytes of a format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from peakline.arrays import Int64Array
from peakline.tables import Columns
from peakline.xprof.memory_profile.rules import AllocatorProfile, Peak, SpecialAllocation

TEXT_COLUMNS = ("tf_op_name", "region_type", "data_type", "tensor_shape")
"""What a snapshot says of its tensor."""


@dataclass(frozen=True, eq=False)
class Shown:
    """Snapshots in the order in which they are written, one entry each.

    ``rows`` are their rows in the report's table, ``sources`` the rows whose op, region, data type
    and shape they show, ``steps`` their steps.
    """

    rows: Int64Array
    sources: Int64Array
    steps: Int64Array


@dataclass(frozen=True, eq=False)
class AllocatorReport:
    """What is written about one allocator.

    ``active`` has ``(snapshot_index, special_index, num_occurrences)`` per row of the table at the
    peak; ``capacity_bytes`` is 0 where it is not known.
    """

    memory_id: str
    lifetime_peak_bytes: int
    peak: Peak
    capacity_bytes: int
    kept: Shown
    sampled: Shown
    active: list[tuple[int, int, int]]
    specials: tuple[SpecialAllocation, ...]


@dataclass(frozen=True, eq=False)
class Report:
    """What is written about one host: its allocators, over one table of snapshots, and the runs of
    its modules. It can be pickled, and holds no other snapshots than it shows.
    """

    snapshots: Columns
    allocators: list[AllocatorReport]
    modules: Columns | None
    version: int

    @cached_property
    def text_bytes(self) -> int:
        """How long the distinct texts of the snapshots are together."""
        texts = (self.snapshots.names(name).values for name in TEXT_COLUMNS)
        return sum(sum(map(len, values)) for values in texts)


def make_report(
    snapshots: Columns,
    allocators: Iterable[AllocatorProfile],
    modules: Columns | None,
    version: int,
    max_snapshots: int,
    *,
    knows_capacity: bool = True,
) -> Report:
    """The report about the allocators of ``snapshots``.

    ``version`` 0 keeps every snapshot and has no sample and no modules; 1 keeps the snapshots of
    the table at the peak and a sample of at most ``max_snapshots``. Without ``knows_capacity``
    (nothing says how much was free) the memory capacity is 0.
    """
    found = []
    for one in allocators:
        index = one.active.copy()
        if version == 0:
            kept, sampled = np.arange(one.rows.size), np.zeros(0, np.int64)
        else:
            kept, sampled = one.referenced, one.sampled(max_snapshots)
            index[index >= 0] = np.arange(kept.size)
        special = np.where(index < 0, -1 - index, -1)
        active = zip(index.tolist(), special.tolist(), one.occurrences.tolist(), strict=True)
        found.append(
            AllocatorReport(
                memory_id=one.memory_id,
                lifetime_peak_bytes=one.lifetime_peak_bytes,
                peak=one.peak,
                capacity_bytes=one.peak.capacity_bytes if knows_capacity else 0,
                kept=Shown(one.rows[kept], one.sources[kept], one.steps[kept]),
                sampled=Shown(one.rows[sampled], one.sources[sampled], one.steps[sampled]),
                active=list(active),
                specials=one.specials,
            )
        )
    if version == 0:
        return Report(snapshots, found, None, version)
    used = [
        a for one in found for some in (one.kept, one.sampled) for a in (some.rows, some.sources)
    ]
    rows = np.unique(np.concatenate([np.zeros(0, np.int64), *used]))

    def moved(some: Shown) -> Shown:
        return Shown(
            np.searchsorted(rows, some.rows), np.searchsorted(rows, some.sources), some.steps
        )

    found = [replace(one, kept=moved(one.kept), sampled=moved(one.sampled)) for one in found]
    return Report(snapshots.take(rows), found, modules, version)


Reports = Sequence[tuple[str, Report]]
"""The reports of some hosts, each with what its allocators' and planes' names begin with."""
