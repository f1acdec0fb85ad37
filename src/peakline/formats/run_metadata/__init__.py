"""RunMetadata and StepStats: what a traced session run did, op by op."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="run_metadata",
    what="RunMetadata",
    written_by="TensorFlow sessions with `FULL_TRACE`",
    fills=(
        "`traced_runs`, `steps`, `op_devices`, `op_runs`, `op_times`, `op_outputs`, "
        "`op_references`, `op_memory`, `op_allocations`, `op_memory_stats`, `op_persistent`, "
        "`thread_names`, `allocator_events`; with a cost graph the `cost_…` tables; with "
        "graphs those of a graph"
    ),
    reader="peakline.formats.run_metadata.reader:RunMetadataReader",
    rank=1,
    message="tensorflow.RunMetadata",
    fields=("step_stats", "cost_graph", "partition_graphs", "function_graphs", "session_metadata"),
)
