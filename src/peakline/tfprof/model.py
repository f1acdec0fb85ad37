"""The nodes that all views are made of, with their measures in one step or on average."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import Int64Array
from peakline.deadline import checked
from peakline.errors import InputError, NotFoundError
from peakline.tables import Names, Profile
from peakline.tables.joins import summed
from peakline.tfprof.costs import Costs, read_costs
from peakline.tfprof.flops import float_ops
from peakline.tfprof.graph import OpGraph, read_graph
from peakline.tfprof.options import MEASURES, times_matched
from peakline.tfprof.shapes import Shape, Shapes, output_shapes, parse_shape

_FREE_DIMENSIONS, _USUAL_RANK = 1 << 18, 8
_RUN_COUNT, _FLOAT_OPS = MEASURES.index("run_count"), MEASURES.index("float_ops")


@dataclass(frozen=True, eq=False)
class OpNodes:
    """Nodes by number, sorted by name; ``measures`` has a row per node and a column per measure."""

    stats: OpStats
    measures: Int64Array

    @property
    def names(self) -> Sequence[str]:
        """The name of each node."""
        return self.stats.names

    @property
    def ops(self) -> Names:
        """The type of each node."""
        return self.stats.ops

    @property
    def devices(self) -> Names:
        """The device that each node ran on, in lower case; null for none."""
        return self.stats.devices

    def types(self, node: int) -> list[str]:
        """The types a node counts under: its op and its device, sorted."""
        return sorted({text for text in (self.ops[node], self.devices[node]) if text is not None})

    def times_accounted(self, patterns: Sequence[str]) -> Int64Array:
        """Per node, how many of the ``account_type_regexes`` take it."""
        return times_matched([self.ops, self.devices], patterns)

    def input_shapes(self, node: int) -> list[tuple[int, Shape]]:
        """The shape of each input, a scalar as ``(1,)``.

        As in tfprof it is the shape of the *first* output of the node that the input comes from,
        whichever output that is.
        """
        stats = self.stats
        shapes: dict[int, Shape] = {}
        for row in stats.input_rows(node):
            source = int(stats.graph.sources[row])
            known = stats.shapes.get(source) if source >= 0 else None
            shape = known[0] if known else None
            shapes[int(stats.graph.places[row])] = (1,) if shape == () else shape
        return sorted(shapes.items())

    def shape(self, node: int) -> Shape:
        """What the attribute ``shape`` says, a scalar as ``(1,)``; None without it."""
        return self.stats.own_shapes.get(int(self.stats.order[node]))


@dataclass(frozen=True, eq=False)
class OpStats:
    """A graph, and what its nodes cost. Nodes are numbered by name.

    ``order`` says which number of the graph (and, beyond, of ``costs``) each of them has.
    """

    graph: OpGraph
    costs: Costs | None
    shapes: Shapes
    own_shapes: Mapping[int, Shape]
    order: Int64Array
    names: Sequence[str]
    ops: Names
    devices: Names
    flops: Int64Array

    def check_input_shapes(self) -> None:
        """Raises InputError where the shapes of all inputs would make an answer without end: few
        bytes of a graph name a tensor of very many dimensions as an input.
        """
        ranks = np.zeros(len(self.graph.names) + 1, np.int64)
        for node, known in self.shapes.items():
            if node < ranks.size and known and known[0]:
                ranks[node] = len(known[0])
        sources = self.graph.sources
        count = int(ranks[sources].sum())
        if count > _FREE_DIMENSIONS + _USUAL_RANK * sources.size:
            raise InputError(
                f"the inputs of the graph's nodes have {count:,} dimensions: too many to list"
            )

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps there are numbers of."""
        return self.costs.steps if self.costs else ()

    @cached_property
    def places(self) -> Int64Array:
        """The place by name of each node of the graph: the inverse of ``order``."""
        places = np.empty(self.order.size, np.int64)
        places[self.order] = np.arange(self.order.size)
        return places

    def input_rows(self, node: int) -> range:
        """The rows of the graph's inputs that belong to a node."""
        number = self.order[node]
        return range(
            int(np.searchsorted(self.graph.targets, number)),
            int(np.searchsorted(self.graph.targets, number, "right")),
        )

    def check_step(self, step: int) -> None:
        """Raise NotFoundError for a step there are no numbers of."""
        if step >= 0 and step not in self.steps:
            listed = ", ".join(map(str, self.steps[:20])) or "none"
            raise NotFoundError(f"no step {step} in the profile; there is: {listed}")

    def at(self, step: int) -> OpNodes:
        """The nodes with their measures in a step; the average over their steps when negative."""
        self.check_step(step)
        count = len(self.names)
        measures = np.zeros((count, len(MEASURES)), np.int64)
        measures[:, MEASURES.index("definition_count")] = 1
        measures[:, MEASURES.index("parameters")] = self._parameters()
        ran = np.zeros(count, np.bool_)
        if self.costs is not None:
            ran[self.places[self.costs.node]] = True
            self._fill(measures, self.costs, step)
        # Without a run it is what one execution would take.
        runs = np.where(ran, measures[:, _RUN_COUNT], 1)
        measures[:, _FLOAT_OPS] = self.flops * runs
        return OpNodes(self, measures)

    def _fill(self, measures: Int64Array, costs: Costs, step: int) -> None:
        node = self.places[costs.node]
        if step >= 0:
            rows = np.flatnonzero(costs.step == self.steps.index(step))
        else:
            rows = np.arange(node.size)
        executed = np.bincount(node[rows], minlength=len(self.names))
        sums = {
            **costs.sums,
            "exec_micros": costs.sums["accelerator_exec_micros"] + costs.sums["cpu_exec_micros"],
        }
        for name, values in sums.items():
            total = summed(node[rows], values[rows], len(self.names))
            # Unsigned, as the original divides.
            mean = total.view(np.uint64) // np.maximum(executed, 1).astype(np.uint64)
            measures[:, MEASURES.index(name)] = mean.view(np.int64)

    def _parameters(self) -> Int64Array:
        parameters = np.zeros(len(self.names), np.int64)
        for number, shape in checked(self.own_shapes.items()):
            if shape and min(shape) >= 0:
                size = math.prod(shape)
                parameters[self.places[number]] = size if size < 1 << 63 else 0
        return parameters


def read_op_stats(profile: Profile, graph_profile: Profile | None = None) -> OpStats:
    """The numbers of ``profile`` over the graph of ``graph_profile`` (default: its own, if any).

    Without any graph the nodes are those that ran, and their types come from their labels.
    """
    result = read_graph(graph_profile or profile)
    graph = result if result is not None else OpGraph()
    costs = None
    if {"op_runs", "op_times"} <= set(profile.tables):
        costs = read_costs(profile, graph.names)
    names = costs.names if costs is not None else graph.names
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    outputs = None
    if costs is not None and "op_outputs" in profile.tables:
        outputs = profile.columns("op_outputs")
    node_of_run = costs.node_of_run if costs is not None else np.zeros(0, np.int64)
    in_graph = np.where(node_of_run < len(graph.names), node_of_run, -1)
    shapes = output_shapes(graph, outputs, in_graph)
    flops = np.zeros(len(names), np.int64)
    flops[: len(graph.names)] = float_ops(graph, shapes)
    devices = costs.device if costs is not None else Names.constant(None, len(names))
    ops = _ops(profile, names, graph if result is not None else None, costs)
    return OpStats(
        graph=graph,
        costs=costs,
        shapes=shapes,
        own_shapes={
            number: (1,) if shape == () else shape
            for number, text in graph.attribute("shape").items()
            if (shape := parse_shape(text)) is not None
        },
        order=order,
        names=[names[number] for number in order.tolist()],
        ops=Names.encode([ops[number] for number in order.tolist()]),
        devices=devices.take(order),
        flops=flops[order],
    )


def _ops(
    profile: Profile, names: Sequence[str], graph: OpGraph | None, costs: Costs | None
) -> list[str]:
    """The types: from the graph; of a node that is not in it the node's own name."""
    if graph is not None:
        return [*graph.ops, *names[len(graph.ops) :]]
    ops = list(names)
    if costs is not None:
        labels = profile.columns("op_runs").names("op_type")
        rows = np.flatnonzero((labels.codes >= 0) & (costs.node_of_run >= 0))
        node, first = np.unique(costs.node_of_run[rows], return_index=True)
        for number, code in zip(node.tolist(), labels.codes[rows[first]].tolist(), strict=True):
            ops[number] = labels.values[code]
    return ops
