"""The ops of devices, also as XProf counts them (``convert/xplane_to_op_metrics_db.cc``).

That differs from `peakline.timing.device_ops` in that events of GPUs that name no op, or an
instruction of a program that the profile does not hold, are left out; in that the time without an
op is the device's time less that of all ops, whatever runs at once (modulo 2^64); and in that the
begin of a GPU's lines does not count, but only the offsets on each.
"""

from __future__ import annotations

import re

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array
from peakline.tables import Profile
from peakline.timing.device_ops import device_executions, op_lines
from peakline.timing.device_programs import DeviceOp, GpuOps, Key, gpu_ops
from peakline.timing.host_ops import is_derived
from peakline.timing.op_stats_columns import op_stats_of
from peakline.timing.tpu_ops import symbol_of, type_stats_of, types_of
from peakline.trace.events import Trace, TraceLine, line_bounds, trace_of
from peakline.trace.intervals import total, union
from peakline.xprof.rules.op_metrics import OpMetrics, OpTable, combine_tables, fill_table
from peakline.xprof.rules.programs import XprofPrograms

_STEP_LINES = ("Steps", "Sparse Core Steps")
_TENSOR_CORE = re.compile("/device:TPU:[0-9]+")
_TPU, _GPU = "/device:TPU:", "/device:GPU:"
_COLUMNS = frozenset(("line_id", "name", "start_ps", "duration_ps"))


def device_prefix(trace: Trace) -> str:
    """How the names of the planes begin that count as devices: TPUs where there are any."""
    is_tpu = any(plane.name.startswith(_TPU) for plane in trace.planes)
    return _TPU if is_tpu else _GPU


def device_table(profile: Profile) -> OpTable:
    """The ops of all devices, and the time without one.

    A device's time runs from its first execution (or step, on a TPU) to the end of its last.
    Raises InputError when the profile cannot be read.
    """
    found, trace = device_executions(profile), trace_of(profile)
    ops, length = _described(found.ops, found.eager), found.end - found.start
    tables = []
    for plane in sorted({line.plane for line in op_lines(trace)}):
        here = np.flatnonzero(found.plane == plane)
        table = OpTable()
        fill_table(table, ops, found.op[here], length[here], found.own_ps[here])
        start, end = found.start[here], found.end[here]
        begins, ends = start.min(initial=2**62), end.max(initial=-(2**62))
        for line in trace.lines:
            if line.plane == plane and line.name in _STEP_LINES and line.last > line.first:
                begins = min(begins, trace.start[line.events].min())
                ends = max(ends, trace.end[line.events].max())
        idle = max(0, int(ends - begins)) - total(union(start, end)) if ends > begins else 0
        table.close(table.op_ps + idle)
        tables.append(table)
    return combine_tables(tables)


def _described(
    ops: list[DeviceOp], eager: frozenset[int] = frozenset()
) -> list[tuple[Key, OpMetrics]]:
    """What one run of each op costs."""
    return [
        (
            op.key,
            OpMetrics(
                op.name, op.op_type, op.provenance, number in eager, flops=op.flops,
                model_flops=op.model_flops, bytes_accessed=int(op.bytes_accessed),
            ),
        )
        for number, op in enumerate(ops)
    ]  # fmt: skip


def xprof_device_table(profile: Profile) -> OpTable:
    """The ops of an XSpace's devices with XProf's numbers.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    prefix = device_prefix(trace)
    make = _tpu if prefix == _TPU else _gpu
    planes = [
        number
        for number, plane in enumerate(trace.planes)
        if plane.name.startswith(prefix) and "SparseCore" not in plane.name
    ]
    return combine_tables([make(profile, trace, plane) for plane in planes])


def _tpu(profile: Profile, trace: Trace, plane: int) -> OpTable:
    found = device_executions(profile)
    here = np.flatnonzero(found.plane == plane)
    start, end, event = found.start[here], found.end[here], found.event[here]
    length = end - start
    own = length.copy()
    first = int(here[0]) if here.size else 0
    children = np.flatnonzero(found.parent[here] >= 0)
    np.subtract.at(own, found.parent[here][children] - first, length[children])
    op = _first_of_symbol(profile, trace, event, end, found.op[here])
    # Those that name no instruction keep only their time.
    use = np.flatnonzero(op >= 0)
    table = OpTable()
    fill_table(table, _described(found.ops), op[use], length[use], own[use])
    times = [start, end]
    for line in trace.lines:
        if line.plane == plane and line.last > line.first:
            if line.name in _STEP_LINES:
                times += _step_times(profile, trace, line)
            if _TENSOR_CORE.fullmatch(trace.planes[plane].name):
                named = _named_events(profile, trace, line)
                times += [trace.start[named], trace.end[named]]
    every = np.concatenate(times)
    # Without any event it takes 0 less the largest number there is.
    table.close(int(every.max() - every.min()) if every.size else 1)
    return table


def _named_events(profile: Profile, trace: Trace, line: TraceLine) -> Int64Array:
    """The events that name the framework's op: a line made of them, by the host's clock, counts."""
    events = np.arange(line.first, line.last, dtype=np.int64)
    rows = trace.rows(events)
    said = type_stats_of(profile)
    kinds = types_of(profile, rows)
    naming = [kind for kind in np.unique(kinds).tolist() if said.get(kind, {}).get("tf_op")]
    told = op_stats_of(profile, whole=True)["tf_op"].texts_at(rows) >= 0
    return events[np.isin(kinds, naming) | told]


def _first_of_symbol(
    profile: Profile, trace: Trace, event: Int64Array, end: Int64Array, op: Int32Array
) -> Int32Array:
    """Ops of one program with one number are one: what the first to be over is called.

    -1 for events that name no instruction.
    """
    said, kinds = type_stats_of(profile), types_of(profile, trace.rows(event))
    symbols: dict[tuple[int, int], list[int]] = {}
    known = np.zeros(kinds.size, np.bool_)
    for kind in np.unique(kinds).tolist():
        symbol = symbol_of(said.get(kind, {}))
        if symbol is not None:
            symbols.setdefault(symbol, []).append(kind)
    for own_kinds in symbols.values():
        of_symbol = np.isin(kinds, own_kinds)
        known |= of_symbol
        if len(own_kinds) > 1:
            here = np.flatnonzero(of_symbol)
            # An op is over when one follows that does not lie in it; those in it are before.
            inside = int(np.searchsorted(here, _over(end, int(here[0]))))
            over = np.array([_over(end, place) for place in here[:inside].tolist()])
            first = here[np.lexsort((-here[: over.size], over))[0]]
            op = np.where(of_symbol, op[first], op)
    return np.where(known, op, -1).astype(np.int32)


def _over(end: AnyArray, place: int) -> int:
    """Where the first op stands that is not over before the one at ``place``."""
    later = end[place + 1 :] > end[place]
    return place + 1 + int(later.argmax()) if later.any() else end.size


def _step_times(profile: Profile, trace: Trace, line: TraceLine) -> list[Int64Array]:
    """Begins and ends of the steps of a line: neighbours of one group are one, the others go."""
    start, end = trace.start[line.events], trace.end[line.events]
    events = profile.columns("events", frozenset(("step_id",)))
    rows = trace.rows(line.events)
    grouped = events.is_valid("step_id")[rows]
    if not grouped.any():
        return [start, end]
    group = np.where(grouped, events.array("step_id")[rows], -1)
    opens = np.concatenate([[True], (group[1:] != group[:-1]) | (grouped[1:] != grouped[:-1])])
    closes = np.append(opens[1:], True)
    return [start[opens & grouped], end[closes & grouped]]


def _gpu(profile: Profile, trace: Trace, plane: int) -> OpTable:
    events = profile.columns("events", _COLUMNS)
    line_id, table = events.array("line_id"), OpTable()
    lines = [line for line in trace.lines if line.plane == plane and not is_derived(line)]
    bounds = [line_bounds(line_id, (line.line_id, line.line_id + 1)) for line in lines]
    rows = np.concatenate([np.zeros(0, np.int64), *(np.arange(*b) for b in bounds)])
    if not rows.size:
        table.close(0)
        return table
    # Where the offsets of each line count from.
    base = profile.columns("lines").array("start_ps")[[line.line_id for line in lines]]
    line_of = np.repeat(np.arange(len(lines)), [last - first for first, last in bounds])
    length = events.array("duration_ps")[rows]
    with np.errstate(over="ignore"):
        offset = events.array("start_ps")[rows] - base[line_of]
        last = max(0, int((offset + length).max()))
    found = gpu_ops(profile, rows, events.names("name").take(rows), XprofPrograms(profile))
    # An empty name is one too, that of no instruction.
    _, names_hlo = op_stats_of(profile)["hlo_op"].at(rows)
    told = np.flatnonzero((found.op >= 0) & (found.is_hlo | ~names_hlo))
    op = _first_of_run(profile, found, rows, line_of, told)
    eager = op_stats_of(profile)["is_eager"].integers_at(rows)[told] != 0
    distinct, first = np.unique(op, return_index=True)
    was_eager = frozenset(distinct[eager[first]].tolist())
    length = length[told]
    fill_table(table, _described(found.ops, was_eager), op, length, length)
    table.close(last - int(offset.min()) if last else 0)
    return table


def _first_of_run(
    profile: Profile, found: GpuOps, rows: Int64Array, line_of: Int64Array, told: Int64Array
) -> Int32Array:
    """The op of each event: instructions of one name and step, one after the other, are one.

    They count for the program of the first, also where they are of another.
    """
    op = found.op[told]
    programs: dict[str, set[int]] = {}
    for one in found.ops:
        programs.setdefault(one.name, set()).add(one.key[0])
    if not told.size or max(map(len, programs.values())) == 1:
        return op
    names = {name: number for number, name in enumerate(programs)}
    name = np.array([names[one.name] for one in found.ops], np.int64)[op]
    is_hlo = found.is_hlo[told]
    group, has_group = _groups(profile, rows)
    group, has_group = group[told], has_group[told]
    # A first event without a step is in step 0.
    step = np.where(has_group, group, 0)
    line = line_of[told]
    opens = np.ones(op.size, np.bool_)
    opens[1:] = ~(
        is_hlo[1:] & is_hlo[:-1] & (line[1:] == line[:-1]) & (name[1:] == name[:-1])
        & has_group[1:] & (step[1:] == step[:-1])
    )  # fmt: skip
    first = np.maximum.accumulate(np.where(opens, np.arange(op.size), 0))
    run: Int32Array = op[first]
    return run


def _groups(profile: Profile, rows: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The step of each event; one without is in that of the event before it on its device."""
    events = profile.columns("events", frozenset(("start_ps", "step_id")))
    has = events.is_valid("step_id")[rows]
    order = np.argsort(events.array("start_ps")[rows], kind="stable")
    before = np.maximum.accumulate(np.where(has[order], np.arange(rows.size), -1))
    group = np.zeros(rows.size, np.int64)
    known = np.zeros(rows.size, np.bool_)
    known[order] = before >= 0
    group[order] = np.where(before >= 0, events.array("step_id")[rows][order][before], 0)
    return group, known
