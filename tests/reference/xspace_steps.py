"""The steps of an XSpace, read slowly from what marks them. Times are picoseconds since 1970.

The rules are public. A mark with a number is an event with the stat ``step_num``: what
``tf.profiler.experimental.Trace(name, step_num=i)`` and ``jax.profiler.StepTraceAnnotation`` write;
``_r`` beside it only makes it a root of XProf's grouping (xplane_schema.h, group_events.cc of
openxla/xla). ``jax.profiler.TraceAnnotation`` writes an event without stats.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peakline.schema import XSpace

# What the runtimes trace around every call of a compiled function; JAX does so twice, one in the
# other.
_RUN = re.compile(r"PjitFunction\(.*\)|EagerLocalExecute: __inference_.*")
# What TensorFlow traces around that: from Python down to the function.
_ROUTE = re.compile(r"TFE_Py_.*|Eager.*|KernelAndDeviceFunc::Run")


@dataclass(frozen=True)
class Event:
    """An event of a thread, with its stats as Python values."""

    thread: int
    name: str
    start_ps: int
    end_ps: int
    stats: dict[str, Any]

    def holds(self, other: Event) -> bool:
        """Whether the other one lies within it, on the same thread."""
        is_within = self.start_ps <= other.start_ps and other.end_ps <= self.end_ps
        return self.thread == other.thread and self != other and is_within


@dataclass(frozen=True)
class Mark:
    """What a program marked as a step. ``number`` is None where the mark has none."""

    name: str
    number: int | None
    thread: int
    start_ps: int
    end_ps: int

    @property
    def shown(self) -> str:
        """Name and number."""
        return self.name if self.number is None else f"{self.name} {self.number}"


def read(path: Path) -> Any:
    """The XSpace of a file, compressed or not."""
    content = path.read_bytes()
    return XSpace.FromString(gzip.decompress(content) if path.suffix == ".gz" else content)


def _base_ns(space: Any) -> int:
    """When the profile began; lines count from then."""
    for plane in space.planes:
        for stat in plane.stats:
            if plane.stat_metadata[stat.metadata_id].name == "profile_start_time":
                return int(stat.uint64_value)
    return 0


def host_events(space: Any) -> list[Event]:
    """Every event of the host's threads, in order of time, the longest of equal starts first."""
    result = []
    base = _base_ns(space)
    for plane in space.planes:
        if not plane.name.startswith("/host:CPU"):
            continue
        names = {key: metadata.name for key, metadata in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                start = (base + line.timestamp_ns) * 1000 + event.offset_ps
                stats = {names[stat.metadata_id]: _value(stat, names) for stat in event.stats}
                name = plane.event_metadata[event.metadata_id].name
                result.append(Event(line.id, name, start, (start + event.duration_ps), stats))
    return sorted(result, key=lambda event: (event.start_ps, -event.end_ps))


def _value(stat: Any, names: dict[int, str]) -> Any:
    kind = stat.WhichOneof("value")
    if kind is None:
        return None
    return names.get(stat.ref_value) if kind == "ref_value" else getattr(stat, kind)


def marks_of(events: list[Event]) -> list[Mark]:
    """The steps that the program marked, in order of time: with numbers, else by name alone."""
    numbered = [event for event in events if "step_num" in event.stats]
    if numbered:
        return [
            Mark(event.name, event.stats["step_num"], event.thread, event.start_ps, event.end_ps)
            for event in numbered
        ]
    return [
        Mark(event.name, None, event.thread, event.start_ps, event.end_ps)
        for event in _named(events)
    ]


def _named(events: list[Event]) -> list[Event]:
    """Annotations around calls of compiled functions, the same name more than once, outermost.

    Most calls of their threads must lie in one: JAX annotates what it compiles, which may hold a
    call too. Python's functions, which JAX's Python tracer writes with a ``$``, are no annotations;
    what the runtime does for a call lies within the call, and so holds none.
    """
    runs = [event for event in events if _RUN.fullmatch(event.name)]
    holders = [
        event
        for event in events
        if not event.name.startswith("$")
        # The name of a function of TensorFlow, around its call.
        and "tf_function_call" not in event.stats
        and not _ROUTE.fullmatch(event.name)
        and not _RUN.fullmatch(event.name)
        and any(event.holds(run) for run in runs)
    ]
    outer = [event for event in holders if not any(other.holds(event) for other in holders)]
    names = [event.name for event in outer]
    marks = [event for event in outer if names.count(event.name) > 1]
    threads = {mark.thread for mark in marks}
    among = [run for run in runs if run.thread in threads]
    inside = [run for run in among if any(mark.holds(run) for mark in marks)]
    return marks if 2 * len(inside) > len(among) else []


def runs_of(events: list[Event]) -> list[Event]:
    """The calls of compiled functions, in order of time; of nested ones the outermost."""
    runs = [event for event in events if _RUN.fullmatch(event.name)]
    return [run for run in runs if not any(other.holds(run) for other in runs)]


def cut_off_from(events: list[Event], marks: list[Mark]) -> int | None:
    """From when on a step ran whose mark was not ended before the profile was stopped.

    The runtimes record a mark when it ends; of a step that was running then there is its work
    alone. So a step was cut off when a function is called after the last mark, on its thread, that
    otherwise is called inside of marks and never between them. None where there is no such call.
    """
    if not marks:
        return None
    threads = {mark.thread for mark in marks}
    inside, between, after = set(), set(), []
    for run in runs_of(events):
        if run.thread not in threads:
            continue
        if any(mark.start_ps < run.start_ps < mark.end_ps for mark in marks):
            inside.add(run.name)
        elif run.start_ps > marks[-1].end_ps:
            after.append(run)
        else:
            between.add(run.name)
    return min([run.start_ps for run in after if run.name in inside - between], default=None)
