"""What a source gives a profile: the plug-in point of `peakline.formats`."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Protocol

from peakline.tables.columns import Columns

__all__ = ["Reader", "Warnings"]


class Warnings:
    """Counts of everything lost, skipped or guessed, by kind; a kind keeps its first detail."""

    __retained__ = "_entries _once"

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, str]] = {}
        self._once: set[tuple[str, str]] = set()

    def add(self, kind: str, detail: str, count: int = 1) -> None:
        """Count ``count`` more of ``kind``; nothing happens for a count of 0."""
        if count > 0:
            before, first = self._entries.get(kind, (0, detail))
            self._entries[kind] = (before + count, first)

    def add_once(self, kind: str, detail: str, count: int = 1) -> None:
        """As `add`, but for what was counted so before: an answer may be asked for again."""
        if (kind, detail) not in self._once:
            self._once.add((kind, detail))
            self.add(kind, detail, count)

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> list[tuple[str, int, str]]:
        """``(kind, count, detail)`` in order of first appearance."""
        # A list first: another thread may be reading, and counting.
        return [(kind, count, detail) for kind, (count, detail) in list(self._entries.items())]


class Reader(Protocol):
    """An open file of one format. Tables are read when asked for.

    ``read`` is called again for a table when a later question needs more of its columns: rows
    and their order must be the same, and nothing may be counted in the warnings twice. Long work
    calls `peakline.deadline.check_deadline`; after the error that it raises, the same must be
    answered as if nothing had happened.

    A reader may also have ``has_rows(table) -> bool | None``: whether a table of `tables` has a
    row, from less than reading it; None when only reading tells. And what `ReaderFacts` asks for,
    where the format can tell it: ``start_ns``, ``typed_stats(names, warnings)``,
    ``holds_stats(names)``, ``stats_of(rows)``, ``hlo_modules()``, ``plane_bytes(name)``,
    ``is_grouped()``, ``messages()``, ``expect(tables)``. ``forget(table)`` frees what only a table
    needs that is given up.
    """

    @property
    def format(self) -> str:
        """Short name of the format, such as ``xplane``."""

    @property
    def path(self) -> str:
        """What was opened, as the caller named it."""

    @property
    def host(self) -> str:
        """The host the profile came from, empty when the file does not say."""

    @property
    def tables(self) -> frozenset[str]:
        """Names of the tables this file can fill."""

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table of `tables`; what is lost on the way is counted in ``warnings``.

        ``columns`` are those that are needed, None means all; others may come along. A nullable
        column that the format never fills may be left out.
        """

    def duration_ps(self) -> int:
        """From the profile's start to the end of its last event, and as long as the profiler ran
        where the file says so; 0 when nothing has a time.
        """

    def close(self) -> None:
        """Release the file."""
