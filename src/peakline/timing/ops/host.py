"""Executions of ops on the threads of a host.

An event is the execution of an op when its name is one (`peakline.timing.ops.names`), when
it is a stage of an input pipeline (stat ``_ipl_stage_id``), when it is an instruction of a program
that XLA compiled for the CPU (stat ``hlo_op``), when TensorFlow runs it eagerly
(``EagerLocalExecute: ``), or when it says which op it was for (stat ``tf_op``), unless it is
only about memory or is a call of the driver for a device that the profile shows. Where the file
says which events are ops (`peakline.tables.event_rules.StatedOps`), these are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from peakline.arrays import BoolArray, Int32Array, Int64Array
from peakline.tables import Profile
from peakline.tables.joins import summed
from peakline.tables.once import once
from peakline.timing.ops.names import EAGER, INPUT_PIPELINE, TENSORFLOW, OpName, parse_op_name
from peakline.timing.ops.stat_columns import MEMORY_EVENTS, OpStatColumns, op_stats_of
from peakline.timing.programs.device import Programs, gpu_ops
from peakline.trace.distribution import distinct
from peakline.trace.events import DEVICE, Trace, TraceLine, trace_of
from peakline.trace.nesting import nest_lines, self_times


class OpKey(NamedTuple):
    """An op: the stage's number (0 where it is none), its name and its type."""

    stage: int
    name: str
    op_type: str


@dataclass(frozen=True, eq=False)
class Executions:
    """Executions of ops. ``event`` is the place in the trace, ascending; ``op`` that in ``keys``.

    ``total_ps`` is how long each took, ``own_ps`` that without the executions within it.
    """

    keys: list[OpKey]
    event: npt.NDArray[np.integer[Any]]
    op: Int32Array
    total_ps: Int64Array
    own_ps: Int64Array
    eager: frozenset[int]
    """Ops that were run one by one, eagerly."""
    calls: bool = False
    """Whether an op may run others within itself, so that the innermost does the work."""


class Ops:
    """The distinct ops found so far, each with a number."""

    def __init__(self) -> None:
        self.numbers: dict[OpKey, int] = {}

    def add(self, result: OpName, stage: int = 0) -> int:
        """The number of an op."""
        return self.numbers.setdefault(OpKey(stage, result.name, result.op_type), len(self.numbers))


def host_lines(profile: Profile, trace: Trace) -> dict[int, TraceLine]:
    """The lines of threads that may run ops, by their place in the trace."""
    names = profile.event_rules.planes
    result = {}
    for number, line in enumerate(trace.lines):
        plane = trace.planes[line.plane]
        if names and (plane.name != names.host_threads or line.derived is not None):
            continue
        if plane.kind == "host":
            result[number] = line
    return result


@once
def host_executions(profile: Profile) -> Executions:
    """Every execution of an op by the host, found once for the profile.

    Raises InputError when the profile cannot be read.
    """
    trace, ops, stated = trace_of(profile), Ops(), None
    find = profile.event_rules.ops
    eager = frozenset[int]()
    if trace.source == "op_runs":
        op = op_numbers_of_runs(profile, trace, ops)
    elif trace.size and find is not None and (stated := find(profile)) is not None:
        numbers = [ops.add(OpName(name, op_type, "")) for name, op_type in stated.ops]
        op = np.array([*numbers, -1], np.int32)[stated.op[trace.rows(slice(None))]]
    else:
        op, eager = _ops_of_events(profile, trace, ops)
    lines = host_lines(profile, trace)
    result = [np.zeros(0, np.int32)] * len(trace.lines)
    for number, line in lines.items():
        result[number] = np.flatnonzero(op[line.events] >= 0).astype(np.int32)
        result[number] += np.int32(line.first)
    first = np.cumsum([0, *(part.size for part in result)])
    event = np.concatenate([np.zeros(0, np.int32), *result])
    total, own = np.empty(event.size, np.int64), np.empty(event.size, np.int64)
    nests = np.array([line.nests for line in trace.lines], np.bool_)
    self_times(trace.start, trace.end, event, first, nests, total, own)
    calls = stated is not None and stated.calls
    runs = Executions(list(ops.numbers), event, op[event], total, own, eager, calls)
    return _without_repeats(runs, trace, first) if calls else runs


def _without_repeats(runs: Executions, trace: Trace, first: Int64Array) -> Executions:
    """``runs`` of PyTorch, where an op that calls itself on other arguments, and nothing else, ran
    once: ``aten::div`` by a number is one by a tensor. So counts ``key_averages`` of PyTorch
    (``torch/autograd/profiler_util.py``, ``_remove_dup_nodes``).
    """
    event, count = runs.event, runs.event.size
    parent = np.empty(count, np.int32)
    nest_lines(
        trace.start[event], trace.end[event], first, np.ones(first.size - 1, np.bool_), parent,
        np.empty(0, np.uint16), np.empty(0, np.int64),
    )  # fmt: skip
    inner = np.flatnonzero(parent >= 0)
    children = np.bincount(parent[inner], minlength=count)
    above = parent[inner]
    repeats = inner[(runs.op[above] == runs.op[inner]) & (children[above] == 1)]
    if not repeats.size:
        return runs
    target = np.arange(count)
    target[repeats] = parent[repeats]
    while (target[target] != target).any():
        target = target[target]
    own = summed(target, runs.own_ps, count)
    stays = np.ones(count, np.bool_)
    stays[repeats] = False
    return replace(
        runs, event=event[stays], op=runs.op[stays], total_ps=runs.total_ps[stays],
        own_ps=own[stays],
    )  # fmt: skip


def op_numbers_of_runs(profile: Profile, trace: Trace, ops: Ops) -> Int32Array:
    """The op of every run of StepStats, which says its type."""
    rows = trace.rows(slice(None))
    runs = profile.columns("op_runs", frozenset(("name", "op_type")))
    names, types = runs.names("name").take(rows), runs.names("op_type").take(rows)
    pairs = names.codes.astype(np.int64) * (len(types.values) + 1) + types.codes + 1
    used, place = np.unique(pairs, return_inverse=True)
    numbers = []
    for pair in used.tolist():
        name, kind = divmod(pair, len(types.values) + 1)
        text = names.values[name] if name >= 0 else ""
        known = types.values[kind - 1] if kind else ""
        # A tracer names a kernel by the node and its type.
        text = text.removesuffix(f":{known}") if known else text
        numbers.append(ops.add(OpName(text, known, "")))
    return np.array(numbers, np.int32)[place] if numbers else np.zeros(0, np.int32)


def _ops_of_events(profile: Profile, trace: Trace, ops: Ops) -> tuple[Int32Array, frozenset[int]]:
    """The op of every event by its name or its stats, -1 for none; and which ops were eager."""
    numbers = np.full(len(trace.name.values) + 1, -1, np.int32)
    eager_ops: set[int] = set()
    for code, text in enumerate(trace.name.values):
        result = parse_op_name(text)
        if text.startswith(EAGER) and not text.startswith(f"{EAGER}__"):
            # The CPU says nothing else of an op that is run eagerly. Two underscores begin the
            # name of a function, whose ops have events of their own.
            op_type = text.removeprefix(EAGER)
            numbers[code] = ops.add(OpName(op_type, op_type, TENSORFLOW))
            eager_ops.add(int(numbers[code]))
        elif result.is_op:
            numbers[code] = ops.add(result)
    op = numbers[trace.name.codes]
    stats = op_stats_of(profile)
    memory = np.array([text in MEMORY_EVENTS for text in trace.name.values] + [False])

    named = stats["tf_op"]
    event = trace.places(named.row)
    use = np.flatnonzero(event >= 0)
    use = use[(op[event[use]] < 0) & ~memory[trace.name.codes[event[use]]]]
    use = use[~_calls_of_driver(trace, stats, named.row[use])]
    for code in np.unique(named.text[use]).tolist():
        if code >= 0 and named.texts[code]:
            here = use[named.text[use] == code]
            op[event[here]] = ops.add(parse_op_name(named.texts[code]))

    _name_instructions(profile, trace, ops, op)
    stages, kinds = stats["_ipl_stage_id"], stats["_ipl_stage_cat"]
    event, kind = trace.places(stages.row), kinds.texts_at(stages.row)
    _, has_kind = kinds.at(stages.row)
    use = np.flatnonzero((event >= 0) & has_kind)
    event, kind, stage = event[use], kind[use], stages.integer[use]
    first, which = distinct(stage, kind, trace.name.codes[event])
    made = np.full(first.size, -1, np.int32)
    for number, place in enumerate(first.tolist()):
        category = kinds.texts[int(kind[place])] if kind[place] >= 0 else ""
        result = OpName(trace.name[int(event[place])] or "", category, INPUT_PIPELINE)
        made[number] = ops.add(result, int(stage[place]))
    op[event] = made[which]

    flags = stats["is_eager"]
    event = trace.places(flags.row[flags.integer != 0])
    eager = frozenset(np.unique(op[event[event >= 0]]).tolist()) | eager_ops
    return op, eager - {-1}


def _calls_of_driver(trace: Trace, stats: OpStatColumns, rows: Int64Array) -> BoolArray:
    """Which events are calls for a device whose own events show what it did."""
    if not any(True for _ in trace.lines_on(DEVICE)):
        return np.zeros(rows.size, np.bool_)
    return stats["correlation_id"].at(rows)[1]


def _name_instructions(profile: Profile, trace: Trace, ops: Ops, op: Int32Array) -> None:
    """Instructions of compiled programs that the host runs itself (XLA on a CPU)."""
    stats = op_stats_of(profile)
    row = stats["hlo_op"].row
    event = trace.places(row[~_calls_of_driver(trace, stats, row)])
    event = event[event >= 0]
    event = event[op[event] < 0]
    if not event.size:
        return
    result = gpu_ops(profile, trace.rows(event), trace.name.take(event), Programs(profile))
    numbers = []
    for one in result.ops:
        made = parse_op_name(one.provenance) if one.provenance else OpName(one.name, "", "")
        numbers.append(ops.add(made))
    known = np.array([*numbers, -1], np.int32)
    op[event] = known[result.op]
