"""Copies between Python's memory and XLA's on a CPU, which the runtime shows on its own threads."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.timing.ops.in_steps import StepOps
from peakline.trace.events import HOST
from peakline.trace.intervals import covered, union

_COPIES = re.compile(r"[HD]2[HD] Dispatch$|BufferFromHost|TransferLiteral(?:To|From)Device")
"""Names of xla/pjrt/cpu and of common_pjrt_client."""


@dataclass(frozen=True)
class Transfers:
    """How long such copies take of the steps (ps), what most of it is called, and how many a step
    has.
    """

    ps: int
    name: str
    per_step: float


def transfers_of(ops: StepOps) -> Transfers | None:
    """The copies in the steps, or in the whole profile; None without any."""
    trace = ops.trace
    wanted = [_COPIES.search(name) is not None for name in trace.name.values]
    mask = np.array([*wanted, False], np.bool_)
    events = np.flatnonzero(mask[trace.name.codes] & trace.within(trace.lines_on(HOST)))
    at = np.searchsorted(ops.begin, trace.start[events], "right") - 1
    inside = (at >= 0) & (trace.start[events] < ops.end[np.maximum(at, 0)])
    events = events[inside]
    if not events.size:
        return None
    spans = union(trace.start[events], trace.end[events])
    codes = trace.name.codes[events]
    most = int(np.bincount(codes, trace.end[events] - trace.start[events]).argmax())
    whole = int(covered(spans, ops.begin, ops.end).sum())
    return Transfers(whole, trace.name.values[most], events.size / ops.steps)
