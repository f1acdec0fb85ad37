"""Step grouping: which events belong together (group_events.cc in openxla/xla).

Slow and obvious: one object per event, every edge of the forest in a list, every question
answered by walking it. Where the real software's answer depends on the order of a hash map
(equal roots starting together), this one takes the order of the file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from peakline.schema import XSpace
from reference.event_types import LOOP_OPS, TF_DATA_RUNS, has_known_type
from reference.model import Event, EventKey, Plane, Stat, int32, int64, read_space
from reference.rewrites import TPU_LAUNCH, rewrite_plane, tensor_core
from reference.tpu import assign_by_overlap, grouping_line, is_sparse_core

EXECUTOR = "ExecutorState::Process"
IMPLICIT_ROOTS = {"FunctionRun", "SessionRun", "RunGraph", EXECUTOR}
TPU_PARENT_LINES = {"Steps", "Sparse Core Steps", "XLA Modules", "Sparse Core Modules"}
CROWD = 64


@dataclass(eq=False)
class Node:
    """An event in the forest."""

    event: Event
    kind: str
    root_level: int | None = None
    group: int | None = None
    parents: list[Node] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)

    def add_child(self, child: Node) -> None:
        self.children.append(child)
        child.parents.append(self)

    @property
    def begin(self) -> int:
        return int64(self.event.span.begin)

    def with_ancestors(self) -> Iterator[Node]:
        """The node, its parents, their parents, ..., nearest first, each once."""
        seen = {self}
        queue = [self]
        for node in queue:
            yield node
            for parent in node.parents:
                if parent not in seen:
                    seen.add(parent)
                    queue.append(parent)

    def nearest_stat(self, name: str) -> Stat | None:
        for node in self.with_ancestors():
            stat = node.event.stat(name)
            if stat is not None:
                return stat
        return None


@dataclass
class ContextGroup:
    producers: list[Node] = field(default_factory=list)
    consumers: list[Node] = field(default_factory=list)


@dataclass
class Grouping:
    """The answer: ``planes`` as they are after grouping, and what was found.

    ``groups`` holds the group of every event of the file that has one, also of step events that
    were dropped because a neighbour stands for them; ``names`` the name of every group that was
    opened.
    """

    planes: list[Plane]
    groups: dict[EventKey, int]
    names: dict[int, str]

    @property
    def step_names(self) -> dict[EventKey, str]:
        """The name of the step, for the events of the file that stand for one."""
        return {
            event.key: stat.text
            for plane in self.planes
            for event in plane.events()
            if event.key is not None and (stat := event.stat("step_name")) is not None
        }


def group_events(space: XSpace) -> Grouping:
    """Group the events of ``space``, which is not changed."""
    planes = read_space(space)
    names: dict[int, str] = {}
    observed = [plane for plane in planes if plane.is_host or plane.is_device]
    every_event = [event for plane in planes for event in plane.events()]
    if not all("group_id" in plane.stat_names for plane in observed):
        for plane in planes:
            rewrite_plane(plane)
        if not any(plane.event_names & LOOP_OPS for plane in planes):
            names = Forest(planes).assign_groups()
            if any(plane.name.startswith("/device:TPU:") for plane in planes):
                for plane in planes:
                    if plane.is_device:
                        assign_by_overlap(plane, names)
    groups = {
        event.key: event.group_id
        for event in every_event
        if event.key is not None and event.group_id is not None
    }
    return Grouping(planes, groups, names)


class Forest:
    """All events with the edges between them."""

    def __init__(self, planes: list[Plane]) -> None:
        self.nodes: list[Node] = []
        self.core_nodes: list[list[Node]] = []
        self.contexts: defaultdict[object, ContextGroup] = defaultdict(ContextGroup)
        for plane in planes:
            if plane.name.startswith("/device:TPU:"):
                self._add_tpu_plane(plane)
            else:
                self._add_plane(plane)
        self._connect_by_stats(EXECUTOR, "IteratorGetNextOp::DoCompute", ("id", "iter_num"))
        self._connect_by_stats(
            EXECUTOR, "IteratorGetNextAsOptionalOp::DoCompute", ("id", "iter_num")
        )
        self._connect_by_stats("KernelLaunch", "KernelExecute", ("correlation_id",))
        for context in self.contexts.values():
            if len(context.producers) >= CROWD and len(context.consumers) >= CROWD:
                continue
            for producer in context.producers:
                for consumer in context.consumers:
                    producer.add_child(consumer)

    def _add_node(self, event: Event) -> Node:
        kind = event.name
        if not has_known_type(kind):
            kind = ""
            if event.stat("correlation_id") is not None:
                on_host = event.line.plane.name == "/host:CPU"
                kind = "KernelLaunch" if on_host else "KernelExecute"
        node = Node(event, kind)
        self.nodes.append(node)
        return node

    def _add_plane(self, plane: Plane) -> None:
        """Nodes of every line, nested by time in the order of the file."""
        for line in plane.lines:
            enclosing: list[Node] = []
            for event in line.events:
                node = self._add_node(event)
                node.root_level = _root_level(event)
                self._add_context(event, node)
                if _last_int(event, "_a"):
                    continue
                while enclosing and not enclosing[-1].event.span.includes(event.span):
                    enclosing.pop()
                if enclosing:
                    enclosing[-1].add_child(node)
                enclosing.append(node)

    def _add_tpu_plane(self, plane: Plane) -> None:
        """Nodes of the grouping line only; it takes over the contexts of what it encloses."""
        line = grouping_line(plane)
        core = tensor_core(plane.name)
        if line is None or (core is None and not is_sparse_core(plane.name)):
            return
        steps = [self._add_node(event) for event in line.events]
        for step in steps:
            self._add_context(step.event, step)
        for other in plane.lines:
            if other is line:
                continue
            index = 0
            for event in other.events:
                while index < len(steps) and steps[index].event.span.end <= event.span.begin:
                    index += 1
                if index == len(steps):
                    break
                if steps[index].event.span.includes(event.span):
                    self._add_context(event, steps[index])
        if core is not None:
            self.core_nodes.append(steps)

    def _add_context(self, event: Event, node: Node) -> None:
        """Enter ``node`` where ``event`` says that it produces or consumes.

        Contexts are separate per process, but a launch on a TPU belongs to no process: the plane
        it ends on has none.
        """
        process = event.line.plane.process_id
        other = _last(event, "_pid")
        if other is not None and (process is None or _last(event, "_p") is None):
            process = int32(other.int_value)
        if TPU_LAUNCH in (int32(_last_int(event, "_pt")), int32(_last_int(event, "_ct"))):
            process = None
        for type_name, id_name, side in (("_pt", "_p", "producers"), ("_ct", "_c", "consumers")):
            context_type, context_id = _last(event, type_name), _last(event, id_name)
            if context_type is not None and context_id is not None:
                key = (int32(context_type.int_value), context_id.context_id, process)
                getattr(self.contexts[key], side).append(node)

    def _connect_by_stats(self, parent_kind: str, child_kind: str, names: tuple[str, ...]) -> None:
        """Connect nodes with equal stats; of several parents the last one read."""

        def keyed(kind: str) -> Iterator[tuple[tuple[int, ...], Node]]:
            for node in self.nodes:
                stats = [node.event.stat(name) for name in names]
                if node.kind == kind and None not in stats:
                    yield tuple(stat.int_or_uint for stat in stats if stat is not None), node

        parents = dict(keyed(parent_kind))
        for key, child in keyed(child_kind):
            if key in parents:
                parents[key].add_child(child)

    def assign_groups(self) -> dict[int, str]:
        """Give every event that a root reaches a group; returns the groups' names."""
        names: dict[int, str] = {}
        excluded = {
            stat.int_value
            for node in self.nodes
            if node.kind in TF_DATA_RUNS and (stat := node.event.stat("id")) is not None
        }
        next_group = 0
        loop_roots = self._loop_roots(excluded)
        for root in loop_roots or self._ordinary_roots(excluded):
            if loop_roots or _opens_group(root):
                names[next_group] = _open_group(root, next_group)
                next_group += 1
        if all(_opens_group(node) for steps in self.core_nodes for node in steps):
            for steps in self.core_nodes:
                group = next_group
                for step in steps:
                    if _opens_group(step):
                        names[group] = _open_group(step, group)
                        group += 1
        return names

    def _ordinary_roots(self, excluded: set[int]) -> list[Node]:
        roots = []
        for node in self.nodes:
            step_id = node.event.stat("id")
            if node.root_level is not None and not (
                step_id is not None and step_id.int_value in excluded
            ):
                roots.append(node)
        return sorted(roots, key=lambda node: (-(node.root_level or 0), node.begin))

    def _loop_roots(self, excluded: set[int]) -> list[Node]:
        """The first event of each iteration of a loop; the others become its children."""
        loops: defaultdict[int, defaultdict[int, list[Node]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for node in self.nodes:
            step_id, iteration = node.event.stat("id"), node.event.stat("iter_num")
            if node.kind != EXECUTOR or step_id is None or iteration is None:
                continue
            if step_id.int_value not in excluded:
                loops[step_id.int_value][iteration.int_value].append(node)
        iterations = [
            nodes for loop in loops.values() if set(loop) != {0} for nodes in loop.values()
        ]
        roots = []
        for nodes in iterations:
            first = min(nodes, key=lambda node: node.begin)
            roots.append(first)
            for node in nodes:
                if node is not first:
                    first.add_child(node)
        return sorted(roots, key=lambda node: node.begin)


def _last(event: Event, name: str) -> Stat | None:
    """The last stat of that name: a context's stats are read in order, later ones winning."""
    return next((stat for stat in reversed(event.stats) if stat.name == name), None)


def _last_int(event: Event, name: str) -> int:
    stat = _last(event, name)
    return 0 if stat is None else stat.int_value


def _root_level(event: Event) -> int | None:
    if _last(event, "_r") is not None:
        return int32(_last_int(event, "_r"))
    return 1 if event.name == "TraceContext" else None


def _opens_group(root: Node) -> bool:
    """No group yet, and no root of the same level above it.

    An event that produces and consumes one context is its own parent, so it stands above itself.
    """
    level = root.root_level or 0
    above = [node for node in root.with_ancestors() if node is not root or root in root.parents]
    return root.group is None and not any(node.root_level == level for node in above)


def _open_group(root: Node, group: int) -> str:
    """Spread ``group`` from ``root`` over everything below that has none; returns its name."""
    seen = {root}
    queue = [root]
    for node in queue:
        if node.group is None:
            node.group = group
            node.event.set_stat("group_id", "int64", group)
            for child in node.children:
                if child not in seen:
                    seen.add(child)
                    queue.append(child)
    name = _group_name(root)
    if not _is_implicit(root):
        root.event.set_stat("step_name", "str", name)
    return name


def _is_implicit(root: Node) -> bool:
    return root.kind in IMPLICIT_ROOTS or root.event.line.name in TPU_PARENT_LINES


def _group_name(root: Node) -> str:
    graph_type = root.nearest_stat("graph_type")
    prefix = ""
    if graph_type is not None:
        prefix = graph_type.text + " "
    elif not _is_implicit(root):
        prefix = root.event.name + " "
    number = root.nearest_stat("iter_num") or root.nearest_stat("step_num")
    return prefix + str(root.group if number is None else number.int_value)
