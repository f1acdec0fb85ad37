"""StepStats: what each op did in a step, by itself in a file; read as RunMetadata is."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="step_stats",
    what="StepStats",
    written_by="TensorFlow sessions",
    fills="the same",
    reader="peakline.formats.run_metadata.reader:RunMetadataReader",
    rank=2,
    message="tensorflow.StepStats",
    fields=("dev_stats",),
)
