"""Findings about the host: training waits for its input, or for ops that are run one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from peakline.findings.memory_peak import Finding
from peakline.findings.time_device import severity_of
from peakline.timing.step_facts import StepFacts
from peakline.trace.activity import Activity, activity_of
from peakline.trace.events import HOST, Trace, nesting_of, trace_of
from peakline.trace.intervals import covered, union

if TYPE_CHECKING:
    from collections.abc import Callable

    from peakline.tables import Profile

__all__ = ["called", "eager_loop", "input_bound"]

_Array = npt.NDArray[Any]

INPUT, MUCH_INPUT = 0.05, 0.20
"""Shares of the time that training waits for input: XProf's bounds, moderate and high."""

ONE_BY_ONE = 20
"""Ops run one by one in a step; a program that is compiled as a whole still runs a few: it draws a
batch, reads the loss."""

OVERHEAD = 0.50
"""... and so much of the step is spent neither in ops nor in waiting, but in getting from one op to
the next."""

_DISPATCH = ("EagerLocalExecute: ", "PjitFunction(")
"""What every op that is run by itself begins with, in TensorFlow and in JAX."""
_WORK = ("KernelAndDeviceFunc::Run", "ExecutorState::Process", "ThunkExecutor::Execute")
"""What computes without having the name of an op."""
_ROWS = 10


def input_bound(profile: Profile, facts: StepFacts, waits: _Array) -> Finding | None:
    """Training waits for its input: inside of the steps, or (``waits``) between them."""
    inside, between = facts.total("input_wait_ps"), int(waits.sum())
    whole = facts.wall_ps + between
    share = (inside + between) / whole if whole else 0.0
    if share < INPUT:
        return None
    stages = _stages(profile)
    slowest = next((str(stage["stage"]) for stage in stages if stage["is_bottleneck"]), "")
    which = f"; {_short(slowest)} holds the pipeline up" if slowest else ""
    return Finding(
        "input_bound",
        severity_of(share, MUCH_INPUT),
        f"{share:.0%} of the time training waits for input{which}",
        {
            "steps": facts.count,
            "wall_ps": facts.wall_ps // facts.lanes,
            "input_wait_ps": inside // facts.lanes,
            "between_steps_ps": between // facts.lanes,
            "bottleneck": slowest,
            "share": share,
            "gain_ps": (inside + between) // facts.lanes,
            "gain_share": share,
        },
        _advice(slowest),
        tuple(stages[:_ROWS]),
    )


def eager_loop(profile: Profile, facts: StepFacts) -> Finding | None:
    """Without a device: most of a step goes to getting from one op to the next."""
    if facts.has_device or not facts.wall_ps:
        return None
    trace = trace_of(profile)
    starts, ends = facts.part("start_ps"), facts.part("end_ps")
    calls = _host_events(trace, named=_DISPATCH)
    if calls.size < ONE_BY_ONE * facts.count:
        return None  # asked first: nesting takes a look at every event
    calls = _outermost(profile, calls)
    calls = calls[_in_windows(trace.start[calls], starts, ends)]
    each = calls.size / facts.count
    if each < ONE_BY_ONE:
        return None
    works = np.concatenate(
        [_host_events(trace, named=_WORK), _doing(profile, trace, Activity.HOST_OP)]
    )
    busy = int(covered(union(trace.start[works], trace.end[works]), starts, ends).sum())
    lost = max(facts.wall_ps - busy - facts.total("input_wait_ps", "compile_ps"), 0)
    share = lost / facts.wall_ps
    if share < OVERHEAD:
        return None
    codes, counts = np.unique(trace.name.codes[calls], return_counts=True)
    most = np.argsort(-counts, kind="stable")[:_ROWS].tolist()
    return Finding(
        "host_bound",
        "warning",
        f"{each:.0f} ops a step are run one by one: {share:.0%} of the time goes to getting from "
        "one to the next",
        {
            "steps": facts.count,
            "ops_per_step": each,
            "wall_ps": facts.wall_ps,
            "work_ps": busy,
            "share": share,
            "gain_ps": lost,
            "gain_share": share,
        },
        "Compile the whole step as one function (tf.function, jax.jit), so that Python runs once a "
        "step instead of once an op.",
        tuple(
            {
                "op": called(trace.name.values[int(codes[place])]),
                "times_a_step": int(counts[place]) / facts.count,
            }
            for place in most
        ),
    )


def called(name: str) -> str:
    """``EagerLocalExecute: MatMul`` and ``PjitFunction(multiply)``, without the runtime's words."""
    for words in _DISPATCH:
        name = name.removeprefix(words)
    return name.removesuffix(")")


def _host_events(trace: Trace, *, named: tuple[str, ...]) -> _Array:
    """Events of the hosts' threads whose name begins with one of ``named``."""
    wanted = np.array([*(name.startswith(named) for name in trace.name.values), False])
    if not wanted.any():
        return np.zeros(0, np.int64)
    return _on_host(trace, lambda events: wanted[trace.name.codes[events]])


def _doing(profile: Profile, trace: Trace, activity: Activity) -> _Array:
    """Events of the hosts' threads that do this."""
    done = activity_of(profile)
    return _on_host(trace, lambda events: done[events] == activity)


def _on_host(trace: Trace, test: Callable[[slice], _Array]) -> _Array:
    found = [line.first + np.flatnonzero(test(line.events)) for line in trace.lines_on(HOST)]
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _outermost(profile: Profile, events: _Array) -> _Array:
    """Of ``events`` those that lie in none of the others."""
    parent = nesting_of(profile).parent
    above, free = parent[events], np.ones(events.size, np.bool_)
    is_one = np.zeros(parent.size, np.bool_)
    is_one[events] = True
    while (above >= 0).any():
        inside = above >= 0
        free[inside] &= ~is_one[above[inside]]
        above = np.where(inside, parent[above], -1)
    return events[free]


def _in_windows(times: _Array, begin: _Array, end: _Array) -> _Array:
    """Whether each time lies in one of the windows, which are sorted and do not overlap."""
    at = np.searchsorted(begin, times, side="right") - 1
    found: _Array = (at >= 0) & (times < end[np.maximum(at, 0)])
    return found


def _stages(profile: Profile) -> list[dict[str, object]]:
    """The stages of the input pipeline, the slowest first."""
    if not profile.has_rows("input_pipeline"):
        return []
    table = profile.columns("input_pipeline")
    wanted = ("stage", "category", "occurrences", "self_ps", "wait_ps", "is_bottleneck")
    order = np.argsort(-table.array("self_ps"), kind="stable")
    return [{name: row[name] for name in wanted} for row in table.take(order).to_pylist()]


def _advice(stage: str) -> str:
    """What to do about the stage that is slowest."""
    kind = _short(stage).lower()
    if "dataloader" in stage.lower():
        return (
            "Let processes of their own prepare the batches (num_workers, persistent_workers, "
            "prefetch_factor of the DataLoader), into pinned memory."
        )
    if kind.startswith("parallel") or "interleave" in kind:
        how = (
            f"{_short(stage)} runs in parallel already: give it more threads, make what it does "
            "cheaper, or cache its result (Dataset.cache)"
        )
    elif kind.startswith(("map", "filter", "flatmap", "batch")):
        how = (
            f"Run {_short(stage)} in parallel (num_parallel_calls=tf.data.AUTOTUNE, "
            "num_workers of a DataLoader), or cache its result"
        )
    elif kind.startswith(("tfrecord", "textline", "fixedlength", "recordio", "arrayrecord")):
        how = "Read several files at a time (Dataset.interleave with num_parallel_calls)"
    else:
        how = "Prepare batches in parallel (num_parallel_calls, num_workers)"
    return f"{how}; end the pipeline with prefetch, so that the next batch is ready in time."


def _short(stage: str) -> str:
    """What a program calls a stage: ``Map`` of ``Iterator::Root::Prefetch::Map``."""
    if "dataloader" in stage.lower():
        return "the DataLoader"
    return stage.rpartition("::")[2] or stage
