"""Graphs written in text format, opened as files are."""

from google.protobuf import text_format

import peakline
from peakline import schema
from peakline.graph.check import check_graphs

FLOAT = 'attr{key:"T" value{type:DT_FLOAT}}'


def node(name, op="NoOp", *inputs, more="", field="node"):
    """A node in text format."""
    listed = " ".join(f'input:"{one}"' for one in inputs)
    return f'{field}{{name:"{name}" op:"{op}" {listed} {more}}} '


def graph_bytes(text):
    """A GraphDef; with a version, by which even the smallest is recognised."""
    graph = text_format.Parse(text, schema.message("tensorflow.GraphDef")())
    graph.versions.producer = graph.versions.producer or 2474
    return graph.SerializeToString()


def opened(folder, text):
    """The profile of a GraphDef file."""
    path = folder / "graph.pb"
    path.write_bytes(graph_bytes(text))
    return peakline.open(str(path))


def broken(folder, text, **options):
    """``(rule, node)`` of every error; notes have a question mark after the rule."""
    with opened(folder, text) as profile:
        return [
            (one.rule + "?" * (not one.is_error), one.node)
            for one in check_graphs(profile, **options)
        ]
