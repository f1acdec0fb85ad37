"""What one host contributes to the overview of a session, and how several are put together.

Source of the rules: ``convert/op_stats_to_overview_page.cc`` and ``op_stats_combiner.cc`` of
openxla/xprof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peakline.tables import Profile
from peakline.timing.kernels import kernel_reports
from peakline.timing.op_stats_columns import op_stats_of
from peakline.xprof.overview_page.duty_cycle import DutyCycle, combine_duty_cycles, duty_cycle_of
from peakline.xprof.rules.device_ops import device_table
from peakline.xprof.rules.hardware import (
    RunEnvironment,
    combine_environments,
    run_environment_of,
)
from peakline.xprof.rules.input_ops import HostInput, combine_inputs, host_input
from peakline.xprof.rules.kernels import xprof_kernel_reports
from peakline.xprof.rules.op_metrics import OpMetrics, OpTable, combine_tables, framework_ops
from peakline.xprof.rules.step_model import HostSteps, StepDatabase
from peakline.xprof.rules.steps import combine_steps, host_steps


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
    if compatible:
        from peakline.xprof.rules.device_ops import xprof_device_table

        device = xprof_device_table(profile)
    else:
        device = device_table(profile)
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
    found = [part for _, part in parts]
    device_ops = combine_tables(part.device_ops for part in found)
    cores: dict[str, tuple[bool, bool]] = {}
    for part in found:
        for op, (could, does) in part.tensor_cores.items():
            before = cores.get(op, (False, False))
            cores[op] = (before[0] or could, before[1] or does)
    precision = [part.steps.precision_ps for part in found]
    return Overview(
        hosts=len({host for host, _ in parts}),
        tasks=len(parts),
        environment=combine_environments(
            [part.environment for part in found], compatible=compatible
        ),
        input=combine_inputs(part.input for part in found),
        device_ops=device_ops,
        framework_ops=framework_ops(device_ops),
        duty_cycle=combine_duty_cycles(part.duty_cycle for part in found),
        steps=combine_steps([(host, part.steps) for host, part in parts]),
        precision_ps=(sum(p[0] for p in precision), sum(p[1] for p in precision)),
        tensor_cores=cores,
        errors=tuple(sorted(e for part in found for e in part.errors)),
        warnings=tuple(w for part in found for w in part.warnings),
    )


def top_ops(table: OpTable, count: int) -> list[tuple[OpMetrics, float, float]]:
    """The ops with the most self time: op, its share, and the share of it and those above it."""
    ops = sorted(
        (op for op in table.ops.values() if not op.is_idle),
        key=lambda op: (-op.self_ps, op.name),
    )
    found, together = [], 0.0
    for op in ops[:count]:
        share = op.self_ps / table.op_ps if table.op_ps else 0.0
        together += share
        found.append((op, share, together))
    return found


def _tensor_cores(profile: Profile, *, compatible: bool) -> dict[str, tuple[bool, bool]]:
    found: dict[str, tuple[bool, bool]] = {}
    for report in (xprof_kernel_reports if compatible else kernel_reports)(profile):
        launch = report.launch
        could, does = found.get(launch.op, (False, False))
        # A kernel without a length is none that ran.
        does = does or (launch.uses_tensor_cores and report.total_ps > 0)
        found[launch.op] = (could or launch.could_use, does)
    return found
