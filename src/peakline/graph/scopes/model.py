"""A graph with its tree of scopes, its edges with the bytes and shapes of what goes along them, and
what its nodes cost: time, runs, and memory at the peak.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.formats.hlo_proto.shapes import bits_of, width_of
from peakline.graph.critical_path import step_runs
from peakline.graph.scopes.tree import Tree
from peakline.hlo.memory import memory_of
from peakline.hlo.op_times import op_times
from peakline.memory.over_time.live import memory_records
from peakline.tables import Profile
from peakline.tables.columns import Columns, Names
from peakline.tables.joins import ranges
from peakline.text import whole_number

if TYPE_CHECKING:
    from peakline.tables.programs import Programs


@dataclass(frozen=True, eq=False)
class Edges:
    """An edge per row, from the node ``source`` to ``target``.

    ``output`` is which output of its source it comes from, ``place`` which operand of its target
    it is. ``inner`` is the node inside the target that stands for the operand, such as a parameter
    of a fusion, ``result`` the node inside the source that stands for the output; -1 for none.
    Where several bodies are given the operand, or may give the output, as the branches of a choice,
    ``more_inner`` and ``more_result`` have the others: rows of an edge and such a node.
    """

    source: Int64Array
    target: Int64Array
    output: Int64Array
    place: Int64Array
    is_control: BoolArray
    inner: Int64Array
    result: Int64Array
    more_inner: Int64Array = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    more_result: Int64Array = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    @cached_property
    def every_inner(self) -> Int64Array:
        """Rows of an edge and a node inside its target that stands for the operand."""
        return _every(self.inner, self.more_inner)

    @cached_property
    def every_result(self) -> Int64Array:
        """Rows of an edge and a node inside its source that stands for the output."""
        return _every(self.result, self.more_result)

    @cached_property
    def by_source(self) -> tuple[Int64Array, Int64Array]:
        """The edges in order of their source, and those sources."""
        order = np.argsort(self.source, kind="stable")
        return order, self.source[order]

    @cached_property
    def by_target(self) -> tuple[Int64Array, Int64Array]:
        """The edges in order of their target, and those targets."""
        order = np.argsort(self.target, kind="stable")
        return order, self.target[order]

    def out_of(self, nodes: Int64Array) -> Int64Array:
        """The edges from any of these nodes."""
        return _at(*self.by_source, nodes)

    def into(self, nodes: Int64Array) -> Int64Array:
        """The edges to any of these nodes."""
        return _at(*self.by_target, nodes)


def _every(first: Int64Array, more: Int64Array) -> Int64Array:
    known = np.flatnonzero(first >= 0)
    return np.concatenate([np.stack([known, first[known]], axis=1), more])


def _at(order: Int64Array, ends: Int64Array, nodes: Int64Array) -> Int64Array:
    begin, end = (np.searchsorted(ends, nodes, side) for side in ("left", "right"))
    return order[ranges(begin, end)]


@dataclass(frozen=True)
class Copy:
    """The body of a function inside the node ``caller``: ``size`` nodes from ``start`` on.

    ``attr`` is the attribute that names the function, empty where the caller's op does. It is alone
    where the caller calls nothing else.
    """

    function: str
    start: int
    size: int
    caller: int
    attr: str
    is_alone: bool


@dataclass(frozen=True, eq=False)
class ScopedGraph:
    """One graph, the body of one of its functions, or one compiled program.

    ``rows`` are those of the nodes in their table (``nodes``, or ``hlo_instructions`` of the
    program), -1 for an argument or a result of a function. ``root`` is, per node that holds a
    body, the node whose result is its own; -1 elsewhere. ``origins`` are the names that the
    framework gives what instructions were made of. ``program`` is the program's number. ``copies``
    are the bodies of functions inside the nodes that call them, behind the graph's own nodes.
    """

    profile: Profile = field(repr=False)
    graph: str
    function: str | None
    kind: str
    tree: Tree
    rows: Int64Array
    names: Names
    ops: Names
    devices: Names
    categories: Names
    origins: Names
    edges: Edges
    root: Int64Array
    program: int | None
    copies: tuple[Copy, ...] = ()

    __retained__ = "tree rows names ops devices categories origins edges root measures sizes"

    @property
    def nodes(self) -> int:
        """How many nodes there are, arguments and results of a function included."""
        return self.tree.nodes

    @property
    def own(self) -> int:
        """How many of them, the first ones, are the graph's own, not those of what it calls."""
        return self.copies[0].start if self.copies else self.tree.nodes

    @cached_property
    def own_names(self) -> Names:
        """The names of the graph's own nodes: what a run recorded says those, or is of neither."""
        return self.names.take(np.arange(self.own)) if self.copies else self.names

    def function_of(self, node: int) -> str | None:
        """The function whose body a node stands in; None for a node of a graph."""
        if node < self.own:
            return self.function
        return self.copies[bisect_right(self.copies, node, key=lambda one: one.start) - 1].function

    def of_program(self) -> tuple[Programs, int]:
        """The profile's compiled programs, and which of them this one is.

        Raises TypeError for a graph that is none.
        """
        programs = self.profile.programs()
        if programs is None or self.program is None:
            raise TypeError(f"{self.graph!r} is no compiled program")
        return programs, self.program

    @cached_property
    def measures(self) -> Measures:
        """What the nodes cost, summed over the tree."""
        return measures_of(self)

    @property
    def knows_sizes(self) -> bool:
        """Whether `sizes` has been made already."""
        return "sizes" in self.__dict__

    @cached_property
    def sizes(self) -> Sizes:
        """Bytes and shapes of what goes along the edges."""
        return sizes_of(self)


_KERNELS = ("stream", "stream_all", "memcpy")


@dataclass(frozen=True, eq=False)
class Measures:
    """Per node: ``time_ps`` without what others inside it take, how often it ran, and bytes of its
    buffers that are live at the peak. ``has_time`` and ``has_memory`` say whether the profile has
    any of it, ``step`` of which step the times are (None: of all that was recorded).
    """

    tree: Tree
    time_ps: Int64Array
    runs: Int64Array
    peak_bytes: Int64Array
    has_time: bool
    has_memory: bool
    step: str | None

    @cached_property
    def totals(self) -> dict[str, Int64Array]:
        """The same summed over all that each item of the tree holds."""
        columns = {"time_ps": self.time_ps, "runs": self.runs, "peak_bytes": self.peak_bytes}
        columns["nodes"] = np.ones(self.tree.nodes, np.int64)
        return {name: self.tree.totals(values) for name, values in columns.items()}


def measures_of(graph: ScopedGraph) -> Measures:
    """What the nodes of a graph cost. Raises InputError when the profile cannot be read."""
    if graph.program is not None:
        return _of_program(graph, graph.program)
    nothing = np.zeros(graph.nodes, np.int64)
    step = None if graph.function is not None else step_runs(graph.profile)
    if step is None:
        spent, runs = nothing, nothing
    else:
        spent, runs = _of_runs(graph, step.runs)
    peak = nothing if graph.function is not None else _of_buffers(graph)
    name = None if step is None else step.name or str(step.step_id)
    return Measures(
        graph.tree, spent, runs, peak, bool(runs.any() or spent.any()), bool(peak.any()), name
    )


def _of_program(graph: ScopedGraph, number: int) -> Measures:
    times = op_times(graph.profile).get(number, {})
    spent, runs, peak = np.zeros((3, graph.nodes), np.int64)
    if times:
        rows = _rows_by_name(graph.names, list(times))
        result = list(times.values())
        here = rows >= 0
        spent[rows[here]] = np.array([one.self_ps for one in result], np.int64)[here]
        runs[rows[here]] = np.array([one.runs for one in result], np.int64)[here]
    memory = memory_of(graph.profile, number)
    if memory.is_known:
        live = memory.live_set
        made = live.instruction >= 0
        np.add.at(peak, live.instruction[made], live.bytes[made])
    return Measures(graph.tree, spent, runs, peak, bool(times), bool(peak.any()), None)


def _rows_by_name(names: Names, wanted: list[str]) -> Int64Array:
    """The first row of each name, -1 for none."""
    known = {name: code for code, name in enumerate(names.values)}
    first = np.full(len(names.values) + 1, -1, np.int64)
    first[names.codes[::-1]] = np.arange(len(names))[::-1]
    first[-1] = -1
    return first[np.array([known.get(name, -1) for name in wanted], np.int64)]


def _of_runs(graph: ScopedGraph, runs: Columns) -> tuple[Int64Array, Int64Array]:
    """Time of computation and of kernels, and executions, of a step's executions.

    A node that requests a device on which something ran is known by both, others by their names.
    """
    kind = runs.names("kind")
    executor = runs.take(kind.codes == kind.code_of("executor"))
    spent, count = np.zeros((2, graph.nodes), np.int64)
    names, devices = executor.names("name"), executor.names("device")
    by_name = _first_rows(graph.own_names, names)
    row = by_name[names.codes]
    ran = {devices.values[code] for code in np.unique(devices.codes).tolist() if code >= 0}
    wanted = graph.devices
    is_bound = wanted.per_row(ran.__contains__, np.bool_)
    own = np.append(np.array([_code(wanted, text) for text in devices.values], np.int64), -3)[
        devices.codes
    ]
    fits = (row >= 0) & (~is_bound[row] | (wanted.codes[row] == own))
    known = executor.is_valid("compute_ps")
    compute = np.where(known, executor.array("compute_ps"), 0)
    np.add.at(spent, row[fits], compute[fits])
    np.add.at(count, row[fits], 1)
    kernels = runs.take(np.isin(kind.codes, [kind.code_of(one) for one in _KERNELS]))
    # A kernel's row is named node:op.
    texts = kernels.names("name")
    bare = Names(texts.codes, [text.partition(":")[0] for text in texts.values])
    row = _first_rows(graph.own_names, bare)[bare.codes]
    np.add.at(spent, row[row >= 0], kernels.array("duration_ps")[row >= 0])
    return spent, count


def rows_by_name(names: Names, wanted: Names) -> Int64Array:
    """Per row of ``wanted`` the first row of ``names`` with its text, -1 for none."""
    result: Int64Array = _first_rows(names, wanted)[wanted.codes]
    return result


def _first_rows(names: Names, wanted: Names) -> Int64Array:
    """For every code of ``wanted`` (and for -1) the first row of ``names`` with its text."""
    return np.append(_rows_by_name(names, list(wanted.values)), -1)


def _code(names: Names, text: str) -> int:
    code = names.code_of(text)
    return -2 if code < 0 else code


def _of_buffers(graph: ScopedGraph) -> Int64Array:
    """Bytes live at the peak of the allocator with the largest one, by the op that made them."""
    peak = np.zeros(graph.nodes, np.int64)
    records, chosen = memory_records(graph.profile), _largest(graph.profile)
    moment = None if records is None or chosen is None else records.at_peak(chosen)
    if records is None or moment is None:
        return peak
    ops = records.events.names("op").take(moment.buffers)
    # Names of outputs have their number behind a colon.
    bare = Names(ops.codes, [text.partition(":")[0] for text in ops.values])
    row = _first_rows(graph.own_names, bare)[bare.codes]
    np.add.at(peak, row[row >= 0], moment.buffer_bytes[row >= 0])
    return peak


def _largest(profile: Profile) -> int | None:
    """The number of the allocator with the largest peak."""
    records = memory_records(profile)
    if records is None:
        return None
    known = [n for n, usage in enumerate(records.usages) if usage.peak_row >= 0]
    return max(known, key=lambda n: (records.usages[n].peak, -n), default=None)


_MOST_BYTES = 2**50
_DIGITS = 16
_ARRAY = re.compile(r"(?<!\w)([a-z]\w*)\[([^\[\]]*)\]")
_LISTED = re.compile(r"\[[^\[\]]*\]|<unknown>")
_TENSOR = re.compile(r"(DT_\w+) (\[[^\[\]]*\])(?:, (\d{1,18}) bytes)?")
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
    return _sizes_of_program(graph) if graph.program is not None else _of_ops(graph)


def _sizes_of_program(graph: ScopedGraph) -> Sizes:
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
    result = np.where(edges.is_control, 0, size[said])
    return Sizes(result, Names(np.where(edges.is_control, -1, shape.codes[said]), shape.values))


def bytes_of_shape(text: str) -> int:
    """Bytes of all arrays in the text of an HLO shape, such as ``(f32[8,16]{1,0}, s32[])``."""
    total = 0
    for kind, sizes in _ARRAY.findall(text):
        bits = bits_of(kind)
        if bits or kind == "pred":
            numbers = (whole_number(size.strip("<= ")) or 0 for size in sizes.split(",") if size)
            total += math.prod(numbers) * width_of(kind)
    return max(min(total, _MOST_BYTES), 0)


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
    result = list(known.values())
    said = np.array([*(one[0] for one in result), -1], np.int64)[place]
    shapes = Names.encode([one[1] or None for one in result])
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
        if result := _TENSOR.match(text):
            size = int(result[3]) if result[3] else _bytes(result[1], result[2])
            yield node, 0, size, f"{_short(result[1])} {result[2]}"


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
