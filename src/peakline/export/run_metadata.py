"""RunMetadata: what ran on which device, its memory and outputs, as TensorFlow's own tools read it.

A profile of executions (StepStats) comes back field by field. Of a profile of events the
executions of ops are taken, and what its allocators record of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from peakline import schema
from peakline.arrays import Int64Array
from peakline.errors import UsageError
from peakline.export.registry import Exporter, Options, Sink
from peakline.export.step_stats import encode_steps, executions
from peakline.export.step_stats_events import executions_of_events
from peakline.tables import Columns, Profile


def partition_graphs(profile: Profile) -> Iterator[Any]:
    """The profile's partition graphs: names, op types, devices, inputs and versions of nodes.

    The tables hold attributes as text only, so nodes have none, and functions are left out.
    """
    graphs, nodes, edges = (profile.columns_or_empty(name) for name in ("graphs", "nodes", "edges"))
    nodes_of, edges_of = _by_graph(nodes), _by_graph(edges)
    nothing = np.zeros(0, np.int64)
    for name, kind, producer, consumer in graphs.each("graph", "kind", "producer", "min_consumer"):
        if kind == "partition":
            graph: Any = schema.message("tensorflow.GraphDef")()
            graph.versions.producer = producer
            graph.versions.min_consumer = consumer
            own, inputs = nodes_of.get(name or "", nothing), edges_of.get(name or "", nothing)
            _add_nodes(graph, nodes.take(own), edges.take(inputs))
            yield graph


def _by_graph(table: Columns) -> dict[str, Int64Array]:
    """The rows that stand outside functions, by graph."""
    names = table.names("graph")
    rows = np.flatnonzero(~table.is_valid("function") & (names.codes >= 0))
    rows = rows[np.argsort(names.codes[rows], kind="stable")]
    codes, starts = np.unique(names.codes[rows], return_index=True)
    parts = np.split(rows, starts[1:])
    return {names.values[code]: part for code, part in zip(codes.tolist(), parts, strict=False)}


def _add_nodes(graph: Any, nodes: Columns, edges: Columns) -> None:
    inputs: dict[str, list[tuple[int, str]]] = {}
    for source, output, target, place, control, text in edges.each(
        "source", "source_output", "target", "target_input", "is_control", "input"
    ):
        usual = f"^{source}" if control else f"{source}:{output}" if output else source
        inputs.setdefault(target or "", []).append((place, text or usual or ""))
    for name, op, device in nodes.each("name", "op", "device"):
        node = graph.node.add(name=name, op=op, device=device)
        node.input.extend(text for _, text in sorted(inputs.get(name or "", ())))


def _export(profile: Profile, sink: Sink, options: Options) -> None:
    """For TensorFlow's ``timeline`` and ``tfprof``: StepStats, graphs, and the session's name."""
    if options.allocator is not None:
        raise UsageError("run-metadata holds all allocators; --allocator is not for it")
    is_traced = profile.has_rows("op_runs")
    steps = encode_steps(*(executions if is_traced else executions_of_events)(profile))
    rest = _rest(profile)
    sink(lambda stream: stream.writelines((steps.view, rest)))


def _rest(profile: Profile) -> bytes:
    """What stands beside the StepStats."""
    made: Any = schema.message("tensorflow.RunMetadata")()
    made.partition_graphs.extend(partition_graphs(profile))
    if profile.has_rows("traced_runs"):
        runs = profile.columns("traced_runs")
        name = runs.names("session_name")[0]
        if name is not None:
            made.session_metadata.name = name
            made.session_metadata.version = int(runs.array("session_version")[0])
    return bytes(made.SerializeToString(deterministic=True))


EXPORTER = Exporter(
    name="run-metadata",
    doc="tensorflow.RunMetadata (protobuf): executions, their memory and outputs",
    suffix=".pb",
    is_text=False,
    needs=(("op_runs",), ("events",)),
    over_time=True,
    write=_export,
)
