"""The ops with most self time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from peakline.tables.once import once
from peakline.timing.ops.host import host_executions
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity

if TYPE_CHECKING:
    from peakline.tables import Profile

_OPS = 3


@dataclass(frozen=True)
class TopOp:
    """An op with its self time in ps, and the ``share`` of it in that of all ops of its side."""

    side: str
    """``device`` or ``host``."""
    op: str
    op_type: str | None
    self_ps: int
    share: float
    is_input: bool
    """Whether it only prepares input, on threads beside the steps."""


@once
def top_ops(profile: Profile) -> tuple[TopOp, ...]:
    """The three ops with most self time, of the devices where they have any, else of the host.

    Raises InputError when the profile cannot be read.
    """
    if "op_stats" not in profile.tables or not profile.has_rows("op_stats"):
        return ()
    table = profile.columns("op_stats")
    side = table.names("side")
    device = np.flatnonzero(side.codes == side.code_of("device"))
    rows = device if device.size else np.arange(table.rows)
    own = table.array("self_ps")[rows]
    whole = max(int(own.sum()), 1)
    most = rows[np.argsort(-own, kind="stable")[:_OPS]]
    return tuple(
        TopOp(where, op, kind, self_ps, self_ps / whole, _is_input(profile, where, op, kind))
        for where, op, kind, self_ps in table.take(most).each("side", "op", "op_type", "self_ps")
    )


def _is_input(profile: Profile, side: str, op: str, op_type: str | None) -> bool:
    """Whether every execution of an op of the host is work of the input pipeline's own threads."""
    if side != "host":
        return False
    runs = host_executions(profile)
    wanted = np.array(
        [(key.name, key.op_type) == (op, op_type or "") for key in runs.keys], np.bool_
    )
    events = runs.event[wanted[runs.op]] if wanted.any() else runs.event[:0]
    return bool(events.size and (activity_of(profile)[events] == Activity.INPUT_WORK).all())
