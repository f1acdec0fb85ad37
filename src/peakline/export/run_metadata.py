"""RunMetadata: what ran on which device, its memory and outputs, as TensorFlow's own tools read it.

A profile of executions (StepStats) comes back field by field. Of a profile of events the
executions of ops are taken, and what its allocators tell of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from peakline import schema
from peakline.errors import UsageError
from peakline.export.graph_nodes import partition_graphs
from peakline.export.registry import Options, Sink
from peakline.export.step_stats import encode_steps, executions
from peakline.export.step_stats_events import executions_of_events

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["EXPORTER", "RunMetadata"]


@dataclass(frozen=True)
class RunMetadata:
    """For TensorFlow's ``timeline`` and ``tfprof``: ``tensorflow.RunMetadata``."""

    name: str = "run-metadata"
    doc: str = "tensorflow.RunMetadata (protobuf): executions, their memory and outputs"
    suffix: str = ".pb"
    needs: tuple[tuple[str, ...], ...] = (("op_runs",), ("events",))
    over_time: bool = True

    def write(self, profile: Profile, sink: Sink, options: Options) -> None:
        """StepStats, graphs, and the session's name."""
        if options.allocator is not None:
            raise UsageError("run-metadata tells of all allocators; --allocator is not for it")
        is_traced = profile.has_rows("op_runs")
        told = executions(profile) if is_traced else executions_of_events(profile)
        steps = encode_steps(*told)
        rest = _rest(profile)

        def write(stream: BinaryIO) -> None:
            stream.write(steps.view)
            stream.write(rest)

        sink(write)


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
    content: bytes = made.SerializeToString(deterministic=True)
    return content


EXPORTER = RunMetadata()
