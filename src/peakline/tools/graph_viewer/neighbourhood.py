"""What is around an instruction of a program, in and out of the computations that are called."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from peakline import hlo
from peakline.arrays import AnyArray, Int64Array
from peakline.errors import NotFoundError, UsageError
from peakline.safe_text import one_line
from peakline.text import check_repeated

if TYPE_CHECKING:
    from peakline.tables import Columns, Profile
    from peakline.tools.graph_viewer.parameters import GraphViewerParameters


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


_MOST_NODES = 1000
"""Nodes of a neighbourhood: those that are nearest."""
_KINDS = ("operand", "control", "result", "argument")
"""Of edges: a value that is used; an order; what a called computation gives back; what it is
given.
"""
_GIVEN = frozenset(("fusion", "call", "async-start"))
"""Opcodes whose operands are the parameters of what they call, one by one."""
_INSTRUCTIONS = frozenset(
    """
    instruction_id computation_id name opcode category called target op_name source_file
    source_line shape layout parameter_number is_root
    """.split()
)


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges between rows of instructions, by number of `_KINDS`; of an operand its place."""

    first: Int64Array
    second: Int64Array
    kind: Int64Array
    place: Int64Array

    def take(self, rows: AnyArray) -> Edges:
        """Some of them."""
        return Edges(self.first[rows], self.second[rows], self.kind[rows], self.place[rows])


def answer_graph(
    profile: Profile, number: int, parameters: GraphViewerParameters, output_format: str
) -> bytes:
    """The answer of the types that are about instructions.

    Raises NotFoundError where no instruction and no computation has the name, UsageError where one
    is needed and none is named.
    """
    graph = _Graph(profile, number)
    name = parameters.node_name
    if parameters.type == "custom_call":
        return graph.custom_call(name)
    if parameters.type == "adj_nodes":
        return json.dumps(graph.adjacent(graph.instruction(name))).encode()
    if not name and parameters.type == "graph":
        raise UsageError("graph_viewer: a graph is around a node: say node_name")
    rows, left_out = graph.around(name, parameters.graph_width)
    if output_format == "dot":
        document = graph.document(rows, name, parameters, left_out)
        return draw(document, merge_fusion=parameters.merge_fusion)
    return json.dumps(graph.document(rows, name, parameters, left_out)).encode()


class _Graph:
    """The instructions of a program, and the edges between them."""

    def __init__(self, profile: Profile, number: int) -> None:
        programs = profile.programs()
        if programs is None:
            raise NotFoundError(f"{profile.path}: no compiled programs")
        self.profile, self.number = profile, number
        self.label = programs.label(number)
        self.program_id = programs.program_id(number)
        self.made = programs.read(number, "hlo_instructions", _INSTRUCTIONS)
        self.computations = programs.read(number, "hlo_computations")
        calls = programs.read(number, "hlo_calls")
        self.edges = _edges(
            self.made, self.computations, programs.read(number, "hlo_operands"), calls
        )
        self.names = self.made.names("name")

    def row(self, name: str) -> int | None:
        """The instruction of a name, with ``%`` before it or not; the first of several."""
        code = self.names.code_of(name.removeprefix("%"))
        rows = np.flatnonzero(self.names.codes == code)
        return int(rows[0]) if rows.size else None

    def instruction(self, name: str) -> int:
        """The row of an instruction that must be named."""
        if not name:
            raise UsageError("graph_viewer: no instruction named: say node_name")
        row = self.row(name)
        if row is None:
            raise NotFoundError(f"{self.label}: no instruction {name!r}").quoting(repr(name))
        return row

    def around(self, name: str, width: int) -> tuple[Int64Array, int]:
        """The rows at most ``width`` edges from a node, all of a computation, or all there are; and
        how many nearest ones are left out.
        """
        every = np.arange(self.made.rows, dtype=np.int64)
        if not name:
            return every, 0
        row = self.row(name)
        if row is not None:
            return self._within(row, width)
        known = self.computations.names("name")
        result = np.flatnonzero(known.codes == known.code_of(name.removeprefix("%")))
        if not result.size:
            raise NotFoundError(
                f"{self.label}: no instruction and no computation {name!r}"
            ).quoting(repr(name))
        rows = every[self.made.array("computation_id") == result[0]]
        return rows[:_MOST_NODES], max(0, int(rows.size) - _MOST_NODES)

    def _within(self, row: int, width: int) -> tuple[Int64Array, int]:
        edges = self.edges
        source = np.concatenate([edges.first, edges.second])
        order = np.argsort(source, kind="stable")
        target = np.concatenate([edges.second, edges.first])[order]
        begin = np.searchsorted(source[order], np.arange(self.made.rows + 1))
        seen = np.zeros(self.made.rows, np.bool_)
        seen[row] = True
        frontier = np.array([row], np.int64)
        result = [frontier]
        count = 1
        for _ in range(width):
            starts, sizes = begin[frontier], begin[frontier + 1] - begin[frontier]
            offsets = np.repeat(starts - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
            near = np.unique(target[offsets + np.arange(offsets.size)])
            frontier = near[~seen[near]]
            if not frontier.size:
                break
            seen[frontier] = True
            room = _MOST_NODES - count
            result.append(frontier[:room])
            count += int(frontier.size)
            if count > _MOST_NODES:
                break
        rows = np.sort(np.concatenate(result))
        return rows, count - int(rows.size)

    def adjacent(self, row: int) -> dict[str, list[str]]:
        """The names of what an instruction uses, and of what uses it, in and out of elements of
        tuples.
        """
        is_element = self.made.names("opcode").per_row("get-tuple-element".__eq__, np.bool_)
        plain = self.edges.take(self.edges.kind == 0)
        return {
            "operand_names": self._beyond(row, plain.second, plain.first, is_element),
            "consumer_names": self._beyond(row, plain.first, plain.second, is_element),
        }

    def _beyond(
        self, row: int, source: Int64Array, target: Int64Array, is_element: AnyArray
    ) -> list[str]:
        names: dict[str, None] = {}
        waiting, seen = [row], {row}
        while waiting:
            for each in target[source == waiting.pop()].tolist():
                if not is_element[each]:
                    names.setdefault(self.names[each] or "")
                elif each not in seen:
                    seen.add(each)
                    waiting.append(each)
        return list(names)

    def custom_call(self, name: str) -> bytes:
        """What the back end is given with a custom call."""
        row = self.instruction(name)
        if self.made.names("opcode")[row] != "custom-call":
            raise UsageError(f"graph_viewer: {name!r} is no custom call").quoting(repr(name))
        programs = self.profile.programs()
        parts = hlo.read_module(programs.data(self.number)) if programs else None
        every = (
            made
            for computation in (parts.computations if parts else ())
            for made in computation.instructions
        )
        wanted = self.names[row]
        result = next((made for made in every if made.name == wanted), None)
        return result.backend_config if result is not None else b""

    def document(
        self, rows: Int64Array, name: str, parameters: GraphViewerParameters, left_out: int
    ) -> dict[str, Any]:
        """The answer as JSON values: times none, sizes in bytes, of one execution. Raises as
        `check_repeated`.
        """
        inside = np.zeros(self.made.rows, np.bool_)
        inside[rows] = True
        edges = self.edges.take(inside[self.edges.first] & inside[self.edges.second])
        # Each access to a name is a text of its own: very many of a long one fill any memory.
        rows_of_edges = np.concatenate([edges.first, edges.second])
        known = {row: self.names[row] for row in np.unique(rows_of_edges).tolist()}
        check_repeated([known[row] or "" for row in rows_of_edges.tolist()])
        return {
            "module": self.label,
            "program_id": None if self.program_id is None else str(self.program_id),
            "node": name.removeprefix("%") or None,
            "graph_width": parameters.graph_width if name else None,
            "left_out": left_out,
            "nodes": self._nodes(rows),
            "edges": [
                {"from": known[first], "to": known[second], "kind": _KINDS[kind], "place": place}
                for first, second, kind, place in zip(
                    edges.first.tolist(),
                    edges.second.tolist(),
                    edges.kind.tolist(),
                    edges.place.tolist(),
                    strict=True,
                )
            ],
        }

    def _nodes(self, rows: Int64Array) -> list[dict[str, Any]]:
        from peakline.hlo.row_costs import row_costs

        costs = row_costs(self.profile, self.number)
        made = self.made.take(rows)
        texts = {
            name: made.names(name).to_list()
            for name in ("name", "opcode", "category", "shape", "layout", "called", "target",
                         "op_name", "source_file")
        }  # fmt: skip
        computations = self.computations.names("name")
        numbers = (
            made.array("computation_id").tolist(),
            made.array("source_line").tolist(),
            made.array("is_root").tolist(),
            costs.flops[rows].tolist(),
            costs.bytes_accessed[rows].tolist(),
        )
        return [
            {
                "name": texts["name"][place],
                "opcode": texts["opcode"][place],
                "category": texts["category"][place],
                "computation": computations[computation],
                "shape": (texts["shape"][place] or "") + (texts["layout"][place] or ""),
                "calls": [one for one in (texts["called"][place] or "").split(",") if one],
                "target": texts["target"][place] or None,
                "op_name": texts["op_name"][place] or None,
                "source": _source(texts["source_file"][place], line),
                "is_root": bool(is_root),
                "flops": flops,
                "bytes_accessed": moved,
            }
            for place, (computation, line, is_root, flops, moved) in enumerate(
                zip(*numbers, strict=True)
            )
        ]


def _source(file: str | None, line: int) -> str | None:
    return f"{file}:{line}" if file else None


def _edges(made: Columns, computations: Columns, used: Columns, calls: Columns) -> Edges:
    """All edges: operands and orders, results of called computations, and their arguments."""
    operand, user = used.array("operand_id"), used.array("instruction_id")
    place = used.array("place")
    caller, callee = calls.array("instruction_id"), calls.array("computation_id")
    root = computations.array("root_id")[callee]
    has_root = (root >= 0) & (root < made.rows)
    given = _arguments(made, used, calls)
    return Edges(
        _joined(operand, root[has_root], given[0]),
        _joined(user, caller[has_root], given[1]),
        np.repeat([0, 2, 3], [operand.size, int(has_root.sum()), given[0].size])
        + np.concatenate(
            [used.array("is_control"), np.zeros(int(has_root.sum()) + given[0].size, np.int64)]
        ),
        _joined(place, calls.array("place")[has_root], given[2]),
    )


def _joined(*arrays: AnyArray) -> Int64Array:
    return np.concatenate([np.asarray(array, np.int64) for array in arrays])


def _arguments(made: Columns, used: Columns, calls: Columns) -> Sequence[Int64Array]:
    """From each operand of a fusion or a call to the parameter of what it calls, and its place."""
    passes = made.names("opcode").per_row(_GIVEN.__contains__, np.bool_)
    callee = np.full(made.rows, -1, np.int64)
    caller = calls.array("instruction_id")
    first = (calls.array("place") == 0) & passes[caller]
    callee[caller[first]] = calls.array("computation_id")[first]
    is_parameter = made.names("opcode").per_row("parameter".__eq__, np.bool_)
    rows = np.flatnonzero(is_parameter)
    wide = np.int64(1) << 32
    limit = wide - 1
    keys = made.array("computation_id")[rows] * wide
    keys += np.clip(made.array("parameter_number")[rows], 0, limit)
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    user = used.array("instruction_id")
    operands = np.flatnonzero((callee[user] >= 0) & ~np.asarray(used.array("is_control"), np.bool_))
    place = used.array("place")[operands]
    wanted = callee[user[operands]] * wide + place
    at = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
    result = np.flatnonzero(keys[at] == wanted) if keys.size else np.zeros(0, np.int64)
    return used.array("operand_id")[operands[result]], rows[at[result]], place[result]
