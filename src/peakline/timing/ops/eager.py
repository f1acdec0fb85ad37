"""Ops that the host runs one by one, where there is no device: how much of the steps that costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray
from peakline.tables import Profile
from peakline.timing.steps.facts import StepFacts
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.events import HOST, Trace, nesting_of, trace_of
from peakline.trace.intervals import covered, union

ONE_BY_ONE = 20
"""Ops run one by one in a step; a program that is compiled as a whole still runs a few: it draws a
batch, reads the loss."""

OVERHEAD = 0.35
"""... and so much of the step is spent neither in ops nor in waiting, but in getting from one op to
the next."""

_DISPATCH = ("EagerLocalExecute: ", "PjitFunction(")
"""What every op that is run by itself begins with, in TensorFlow and in JAX."""
_WORK = ("KernelAndDeviceFunc::Run", "ExecutorState::Process", "ThunkExecutor::Execute")
"""What computes without having the name of an op."""
_OPS = 10


@dataclass(frozen=True, eq=False)
class EagerOps:
    """``per_step`` ops in each, of whose time ``work_ps`` is in ops and ``lost_ps`` (a ``share``)
    between them. ``ops`` are those that run most often, and how many times a step, ``calls`` their
    places in the trace.
    """

    per_step: float
    work_ps: int
    lost_ps: int
    share: float
    ops: tuple[tuple[str, float], ...]
    calls: AnyArray


def eager_ops_of(profile: Profile, facts: StepFacts) -> EagerOps | None:
    """The ops run one by one, where most of a step goes to getting from one to the next.

    None with a device. Raises InputError when the profile cannot be read.
    """
    if facts.has_device or not facts.wall_ps:
        return None
    trace = trace_of(profile)
    starts, ends = facts.part("start_ps"), facts.part("end_ps")
    calls = _host_events(trace, named=_DISPATCH)
    if calls.size < ONE_BY_ONE * facts.count:
        return None  # before nesting, which takes a look at every event
    calls = _outermost(profile, calls)
    calls = calls[in_windows(trace.start[calls], starts, ends)]
    each = calls.size / facts.count
    if each < ONE_BY_ONE:
        return None
    done = activity_of(profile)
    runs_ops = on_host(trace, lambda events: done[events] == Activity.HOST_OP)
    works = np.concatenate([_host_events(trace, named=_WORK), runs_ops])
    busy = int(covered(union(trace.start[works], trace.end[works]), starts, ends).sum())
    lost = max(facts.wall_ps - busy - facts.total("input_wait_ps", "compile_ps"), 0)
    share = lost / facts.wall_ps
    if share < OVERHEAD:
        return None
    codes, counts = np.unique(trace.name.codes[calls], return_counts=True)
    most = np.argsort(-counts, kind="stable")[:_OPS].tolist()
    ops = tuple(
        (called(trace.name.values[int(codes[place])]), int(counts[place]) / facts.count)
        for place in most
    )
    return EagerOps(each, busy, lost, share, ops, calls)


def called(name: str) -> str:
    """``EagerLocalExecute: MatMul`` and ``PjitFunction(multiply)``, without the runtime's words."""
    for words in _DISPATCH:
        name = name.removeprefix(words)
    return name.removesuffix(")")


def _host_events(trace: Trace, *, named: tuple[str, ...]) -> AnyArray:
    """Events of the hosts' threads whose name begins with one of ``named``."""
    wanted = np.array([*(name.startswith(named) for name in trace.name.values), False])
    if not wanted.any():
        return np.zeros(0, np.int64)
    return on_host(trace, lambda events: wanted[trace.name.codes[events]])


def on_host(trace: Trace, test: Callable[[slice], AnyArray]) -> AnyArray:
    """Events of the hosts' threads for which ``test`` holds, given those of a line."""
    result = [line.first + np.flatnonzero(test(line.events)) for line in trace.lines_on(HOST)]
    return np.concatenate(result) if result else np.zeros(0, np.int64)


def _outermost(profile: Profile, events: AnyArray) -> AnyArray:
    """Of ``events`` those that lie in none of the others."""
    is_one = np.zeros(trace_of(profile).size, np.bool_)
    is_one[events] = True
    outermost: AnyArray = events[nesting_of(profile).around(events, is_one) < 0]
    return outermost


def in_windows(times: AnyArray, begin: AnyArray, end: AnyArray) -> AnyArray:
    """Whether each time lies in one of the windows, which are sorted and do not overlap."""
    at = np.searchsorted(begin, times, side="right") - 1
    return (at >= 0) & (times < end[np.maximum(at, 0)])
