"""How much of the time the chips of TPUs had work.

Source of the rules: ``ConstructDutyCycleTracker`` and ``duty_cycle_tracker.cc`` in
``xprof/convert`` of openxla/xprof. A chip is on duty while one of its cores runs an op that does
not just move data between it and its host, and is looked at from its first op or module run to its
last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray
from peakline.tables import Profile
from peakline.trace.events import Trace, trace_of
from peakline.trace.intervals import Intervals, total, union

_TPU = "/device:TPU:"
_OPS = frozenset(("XLA Ops", "Sparse Core Ops"))
_MODULES = frozenset(("XLA Modules", "Sparse Core Modules"))
_OFF_DUTY = frozenset(
    (
        "infeed", "outfeed", "host send", "host send-done", "host recv", "host recv-done",
        "megacore fusion",
    )
)  # fmt: skip
"""Categories of ops during which a core waits for its host; of a megacore fusion only what it
calls is work."""


@dataclass(frozen=True)
class DutyCycle:
    """Time of all chips together, in ps, with work and without."""

    active_ps: int
    idle_ps: int


def duty_cycle_of(profile: Profile) -> DutyCycle:
    """The duty cycle of a host's TPU chips; zero without any."""
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
    found = list(parts)
    return DutyCycle(sum(p.active_ps for p in found), sum(p.idle_ps for p in found))


def chip_of_planes(profile: Profile) -> dict[int, int]:
    """By plane_id the number that its chip has on the host, where the plane tells it.

    Source: the stat ``core_details`` (``plugin/xprof/protobuf/op_stats.proto``).
    """
    from google.protobuf.message import DecodeError

    from peakline.schema import CoreDetails

    found = {}
    for plane, data in profile.plane_bytes("core_details").items():
        try:
            found[plane] = int(CoreDetails.FromString(data).local_chip_id)
        except DecodeError:
            continue
    return found


def _off_duty(profile: Profile, trace: Trace) -> BoolArray:
    """By row of ``event_types``, and for none at the end: whether its events are no work."""
    stats, types = profile.columns("event_type_stats"), profile.columns("event_types")
    names, values = stats.names("name"), stats.names("value")
    is_category = names.codes == names.code_of("hlo_category")
    codes = [code for code, value in enumerate(values.values) if value in _OFF_DUTY]
    rows = is_category & np.isin(values.codes, codes)
    found = np.zeros(types.rows + 1, np.bool_)
    found[stats.array("type_id")[rows]] = True
    own = profile.columns("events", frozenset(("type_id",)))
    place = np.where(own.is_valid("type_id"), own.array("type_id"), -1)
    off_duty: BoolArray = found[place]
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
