"""Graphs: GraphDef, MetaGraphDef and SavedModel files, and the graphs inside other files."""

from peakline.formats.common.format import Format

FORMAT = Format(
    name="graph_def",
    what="GraphDef",
    written_by="TensorFlow",
    fills=(
        "`graphs`, `nodes`, `edges`, `node_attrs`, `node_frames`, `functions`, "
        "`function_arguments`, `function_attrs`"
    ),
    reader="peakline.formats.graph_def.reader:GraphReader",
    rank=3,
    message="tensorflow.GraphDef",
    fields=("node", "library", "versions", "debug_info"),
)
