"""Bytes and shapes of what goes along the edges of a graph, as far as anything says them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import Int64Array
from peakline.formats.hlo_proto.element_types import bits_of, width_of
from peakline.graph.scopes.measures import rows_by_name
from peakline.tables.columns import Columns, Names

if TYPE_CHECKING:
    from peakline.graph.scopes.model import Copy, ScopedGraph

_MOST_BYTES = 2**50
_DIGITS = 16
_ARRAY = re.compile(r"(?<!\w)([a-z]\w*)\[([^\[\]]*)\]")
_LISTED = re.compile(r"\[[^\[\]]*\]|<unknown>")
_TENSOR = re.compile(r"(DT_\w+) (\[[^\[\]]*\])(?:, (\d+) bytes)?")
_WIDTHS = {
    "FLOAT": 4, "DOUBLE": 8, "INT32": 4, "UINT8": 1, "INT16": 2, "INT8": 1, "COMPLEX64": 8,
    "INT64": 8, "BOOL": 1, "QINT8": 1, "QUINT8": 1, "QINT32": 4, "BFLOAT16": 2, "QINT16": 2,
    "QUINT16": 2, "UINT16": 2, "COMPLEX128": 16, "HALF": 2, "UINT32": 4, "UINT64": 8,
    "FLOAT8_E5M2": 1, "FLOAT8_E4M3FN": 1,
}  # fmt: skip
_BOOLEAN = frozenset(
    "Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr LogicalNot IsNan "
    "IsInf IsFinite All Any LoopCond VarIsInitializedOp IsVariableInitialized".split()
)
"""Ops whose output is bool, whatever their attribute ``T`` says."""
_TYPES = ("DstT", "dtype", "out_type", "output_type", "T")
"""Attributes that give the type of an output, the first that a node has."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """Per edge: ``bytes`` of the tensor that goes along it, -1 where nothing says it, and ``shape``
    as text, empty where it is not known. Nothing goes along a control edge.
    """

    bytes: Int64Array
    shape: Names


def sizes_of(graph: ScopedGraph) -> Sizes:
    """What goes along the edges of a graph. Raises InputError when the profile cannot be read."""
    return _of_program(graph) if graph.program is not None else _of_ops(graph)


def _of_program(graph: ScopedGraph) -> Sizes:
    """The result of the source; of what takes a tuple apart, the part."""
    programs, number = graph.of_program()
    table = programs.read(number, "hlo_instructions", {"shape", "bytes"})
    size, shape = table.array("bytes").astype(np.int64), table.names("shape")
    tuples = np.array([*(text.startswith("(") for text in shape.values), False])
    whole = np.array(
        [*(bytes_of_shape(text) if is_tuple else 0
           for text, is_tuple in zip(shape.values, tuples, strict=False)), 0], np.int64
    )  # fmt: skip
    size = np.where(tuples[shape.codes], whole[shape.codes], size)
    edges = graph.edges
    parts = graph.ops.per_row("get-tuple-element".__eq__, np.bool_)
    said = np.where(parts[edges.target], edges.target, edges.source)
    found = np.where(edges.is_control, 0, size[said])
    return Sizes(found, Names(np.where(edges.is_control, -1, shape.codes[said]), shape.values))


def bytes_of_shape(text: str) -> int:
    """Bytes of all arrays in the text of an HLO shape, such as ``(f32[8,16]{1,0}, s32[])``."""
    total = 0
    for kind, sizes in _ARRAY.findall(text):
        bits = bits_of(kind)
        if bits or kind == "pred":
            count = math.prod(int(size.strip("<= ") or 0) for size in sizes.split(",") if size)
            total += count * width_of(kind)
    return min(total, _MOST_BYTES)


def _of_ops(graph: ScopedGraph) -> Sizes:
    """By what a run recorded, else by the shapes that attributes give."""
    known: dict[tuple[int, int], tuple[int, str]] = {}
    for node, slot, size, shape in _by_attributes(graph):
        known[node, slot] = size, shape
    for node, slot, size, shape in _by_runs(graph):
        if size >= 0:
            known[node, slot] = size, shape
    edges = graph.edges
    if not known:
        return Sizes(np.where(edges.is_control, 0, -1), Names.constant(None, edges.source.size))
    ends = np.array(list(known), np.int64)
    wide = np.int64(1) << 20
    key = ends[:, 0] * wide + np.clip(ends[:, 1], 0, wide - 1)
    order = np.argsort(key)
    wanted = edges.source * wide + np.clip(edges.output, 0, wide - 1)
    at = np.minimum(np.searchsorted(key[order], wanted), order.size - 1)
    place = np.where((key[order][at] == wanted) & ~edges.is_control, order[at], -1)
    found = list(known.values())
    said = np.array([*(one[0] for one in found), -1], np.int64)[place]
    shapes = Names.encode([one[1] or None for one in found])
    codes = np.append(shapes.codes, -1)[place]
    return Sizes(np.where(edges.is_control, 0, said), Names(codes.astype(np.int32), shapes.values))


def _by_runs(graph: ScopedGraph) -> Iterator[tuple[int, int, int, str]]:
    """Node, output, bytes and shape of each output that was recorded."""
    outputs = graph.profile.columns_or_empty("op_outputs")
    if not outputs.rows or graph.function is not None:
        return
    runs = graph.profile.columns_or_empty("op_runs")
    node = rows_by_name(graph.own_names, runs.names("name"))
    ids = runs.array("op_run_id")
    of_run = np.full(int(max(ids.max(initial=-1), outputs.array("op_run_id").max(initial=-1))) + 2,
                     -1, np.int64)  # fmt: skip
    of_run[ids] = node
    rows = of_run[outputs.array("op_run_id")]
    some = np.flatnonzero(rows >= 0)
    slot = outputs.array("slot")[some]
    _, first = np.unique(rows[some] * (1 << 20) + slot, return_index=True)
    chosen = outputs.take(some[first])
    columns = chosen.each("slot", "data_type", "shape", "allocated_bytes")
    has_bytes = chosen.is_valid("allocated_bytes").tolist()
    for row, valid, (slot_of, kind, shape, size) in zip(
        rows[some[first]].tolist(), has_bytes, columns, strict=True
    ):
        computed = _bytes(kind or "", shape or "")
        text = f"{_short(kind or '')} {shape or ''}".strip()
        yield row, slot_of, computed if computed >= 0 or not valid else size, text


def _by_attributes(graph: ScopedGraph) -> Iterator[tuple[int, int, int, str]]:
    """The same of each output whose shape and type the graph gives."""
    attrs = _attributes(graph)
    functions = attrs.names("function")
    begins: dict[str, list[Copy]] = {}
    for copy in graph.copies:
        begins.setdefault(copy.function, []).append(copy)
    parts = [(graph.function, [0], graph.own)]
    parts += [(name, [copy.start for copy in some], some[0].size) for name, some in begins.items()]
    for function, starts, size in parts:
        code = -1 if function is None else functions.code_of(function)
        rows = np.arange(starts[0], starts[0] + size)
        names, ops = (graph.names.take(rows), graph.ops.take(rows)) if begins else (
            graph.names, graph.ops)  # fmt: skip
        for node, slot, bytes_, shape in _of_body(attrs.take(functions.codes == code), names, ops):
            yield from ((start + node, slot, bytes_, shape) for start in starts)


def _of_body(attrs: Columns, names: Names, ops: Names) -> Iterator[tuple[int, int, int, str]]:
    """The same of the nodes of one graph or function."""
    shapes, listed = (_texts(names, attrs, name) for name in ("shape", "_output_shapes"))
    types = {name: _texts(names, attrs, name, {*shapes, *listed}) for name in _TYPES}

    def type_of(node: int) -> str:
        if ops[node] in _BOOLEAN:
            return "DT_BOOL"
        return next((types[name][node] for name in _TYPES if node in types[name]), "")

    for node, text in shapes.items():
        if (ops[node] or "").startswith(("Placeholder", "Variable")):
            yield node, 0, _bytes(type_of(node), text), f"{_short(type_of(node))} {text}"
    for node, text in listed.items():
        kind = type_of(node)
        for slot, shape in enumerate(_LISTED.findall(text[1:-1])):
            yield node, slot, _bytes(kind, shape), f"{_short(kind)} {shape}".strip()
    for node, text in _texts(names, attrs, "value").items():
        if found := _TENSOR.match(text):
            size = int(found[3]) if found[3] else _bytes(found[1], found[2])
            yield node, 0, size, f"{_short(found[1])} {found[2]}"


def _attributes(graph: ScopedGraph) -> Columns:
    """The attributes that say something of shapes and types, of all graphs."""
    attrs = graph.profile.columns_or_empty("node_attrs")
    names = attrs.names("attr")
    wanted = (*_TYPES, "shape", "_output_shapes", "value")
    mine = np.isin(names.codes, [names.code_of(name) for name in wanted])
    graphs, functions = attrs.names("graph"), attrs.names("function")
    mine &= graphs.codes == graphs.code_of(graph.graph)
    if not graph.copies:
        function = -1 if graph.function is None else functions.code_of(graph.function)
        mine &= functions.codes == function
    return attrs.take(mine)


def _texts(
    nodes: Names, attrs: Columns, attr: str, among: set[int] | None = None
) -> dict[int, str]:
    """The text of an attribute by node, of all nodes or of those ``among``."""
    names = attrs.names("attr")
    some = attrs.take(names.codes == names.code_of(attr))
    if among is not None and not among:
        return {}
    rows = rows_by_name(nodes, some.names("name"))
    return {
        row: text or ""
        for row, text in zip(rows.tolist(), some.names("value").to_list(), strict=True)
        if row >= 0 and (among is None or row in among)
    }


def _short(kind: str) -> str:
    """``DT_FLOAT`` as ``float``."""
    return kind.removeprefix("DT_").lower()


def _bytes(kind: str, shape: str) -> int:
    """Bytes of a tensor; -1 where its type or one of its sizes is not known."""
    width = _WIDTHS.get(kind.removeprefix("DT_").removesuffix("_REF").upper(), 0)
    if not width or not shape.startswith("["):
        return -1
    sizes = [size.rpartition("=")[2].strip() for size in shape[1:-1].split(",") if size.strip()]
    if not all(size.isdecimal() and len(size) < _DIGITS for size in sizes):
        return -1
    return min(math.prod(map(int, sizes)) * width, _MOST_BYTES)
