"""Findings about devices of a profile without steps: why they had nothing to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.memory_peak import Finding
from peakline.findings.time_device import HOST as LEAST
from peakline.findings.time_device import MUCH_HOST, severity_of
from peakline.tables.once import once
from peakline.text import time_text
from peakline.timing.launches import launch_summary
from peakline.trace.activity import Activity, activity_of
from peakline.trace.activity_sets import device_sets_of, either
from peakline.trace.events import HOST, trace_of
from peakline.trace.intervals import Intervals, covered, union

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["idle_devices"]

MOSTLY = 0.5
"""Of the idle time compilation is named as the reason where it runs in more than half of it."""

WORKS = 0.01
"""A device that is busy for less than this share of the busiest one's time does none of the job's
work: that it waits is a note, said where no other device does."""


def idle_devices(profile: Profile) -> list[Finding]:
    """Devices that stood idle because the host had launched nothing, the idlest told of.

    Those that do the job's work come first. The share is that of the device's time from its first
    to its last event; compilation and other waits within it are told apart. Without links from
    launches to work there is no such finding.
    Raises InputError when the profile cannot be read.
    """
    sets = {found.device.name: either(*found.sets.values()) for found in device_sets_of(profile)}
    rows: list[dict[str, object]] = []
    shares: list[float] = []
    busy: list[int] = []
    for launches in launch_summary(profile).devices:
        begin, end = sets.get(launches.device, (np.zeros(0), np.zeros(0)))
        span = int(end[-1] - begin[0]) if begin.size else 0
        if not span:
            continue
        shares.append(min((launches.starved_ps + launches.latency_ps) / span, 1.0))
        busy.append(int((end - begin).sum()))
        compiles = int(covered(_compilation(profile), end[:-1], begin[1:]).sum())
        rows.append(
            {
                "device": launches.device,
                "span_ps": span,
                "busy_ps": busy[-1],
                "idle_ps": launches.idle_ps,
                "not_launched_ps": launches.starved_ps,
                "being_launched_ps": launches.latency_ps,
                "waits_for_other_work_ps": launches.blocked_ps,
                "unexplained_ps": launches.unexplained_ps,
                "compile_ps": compiles,
                "longest_idle_ps": int((begin[1:] - end[:-1]).max(initial=0)),
            }
        )
    works = [one >= WORKS * max(busy) for one in busy]
    order = sorted(range(len(rows)), key=lambda place: (not works[place], -shares[place]))
    # Of each kind the idlest stands first.
    first = next((place for place in order if shares[place] >= LEAST), None)
    if first is None:
        return []
    order.remove(first)
    found = [rows[place] for place in (first, *order)]
    return [_finding(found, shares[first], works=works[first], most_ps=max(busy))]


def _finding(rows: list[dict[str, object]], share: float, *, works: bool, most_ps: int) -> Finding:
    first = rows[0]
    whole = int(str(first["not_launched_ps"])) + int(str(first["being_launched_ps"]))
    compiles, idle = int(str(first["compile_ps"])), int(str(first["idle_ps"]))
    is_compiling = compiles > MOSTLY * idle
    why = "compiled" if is_compiling else "had not launched its next work"
    advice = (
        "Run the program once before the profile begins, or keep compiled programs "
        "(jax_compilation_cache_dir), so that the profile shows the work itself."
        if is_compiling
        else "Take work out of the loop that calls the device, compile the whole step as one "
        "program (tf.function, jax.jit, torch.compile), and prepare the next batch on another "
        "thread. Mark the steps to see what of this every step pays."
    )
    note = ""
    if not works:
        part = int(str(first["busy_ps"])) / most_ps
        note = f" (it does {part:.1%} of the work of the busiest device)"
    return Finding(
        "host_bound",
        severity_of(share, MUCH_HOST) if works else "info",
        f"{first['device']} waits for {share:.0%} of {time_text(int(str(first['span_ps'])))} while "
        f"the host {why}{note}",
        {
            "device": first["device"],
            "devices": len(rows),
            "idle_ps": idle,
            "compile_ps": compiles,
            "share": share,
            "gain_ps": whole if works else 0,
            "gain_share": share if works else 0.0,
        },
        advice,
        tuple(rows),
    )


@once
def _compilation(profile: Profile) -> Intervals:
    """When a thread of the host compiled."""
    trace, does = trace_of(profile), activity_of(profile)
    found = [
        line.first + np.flatnonzero(does[line.events] == Activity.COMPILE)
        for line in trace.lines_on(HOST)
    ]
    events = np.concatenate([np.zeros(0, np.int64), *found])
    return union(trace.start[events], trace.end[events])
