"""TPU planes: their steps stand for everything below them.

Only the events of the grouping line (the steps, else the module runs) take part in step
grouping, on behalf of the other lines; afterwards every other event takes the group of the step
it overlaps. Source: ``group_events.cc`` in ``xla/tsl/profiler/utils`` of openxla/xla.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array, UInt8Array, UInt64Array
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.attributes import Attributes
from peakline.formats.xplane.contexts import Ends
from peakline.formats.xplane.line_parts import LineFacts, StatRows
from peakline.formats.xplane.lines import PlanePass, SelectedLine
from peakline.formats.xplane.names import (
    NO_GROUP,
    TPU_MODULE_LINES,
    TPU_STEP_LINES,
    is_sparse_core,
    tensor_core,
)
from peakline.formats.xplane.outline import PlaneOutline
from peakline.kernels.event_forest import enclosing_step, overlapping_group
from peakline.kernels.xplane_numbers import Role
from peakline.wire import Damage


@dataclass(frozen=True, eq=False)
class TimedLine:
    """Events of one line: begin and end absolute in ps, unsigned; node -1 for none.

    ``place`` is the place of an event's metadata among the plane's.
    """

    header: LineFacts
    begin: UInt64Array
    end: UInt64Array
    place: AnyArray
    node: Int32Array


def timed(line: SelectedLine) -> TimedLine:
    """The events of one line as grouping by overlap wants them."""
    begin, end = line.span()
    return TimedLine(line.header, begin, end, line.place, np.maximum(line.owner, -1))


@dataclass(frozen=True, eq=False)
class TpuPlane:
    """The steps of one TPU plane (begin and end absolute, in ps, unsigned) and its other lines."""

    plane: PlaneOutline
    guide: int
    """Which of the plane's lines is the grouping line; -1: none."""
    lines: list[TimedLine]
    own: Attributes
    """Attributes of all events that have any, by the pass's node numbers."""
    attrs: Attributes
    """Attributes of the steps, which are numbered from 0."""
    kinds: UInt8Array
    """Kind per step."""
    producers: Ends
    consumers: Ends
    damage: Damage
    selected: list[SelectedLine]
    """The events of the lines that have any, and some of their stats."""
    stats: StatRows

    @property
    def is_tensor_core(self) -> bool:
        """Whether its steps may be grouped in lock step with those of other cores."""
        return self.guide >= 0 and tensor_core(self.plane.name) is not None

    @property
    def shows_steps(self) -> bool:
        """Whether it has a line of steps, and not just one of modules, or none."""
        return self.guide >= 0 and self.lines[self.guide].header.name in TPU_STEP_LINES

    @property
    def steps(self) -> int:
        """How many nodes the plane adds: one per event of its grouping line."""
        return int(self.lines[self.guide].begin.size) if self.guide >= 0 else 0

    def step(self, number: int) -> tuple[str, int, int, LineFacts]:
        """Event name, begin, length and line of a step."""
        line = self.lines[self.guide]
        begin, end = int(line.begin[number]), int(line.end[number])
        place = int(line.place[number])
        name = self.plane.event_names[int(self.plane.event_ids[place])] if place >= 0 else ""
        return name, begin, end - begin, line.header

    def times(self) -> tuple[Int64Array, Int64Array, Int32Array]:
        """Begin, length and thread of the steps."""
        if self.guide < 0:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32)
        line = self.lines[self.guide]
        thread = np.full(line.begin.size, self.plane.first_line + self.guide, np.int32)
        return line.begin.view(np.int64), (line.end - line.begin).view(np.int64), thread

    def event_groups(self, step_groups: Int64Array, *, assigned: bool) -> list[Int64Array]:
        """The group of every event, per line (`NO_GROUP`: none), given those of the steps.

        A group that stands in the file stays where none is found, or everywhere unless groups
        were ``assigned``.
        """
        nodes = max((int(line.node.max(initial=-1)) for line in self.lines), default=-1) + 1
        given = np.full(nodes + 1, NO_GROUP, np.int64)
        old = self.own.first(Role.GROUP_ID)
        given[old.node] = old.signed
        own = [given[line.node] for line in self.lines]
        if not assigned:
            return own
        if self.guide >= 0:
            own[self.guide] = step_groups
        return overlap_groups(self.lines, own)


def read_tpu_plane(file: SourceFile, plane: PlaneOutline, *, rewrite: bool) -> TpuPlane:
    """Read the plane ``plane`` of a TPU."""
    got = PlanePass(file, plane, want_memory=False, rewrite=rewrite, own_ends=True, keep=True)
    none, nobody = np.zeros(0, np.uint64), np.zeros(0, np.int32)
    lines = [TimedLine(header, none, none, nobody, nobody) for header in got.headers]
    for line in got.selected_lines():
        lines[line.number] = timed(line)
    is_core = tensor_core(plane.name) is not None or is_sparse_core(plane.name)
    guide = _grouping_line(lines) if is_core else -1
    own = Attributes.of(got.found)
    step_of, owner_of = _steps_of_nodes(lines, guide, got.nodes)
    steps = lines[guide].begin.size if guide >= 0 else 0
    kinds = np.zeros(steps, np.uint8)
    mine = step_of >= 0
    kinds[step_of[mine]] = got.found.get("node_kind")[mine]
    rows = mine[own.node]
    attrs = Attributes(step_of[own.node[rows]], own.role[rows], own.case[rows], own.bits[rows])

    def ends(side: str) -> Ends:
        nodes = owner_of[got.found.get(f"{side}_node")]
        return Ends(nodes[nodes >= 0], got.found.get(f"{side}_key")[nodes >= 0])

    return TpuPlane(
        plane, guide, lines, own, attrs, kinds, ends("producer"), ends("consumer"), got.damage,
        got.selected_lines(), got.selected_stats(),
    )  # fmt: skip


def _steps_of_nodes(
    lines: list[TimedLine], guide: int, nodes: int
) -> tuple[Int32Array, Int32Array]:
    """Per node of the pass: the step it is, and the step it belongs to (-1: none)."""
    step_of, owner_of = np.full(nodes, -1, np.int32), np.full(nodes, -1, np.int32)
    if guide < 0:
        return step_of, owner_of
    steps = lines[guide]
    for number, line in enumerate(lines):
        events = np.flatnonzero(line.node >= 0)
        if number == guide:
            step_of[line.node[events]] = events
            owner_of[line.node[events]] = events
        elif events.size:
            inside = np.full(line.begin.size, -1, np.int64)
            enclosing_step(steps.begin, steps.end, line.begin, line.end, inside)
            owner_of[line.node[events]] = inside[events]
    return step_of, owner_of


def overlap_groups(lines: list[TimedLine], own: list[Int64Array]) -> list[Int64Array]:
    """Give events without a group that of the step or module run they overlap, on any device
    plane of a TPU capture. ``own`` holds the groups so far, per line.
    """
    guide = _grouping_line(lines)
    if guide < 0:
        return own
    begin, end, groups = lines[guide].begin, lines[guide].end, own[guide].copy()
    if lines[guide].header.name in TPU_STEP_LINES:
        begin, end, groups = _merge(begin, end, groups)
    out = list(own)
    for number, line in enumerate(lines):
        if line.header.name not in (*TPU_STEP_LINES, "_counters_"):
            result = np.empty(line.begin.size, np.int64)
            overlapping_group(
                begin, end, groups, line.begin, line.end, number == guide, NO_GROUP, result
            )
            out[number] = np.where(own[number] == NO_GROUP, result, own[number])
    return out


def _grouping_line(lines: list[TimedLine]) -> int:
    """The line whose events stand for steps: the steps, else the modules, if it has any."""
    for names in (TPU_STEP_LINES, TPU_MODULE_LINES):
        own = (number for number, line in enumerate(lines) if line.header.name in names)
        last = max(own, default=-1)
        if last >= 0 and lines[last].begin.size:
            return last
    return -1


def _merge(
    begin: UInt64Array, end: UInt64Array, groups: Int64Array
) -> tuple[UInt64Array, UInt64Array, Int64Array]:
    """Join neighbouring steps of one group; drop those without one unless that would be all."""
    if not (groups != NO_GROUP).any():
        return begin, end, groups
    starts = np.concatenate([[True], groups[1:] != groups[:-1]])
    last = np.concatenate([np.flatnonzero(starts)[1:] - 1, [groups.size - 1]])
    first = np.flatnonzero(starts)
    chosen = groups[first] != NO_GROUP
    return begin[first[chosen]], end[last[chosen]], groups[first[chosen]]
