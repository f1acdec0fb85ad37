"""What Peakline and the plain reader answer about one trace, in one form to be compared."""

from typing import Any

import peakline
from reference.kineto import Trace

QUESTIONS = ("devices", "communication", "copies", "kernels", "ops", "steps")
_OPS = (
    "select op, occurrences, total_ps, self_ps from op_stats where side = 'host' and op <> 'IDLE'"
)
_KERNELS = """
    select kernel, sum(occurrences)::bigint as runs, sum(total_ps)::bigint as total_ps
    from kernels group by 1
"""


def by_peakline(profile: peakline.Profile) -> dict[str, Any]:
    """The answers of the tables; times count from the profile's begin.

    Devices are compared by when they worked: what a device is called is another question.
    """

    def rows(query: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in profile.sql(query).to_pylist()]

    return {
        "devices": sorted(rows("select start_ps, end_ps, busy_ps, idle_ps from device_time")),
        "communication": sorted(rows("select busy_ps, communication_ps from device_time")),
        "copies": sorted(rows("select busy_ps, copy_ps from device_time")),
        "kernels": {name: tuple(rest) for name, *rest in rows(_KERNELS)},
        "ops": {name: tuple(rest) for name, *rest in rows(_OPS)},
        # The plain reader does not count marks without a number.
        "steps": sorted(
            rows(
                "select case found_by when 'annotation' then regexp_replace(name, ' [0-9]+$', '') "
                "else name end, start_ps, end_ps from steps"
            )
        ),
    }


def plainly(trace: Trace) -> dict[str, Any]:
    """The same, by the plain reader."""
    zero = trace.first_ps
    devices = list(trace.devices().values())
    return {
        "devices": sorted(
            (work.start_ps - zero, work.end_ps - zero, work.busy_ps, work.idle_ps)
            for work in devices
        ),
        "communication": sorted((work.busy_ps, work.communication_ps) for work in devices),
        "copies": sorted((work.busy_ps, work.copy_ps) for work in devices),
        "kernels": trace.kernels(),
        "ops": trace.ops(),
        "steps": sorted(
            (step.shown, step.start_ps - zero, step.end_ps - zero) for step in trace.steps()
        ),
    }
