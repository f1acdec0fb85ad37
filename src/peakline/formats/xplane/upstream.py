"""Step grouping by the rules of upstream's profiler.

Sources: ``group_events.cc`` and ``preprocess_xplane.cc`` in ``xla/tsl/profiler/utils`` of
openxla/xla.
"""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray
from peakline.formats.xplane.forest import Forest, GroupedPlane
from peakline.formats.xplane.opening import Opening, Step
from peakline.kernels.xplane_numbers import EventKind, Role


def upstream_groups(
    forest: Forest, level: AnyArray, is_root: AnyArray
) -> tuple[AnyArray, list[Step]]:
    """The group of every node (-1: none), and the steps; ``level`` and ``is_root`` are `levels`.

    Rounds of a loop are the steps where there are any.
    """
    opening = Opening(forest, level, is_root)
    is_loop = forest.loop_roots.size > 0
    roots = forest.loop_roots if is_loop else ordinary_roots(forest, level, is_root)
    steps = opening.steps(opening.open(roots, 0, loop=is_loop), 0)
    steps += lock_step(opening, len(steps))
    return opening.groups[: forest.nodes], steps


def levels(forest: Forest) -> tuple[AnyArray, AnyArray]:
    """The level of every node as a root, and which nodes are roots."""
    level, is_root = np.zeros(forest.nodes, np.int32), np.zeros(forest.nodes, np.bool_)
    for plane in forest.planes:
        if plane.tpu is not None:
            continue
        here = slice(plane.first_node, plane.first_node + plane.nodes)
        traced = forest.kind[here] == EventKind.TRACE_CONTEXT
        level[here][traced], is_root[here][traced] = 1, True
        for kind, value in ((EventKind.PROCESS_BATCH, 2), (EventKind.BATCHING_SESSION_RUN, 1)):
            named = forest.kind[here] == kind
            level[here][named], is_root[here][named] = value, True
    marked = forest.attrs.last(Role.IS_ROOT)
    fixed = np.isin(
        forest.kind[marked.node], (EventKind.PROCESS_BATCH, EventKind.BATCHING_SESSION_RUN)
    )
    marked = marked.only(~fixed & ~forest.on_tpu(marked.node))
    level[marked.node] = marked.signed.astype(np.int32)
    is_root[marked.node] = True
    return level, is_root


def ordinary_roots(forest: Forest, level: AnyArray, is_root: AnyArray) -> AnyArray:
    """The roots of hosts that the pipeline of the input did not run, in the order in which they
    open groups.
    """
    node = forest.root_node[is_root[forest.root_node]]
    begin = forest.root_begin[is_root[forest.root_node]]
    ids = forest.attrs.first(Role.ID)
    has, place = ids.at(node)
    run_by_data = np.zeros(node.size, np.bool_)
    run_by_data[has] = np.isin(ids.signed[place[has]], forest.excluded)
    node, begin = node[~run_by_data], begin[~run_by_data]
    order = np.lexsort((node, begin, -level[node].astype(np.int64)))
    return node[order]


def lock_step(opening: Opening, first: int) -> list[Step]:
    """Without a host root for any TensorCore, the k-th step of every core is one group."""
    steps: dict[int, Step] = {}
    for _, mine in lone_cores(opening, first):
        opened = opening.steps(opening.open(mine, first), first)
        steps.update((step.step_id, step) for step in opened)
    return list(steps.values())


def lone_cores(opening: Opening, first: int) -> list[tuple[GroupedPlane, AnyArray]]:
    """The TensorCores with their steps, if no host root reached any of these."""
    cores = [p for p in opening.forest.planes if p.tpu is not None and p.tpu.is_tensor_core]
    every = [(p, p.first_node + np.arange(p.nodes, dtype=np.int32)) for p in cores]
    nodes = np.concatenate([np.zeros(0, np.int32), *(mine for _, mine in every)])
    if not nodes.size or opening.open(nodes, first, check=True).size < nodes.size:
        return []
    return every
