"""Compiled programs as trees: the framework's scopes, and inside an instruction what it calls."""

from __future__ import annotations

import numpy as np

from peakline.arrays import BoolArray, Int64Array, UInt64Array
from peakline.graph.scopes.model import Edges, ScopedGraph
from peakline.graph.scopes.paths import Paths, split_paths, stems_of
from peakline.graph.scopes.tree import BODY, SCOPE, Items, Tree, group_large, nest, without_single
from peakline.hlo.graphs import KIND, labels_of
from peakline.tables import Columns, Names, Profile
from peakline.tables.joins import mix, positions, ranges

_DEEPEST = 32
"""Computations that are called deeper stand beside the entry."""
_SMALL = 8
"""Computations of fewer instructions are shown without scopes."""
_PASSES = frozenset(("fusion", "call", "while", "conditional", "async-start"))
"""Opcodes whose operands are what their computations are given, and whose result is theirs."""
_UNREACHED = "(never called)"
_WANTED = frozenset(
    "name opcode category op_name computation_id parameter_number is_root bytes shape".split()
)


def program_graph(profile: Profile, number: int) -> ScopedGraph:
    """A compiled program with all its computations.

    A computation stands in the first instruction that calls it, the others have links to it.
    """
    programs = profile.programs()
    if programs is None:
        raise IndexError(number)
    table = programs.read(number, "hlo_instructions", _WANTED)
    computations = programs.read(number, "hlo_computations", frozenset(("name",)))
    calls = programs.read(number, "hlo_calls")
    of = table.array("computation_id")
    op_names = table.names("op_name")
    paths = split_paths(op_names.values)
    path = np.asarray(op_names.codes, np.int64)
    skip, is_flat = _skips(paths, path, of, computations)
    caller = _callers(computations, of, calls)
    entry = np.flatnonzero(computations.array("is_entry"))
    whole = int(skip[entry[0]]) if entry.size else 0
    names = table.names("name")
    items = Items.of_nodes(path, np.zeros(table.rows, np.int64), whole)
    named = _hold(items, computations, of, caller, skip)
    scoped = np.flatnonzero(~is_flat[of])
    begin = np.where(path[scoped] < 0, 0, skip[of[scoped]])
    nest(items, paths, scoped, begin, own_scope=False)
    number_of = without_single(items)
    named = {int(number_of[old]): text for old, text in named.items() if number_of[old] >= 0}
    ops = table.names("opcode")
    stem = _stems(items, paths, stems_of(names))
    group_large(items, stem, np.asarray(ops.codes, np.int64))
    tree = Tree(
        table.rows, items.parent, items.kind, items.first, items.path, items.inside, whole,
        items.ends, paths, ops, names, named,
    )  # fmt: skip
    root = _roots(ops, computations, calls, caller)
    none = Names(np.zeros(table.rows, np.int32), [""])
    edges = _edges(programs.read(number, "hlo_operands"), table, calls, caller, root)
    return ScopedGraph(
        profile, labels_of(profile)[number], None, KIND, tree, np.arange(table.rows),
        names, ops, none, table.names("category"), op_names, edges, root, number,
    )  # fmt: skip


def _skips(
    paths: Paths, path: Int64Array, of: Int64Array, computations: Columns
) -> tuple[Int64Array, BoolArray]:
    """Per computation how many parts all paths in it begin with, and whether it has no scopes: what
    is fused and what is small is shown as it is.
    """
    skip = np.zeros(computations.rows, np.int64)
    sizes = np.bincount(of, minlength=computations.rows)
    is_flat = np.asarray(computations.array("is_fusion"), np.bool_) | (sizes < _SMALL)
    order = np.argsort(of, kind="stable")
    bounds = np.searchsorted(of[order], np.arange(computations.rows + 1))
    for one in np.flatnonzero(~is_flat).tolist():
        texts = path[order[bounds[one] : bounds[one + 1]]]
        # A name without scopes, such as an argument's, says nothing of those of the others.
        texts = np.unique(texts[texts >= 0])
        skip[one] = paths.common(texts[paths.counts[texts] > 1])
    return skip, is_flat


def _callers(computations: Columns, of: Int64Array, calls: Columns) -> Int64Array:
    """Per computation the instruction in which it is shown; -1 for the entry and the uncalled.

    It is the first that calls it, those of outer computations before others.
    """
    result = np.full(computations.rows, -1, np.int64)
    reached = np.asarray(computations.array("is_entry"), np.bool_).copy()
    caller, callee = calls.array("instruction_id"), calls.array("computation_id")
    order = np.argsort(of[caller], kind="stable")
    owner = of[caller][order]
    front = np.flatnonzero(reached)
    for _ in range(_DEEPEST):
        begin, end = (np.searchsorted(owner, front, side) for side in ("left", "right"))
        some = order[ranges(begin, end)]
        some = some[~reached[callee[some]]]
        front, first = np.unique(callee[some], return_index=True)
        if not front.size:
            break
        result[front] = caller[some[first]]
        reached[front] = True
    return result


def _hold(
    items: Items, computations: Columns, of: Int64Array, caller: Int64Array, skip: Int64Array
) -> dict[int, str]:
    """Put the computations into the instructions that call them; returns the names of bodies.

    Where an instruction calls several, each has an item of its own.
    """
    size = computations.rows
    holds = np.bincount(of, minlength=size) > 0
    first = np.full(size, of.size)
    np.minimum.at(first, of, np.arange(of.size))
    called = caller >= 0
    together = np.bincount(caller[called], minlength=of.size + 1)
    holder = np.where(called & (together[caller] == 1), caller, -1)
    alone = np.flatnonzero(holder >= 0)
    items.inside[holder[alone]] = skip[alone]
    is_entry = np.asarray(computations.array("is_entry"), np.bool_)
    lost = np.flatnonzero(~called & ~is_entry & holds)
    parent, named = caller.copy(), dict[int, str]()
    if lost.size:
        (scope,) = items.add(
            SCOPE, np.array([-1]), first[lost].min(keepdims=True), np.array([-1]), np.array([0])
        ).tolist()
        parent[lost] = scope
        named[scope] = _UNREACHED
    bodies = np.flatnonzero((holder < 0) & ~is_entry & holds)
    made = items.add(BODY, parent[bodies], first[bodies], np.full(bodies.size, -1), skip[bodies])
    holder[bodies] = made
    texts = computations.names("name")
    named |= {
        item: texts[row] or "" for item, row in zip(made.tolist(), bodies.tolist(), strict=True)
    }
    items.parent[: of.size] = holder[of]
    return named


def _stems(items: Items, paths: Paths, names: Int64Array) -> UInt64Array:
    inside = np.append(items.inside, items.whole)
    begin = inside[items.parent]
    is_scope = (items.kind == SCOPE) & (items.path >= 0)
    some = np.flatnonzero(is_scope)
    result = mix(np.arange(items.size), np.ones(items.size, np.int64))
    result[some] = paths.stem(items.path[some], begin[some], items.inside[some])
    result[: names.size] = mix(names)
    return result


def _roots(ops: Names, computations: Columns, calls: Columns, caller: Int64Array) -> Int64Array:
    """Per instruction that runs a computation shown in it that one's root; -1 elsewhere."""
    result = np.full(len(ops), -1, np.int64)
    who, whom = calls.array("instruction_id"), calls.array("computation_id")
    some = np.flatnonzero((calls.array("place") == 0) & (caller[whom] == who))
    some = some[ops.per_row(_PASSES.__contains__, np.bool_)[who[some]]]
    root = np.where(computations.is_valid("root_id"), computations.array("root_id"), -1)
    result[who[some]] = root[whom[some]]
    return result


def _edges(
    operands: Columns, table: Columns, calls: Columns, caller: Int64Array, root: Int64Array
) -> Edges:
    """The operands, each with the parameter that stands for it inside of its user."""
    source, target = operands.array("operand_id"), operands.array("instruction_id")
    place = operands.array("place")
    control = np.asarray(operands.array("is_control"), np.bool_)
    ops = table.names("opcode")
    passes = ops.per_row(_PASSES.__contains__, np.bool_)[target]
    is_loop = ops.per_row("while".__eq__, np.bool_)[target]
    is_choice = ops.per_row("conditional".__eq__, np.bool_)[target]
    wide = np.int64(1) << 31
    who, whom = calls.array("instruction_id"), calls.array("computation_id")
    key = who * wide + calls.array("place")
    order = np.argsort(key)
    number = np.where(is_choice, place - 1, 0)
    at = positions(key[order], target * wide + number)
    callee = np.where(at >= 0, np.append(whom[order], -1)[at], -1)
    here = passes & ~control & (callee >= 0) & (number >= 0)
    here &= np.append(caller, -1)[callee] == target
    given = np.flatnonzero(ops.per_row("parameter".__eq__, np.bool_))
    own = table.array("computation_id")[given] * wide + np.clip(
        table.array("parameter_number")[given], 0, wide - 1
    )
    order = np.argsort(own, kind="stable")
    wanted = callee * wide + np.where(is_loop | is_choice, 0, place)
    at = positions(own[order], wanted)
    inner = np.where(here & (at >= 0), np.append(given[order], -1)[at], -1)
    result = np.where(control, -1, root[source])
    return Edges(source, target, np.where(control, -1, 0), place, control, inner, result)
