"""A neighbourhood as a graph for Graphviz: a box for each computation, nothing from a network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from peakline.text import one_line

_STYLES = {"control": "style=dotted", "result": "style=dashed", "argument": "style=dashed"}
_LONGEST = 200


def draw(document: Mapping[str, Any], *, merge_fusion: bool) -> bytes:
    """The graph; with ``merge_fusion`` without what is inside of fusions."""
    return "".join(_lines(document, merge_fusion=merge_fusion)).encode()


def _lines(document: Mapping[str, Any], *, merge_fusion: bool) -> Iterator[str]:
    fused = {
        name
        for node in document["nodes"]
        if node["opcode"] == "fusion" and merge_fusion
        for name in node["calls"]
    }
    nodes = [node for node in document["nodes"] if node["computation"] not in fused]
    ids = {node["name"]: f"n{number}" for number, node in enumerate(nodes)}
    inside: dict[str, list[dict[str, Any]]] = {}
    for node in nodes:
        inside.setdefault(node["computation"] or "", []).append(node)
    yield f"digraph G {{\nrankdir = TB;\nlabel = {_quoted(document['module'])};\n"
    yield "node [shape=box];\n"
    for number, (computation, members) in enumerate(inside.items()):
        yield f"subgraph cluster_{number} {{\nlabel = {_quoted(computation)};\n"
        for node in members:
            label = f"{node['name']}\n{node['opcode']}\n{node['shape']}"
            marked = ", penwidth=3" if node["name"] == document["node"] else ""
            hint = _quoted(node["op_name"] or node["name"])
            yield f"{ids[node['name']]} [label={_quoted(label)}, tooltip={hint}{marked}];\n"
        yield "}\n"
    for edge in document["edges"]:
        if edge["from"] in ids and edge["to"] in ids:
            style = _STYLES.get(edge["kind"])
            more = f" [{style}]" if style else ""
            yield f"{ids[edge['from']]} -> {ids[edge['to']]}{more};\n"
    yield "}\n"


def _quoted(text: str) -> str:
    lines = [one_line(line[:_LONGEST]) for line in text.split("\n")]
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines) + '"'
