"""The ``op_time`` tool: time, cost and memory of each op in one row, of all that was recorded or of
one step or a range of steps, on all devices and the host or on one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peakline import memory, timing
from peakline.text import check_repeated
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json, quoted_csv

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.op_stats import OpTime

_LONGEST_NAME = 1000
_COLUMNS = (
    "side", "op", "op_type", "occurrences", "total_ps", "self_ps", "min_ps", "median_ps", "p95_ps",
    "max_ps", "flops", "bytes_accessed", "is_eager", "allocated_bytes", "buffers",
    "peak_live_bytes",
)  # fmt: skip
_NO_COSTS = (
    "no op's operations and bytes are known: a profile says them of programs that XLA compiled, "
    "where it holds these programs"
)


class OpTimeParameters(Parameters):
    """The parameters; text is accepted for every value."""

    step: str | None = parameter(
        None,
        max_length=_LONGEST_NAME,
        description="only what begins in the step with this id or name. Default: all",
    )
    last: str | None = parameter(
        None, max_length=_LONGEST_NAME, description="all steps from that to this one"
    )
    device: str | None = parameter(
        None, max_length=_LONGEST_NAME, description="the step as it lasts on this device"
    )
    plane: str | None = parameter(
        None,
        max_length=_LONGEST_NAME,
        description="only what ran on this device or host, one of the answer's planes (memory is "
        "that of the op wherever it ran). Default: all",
    )


def _run(profile: Profile, parameters: OpTimeParameters, output_format: str) -> bytes:
    steps = _steps(profile, parameters)
    between = None if steps is None else (steps["start_ps"], steps["end_ps"])
    is_all = between is None and parameters.plane is None
    times = (
        timing.op_times(profile)
        if is_all
        else timing.op_times_between(profile, between, parameters.plane)
    )
    check_repeated([op.op for op in times.ops])
    rows = _rows(profile, times.ops, between)
    if output_format == "csv":
        return quoted_csv(_COLUMNS, ([row[name] for name in _COLUMNS] for row in rows))
    return compact_json(
        {
            "steps": steps,
            "plane": parameters.plane,
            "planes": timing.op_planes(profile),
            "host_ps": times.host_ps,
            "device_ps": times.device_ps,
            "has_memory": any(row["allocated_bytes"] is not None for row in rows),
            "roofline": _roofline(profile, rows),
            "ops": rows,
        }
    )


def _steps(profile: Profile, parameters: OpTimeParameters) -> dict[str, Any] | None:
    """The steps that the answer is about; None for all that was recorded."""
    if parameters.step is None:
        return None
    times = timing.step_times(profile)
    result = timing.chosen_steps(times, parameters.step, parameters.last, None, parameters.device)
    if result is None:
        return None
    rows = result[1].rows
    first, last = int(rows[0]), int(rows[-1])
    return {
        "step_id": int(times.step_id[first]),
        "name": times.name[first],
        "last_id": int(times.step_id[last]),
        "last_name": times.name[last],
        "steps": int(rows.size),
        "start_ps": int(times.start[rows].min()),
        "end_ps": int(times.end[rows].max()),
    }


def _rows(
    profile: Profile, ops: tuple[OpTime, ...], between: tuple[int, int] | None
) -> list[dict[str, Any]]:
    """A row per op; where one of a name ran on both sides, its memory stands with the device."""
    allocated, costs = memory.op_bytes_of(profile, between), timing.host_costs(profile)
    result = []
    seen: set[str] = set()
    for op in ops:
        own = None if op.op in seen else allocated.get(op.op)
        seen.add(op.op)
        flops, moved = op.flops, op.bytes_accessed
        if op.side == "host" and op.op in costs:
            # Of some of the runs as large a share as there are.
            whole, whole_bytes, runs = costs[op.op]
            flops = whole * op.occurrences / runs
            moved = whole_bytes * op.occurrences / runs
        result.append(
            {
                "side": op.side,
                "op": op.op,
                "op_type": op.op_type or None,
                "occurrences": op.occurrences,
                "total_ps": op.total_ps,
                "self_ps": op.self_ps,
                "min_ps": op.min_ps,
                "median_ps": op.median_ps,
                "p95_ps": op.p95_ps,
                "max_ps": op.max_ps,
                "flops": flops or None,
                "bytes_accessed": moved or None,
                "is_eager": op.is_eager,
                "allocated_bytes": None if own is None else own.allocated,
                "buffers": None if own is None else own.buffers,
                "peak_live_bytes": None if own is None else own.peak,
            }
        )
    return result


def _roofline(profile: Profile, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What a roofline needs beside the rows: the peaks of the device (per second, None where they
    are not known), or why there is none.
    """
    chips = timing.chips_of(profile)
    has_costs = any(row["flops"] and row["bytes_accessed"] for row in rows)
    return {
        "reason": None if has_costs else _NO_COSTS,
        "chip": chips.name,
        "flops_per_s": chips.peaks.gigaflops * 1e9 or None,
        "bytes_per_s": chips.peaks.bandwidth(0) * 1e9 or None,
    }


TOOL = Tool(
    name="op_time",
    doc="Time, cost and memory of each op in one row, of all steps, one, or a range.",
    parameters=OpTimeParameters,
    formats=("json", "csv"),
    shows=(("events",), ("op_runs",)),
    run=_run,
)
