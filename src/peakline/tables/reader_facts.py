"""What only some formats can tell: asked of the reader, with an answer where that cannot."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from peakline.deadline import holding
from peakline.tables.columns import Columns
from peakline.tables.reader import Reader, Warnings
from peakline.tables.tables import empty_columns
from peakline.tables.typed import typed_stats

__all__ = ["ReaderFacts"]


class ReaderFacts:
    """The part of `Profile` that stands on the optional methods of a `Reader`.

    Every method raises UsageError when the profile is closed, and InputError when the file cannot
    be read.
    """

    _reader: Reader
    _lock: threading.RLock
    _warnings: Warnings
    _strict: bool

    @property
    @abstractmethod
    def tables(self) -> list[str]:
        """Names of the tables this profile has, sorted."""

    @abstractmethod
    def columns(self, name: str, wanted: AbstractSet[str] | None = None) -> Columns:
        """The named table as NumPy columns."""

    @abstractmethod
    def strict(self) -> None:
        """Raise StrictError naming the warnings, if there are any."""

    @abstractmethod
    def check_open(self) -> None:
        """Raise UsageError when the profile is closed."""

    @property
    def start_ns(self) -> int | None:
        """When the clock is zero, in ns since 1970 by the clock of the host; None where the format
        does not tell.
        """
        with holding(self._lock):
            self.check_open()
            found: int | None = getattr(self._reader, "start_ns", None)
            return found

    def expect(self, *tables: str) -> None:
        """Say which tables will be read, so that one pass over the file gives what it can."""
        with holding(self._lock):
            expect = self._of_reader("expect")
            if expect is not None:
                expect(frozenset(tables))

    def holds_stats(self, wanted: AbstractSet[str]) -> bool:
        """Whether `typed_stats` gives these without reading the file: they came with the events."""
        with holding(self._lock):
            holds = self._of_reader("holds_stats")
            return holds is not None and bool(holds(wanted))

    def typed_stats(self, wanted: AbstractSet[str]) -> Columns:
        """The stats of events whose name is one of ``wanted``, numbers as numbers.

        Columns ``event_id`` (rows of ``events``, ascending), ``name``, ``integer``, ``real`` and
        ``text``; of the last three the one that holds the value is not null. An unsigned number
        above 2^63 wraps. Cheap where few events have such a stat; read anew every time.
        """
        with holding(self._lock):
            read = self._of_reader("typed_stats")
            if read is not None:
                found: Columns = read(wanted, self._warnings)
                if self._strict:
                    self.strict()
                return found
        return typed_stats(self._all_stats(), wanted)

    def stats_of(self, rows: npt.NDArray[Any]) -> Columns:
        """The stats of the events ``rows`` (of ``events``): ``event_id``, ``name``, ``value``.

        Ascending by event, as in ``event_stats``; rows named twice count once, those that no
        event has are left out. Where the format allows, only these events are read.
        """
        with holding(self._lock):
            read = self._of_reader("stats_of")
            if read is not None:
                found: Columns = read(rows)
                return found
        stats = self._all_stats()
        kept = np.flatnonzero(np.isin(stats.array("event_id"), rows))
        return stats.take(kept[np.argsort(stats.array("event_id")[kept], kind="stable")])

    def hlo_modules(self) -> list[tuple[str, bytes]]:
        """The compiled programs that the file holds: name and HloProto (xla/service/hlo.proto)."""
        with holding(self._lock):
            read = self._of_reader("hlo_modules")
            return [] if read is None else list(read())

    def plane_bytes(self, name: str) -> dict[int, bytes]:
        """By ``plane_id`` the bytes of the stat called ``name``, of the planes that have such."""
        with holding(self._lock):
            read = self._of_reader("plane_bytes")
            return {} if read is None else dict(read(name))

    def is_grouped(self) -> bool | None:
        """Whether the file itself says which step an event belongs to; None for a format in which
        that is no question.
        """
        with holding(self._lock):
            read = self._of_reader("is_grouped")
            return None if read is None else bool(read())

    def messages(self) -> tuple[list[str], list[str]]:
        """What the profiler that wrote the file reported: errors, and warnings."""
        with holding(self._lock):
            read = self._of_reader("messages")
            found: tuple[list[str], list[str]] = ([], []) if read is None else read()
            return found

    def _of_reader(self, name: str) -> Callable[..., Any] | None:
        self.check_open()
        found: Callable[..., Any] | None = getattr(self._reader, name, None)
        return found

    def _all_stats(self) -> Columns:
        has_stats = "event_stats" in self.tables
        return self.columns("event_stats") if has_stats else empty_columns("event_stats")
