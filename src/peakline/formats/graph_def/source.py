"""The graphs of one file: where they lie, their nodes and functions, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.kernels.graph_fields import field_spans, last_of_key
from peakline.tables.columns import Names
from peakline.wire import Buffer, Damage, Decoded, Interner, Plan, Spans, WireTable, decode

_FEW = 64
_LIBRARY = 2
"""GraphDef.library."""


@dataclass(frozen=True)
class GraphSpan:
    """One GraphDef: ``buffer[start : start + length]``, and what the tables call it."""

    name: str
    kind: str
    start: int
    length: int
    tags: str = ""


@dataclass(frozen=True, eq=False)
class NodePart:
    """Nodes of graphs, or of function bodies (then ``function`` holds codes, else -1)."""

    decoded: Decoded
    path: str
    graph: AnyArray
    function: Int32Array

    def table(self, below: str = "") -> WireTable:
        """The nodes, or the table of what is named ``below`` them."""
        return self.decoded[f"{self.path}.{below}" if below else self.path]


def submessages(
    buffer: Buffer, starts: Sequence[int] | AnyArray, lengths: Sequence[int] | AnyArray, field: int
) -> tuple[Int64Array, Spans, int]:
    """Where a message field lies in each message: parent row, span, and missing bytes.

    Unlike a span of a plan, one that the end of its message cuts off counts as far as it goes.
    The last is by how much it was cut.
    """
    begin = np.ascontiguousarray(starts, np.int64)
    end = begin + np.ascontiguousarray(lengths, np.int64)
    room = _FEW
    while True:
        parent, start, length = (np.zeros(room, np.int64) for _ in range(3))
        count, missing = field_spans(buffer, begin, end, field, parent, start, length)
        if count <= room:
            return parent[:count], Spans(start[:count], length[:count]), int(missing)
        room = int(count)


def broken_fields(buffer: Buffer, message: str, field: str, spans: Spans | None = None) -> Damage:
    """Where `submessages` ends within messages that hold such a ``field``, other than where the end
    of the file cuts it off.
    """
    harm = decode(buffer, Plan(schema.shape(message), (field,)), spans).damage
    return replace(harm, places=harm.places - bool(harm.missing_bytes), missing_bytes=0)


def spread(table: WireTable, column: str, rows: int) -> Spans:
    """A span column of a singular message by its parent's row; empty where it was absent."""
    result = table.spans(column)
    start, length = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    start[table.parent], length[table.parent] = result.start, result.length
    return Spans(start, length)


def last_entries(parents: Int32Array, codes: AnyArray, most: int) -> BoolArray:
    """Which entries of maps count: of one parent's entries with one key (code), the last."""
    keep = np.zeros(parents.size, np.bool_)
    last_of_key(
        np.ascontiguousarray(parents, np.int64),
        np.ascontiguousarray(codes, np.int64),
        np.full(most, -1, np.int64),
        keep,
    )
    return keep


def pair_key(row: AnyArray, code: AnyArray) -> Int64Array:
    """One number for a row and a code, to look up by."""
    return (row.astype(np.int64) << 32) | code.astype(np.int64)


def look_up(keys: Int64Array, values: AnyArray, wanted: Int64Array) -> Int64Array:
    """The value (not negative) of the last entry with each wanted key, -1 without one."""
    result = np.full(wanted.size, -1, np.int64)
    if keys.size:
        order = np.argsort(keys, kind="stable")
        at = np.searchsorted(keys[order], wanted, side="right") - 1
        entry = order[np.maximum(at, 0)]
        hit = (at >= 0) & (keys[entry] == wanted)
        result[hit] = values[entry[hit]]
    return result


def places(parents: Int32Array) -> Int64Array:
    """The place of every row among those of its parent; parents ascend."""
    return np.arange(parents.size) - np.searchsorted(parents, parents, side="left")


@cache
def _plan(message: str, paths: tuple[str, ...], containers: tuple[str, ...]) -> Plan:
    return Plan(schema.shape(message), paths, containers=containers)


class GraphSource:
    """The graphs at ``graphs`` in ``buffer``: decodes what the tables need of them, holds the
    strings that they share, and counts damage.
    """

    __retained__ = "buffer graphs names ops devices attrs _harm _graph_spans _libraries"

    def __init__(self, buffer: Buffer, graphs: Sequence[GraphSpan]) -> None:
        self.buffer = buffer
        self.graphs = tuple(graphs)
        self.names = Interner()
        """Names of nodes, arguments and functions."""
        self.ops, self.devices, self.attrs = Interner(), Interner(), Interner()
        self._cut = Damage()
        self._harm: dict[str, Damage] = {}

    @property
    def damage(self) -> Damage:
        """What the reads so far could not read, each place once however often it was met; so does
        the end of a cut file.
        """
        return sum(self._harm.values(), self._cut)

    def note(self, part: str, damage: Damage) -> None:
        """Keep the worst damage found in each part, however often it is read."""
        if not damage:
            return
        at_end = (
            damage.first_offset + damage.skipped_bytes == self.buffer.size
            or self._overlong_at(damage.first_offset, damage.missing_bytes)
        )
        if damage.missing_bytes or at_end:
            first = [d.first_offset for d in (self._cut, damage) if d.first_offset >= 0]
            self._cut = Damage(
                1,
                max(self._cut.skipped_bytes, damage.skipped_bytes),
                min(first, default=-1),
                max(self._cut.missing_bytes, damage.missing_bytes),
            )
            if at_end:
                return
            damage = replace(damage, places=damage.places - 1, missing_bytes=0)
        if damage.places > self._harm.get(part, Damage()).places:
            self._harm[part] = damage

    def _overlong_at(self, offset: int, missing: int) -> bool:
        """Whether the field at ``offset`` is what the end of the file cuts off.

        Then whatever else was met behind it comes of the same cut.
        """
        head = self.buffer[offset : offset + 16].tobytes()
        numbers, value, shift = [], 0, 0
        for place, byte in enumerate(head, 1):
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                numbers.append((value, place))
                value = shift = 0
        if not missing or len(numbers) < 2:
            return False
        length, header = numbers[1]
        return offset + header + length == self.buffer.size + missing

    @cached_property
    def _graph_spans(self) -> Spans:
        return Spans(
            np.array([graph.start for graph in self.graphs], np.int64),
            np.array([graph.length for graph in self.graphs], np.int64),
        )

    @cached_property
    def _libraries(self) -> tuple[Int64Array, Spans]:
        """The function libraries: graph and span of each."""
        return self.below(_LIBRARY)

    def below(self, field: int) -> tuple[Int64Array, Spans]:
        """The graphs' sub-messages ``field``: graph and span of each."""
        spans = self._graph_spans
        parent, result, missing = submessages(self.buffer, spans.start, spans.length, field)
        if missing and len(result):
            end = int(result.start[-1] + result.length[-1])
            if end == self.buffer.size:
                self.note("", Damage(1, 0, int(result.start[-1]), missing))
        return parent, result

    def decode_graphs(self, *paths: str) -> Decoded:
        """Fields of GraphDef; the parent of the root's row is the graph."""
        return self._decoded("graph", _plan("tensorflow.GraphDef", paths, ("",)), self._graph_spans)

    def decode_libraries(self, *paths: str) -> tuple[Decoded, Int64Array]:
        """Fields of FunctionDefLibrary, and the graph of every library (the root's rows)."""
        graph, spans = self._libraries
        containers = ("", "function") if any(p.startswith("function.") for p in paths) else ("",)
        plan = _plan("tensorflow.FunctionDefLibrary", paths, containers)
        return self._decoded("library", plan, spans), graph

    def decode_below(
        self, part: str, message: str, paths: tuple[str, ...], spans: Spans
    ) -> Decoded:
        """Messages at ``spans``, each a root; damage is counted in ``part``."""
        return self._decoded(part, _plan(message, paths, ("",)), spans)

    def _decoded(self, part: str, plan: Plan, spans: Spans) -> Decoded:
        decoded = decode(self.buffer, plan, spans)
        self.note(part, decoded.damage)
        return decoded

    def function_codes(self, decoded: Decoded) -> Int32Array:
        """The name of every function (``signature.name`` must be decoded)."""
        rows = decoded["function"].rows
        return self.names.add(self.buffer, spread(decoded["function.signature"], "name", rows))

    def node_parts(self, *paths: str) -> list[NodePart]:
        """The nodes with these fields: those of the graphs, then those of function bodies."""
        top = self.decode_graphs(*(f"node.{path}" for path in paths))
        nodes = top["node"]
        parts = [NodePart(top, "node", nodes.parent, np.full(nodes.rows, -1, np.int32))]
        if len(self._libraries[1]):
            inside, graph = self.decode_libraries(
                "function.signature.name", *(f"function.node_def.{path}" for path in paths)
            )
            above = inside["function.node_def"].parent
            functions = self.function_codes(inside)
            parts.append(
                NodePart(
                    inside,
                    "function.node_def",
                    graph[inside["function"].parent[above]],
                    functions[above],
                )
            )
        return parts

    def one_table(
        self, parts: Sequence[NodePart], columns: Callable[[NodePart], dict[str, AnyArray]]
    ) -> dict[str, AnyArray]:
        """One table of what ``columns`` gives per part (with ``graph``), graph by graph."""
        made = [columns(part) for part in parts]
        made = [one for at, one in enumerate(made) if at == 0 or one["graph"].size]
        if len(made) == 1:
            return made[0]
        joined = {name: np.concatenate([one[name] for one in made]) for name in made[0]}
        if len(self.graphs) > 1:
            order = np.argsort(joined["graph"], kind="stable")
            joined = {name: column[order] for name, column in joined.items()}
        return joined

    def graph_names(self, graph: AnyArray) -> Names:
        """The column ``graph``."""
        return Names(graph.astype(np.int32), [one.name for one in self.graphs])
