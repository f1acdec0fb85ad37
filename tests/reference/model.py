"""An XSpace as plain Python objects with every name looked up.

The rules that read it are those of xplane_visitor.h in openxla/xla: a stat has one value of one
kind, and reading it as another kind gives zero or the empty string.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from peakline.schema import XSpace

EventKey = tuple[int, int, int]
"""Plane, line and event number in the file, each from 0."""


def int64(value: int) -> int:
    """``value`` reduced to a signed 64-bit integer, as machine arithmetic does."""
    return (value + 2**63) % 2**64 - 2**63


def int32(value: int) -> int:
    """``value`` reduced to a signed 32-bit integer."""
    return (value + 2**31) % 2**32 - 2**31


@dataclass
class Stat:
    """``kind`` is int64, uint64, double, str (a reference too), bytes, context or none.

    A ``context`` value is a tuple made by a rewrite where the real software uses a hash.
    """

    name: str
    kind: str
    value: Any

    @property
    def int_value(self) -> int:
        return self.value if self.kind == "int64" else 0

    @property
    def int_or_uint(self) -> int:
        """The value as an unsigned 64-bit integer, for either kind of integer."""
        return self.value % 2**64 if self.kind in ("int64", "uint64") else 0

    @property
    def context_id(self) -> object:
        return self.value if self.kind == "context" else self.int_or_uint

    @property
    def double_value(self) -> float:
        return self.value if self.kind == "double" else 0.0

    @property
    def text(self) -> str:
        return self.value if self.kind == "str" else ""


@dataclass(frozen=True)
class Timespan:
    """Begin and duration in picoseconds, unsigned 64-bit, as timespan.h has it."""

    begin: int
    duration: int

    @property
    def end(self) -> int:
        return (self.begin + self.duration) % 2**64

    def includes(self, other: Timespan) -> bool:
        """Both ends inclusive."""
        return self.begin <= other.begin and other.end <= self.end

    def overlaps(self, other: Timespan) -> bool:
        """Both ends inclusive."""
        return self.begin <= other.end and other.begin <= self.end


@dataclass(eq=False)
class Event:
    """One event; ``key`` is None for an event that a rewrite added."""

    name: str
    offset_ps: int
    duration_ps: int
    stats: list[Stat]
    line: Line
    key: EventKey | None = None

    def stat(self, name: str) -> Stat | None:
        """The first stat of that name."""
        return next((stat for stat in self.stats if stat.name == name), None)

    def set_stat(self, name: str, kind: str, value: Any) -> None:
        """Overwrite the first stat of that name, or append one."""
        stat = self.stat(name)
        if stat is None:
            self.stats.append(Stat(name, kind, value))
        else:
            stat.kind, stat.value = kind, value

    @property
    def span(self) -> Timespan:
        begin = self.line.timestamp_ns * 1000 + self.offset_ps
        return Timespan(begin % 2**64, self.duration_ps % 2**64)

    @property
    def group_id(self) -> int | None:
        """The event's group as a reader sees it: its first ``group_id`` stat."""
        stat = self.stat("group_id")
        return None if stat is None else stat.int_value


@dataclass(eq=False)
class Line:
    name: str
    timestamp_ns: int
    plane: Plane
    events: list[Event] = field(default_factory=list)


@dataclass(eq=False)
class Plane:
    """``event_names`` and ``stat_names`` are those of the metadata, used or not."""

    name: str
    event_names: set[str]
    stat_names: set[str]
    stats: list[Stat]
    lines: list[Line] = field(default_factory=list)

    def events(self) -> Iterator[Event]:
        for line in self.lines:
            yield from line.events

    @property
    def is_host(self) -> bool:
        prefixes = (
            "/host:CPU", "Host CPUs", "/host:tfstreamz", "/host:metadata", "Syscalls",
            "/host:python-tracer", "/host:CUPTI", "/host:__ScopeRangeCallStack__",
        )  # fmt: skip
        return self.name.startswith(prefixes)

    @property
    def is_device(self) -> bool:
        return not self.is_host and self.name.startswith(("/device", "#Chip", "/custom:"))

    @property
    def process_id(self) -> int | None:
        stat = next((stat for stat in self.stats if stat.name == "process_id"), None)
        return None if stat is None else int32(stat.int_value)


def _read_stats(plane: Any, stats: Any) -> list[Stat]:
    def stat_name(metadata_id: int) -> str:
        known = plane.stat_metadata
        return known[metadata_id].name if metadata_id in known else ""

    read = []
    for stat in stats:
        which = stat.WhichOneof("value")
        kind = "none" if which is None else which.removesuffix("_value")
        value: Any = None if which is None else getattr(stat, which)
        if kind == "ref":
            kind, value = "str", stat_name(int64(value))
        read.append(Stat(stat_name(stat.metadata_id), kind, value))
    return read


def read_space(space: XSpace) -> list[Plane]:
    """All planes of ``space``; an aggregated event reads as offset 0."""
    planes = []
    for plane_number, message in enumerate(space.planes):
        plane = Plane(
            message.name,
            {metadata.name for metadata in message.event_metadata.values()},
            {metadata.name for metadata in message.stat_metadata.values()},
            _read_stats(message, message.stats),
        )
        names = {key: metadata.name for key, metadata in message.event_metadata.items()}
        for line_number, line_message in enumerate(message.lines):
            line = Line(line_message.name, line_message.timestamp_ns, plane)
            for event_number, event in enumerate(line_message.events):
                line.events.append(
                    Event(
                        names.get(event.metadata_id, ""),
                        event.offset_ps,
                        event.duration_ps,
                        _read_stats(message, event.stats),
                        line,
                        (plane_number, line_number, event_number),
                    )
                )
            plane.lines.append(line)
        planes.append(plane)
    return planes
