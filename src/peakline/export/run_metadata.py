"""RunMetadata: what ran on which device, its memory and outputs, as TensorFlow's own tools read it.

A profile of executions (StepStats) comes back field by field. Of a profile of events the
executions of ops are taken, and what its allocators record of them.
"""

from __future__ import annotations

from typing import Any

from peakline import schema
from peakline.errors import UsageError
from peakline.export.graph_nodes import partition_graphs
from peakline.export.registry import Exporter, Options, Sink
from peakline.export.step_stats import encode_steps, executions
from peakline.export.step_stats_events import executions_of_events
from peakline.tables import Profile


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
    needs=(("op_runs",), ("events",)),
    over_time=True,
    write=_export,
)
