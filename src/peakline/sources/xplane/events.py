"""The tables of all events: read only when somebody asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from peakline import schema
from peakline.deadline import check_deadline
from peakline.profile.columns import Columns, Names
from peakline.sources.files import SourceFile
from peakline.sources.xplane.grouping import GroupedPlane, Grouping
from peakline.sources.xplane.line import LineEvents
from peakline.sources.xplane.lines import PlanePass, read_headers
from peakline.sources.xplane.names import NO_GROUP
from peakline.sources.xplane.outline import Outline, PlaneOutline
from peakline.sources.xplane.sorting import wrap
from peakline.sources.xplane.tpu import TimedLine, TpuPlane, overlap_groups
from peakline.wire import Damage, Plan, decode

__all__ = ["EventTables", "read_module_runs"]

_Array = npt.NDArray[Any]


class EventTables:
    """Reads every line of every plane once more, now keeping the events."""

    def __init__(
        self,
        file: SourceFile,
        outline: Outline,
        grouping: Grouping,
        planes: list[GroupedPlane],
        *,
        rewrite: bool,
    ) -> None:
        self._file, self._outline = file, outline
        self._grouping, self._rewrite = grouping, rewrite
        self._grouped = {grouped.plane.index: grouped for grouped in planes}
        self.damage: dict[int, Damage] = {}
        self._read()

    def _read(self) -> None:
        lines: list[LineEvents] = []
        steps: list[_Array] = []
        has_tpu = any(plane.is_tpu for plane in self._outline.planes)
        for plane in self._outline.planes:
            here: list[LineEvents] = []
            grouped = self._grouped.get(plane.index)
            found = PlanePass(
                self._file.buffer, plane,
                want_memory=plane is self._outline.host_plane, rewrite=self._rewrite,
                own_ends=plane.is_tpu, on_line=here.append, release=self._file.release,
            )  # fmt: skip
            self.damage[plane.index] = found.damage
            lines += here
            if grouped is not None and grouped.tpu is not None:
                steps += self._tpu_steps(plane, grouped.tpu, grouped.first_node, here)
                continue
            if grouped is None:
                own = [np.full(line.begin.size, NO_GROUP, np.int64) for line in here]
            else:
                nodes = slice(grouped.first_node, grouped.first_node + grouped.nodes)
                of_node = np.append(self._grouping.group[nodes], NO_GROUP)
                inside = np.append(self._grouping.spread[nodes], NO_GROUP)
                own = [
                    np.where(line.node >= 0, of_node[line.node], inside[line.owner])
                    for line in here
                ]
            if has_tpu and plane.kind == "device" and self._grouping.assigned:
                own = overlap_groups([_timed(found, plane, line) for line in here], own)
            steps += own
        self.lines, self.steps = lines, steps

    def _tpu_steps(
        self, plane: PlaneOutline, tpu: TpuPlane, first_node: int, here: list[LineEvents]
    ) -> list[_Array]:
        groups = self._grouping.group[first_node : first_node + tpu.steps]
        per_line = tpu.event_groups(groups, assigned=self._grouping.assigned)
        return [per_line[line.line - plane.first_line] for line in here]

    def last_end_ps(self, zero_ps: int) -> int:
        """End of the last event, in ps after ``zero_ps``; 0 when there is none."""
        last = 0
        for line in self.lines:
            timed = line.case == 2
            if timed.any():
                end = int((line.begin[timed] + np.maximum(line.length[timed], 0)).max())
                last = max(last, line.timestamp_ns * 1000 + end - zero_ps)
        return last

    def events(self, zero_ps: int) -> Columns:
        """The ``events`` table."""
        names: dict[str, int] = {}
        codes, ids, starts, lengths, timed = [], [], [], [], []
        planes = np.repeat(
            np.arange(len(self._outline.planes)), [len(p.lines) for p in self._outline.planes]
        )
        for line in self.lines:
            check_deadline()
            plane = self._outline.planes[int(planes[line.line])]
            metadata, inverse = np.unique(line.metadata, return_inverse=True)
            code_of = np.array(
                [
                    names.setdefault(plane.event_names.get(i, ""), len(names))
                    for i in metadata.tolist()
                ],
                np.int32,
            )
            codes.append(code_of[inverse])
            ids.append(np.full(line.begin.size, line.line, np.int64))
            with np.errstate(over="ignore"):
                base = wrap(line.timestamp_ns * 1000 - zero_ps)
                starts.append(line.begin + np.int64(base))
            lengths.append(line.length)
            timed.append(line.case != 5)
        line_id = _all(ids)
        step = _all(self.steps)
        valid = {}
        if (step == NO_GROUP).any():
            valid["step_id"] = step != NO_GROUP
        has_time = _all(timed).astype(np.bool_)
        if not has_time.all():
            valid["start_ps"] = has_time
        return Columns(
            {
                "event_id": np.arange(line_id.size, dtype=np.int64),
                "line_id": line_id,
                "name": Names(_all(codes).astype(np.int32), list(names)),
                "start_ps": _all(starts),
                "duration_ps": _all(lengths),
                "step_id": step,
            },
            valid,
        )


def read_module_runs(file: SourceFile, outline: Outline) -> tuple[Columns, dict[int, Damage]]:
    """The ``module_runs`` table, and the damage by plane: events of the ``XLA Modules`` lines of
    the TPU planes.
    """
    plan = Plan(
        schema.descriptor("tensorflow.profiler.XLine"),
        ("events.metadata_id", "events.offset_ps", "events.duration_ps"),
    )
    names, starts, ends, devices = [], [], [], []
    damage: dict[int, Damage] = {}
    for plane in outline.planes:
        headers = read_headers(file.buffer, plane) if plane.is_tpu else []
        lines = [k for k, header in enumerate(headers) if header.name == "XLA Modules"]
        if not lines:
            continue
        decoded = decode(file.buffer, plan, plane.lines.take(np.array(lines)))
        damage[plane.index] = decoded.damage
        events = decoded["events"]
        names += [plane.event_names.get(i, "") for i in events.array("metadata_id").tolist()]
        start = events.array("offset_ps").astype(np.int64)
        starts.append(start)
        with np.errstate(over="ignore"):
            ends.append(start + events.array("duration_ps").astype(np.int64))
        devices += [plane.name.removeprefix("/device:")] * events.rows
    columns = Columns(
        {
            "name": Names.encode(names),
            "start_ps": _all(starts),
            "end_ps": _all(ends),
            "plane_name": Names.encode(devices),
        }
    )
    return columns, damage


def _timed(found: PlanePass, plane: PlaneOutline, line: LineEvents) -> TimedLine:
    base = np.uint64(line.timestamp_ns * 1000 % 2**64)
    begin = line.begin.view(np.uint64) + base
    name = found.headers[line.line - plane.first_line].name
    end = begin + line.length.view(np.uint64)
    return TimedLine(name, begin, end, line.metadata, line.node)


def _all(parts: list[_Array]) -> _Array:
    return np.concatenate([np.zeros(0, np.int64), *parts]) if parts else np.zeros(0, np.int64)
