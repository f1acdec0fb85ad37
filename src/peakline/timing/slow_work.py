"""What slow steps run that the others do not, by what names say of themselves: functions that a
framework compiled, ops, and stages of input pipelines; no frame has to be recorded.

``EagerLocalExecute: __inference_NAME_12`` is a function of TensorFlow, ``EagerLocalExecute: OP`` an
op that it runs eagerly (tensorflow/core/common_runtime/eager/execute.cc), ``PjitFunction(NAME)`` a
function of JAX (jaxlib/pjit.cc), ``aten::op`` an op of PyTorch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.tables.joins import summed
from peakline.timing.op_names import EAGER
from peakline.trace.events import HOST, Trace, trace_of
from peakline.trace.intervals import covered, union

ALONE = 0.1
"""It runs in slow steps alone when it runs in others at most a tenth as often."""
_HALF = 0.5
"""It says why they are slow when all of it takes half of what they take longer."""
_NAMES = 2
_AT_ONCE = 1 << 20

_FUNCTION = re.compile(
    rf"{EAGER}__(?:inference|forward|backward)_(?P<tf>.+?)_\d+$|PjitFunction\((?P<jax>.+)\)$"
)
_WORK = re.compile(
    rf"{EAGER}(?P<eager>.+)|(?P<op>[A-Za-z0-9.][\w./>-]*):[A-Z_]\w*$|(?P<torch>aten::\w+)$"
    r"|(?P<traced>tf\.function-graph_building)$|(?P<stage>MakeIterator::\w+)$"
)


@dataclass(frozen=True)
class OnlySlow:
    """``names`` of what slow steps run alone, what says most first: functions before ops;
    ``each_ps`` is how long all of it takes of one step, on any thread.
    """

    names: tuple[str, ...]
    each_ps: int
    has_function: bool


def only_slow(
    profile: Profile, begin: AnyArray, end: AnyArray, is_slow: BoolArray, extra_ps: float
) -> OnlySlow | None:
    """What runs in slow steps alone, where it takes half of the ``extra_ps`` of one or more.

    ``begin`` and ``end`` are the windows of all steps, in order of time; they do not overlap.
    """
    trace = trace_of(profile)
    if not trace.size or not is_slow.any() or is_slow.all():
        return None
    label, names, is_function = _labels(trace.name.values)
    if not names:
        return None
    often, usual = np.zeros((2, len(names)))
    parts: list[tuple[AnyArray, AnyArray]] = []
    for first, stop in _portions(trace):
        one = label[trace.name.codes[first:stop]]
        event = np.flatnonzero(one >= 0)
        one = one[event]
        event += first
        step = np.searchsorted(begin, trace.start[event], "right") - 1
        inside = (step >= 0) & (trace.start[event] < end[np.maximum(step, 0)])
        slow = inside & is_slow[step]
        often += np.bincount(one[slow], minlength=len(names))
        usual += np.bincount(one[inside & ~slow], minlength=len(names))
        parts.append((event[slow], one[slow]))
    if not parts:
        return None
    event, one = (np.concatenate(part) for part in zip(*parts, strict=True))
    often /= np.count_nonzero(is_slow)
    usual /= np.count_nonzero(~is_slow)
    mine = ((often > 0) & (usual <= ALONE * often))[one]
    if not mine.any():
        return None
    one, event = one[mine], event[mine]
    starts, ends = trace.start[event], trace.end[event]
    each = covered(union(starts, ends), begin[is_slow], end[is_slow])
    if float(each.mean()) < _HALF * extra_ps:
        return None
    took: Int64Array = summed(one, ends - starts, len(names))
    order = np.lexsort((-took, ~is_function))
    order = order[took[order] > 0]
    chosen = tuple(names[place] for place in order[:_NAMES].tolist())
    return OnlySlow(chosen, int(each.mean()), bool(is_function[order[0]]))


def _portions(trace: Trace) -> Iterator[tuple[int, int]]:
    """The events of the host in turn: the first and the one after the last of each portion.

    All at once, the columns of ten million events would take as much memory as the events.
    """
    for line in trace.lines_on(HOST):
        for first in range(line.first, line.last, _AT_ONCE):
            yield first, min(first + _AT_ONCE, line.last)


def _labels(values: Sequence[str]) -> tuple[Int64Array, list[str], BoolArray]:
    """What each name of an event (the last: none) stands for, -1 for nothing; the names of those,
    and which of them are functions.
    """
    numbers: dict[tuple[bool, str], int] = {}
    label = np.full(len(values) + 1, -1, np.int64)
    for code, name in enumerate(values):
        function = _FUNCTION.match(name)
        work = None if function else _WORK.match(name)
        if found := function or work:
            text = next(part for part in found.groups() if part)
            label[code] = numbers.setdefault((function is not None, text), len(numbers))
    is_function = np.array([key[0] for key in numbers], np.bool_)
    return label, [name for _, name in numbers], is_function
