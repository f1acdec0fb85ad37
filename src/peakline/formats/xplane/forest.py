"""What can be grouped into steps: the nodes of all planes, and what connects them.

Only nodes take part: events with a context, a root mark or another stat that matters, and memory
events; every other event has the group of the nearest node around it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray
from peakline.deadline import check_deadline
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.attributes import Attributes, Picked
from peakline.formats.xplane.contexts import Ends, NodeTimes, Several, by_time, connect
from peakline.formats.xplane.line_parts import LineFacts
from peakline.formats.xplane.lines import PlanePass
from peakline.formats.xplane.names import HOST_PLANE
from peakline.formats.xplane.outline import PlaneOutline
from peakline.formats.xplane.store import Found
from peakline.formats.xplane.tpu import TpuPlane
from peakline.kernels.event_forest import adjacency
from peakline.kernels.xplane_numbers import EventKind, Role
from peakline.tables.joins import mix


class PrunedTooMuch(Exception):
    """What was left out may matter: read the planes again without pruning."""


class RepeatedIds(Exception):
    """Ids are produced in several steps: read all planes again, with the times of the nodes."""


@dataclass(frozen=True, eq=False)
class GroupedPlane:
    """One plane's part of the forest; its nodes are numbered from ``first_node``."""

    plane: PlaneOutline
    first_node: int
    nodes: int
    attrs: Attributes
    kinds: AnyArray
    producers: Ends
    consumers: Ends
    headers: list[LineFacts]
    parts: Found | None = None
    tpu: TpuPlane | None = None
    pruned: bool = False
    times: tuple[AnyArray, AnyArray, AnyArray] | None = None
    """Begin, length and thread of every node, where they were read."""

    @classmethod
    def of_pass(cls, plane: PlaneOutline, first_node: int, result: PlanePass) -> GroupedPlane:
        """A plane whose every event takes part."""
        got = result.found
        line = got.get("time_line") + np.int32(plane.first_line)
        times = got.get("time_begin"), got.get("time_length"), line
        return cls(
            plane, first_node, result.nodes, Attributes.of(got), got.get("node_kind"),
            _inside(Ends(got.get("producer_node"), got.get("producer_key"))),
            Ends(got.get("consumer_node"), got.get("consumer_key")),
            result.headers, got, pruned=result.pruned, times=times if result.timed else None,
        )  # fmt: skip

    @classmethod
    def of_tpu(cls, plane: PlaneOutline, first_node: int, tpu: TpuPlane) -> GroupedPlane:
        """A TPU's plane, whose steps take part for everything on it."""
        return cls(
            plane, first_node, tpu.steps, tpu.attrs, tpu.kinds, tpu.producers, tpu.consumers,
            [line.header for line in tpu.lines], tpu=tpu, times=tpu.times(),
        )  # fmt: skip

    def holds(self, nodes: AnyArray) -> AnyArray:
        """Which of ``nodes`` are this plane's."""
        return (nodes >= self.first_node) & (nodes < self.first_node + self.nodes)


class Forest:
    """Nodes and edges of all planes."""

    def __init__(
        self, file: SourceFile, planes: list[GroupedPlane], nodes: int, attrs: Attributes
    ) -> None:
        self.file, self.planes, self.nodes, self.attrs = file, planes, nodes, attrs
        self.kind = _joined([plane.kinds for plane in planes])
        parents = [
            _shifted(plane.parts.get("node_parent"), plane.first_node)
            if plane.parts is not None
            else np.full(plane.nodes, -1, np.int32)
            for plane in planes
        ]
        self.parent = _joined(parents)
        roots = [plane for plane in planes if plane.parts is not None]

        def of_roots(name: str) -> AnyArray:
            return _joined([p.parts.get(f"root_{name}") for p in roots if p.parts is not None])

        self.root_node = _joined(
            [p.parts.get("root_node") + np.int32(p.first_node) for p in roots if p.parts]
        )
        self.root_begin, self.root_length = of_roots("begin"), of_roots("length")
        self.root_metadata, self.root_line = of_roots("metadata"), of_roots("line")
        self.excluded = self._tf_data_ids()
        self.times: NodeTimes | None = None
        """Joins are made by these where ids repeat."""
        self.step: AnyArray | None = None
        """The group of every node (-1: none), where a first round left joins open."""
        self.wants_links = False
        """Whether it matters which groups hand work to which."""
        self.connect()
        check_deadline()
        self.loop_roots = self._connect_loops()

    def connect(self) -> None:
        """Make the edges, by the times of the nodes where these are known."""
        self.tails: list[AnyArray] = []
        self.heads: list[AnyArray] = []
        self.several: list[Several] = []
        self.left_open = 0
        """How many could not be joined by time."""
        self._edges_of: tuple[tuple[AnyArray, AnyArray], tuple[AnyArray, AnyArray]] | None = None
        for connect_some in (self._connect_by_stats, self._connect_contexts):
            check_deadline()
            connect_some()

    def _tf_data_ids(self) -> AnyArray:
        ids = self.attrs.first(Role.ID)
        return np.unique(ids.only(self.kind[ids.node] == EventKind.TF_DATA_RUN).signed)

    def _edges(self, tail: AnyArray, head: AnyArray) -> None:
        self.tails.append(tail.astype(np.int32, copy=False))
        self.heads.append(head.astype(np.int32, copy=False))

    def _connect_by_stats(self) -> None:
        """Executors to the iterators of the same iteration, launches to executions."""
        ids, iters = self.attrs.first(Role.ID), self.attrs.first(Role.ITER_NUM)
        has, place = iters.at(ids.node)
        node, first = ids.node[has], ids.unsigned[has]
        second = iters.unsigned[place[has]]
        kind = self.kind[node]
        parents = kind == EventKind.EXECUTOR
        for child_kind in (EventKind.ITERATOR_GET_NEXT, EventKind.ITERATOR_GET_NEXT_OPTIONAL):
            children = kind == child_kind
            if parents.any() and children.any():
                self._join(
                    node[parents], [first[parents], second[parents]],
                    node[children], [first[children], second[children]],
                )  # fmt: skip
        launched = self.attrs.first(Role.CORRELATION_ID)
        if launched.node.size:
            kind = self._launch_kind(launched)
            value = launched.unsigned
            parents, children = kind == EventKind.KERNEL_LAUNCH, kind == EventKind.KERNEL_EXECUTE
            self._join(
                launched.node[parents], [value[parents]], launched.node[children], [value[children]]
            )

    def _launch_kind(self, launched: Picked) -> AnyArray:
        """A correlation id makes a launch (on the host) or an execution of an unnamed event."""
        kind = self.kind[launched.node].copy()
        plain = np.isin(kind, (EventKind.OTHER, EventKind.START_REGION, EventKind.STOP_REGION))
        on_host = np.zeros(kind.size, np.bool_)
        for plane in self.planes:
            if plane.plane.name == HOST_PLANE:
                on_host |= plane.holds(launched.node)
        kind[plain & on_host] = EventKind.KERNEL_LAUNCH
        kind[plain & ~on_host] = EventKind.KERNEL_EXECUTE
        return kind

    def _join(
        self,
        parents: AnyArray,
        parent_key: list[AnyArray],
        children: AnyArray,
        child_key: list[AnyArray],
    ) -> None:
        """Connect nodes with equal keys; of several parents the last one counts, or by time."""
        if not (parents.size and children.size):
            return
        keys, wanted = mix(*parent_key), mix(*child_key)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        if self.times is not None:
            _, number = np.unique(np.concatenate([keys, wanted]), return_inverse=True)
            makes = Several(parents[order], number[: keys.size])
            self._join_by_time(makes, Several(children, number[keys.size :]), self.times)
            return
        if (keys[1:] == keys[:-1]).any():
            self.several.append(Several(parents[order], keys))
        at = np.searchsorted(keys, wanted, side="right") - 1
        result = (at >= 0) & (keys[np.maximum(at, 0)] == wanted)
        self._edges(parents[order[at[result]]], children[result])

    def _join_by_time(self, parents: Several, children: Several, times: NodeTimes) -> None:
        edges, left_open = by_time(parents, children, times, self.step)
        self._edges(*edges)
        self.left_open += left_open

    def _connect_contexts(self) -> None:
        producers = [plane.producers.shifted(plane.first_node) for plane in self.planes]
        consumers = [plane.consumers.shifted(plane.first_node) for plane in self.planes]
        pruned = any(plane.pruned for plane in self.planes)
        edges = connect(
            Ends.join(producers), Ends.join(consumers), self.kind,
            pruned=pruned, once=self.times is not None,
        )  # fmt: skip
        if edges is None:
            raise PrunedTooMuch
        self.contexts = edges.count
        self._edges(edges.tail, edges.head)
        if self.times is not None:
            self._join_by_time(edges.several, edges.consumers, self.times)
        elif edges.several.node.size:
            self.several.append(edges.several)
        self.own_parent = np.zeros(self.nodes, np.bool_)
        self.own_parent[edges.own_parent] = True

    def _connect_loops(self) -> AnyArray:
        """Iterations of loops in one executor: the first event of each leads the others."""
        ids, iters = self.attrs.first(Role.ID), self.attrs.first(Role.ITER_NUM)
        ids = ids.only(self.kind[ids.node] == EventKind.EXECUTOR)
        has, place = iters.at(ids.node)
        node, loop, iteration = ids.node[has], ids.signed[has], iters.signed[place[has]]
        keep = ~np.isin(loop, self.excluded)
        node, loop, iteration = node[keep], loop[keep], iteration[keep]
        looping = np.isin(loop, loop[iteration != 0])
        node, loop, iteration = node[looping], loop[looping], iteration[looping]
        if not node.size:
            return node
        begin = self.root_begin[np.searchsorted(self.root_node, node)]
        order = np.lexsort((node, begin, iteration, loop))
        node, loop, iteration, begin = node[order], loop[order], iteration[order], begin[order]
        leads = np.concatenate(
            [[True], (loop[1:] != loop[:-1]) | (iteration[1:] != iteration[:-1])]
        )
        leader = node[np.flatnonzero(leads)[np.cumsum(leads) - 1]]
        self._edges(leader[~leads], node[~leads])
        roots = node[leads]
        in_time: AnyArray = roots[np.argsort(begin[leads], kind="stable")]
        return in_time

    def connect_by_time(self) -> None:
        """Make the edges anew, by time. Raises RepeatedIds where the times were not read.

        Rounds of a loop have none then: that one has many executors is no repetition.
        """
        times = [plane.times for plane in self.planes]
        known = [time for time in times if time is not None]
        if len(known) < len(times):
            raise RepeatedIds
        self.times = NodeTimes.of(known, self.parent)
        self.connect()

    def adjacencies(self) -> tuple[tuple[AnyArray, AnyArray], tuple[AnyArray, AnyArray]]:
        """What each node leads to, and what leads to it."""
        if self._edges_of is None:
            total = self.nodes + self.contexts
            tail, head = _joined(self.tails), _joined(self.heads)
            self.tails, self.heads = [], []
            check_deadline()
            down = _adjacency(tail, head, self.parent, total)
            check_deadline()
            up = _adjacency(head, tail, np.zeros(0, np.int32), total)
            check_deadline()
            self._edges_of = down, up
        return self._edges_of

    def on_tpu(self, nodes: AnyArray) -> BoolArray:
        """Which of ``nodes`` are steps of a TPU's plane."""
        result = np.zeros(nodes.size, np.bool_)
        for plane in self.planes:
            if plane.tpu is not None:
                result |= plane.holds(nodes)
        return result

    def plane_of(self, node: int) -> GroupedPlane:
        """The plane of a node."""
        return next(p for p in self.planes if p.first_node <= node < p.first_node + p.nodes)


def _inside(ends: Ends) -> Ends:
    """Without the ends that lie in no node."""
    keep = ends.node != -1
    return ends if keep.all() else Ends(ends.node[keep], ends.key[keep])


def _adjacency(
    tail: AnyArray, head: AnyArray, first: AnyArray, nodes: int
) -> tuple[AnyArray, AnyArray]:
    """Heads by tail: ``heads[starts[n] : starts[n + 1]]``; see `adjacency`."""
    starts = np.zeros(nodes + 2, np.int32)
    heads = np.empty(tail.size + np.count_nonzero(first >= 0), np.int32)
    adjacency(tail, head, first, starts, heads)
    return starts[:-1], heads


def _shifted(nodes: AnyArray, first: int) -> AnyArray:
    return np.where(nodes >= 0, nodes + np.int32(first), np.int32(-1)) if first else nodes


def _joined(parts: list[AnyArray]) -> AnyArray:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)
