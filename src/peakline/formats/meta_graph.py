"""MetaGraphDef: a graph with its collections; read as other graphs are."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="meta_graph",
    what="MetaGraphDef",
    written_by="TensorFlow",
    fills="the same",
    reader="peakline.formats.graph_def.reader:GraphReader",
    rank=4,
    message="tensorflow.MetaGraphDef",
    fields=("meta_info_def", "graph_def", "saver_def", "collection_def", "signature_def"),
)
