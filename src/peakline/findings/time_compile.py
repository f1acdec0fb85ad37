"""The finding of programs that are compiled again and again, and which they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from peakline.findings.memory_peak import Finding
from peakline.findings.time_device import severity_of
from peakline.findings.time_host import called
from peakline.timing.step_facts import WARM_UP, StepFacts
from peakline.trace.activity import Activity, activity_of
from peakline.trace.activity_names import is_marker
from peakline.trace.events import HOST, nesting_of, trace_of

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["recompilation"]

_Array = npt.NDArray[Any]

COMPILES, MUCH_COMPILES = 0.05, 0.20
"""Compilation after the first steps, as a share of those steps' time."""

_ROWS = 20
_NAMES = 3
_NAMED = 0.05
"""A program is named when it has this share of all compilation that a call stands around."""


def recompilation(profile: Profile, facts: StepFacts) -> Finding | None:
    """Programs are compiled in steps after the first `WARM_UP`.

    ``programs`` of the evidence are at most three, those whose compilation took longest. Raises
    InputError when the profile cannot be read.
    """
    late = facts.number >= WARM_UP
    compiles, wall = facts.part("compile_ps"), facts.part("wall_ps")
    whole = int(wall[late].sum())
    lost = int(compiles[late].sum())
    share = lost / whole if whole else 0.0
    if share < COMPILES:
        return None
    rows = np.flatnonzero(late & (compiles >= COMPILES * wall) & (compiles > 0))
    steps = int(np.unique(facts.part("step_id")[rows]).size)
    later = int(np.unique(facts.part("step_id")[late]).size)
    many = f"{steps} of {later} steps after the first {WARM_UP}"
    order = rows[np.argsort(-compiles[rows], kind="stable")][:_ROWS]
    programs = _programs(profile, facts, np.flatnonzero(late))
    what = ", ".join(programs) if programs else "a program"
    return Finding(
        "recompilation",
        severity_of(share, MUCH_COMPILES),
        f"{many} compile {what}: {share:.0%} of their time",
        {
            "steps": facts.count,
            "compiling_steps": steps,
            "programs": programs,
            "compile_ps": lost // facts.lanes,
            "share": share,
            "gain_ps": lost // facts.lanes,
            "gain_share": lost / facts.wall_ps,
        },
        "Give every call the same shapes and types: pad batches to one length or to a few, drop "
        "the last short one, pass numbers that change as arrays instead of Python values, and set "
        "input_signature (tf.function) or keep static arguments constant (jax.jit).",
        tuple(
            {
                "step": facts.label(row),
                "wall_ps": int(wall[row]),
                "compile_ps": int(compiles[row]),
            }
            for row in order.tolist()
        ),
    )


def _programs(profile: Profile, facts: StepFacts, rows: _Array) -> list[str]:
    """What calls the compiler in these rows: the names of the calls right around it."""
    trace = trace_of(profile)
    if not trace.size:
        return []
    does, parent = activity_of(profile), nesting_of(profile).parent
    order = rows[np.argsort(facts.part("start_ps")[rows], kind="stable")]
    begin, end = facts.part("start_ps")[order], np.maximum.accumulate(facts.part("end_ps")[order])
    weights = np.zeros(len(trace.name.values) + 1, np.int64)
    for line in trace.lines_on(HOST):
        events = line.first + np.flatnonzero(does[line.events] == Activity.COMPILE)
        events = events[parent[events] >= 0]
        events = events[does[parent[events]] != Activity.COMPILE]
        at = np.searchsorted(begin, trace.start[events], side="right") - 1
        inside = (at >= 0) & (trace.start[events] < end[np.maximum(at, 0)])
        events = events[inside]
        codes = trace.name.codes[parent[events]]
        np.add.at(weights, codes, trace.end[events] - trace.start[events])
    total = int(weights.sum())
    names: dict[str, None] = {}
    for code in np.argsort(-weights, kind="stable").tolist():
        if weights[code] < max(_NAMED * total, 1) or len(names) == _NAMES:
            break
        name = trace.name.values[code] if code < len(trace.name.values) else ""
        if name and not is_marker(name):
            names.setdefault(called(name))
    return list(names)
