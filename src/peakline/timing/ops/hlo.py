"""The instructions of compiled programs that ran, on devices or on the threads of a CPU.

An execution of an instruction on a GPU may be several kernels; it ran as often as the rarest of
them. A copy or a collective that runs by itself (``copy-start``, ``copy-done``) moves its bytes
from the begin of its start to the end of its done, and they count with the done alone. Where a call
of a library says nothing of its work, its FLOPs are not known (`is_costed`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.ops.device import DeviceExecutions, device_executions, op_lines
from peakline.timing.ops.host import host_lines
from peakline.timing.ops.metrics import (
    HBM,
    READ,
    WRITE,
    OpFacts,
    OpMetrics,
    OpTable,
    combine_tables,
    fill_table,
)
from peakline.timing.ops.stat_columns import op_stats_of
from peakline.timing.ops.tpu_table import tpu_table
from peakline.timing.programs.device import DeviceOp, Key, Programs, gpu_ops
from peakline.timing.programs.hlo_facts import described_table
from peakline.trace.device_lines import first_devices
from peakline.trace.events import trace_of
from peakline.trace.intervals import total, union
from peakline.trace.nesting import nest_lines

_DONE = "-done"


def with_pairs(profile: Profile, table: OpTable, programs: Programs) -> OpTable:
    """The table with the bytes of such a pair at its end, over the time that both take."""
    pairs: dict[Key, Key] = {}
    for key, op in table.ops.items():
        made = programs.find(key[0], op.name)
        if made is None or not made.opcode.endswith(_DONE) or not made.operands:
            continue
        start = (key[0], made.operands[0])
        if start in table.ops:
            pairs[key] = start
    if not pairs:
        return table
    ops = dict(table.ops)
    spans = _spans(profile, pairs)
    for done, start in pairs.items():
        first, last = ops[start], ops[done]
        if spans.get(done):
            known = last if last.bytes_accessed else first
            ops[done] = replace(
                last, bytes_accessed=known.bytes_accessed, moved=known.moved, span_ps=spans[done]
            )
            ops[start] = replace(first, bytes_accessed=0, moved={})
    return replace(table, ops=ops)


def _spans(profile: Profile, pairs: dict[Key, Key]) -> dict[Key, int]:
    """How long the runs of each pair took together: every end with the last begin before it."""
    result = device_executions(profile)
    places: dict[Key, list[int]] = {}
    for number, op in enumerate(result.ops):
        places.setdefault(op.key, []).append(number)
    spans: dict[Key, int] = {}
    for done, start in pairs.items():
        ends = np.flatnonzero(np.isin(result.op, places.get(done, [])))
        begins = np.flatnonzero(np.isin(result.op, places.get(start, [])))
        for plane in np.unique(result.plane[ends]).tolist():
            own = ends[result.plane[ends] == plane]
            from_ = np.sort(result.start[begins[result.plane[begins] == plane]])
            before = np.searchsorted(from_, result.start[own], side="right") - 1
            known = before >= 0
            whole = result.end[own][known] - from_[before[known]]
            spans[done] = spans.get(done, 0) + int(whole.sum())
    return spans


_TPU, _SPARSE = "/device:TPU:", "SparseCore"
_UNKNOWN_WORK = ("custom-call", "unknown")


def is_costed(op: OpMetrics) -> bool:
    """Whether the FLOPs of an op are known."""
    return op.flops > 0 or op.facts.category not in _UNKNOWN_WORK


def hlo_op_table(profile: Profile) -> OpTable:
    """Every instruction that ran, and the time without one; made once.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    cores = tuple(
        place
        for place, plane in enumerate(trace.planes)
        if plane.name.startswith(_TPU) and _SPARSE not in plane.name
    )
    planes = cores or tuple(sorted({line.plane for line in op_lines(trace)}))
    return _op_table(profile, first_devices(profile, planes), is_tpu=bool(cores))


@once
def _op_table(profile: Profile, planes: tuple[int, ...], *, is_tpu: bool) -> OpTable:
    trace, programs = trace_of(profile), Programs(profile)
    if is_tpu:
        table = combine_tables(tpu_table(profile, trace, core) for core in planes)
    elif planes:
        result = device_executions(profile)
        table = combine_tables(_gpu(profile, result, plane) for plane in planes)
    else:
        table = _host(profile, programs)
    table = described_table(profile, table, programs, is_tpu=is_tpu)
    return with_pairs(profile, table, programs)


def _gpu(profile: Profile, result: DeviceExecutions, plane: int) -> OpTable:
    here = np.flatnonzero(result.plane == plane)
    start, end = result.start[here], result.end[here]
    # There may be very many devices: only the ops of this one.
    used, op = np.unique(result.op[here], return_inverse=True)
    ops = [result.ops[number] for number in used.tolist()]
    kernel = trace_of(profile).name.codes[result.event[here]]
    table = _filled(ops, op, end - start, end - start)
    for one, times in zip(ops, _executions(op, kernel, len(ops)), strict=True):
        entry = table.ops[one.key]
        if entry.occurrences > times > 0:
            table.ops[one.key] = _again(entry, times, one)
    return _closed(table, start, end)


def _again(entry: OpMetrics, times: int, one: DeviceOp) -> OpMetrics:
    """An op that ran ``times`` times, by what one run costs."""
    return replace(
        entry, occurrences=times, flops=one.flops * times, model_flops=one.model_flops * times,
        bytes_accessed=int(one.bytes_accessed) * times, moved=_moved(one, times),
    )  # fmt: skip


def _executions(op: AnyArray, kernel: AnyArray, count: int) -> list[int]:
    """How often each op ran: as often as the rarest of its kernels."""
    times = np.zeros(count, np.int64)
    if op.size:
        pairs, runs = np.unique(
            np.stack([op.astype(np.int64), kernel.astype(np.int64)]), axis=1, return_counts=True
        )
        times[:] = np.iinfo(np.int64).max
        np.minimum.at(times, pairs[0], runs)
        times[times == np.iinfo(np.int64).max] = 0
    return [int(one) for one in times]


def _host(profile: Profile, programs: Programs) -> OpTable:
    """What XLA ran on the threads of the CPU: the events that name an instruction."""
    trace = trace_of(profile)
    stat = op_stats_of(profile)["hlo_op"]
    tables: list[tuple[Int64Array, Int64Array, Int64Array, AnyArray]] = []
    ops: list[DeviceOp] = []
    for line in host_lines(profile, trace).values():
        events = np.arange(line.first, line.last, dtype=np.int64)
        events = events[stat.texts_at(trace.rows(events)) >= 0]
        if not events.size:
            continue
        start, end = trace.start[events], trace.end[events]
        order = np.lexsort((start - end, start))
        events, start, end = events[order], start[order], end[order]
        own, parent = end - start, np.full(events.size, -1, np.int32)
        nest_lines(
            start, end, np.array([0, events.size]), np.ones(1, np.bool_), parent,
            np.empty(events.size, np.uint16), np.empty(events.size, np.int64),
        )  # fmt: skip
        inside = np.flatnonzero(parent >= 0)
        np.subtract.at(own, parent[inside], (end - start)[inside])
        rows = trace.rows(events)
        result = gpu_ops(profile, rows, trace.name.take(events), programs)
        tables.append((start, end, own, result.op + len(ops)))
        ops += result.ops
    if not tables:
        return _closed(OpTable(), np.zeros(0, np.int64), np.zeros(0, np.int64))
    start, end, own, op = (np.concatenate(parts) for parts in zip(*tables, strict=True))
    return _closed(_filled(ops, op, end - start, own), start, end)


def _filled(ops: list[DeviceOp], op: AnyArray, length: Int64Array, own: Int64Array) -> OpTable:
    described: list[tuple[Key, OpMetrics]] = [
        (
            one.key,
            OpMetrics(
                one.name, one.op_type, one.provenance, flops=one.flops,
                model_flops=one.model_flops, bytes_accessed=int(one.bytes_accessed),
                moved=_moved(one, 1), program=one.key[0],
                facts=OpFacts(category=one.category or "unknown"),
            ),
        )
        for one in ops
    ]  # fmt: skip
    table = OpTable()
    fill_table(table, described, op, length, own)
    return table


def _moved(one: DeviceOp, times: int) -> dict[tuple[int, int], int]:
    both = {(HBM, READ): one.bytes_read, (HBM, WRITE): one.bytes_written}
    return {place: int(size) * times for place, size in both.items() if size > 0}


def _closed(table: OpTable, start: Int64Array, end: Int64Array) -> OpTable:
    """With the time from the first op to the end of the last in which none ran."""
    idle = 0
    if start.size:
        idle = int(end.max() - start.min()) - total(union(start, end))
    table.close(table.op_ps + idle)
    return table
