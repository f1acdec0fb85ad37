"""tfprof's checkers (tensorflow/core/profiler/internal/advisor): what looks wrong in a profile."""

from __future__ import annotations

import numpy as np

from peakline.arrays import Int64Array
from peakline.tfprof.model import OpStats
from peakline.tfprof.options import MEASURES, Options
from peakline.tfprof.shown import Shown, format_time
from peakline.tfprof.views import code_view, op_view, scope_view

_TOTAL, _ACCELERATOR, _CPU = (
    MEASURES.index(name) for name in ("exec_micros", "accelerator_exec_micros", "cpu_exec_micros")
)
_BUSY_ENOUGH = 0.5
_WORTH_SAYING_MICROS = 1000
_MOST_CALL_DEPTH = 3
_TOP = 3


def advise(stats: OpStats) -> dict[str, list[str]]:
    """The reports of every checker by its name, as tfprof phrases them."""
    return {
        "AcceleratorUtilizationChecker": _utilization(stats),
        "OperationChecker": _operations(stats),
        "ExpensiveOperationChecker": _expensive(stats),
    }


def _utilization(stats: OpStats) -> list[str]:
    """Per GPU: time on the accelerator over the time from its first start to its last end.

    Of each node the last of its steps counts.
    """
    costs = stats.costs
    if costs is None:
        return []
    last = np.append(costs.node[1:] != costs.node[:-1], True)[: costs.node.size]
    rows = np.flatnonzero(last)
    device = costs.device.codes[costs.node[rows]]
    reports = []
    for name, code in sorted((name, code) for code, name in enumerate(costs.device.values)):
        own = rows[device == code]
        if "gpu" not in name or not own.size:
            continue
        start = costs.start[own]
        busy = int(costs.sums["accelerator_exec_micros"][own].sum())
        elapsed = int(costs.end[own].max()) - int(start[start > 0].min(initial=2**62))
        if elapsed <= 0:
            continue
        low = "" if busy / elapsed >= _BUSY_ENOUGH else "low "
        reports.append(f"device: {name} {low}utilization: {busy / elapsed:.2f}")
    return reports


def _operations(stats: OpStats) -> list[str]:
    """Ops for which a faster one exists."""
    reports = []
    has_batch_norm = any("BatchNorm" in name for name in stats.names)
    if has_batch_norm and "FusedBatchNorm" not in stats.ops.values:
        reports.append("Maybe use faster FusedBatchNorm instead of BatchNorm")
    for number, layout in stats.graph.attribute("data_format").items():
        if layout == "NHWC" and "gpu" in (stats.devices[int(stats.places[number])] or ""):
            reports.append("Found operation using NHWC data_format on GPU. Maybe NCHW is faster.")
            break
    return reports


def _expensive(stats: OpStats) -> list[str]:
    """The op types, scopes and calls that took the most time."""
    reports: list[list[str]] = []
    if stats.steps:
        shown = op_view(stats, Options(max_depth=3, min_micros=1, order_by="micros"))
        whole = shown.totals[0, _TOTAL] + 1e-10
        reports.append(
            [
                f"top {place} operation type: {shown.names[place]}, "
                f"{_times(shown.own[place])} ({100.0 * shown.own[place, _TOTAL] / whole:.2f}%)"
                for place in range(1, min(_TOP + 1, shown.rows))
            ]
        )
    shown = scope_view(stats, Options(max_depth=100, min_micros=100, order_by="micros"))
    top = np.flatnonzero(shown.depth == 1)[:_TOP].tolist()
    reports.append(
        [
            f"top {place} graph node: {shown.names[row]}, {_times(shown.own[row])}"
            for place, row in enumerate(top, 1)
        ]
    )
    calls = code_view(stats, Options(max_depth=100, min_micros=1, order_by="micros"))
    reports = [lines for lines in reports if lines]
    if calls is not None and (lines := _calls(calls)) is not None:
        reports.append(lines)
    return ["\n".join(lines) for lines in reports]


def _times(measures: Int64Array) -> str:
    cpu, accelerator, total = (
        format_time(int(measures[measure])) for measure in (_CPU, _ACCELERATOR, _TOTAL)
    )
    return f"cpu: {cpu}, accelerator: {accelerator}, total: {total}"


def _calls(shown: Shown) -> list[str] | None:
    """The calls below the first that has several, as far down as there are several.

    None where no call has several; an empty list, which upstream reports too, where none of them
    takes long.
    """
    children: list[list[int]] = [[] for _ in range(shown.rows)]
    above: list[int] = []
    for row, depth in enumerate(shown.depth.tolist()):
        del above[depth:]
        if above:
            children[above[-1]].append(row)
        above.append(row)
    row = 0
    while len(children[row]) == 1:
        row = children[row][0]
    if not children[row]:
        return None
    lines: list[str] = []

    def describe(row: int, depth: int) -> None:
        if len(children[row]) <= 1 or depth > _MOST_CALL_DEPTH:
            return
        for child in children[row][:_TOP]:
            if shown.totals[child, _TOTAL] >= _WORTH_SAYING_MICROS:
                times = _times(shown.totals[child])
                lines.append(f"{' ' * (2 * depth)}{shown.names[child]}, {times}")
                describe(child, depth + 1)

    describe(row, 0)
    return lines
