"""All tables of one or several runs, for a RunMetadata file and for an events file alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

import numpy as np

from peakline.formats.graph_def.source import GraphSpan
from peakline.formats.graph_def.tables import GRAPH_TABLES, GraphTables
from peakline.formats.run_metadata import cost, details
from peakline.formats.run_metadata.graphs import find_graphs, only_graph_unnamed
from peakline.formats.run_metadata.op_runs import read_op_runs, read_op_times, read_steps
from peakline.formats.run_metadata.runs import Part, Run, Runs
from peakline.tables.columns import Columns
from peakline.tables.reader import Warnings
from peakline.wire import Buffer, Damage

_COLLECTOR_LIMIT = 1 << 20
"""kMaxCollectedNodes of ``step_stats_collector.cc``: after so many it stops without a word."""


class RunTables:
    """The tables of ``runs``, which lie in ``buffer``, and of ``graphs`` that stand beside them.

    ``form`` is ``run_metadata`` or ``step_stats``: which message each run is.
    """

    __retained__ = "_buffer _beside _runs _read graphs _graph_tables"

    def __init__(
        self,
        buffer: Buffer,
        runs: Sequence[Run],
        form: str = "run_metadata",
        graphs: Sequence[GraphSpan] = (),
    ) -> None:
        self._buffer, self._beside = buffer, list(graphs)
        self._runs = Runs(buffer, runs, form)
        self._told: set[str] = set()
        self._told_places = 0
        self._read: dict[str, Callable[[AbstractSet[str] | None], Columns]] = {
            "op_runs": lambda columns: read_op_runs(self._runs, columns),
            "op_devices": lambda _: details.read_op_devices(self._runs),
            "op_times": lambda columns: read_op_times(self._runs, columns),
            "op_outputs": lambda _: details.read_op_outputs(self._runs),
            "op_references": lambda _: details.read_op_references(self._runs),
            "op_memory": lambda _: details.read_op_memory(self._runs),
            "op_allocations": lambda _: details.read_op_allocations(self._runs),
            "op_memory_stats": lambda _: details.read_op_memory_stats(self._runs),
            "op_persistent": lambda _: details.read_op_persistent(self._runs),
            "thread_names": lambda _: details.read_thread_names(self._runs),
        }
        self._read_cost: dict[str, Callable[[], Columns]] = {
            "cost_nodes": lambda: cost.read_cost_nodes(self._runs),
            "cost_edges": lambda: cost.read_cost_edges(self._runs),
            "cost_outputs": lambda: cost.read_cost_outputs(self._runs),
            "cost_totals": lambda: cost.read_cost_totals(self._runs),
        }

    @cached_property
    def names(self) -> frozenset[str]:
        """The tables that there is something for."""
        found = {"steps", "traced_runs"}
        if self._runs.steps().devices.rows:
            found |= {*self._read, "allocator_events"}
        if len(self._runs.parts(Part.COSTS)[1]):
            found |= set(self._read_cost)
        if self.graphs:
            found |= GRAPH_TABLES
        return frozenset(found)

    @cached_property
    def graphs(self) -> list[GraphSpan]:
        """Where the graphs lie."""
        return only_graph_unnamed([*self._beside, *find_graphs(self._runs)])

    @cached_property
    def _graph_tables(self) -> GraphTables:
        return GraphTables(self._buffer, self.graphs)

    @property
    def damage(self) -> Damage:
        """What the readings so far could not read."""
        return sum((damage for damage, _ in self._runs.damage.values()), Damage())

    def _cut(self) -> tuple[bool, int]:
        """Whether the file is cut short, as far as the readings so far tell, and by how much."""
        size = self._buffer.size
        last = [damage for damage, end in self._runs.damage.values() if damage and end == size]
        missing = max((damage.missing_bytes for damage in last), default=0)
        ends = (damage.first_offset + damage.skipped_bytes for damage in last)
        return missing > 0 or size in ends, missing

    def read(self, table: str, warnings: Warnings, columns: AbstractSet[str] | None) -> Columns:
        """Read one table of `names`; ``columns`` None means all."""
        if table in GRAPH_TABLES:
            found = self._graph_tables.read(table)
            self._warn(warnings)
            return found
        if table == "steps":
            found = read_steps(self._runs)
        elif table == "traced_runs":
            found = details.read_traced_runs(self._runs)
        elif table == "allocator_events":
            found = self._allocator_events(warnings)
        elif table in self._read_cost:
            found = self._read_cost[table]()
        else:
            found = self._read[table](columns)
        if table == "op_runs":
            self._warn_of_rows(warnings)
        self._warn(warnings)
        return found

    def duration_ps(self) -> int:
        """Until the last execution ended."""
        return max(0, int(read_steps(self._runs).array("end_ps").max(initial=0)))

    def _allocator_events(self, warnings: Warnings) -> Columns:
        from peakline.formats.run_metadata.allocations import read_allocator_events

        found, estimates = read_allocator_events(self._runs)
        if "estimates" not in self._told:
            self._told.add("estimates")
            warnings.add(
                "estimated_allocations",
                "executions tell only how much they allocated, not when: taken as allocated at "
                "their start, and what was not live at their end as freed there",
                estimates.allocations,
            )
            warnings.add(
                "freed_between_runs",
                "buffers in use when a run ended are not seen in a later one: taken as freed "
                "when it ended",
                estimates.deallocations,
            )
        return found

    def _warn_of_rows(self, warnings: Warnings) -> None:
        """Tell of executions that have no start, and of a full collector."""
        if "rows" in self._told:
            return
        self._told.add("rows")
        steps = self._runs.steps(
            "dev_stats.node_stats.all_start_micros", "dev_stats.node_stats.all_start_nanos"
        )
        nodes = steps.nodes
        timeless = (nodes.array("all_start_micros") == 0) & (nodes.array("all_start_nanos") == 0)
        warnings.add(
            "no_start_time", "executions have no start time: they stand at 0", int(timeless.sum())
        )
        counts = np.bincount(steps.run_of_node, minlength=len(self._runs.runs))
        warnings.add(
            "collector_limit",
            f"a run has exactly {_COLLECTOR_LIMIT} executions, where the runtime stops collecting: "
            "later ones are missing",
            int((counts == _COLLECTOR_LIMIT).sum()),
        )

    def _warn(self, warnings: Warnings) -> None:
        """Tell of damage, each place once: a deeper look may find more than one before."""
        is_cut, missing = self._cut()
        if is_cut and "truncated" not in self._told:
            self._told.add("truncated")
            much = f"{missing} bytes" if missing else "in a field,"
            warnings.add(
                "truncated",
                f"the file ends {much} before its content does "
                f"(cut at offset {self._buffer.size}); answered from what is whole",
            )
        parts = dict(self._runs.damage)
        if "_graph_tables" in vars(self):
            ends = [graph.start + graph.length for graph in self.graphs]
            parts["graphs"] = self._graph_tables.damage, max(ends, default=0)
        # A field that reaches beyond its message is met again within the part that it is.
        outline = parts.pop(Runs.OUTLINE, (Damage(), -1))
        inside = [self._places(part, *found, is_cut=is_cut) for part, found in parts.items()]
        places = max(self._places(Runs.OUTLINE, *outline, is_cut=is_cut), sum(inside))
        damage = min(
            (damage for damage, _ in (outline, *parts.values()) if damage),
            key=lambda damage: damage.first_offset,
            default=Damage(),
        )
        warnings.add(
            "damaged",
            f"first at offset {damage.first_offset}; {damage.skipped_bytes} bytes skipped",
            places - self._told_places,
        )
        self._told_places = max(places, self._told_places)

    def _places(self, part: str, damage: Damage, end: int, *, is_cut: bool) -> int:
        """The damaged places of a part that ends at ``end``, without the cut of the file."""
        if not is_cut or end != self._buffer.size:
            return damage.places
        # In a device's entry the cut hits an execution, too.
        twice = part == Part.STEPS.name and damage.missing_bytes and damage.skipped_bytes
        return max(damage.places - (2 if twice else 1), 0)
