"""What the SparseCores of a TPU did for the ops of a TensorCore
(``ConvertSparseCoreDeviceTraceXPlaneToOpMetricsDb`` in XProf's
``convert/xplane_to_op_metrics_db.cc``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.event_numbers import event_numbers_of
from peakline.timing.ops.device import device_times
from peakline.timing.ops.metrics import OpTable, fill_table
from peakline.timing.ops.tpu import op_of_kind, symbol_of, type_stats_of, types_of
from peakline.trace.events import Trace, trace_of
from peakline.trace.nesting import nest_lines

_PREFIX, _SPARSE = "/device:TPU:", "SparseCore"
_MODULES, _OPS = "Sparse Core Modules", "Sparse Core Ops"
SPARSE_CORE = "SparseCore"
"""The kind of core."""
Offload = tuple[int, int]
"""The core that an op was handed to, and the number of the op's start on the TensorCore."""


@dataclass(frozen=True)
class _Run:
    """A run of a program on a SparseCore, in ps."""

    start: int
    end: int
    offload: Offload


@once
def sparse_core_tables(profile: Profile) -> dict[Offload, OpTable]:
    """The ops of each piece of work that was handed to a SparseCore, and the time without one."""
    trace = trace_of(profile)
    result: dict[Offload, OpTable] = {}
    for place, plane in enumerate(trace.planes):
        if plane.name.startswith(_PREFIX) and _SPARSE in plane.name:
            runs = sorted(_runs(profile, trace, place), key=lambda run: (run.start, -run.end))
            result |= _tables(profile, trace, place, runs)
    return result


def _events(trace: Trace, plane: int, name: str) -> Iterator[Int64Array]:
    for line in trace.lines_in(plane):
        if line.name == name:
            yield np.arange(line.first, line.last, dtype=np.int64)


def _runs(profile: Profile, trace: Trace, plane: int) -> Iterator[_Run]:
    numbers = event_numbers_of(profile)
    for events in _events(trace, plane, _MODULES):
        rows = trace.rows(events)
        core, _, has_core = numbers.first("offload_core_id", rows)
        begin, _, has_begin = numbers.first("tc_offload_start_id", rows)
        start, end = device_times(profile, trace, events)
        for at in np.flatnonzero(has_core & has_begin).tolist():
            yield _Run(int(start[at]), int(end[at]), (int(core[at]), int(begin[at])))


def _tables(profile: Profile, trace: Trace, plane: int, runs: list[_Run]) -> dict[Offload, OpTable]:
    parts: dict[Offload, list[AnyArray]] = {}
    for events in _events(trace, plane, _OPS):
        start, end = device_times(profile, trace, events)
        at = 0
        for place in np.lexsort((-end, start)).tolist():
            while at < len(runs) and runs[at].end < start[place]:
                at += 1
            if at == len(runs):
                break
            if runs[at].start <= start[place] and end[place] <= runs[at].end:
                part = parts.setdefault(runs[at].offload, [])
                part.append(np.array([events[place], start[place], end[place]], np.int64))
    result = {}
    for offload, rows in parts.items():
        whole = sum(run.end - run.start for run in runs if run.offload == offload)
        result[offload] = _table(profile, trace, np.stack(rows), whole)
    return result


def _table(profile: Profile, trace: Trace, part: Int64Array, whole_ps: int) -> OpTable:
    event, start, end = part.T
    length = end - start
    own, parent = length.copy(), np.full(event.size, -1, np.int32)
    nest_lines(
        start.copy(), end.copy(), np.array([0, event.size]), np.ones(1, np.bool_), parent,
        np.empty(event.size, np.uint16), np.empty(event.size, np.int64),
    )  # fmt: skip
    inside = np.flatnonzero(parent >= 0)
    np.subtract.at(own, parent[inside], length[inside])
    rows = trace.rows(event)
    kinds, said = types_of(profile, rows), type_stats_of(profile)
    first: dict[tuple[int, int], int] = {}
    kind = np.full(kinds.size, -1, np.int64)
    for place, own_kind in enumerate(kinds.tolist()):
        symbol = symbol_of(said.get(own_kind, {}))
        if symbol is not None:
            kind[place] = first.setdefault(symbol, own_kind)
    use = np.flatnonzero(kind >= 0)
    distinct, op = np.unique(kind[use], return_inverse=True)
    ops = [op_of_kind(profile, number, SPARSE_CORE) for number in distinct.tolist()]
    numbers, rows = event_numbers_of(profile), rows[use]
    factor, has = numbers.first("Time Scale Multiplier", rows)[1:]
    host = trace.end[event[use]] - trace.start[event[use]]
    more: dict[str, AnyArray] = {
        "normalized_ps": (host * np.where(has, factor, 0.0)).astype(np.int64),
        "stall_ps": numbers.last("dma_stall_duration_ps", rows)[0],
        "energy_j": numbers.real("vdd_energy_j", rows),
    }
    table = OpTable()
    fill_table(table, ops, op, length[use], own[use], **more)
    table.close(whole_ps)
    return table
