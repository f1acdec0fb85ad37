"""Graphs: GraphDef, MetaGraphDef and SavedModel files, and the graphs inside other files."""
