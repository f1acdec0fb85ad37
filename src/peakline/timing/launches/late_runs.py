"""Runs of compiled programs that the steps only started: they work on after the steps' marks end.

JAX returns from a call of a program before it ran. With a device the windows of steps last until
its work ends; on a CPU no event says which run belongs to which step, so that a step without a wait
for its result lasts as long as the launch.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.tables import Profile
from peakline.timing.ops.eager import called, in_windows
from peakline.timing.programs.compiled import module_name
from peakline.timing.programs.runs import program_runs
from peakline.timing.steps.facts import StepFacts
from peakline.trace.events import trace_of
from peakline.trace.intervals import covered, union

_LAUNCH = "PjitFunction("
_FROM_STEPS = 0.75
"""A function is the steps' when they have so many of its calls."""


@dataclass(frozen=True)
class LateRuns:
    """What ``programs``, by name, do: ``work_ps`` is when one of them runs or more, ``late_ps`` how
    much of that is outside of the steps. The programs that ran most often come first.
    """

    programs: tuple[str, ...]
    work_ps: int
    late_ps: int


def late_runs_of(profile: Profile, facts: StepFacts) -> LateRuns | None:
    """The runs of what the steps call, on the host; None with a device, and where none ran.

    Raises InputError when the profile cannot be read.
    """
    programs = profile.programs()
    if facts.has_device or facts.is_inferred or not facts.rows or not programs:
        return None
    starts = facts.part("start_ps")
    order = np.argsort(starts, kind="stable")
    begin, end = starts[order], np.maximum.accumulate(facts.part("end_ps")[order])
    called_here = _called(profile, begin, end)
    names = [module_name(programs.name(k).partition("(")[0]) for k in range(len(programs))]
    runs = program_runs(profile)
    own = np.isin(runs.array("program"), [k for k, name in enumerate(names) if name in called_here])
    program = runs.array("program")[own]
    start, until = runs.array("start_ps")[own], runs.array("end_ps")[own]
    if not program.size:
        return None
    busy = union(start, until)
    work = int((busy[1] - busy[0]).sum())
    inside = int(covered(busy, *union(begin, end)).sum())
    most = [names[k] for k, _ in Counter(program.tolist()).most_common()]
    return LateRuns(tuple(dict.fromkeys(most)), work, work - inside)


def _called(profile: Profile, begin: Int64Array, end: Int64Array) -> set[str]:
    """The names of the programs that the steps call, and hardly anything else does."""
    trace = trace_of(profile)
    names = trace.name.values
    # One more for events without a name, whose code is -1.
    is_call = np.array([*(name.startswith(_LAUNCH) for name in names), False], np.bool_)
    calls = np.flatnonzero(is_call[trace.name.codes])
    codes, within = trace.name.codes[calls], in_windows(trace.start[calls], begin, end)
    whole, inside = Counter[str](), Counter[str]()
    for code, count in zip(*np.unique(codes, return_counts=True), strict=True):
        whole[module_name("jit_" + called(names[code]))] += int(count)
    for code, count in zip(*np.unique(codes[within], return_counts=True), strict=True):
        inside[module_name("jit_" + called(names[code]))] += int(count)
    return {name for name, count in inside.items() if count >= _FROM_STEPS * whole[name]}
