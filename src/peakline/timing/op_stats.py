"""Statistics of ops: how often each ran on the host and on devices, and how its runs were spread.

An op of a device is the framework's op that an instruction or a kernel was made for. Kernels that
one run of the op on the host launched are one run of it there; where that is not known, each
execution of an instruction or a kernel is one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from peakline.arrays import BoolArray
from peakline.errors import NotFoundError
from peakline.suggest import there_is
from peakline.tables import Columns, Profile
from peakline.tables.joins import summed
from peakline.tables.once import once
from peakline.tables.tables import columns_of_rows
from peakline.timing.ops.device import device_executions, framework_executions, launching_runs
from peakline.timing.ops.host import Executions, host_executions
from peakline.timing.ops.names import IDLE
from peakline.trace.distribution import distinct, distribution
from peakline.trace.events import trace_of

HOST, DEVICE = "host", "device"


@dataclass(frozen=True, slots=True)
class OpTime:
    """One op of one side (host or device), times in ps.

    ``self_ps`` is ``total_ps`` without the ops within it. ``flops`` and ``bytes_accessed`` are
    those of all runs, None where the profile does not say.
    """

    side: str
    op: str
    op_type: str
    occurrences: int
    total_ps: int
    self_ps: int
    min_ps: int
    median_ps: int
    p95_ps: int
    max_ps: int
    flops: float | None
    bytes_accessed: float | None
    is_eager: bool


@dataclass(frozen=True)
class OpTimes:
    """The ops of a profile, those with the most self time first; ``host_ps`` and ``device_ps`` are
    the self time of all of each side.
    """

    ops: tuple[OpTime, ...]
    host_ps: int
    device_ps: int

    def of(self, side: str) -> tuple[OpTime, ...]:
        """The ops of one side, ``host`` or ``device``."""
        return tuple(op for op in self.ops if op.side == side)


@once
def op_times(profile: Profile, *, by_type: bool = False) -> OpTimes:
    """How often each op ran and how long; with ``by_type`` those of one type together.

    Empty where nothing ran. Raises InputError when the profile cannot be read.
    """
    return _op_times(profile, by_type=by_type)


def op_times_between(
    profile: Profile, between: tuple[int, int] | None, plane: str | None = None
) -> OpTimes:
    """The same of the runs that begin ``between`` two times (ps; the second exclusive), or of all,
    and of these only those on the plane of a name, one of `op_planes`. Raises NotFoundError for
    another name.
    """
    if plane is not None and plane not in op_planes(profile):
        raise NotFoundError(f"no ops on a plane {plane!r}{there_is(plane, op_planes(profile))}")
    return _op_times(profile, between, plane)


@once
def op_planes(profile: Profile) -> tuple[str, ...]:
    """The names of the planes that ops ran on, devices first, in the order of the file."""
    trace = trace_of(profile)
    result = []
    for runs in (framework_executions(profile), host_executions(profile)):
        lines = np.unique(trace.lines_of(runs.event.astype(np.int64)))
        planes = dict.fromkeys(trace.lines[line].plane for line in lines.tolist())
        result += [trace.planes[plane].name for plane in planes]
    return tuple(dict.fromkeys(result))


def _op_times(
    profile: Profile,
    between: tuple[int, int] | None = None,
    plane: str | None = None,
    *,
    by_type: bool = False,
) -> OpTimes:
    result: list[OpTime] = []
    every = framework_executions(profile)
    inside = _chosen(profile, every, between, plane)
    device, host = _those(every, inside), host_executions(profile)
    costs = _costs(profile, device, inside)
    result += _spread(DEVICE, joined_runs(profile, device), costs, by_type=by_type)
    host = _those(host, _chosen(profile, host, between, plane))
    result += _spread(HOST, host, None, by_type=by_type)
    result.sort(key=lambda op: (op.side != DEVICE, -op.self_ps, op.op, op.op_type))
    total = {side: sum(op.self_ps for op in result if op.side == side) for side in (HOST, DEVICE)}
    return OpTimes(tuple(result), total[HOST], total[DEVICE])


def _chosen(
    profile: Profile, runs: Executions, between: tuple[int, int] | None, plane: str | None
) -> BoolArray | slice:
    """Which ``runs`` begin between two times, on the plane of a name; all of them without these."""
    if between is None and plane is None:
        return slice(None)
    trace = trace_of(profile)
    result = np.ones(runs.event.size, np.bool_)
    if between is not None:
        start = trace.start[runs.event]
        result &= (start >= between[0]) & (start < between[1])
    if plane is not None and result.size:
        is_own = np.array([trace.planes[line.plane].name == plane for line in trace.lines])
        result &= is_own[trace.lines_of(runs.event.astype(np.int64))]
    return result


def _those(runs: Executions, inside: BoolArray | slice) -> Executions:
    return replace(
        runs, event=runs.event[inside], op=runs.op[inside], total_ps=runs.total_ps[inside],
        own_ps=runs.own_ps[inside],
    )  # fmt: skip


def _costs(
    profile: Profile, runs: Executions, inside: BoolArray | slice
) -> tuple[list[float], list[float]]:
    """Operations and bytes of all runs, per op of the framework; ``runs`` are those ``inside``."""
    device = device_executions(profile)
    count, ops, op = len(runs.keys), device.ops, device.op[inside]
    ran = np.bincount(op, minlength=len(ops)).astype(np.float64)
    op_of = np.zeros(len(ops), np.int64)
    op_of[op] = runs.op
    flops = np.array([op.flops for op in ops], np.float64) * ran
    moved = np.array([op.bytes_accessed for op in ops], np.float64) * ran
    return (
        np.bincount(op_of, flops, minlength=count).tolist(),
        np.bincount(op_of, moved, minlength=count).tolist(),
    )


def joined_runs(profile: Profile, runs: Executions) -> Executions:
    """``runs`` on devices with what one run of an op launched as one run of it, which is where the
    first of these stands.
    """
    if not runs.event.size:
        return runs
    host, cause = host_executions(profile), launching_runs(profile)[runs.event]
    names = {key.name: number for number, key in enumerate(runs.keys)}
    # The same op, or the kernel says better what it was for than what ran around its launch.
    same = np.array([*(names.get(key.name, -1) for key in host.keys), -1], np.int32)
    op_of_cause = np.where(cause >= 0, host.op[cause], -1) if host.op.size else cause
    is_known = (cause >= 0) & (same[op_of_cause] == runs.op)
    if not is_known.any():
        return runs
    run = np.where(is_known, cause, host.op.size + np.arange(cause.size))
    first, which = distinct(run)
    return replace(
        runs, event=runs.event[first], op=runs.op[first],
        total_ps=summed(which, runs.total_ps, first.size),
        own_ps=summed(which, runs.own_ps, first.size),
    )  # fmt: skip


def _spread(
    side: str, runs: Executions, costs: tuple[list[float], list[float]] | None, *, by_type: bool
) -> list[OpTime]:
    labels = [("", key.op_type) if by_type else (key.name, key.op_type) for key in runs.keys]
    number = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    group = np.array([number[label] for label in labels], np.int32)
    op = group[runs.op] if group.size else runs.op
    spread = distribution(op, runs.total_ps, len(number))
    own = summed(op, runs.own_ps, len(number)).tolist()
    eager = {labels[place] for place in runs.eager}
    flops, moved = [0.0] * len(number), [0.0] * len(number)
    for place, label in enumerate(labels if costs else ()):
        flops[number[label]] += costs[0][place] if costs else 0.0
        moved[number[label]] += costs[1][place] if costs else 0.0
    made = []
    for (name, op_type), place in number.items():
        if not spread.count[place] or (name, op_type) == (IDLE, IDLE):
            continue
        made.append(
            OpTime(
                side=side,
                op=op_type if by_type else name,
                op_type=op_type,
                occurrences=int(spread.count[place]),
                total_ps=int(spread.total[place]),
                self_ps=own[place],
                min_ps=int(spread.shortest[place]),
                median_ps=int(spread.median[place]),
                p95_ps=int(spread.p95[place]),
                max_ps=int(spread.longest[place]),
                flops=flops[place] or None,
                bytes_accessed=moved[place] or None,
                is_eager=(name, op_type) in eager,
            )
        )
    return made


def columns_of(profile: Profile) -> Columns:
    """The table ``op_stats``: devices first, then the host, the most self time first."""
    ops = op_times(profile).ops
    return columns_of_rows(
        "op_stats",
        (
            (
                op.side, op.op, op.op_type or None, op.occurrences, op.total_ps, op.self_ps,
                op.min_ps, op.median_ps, op.p95_ps, op.max_ps, op.flops, op.bytes_accessed,
                op.is_eager,
            )
            for op in ops
        ),
    )  # fmt: skip
