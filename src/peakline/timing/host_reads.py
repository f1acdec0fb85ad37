"""Reads of values that wait for the device in every step, and how long it is idle after them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.timing.frame_work import FrameWork, Idle, callee_title
from peakline.trace.calls import Call
from peakline.trace.frames import Frame

LONG = 0.02
"""A read waits when it takes so much of a step."""


@dataclass(frozen=True, eq=False)
class Reads:
    """``callee`` is what reads, ``frame`` the function of the program that calls it (None where
    none is recorded), ``work`` what it does in the idle time then. ``in_steps`` is the share of
    steps with such a read, ``idle_ps`` how long nothing works outside of it in all steps.
    """

    callee: str
    frame: Frame | None
    work: FrameWork | None
    in_steps: float
    per_step: float
    idle_ps: int


def reads_of(idle: Idle) -> Reads | None:
    """The reads that wait, None without any."""
    threads, trace = idle.threads, idle.threads.trace
    source = idle.source
    outer = np.flatnonzero((source == np.arange(source.size)) & (idle.call == Call.READ))
    # Of a read within another the outer one is what the program calls.
    above = threads.parent[outer]
    outer = outer[(above < 0) | (idle.call[np.maximum(above, 0)] != Call.READ)]
    event = threads.event[outer]
    took = trace.end[event] - trace.start[event]
    wall = np.maximum(threads.end - threads.begin, 1)
    # What it waits for runs elsewhere: else it is the work itself.
    works = took - idle.within(outer)
    waits = (took >= LONG * wall[threads.step[outer]]) & (works >= 0.5 * took)
    outer, took = outer[waits], took[waits]
    if not outer.size:
        return None
    codes = threads.code[outer]
    most = int(np.bincount(codes, took).argmax())
    frames = threads.frame[outer[codes == most]]
    frame = None
    if (frames >= 0).any():
        from peakline.trace.frames import frame_of

        first = int(frames[frames >= 0][0])
        frame = frame_of(threads.names.values[int(threads.code[first])])
    chosen = (idle.call != Call.READ) & idle.is_usual & ~idle.is_input
    found = idle.by_function(chosen)
    return Reads(
        callee_title(threads.names.values[most]),
        frame,
        found[0] if found else None,
        np.unique(threads.step[outer]).size / threads.steps,
        outer.size / threads.steps,
        idle.total(chosen),
    )
