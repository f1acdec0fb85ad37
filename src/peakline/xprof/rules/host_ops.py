"""The host's ops, also as XProf counts them (``xprof/convert/xplane_to_op_metrics_db.cc``).

That differs from `peakline.timing.host_ops` in that every event with a stat ``tf_op`` counts
as one more execution of that op, also one that only concerns memory; in that executions which
overlap or end together lose those around them; in that an event without a time is taken to be at
its line's begin; and in that no op of TensorFlow is eager.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array
from peakline.kernels.op_matching import match_activities
from peakline.tables import Columns, Profile
from peakline.timing.device_programs import Key
from peakline.timing.host_ops import (
    HOST_THREADS,
    OpKey,
    Ops,
    host_executions,
    host_lines,
    is_derived,
)
from peakline.timing.op_names import INPUT_PIPELINE, TENSORFLOW, OpName, parse_op_name
from peakline.timing.op_stats_columns import op_stats_of
from peakline.trace.events import line_bounds, trace_of
from peakline.xprof.rules.op_metrics import OpMetrics, OpTable, fill_table

_COLUMNS = frozenset(("line_id", "name", "start_ps", "duration_ps", "type_id"))


def host_table(profile: Profile) -> OpTable:
    """The ops of the host, and the time of its threads without one.

    A thread's time runs from its first execution to the end of its last. Raises InputError when
    the profile cannot be read.
    """
    found, trace = host_executions(profile), trace_of(profile)
    table = OpTable()
    described = _described(found.keys, found.eager)
    fill_table(table, described, found.op, found.total_ps, found.own_ps, np.unique(found.op))
    first = np.searchsorted(found.event, trace.first)
    lines = host_lines(profile, trace)
    busy = 0
    for number in lines:
        here = slice(int(first[number]), int(first[number + 1]))
        event = found.event[here]
        if event.size:
            span = int(trace.end[event].max() - trace.start[event[0]])
            busy += max(span, int(found.own_ps[here].sum()))
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
    host = next((n for n, p in enumerate(trace.planes) if p.name == HOST_THREADS), None)
    table = OpTable()
    if host is None:
        return table
    events = profile.columns("events", _COLUMNS)
    line_id = events.array("line_id")
    lines = [line for line in trace.lines if line.plane == host]
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
        if is_derived(line) or here.start == here.stop:
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
        found = parse_op_name(names.values[code])
        if found.is_op:
            numbers[code] = ops.add(found)
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
    found: dict[int, int] = {}
    first = np.flatnonzero(defines)
    distinct, at = np.unique(number[first], return_index=True)
    for key, row in zip(distinct.tolist(), first[at].tolist(), strict=True):
        if is_stage[row]:
            category = kinds.texts[int(kind[row])] if kind[row] >= 0 else ""
            name = events.names("name")[lo + row] or ""
            # Without a category its name decides, as that of any other event.
            made = OpName(name, category, INPUT_PIPELINE) if category else parse_op_name(name)
            found[key] = ops.add(made, key)
        else:
            found[key] = int(op[row])
    known = np.array([found[key] for key in distinct.tolist()] + [-1], np.int32)
    at = np.minimum(np.searchsorted(distinct, number), max(distinct.size - 1, 0))
    same = distinct[at] == number if distinct.size else np.zeros(number.size, np.bool_)
    op[:] = np.where(same, known[at], np.int32(-1))
