"""The ops of a TensorCore as XProf counts them (``convert/xplane_to_op_metrics_db.cc`` and
``utils/op_metrics_db_utils.cc`` in openxla/xprof).
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.tables import Profile
from peakline.timing.event_numbers import event_numbers_of
from peakline.timing.ops.device import device_executions
from peakline.timing.ops.metrics import OpFacts, OpMetrics, OpTable, fill_table
from peakline.timing.ops.sparse_core import sparse_core_tables
from peakline.timing.ops.stat_columns import op_stats_of
from peakline.timing.ops.tpu import op_of_kind, over_order, symbol_of, type_stats_of, types_of
from peakline.timing.programs.device import Key
from peakline.trace.events import Trace, TraceLine

STEP_LINES = ("Steps", "Sparse Core Steps")
_TENSOR_CORE = re.compile("/device:TPU:[0-9]+")
_CORE = "TensorCore"


def tpu_table(profile: Profile, trace: Trace, plane: int) -> OpTable:
    """The ops of the plane at ``plane``, and the time without one."""
    result = device_executions(profile)
    here = np.flatnonzero(result.plane == plane)
    start, end, event = result.start[here], result.end[here], result.event[here]
    length = end - start
    own = length.copy()
    first = int(here[0]) if here.size else 0
    children = np.flatnonzero(result.parent[here] >= 0)
    np.subtract.at(own, result.parent[here][children] - first, length[children])
    kinds = types_of(profile, trace.rows(event))
    kind = _first_of_symbol(profile, kinds, end)
    # Those that name no instruction keep only their time.
    use = np.flatnonzero(kind >= 0)
    table = OpTable()
    over = over_order(end) if sparse_core_tables(profile) else np.arange(end.size)
    _fill(profile, table, trace.rows(event[use]), kind[use], length[use], own[use], over[use])
    times = [start, end]
    for line in trace.lines_in(plane):
        if line.last > line.first:
            if line.name in STEP_LINES:
                times += _step_times(profile, trace, line)
            if _TENSOR_CORE.fullmatch(trace.planes[plane].name):
                named = _named_events(profile, trace, line)
                times += [trace.start[named], trace.end[named]]
    every = np.concatenate(times)
    # Without any event it takes 0 less the largest number there is.
    table.close(int(every.max() - every.min()) if every.size else 1)
    return table


def _fill(
    profile: Profile,
    table: OpTable,
    rows: AnyArray,
    kind: AnyArray,
    length: Int64Array,
    own: Int64Array,
    over: Int64Array,
) -> None:
    """Count executions (rows of ``events``) by their kinds."""
    numbers = event_numbers_of(profile)
    distinct, op = np.unique(kind, return_inverse=True)
    ops = [op_of_kind(profile, number, _CORE) for number in distinct.tolist()]
    _offloaded(profile, ops, op, rows, over)
    factor, has = numbers.first("Time Scale Multiplier", rows)[1:]
    normalized = (length * np.where(has, factor, 1.0)).astype(np.int64)
    more: dict[str, AnyArray] = {
        "normalized_ps": normalized if has.any() else length,
        "stall_ps": numbers.last("dma_stall_duration_ps", rows)[0],
        "energy_j": numbers.real("vdd_energy_j", rows),
    }
    before = set(table.ops)
    fill_table(table, ops, op, length, own, **more)
    for key, one in table.ops.items():
        if key not in before and one.total_ps:
            share = one.self_ps * (one.normalized_ps / one.total_ps)
            table.normalized_ps = int(float(table.normalized_ps) + share)


def _offloaded(
    profile: Profile,
    ops: list[tuple[Key, OpMetrics]],
    op: AnyArray,
    rows: AnyArray,
    over: Int64Array,
) -> None:
    """Put what SparseCores did for that run of an op with it that was over first."""
    tables = sparse_core_tables(profile)
    if not tables:
        return
    numbers = event_numbers_of(profile)
    order = np.argsort(over, kind="stable")
    used, first = np.unique(op[order], return_index=True)
    first = order[first]
    core, _, has_core = numbers.first("offload_core_id", rows[first])
    begin, _, has_begin = numbers.first("tc_offload_start_id", rows[first])
    for place in np.flatnonzero(has_core & has_begin).tolist():
        part = tables.get((int(core[place]), int(begin[place])))
        if part is not None:
            key, one = ops[int(used[place])]
            facts: OpFacts = replace(
                one.facts, children=(*(one.facts.children or ()), *part.ops.values()),
                children_ps=part.total_ps,
            )  # fmt: skip
            ops[int(used[place])] = key, replace(one, facts=facts)


def _named_events(profile: Profile, trace: Trace, line: TraceLine) -> Int64Array:
    """The events that name the framework's op: a line made of them, by the host's clock, counts."""
    events = np.arange(line.first, line.last, dtype=np.int64)
    rows = trace.rows(events)
    said = type_stats_of(profile)
    kinds = types_of(profile, rows)
    naming = [kind for kind in np.unique(kinds).tolist() if said.get(kind, {}).get("tf_op")]
    has_op = op_stats_of(profile, whole=True)["tf_op"].texts_at(rows) >= 0
    return events[np.isin(kinds, naming) | has_op]


def _first_of_symbol(profile: Profile, kinds: AnyArray, end: Int64Array) -> Int64Array:
    """Ops of one program with one number are one: of the kind of the first to be over.

    -1 for events that name no instruction.
    """
    said = type_stats_of(profile)
    symbols: dict[tuple[int, int], list[int]] = {}
    known, op = np.zeros(kinds.size, np.bool_), kinds
    for kind in np.unique(kinds).tolist():
        symbol = symbol_of(said.get(kind, {}))
        if symbol is not None:
            symbols.setdefault(symbol, []).append(kind)
    for own_kinds in symbols.values():
        of_symbol = np.isin(kinds, own_kinds)
        known |= of_symbol
        if len(own_kinds) > 1:
            here = np.flatnonzero(of_symbol)
            # An op is over when one follows that does not lie in it; those in it are before.
            inside = int(np.searchsorted(here, _over(end, int(here[0]))))
            over = np.array([_over(end, place) for place in here[:inside].tolist()])
            first = here[np.lexsort((-here[: over.size], over))[0]]
            op = np.where(of_symbol, op[first], op)
    return np.where(known, op, -1).astype(np.int64)


def _over(end: AnyArray, place: int) -> int:
    """Where the first op stands that is not over before the one at ``place``."""
    later = end[place + 1 :] > end[place]
    return place + 1 + int(later.argmax()) if later.any() else end.size


def _step_times(profile: Profile, trace: Trace, line: TraceLine) -> list[Int64Array]:
    """Begins and ends of the steps of a line: neighbours of one group are one, the others go."""
    start, end = trace.start[line.events], trace.end[line.events]
    events = profile.columns("events", frozenset(("step_id",)))
    rows = trace.rows(line.events)
    grouped = events.is_valid("step_id")[rows]
    if not grouped.any():
        return [start, end]
    group = np.where(grouped, events.array("step_id")[rows], -1)
    opens = np.concatenate([[True], (group[1:] != group[:-1]) | (grouped[1:] != grouped[:-1])])
    closes = np.append(opens[1:], True)
    return [start[opens & grouped], end[closes & grouped]]
