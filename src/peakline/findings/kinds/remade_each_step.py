"""A model is loaded, or a pipeline set up, in every step (TensorFlow)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.findings.steps import COLUMNS
from peakline.text import counted
from peakline.timing.frame_work import function_of_loop
from peakline.timing.ops.names import EAGER
from peakline.timing.steps.facts import FEWEST_STEPS, WARM_UP
from peakline.trace.events import trace_of
from peakline.trace.intervals import covered, union

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

KIND = Kind(
    "remade_each_step",
    __doc__,
    about="time",
    phrase="every step sets up what one can hold",
    severity="warning",
    least=0.15,
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns("op", times_a_step="Times a step", most_gain_share="Would save at most"),
    saves="gain_share",
)

_VARIABLE = re.compile(rf"{EAGER}VarHandleOp$")
_FILLS = re.compile(rf"{EAGER}(?:VarHandleOp|AssignVariableOp|RestoreV2)$")
_FEWEST_VARIABLES = 2
"""One may be a metric's."""
_ITERATOR = re.compile(rf"{EAGER}(?:OneShotIterator|MakeIterator)$")
_DATASET = re.compile(rf"{EAGER}(?:\w+Dataset(?:V\d+)?|AnonymousIterator\w*|MakeIterator)$")
_OP = re.compile(rf"{EAGER}(?!__)")
_CALLS = re.compile(rf"{EAGER}__(?:inference|forward)_(?P<name>.+)_\d+$")
_KERAS = re.compile(
    r"one_step_on_(?:data|iterator)|multi_step_on_iterator|(?:predict|test)_(?:fun|st)"
)
_EACH = 0.9
"""In so many of the steps."""
_MOST_CALLS = 4
"""A step that calls its function more often is a pass over the data, which opens an iterator."""

LOAD = (
    "Load or build the model once, before the loop, and hold it in a variable or a cache: a call "
    "of it is all that a request needs."
)
PREDICT = (
    "Call the model itself, model(x, training=False), or gather requests and predict them as one "
    "batch: predict makes a dataset and an iterator for each call."
)
ITERATE = "Make the dataset and its iterator once, before the loop, and take the next batch of it."


@dataclass(frozen=True, eq=False)
class _Steps:
    """When the steps after the first ones begin and end."""

    begin: Int64Array
    end: Int64Array

    @property
    def wall_ps(self) -> int:
        return int((self.end - self.begin).sum())

    def of(self, start: Int64Array) -> Int64Array:
        """The step in which each time lies, -1 for none."""
        at = np.searchsorted(self.begin, start, "right") - 1
        return np.where((at >= 0) & (start < self.end[np.maximum(at, 0)]), at, -1)

    def per_step(self, start: Int64Array) -> float:
        """How often in a step; 0 where too few have any."""
        at = self.of(start)
        at = at[at >= 0]
        return at.size / self.begin.size if np.unique(at).size >= _EACH * self.begin.size else 0.0


def find(context: TimeContext) -> Findings:
    """At most one: of variables that each step makes, else of iterators."""
    trace = trace_of(context.profile)
    names = trace.name.values
    facts = context.facts.main
    if not facts.rows or not any(map(_VARIABLE.match, names)) | any(map(_ITERATOR.match, names)):
        return
    late = facts.number >= (WARM_UP if facts.count >= WARM_UP + FEWEST_STEPS else 0)
    begin, end = facts.part("start_ps")[late], facts.part("end_ps")[late]
    order = np.argsort(begin, kind="stable")
    steps = _Steps(begin[order], end[order])
    if not steps.wall_ps:
        return

    def events(pattern: re.Pattern[str]) -> Int64Array:
        chosen: BoolArray = trace.name.per_row(pattern.match, np.bool_)
        result = np.flatnonzero(chosen)
        return result[steps.of(trace.start[result]) >= 0]

    made, opened, calls = events(_VARIABLE), events(_ITERATOR), events(_CALLS)
    if steps.per_step(trace.start[made]) >= _FEWEST_VARIABLES:
        times, op, advice = steps.per_step(trace.start[made]), "VarHandleOp", LOAD
        own = events(_FILLS)
        at = steps.of(trace.start[own])
        first, last = steps.end.copy(), steps.begin.copy()
        np.minimum.at(first, at, trace.start[own])
        np.maximum.at(last, at, trace.end[own])
        least_ps = int(np.maximum(last - first, 0).sum())
        # The first call of what was made anew costs more than the next, of a function most.
        ops = events(_OP)
        ops = ops[trace.start[ops] >= last[steps.of(trace.start[ops])]]
        stays = covered(union(trace.start[ops], trace.end[ops]), steps.begin, steps.end)
        most_ps = steps.wall_ps - int(stays.sum())
        many = counted(round(times), "variable")
        what = f"a model is loaded or built anew in every step ({many} made"
    elif opened.size and steps.per_step(trace.start[opened]) >= 1:
        if calls.size > _MOST_CALLS * steps.begin.size:
            return
        times, op = steps.per_step(trace.start[opened]), "MakeIterator"
        own = events(_DATASET)
        spans = union(trace.start[own], trace.end[own])
        least_ps = int(covered(spans, steps.begin, steps.end).sum())
        inside = union(trace.start[calls], trace.end[calls])
        most_ps = steps.wall_ps - int(covered(inside, steps.begin, steps.end).sum())
        called = {_CALLS.match(names[code]) for code in np.unique(trace.name.codes[calls]).tolist()}
        own_functions = sorted(one["name"] for one in called if one)
        is_keras = any(map(_KERAS.search, own_functions))
        op = next(filter(_KERAS.search, own_functions), op)
        advice = PREDICT if is_keras else ITERATE
        by = ", as model.predict does" if is_keras else ""
        many = counted(round(times), "iterator")
        what = f"a pipeline of tf.data is made anew in every step{by} ({many} opened"
    else:
        return
    least, most = least_ps / steps.wall_ps, most_ps / steps.wall_ps
    if most < KIND.least:
        return
    frame = function_of_loop(context.profile, own)
    where = "" if frame is None else f", in {frame.title}"
    yield KIND.finding(
        f"{what}{where}): {least:.0%} to {most:.0%} of the step time",
        {
            "steps": int(steps.begin.size),
            "wall_ps": steps.wall_ps,
            "op": op,
            "times_a_step": round(times, 1),
            **of_frame(frame),
            "gain_ps": least_ps,
            "gain_share": least,
            "most_gain_share": most,
        },
        advice,
    )
