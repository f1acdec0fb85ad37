"""A view as ``tensorflow.tfprof.GraphNodeProto`` or ``MultiGraphNodeProto``: JSON or wire format.

Both are written row by row, without a message that holds the whole: a data flow may be deeper than
protobuf libraries nest messages. What reads such an answer may have limits of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring
from typing import NamedTuple

import numpy as np

from peakline.deadline import checked
from peakline.tfprof import MEASURES, OpNodes, Shown
from peakline.wire.encode import message
from peakline.wire.tables import varint


def _text(number: int, text: str) -> bytes:
    return message(number, text.encode("utf-8", "replace"))


class _Field(NamedTuple):
    """A number of a message: its key on the wire, its JSON name, where it is in the measures."""

    key: bytes
    name: str
    column: int
    is_total: bool


def _fields(numbers: dict[str, tuple[int, int]]) -> list[_Field]:
    """From the field numbers of each measure's own and total value, 0 for none."""
    result = []
    for measure, own_and_total in numbers.items():
        for is_total, number in enumerate(own_and_total):
            name = f"total_{measure}" if is_total else measure
            head, *words = name.split("_")
            camel = head + "".join(map(str.capitalize, words))
            if number:
                key = varint(number << 3)
                result.append((number, _Field(key, camel, MEASURES.index(measure), bool(is_total))))
    return [field for _, field in sorted(result)]


_GRAPH_NODE = _fields(
    {
        "exec_micros": (2, 6),
        "requested_bytes": (3, 7),
        "parameters": (4, 8),
        "float_ops": (13, 14),
        "accelerator_exec_micros": (17, 19),
        "cpu_exec_micros": (18, 20),
        "run_count": (21, 22),
        "definition_count": (0, 23),
        "peak_bytes": (24, 27),
        "residual_bytes": (25, 28),
        "output_bytes": (26, 29),
    }
)
_MULTI_NODE = _fields(
    {
        "exec_micros": (2, 6),
        "requested_bytes": (3, 7),
        "parameters": (4, 8),
        "float_ops": (5, 9),
        "accelerator_exec_micros": (12, 14),
        "cpu_exec_micros": (13, 15),
        "peak_bytes": (16, 19),
        "residual_bytes": (17, 20),
        "output_bytes": (18, 21),
    }
)
_NAME, _DEVICES, _INPUT_SHAPES = 1, 10, 16
_GRAPH_CHILDREN, _MULTI_CHILDREN, _GRAPH_NODES = 12, 11, 10


def view_json(shown: Shown | None) -> bytes:
    """Protobuf JSON without the fields that are zero; ``{}`` for None."""
    if shown is None:
        return b"{}"
    rows = _json_rows(shown)
    out: list[str] = []
    last = -1
    for depth, row in checked(zip(shown.depth.tolist(), rows, strict=True)):
        if depth > last:
            out.append(',"children":[' if last >= 0 else "")
        else:
            out.append("]}" * (last - depth) if last > depth else "")
            out[-1] = "}" + out[-1] + ","
        out.append("{" + row)
        last = depth
    out.append("}" + "]}" * last)
    return "".join(out).encode("utf-8", "replace")


def view_proto(shown: Shown | None) -> bytes:
    """The serialized message; empty for None."""
    if shown is None:
        return b""
    tag = varint((_GRAPH_CHILDREN if shown.members is None else _MULTI_CHILDREN) << 3 | 2)
    own = list(checked(_proto_rows(shown)))
    size = [len(content) for content in own]
    depth = shown.depth.tolist()
    above: list[int] = []
    parent = [-1] * len(own)
    for row, level in checked(enumerate(depth)):
        del above[level:]
        parent[row] = above[-1] if above else -1
        above.append(row)
    for row in checked(range(len(own) - 1, 0, -1)):
        size[parent[row]] += len(tag) + len(varint(size[row])) + size[row]
    out = [own[0]]
    for row in checked(range(1, len(own))):
        out += (tag, varint(size[row]), own[row])
    return b"".join(out)


def advice_json(reports: dict[str, list[str]]) -> bytes:
    """``AdviceProto`` as protobuf JSON."""
    checkers = ",".join(
        f"{encode_basestring(name)}:"
        + (f'{{"reports":[{",".join(map(encode_basestring, result))}]}}' if result else "{}")
        for name, result in reports.items()
    )
    return f'{{"checkers":{{{checkers}}}}}'.encode("utf-8", "replace")


def advice_proto(reports: dict[str, list[str]]) -> bytes:
    """``AdviceProto`` serialized."""
    # AdviceProto: checkers 1, a map; Checker: reports 2.
    return b"".join(
        message(1, _text(1, name) + message(2, b"".join(_text(2, report) for report in result)))
        for name, result in reports.items()
    )


def _json_rows(shown: Shown) -> Iterator[str]:
    """The fields of each row but its children, without the braces."""
    for row, name in enumerate(shown.names):
        head = f'"name":{encode_basestring(name)}'
        if shown.members is None:
            tail = _json_details(shown.nodes, int(shown.item[row]))
            yield head + _json_numbers(_GRAPH_NODE, shown.own[row], shown.totals[row]) + tail
            continue
        members = ",".join(_json_node(shown.nodes, node) for node in shown.members[row])
        yield (
            head
            + _json_numbers(_MULTI_NODE, shown.own[row], shown.totals[row])
            + (f',"graphNodes":[{members}]' if members else "")
        )


def _json_node(nodes: OpNodes, node: int) -> str:
    """A node on its own: its totals are what it has itself."""
    measures = nodes.measures[node]
    numbers = _json_numbers(_GRAPH_NODE, measures, measures)
    name = encode_basestring(nodes.names[node])
    return f'{{"name":{name}{numbers}{_json_details(nodes, node)}}}'


def _json_numbers(fields: Sequence[_Field], own: np.ndarray, totals: np.ndarray) -> str:
    values = (own.tolist(), totals.tolist())
    return "".join(
        f',"{field.name}":"{value}"'
        for field in fields
        if (value := values[field.is_total][field.column])
    )


def _json_details(nodes: OpNodes, node: int) -> str:
    if node < 0:
        return ""
    device = nodes.devices[node]
    devices = f',"devices":[{encode_basestring(device)}]' if device else ""
    shapes = ",".join(
        f'"{place}":'
        + (
            '{"unknownRank":true}'
            if not shape
            else f'{{"dim":[{",".join(_json_size(size) for size in shape)}]}}'
        )
        for place, shape in nodes.input_shapes(node)
    )
    return devices + (f',"inputShapes":{{{shapes}}}' if shapes else "")


def _json_size(size: int) -> str:
    return f'{{"size":"{size}"}}' if size else "{}"


def _proto_rows(shown: Shown) -> Iterator[bytes]:
    """Each row serialized without its children."""
    for row, name in enumerate(shown.names):
        own, totals = shown.own[row], shown.totals[row]
        if shown.members is None:
            numbers = _proto_numbers(_GRAPH_NODE, own, totals)
            details = _proto_details(shown.nodes, int(shown.item[row]))
            yield _text(_NAME, name) + numbers + details
            continue
        members = b"".join(
            message(_GRAPH_NODES, _proto_node(shown.nodes, node)) for node in shown.members[row]
        )
        yield _text(_NAME, name) + _proto_numbers(_MULTI_NODE, own, totals) + members


def _proto_node(nodes: OpNodes, node: int) -> bytes:
    measures = nodes.measures[node]
    numbers = _proto_numbers(_GRAPH_NODE, measures, measures)
    return _text(_NAME, nodes.names[node]) + numbers + _proto_details(nodes, node)


def _proto_numbers(fields: Sequence[_Field], own: np.ndarray, totals: np.ndarray) -> bytes:
    values = (own.tolist(), totals.tolist())
    return b"".join(
        field.key + varint(value)
        for field in fields
        if (value := values[field.is_total][field.column])
    )


def _proto_details(nodes: OpNodes, node: int) -> bytes:
    if node < 0:
        return b""
    device = nodes.devices[node]
    out = _text(_DEVICES, device) if device else b""
    for place, shape in nodes.input_shapes(node):
        # TensorShapeProto: dim 2 with size 1, unknown_rank 3.
        dims = b"".join(message(2, b"\x08" + varint(size) if size else b"") for size in shape or ())
        entry = b"\x08" + varint(place) + message(2, dims if shape else b"\x18\x01")
        out += message(_INPUT_SHAPES, entry)
    return out
