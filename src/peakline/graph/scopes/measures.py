"""What nodes cost: time, runs, and memory at the peak."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import Int64Array
from peakline.graph.critical_path import step_runs
from peakline.graph.scopes.tree import Tree
from peakline.hlo.memory import memory_of
from peakline.hlo.op_times import op_times
from peakline.memory.over_time.live import memory_records
from peakline.tables.columns import Columns, Names

if TYPE_CHECKING:
    from peakline.graph.scopes.model import ScopedGraph
    from peakline.tables import Profile

_KERNELS = ("stream", "stream_all", "memcpy")


@dataclass(frozen=True, eq=False)
class Measures:
    """Per node: ``time_ps`` without what others inside it take, how often it ran, and bytes of its
    buffers that are live at the peak. ``has_time`` and ``has_memory`` say whether the profile has
    any of it, ``step`` of which step the times are (None: of all that was recorded).
    """

    tree: Tree
    time_ps: Int64Array
    runs: Int64Array
    peak_bytes: Int64Array
    has_time: bool
    has_memory: bool
    step: str | None

    @cached_property
    def totals(self) -> dict[str, Int64Array]:
        """The same summed over all that each item of the tree holds."""
        columns = {"time_ps": self.time_ps, "runs": self.runs, "peak_bytes": self.peak_bytes}
        columns["nodes"] = np.ones(self.tree.nodes, np.int64)
        return {name: self.tree.totals(values) for name, values in columns.items()}


def measures_of(graph: ScopedGraph) -> Measures:
    """What the nodes of a graph cost. Raises InputError when the profile cannot be read."""
    if graph.program is not None:
        return _of_program(graph, graph.program)
    nothing = np.zeros(graph.nodes, np.int64)
    step = None if graph.function is not None else step_runs(graph.profile)
    if step is None:
        spent, runs = nothing, nothing
    else:
        spent, runs = _of_runs(graph, step.runs)
    peak = nothing if graph.function is not None else _of_buffers(graph)
    name = None if step is None else step.name or str(step.step_id)
    return Measures(
        graph.tree, spent, runs, peak, bool(runs.any() or spent.any()), bool(peak.any()), name
    )


def _of_program(graph: ScopedGraph, number: int) -> Measures:
    times = op_times(graph.profile).get(number, {})
    spent, runs, peak = np.zeros((3, graph.nodes), np.int64)
    if times:
        rows = _rows_by_name(graph.names, list(times))
        found = list(times.values())
        here = rows >= 0
        spent[rows[here]] = np.array([one.self_ps for one in found], np.int64)[here]
        runs[rows[here]] = np.array([one.runs for one in found], np.int64)[here]
    memory = memory_of(graph.profile, number)
    if memory.is_known:
        live = memory.live_set
        made = live.instruction >= 0
        np.add.at(peak, live.instruction[made], live.bytes[made])
    return Measures(graph.tree, spent, runs, peak, bool(times), bool(peak.any()), None)


def _rows_by_name(names: Names, wanted: list[str]) -> Int64Array:
    """The first row of each name, -1 for none."""
    known = {name: code for code, name in enumerate(names.values)}
    first = np.full(len(names.values) + 1, -1, np.int64)
    first[names.codes[::-1]] = np.arange(len(names))[::-1]
    first[-1] = -1
    return first[np.array([known.get(name, -1) for name in wanted], np.int64)]


def _of_runs(graph: ScopedGraph, runs: Columns) -> tuple[Int64Array, Int64Array]:
    """Time of computation and of kernels, and executions, of a step's executions.

    A node that requests a device on which something ran is known by both, others by their names.
    """
    kind = runs.names("kind")
    executor = runs.take(kind.codes == kind.code_of("executor"))
    spent, count = np.zeros((2, graph.nodes), np.int64)
    names, devices = executor.names("name"), executor.names("device")
    by_name = _first_rows(graph.own_names, names)
    row = by_name[names.codes]
    ran = {devices.values[code] for code in np.unique(devices.codes).tolist() if code >= 0}
    wanted = graph.devices
    is_bound = wanted.per_row(ran.__contains__, np.bool_)
    own = np.append(np.array([_code(wanted, text) for text in devices.values], np.int64), -3)[
        devices.codes
    ]
    fits = (row >= 0) & (~is_bound[row] | (wanted.codes[row] == own))
    known = executor.is_valid("compute_ps")
    compute = np.where(known, executor.array("compute_ps"), 0)
    np.add.at(spent, row[fits], compute[fits])
    np.add.at(count, row[fits], 1)
    kernels = runs.take(np.isin(kind.codes, [kind.code_of(one) for one in _KERNELS]))
    # A kernel's row is named node:op.
    texts = kernels.names("name")
    bare = Names(texts.codes, [text.partition(":")[0] for text in texts.values])
    row = _first_rows(graph.own_names, bare)[bare.codes]
    np.add.at(spent, row[row >= 0], kernels.array("duration_ps")[row >= 0])
    return spent, count


def rows_by_name(names: Names, wanted: Names) -> Int64Array:
    """Per row of ``wanted`` the first row of ``names`` with its text, -1 for none."""
    found: Int64Array = _first_rows(names, wanted)[wanted.codes]
    return found


def _first_rows(names: Names, wanted: Names) -> Int64Array:
    """For every code of ``wanted`` (and for -1) the first row of ``names`` with its text."""
    return np.append(_rows_by_name(names, list(wanted.values)), -1)


def _code(names: Names, text: str) -> int:
    code = names.code_of(text)
    return -2 if code < 0 else code


def _of_buffers(graph: ScopedGraph) -> Int64Array:
    """Bytes live at the peak of the allocator with the largest one, by the op that made them."""
    peak = np.zeros(graph.nodes, np.int64)
    records, chosen = memory_records(graph.profile), _largest(graph.profile)
    moment = None if records is None or chosen is None else records.at_peak(chosen)
    if records is None or moment is None:
        return peak
    ops = records.events.names("op").take(moment.buffers)
    # Names of outputs have their number behind a colon.
    bare = Names(ops.codes, [text.partition(":")[0] for text in ops.values])
    row = _first_rows(graph.own_names, bare)[bare.codes]
    np.add.at(peak, row[row >= 0], moment.buffer_bytes[row >= 0])
    return peak


def _largest(profile: Profile) -> int | None:
    """The number of the allocator with the largest peak."""
    records = memory_records(profile)
    if records is None:
        return None
    known = [n for n, usage in enumerate(records.usages) if usage.peak_row >= 0]
    return max(known, key=lambda n: (records.usages[n].peak, -n), default=None)
