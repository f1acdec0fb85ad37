"""A graph with its tree of scopes, its edges, and what its nodes cost."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.graph.scopes.tree import Tree
from peakline.tables import Names, Profile
from peakline.tables.joins import ranges

if TYPE_CHECKING:
    from peakline.graph.scopes.measures import Measures
    from peakline.graph.scopes.sizes import Sizes
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
        from peakline.graph.scopes.measures import measures_of

        return measures_of(self)

    @property
    def knows_sizes(self) -> bool:
        """Whether `sizes` has been made already."""
        return "sizes" in self.__dict__

    @cached_property
    def sizes(self) -> Sizes:
        """Bytes and shapes of what goes along the edges."""
        from peakline.graph.scopes.sizes import sizes_of

        return sizes_of(self)
