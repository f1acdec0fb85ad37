"""The ops of devices, also as XProf counts them (``convert/xplane_to_op_metrics_db.cc``).

That differs from `peakline.timing.ops.device` in that events of GPUs that name no op, or an
instruction of a program that the profile does not hold, are left out; in that the time without an
op is the device's time less that of all ops, whatever runs at once (modulo 2^64); and in that the
begin of a GPU's lines does not count, but only the offsets on each.
"""

from __future__ import annotations

import numpy as np

from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.ops.device import device_executions, op_lines
from peakline.timing.ops.metrics import OpTable, combine_tables, fill_table
from peakline.timing.ops.tpu_table import STEP_LINES, tpu_table
from peakline.trace.device_lines import first_devices
from peakline.trace.events import Trace, trace_of
from peakline.trace.intervals import total, union
from peakline.xprof.rules.gpu_ops import described_ops, gpu_table

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
    found, trace = device_executions(profile), trace_of(profile)
    ops, length = described_ops(found.ops, found.eager), found.end - found.start
    tables = []
    planes = tuple(sorted({line.plane for line in op_lines(trace)}))
    for plane in first_devices(profile, planes):
        here = np.flatnonzero(found.plane == plane)
        table = OpTable()
        fill_table(table, ops, found.op[here], length[here], found.own_ps[here])
        start, end = found.start[here], found.end[here]
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
