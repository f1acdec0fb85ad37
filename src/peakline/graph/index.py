"""Nodes and edges of every graph of a profile by number, for analyses that follow edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from peakline.arrays import Int64Array
from peakline.tables import Profile
from peakline.tables.columns import Columns, Names
from peakline.tables.joins import positions


class Strings:
    """One numbering of strings for columns whose dictionaries differ."""

    __retained__ = "values _codes _known"

    def __init__(self) -> None:
        self.values: list[str] = []
        """The strings by number."""
        self._codes: dict[str, int] = {}
        self._known: dict[int, tuple[Sequence[str], Int64Array]] = {}

    def codes(self, names: Names) -> Int64Array:
        """The number of every row's string; -1 for null."""
        values = names.values
        known = self._known.get(id(values))
        if known is None or known[1].size != len(values) + 1:
            mapping = self._mapping(values)
            numbers = self._codes
            self.values.extend(islice(numbers, len(self.values), None))
            # The last entry answers code -1; holding the dictionary keeps its id its own.
            known = self._known[id(values)] = (values, np.append(mapping, -1))
        return known[1][names.codes]

    def _mapping(self, values: Sequence[str]) -> Int64Array:
        """The number of each string; new ones get the next numbers."""
        numbers, known = self._codes, len(self._codes)
        if known < len(values):
            more = dict(zip(values, range(known, known + len(values)), strict=True))
            if len(more) == len(values) and numbers.keys().isdisjoint(more):
                # The first large column most often has new strings alone: half the time of the
                # look-ups below.
                self._codes = {**numbers, **more} if numbers else more
                return np.arange(known, known + len(values))
        return np.fromiter(
            (numbers.setdefault(value, len(numbers)) for value in values), np.int64, len(values)
        )

    def code(self, value: str) -> int:
        """The number of ``value``; -2 when no column has it."""
        return self._codes.get(value, -2)


_LONGEST = 500


def short_name(name: str) -> str:
    """A name to be shown, of at most so many characters: its begin and its end say most.

    One may be that of very many rows.
    """
    if len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST // 2]}...{name[3 - _LONGEST // 2 :]}"


@dataclass(frozen=True)
class Scope:
    """Where names must be unique: a graph, or the body of one of its functions."""

    graph: str
    function: str | None

    def path(self, node: str) -> str:
        """A node's name as it is shown, inside a function body after the function's."""
        shown = short_name(node)
        return shown if self.function is None else f"{short_name(self.function)}/{shown}"


class GraphIndex:
    """Tables ``nodes`` and ``edges`` with numbers for names and scopes.

    ``arguments`` is table ``function_arguments``: inside a body an edge may begin at an input.
    Arrays are one number per row of the table they are named after.
    """

    __retained__ = (
        "nodes edges arguments strings inputs scopes _scope_of node_scope edge_scope input_scope "
        "node_name edge_source edge_target input_name _sorted_nodes _sorted_inputs source_row "
        "target_row"
    )

    def __init__(self, nodes: Columns, edges: Columns, arguments: Columns) -> None:
        self.nodes, self.edges, self.arguments = nodes, edges, arguments
        self.strings = Strings()
        inputs = self.arguments.names("role")
        self.inputs = arguments.take(inputs.codes == inputs.code_of("input"))
        self.scopes: list[Scope] = []
        """The scopes by number."""
        self._scope_of: dict[int, int] = {}
        self.node_scope = self.scopes_of(nodes)
        self.edge_scope = self.scopes_of(edges)
        self.input_scope = self.scopes_of(self.inputs)
        self.node_name = self.strings.codes(nodes.names("name"))
        self.edge_source = self.strings.codes(edges.names("source"))
        self.edge_target = self.strings.codes(edges.names("target"))
        self.input_name = self.strings.codes(self.inputs.names("name"))

    def scopes_of(self, table: Columns) -> Int64Array:
        """The scope of every row of a table with columns ``graph`` and ``function``."""
        graph = self.strings.codes(table.names("graph"))
        function = self.strings.codes(table.names("function"))
        distinct, codes = np.unique((graph << 32) | (function + 1), return_inverse=True)
        values = self.strings.values
        numbers = np.zeros(distinct.size, np.int64)
        for at, pair in enumerate(distinct.tolist()):
            if pair not in self._scope_of:
                self._scope_of[pair] = len(self.scopes)
                inside = (pair & 0xFFFFFFFF) - 1
                self.scopes.append(
                    Scope(values[pair >> 32], None if inside < 0 else values[inside])
                )
            numbers[at] = self._scope_of[pair]
        return numbers[codes]

    def path(self, node: int) -> str:
        """The name of the node in this row as it is shown, as `Scope.path`."""
        name = self.nodes.names("name")[node] or ""
        return self.scopes[int(self.node_scope[node])].path(name)

    @cached_property
    def _sorted_nodes(self) -> tuple[Int64Array, Int64Array]:
        return _sorted(self.node_scope, self.node_name)

    @cached_property
    def _sorted_inputs(self) -> tuple[Int64Array, Int64Array]:
        return _sorted(self.input_scope, self.input_name)

    def find_nodes(self, scope: Int64Array, name: Int64Array) -> Int64Array:
        """Rows of ``nodes``: the first of that name in the scope, -1 for none."""
        return _find(self._sorted_nodes, scope, name)

    def find_inputs(self, scope: Int64Array, name: Int64Array) -> Int64Array:
        """Rows of `inputs`: the function's argument of that name, -1 for none."""
        return _find(self._sorted_inputs, scope, name)

    @cached_property
    def source_row(self) -> Int64Array:
        """Per edge the row of the node it comes from; -1 when there is none.

        In a body, what names no output is an argument, even where a node has the same name.
        """
        result = self.find_nodes(self.edge_scope, self.edge_source)
        control = self.edges.array("is_control").astype(np.bool_)
        plain = ~control & (self.edges.names("source_argument").codes < 0)
        result[plain & (self.edges.names("function").codes >= 0)] = -1
        return result

    @cached_property
    def target_row(self) -> Int64Array:
        """Per edge the row of the node it goes to."""
        return self.find_nodes(self.edge_scope, self.edge_target)


def _keys(scope: Int64Array, name: Int64Array) -> Int64Array:
    return (scope << 32) | (name & 0xFFFFFFFF)


def _sorted(scope: Int64Array, name: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The keys of a table's rows, ascending, and the rows in that order."""
    keys = _keys(scope, name)
    order = np.argsort(keys, kind="stable")
    return keys[order], order


def _find(table: tuple[Int64Array, Int64Array], scope: Int64Array, name: Int64Array) -> Int64Array:
    known, order = table
    result = np.append(order, -1)[positions(known, _keys(scope, name))]
    result[name < 0] = -1
    return result


def index_of(profile: Profile) -> GraphIndex:
    """The index of all graphs of ``profile``."""
    tables = ("nodes", "edges", "function_arguments")
    return GraphIndex(*map(profile.columns_or_empty, tables))
