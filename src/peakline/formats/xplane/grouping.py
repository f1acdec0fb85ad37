"""Step grouping: which events belong together, and which groups hand work to which.

`Grouping.runtime` is what upstream's profiler decides (`upstream_groups`; ``group_events.cc`` and
``preprocess_xplane.cc`` in ``xla/tsl/profiler/utils`` of openxla/xla); ours goes by the same
connections, with these differences. What a program marked wins: an event with a step number is a
step also without the mark of a root (``_r``), and where there is a marked step, runs of functions
that nobody marked are none. An iteration of a loop within a model is no step. And a capture with
loop ops is grouped like any other. Where ids repeat, ours goes by time as well
(`peakline.formats.xplane.contexts`).

What a group reaches and another group has already makes the one a parent of the other
(``PropagateGroupId``): a request of the batch that serves it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array
from peakline.deadline import check_deadline
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.attributes import Attributes
from peakline.formats.xplane.forest import Forest, GroupedPlane
from peakline.formats.xplane.groups import narrow, ungrouped, wide
from peakline.formats.xplane.names import IMPLICIT_ROOTS, LOOP_OPS, TPU_MODULE_LINES, TPU_STEP_LINES
from peakline.formats.xplane.outline import PlaneOutline
from peakline.kernels.event_forest import spread
from peakline.kernels.xplane_numbers import EventKind, Role
from peakline.tables.event_rules import wrap

_INT64 = 4


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

    @property
    def begin_ps(self) -> int:
        """When the event that opened it began, on the file's clock."""
        return self.line_ps + self.offset_ps


class Opening:
    """Opens groups in a forest; ``level`` and ``is_root`` say which nodes open some.

    ``groups`` is the group of every node and context, -1 for none.
    """

    def __init__(self, forest: Forest, level: AnyArray, is_root: AnyArray) -> None:
        self.forest, self._level, self._is_root = forest, level, is_root
        self._down, self._up = forest.adjacencies()
        self.groups = np.full(forest.nodes + forest.contexts, -1, np.int32)
        self._own_parent = forest.own_parent & is_root

    def open(
        self, roots: AnyArray, first: int, *, loop: bool = False, check: bool = False
    ) -> AnyArray:
        """Let ``roots`` open groups, numbered from ``first``; those that did, as `spread` says."""
        check_deadline()
        opened, total = np.empty(roots.size, np.int32), self.groups.size
        count = spread(
            roots.astype(np.int32), loop, self._level, self._is_root, self._own_parent,
            self.forest.parent, *self._up, *self._down, self.groups, first, check, opened,
            np.empty(total, np.int32), np.zeros(total, np.int32),
        )  # fmt: skip
        return opened[:count]

    def steps(self, roots: AnyArray, first: int) -> list[Step]:
        """The steps that ``roots`` opened, numbered from ``first``."""
        kinds = self._nearest(roots, Role.GRAPH_TYPE)
        iters = self._nearest(roots, Role.ITER_NUM)
        numbers = self._nearest(roots, Role.STEP_NUM)
        forest = self.forest
        places = np.searchsorted(forest.root_node, roots).tolist()
        steps = []
        for k, (root, at) in enumerate(zip(roots.tolist(), places, strict=True)):
            check_deadline()
            plane = forest.plane_of(root)
            if plane.tpu is not None:
                event, begin, length, header = plane.tpu.step(root - plane.first_node)
            else:
                event = plane.plane.event_names.get(int(forest.root_metadata[at]), "")
                begin, length = int(forest.root_begin[at]), int(forest.root_length[at])
                header = plane.headers[int(forest.root_line[at])]
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

    def _text(self, result: tuple[int, int, int]) -> str:
        case, bits, node = result
        plane = self.forest.plane_of(node)
        if case == 7:
            return plane.plane.stat_names.get(bits, "")
        if case == 5:
            start, length = bits & (1 << 44) - 1, bits >> 44
            return self.forest.file.read(start, length).tobytes().decode("utf-8", "replace")
        return ""

    def _nearest(self, roots: AnyArray, role: Role) -> dict[int, tuple[int, int, int]]:
        """By position in ``roots``: ``(case, bits, node)`` of the stat on the root or on the
        nearest ancestor that has it.
        """
        stats = self.forest.attrs.first(role)
        result: dict[int, tuple[int, int, int]] = {}
        if not stats.node.size:
            return result

        def cell(at: int) -> tuple[int, int, int]:
            return int(stats.case[at]), int(stats.bits[at]), int(stats.node[at])

        has, place = stats.at(roots.astype(stats.node.dtype))
        forest, (starts, heads) = self.forest, self._up
        for k, root in enumerate(roots.tolist()):
            if has[k]:
                result[k] = cell(int(place[k]))
                continue
            seen, queue = {root}, [root]
            for node in queue:
                above = heads[starts[node] : starts[node + 1]].tolist()
                if node < forest.nodes and forest.parent[node] >= 0:
                    above.insert(0, int(forest.parent[node]))
                new = [parent for parent in above if parent not in seen]
                seen.update(new)
                queue += new
                holds, where = stats.at(np.array(new, stats.node.dtype))
                if holds.any():
                    result[k] = cell(int(where[int(np.argmax(holds))]))
                    break
        return result


MOST_LINKS = 1 << 22
"""Contexts that would make more than so many pairs of groups make none."""


def links_of(forest: Forest, group: AnyArray) -> tuple[Int64Array, int]:
    """The distinct pairs (parent, child) of groups, a row each, in order; and how many pairs of
    crowded contexts were left out. ``group`` is that of every node (-1: none).
    """
    check_deadline()
    (starts, heads), nodes = forest.adjacencies()[0], forest.nodes
    total = starts.size - 1
    tails = np.repeat(np.arange(total), np.diff(starts))
    of = np.concatenate([group.astype(np.int64), np.full(total - nodes, -1, np.int64)])
    plain = (tails < nodes) & (heads < nodes)
    result = [_apart(of[tails[plain]], of[heads[plain]])]
    made, taken = heads >= nodes, tails >= nodes
    # A context stands between the two: of each only what groups put in and take out.
    into = _distinct(heads[made].astype(np.int64), of[tails[made]])
    out = _distinct(tails[taken].astype(np.int64), of[heads[taken]])
    first = np.searchsorted(out[:, 0], into[:, 0])
    count = np.searchsorted(out[:, 0], into[:, 0], side="right") - first
    sums = np.cumsum(count)
    fits = sums <= MOST_LINKS
    left_out = int(count[~fits].sum())
    into, first, count = into[fits], first[fits], count[fits]
    begin = np.cumsum(count) - count
    place = np.arange(int(count.sum())) - np.repeat(begin - first, count)
    result.append(_apart(np.repeat(into[:, 1], count), out[place, 1]))
    check_deadline()
    return np.unique(np.concatenate(result), axis=0), left_out


def _apart(parent: Int64Array, child: Int64Array) -> Int64Array:
    apart = (parent >= 0) & (child >= 0) & (parent != child)
    return _distinct(parent[apart], child[apart])


def _distinct(one: Int64Array, two: Int64Array) -> Int64Array:
    """The distinct pairs whose second is not below 0, in order."""
    known = two >= 0
    pairs = np.stack([one[known], two[known]], axis=1)
    return np.unique(pairs, axis=0)


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


_FINGERPRINT = re.compile(r"\(\d+\)$")
"""What the name of a module ends with on a TPU."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """``group`` per node and the steps that were opened.

    Groups are narrow where they fit (see `peakline.formats.xplane.groups`).
    """

    group: AnyArray
    spread: AnyArray
    """``group`` without groups that only stand in the file: what events inside a node share."""
    steps: list[Step] = field(default_factory=list)
    memory_group: AnyArray | None = None
    """``group`` as the memory profile reads it, where that differs: it takes the last of
    several ``group_id`` stats, and grouping replaces the first."""
    assigned: bool = False
    """Whether groups were assigned, rather than read from the file."""
    repeated: int = 0
    """How many ids are produced in several steps, so that they were joined by time."""
    other: Grouping | None = None
    """What upstream makes of the same nodes, where that differs."""
    links: tuple[Int64Array, int] | None = None
    """As `links_of`, where that was wanted and groups were assigned."""

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
    file: SourceFile,
    planes: list[GroupedPlane],
    nodes: int,
    *,
    rewritten: bool,
    assign: bool,
    links: bool = False,
) -> Grouping:
    """Group the nodes of all planes (see `needs_grouping`), with ``links`` if these are wanted."""
    attrs = Attributes.join([(plane.first_node, plane.attrs) for plane in planes])
    given = _given(attrs, nodes)
    read: Grouping | None = None
    if not (rewritten and assign):
        memory = _as_memory_reads(attrs, given)
        read = Grouping(narrow(given), ungrouped(nodes), memory_group=memory)
        if not rewritten:
            return read
    forest = Forest(file, planes, nodes, attrs)
    forest.wants_links = links
    return _group(forest, given, read)


def _given(attrs: Attributes, nodes: int) -> AnyArray:
    """The groups that stand in the file."""
    nothing = ungrouped(nodes)
    old = attrs.first(Role.GROUP_ID)
    if not old.node.size:
        return nothing
    given = wide(nothing)
    given[old.node] = old.signed
    return given


def _as_memory_reads(attrs: Attributes, groups: AnyArray) -> AnyArray | None:
    last = attrs.last(Role.GROUP_ID)
    count = np.bincount(attrs.node[attrs.role == Role.GROUP_ID], minlength=1)
    several = count[last.node] > 1
    if not several.any():
        return None
    read = wide(groups).copy()
    read[last.node[several]] = last.signed[several]
    return narrow(read)


def _group(forest: Forest, given: AnyArray, upstream: Grouping | None) -> Grouping:
    """Our grouping, with upstream's where that differs: the one given, else by its rules.

    ``given`` are the groups that stand in the file.
    """
    level, is_root = levels(forest)
    numbered = _numbered(forest, is_root)
    repeated = 0
    shows_programs = any(p.tpu is not None and not p.tpu.shows_steps for p in forest.planes)
    if upstream is None and (forest.loop_roots.size or numbered.size or shows_programs):
        upstream = _grouping(forest, given, *upstream_groups(forest, level, is_root))
    level[numbered], is_root[numbered] = 1, True
    result, steps = _our_groups(forest, level, is_root)
    if any(keys.crossing(result) for keys in forest.several):
        if upstream is None:
            upstream = _grouping(forest, given, result, steps)
        several = forest.several
        forest.connect_by_time()
        result, steps = _our_groups(forest, level, is_root)
        if forest.left_open:
            # Parents of one step leave nothing open.
            forest.step = result
            forest.connect()
            result, steps = _our_groups(forest, level, is_root)
        repeated = sum(keys.crossing(result) for keys in several)
    if len({step.found_by for step in steps} - {"device"}) > 1:
        if upstream is None:
            upstream = _grouping(forest, given, result, steps)
        result, steps = _only_marked(result, steps)
    return replace(_grouping(forest, given, result, steps), other=upstream, repeated=repeated)


def _grouping(forest: Forest, given: AnyArray, result: AnyArray, steps: list[Step]) -> Grouping:
    nothing = ungrouped(forest.nodes)
    has_group = result >= 0
    shared = np.where(has_group, result, nothing)
    has_old = given.dtype != nothing.dtype
    groups = narrow(np.where(has_group, result, given)) if has_old else shared
    links = links_of(forest, result) if forest.wants_links else None
    memory = _as_memory_reads(forest.attrs, groups)
    return Grouping(groups, shared, steps, memory, assigned=True, links=links)


def _our_groups(forest: Forest, level: AnyArray, is_root: AnyArray) -> tuple[AnyArray, list[Step]]:
    """The group of every node (-1: none), and the steps."""
    opening = Opening(forest, level, is_root)
    steps = opening.steps(opening.open(ordinary_roots(forest, level, is_root), 0), 0)
    steps += _by_program(opening, len(steps))
    return opening.groups[: forest.nodes], steps


def _only_marked(result: AnyArray, steps: list[Step]) -> tuple[AnyArray, list[Step]]:
    """Without the runs of functions that nobody marked; the steps are numbered anew."""
    number = np.full(max(step.step_id for step in steps) + 2, -1, np.int32)
    marked = [step for step in steps if step.found_by != "function"]
    for place, step in enumerate(marked):
        number[step.step_id] = place
    # The last one stands for none.
    groups: AnyArray = number[result]
    return groups, [replace(step, step_id=int(number[step.step_id])) for step in marked]


def _numbered(forest: Forest, is_root: AnyArray) -> Int32Array:
    """What has a step number and is no root: only ours count it as one."""
    node = np.unique(forest.attrs.first(Role.STEP_NUM).node)
    node = node[~is_root[node] & ~forest.on_tpu(node)]
    # What is known by its name only says to which step it belongs.
    result: Int32Array = node[forest.kind[node] == EventKind.OTHER]
    return result


def _by_program(opening: Opening, first: int) -> list[Step]:
    """Where nothing marks the steps of the TensorCores, the k-th run of a program on every
    core is one group: a core may run programs that others do not. Groups are renumbered.
    """
    result: dict[tuple[str, int], Step] = {}
    number: list[tuple[str, int]] = []
    for plane, mine in lone_cores(opening, first):
        if plane.tpu is None or plane.tpu.shows_steps:
            return lock_step(opening, first)
        count: Counter[str] = Counter()
        opened = opening.open(mine, first + len(number))
        for root, step in zip(
            opened.tolist(), opening.steps(opened, first + len(number)), strict=True
        ):
            program = _FINGERPRINT.sub("", plane.tpu.step(root - plane.first_node)[0])
            key = program, count[program]
            count[program] += 1
            number.append(key)
            if key not in result or step.begin_ps < result[key].begin_ps:
                result[key] = replace(step, name=f"{program} {key[1]}".lstrip())
    place = {key: k for k, key in enumerate(sorted(result, key=lambda key: result[key].begin_ps))}
    new = np.array([first + place[key] for key in number], np.int32)
    mine = opening.groups >= first
    opening.groups[mine] = new[opening.groups[mine] - first]
    return [replace(result[key], step_id=first + k) for key, k in place.items()]
