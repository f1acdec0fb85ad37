"""``peakline summary``: memory and time on one screen, and what to fix first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from peakline.cli.diff import profile_document, warnings_document
from peakline.cli.options import (
    Host,
    Json,
    MaxUnpacked,
    PathArgument,
    SessionId,
    Strict,
)

if TYPE_CHECKING:
    from peakline.analysis.answer import MemoryAnswer
    from peakline.analysis.timing.answer import TimeAnswer
    from peakline.api import Profile

__all__ = ["FIRST", "summary", "top_ops"]

FIRST = 3
"""So many findings are told in full: whoever fixes three things profiles again."""
_OPS = 3
_PEAK = ("allocator", "peak_bytes", "peak_time_ps", "peak_step", "capacity_bytes")


def summary(
    path: PathArgument,
    session: SessionId = None,
    host: Host = None,
    *,
    json: Json = False,
    strict: Strict = False,
    max_unpacked: MaxUnpacked = None,
) -> None:
    """Say on one screen what memory and time do, and the three things to fix first."""
    from peakline.analysis.answer import NOTHING
    from peakline.analysis.priorities import priorities
    from peakline.analysis.timing.answer import NO_STEPS
    from peakline.cli.hosts import StragglerHosts, tell_hosts

    def tell(profile: Profile) -> dict[str, object] | None:
        memory, time = profile.memory(), profile.time()
        first = priorities(memory.findings, time.findings)
        if json:
            return {
                "profile": profile_document(profile),
                "memory": _memory(memory),
                "time": _time(profile, time),
                "first": [one.as_json() for one in first[:FIRST]],
                "further_findings": len(first[FIRST:]),
                "warnings": warnings_document(profile),
            }
        from peakline.cli.summary_screen import print_summary

        print_summary(profile, memory, time, first)
        return None

    tell_hosts(
        path, session, host, tell, strict=strict, max_unpacked=max_unpacked, json=json,
        besides=frozenset({NOTHING, NO_STEPS}), at_the_end=StragglerHosts(),
    )  # fmt: skip


def top_ops(profile: Profile) -> list[dict[str, object]]:
    """The ops with most own time, of the devices where they have any, else of the host.

    Each has ``side``, ``op``, ``op_type``, ``self_ps``, its ``share`` of that side's own time, and
    ``is_input``: whether it only prepares input, on threads beside the steps.
    """
    if "op_stats" not in profile.tables or not profile.has_rows("op_stats"):
        return []
    import numpy as np

    table = profile.columns("op_stats")
    side = table.names("side")
    device = np.flatnonzero(side.codes == side.code_of("device"))
    rows = device if device.size else np.arange(table.rows)
    own = table.array("self_ps")[rows]
    whole = max(int(own.sum()), 1)
    most = rows[np.argsort(-own, kind="stable")[:_OPS]]
    return [
        {name: row[name] for name in ("side", "op", "op_type", "self_ps")}
        | {"share": row["self_ps"] / whole, "is_input": _is_input(profile, row)}
        for row in table.take(most).to_pylist()
    ]


def _is_input(profile: Profile, op: Mapping[str, object]) -> bool:
    """Whether all events of an op of the host belong to the input pipeline's own threads."""
    import numpy as np

    from peakline.analysis.timing.activity import Activity, activity_of
    from peakline.analysis.timing.trace import trace_of

    trace = trace_of(profile)
    if op["side"] != "host" or not trace.size:
        return False
    named = {str(op["op"]), f"{op['op']}:{op['op_type']}"}
    wanted = np.array([*(name in named for name in trace.name.values), False])
    events = wanted[trace.name.codes]
    return bool(events.any() and (activity_of(profile)[events] == Activity.INPUT_WORK).all())


def _memory(answer: MemoryAnswer) -> dict[str, object] | None:
    if not answer.allocators:
        return None
    return {
        "allocators": [{name: getattr(peak, name) for name in _PEAK} for peak in answer.allocators]
    }


def _time(profile: Profile, answer: TimeAnswer) -> dict[str, object] | None:
    ops = top_ops(profile)
    if answer.times is None and not answer.devices.rows and not ops:
        return None
    told = answer.as_json()
    return {name: told[name] for name in ("times", "parts", "devices")} | {"top_ops": ops}
