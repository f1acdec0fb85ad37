"""The host's ops, also as XProf counts them (``xprof/convert/xplane_to_op_metrics_db.cc``).

And what share of the input time those have that bring data (``GenerateHostResult`` of
``convert/op_stats_to_input_pipeline_analysis.cc`` in openxla/xprof).

XProf's count differs from `peakline.timing.ops.host` in that every event with a stat ``tf_op``
counts as one more execution of that op, also one that only concerns memory; in that executions
which overlap or end together lose those around them; in that an event without a time is taken to
be at its line's begin; and in that no op of TensorFlow is eager.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array
from peakline.kernels.op_matching import match_activities
from peakline.tables import Columns, Profile
from peakline.tables.event_rules import PlaneNames
from peakline.timing.input_pipeline import (
    ADVANCED,
    DEMANDED,
    ENQUEUE,
    PREPROCESSING,
    UNKNOWN,
    input_category,
    is_enqueue,
)
from peakline.timing.ops.host import OpKey, Ops, host_executions, host_lines
from peakline.timing.ops.metrics import OpMetrics, OpTable, combine_tables, fill_table
from peakline.timing.ops.names import INPUT_PIPELINE, TENSORFLOW, OpName, parse_op_name
from peakline.timing.ops.stat_columns import op_stats_of
from peakline.timing.programs.device import Key
from peakline.trace.events import line_bounds, trace_of

_COLUMNS = frozenset(("line_id", "name", "start_ps", "duration_ps", "type_id"))


def host_table(profile: Profile) -> OpTable:
    """The ops of the host, and the time of its threads without one.

    A thread's time runs from its first execution to the end of its last. Raises InputError when
    the profile cannot be read.
    """
    result, trace = host_executions(profile), trace_of(profile)
    table = OpTable()
    described = _described(result.keys, result.eager)
    fill_table(table, described, result.op, result.total_ps, result.own_ps, np.unique(result.op))
    first = np.searchsorted(result.event, trace.first)
    lines = host_lines(profile, trace)
    busy = 0
    for number in lines:
        here = slice(int(first[number]), int(first[number + 1]))
        event = result.event[here]
        if event.size:
            span = int(trace.end[event].max() - trace.start[event[0]])
            busy += max(span, int(result.own_ps[here].sum()))
    if lines:
        table.close(busy)
    return table


def _described(keys: list[OpKey], eager: Container[int]) -> list[tuple[Key, OpMetrics]]:
    return [
        ((key.stage, key.name), OpMetrics(key.name, key.op_type, "", number in eager))
        for number, key in enumerate(keys)
    ]


def xprof_host_table(profile: Profile) -> OpTable:
    """The ops of an XSpace's host with XProf's numbers.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    host = next(
        (n for n, p in enumerate(trace.planes) if p.name == PlaneNames().host_threads), None
    )
    table = OpTable()
    if host is None:
        return table
    events = profile.columns("events", _COLUMNS)
    line_id = events.array("line_id")
    lines = trace.lines_in(host)
    if not lines:
        return table
    lo, hi = line_bounds(line_id, (lines[0].line_id, lines[-1].line_id + 1))
    ops = Ops()
    row, op, is_eager = _activities(profile, events, lo, hi, ops)
    begin = events.array("start_ps")[row]
    with np.errstate(over="ignore"):
        begin = (begin - begin.min(initial=0)).view(np.uint64)
        end = begin + events.array("duration_ps")[row].view(np.uint64)
    counted, own = np.zeros(row.size, np.bool_), np.zeros(row.size, np.uint64)
    ended = np.zeros(row.size, np.int64)
    total = 0
    line_of = line_id[row]
    for line in lines:
        here = slice(*line_bounds(line_of, (line.line_id, line.line_id + 1)))
        if line.derived is not None or here.start == here.stop:
            continue
        b, e = begin[here], end[here]
        by_end = np.argsort(e, kind="stable")
        match_activities(
            b, e, np.argsort(b, kind="stable"), by_end, counted[here], own[here],
            np.empty(b.size, np.int64), np.empty(b.size, np.uint64),
        )  # fmt: skip
        ended[here][by_end] = np.arange(here.start, here.stop)
        span = int(max(b.max(), e.max())) - int(min(b.min(), e.min()))
        total += max(span, int(own[here][counted[here]].sum(dtype=np.uint64)))
    keep = np.flatnonzero(counted)
    # In the order in which they ended, which decides what an op of two types is called.
    keep = keep[np.argsort(ended[keep], kind="stable")]
    ran = op[keep]
    described = _described(list(ops.numbers), set(ran[is_eager[keep]].tolist()))
    length = (end - begin)[keep].view(np.int64)
    fill_table(table, described, ran, length, own[keep].view(np.int64))
    table.close(total)
    return table


def _activities(
    profile: Profile, events: Columns, lo: int, hi: int, ops: Ops
) -> tuple[Int64Array, Int32Array, BoolArray]:
    """What counts as an execution, in file order: the event's row, the op, whether it was eager."""
    names = events.names("name")
    codes, stats = names.codes[lo:hi], op_stats_of(profile, whole=True)
    numbers = np.full(len(names.values) + 1, -1, np.int32)
    for code in np.unique(codes).tolist():
        result = parse_op_name(names.values[code])
        if result.is_op:
            numbers[code] = ops.add(result)
    op = numbers[codes]
    stages = stats["_ipl_stage_id"]
    if ((stages.row >= lo) & (stages.row < hi)).any():
        _stage_ops(profile, events, lo, hi, ops, op)
    own_rows = np.flatnonzero(op >= 0) + lo
    named = stats["tf_op"]
    use = np.flatnonzero((named.row >= lo) & (named.row < hi))
    use = use[named.texts_at(named.row[use]) >= 0]
    texts = np.full(len(named.texts), -1, np.int32)
    for code in np.unique(named.text[use]).tolist():
        texts[code] = ops.add(parse_op_name(named.texts[code]))
    rows = np.concatenate([own_rows, named.row[use]])
    # Grouping marks the events of TensorFlow's ops anew, and finds none to be eager.
    is_tf = [parse_op_name(text).category == TENSORFLOW for text in names.values]
    eager = stats["is_eager"].integers_at(own_rows) != 0
    eager &= ~np.array([*is_tf, False])[names.codes[own_rows]]
    eager = np.concatenate([eager, np.zeros(use.size, np.bool_)])
    order = np.argsort(rows, kind="stable")
    all_ops = np.concatenate([op[own_rows - lo], texts[named.text[use]]])
    return rows[order], all_ops[order], eager[order]


def _stage_ops(
    profile: Profile, events: Columns, lo: int, hi: int, ops: Ops, op: Int32Array
) -> None:
    """Ops by number where there are stages of input pipelines: XProf keeps both in one table.

    The number is the stage's, or that of the event's metadata; the first event with it decides.
    """
    stats = op_stats_of(profile, whole=True)
    stages, kinds = stats["_ipl_stage_id"], stats["_ipl_stage_cat"]
    rows = np.arange(lo, hi)
    place, is_stage = stages.at(rows)
    kind = kinds.texts_at(rows)
    _, has_kind = kinds.at(rows)
    native = profile.columns("event_types").array("native_id")
    number = np.where(is_stage, stages.integer[place], native[events.array("type_id")[lo:hi]])
    named = np.array([bool(text) for text in events.names("name").values])
    defines = np.where(is_stage, has_kind, op >= 0) & named[events.names("name").codes[lo:hi]]
    result: dict[int, int] = {}
    first = np.flatnonzero(defines)
    distinct, at = np.unique(number[first], return_index=True)
    for key, row in zip(distinct.tolist(), first[at].tolist(), strict=True):
        if is_stage[row]:
            category = kinds.texts[int(kind[row])] if kind[row] >= 0 else ""
            name = events.names("name")[lo + row] or ""
            # Without a category its name decides, as that of any other event.
            made = OpName(name, category, INPUT_PIPELINE) if category else parse_op_name(name)
            result[key] = ops.add(made, key)
        else:
            result[key] = int(op[row])
    known = np.array([result[key] for key in distinct.tolist()] + [-1], np.int32)
    at = np.minimum(np.searchsorted(distinct, number), max(distinct.size - 1, 0))
    same = distinct[at] == number if distinct.size else np.zeros(number.size, np.bool_)
    op[:] = np.where(same, known[at], np.int32(-1))


_PS_PER_US = 1e6


@dataclass(frozen=True)
class HostInput:
    """What one host contributes: all its ops, and of each enqueue to an infeed but a thread's
    last its own time and the time until the next, in ps.
    """

    ops: OpTable
    enqueue_ps: int = 0
    between_ps: int = 0


def combine_inputs(parts: Iterable[HostInput]) -> HostInput:
    """What several hosts contribute, as one."""
    result = list(parts)
    return HostInput(
        combine_tables(part.ops for part in result),
        sum(part.enqueue_ps for part in result),
        sum(part.between_ps for part in result),
    )


@dataclass(frozen=True)
class InputOp:
    """An op that brings data, and what it is for."""

    name: str
    count: int
    total_ps: int
    self_ps: int
    category: str


@dataclass(frozen=True)
class InputOps:
    """The ops by self time, the longest first, and the input time in microseconds by purpose.

    The reads and the preprocessing are scaled to what of a step is left beside the transfer to the
    device; what none of them explains is ``unclassified_us``.
    """

    ops: tuple[InputOp, ...] = ()
    total_self_ps: int = 0
    enqueue_us: float = 0.0
    demanded_us: float = 0.0
    advanced_us: float = 0.0
    preprocessing_us: float = 0.0
    unclassified_us: float = 0.0

    @property
    def uses_tf_data(self) -> bool:
        """Whether stages of a pipeline were seen."""
        return self.demanded_us > 0 or self.advanced_us > 0 or self.preprocessing_us > 0


def host_input(profile: Profile, *, compatible: bool) -> HostInput:
    """The ops of one host; with ``compatible`` counted as XProf counts them."""
    as_xprof = compatible and profile.event_rules.planes is not None
    ops = xprof_host_table(profile) if as_xprof else host_table(profile)
    return HostInput(ops, *_enqueues(profile))


def _enqueues(profile: Profile) -> tuple[int, int]:
    trace = trace_of(profile)
    codes = [
        code
        for code, name in enumerate(trace.name.values)
        if "InfeedEnqueue" in name and is_enqueue(parse_op_name(name).op_type)
    ]
    staged = np.zeros(0, np.int64)
    if codes and trace.source == "events" and "event_stats" in profile.tables:
        # A stage of an input pipeline is that first, whatever it is called.
        stats = profile.typed_stats(frozenset(("_ipl_stage_id",)))
        staged = trace.places(stats.array("event_id"))
    spent = between = 0
    for line in host_lines(profile, trace).values() if codes else ():
        events = line.first + np.flatnonzero(np.isin(trace.name.codes[line.events], codes))
        events = events[~np.isin(events, staged)]
        events = events[np.argsort(trace.end[events], kind="stable")]
        begin, end = trace.start[events], trace.end[events]
        spent += int((end - begin)[:-1].sum())
        between += int(np.diff(begin).sum())
    return spent, between % 2**64


def input_ops(host: HostInput, *, step_ms: float, host_to_device_ms: float) -> InputOps:
    """The ops that bring data, of one host or several together.

    ``step_ms`` and ``host_to_device_ms`` are averages over the steps, 0 where they are not known.
    """
    result = []
    for one in host.ops.ops.values():
        category = input_category(one.name, one.op_type)
        if category is not None:
            result.append(InputOp(one.name, one.occurrences, one.total_ps, one.self_ps, category))
    if not result:
        return InputOps()
    result.sort(key=lambda op: (-op.self_ps, op.name))
    spent = dict.fromkeys((ENQUEUE, DEMANDED, ADVANCED, PREPROCESSING, UNKNOWN), 0.0)
    for op in result:
        spent[op.category] += op.self_ps / _PS_PER_US
    share = min(1.0, _transfer_share(host, step_ms, host_to_device_ms))
    classified = spent[DEMANDED] + spent[ADVANCED] + spent[PREPROCESSING]
    rest = spent[ENQUEUE] * (1.0 - share) / share if share else classified
    demanded, advanced, preprocessing = (
        _divided(rest * spent[name], classified) for name in (DEMANDED, ADVANCED, PREPROCESSING)
    )
    return InputOps(
        tuple(result),
        sum(op.self_ps for op in result) % 2**64,
        spent[ENQUEUE],
        demanded,
        advanced,
        preprocessing,
        max(0.0, rest - demanded - advanced - preprocessing),
    )


def _transfer_share(host: HostInput, step_ms: float, host_to_device_ms: float) -> float:
    """How much of a step's time goes to sending data to the device."""
    if host.between_ps > 0:
        return host.enqueue_ps / host.between_ps
    return _divided(host_to_device_ms, step_ms) if step_ms > 0 else 0.0


def _divided(dividend: float, divisor: float) -> float:
    return 0.0 if abs(divisor) < 1e-10 else dividend / divisor
