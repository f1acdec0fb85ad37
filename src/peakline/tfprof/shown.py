"""What a view shows: rows in printing order with their own and their total measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.tfprof.forest import Forest
from peakline.tfprof.model import OpNodes
from peakline.tfprof.options import EVERYTHING, MEASURES, ORDERS, Options, matches_any


def format_number(value: int) -> str:
    """A count."""
    return _scaled(value, "", "k", "m", "b")


def format_time(micros: int) -> str:
    """Microseconds."""
    return _scaled(micros, "us", "ms", "sec")


def format_memory(size: int) -> str:
    """Bytes."""
    return _scaled(size, "B", "KB", "MB")


def _scaled(value: int, unit: str, *larger: str) -> str:
    if value < 1000:
        return f"{value}{unit}"
    power = 1
    while power < len(larger) and value >= 1000 ** (power + 1):
        power += 1
    return f"{value / 1000**power:.2f}{larger[power - 1]}"


ROOT = "_TFProfRoot"

_OF_A_NODE = ("params", "float_ops")
"""What only a row's own node has, in views whose rows are nodes."""


@dataclass(frozen=True, eq=False)
class Tree:
    """The rows of a view before anything is hidden.

    ``own`` and ``accounted`` are per row of ``forest``; the root's are zero and False. ``members``
    gives the nodes grouped in a row, for views whose rows are no nodes themselves.
    """

    forest: Forest
    names: Sequence[str]
    own: Int64Array
    accounted: BoolArray
    totals: Int64Array
    members: Callable[[int], Sequence[int]] | None = None

    def take(self, forest: Forest, rows: Int64Array) -> Tree:
        """The same for fewer rows, or other parents."""
        return replace(
            self,
            forest=forest,
            names=[self.names[row] for row in rows.tolist()],
            own=self.own[rows],
            accounted=self.accounted[rows],
            totals=self.totals[rows],
        )


@dataclass(frozen=True, eq=False)
class Shown:
    """A view as it is printed: the root first, children after their parents, ``depth`` 0 the root.

    ``item`` is the node that a row is, -1 for none. ``members`` are the nodes that a row groups
    (views op and code), by row.
    """

    nodes: OpNodes
    names: Sequence[str]
    depth: Int64Array
    item: Int64Array
    own: Int64Array
    totals: Int64Array
    accounted: BoolArray
    members: Sequence[Sequence[int]] | None = None

    @property
    def rows(self) -> int:
        """The number of rows, the root included."""
        return len(self.names)


def show(nodes: OpNodes, tree: Tree, options: Options) -> Shown:
    """Apply tfprof's filters and order to a tree whose totals are there."""
    is_grouped = tree.members is not None
    if options.start_name_regexes != EVERYTHING:
        tree = tree.take(
            *tree.forest.below_first(matches_any(tree.names, options.start_name_regexes))
        )
    depth = tree.forest.depth() + 1
    trimmed = matches_any(tree.names, options.trim_name_regexes)
    if is_grouped:
        # In the code view a trimmed row goes too; in the others only what is below it.
        inside = ~trimmed & (depth <= options.max_depth)
        reached = tree.forest.reached(inside | (depth == 1), inside)
    else:
        passes = ~trimmed & (depth <= options.max_depth)
        reached = tree.forest.reached(passes, np.ones(tree.forest.rows, np.bool_))
    shown = (
        reached
        & (depth <= options.max_depth)
        & passes_minima(options, tree.totals, tree.totals if is_grouped else tree.own)
        & passes_names(options, tree.names)
    )
    if not is_grouped:
        shown &= tree.own[:, MEASURES.index("run_count")] >= options.min_occurrence
    tree = tree.take(*tree.forest.keep(shown))
    if options.account_displayed_op_only and not is_grouped:
        own = tree.own.copy()
        own[0, MEASURES.index("definition_count")] = 1
        tree = replace(tree, totals=tree.forest.totals(own))
    sizes = None
    if tree.members is not None:
        sizes = [len(tree.members(row)) for row in tree.forest.item.tolist()]
    key = sort_key(options.order_by, tree.names, tree.totals, sizes)
    tree = tree.take(*tree.forest.sort(key))
    members = None
    if tree.members is not None:
        members = [tree.members(row) for row in tree.forest.item.tolist()]
    return Shown(
        nodes=nodes,
        names=tree.names,
        depth=tree.forest.depth(),
        item=np.full(tree.forest.rows, -1, np.int64) if is_grouped else tree.forest.item,
        own=tree.own,
        totals=tree.totals,
        accounted=tree.accounted,
        members=members,
    )


def passes_minima(options: Options, totals: Int64Array, other: Int64Array) -> BoolArray:
    """Rows that reach the minima; ``other`` is what parameters and operations are taken from."""
    passes = np.ones(len(totals), np.bool_)
    for name, measure in ORDERS.items():
        measures = other if name in _OF_A_NODE else totals
        passes &= measures[:, MEASURES.index(measure)] >= getattr(options, f"min_{name}")
    return passes


def passes_names(options: Options, names: Sequence[str]) -> BoolArray:
    """Rows that are to be shown by name, and not hidden."""
    return matches_any(names, options.show_name_regexes) & ~matches_any(
        names, options.hide_name_regexes
    )


def sort_key(
    order_by: str, names: Sequence[str], totals: Int64Array, sizes: Sequence[int] | None = None
) -> Callable[[int], str | int]:
    """What to sort rows by: the name, else a number that is least where the measure is largest.

    ``sizes`` are what ``occurrence`` means, for views that have it. Rows with equal keys keep
    their order.
    """
    if order_by in ORDERS:
        keys: list[int] = (-totals[:, MEASURES.index(ORDERS[order_by])]).tolist()
        return keys.__getitem__
    if order_by == "occurrence" and sizes is not None:
        return lambda row: -sizes[row]
    return names.__getitem__
