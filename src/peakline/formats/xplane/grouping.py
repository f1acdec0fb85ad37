"""Step grouping: which events belong together.

`Grouping.runtime` is what upstream's profiler decides (``group_events.cc`` and
``preprocess_xplane.cc`` in ``xla/tsl/profiler/utils`` of openxla/xla); ours goes by the same
connections, with these differences. What a program marked wins: an event with a step number is a
step also without the mark of a root (``_r``), and where there is a marked step, runs of functions
that nobody marked are none. An iteration of a loop within a model is no step. And a capture with
loop ops is grouped like any other. Where ids repeat, ours goes by time as well
(`peakline.formats.xplane.repeated`).

Only nodes take part: events with a context, a root mark or another stat that matters, and memory
events; every other event has the group of the nearest node around it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from peakline.deadline import check_deadline
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.attributes import Attributes, Picked, mix
from peakline.formats.xplane.contexts import Ends, connect
from peakline.formats.xplane.groups import narrow, ungrouped, wide
from peakline.formats.xplane.line_reader import LineFacts
from peakline.formats.xplane.lines import PlanePass
from peakline.formats.xplane.names import (
    HOST_PLANE,
    IMPLICIT_ROOTS,
    LOOP_OPS,
    TPU_MODULE_LINES,
    TPU_STEP_LINES,
    EventKind,
    Role,
)
from peakline.formats.xplane.outline import PlaneOutline
from peakline.formats.xplane.repeated import NodeTimes, Several, by_time
from peakline.formats.xplane.sorting import wrap
from peakline.formats.xplane.store import Found
from peakline.formats.xplane.tpu import TpuPlane
from peakline.kernels.event_forest import adjacency, spread

_INT64 = 4
_FINGERPRINT = re.compile(r"\(\d+\)$")
"""What the name of a module ends with on a TPU."""

__all__ = [
    "GroupedPlane",
    "Grouping",
    "PrunedTooMuch",
    "RepeatedIds",
    "Step",
    "group",
    "needs_grouping",
]

_Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Step:
    """One group: its name, and of the event that opened it the plane, when its line began (ps on
    the file's clock, of any size), how much later it did, and how long it was.

    ``found_by`` is ``mark``, ``device`` for a line of a device, or ``function`` for a run of a
    function that nobody marked.
    """

    step_id: int
    name: str
    found_by: str
    plane: int
    line_ps: int
    offset_ps: int
    length_ps: int


@dataclass(frozen=True, eq=False)
class GroupedPlane:
    """One plane's part of the forest; its nodes are numbered from ``first_node``."""

    plane: PlaneOutline
    first_node: int
    nodes: int
    attrs: Attributes
    kinds: _Array
    producers: Ends
    consumers: Ends
    headers: list[LineFacts]
    found: Found | None = None
    tpu: TpuPlane | None = None
    pruned: bool = False
    times: tuple[_Array, _Array, _Array] | None = None
    """Begin, length and thread of every node, where they were read."""

    @classmethod
    def of_pass(cls, plane: PlaneOutline, first_node: int, found: PlanePass) -> GroupedPlane:
        """A plane whose every event takes part."""
        got = found.found
        line = got.get("time_line") + np.int32(plane.first_line)
        times = got.get("time_begin"), got.get("time_length"), line
        return cls(
            plane, first_node, found.nodes, Attributes.of(got), got.get("node_kind"),
            _inside(Ends(got.get("producer_node"), got.get("producer_key"))),
            Ends(got.get("consumer_node"), got.get("consumer_key")),
            found.headers, got, pruned=found.pruned, times=times if found.timed else None,
        )  # fmt: skip

    @classmethod
    def of_tpu(cls, plane: PlaneOutline, first_node: int, tpu: TpuPlane) -> GroupedPlane:
        """A TPU's plane, whose steps take part for everything on it."""
        return cls(
            plane, first_node, tpu.steps, tpu.attrs, tpu.kinds, tpu.producers, tpu.consumers,
            [line.header for line in tpu.lines], tpu=tpu, times=tpu.times(),
        )  # fmt: skip

    def holds(self, nodes: _Array) -> _Array:
        """Which of ``nodes`` are this plane's."""
        return (nodes >= self.first_node) & (nodes < self.first_node + self.nodes)


@dataclass(frozen=True, eq=False)
class Grouping:
    """``group`` per node and the steps that were opened.

    Groups are narrow where they fit (see `peakline.formats.xplane.groups`).
    """

    group: _Array
    spread: _Array
    """``group`` without groups that only stand in the file: what events inside a node share."""
    steps: list[Step] = field(default_factory=list)
    memory_group: _Array | None = None
    """``group`` as the memory profile reads it, where that differs: it takes the last of
    several ``group_id`` stats, and grouping replaces the first."""
    assigned: bool = False
    """Whether groups were assigned, rather than read from the file."""
    repeated: int = 0
    """How many ids are produced in several steps, so that they were joined by time."""
    other: Grouping | None = None
    """What upstream makes of the same nodes, where that differs."""

    @property
    def runtime(self) -> Grouping:
        """The grouping as upstream's profiler decides it."""
        return self if self.other is None else self.other


def needs_grouping(planes: list[PlaneOutline]) -> tuple[bool, bool]:
    """Whether the planes are rewritten before grouping, and whether groups are assigned.

    A capture whose host and device planes all know ``group_id`` was grouped when it was written;
    one with loop ops is left alone.
    """
    observed = [plane for plane in planes if plane.kind != "other"]
    if all("group_id" in plane.stat_name_set for plane in observed):
        return False, False
    return True, not any(plane.event_name_set & LOOP_OPS for plane in planes)


def group(
    file: SourceFile, planes: list[GroupedPlane], nodes: int, *, rewritten: bool, assign: bool
) -> Grouping:
    """Group the nodes of all planes (see `needs_grouping`)."""
    attrs = Attributes.join([(plane.first_node, plane.attrs) for plane in planes])
    given = _given(attrs, nodes)
    read: Grouping | None = None
    if not (rewritten and assign):
        memory = _as_memory_reads(attrs, given)
        read = Grouping(narrow(given), ungrouped(nodes), memory_group=memory)
        if not rewritten:
            return read
    return _Forest(file, planes, nodes, attrs).group(given, read)


def _given(attrs: Attributes, nodes: int) -> _Array:
    """The groups that stand in the file."""
    nothing = ungrouped(nodes)
    old = attrs.first(Role.GROUP_ID)
    if not old.node.size:
        return nothing
    given = wide(nothing)
    given[old.node] = old.signed
    return given


class PrunedTooMuch(Exception):
    """What was left out may matter: read the planes again without pruning."""


class RepeatedIds(Exception):
    """Ids are produced in several steps: read all planes again, with the times of the nodes."""


def _inside(ends: Ends) -> Ends:
    """Without the ends that lie in no node."""
    keep = ends.node != -1
    return ends if keep.all() else Ends(ends.node[keep], ends.key[keep])


def _as_memory_reads(attrs: Attributes, groups: _Array) -> _Array | None:
    last = attrs.last(Role.GROUP_ID)
    count = np.bincount(attrs.node[attrs.role == Role.GROUP_ID], minlength=1)
    several = count[last.node] > 1
    if not several.any():
        return None
    read = wide(groups).copy()
    read[last.node[several]] = last.signed[several]
    return narrow(read)


class _Forest:
    """Nodes and edges of all planes."""

    def __init__(
        self, file: SourceFile, planes: list[GroupedPlane], nodes: int, attrs: Attributes
    ) -> None:
        self.file, self.planes, self.nodes, self.attrs = file, planes, nodes, attrs
        self.kind = _joined([plane.kinds for plane in planes])
        parents = [
            _shifted(plane.found.get("node_parent"), plane.first_node)
            if plane.found is not None
            else np.full(plane.nodes, -1, np.int32)
            for plane in planes
        ]
        self.parent = _joined(parents)
        roots = [plane for plane in planes if plane.found is not None]

        def of_roots(name: str) -> _Array:
            return _joined([p.found.get(f"root_{name}") for p in roots if p.found is not None])

        self.root_node = _joined(
            [p.found.get("root_node") + np.int32(p.first_node) for p in roots if p.found]
        )
        self.root_begin, self.root_length = of_roots("begin"), of_roots("length")
        self.root_metadata, self.root_line = of_roots("metadata"), of_roots("line")
        self.excluded = self._tf_data_ids()
        self.times: NodeTimes | None = None
        """Joins are made by these where ids repeat."""
        self.step: _Array | None = None
        """The group of every node (-1: none), where a first round left joins open."""
        self._connect()
        check_deadline()
        self.loop_roots = self._connect_loops()

    def _connect(self) -> None:
        self.tails: list[_Array] = []
        self.heads: list[_Array] = []
        self.several: list[Several] = []
        self.left_open = 0
        """How many could not be joined by time."""
        self._edges_of: tuple[tuple[_Array, _Array], tuple[_Array, _Array]] | None = None
        for connect_some in (self._connect_by_stats, self._connect_contexts):
            check_deadline()
            connect_some()

    def _tf_data_ids(self) -> _Array:
        ids = self.attrs.first(Role.ID)
        return np.unique(ids.only(self.kind[ids.node] == EventKind.TF_DATA_RUN).signed)

    def _edges(self, tail: _Array, head: _Array) -> None:
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

    def _launch_kind(self, launched: Picked) -> _Array:
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
        self, parents: _Array, parent_key: list[_Array], children: _Array, child_key: list[_Array]
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
        found = (at >= 0) & (keys[np.maximum(at, 0)] == wanted)
        self._edges(parents[order[at[found]]], children[found])

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

    def _connect_loops(self) -> _Array:
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
        in_time: _Array = roots[np.argsort(begin[leads], kind="stable")]
        return in_time

    def group(self, given: _Array, upstream: Grouping | None) -> Grouping:
        """Our grouping, with upstream's where that differs: the one given, else by its rules.

        ``given`` are the groups that stand in the file.
        """
        level, is_root = self._levels()
        numbered = self._numbered(is_root)
        repeated = 0
        shows_programs = any(p.tpu is not None and not p.tpu.shows_steps for p in self.planes)
        if upstream is None and (self.loop_roots.size or numbered.size or shows_programs):
            upstream = self._grouping(given, *self._assign(level, is_root, as_upstream=True))
        level[numbered], is_root[numbered] = 1, True
        found, steps = self._assign(level, is_root, as_upstream=False)
        if any(keys.crossing(found) for keys in self.several):
            if upstream is None:
                upstream = self._grouping(given, found, steps)
            several = self.several
            self._connect_by_time()
            found, steps = self._assign(level, is_root, as_upstream=False)
            if self.left_open:
                # Parents of one step leave nothing open.
                self.step = found
                self._connect()
                found, steps = self._assign(level, is_root, as_upstream=False)
            repeated = sum(keys.crossing(found) for keys in several)
        if len({step.found_by for step in steps} - {"device"}) > 1:
            if upstream is None:
                upstream = self._grouping(given, found, steps)
            found, steps = self._only_marked(found, steps)
        return replace(self._grouping(given, found, steps), other=upstream, repeated=repeated)

    def _connect_by_time(self) -> None:
        """Make the edges anew, by time. Raises RepeatedIds where the times were not read.

        Rounds of a loop have none then: that one has many executors is no repetition.
        """
        times = [plane.times for plane in self.planes]
        known = [time for time in times if time is not None]
        if len(known) < len(times):
            raise RepeatedIds
        self.times = NodeTimes.of(known, self.parent)
        self._connect()

    def _grouping(self, given: _Array, found: _Array, steps: list[Step]) -> Grouping:
        nothing = ungrouped(self.nodes)
        has_group = found >= 0
        shared = np.where(has_group, found, nothing)
        has_old = given.dtype != nothing.dtype
        groups = narrow(np.where(has_group, found, given)) if has_old else shared
        return Grouping(groups, shared, steps, _as_memory_reads(self.attrs, groups), assigned=True)

    def _assign(
        self, level: _Array, is_root: _Array, *, as_upstream: bool
    ) -> tuple[_Array, list[Step]]:
        """Open the groups; returns them per node (-1: none), and the steps."""
        total = self.nodes + self.contexts
        down, up = self._adjacencies(total)
        groups = np.full(total, -1, np.int32)
        is_loop = as_upstream and self.loop_roots.size > 0
        roots = self.loop_roots if is_loop else self._ordinary_roots(level, is_root)

        own_parent = self.own_parent & is_root

        def run(roots: _Array, first: int, *, loop: bool = False, check: bool = False) -> _Array:
            check_deadline()
            opened = np.empty(roots.size, np.int32)
            count = spread(
                roots.astype(np.int32), loop, level, is_root, own_parent,
                self.parent, *up, *down, groups, first, check, opened,
                np.empty(total, np.int32), np.zeros(total, np.int32),
            )  # fmt: skip
            return opened[:count]

        opened = run(roots, 0, loop=is_loop)
        steps = self._steps(opened, 0, up)
        if as_upstream:
            steps += self._lock_step(len(steps), run, up)
        else:
            steps += self._by_program(groups, len(steps), run, up)
        return groups[: self.nodes], steps

    @staticmethod
    def _only_marked(found: _Array, steps: list[Step]) -> tuple[_Array, list[Step]]:
        """Without the runs of functions that nobody marked; the steps are numbered anew."""
        number = np.full(max(step.step_id for step in steps) + 2, -1, np.int32)
        marked = [step for step in steps if step.found_by != "function"]
        for place, step in enumerate(marked):
            number[step.step_id] = place
        # The last one stands for none.
        groups: _Array = number[found]
        return groups, [replace(step, step_id=int(number[step.step_id])) for step in marked]

    def _adjacencies(self, total: int) -> tuple[tuple[_Array, _Array], tuple[_Array, _Array]]:
        """What each node leads to, and what leads to it."""
        if self._edges_of is None:
            tail, head = _joined(self.tails), _joined(self.heads)
            self.tails, self.heads = [], []
            check_deadline()
            down = _adjacency(tail, head, self.parent, total)
            check_deadline()
            up = _adjacency(head, tail, np.zeros(0, np.int32), total)
            check_deadline()
            self._edges_of = down, up
        return self._edges_of

    def _levels(self) -> tuple[_Array, _Array]:
        level, is_root = np.zeros(self.nodes, np.int32), np.zeros(self.nodes, np.bool_)
        for plane in self.planes:
            if plane.tpu is not None:
                continue
            here = slice(plane.first_node, plane.first_node + plane.nodes)
            traced = self.kind[here] == EventKind.TRACE_CONTEXT
            level[here][traced], is_root[here][traced] = 1, True
            for kind, value in ((EventKind.PROCESS_BATCH, 2), (EventKind.BATCHING_SESSION_RUN, 1)):
                named = self.kind[here] == kind
                level[here][named], is_root[here][named] = value, True
        marked = self.attrs.last(Role.IS_ROOT)
        fixed = np.isin(
            self.kind[marked.node], (EventKind.PROCESS_BATCH, EventKind.BATCHING_SESSION_RUN)
        )
        marked = marked.only(~fixed & ~self._on_tpu(marked.node))
        level[marked.node] = marked.signed.astype(np.int32)
        is_root[marked.node] = True
        return level, is_root

    def _on_tpu(self, nodes: _Array) -> npt.NDArray[np.bool_]:
        found = np.zeros(nodes.size, np.bool_)
        for plane in self.planes:
            if plane.tpu is not None:
                found |= plane.holds(nodes)
        return found

    def _numbered(self, is_root: _Array) -> npt.NDArray[np.int32]:
        """What has a step number and is no root: only ours count it as one."""
        node = np.unique(self.attrs.first(Role.STEP_NUM).node)
        node = node[~is_root[node] & ~self._on_tpu(node)]
        # What is known by its name only says to which step it belongs.
        found: npt.NDArray[np.int32] = node[self.kind[node] == EventKind.OTHER]
        return found

    def _ordinary_roots(self, level: _Array, is_root: _Array) -> _Array:
        node = self.root_node[is_root[self.root_node]]
        begin = self.root_begin[is_root[self.root_node]]
        ids = self.attrs.first(Role.ID)
        has, place = ids.at(node)
        run_by_data = np.zeros(node.size, np.bool_)
        run_by_data[has] = np.isin(ids.signed[place[has]], self.excluded)
        node, begin = node[~run_by_data], begin[~run_by_data]
        order = np.lexsort((node, begin, -level[node].astype(np.int64)))
        return node[order]

    def _lock_step(
        self, first: int, run: Callable[..., _Array], up: tuple[_Array, _Array]
    ) -> list[Step]:
        """Without a host root for any TensorCore, the k-th step of every core is one group."""
        every = self._lone_cores(first, run)
        steps: dict[int, Step] = {}
        for _, mine in every:
            steps.update((step.step_id, step) for step in self._steps(run(mine, first), first, up))
        return list(steps.values())

    def _by_program(
        self, groups: _Array, first: int, run: Callable[..., _Array], up: tuple[_Array, _Array]
    ) -> list[Step]:
        """Where nothing marks the steps of the TensorCores, the k-th run of a program on every
        core is one group: a core may run programs that others do not. ``groups`` is renumbered.
        """
        found: dict[tuple[str, int], Step] = {}
        number: list[tuple[str, int]] = []
        for plane, mine in self._lone_cores(first, run):
            if plane.tpu is None or plane.tpu.shows_steps:
                return self._lock_step(first, run, up)
            count: Counter[str] = Counter()
            opened = run(mine, first + len(number))
            for root, step in zip(
                opened.tolist(), self._steps(opened, first + len(number), up), strict=True
            ):
                program = _FINGERPRINT.sub("", plane.tpu.step(root - plane.first_node)[0])
                key = program, count[program]
                count[program] += 1
                number.append(key)
                if key not in found or _begin(step) < _begin(found[key]):
                    found[key] = replace(step, name=f"{program} {key[1]}".lstrip())
        place = {key: k for k, key in enumerate(sorted(found, key=lambda key: _begin(found[key])))}
        new = np.array([first + place[key] for key in number], np.int32)
        mine = groups >= first
        groups[mine] = new[groups[mine] - first]
        return [replace(found[key], step_id=first + k) for key, k in place.items()]

    def _lone_cores(
        self, first: int, run: Callable[..., _Array]
    ) -> list[tuple[GroupedPlane, _Array]]:
        """The TensorCores with their steps, if no host root reached any of these."""
        cores = [p for p in self.planes if p.tpu is not None and p.tpu.is_tensor_core]
        every = [(p, p.first_node + np.arange(p.nodes, dtype=np.int32)) for p in cores]
        nodes = np.concatenate([np.zeros(0, np.int32), *(mine for _, mine in every)])
        if not nodes.size or run(nodes, first, check=True).size < nodes.size:
            return []
        return every

    def _steps(self, roots: _Array, first: int, up: tuple[_Array, _Array]) -> list[Step]:
        """The steps that ``roots`` opened, numbered from ``first``."""
        kinds = self._nearest(roots, Role.GRAPH_TYPE, up)
        iters = self._nearest(roots, Role.ITER_NUM, up)
        numbers = self._nearest(roots, Role.STEP_NUM, up)
        places = np.searchsorted(self.root_node, roots).tolist()
        steps = []
        for k, (root, at) in enumerate(zip(roots.tolist(), places, strict=True)):
            check_deadline()
            plane = self._plane_of(root)
            if plane.tpu is not None:
                event, begin, length, header = plane.tpu.step(root - plane.first_node)
            else:
                event = plane.plane.event_names.get(int(self.root_metadata[at]), "")
                begin, length = int(self.root_begin[at]), int(self.root_length[at])
                header = plane.headers[int(self.root_line[at])]
            # Absolute times are those of 64 bits; how far the event is from its line is exact.
            base = header.timestamp_ns * 1000
            offset, length = wrap(begin - base), wrap(length)
            on_line = header.name in TPU_STEP_LINES + TPU_MODULE_LINES
            implicit = event in IMPLICIT_ROOTS or on_line
            # Of modules a device's line only says that they ran.
            by_step_line = header.name in TPU_STEP_LINES
            found_by = "device" if by_step_line else "function" if implicit else "mark"
            kind, value = kinds.get(k), iters.get(k) or numbers.get(k)
            prefix = "" if implicit else event + " "
            if kind is not None:
                prefix = self._text(kind) + " "
            number = first + k
            shown = number if value is None else value[1] if value[0] == _INT64 else 0
            index = plane.plane.index
            name = f"{prefix}{shown}"
            steps.append(Step(number, name, found_by, index, base, offset, length))
        return steps

    def _text(self, found: tuple[int, int, int]) -> str:
        case, bits, node = found
        plane = self._plane_of(node)
        if case == 7:
            return plane.plane.stat_names.get(bits, "")
        if case == 5:
            start, length = bits & (1 << 44) - 1, bits >> 44
            return self.file.read(start, length).tobytes().decode("utf-8", "replace")
        return ""

    def _nearest(
        self, roots: _Array, role: Role, up: tuple[_Array, _Array]
    ) -> dict[int, tuple[int, int, int]]:
        """By position in ``roots``: ``(case, bits, node)`` of the stat on the root or on the
        nearest ancestor that has it.
        """
        stats = self.attrs.first(role)
        found: dict[int, tuple[int, int, int]] = {}
        if not stats.node.size:
            return found

        def cell(at: int) -> tuple[int, int, int]:
            return int(stats.case[at]), int(stats.bits[at]), int(stats.node[at])

        has, place = stats.at(roots.astype(stats.node.dtype))
        starts, heads = up
        for k, root in enumerate(roots.tolist()):
            if has[k]:
                found[k] = cell(int(place[k]))
                continue
            seen, queue = {root}, [root]
            for node in queue:
                above = heads[starts[node] : starts[node + 1]].tolist()
                if node < self.nodes and self.parent[node] >= 0:
                    above.insert(0, int(self.parent[node]))
                new = [parent for parent in above if parent not in seen]
                seen.update(new)
                queue += new
                holds, where = stats.at(np.array(new, stats.node.dtype))
                if holds.any():
                    found[k] = cell(int(where[int(np.argmax(holds))]))
                    break
        return found

    def _plane_of(self, node: int) -> GroupedPlane:
        return next(p for p in self.planes if p.first_node <= node < p.first_node + p.nodes)


def _begin(step: Step) -> int:
    return step.line_ps + step.offset_ps


def _adjacency(tail: _Array, head: _Array, first: _Array, nodes: int) -> tuple[_Array, _Array]:
    """Heads by tail: ``heads[starts[n] : starts[n + 1]]``; see `adjacency`."""
    starts = np.zeros(nodes + 2, np.int32)
    heads = np.empty(tail.size + np.count_nonzero(first >= 0), np.int32)
    adjacency(tail, head, first, starts, heads)
    return starts[:-1], heads


def _shifted(nodes: _Array, first: int) -> _Array:
    return np.where(nodes >= 0, nodes + np.int32(first), np.int32(-1)) if first else nodes


def _joined(parts: list[_Array]) -> _Array:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)
