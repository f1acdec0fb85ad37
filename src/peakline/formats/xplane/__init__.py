"""XSpace files, the profiles that JAX, TensorFlow and PyTorch/XLA write."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="xplane",
    what="XSpace, `*.xplane.pb`",
    written_by="TensorFlow, JAX, PyTorch/XLA profilers",
    fills=(
        "`planes`, `lines`, `events`, `event_stats`, `steps`, `module_runs`, "
        "`allocator_events`, `memory_snapshots`"
    ),
    reader="peakline.formats.xplane.reader:XPlaneReader",
    rank=0,
    message="tensorflow.profiler.XSpace",
    fields=("planes",),
    suffix=".xplane.pb",
    glance="peakline.formats.xplane.presence:GLANCE",
)
