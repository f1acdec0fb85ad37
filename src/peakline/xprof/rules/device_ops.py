"""The ops of devices, also as XProf counts them (``convert/xplane_to_op_metrics_db.cc``).

That differs from `peakline.timing.ops.device` in that events of GPUs that name no op, or an
instruction of a program that the profile does not hold, are left out; in that the time without an
op is the device's time less that of all ops, whatever runs at once (modulo 2^64); and in that the
begin of a GPU's lines does not count, but only the offsets on each.
"""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.event_numbers import event_numbers_of
from peakline.timing.ops.device import device_executions, op_lines
from peakline.timing.ops.metrics import (
    HBM,
    READ,
    WRITE,
    OpFacts,
    OpMetrics,
    OpTable,
    Place,
    combine_tables,
    fill_table,
)
from peakline.timing.ops.stat_columns import op_stats_of
from peakline.timing.ops.tpu_table import STEP_LINES, tpu_table
from peakline.timing.programs.device import DeviceOp, GpuOps, Key, gpu_ops
from peakline.trace.device_lines import first_devices
from peakline.trace.events import Trace, line_bounds, trace_of
from peakline.trace.intervals import total, union
from peakline.xprof.rules.programs import XprofPrograms, xprof_programs

_COLUMNS = frozenset(("line_id", "name", "start_ps", "duration_ps"))


def gpu_table(profile: Profile, trace: Trace, plane: int) -> OpTable:
    """The ops of the plane at ``plane``, and the time without one."""
    events = profile.columns("events", _COLUMNS)
    line_id, table = events.array("line_id"), OpTable()
    lines = [line for line in trace.lines_in(plane) if line.derived is None]
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
    programs = xprof_programs(profile)
    result = gpu_ops(profile, rows, events.names("name").take(rows), programs)
    # An empty name is one too, that of no instruction.
    _, names_hlo = op_stats_of(profile)["hlo_op"].at(rows)
    named = np.flatnonzero((result.op >= 0) & (result.is_hlo | ~names_hlo))
    opens = _opens(profile, result, rows, line_of, named)
    first = np.maximum.accumulate(np.where(opens, np.arange(named.size), 0))
    op = result.op[named][first]
    ops = _costed(profile, programs, result, rows[named], opens, op)
    eager = op_stats_of(profile)["is_eager"].integers_at(rows)[named] != 0
    distinct, first = np.unique(op, return_index=True)
    was_eager = frozenset(distinct[eager[first]].tolist())
    length = length[named]
    # That of the kernels of framework ops is not looked at.
    energy = event_numbers_of(profile).real("vdd_energy_j", rows[named]) * result.is_hlo[named]
    fill_table(table, described_ops(ops, was_eager), op, length, length, energy_j=energy)
    table.close(last - int(offset.min()) if last else 0)
    return table


def _opens(
    profile: Profile, result: GpuOps, rows: Int64Array, line_of: Int64Array, named: Int64Array
) -> BoolArray:
    """Where a run begins: instructions of one name and step, one after the other, are one.

    They count for the program of the first, also where they are of another.
    """
    opens = np.ones(named.size, np.bool_)
    if not named.size:
        return opens
    op = result.op[named]
    names = {name: number for number, name in enumerate({one.name for one in result.ops})}
    name = np.array([names[one.name] for one in result.ops], np.int64)[op]
    is_hlo = result.is_hlo[named]
    group, has_group = _groups(profile, rows)
    group, has_group = group[named], has_group[named]
    # A first event without a step is in step 0.
    step = np.where(has_group, group, 0)
    line = line_of[named]
    opens[1:] = ~(
        is_hlo[1:] & is_hlo[:-1] & (line[1:] == line[:-1]) & (name[1:] == name[:-1])
        & has_group[1:] & (step[1:] == step[:-1])
    )  # fmt: skip
    return opens


def _costed(
    profile: Profile,
    programs: XprofPrograms,
    result: GpuOps,
    rows: Int64Array,
    opens: BoolArray,
    op: Int32Array,
) -> list[DeviceOp]:
    """The ops, of which ``op`` is made to say what the last event of each run does: where the
    program costs nothing, its flops and bytes are those of all of the run.
    """
    numbers, ops = event_numbers_of(profile), list(result.ops)
    if "flops" not in numbers and "bytes_accessed" not in numbers:
        return ops
    run = np.cumsum(opens) - 1
    said = [_last_of_run(*numbers.last(name, rows), run) for name in ("flops", "bytes_accessed")]
    places = {one: place for place, one in enumerate(ops)}
    distinct, at = np.unique(
        np.stack([op, *(part[run] for part in said)]), axis=1, return_inverse=True
    )
    of_distinct = []
    for number, flops, moved in distinct.T.tolist():
        one = ops[number]
        one = programs.op(one.key[0], one.key[1], flops % 2**64, moved % 2**64) or one
        of_distinct.append(places.setdefault(one, len(ops)))
        if of_distinct[-1] == len(ops):
            ops.append(one)
    op[:] = np.array(of_distinct, np.int32)[at]
    return ops


def _last_of_run(value: Int64Array, has: BoolArray, run: Int64Array) -> Int64Array:
    """Per run the value of the last event that has one."""
    result = np.zeros(int(run[-1]) + 1 if run.size else 0, np.int64)
    result[run[has]] = value[has]
    return result


def described_ops(
    ops: list[DeviceOp], eager: frozenset[int] = frozenset()
) -> list[tuple[Key, OpMetrics]]:
    """What one run of each op costs."""
    return [
        (
            op.key,
            OpMetrics(
                op.name, op.op_type, op.provenance, number in eager, flops=op.flops,
                model_flops=op.model_flops, bytes_accessed=int(op.bytes_accessed),
                moved=_moved(op), program=op.key[0], facts=OpFacts(category=op.category),
            ),
        )
        for number, op in enumerate(ops)
    ]  # fmt: skip


def _moved(op: DeviceOp) -> dict[Place, int]:
    """The bytes in main memory, where the program says what it costs."""
    both = {(HBM, READ): op.bytes_read, (HBM, WRITE): op.bytes_written}
    return {place: int(size) for place, size in both.items() if size > 0}


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


TPU_PREFIX, _GPU = "/device:TPU:", "/device:GPU:"


def device_prefix(trace: Trace) -> str:
    """How the names of the planes begin that count as devices: TPUs where there are any."""
    is_tpu = any(plane.name.startswith(TPU_PREFIX) for plane in trace.planes)
    return TPU_PREFIX if is_tpu else _GPU


def device_table(profile: Profile) -> OpTable:
    """The ops of all devices, and the time without one.

    A device's time runs from its first execution (or step, on a TPU) to the end of its last.
    Raises InputError when the profile cannot be read.
    """
    result, trace = device_executions(profile), trace_of(profile)
    ops, length = described_ops(result.ops, result.eager), result.end - result.start
    tables = []
    planes = tuple(sorted({line.plane for line in op_lines(trace)}))
    for plane in first_devices(profile, planes):
        here = np.flatnonzero(result.plane == plane)
        table = OpTable()
        fill_table(table, ops, result.op[here], length[here], result.own_ps[here])
        start, end = result.start[here], result.end[here]
        begins, ends = start.min(initial=2**62), end.max(initial=-(2**62))
        for line in trace.lines_in(plane):
            if line.name in STEP_LINES and line.last > line.first:
                begins = min(begins, trace.start[line.events].min())
                ends = max(ends, trace.end[line.events].max())
        idle = max(0, int(ends - begins)) - total(union(start, end)) if ends > begins else 0
        table.close(table.op_ps + idle)
        tables.append(table)
    return combine_tables(tables)


def xprof_device_table(profile: Profile) -> OpTable:
    """The ops of an XSpace's devices with XProf's numbers.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    prefix = device_prefix(trace)
    planes = tuple(
        number
        for number, plane in enumerate(trace.planes)
        if plane.name.startswith(prefix) and "SparseCore" not in plane.name
    )
    return _xprof_table(profile, first_devices(profile, planes), is_tpu=prefix == TPU_PREFIX)


@once
def _xprof_table(profile: Profile, planes: tuple[int, ...], *, is_tpu: bool) -> OpTable:
    make, trace = tpu_table if is_tpu else gpu_table, trace_of(profile)
    return combine_tables([make(profile, trace, plane) for plane in planes])
