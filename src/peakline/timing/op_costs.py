"""What the ops of a host cost, where XLA compiled them for the CPU: operations and bytes by op."""

from __future__ import annotations

from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.hlo_ops import hlo_op_table, is_costed
from peakline.timing.op_names import parse_op_name


@once
def host_costs(profile: Profile) -> dict[str, tuple[float, float, int]]:
    """Operations, bytes and executions of all runs by the framework's op; empty where the profile
    holds no program, or a device ran them, whose ops have their costs in ``op_stats``.

    Raises InputError when the profile cannot be read.
    """
    found: dict[str, tuple[float, float, int]] = {}
    if not profile.has_rows("hlo_modules"):
        return found
    for op in hlo_op_table(profile).ops.values():
        if not (op.occurrences and is_costed(op)):
            continue
        name = parse_op_name(op.provenance).name if op.provenance else op.name
        flops, moved, runs = found.get(name, (0.0, 0.0, 0))
        found[name] = (
            flops + op.flops,
            moved + op.bytes_accessed,
            runs + op.occurrences,
        )
    return found
