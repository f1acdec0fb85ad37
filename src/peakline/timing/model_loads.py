"""Models of PyTorch that are built or loaded again in each step, or for each request.

A module's weights are made by its ``reset_parameters`` (torch/nn/modules), those of a file by
``torch.load`` with ``load_state_dict``, or with ``Module.__setstate__`` where whole modules were
saved. Tensors that ``torch.load`` reads are data where no module takes them, and
``load_state_dict`` alone copies weights (a target network).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.tables import Profile
from peakline.timing.frame_work import function_of_loop
from peakline.timing.steps.facts import StepFacts
from peakline.trace.events import Trace, nesting_of, trace_of
from peakline.trace.frames import Frame, frame_of
from peakline.trace.intervals import covered, union

_MODULES = r"torch/nn/modules/"
_RESETS = re.compile(_MODULES + r"\w+\.py\(\d+\): _?reset_parameters$")
_MAKES = re.compile(r"\.py\(\d+\): __init__$")
_READS = re.compile(r"torch/(?:serialization|jit/_serialization)\.py\(\d+\): load$")
_TAKES = re.compile(_MODULES + r"module\.py\(\d+\): load_state_dict$")
_UNPICKLES = re.compile(_MODULES + r"module\.py\(\d+\): __setstate__$")
_FEWEST = 3
_OFTEN = 0.8
"""So many of the steps do it."""
_DEEPEST = 16


@dataclass(frozen=True, eq=False)
class ModelLoads:
    """``times`` a step, in ``function`` where a frame says it; ``ps`` of ``wall_ps`` go to it, and
    ``whole_ps`` to all that the function does. ``is_read``: from a file; else the modules are built
    with new weights.
    """

    is_read: bool
    times: float
    steps: int
    function: Frame | None
    ps: int
    whole_ps: int
    wall_ps: int


def model_loads_of(profile: Profile, facts: StepFacts) -> ModelLoads | None:
    """None where fewer steps do it, and where no frames of Python are recorded."""
    trace = trace_of(profile)
    resets, reads = _named(trace, _RESETS), _named(trace, _READS)
    if not resets.any() and not reads.any():
        return None
    built = _outermost(profile, np.flatnonzero(resets), _named(trace, _MAKES))
    takes = _named(trace, _TAKES)
    read = np.flatnonzero(reads)
    if not takes.any():
        unpickled = nesting_of(profile).around(np.flatnonzero(_named(trace, _UNPICKLES)), reads)
        read = np.unique(unpickled[unpickled >= 0])
    if facts.rows:
        begin, end = np.unique(facts.part("start_ps")), np.sort(facts.part("end_ps"))
    else:
        begin, end = (np.array([side]) for side in trace.span())
    for is_read, every in ((True, read), (False, built)):
        step = np.searchsorted(begin, trace.start[every], "right") - 1
        inside = (step >= 0) & (trace.start[every] < end[np.maximum(step, 0)])
        events, step = every[inside], step[inside]
        is_each = np.unique(step).size >= max(_OFTEN * begin.size, _FEWEST)
        if not (is_each if facts.rows else is_read and events.size >= _FEWEST):
            continue
        parts = np.concatenate([read, built, np.flatnonzero(takes)])
        spans = union(trace.start[parts], trace.end[parts])
        callers = events if is_read else nesting_of(profile).parent[events]
        function = function_of_loop(profile, callers[callers >= 0])
        ps, wall = int(covered(spans, begin, end).sum()), int((end - begin).sum())
        mine = trace.name.per_row(lambda name: frame_of(name) == function, np.bool_)  # noqa: B023
        around = nesting_of(profile).around(events, mine)
        calls = np.unique(around[around >= 0])
        spans = union(trace.start[calls], trace.end[calls])
        whole = int(covered(spans, begin, end).sum()) if function is not None else 0
        return ModelLoads(is_read, events.size / begin.size, begin.size, function, ps, whole, wall)
    return None


def _outermost(profile: Profile, events: Int64Array, wanted: BoolArray) -> Int64Array:
    """The outermost constructor around each of ``events``."""
    nesting = nesting_of(profile)
    at = nesting.around(events, wanted)
    at = np.unique(at[at >= 0])
    for _ in range(_DEEPEST):
        above = nesting.around(at, wanted)
        if not at.size or not (above >= 0).any():
            break
        at = np.unique(np.where(above >= 0, above, at))
    return at


def _named(trace: Trace, pattern: re.Pattern[str]) -> BoolArray:
    result: BoolArray = trace.name.per_row(pattern.search, np.bool_)
    return result
