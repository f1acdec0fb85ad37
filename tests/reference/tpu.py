"""Groups on the planes of a TPU capture (group_events.cc in openxla/xla)."""

import re

from reference.model import Event, Line, Plane, Stat, Timespan, int64

STEP_LINES = {"Steps", "Sparse Core Steps"}
MODULE_LINES = {"XLA Modules", "Sparse Core Modules"}


def is_sparse_core(plane_name: str) -> bool:
    pattern = r"/device:TPU:[0-9]+ SparseCore(?: [a-zA-Z]+)? ([0-9]+)"
    return re.fullmatch(pattern, plane_name) is not None


def _last_line(plane: Plane, names: set[str]) -> Line | None:
    return next((line for line in reversed(plane.lines) if line.name in names), None)


def grouping_line(plane: Plane) -> Line | None:
    """The line whose events stand for steps: the steps, else the modules, whichever has events."""
    for names in (STEP_LINES, MODULE_LINES):
        line = _last_line(plane, names)
        if line is not None and line.events:
            return line
    return None


def assign_by_overlap(plane: Plane, names: dict[int, str]) -> None:
    """Tidy the plane's step line, then group its other lines by the events of the grouping line."""
    guide = grouping_line(plane)
    if guide is None:
        return
    steps = _last_line(plane, STEP_LINES)
    if steps is not None:
        _merge_steps(steps)
        for event in steps.events:
            if event.group_id in names:
                event.stats.append(Stat("step_name", "str", names[event.group_id or 0]))
    for line in plane.lines:
        if line.name not in STEP_LINES | {"_counters_"}:
            cursor = Cursor(guide)
            for event in line.events:
                group = cursor.group_at(event.span)
                if group is not None:
                    event.stats.append(Stat("group_id", "int64", group))


def _merge_steps(line: Line) -> None:
    """Join neighbours of one group and drop what has none, unless that would drop everything."""
    chosen: list[Event] = []
    current: Event | None = None
    ends: dict[Event, int] = {}
    for event in line.events:
        if event.group_id is None:
            current = None
        elif current is not None and current.group_id == event.group_id:
            ends[current] = event.span.end
        else:
            current = event
            chosen.append(event)
    if chosen:
        for event, end in ends.items():
            event.duration_ps = int64(end - event.span.begin)
        line.events = chosen


class Cursor:
    """A place on the grouping line that only moves forward."""

    def __init__(self, line: Line) -> None:
        self.events = line.events
        self.index = -1
        self.current: Event | None = None
        self.group: int | None = None

    def group_at(self, span: Timespan) -> int | None:
        """The group of the event that overlaps ``span``: the one found last, else the next."""
        if self.current is None or not self.current.span.overlaps(span):
            self.current = self._find(span)
            self.group = None if self.current is None else self.current.group_id
        return self.group

    def _find(self, span: Timespan) -> Event | None:
        if self.index >= 0 and self.events[self.index].span.overlaps(span):
            return self.events[self.index]
        for index in range(self.index + 1, len(self.events)):
            candidate = self.events[index].span
            if candidate.begin > span.end:
                break
            if candidate.end < span.begin:
                continue
            self.index = index
            return self.events[index] if candidate.overlaps(span) else None
        return None
