"""What programs compute, by their shapes: the costs of the ops of a host, and how much of what the
devices can do at most the steps of a profile use.

Model FLOPs utilisation (MFU, https://arxiv.org/abs/2204.02311, appendix B) counts what the program
has to compute by its shapes, over the time of the step and the peak of the chips; here that is what
XLA compiled, rematerialised work included. Bytes are those that XLA counts as read and written, of
which caches can serve a part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.hlo.row_costs import executed_cost
from peakline.shown import Brief
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.ops.hlo import hlo_op_table, is_costed
from peakline.timing.ops.names import parse_op_name
from peakline.timing.programs.chips import chips_of
from peakline.timing.programs.runs import program_runs
from peakline.timing.steps.facts import StepFacts


@once
def host_costs(profile: Profile) -> dict[str, tuple[float, float, int]]:
    """Operations, bytes and executions of all runs by the framework's op; empty where the profile
    holds no program, or a device ran them, whose ops have their costs in ``op_stats``.

    Raises InputError when the profile cannot be read.
    """
    result: dict[str, tuple[float, float, int]] = {}
    if not profile.has_rows("hlo_modules"):
        return result
    for op in hlo_op_table(profile).ops.values():
        if not (op.occurrences and is_costed(op)):
            continue
        name = parse_op_name(op.provenance).name if op.provenance else op.name
        flops, moved, runs = result.get(name, (0.0, 0.0, 0))
        result[name] = (flops + op.flops, moved + op.bytes_accessed, runs + op.occurrences)
    return result


@dataclass(frozen=True, repr=False)
class Utilisation(Brief):
    """What the programs that ran in the steps cost, per step of all devices together.

    ``flops`` and ``bytes_accessed`` are means over the steps, ``is_least`` where a loop of unknown
    length counts one turn. ``flops_share`` and ``bytes_share`` are shares of the peaks of ``chips``
    devices called ``chip`` over the steps' time, None where a peak is not known.
    """

    flops: float
    bytes_accessed: float
    flops_per_s: float
    bytes_per_s: float
    flops_share: float | None
    bytes_share: float | None
    chip: str
    chips: int
    is_least: bool


def utilisation_of(profile: Profile, facts: StepFacts) -> Utilisation | None:
    """The utilisation over the steps of ``facts``; None where no program is known to have run.

    A run belongs to the step in which it begins; a step of several devices lasts as long as its
    longest part.

    Raises InputError when the profile cannot be read.
    """
    runs = program_runs(profile)
    if not (runs.rows and facts.rows):
        return None
    rows, wall = facts.slowest_lane()
    begin, end = facts.part("start_ps")[rows], facts.part("end_ps")[rows]
    order = np.argsort(begin, kind="stable")
    begin, end, wall = begin[order], end[order], wall[order]
    start = runs.array("start_ps")
    at = np.searchsorted(begin, start, side="right") - 1
    inside = (at >= 0) & (start < end[np.maximum(at, 0)])
    programs, counts = np.unique(runs.array("program")[inside], return_counts=True)
    if not programs.size:
        return None
    flops = moved = 0.0
    is_least = False
    for number, count in zip(programs.tolist(), counts.tolist(), strict=True):
        cost = executed_cost(profile, number)
        flops += count * cost.flops
        moved += count * cost.bytes_accessed
        is_least |= cost.is_least
    chips = chips_of(profile)
    seconds = max(int(wall.sum()), 1) / 1e12
    devices = max(len(set(runs.take(inside).names("device").to_list())), 1)
    peak, memory = chips.peaks.gigaflops * 1e9, chips.peaks.bandwidth(0) * 1e9
    return Utilisation(
        flops / rows.size,
        moved / rows.size,
        flops / seconds,
        moved / seconds,
        flops / seconds / (peak * devices) if peak else None,
        moved / seconds / (memory * devices) if memory else None,
        chips.name,
        devices,
        is_least,
    )
