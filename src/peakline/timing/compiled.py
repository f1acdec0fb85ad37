"""Which programs are compiled in some steps."""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray
from peakline.tables import Profile
from peakline.timing.eager_ops import called, in_windows
from peakline.timing.step_facts import StepFacts
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity, is_marker
from peakline.trace.events import HOST, nesting_of, trace_of

_NAMES = 3
_NAMED = 0.05
"""A program is named when it has this share of all compilation that a call stands around."""


def programs_compiled(profile: Profile, facts: StepFacts, rows: AnyArray) -> list[str]:
    """What calls the compiler in these rows: the calls right around it, those with most first.

    At most three. Raises InputError when the profile cannot be read.
    """
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
        events = events[in_windows(trace.start[events], begin, end)]
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
