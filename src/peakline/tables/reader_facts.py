"""What the reader of a profile says beside its tables."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Any

import numpy as np

from peakline.arrays import Int64Array
from peakline.deadline import holding
from peakline.errors import NotFoundError
from peakline.tables.columns import Columns
from peakline.tables.event_rules import EventRules, ProcessGroup, typed_stats
from peakline.tables.programs import Programs
from peakline.tables.rank_facts import RankFacts
from peakline.tables.reader import Reader, Warnings


class ReaderFacts:
    """The part of `Profile` that hands on what its `Reader` says.

    Every method raises UsageError when the profile is closed, and InputError when the file cannot
    be read.
    """

    _reader: Reader
    _lock: threading.RLock
    _warnings: Warnings
    _strict: bool

    @abstractmethod
    def columns_or_empty(self, name: str) -> Columns:
        """The named table as NumPy columns; without rows where the profile lacks it."""

    @abstractmethod
    def strict(self) -> None:
        """Raise StrictError naming the warnings, if there are any."""

    @abstractmethod
    def check_open(self) -> None:
        """Raise UsageError when the profile is closed."""

    def check_host(self, host: str | None) -> None:
        """Raise NotFoundError for a ``host`` that is named and not the profile's."""
        if host and host != self._reader.host:
            known = self._reader.host or "one without a name"
            raise NotFoundError(f"no host {host!r} in {self._reader.path}; there is: {known}")

    @property
    def event_rules(self) -> EventRules:
        """What the events of the profile's format are, beyond what its tables say."""
        return self._reader.event_rules

    @property
    def allocator_settings(self) -> Mapping[str, Any]:
        """How the allocator of a snapshot was set, as the file has it; empty where it says nothing.

        Raises InputError where the file cannot be read.
        """
        with self._open_reader() as reader:
            return reader.allocator_settings

    @property
    def rank_facts(self) -> RankFacts:
        """Which rank of a job the profile is of, as far as the file says.

        >>> with peakline.open("logs/rank3.json.gz") as profile:
        ...     profile.rank_facts.rank
        3
        """
        with self._open_reader() as reader:
            return reader.rank_facts

    @property
    def start_ns(self) -> int | None:
        """When the clock is zero, in ns since 1970 by the clock of the host; None where the format
        does not say.
        """
        with self._open_reader() as reader:
            return reader.start_ns

    def expect(self, *tables: str) -> None:
        """Say which tables will be read, so that one pass over the file gives what it can."""
        with self._open_reader() as reader:
            reader.expect(frozenset(tables))

    def holds_stats(self, wanted: AbstractSet[str]) -> bool:
        """Whether `typed_stats` gives these without reading the file: they came with the events."""
        with self._open_reader() as reader:
            return reader.holds_stats(wanted)

    def typed_stats(self, wanted: AbstractSet[str]) -> Columns:
        """The stats of events whose name is one of ``wanted``, numbers as numbers.

        Columns ``event_id`` (rows of ``events``, ascending), ``name``, ``integer``, ``real`` and
        ``text``; of the last three the one that holds the value is not null. An unsigned number
        above 2^63 wraps. Cheap where few events have such a stat; read anew every time.
        """
        with self._open_reader() as reader:
            result = reader.typed_stats(wanted, self._warnings)
            if result is not None:
                if self._strict:
                    self.strict()
                return result
        return typed_stats(self.columns_or_empty("event_stats"), wanted)

    def stats_of(self, rows: Int64Array) -> Columns:
        """The stats of the events ``rows`` (of ``events``): ``event_id``, ``name``, ``value``.

        Ascending by event, as in ``event_stats``; rows named twice count once, those that no
        event has are left out. Where the format allows, only these events are read.
        """
        with self._open_reader() as reader:
            result = reader.stats_of(rows)
            if result is not None:
                return result
        stats = self.columns_or_empty("event_stats")
        own = np.flatnonzero(np.isin(stats.array("event_id"), rows))
        return stats.take(own[np.argsort(stats.array("event_id")[own], kind="stable")])

    def programs(self) -> Programs | None:
        """The compiled programs of the profile, to be read one by one; None where its format
        has none.
        """
        with self._open_reader() as reader:
            result = reader.programs()
            if result is not None and result.left_out:
                result.report(self._warnings)
                if self._strict:
                    self.strict()
            return result

    def hlo_modules(self) -> list[tuple[str, bytes]]:
        """The compiled programs that the file holds: name and HloProto (xla/service/hlo.proto)."""
        result = self.programs()
        if result is None:
            return []
        return [
            (result.label(number), result.data(number).tobytes()) for number in range(len(result))
        ]

    def plane_bytes(self, name: str) -> dict[int, bytes]:
        """By ``plane_id`` the bytes of the stat called ``name``, of the planes that have such."""
        with self._open_reader() as reader:
            return dict(reader.plane_bytes(name))

    def type_bytes(self, name: str) -> dict[int, bytes]:
        """By ``type_id`` the bytes of the stat called ``name``, of the kinds that have such."""
        with self._open_reader() as reader:
            return dict(reader.type_bytes(name))

    def type_children(self) -> dict[int, tuple[int, ...]]:
        """By ``type_id`` the kinds of events that it consists of, such as the parts of a fusion."""
        with self._open_reader() as reader:
            return dict(reader.type_children())

    def process_groups(self) -> tuple[ProcessGroup, ...]:
        """The groups of processes that the file lists, whose collectives the profile holds."""
        with self._open_reader() as reader:
            return reader.process_groups()

    def is_grouped(self) -> bool | None:
        """Whether the file itself says which step an event belongs to; None for a format in which
        that is no question.
        """
        with self._open_reader() as reader:
            return reader.is_grouped()

    def step_links(self) -> tuple[Int64Array, int]:
        """Pairs of step ids, a row each, ascending: the work of the first led to that of the
        second, as requests lead to the batch that serves them; and how many were left out
        because too many steps meet in one place. Each call reads the file anew.
        """
        with self._open_reader() as reader:
            return reader.step_links() or (np.zeros((0, 2), np.int64), 0)

    def messages(self) -> tuple[list[str], list[str]]:
        """What the profiler that wrote the file reported: errors, and warnings."""
        with self._open_reader() as reader:
            return reader.messages()

    @contextmanager
    def _open_reader(self) -> Iterator[Reader]:
        with holding(self._lock):
            self.check_open()
            try:
                yield self._reader
            finally:
                # Of a file that was written meanwhile, whatever else was found is void.
                self._reader.check()
