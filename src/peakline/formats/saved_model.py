"""SavedModel: the graphs of a model; read as other graphs are."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="saved_model",
    what="SavedModel",
    written_by="TensorFlow",
    fills="the same",
    reader="peakline.formats.graph_def.reader:GraphReader",
    rank=5,
    message="tensorflow.SavedModel",
    fields=("saved_model_schema_version", "meta_graphs"),
)
