"""Build XSpace messages by name: metadata ids are handed out and reused per plane.

A stat's value kind follows its Python type: int (and bool) is an int64, float a double, str a
string, bytes opaque bytes, `Uint` a uint64, `Ref` an interned string, None no value at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from peakline.schema import XSpace


@dataclass(frozen=True)
class Uint:
    """A stat value of kind uint64."""

    value: int


@dataclass(frozen=True)
class Ref:
    """A string stored in the plane's stat metadata and referred to by id."""

    text: str


StatValue = object
"""One of the kinds above; anything else is a TypeError."""
Stats = Mapping[str, StatValue] | Iterable[tuple[str, StatValue]]


class SpaceBuilder:
    """An XSpace in the making; `space` is the message."""

    def __init__(self) -> None:
        self.space = XSpace()

    def plane(self, name: str, stats: Stats = ()) -> PlaneBuilder:
        """Append a plane; several may have the same name."""
        plane = PlaneBuilder(self.space.planes.add(name=name, id=len(self.space.planes)))
        plane.add_stats(plane.message, stats)
        return plane

    def host(self, stats: Stats = ()) -> PlaneBuilder:
        """Append a plane of host threads."""
        return self.plane("/host:CPU", stats)


class PlaneBuilder:
    """A plane; `message` is its XPlane."""

    def __init__(self, message: Any) -> None:
        self.message = message
        self._event_ids: dict[str, int] = {}
        self._stat_ids: dict[str, int] = {}

    def event_id(self, name: str) -> int:
        """The id of the event metadata called ``name``, made on first use."""
        if name not in self._event_ids:
            self._event_ids[name] = metadata_id = len(self._event_ids) + 1
            self.message.event_metadata[metadata_id].id = metadata_id
            self.message.event_metadata[metadata_id].name = name
        return self._event_ids[name]

    def stat_id(self, name: str) -> int:
        """The id of the stat metadata called ``name``, made on first use."""
        if name not in self._stat_ids:
            self._stat_ids[name] = metadata_id = len(self._stat_ids) + 1
            self.message.stat_metadata[metadata_id].id = metadata_id
            self.message.stat_metadata[metadata_id].name = name
        return self._stat_ids[name]

    def line(self, name: str = "", timestamp_ns: int = 0) -> LineBuilder:
        """Append a line (a thread) whose offsets count from ``timestamp_ns``."""
        number = len(self.message.lines) + 1
        return LineBuilder(
            self, self.message.lines.add(id=number, name=name, timestamp_ns=timestamp_ns)
        )

    def add_stats(self, owner: Any, stats: Stats) -> None:
        """Append stats to an event, an event metadata or the plane itself."""
        for name, value in stats.items() if isinstance(stats, Mapping) else stats:
            stat = owner.stats.add(metadata_id=self.stat_id(name))
            match value:
                case None:
                    pass
                case Uint(number):
                    stat.uint64_value = number
                case Ref(text):
                    stat.ref_value = self.stat_id(text)
                case int():
                    stat.int64_value = int(value)
                case float():
                    stat.double_value = value
                case str():
                    stat.str_value = value
                case bytes():
                    stat.bytes_value = value
                case _:
                    raise TypeError(f"{name}: {value!r} is no stat value")


class LineBuilder:
    """A line of a plane; `message` is its XLine."""

    def __init__(self, plane: PlaneBuilder, message: Any) -> None:
        self.plane = plane
        self.message = message

    def event(
        self,
        name: str,
        offset_ps: int = 0,
        duration_ps: int = 0,
        stats: Stats = (),
        *,
        metadata_id: int | None = None,
        num_occurrences: int | None = None,
    ) -> LineBuilder:
        """Append an event and return the line.

        ``metadata_id`` replaces the id that belongs to ``name`` (to point nowhere);
        ``num_occurrences`` makes an aggregated event, which has no time.
        """
        event = self.message.events.add(
            metadata_id=self.plane.event_id(name) if metadata_id is None else metadata_id,
            duration_ps=duration_ps,
        )
        if num_occurrences is None:
            event.offset_ps = offset_ps
        else:
            event.num_occurrences = num_occurrences
        self.plane.add_stats(event, stats)
        return self
