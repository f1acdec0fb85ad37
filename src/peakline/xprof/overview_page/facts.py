"""What one host contributes to the overview of a session, and how several are put together.

Source of the rules: ``convert/op_stats_to_overview_page.cc`` and ``op_stats_combiner.cc`` of
openxla/xprof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray
from peakline.schema import CoreDetails
from peakline.tables import Profile
from peakline.timing.kernels import kernel_reports
from peakline.timing.ops.metrics import OpMetrics, OpTable, combine_tables, framework_ops
from peakline.timing.ops.stat_columns import op_stats_of
from peakline.trace.events import Trace, trace_of
from peakline.trace.intervals import Intervals, total, union
from peakline.xprof.rules.device_ops import device_table, xprof_device_table
from peakline.xprof.rules.hardware import RunEnvironment, combine_environments, run_environment_of
from peakline.xprof.rules.host_ops import HostInput, combine_inputs, host_input
from peakline.xprof.rules.kernels import xprof_kernel_reports
from peakline.xprof.rules.step_model import HostSteps, StepDatabase
from peakline.xprof.rules.steps import combine_steps, host_steps
from peakline.xprof.rules.tpu_steps import OFF_DUTY

_TPU = "/device:TPU:"
_OPS = frozenset(("XLA Ops", "Sparse Core Ops"))
_MODULES = frozenset(("XLA Modules", "Sparse Core Modules"))


@dataclass(frozen=True)
class DutyCycle:
    """Time of all chips together, in ps, with work and without."""

    active_ps: int
    idle_ps: int


def duty_cycle_of(profile: Profile) -> DutyCycle:
    """The duty cycle of a host's TPU chips; zero without any.

    A chip is on duty while one of its cores runs an op that does not just move data between it and
    its host, and is looked at from its first op or module run to its last. Source:
    ``ConstructDutyCycleTracker`` and ``duty_cycle_tracker.cc`` in ``xprof/convert``.
    """
    trace = trace_of(profile)
    planes = [n for n, plane in enumerate(trace.planes) if plane.name.startswith(_TPU)]
    if not planes:
        return DutyCycle(0, 0)
    off_duty = _off_duty(profile, trace)
    chips: dict[int, list[tuple[Intervals, tuple[int, int] | None]]] = {}
    chip_of = chip_of_planes(profile)
    for n in planes:
        plane_id = trace.planes[n].plane_id
        # A core that does not say on which chip it is counts as one of its own.
        chip = chip_of.get(plane_id, -1 - plane_id)
        chips.setdefault(chip, []).append(_of_plane(trace, n, off_duty))
    active = idle = 0
    for cores in chips.values():
        begins = np.concatenate([core[0][0] for core in cores])
        ends = np.concatenate([core[0][1] for core in cores])
        working = total(union(begins, ends))
        spans = [span for _, span in cores if span is not None]
        whole = max((e for _, e in spans), default=0) - min((b for b, _ in spans), default=0)
        active, idle = active + working, idle + whole - working
    return DutyCycle(active, idle)


def combine_duty_cycles(parts: Iterable[DutyCycle]) -> DutyCycle:
    """That of several hosts together."""
    result = list(parts)
    return DutyCycle(sum(p.active_ps for p in result), sum(p.idle_ps for p in result))


def chip_of_planes(profile: Profile) -> dict[int, int]:
    """By plane_id the number that its chip has on the host, where the plane says it.

    Source: the stat ``core_details`` (``plugin/xprof/protobuf/op_stats.proto``).
    """
    from google.protobuf.message import DecodeError

    result = {}
    for plane, data in profile.plane_bytes("core_details").items():
        try:
            result[plane] = int(CoreDetails.FromString(data).local_chip_id)
        except DecodeError:
            continue
    return result


def _off_duty(profile: Profile, trace: Trace) -> BoolArray:
    """By row of ``event_types``, and for none at the end: whether its events are no work."""
    stats, types = profile.columns("event_type_stats"), profile.columns("event_types")
    names, values = stats.names("name"), stats.names("value")
    is_category = names.codes == names.code_of("hlo_category")
    codes = [code for code, value in enumerate(values.values) if value in OFF_DUTY]
    rows = is_category & np.isin(values.codes, codes)
    result = np.zeros(types.rows + 1, np.bool_)
    result[stats.array("type_id")[rows]] = True
    own = profile.columns("events", frozenset(("type_id",)))
    place = np.where(own.is_valid("type_id"), own.array("type_id"), -1)
    off_duty: BoolArray = result[place]
    return off_duty if trace.row is None else off_duty[trace.row]


def _of_plane(
    trace: Trace, plane: int, off_duty: BoolArray
) -> tuple[Intervals, tuple[int, int] | None]:
    """When a core had work, and from when to when it is looked at."""
    begins, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    span: tuple[int, int] | None = None
    for line in trace.lines:
        if line.plane != plane or line.name not in _MODULES | _OPS:
            continue
        start, end = trace.start[line.events], trace.end[line.events]
        if start.size:
            first, last = int(start[0]), int(end.max())
            span = (first, last) if span is None else (min(span[0], first), max(span[1], last))
        if line.name in _OPS:
            works = ~off_duty[line.events]
            begins.append(start[works])
            ends.append(end[works])
    busy = union(np.concatenate(begins), np.concatenate(ends))
    return busy, span


@dataclass(frozen=True)
class HostOverview:
    """What one host contributes; ``errors`` and ``warnings`` are those of its profiler."""

    environment: RunEnvironment
    input: HostInput
    """All ops of the host among it."""
    device_ops: OpTable
    duty_cycle: DutyCycle
    steps: HostSteps
    tensor_cores: Mapping[str, tuple[bool, bool]]
    """By op whether it could use tensor cores, and whether a kernel of it does."""
    errors: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Overview:
    """All hosts together. ``hosts`` counts them, ``tasks`` the profiles they come from."""

    hosts: int
    tasks: int
    environment: RunEnvironment
    input: HostInput
    device_ops: OpTable
    framework_ops: OpTable
    duty_cycle: DutyCycle
    steps: StepDatabase
    precision_ps: tuple[int, int]
    tensor_cores: Mapping[str, tuple[bool, bool]]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]


def host_overview(profile: Profile, *, compatible: bool) -> HostOverview:
    """The part of one host; with ``compatible`` with XProf's numbers.

    Raises InputError when the profile cannot be read.
    """
    steps = host_steps(profile, compatible=compatible)
    # Who reads events with their steps has all these stats of them.
    op_stats_of(profile, whole=True)
    device = (xprof_device_table if compatible else device_table)(profile)
    errors, warnings = profile.messages()
    return HostOverview(
        run_environment_of(profile, strict=compatible),
        host_input(profile, compatible=compatible),
        device,
        duty_cycle_of(profile),
        steps,
        _tensor_cores(profile, compatible=compatible),
        tuple(sorted(set(errors))),
        tuple(sorted(set(warnings))),
    )


def combine_overviews(parts: Sequence[tuple[str, HostOverview]], *, compatible: bool) -> Overview:
    """The overview of ``[(host, its part)]``."""
    result = [part for _, part in parts]
    device_ops = combine_tables(part.device_ops for part in result)
    cores: dict[str, tuple[bool, bool]] = {}
    for part in result:
        for op, (could, does) in part.tensor_cores.items():
            before = cores.get(op, (False, False))
            cores[op] = (before[0] or could, before[1] or does)
    precision = [part.steps.precision_ps for part in result]
    return Overview(
        hosts=len({host for host, _ in parts}),
        tasks=len(parts),
        environment=combine_environments(
            [part.environment for part in result], compatible=compatible
        ),
        input=combine_inputs(part.input for part in result),
        device_ops=device_ops,
        framework_ops=framework_ops(device_ops),
        duty_cycle=combine_duty_cycles(part.duty_cycle for part in result),
        steps=combine_steps([(host, part.steps) for host, part in parts]),
        precision_ps=(sum(p[0] for p in precision), sum(p[1] for p in precision)),
        tensor_cores=cores,
        errors=tuple(sorted(e for part in result for e in part.errors)),
        warnings=tuple(w for part in result for w in part.warnings),
    )


def top_ops(table: OpTable, count: int) -> list[tuple[OpMetrics, float, float]]:
    """The ops with the most self time: op, its share, and the share of it and those above it."""
    ops = sorted(
        (op for op in table.ops.values() if not op.is_idle), key=lambda op: (-op.self_ps, op.name)
    )
    result, together = [], 0.0
    for op in ops[:count]:
        share = op.self_ps / table.op_ps if table.op_ps else 0.0
        together += share
        result.append((op, share, together))
    return result


def _tensor_cores(profile: Profile, *, compatible: bool) -> dict[str, tuple[bool, bool]]:
    result: dict[str, tuple[bool, bool]] = {}
    for report in (xprof_kernel_reports if compatible else kernel_reports)(profile):
        launch = report.launch
        could, does = result.get(launch.op, (False, False))
        # A kernel without a length is none that ran.
        does = does or (launch.uses_tensor_cores and report.total_ps > 0)
        result[launch.op] = (could or launch.could_use, does)
    return result
