"""All tables of one or several runs, for a RunMetadata file and for an events file alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from peakline.arrays import Int64Array
from peakline.formats.common.reader import warn_of_cut, warn_of_damage
from peakline.formats.graph_def.source import GraphSpan, submessages
from peakline.formats.graph_def.tables import GRAPH_TABLES, GraphTables
from peakline.formats.run_metadata import details
from peakline.formats.run_metadata.allocations import read_allocator_events
from peakline.formats.run_metadata.op_runs import read_op_runs, read_op_times, read_steps
from peakline.formats.run_metadata.runs import Part, Run, Runs
from peakline.tables.columns import Columns
from peakline.tables.rank_facts import RankFacts
from peakline.tables.reader import Warnings
from peakline.wire import Buffer, Damage, Spans

_COLLECTOR_LIMIT = 1 << 20
"""kMaxCollectedNodes of ``step_stats_collector.cc``: after so many it stops without a word."""

_TASK = re.compile(r"/job:(\w+)/(?:replica:\d+/)?task:(\d{1,7})\b")
"""How TensorFlow calls a device of a cluster (``DeviceNameUtils``); one process has no task."""

_OF_RUNS = {"steps": read_steps, "traced_runs": details.read_traced_runs}
_OF_OPS = {"op_runs": read_op_runs, "op_times": read_op_times}
_OF_DETAILS = {
    "op_devices": details.read_op_devices,
    "op_outputs": details.read_op_outputs,
    "op_references": details.read_op_references,
    "op_memory": details.read_op_memory,
    "op_allocations": details.read_op_allocations,
    "op_memory_stats": details.read_op_memory_stats,
    "op_persistent": details.read_op_persistent,
    "thread_names": details.read_thread_names,
}
_OF_COSTS = {
    "cost_nodes": details.read_cost_nodes,
    "cost_edges": details.read_cost_edges,
    "cost_outputs": details.read_cost_outputs,
    "cost_totals": details.read_cost_totals,
}


class RunTables:
    """The tables of ``runs``, which lie in ``buffer``, and of ``graphs`` that stand beside them.

    ``form`` is ``run_metadata`` or ``step_stats``: which message each run is.
    """

    __retained__ = "_buffer _beside _runs graphs _graph_tables"

    def __init__(
        self,
        buffer: Buffer,
        runs: Sequence[Run],
        form: str = "run_metadata",
        graphs: Sequence[GraphSpan] = (),
    ) -> None:
        self._buffer, self._beside = buffer, list(graphs)
        self._runs = Runs(buffer, runs, form)
        self._reported: set[str] = set()
        self._reported_places = 0

    @cached_property
    def names(self) -> frozenset[str]:
        """The tables that there is something for."""
        result = set(_OF_RUNS)
        if self._runs.steps().devices.rows:
            result |= {*_OF_OPS, *_OF_DETAILS, "allocator_events"}
        if len(self._runs.parts(Part.COSTS)[1]):
            result |= set(_OF_COSTS)
        if self.graphs:
            result |= GRAPH_TABLES
        return frozenset(result)

    @cached_property
    def graphs(self) -> list[GraphSpan]:
        """Where the graphs lie."""
        graphs = [*self._beside, *find_graphs(self._runs)]
        # One that is the only one of its file needs no name.
        return [replace(graphs[0], name="")] if len(graphs) == 1 else graphs

    @cached_property
    def _graph_tables(self) -> GraphTables:
        return GraphTables(self._buffer, self.graphs)

    @property
    def damage(self) -> Damage:
        """What the readings so far could not read."""
        return sum((damage for damage, _ in self._runs.damage.values()), Damage())

    def _cut(self) -> tuple[bool, int]:
        """Whether the file is cut short, which its outline shows, and by how much."""
        damage, end = self._runs.damage.get(Runs.OUTLINE, (Damage(), -1))
        if not damage or end != self._buffer.size:
            return False, 0
        missing = damage.missing_bytes
        return missing > 0 or damage.first_offset + damage.skipped_bytes == end, missing

    def read(self, table: str, warnings: Warnings, columns: AbstractSet[str] | None) -> Columns:
        """Read one table of `names`; ``columns`` None means all."""
        if table in GRAPH_TABLES:
            result = self._graph_tables.read(table)
            self._warn(warnings)
            return result
        if table == "allocator_events":
            result = self._allocator_events(warnings)
        elif table in _OF_OPS:
            result = _OF_OPS[table](self._runs, columns)
        else:
            result = (_OF_RUNS | _OF_DETAILS | _OF_COSTS)[table](self._runs)
        if table == "op_runs":
            self._warn_of_rows(warnings)
        self._warn(warnings)
        return result

    def rank_facts(self) -> RankFacts:
        """The task whose devices are recorded, where it is one: a master's file has them all.

        Tasks of ``worker`` are ranks. A ``chief`` is no rank by what stands there, nor a ``ps``.
        """
        steps = self._runs.steps()
        names = steps.device_names().values if steps.devices.rows else []
        tasks = {(match[1], int(match[2])) for name in names if (match := _TASK.match(name))}
        if len(tasks) != 1:
            return RankFacts()
        ((job, task),) = tasks
        return RankFacts(rank=task if job == "worker" else None)

    def duration_ps(self) -> int:
        """Until the last execution ended."""
        return max(0, int(read_steps(self._runs).array("end_ps").max(initial=0)))

    def _allocator_events(self, warnings: Warnings) -> Columns:
        result, estimates = read_allocator_events(self._runs)
        if "estimates" not in self._reported:
            self._reported.add("estimates")
            warnings.add(
                "estimated_allocations",
                "executions recorded with how much was allocated, not when: taken as allocated at "
                "the start, and what was not live at the end as freed there",
                estimates.allocations,
            )
            warnings.add(
                "freed_between_runs",
                "buffers in use when a run ended, not seen in a later one: taken as freed "
                "when it ended",
                estimates.deallocations,
            )
        return result

    def _warn_of_rows(self, warnings: Warnings) -> None:
        """Report executions that have no start, and a full collector."""
        if "rows" in self._reported:
            return
        self._reported.add("rows")
        steps = self._runs.steps(
            "dev_stats.node_stats.all_start_micros", "dev_stats.node_stats.all_start_nanos"
        )
        nodes = steps.nodes
        timeless = (nodes.array("all_start_micros") == 0) & (nodes.array("all_start_nanos") == 0)
        warnings.add(
            "no_start_time", "executions without a start time, taken as 0", int(timeless.sum())
        )
        counts = np.bincount(steps.run_of_node, minlength=len(self._runs.runs))
        warnings.add(
            "collector_limit",
            f"a run has exactly {_COLLECTOR_LIMIT} executions, where the runtime stops collecting: "
            "later ones are missing",
            int((counts == _COLLECTOR_LIMIT).sum()),
        )

    def _warn(self, warnings: Warnings) -> None:
        """Report damage, each place once: a deeper look may find more than one before."""
        is_cut, missing = self._cut()
        if is_cut and "truncated" not in self._reported:
            self._reported.add("truncated")
            warn_of_cut(warnings, missing, self._buffer.size)
        parts = dict(self._runs.damage)
        if "_graph_tables" in vars(self):
            ends = [graph.start + graph.length for graph in self.graphs]
            parts["graphs"] = self._graph_tables.damage, max(ends, default=0)
        # A field that reaches beyond its message is met again within the part that it is.
        outline = parts.pop(Runs.OUTLINE, (Damage(), -1))
        inside = [self._places(part, *result, is_cut=is_cut) for part, result in parts.items()]
        places = max(self._places(Runs.OUTLINE, *outline, is_cut=is_cut), sum(inside))
        damage = min(
            (damage for damage, _ in (outline, *parts.values()) if damage),
            key=lambda damage: damage.first_offset,
            default=Damage(),
        )
        warn_of_damage(warnings, damage, places - self._reported_places)
        self._reported_places = max(places, self._reported_places)

    def _places(self, part: str, damage: Damage, end: int, *, is_cut: bool) -> int:
        """The damaged places of a part that ends at ``end``, without the cut of the file."""
        if not is_cut or end != self._buffer.size:
            return damage.places
        # In a device's entry the cut hits an execution, too.
        twice = part == Part.STEPS.name and damage.missing_bytes and damage.skipped_bytes
        return max(damage.places - (2 if twice else 1), 0)


# Where the graphs of a run lie.

_PARTITIONS, _FUNCTIONS = 3, 4
"""RunMetadata.partition_graphs and .function_graphs."""
_KINDS = ("function_partition", "pre_optimization", "post_optimization")
"""The fields 1 to 3 of RunMetadata.FunctionGraphs."""


def find_graphs(runs: Runs) -> list[GraphSpan]:
    """All graphs of all runs, in the order of `RunMetadata`'s fields.

    Names are such as ``partition 0`` and ``function 2 partition 1``; where there are several
    runs, the run's name comes first.
    """
    places: list[_Place] = []
    run, spans = runs.fields(_PARTITIONS)
    for number, owner, *span in _spans(run, spans):
        places.append(_Place(owner, -1, 0, number, "partition", *span))
    run, functions = runs.fields(_FUNCTIONS)
    function = (np.arange(run.size) - np.searchsorted(run, run)).tolist()
    owners = run.tolist()
    for which, kind in enumerate(_KINDS):
        row, spans, _ = submessages(runs.buffer, functions.start, functions.length, which + 1)
        for number, at, *span in _spans(row, spans):
            places.append(_Place(owners[at], function[at], which, number, kind, *span))
    return [_named(runs, place) for place in sorted(places)]


class _Place(NamedTuple):
    """One graph: its run, function (-1: none), kind and number, in the order of the fields."""

    run: int
    function: int
    which: int
    number: int
    kind: str
    start: int
    length: int


def _spans(parent: Int64Array, spans: Spans) -> Iterator[tuple[int, int, int, int]]:
    """Place among those of its parent, parent, start and length of each span."""
    number = np.arange(parent.size) - np.searchsorted(parent, parent)
    columns = (number, parent, spans.start, spans.length)
    yield from zip(*(column.tolist() for column in columns), strict=True)


def _named(runs: Runs, place: _Place) -> GraphSpan:
    parts = [runs.runs[place.run].name] if len(runs.runs) > 1 else []
    parts += [f"function {place.function}"] if place.function >= 0 else []
    parts += [place.kind.replace("_", " ") if place.which else f"partition {place.number}"]
    return GraphSpan(" ".join(parts), place.kind, place.start, place.length)
