"""All that is known of one event: where it lies, what it holds, and its stats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.errors import NotFoundError
from peakline.tables import Profile
from peakline.timing.timeline.index import Timeline
from peakline.trace.steps import step_places_of, steps_of

_OPS = ("tf_op", "hlo_op", "op", "Name")
"""Names of arguments that hold the op, of XSpace and of TensorFlow's own timeline."""
_BYTES = (
    "bytes_accessed", "Bytes", "bytes", "allocation_bytes", "num_bytes", "size_bytes", "size",
)  # fmt: skip
_SHAPES = ("Input Dims", "Input dims", "tensor_shapes", "shape", "shape_with_layout")
_SIZE = re.compile(r"\bsize:(\d{1,19})\b", re.ASCII)
_RESULT = re.compile(r"%?[\w.-]+ = (\(.{1,2000}?\)|\w+\[[\d,<=]*\])(?:\{[^}]*\})? ", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)
_LONGEST = 400


@dataclass(frozen=True)
class EventFacts:
    """The ``op`` that the event is for or is, how many ``bytes`` it moves, makes or reads, and the
    ``shape`` of what it takes or makes, as the file writes it. None where the file does not say.
    """

    op: str | None
    bytes: int | None
    shape: str | None


def facts_of(name: str, stats: Sequence[tuple[str, str | None]]) -> EventFacts:
    """The facts of an event called ``name`` with these arguments."""
    own: dict[str, str] = {}
    for key, value in stats:
        if value:
            own.setdefault(key, value)
    op = next((own[key] for key in _OPS if key in own), None)
    if op is None and " = " in name:
        op = name.partition(" = ")[0].removeprefix("%")
    shape = next((own[key] for key in _SHAPES if key in own), None)
    if shape is None and (result := _RESULT.match(name)):
        shape = result[1]
    return EventFacts(_cut(op), _bytes(own), _cut(shape))


def _bytes(own: dict[str, str]) -> int | None:
    for key in _BYTES:
        if (text := own.get(key)) and _WHOLE.fullmatch(text):
            return int(text)
    details = _SIZE.search(own.get("memcpy_details", own.get("memset_details", "")))
    return int(details[1]) if details else None


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


_MOST_NAMES = 20
_RUN_TEXTS = ("op_type", "label", "kind")


@dataclass(frozen=True)
class Children:
    """What the direct children of one name come to."""

    name: str
    count: int
    total_ps: int


@dataclass(frozen=True)
class EventDetails:
    """One event; others are named by their place in the trace, -1 is none.

    ``parents`` begins with the innermost. ``children`` are the names of direct children that take
    the most time, at most 20, ``child_count`` and ``child_ps`` count all. ``previous`` and
    ``next`` are its neighbours on its track. ``step`` is the step's id and name, None where it
    belongs to none or was not requested. ``stats`` are those of the event itself, in the file's
    order.
    """

    event: int
    line: int
    row: int
    name: str
    start_ps: int
    end_ps: int
    own_ps: int
    parents: tuple[int, ...]
    child_count: int
    child_ps: int
    children: tuple[Children, ...]
    previous: int
    next: int
    step: tuple[int, str] | None
    stats: tuple[tuple[str, str | None], ...]


def place_of(timeline: Timeline, event_id: int) -> int:
    """The place in the trace of the event that is row ``event_id`` of its table.

    Raises NotFoundError where there is no such event, or it has no time.
    """
    trace = timeline.trace
    if trace.row is None:
        place = event_id if 0 <= event_id < trace.size else -1
    else:
        result = np.flatnonzero(trace.row == event_id)
        place = int(result[0]) if result.size else -1
    if place < 0:
        raise NotFoundError(f"no event {event_id} with a time; there are {trace.size:,}")
    return place


def details_of(
    profile: Profile, timeline: Timeline, event: int, *, with_step: bool = True
) -> EventDetails:
    """What is known of ``event`` (its place in the trace).

    Of the stats only its own are read. Without ``with_step`` its step is not looked for: the first
    time that takes grouping all events of the file.
    """
    trace, nesting = timeline.trace, timeline.nesting
    line = int(trace.lines_of(np.array([event]))[0])
    start, end = int(trace.start[event]), int(trace.end[event])
    parents, above = [], int(nesting.parent[event])
    while above >= 0:
        parents.append(above)
        above = int(nesting.parent[above])
    stop = trace.lines[line].last
    stop = event + 1 + int(np.searchsorted(trace.start[event + 1 : stop], end, "right"))
    own = event + 1 + np.flatnonzero(nesting.parent[event + 1 : stop] == event)
    lengths = trace.end[own] - trace.start[own]
    previous, following = timeline.neighbours(event)
    return EventDetails(
        event,
        line,
        int(nesting.row[event]),
        trace.name[event] or "",
        start,
        end,
        int(nesting.own_ps[event]),
        tuple(parents),
        int(own.size),
        int(lengths.sum()),
        _by_name(timeline, own, lengths),
        previous,
        following,
        _step(profile, event) if with_step else None,
        _stats(profile, timeline, event),
    )


def _by_name(timeline: Timeline, events: Int64Array, lengths: Int64Array) -> tuple[Children, ...]:
    names = timeline.trace.name
    codes, place = np.unique(names.codes[events], return_inverse=True)
    total = np.zeros(codes.size, np.int64)
    np.add.at(total, place, lengths)
    counts = np.bincount(place, minlength=codes.size)
    longest = np.argsort(-total, kind="stable")[:_MOST_NAMES]
    return tuple(
        Children(names.values[int(codes[k])], int(counts[k]), int(total[k])) for k in longest
    )


def _step(profile: Profile, event: int) -> tuple[int, str] | None:
    row = int(step_places_of(profile)[event])
    if row < 0:
        return None
    steps = steps_of(profile)
    return int(steps.step_id[row]), steps.name[row] or ""


def _stats(profile: Profile, timeline: Timeline, event: int) -> tuple[tuple[str, str | None], ...]:
    row = timeline.trace.rows(np.array([event]))
    if timeline.trace.source == "op_runs":
        runs = profile.columns("op_runs").take(row)
        known = ((name, runs.names(name)[0]) for name in _RUN_TEXTS if name in runs)
        return tuple((name, value) for name, value in known if value)
    stats = profile.stats_of(row)
    names, values = stats.names("name").to_list(), stats.names("value").to_list()
    return tuple((name or "", value) for name, value in zip(names, values, strict=True))
