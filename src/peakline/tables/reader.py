"""What a source gives a profile: the plug-in point of `peakline.formats`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any

from peakline.arrays import AnyArray, Int64Array
from peakline.tables.columns import Columns
from peakline.tables.event_rules import EventRules, ProcessGroup
from peakline.tables.losses import Warnings
from peakline.tables.programs import Programs
from peakline.tables.rank_facts import RankFacts
from peakline.tables.table_source import TableSource

__all__ = ["Reader", "Warnings"]


class Reader(ABC):
    """An open file of one format. Tables are read when they are needed.

    ``format`` is the short name of the format, such as ``xplane``, ``path`` what was opened, as the
    caller named it. What only some files can say has an answer here for the others.

    ``read`` is called again for a table when a later question needs more of its columns: rows
    and their order must be the same, and nothing may be counted in the warnings twice. Long work
    calls `peakline.deadline.check_deadline`; after the error that it raises, the same must be
    answered as if nothing had happened.
    """

    format: str
    path: str
    event_rules: EventRules = EventRules()
    """What the events of the format are, beyond what its tables say."""
    allocator_settings: Mapping[str, Any] = MappingProxyType({})
    """How PyTorch's allocator was set, as a snapshot has it (``allocator_settings``)."""
    never_derived: frozenset[str] = frozenset()
    """Tables that are not made from others where the file has none."""

    @property
    def host(self) -> str:
        """The host the profile came from, empty when the file does not say."""
        return ""

    @property
    def rank_facts(self) -> RankFacts:
        """Which rank of a job the profile is of, as far as the file says."""
        return RankFacts()

    @property
    @abstractmethod
    def tables(self) -> frozenset[str]:
        """Names of the tables this file can fill."""

    @abstractmethod
    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table of `tables`; what is lost on the way is counted in ``warnings``.

        ``columns`` are those that are needed, None means all; others may come along. A nullable
        column that the format never fills may be left out.
        """

    @abstractmethod
    def duration_ps(self) -> int:
        """From the profile's start to the end of its last event, and as long as the profiler ran
        where the file says so; 0 when nothing has a time.
        """

    @property
    def stored_bytes(self) -> int:
        """The size of the file on the disk; 0 where that is not known."""
        return 0

    def check(self) -> None:  # noqa: B027 (nothing can happen to what is in memory)
        """Raise InputError when the file has been written meanwhile, and what was read is void."""

    @abstractmethod
    def close(self) -> None:
        """Release the file."""

    @property
    def start_ns(self) -> int | None:
        """When the clock is zero, in ns since 1970 by the clock of the host."""
        return None

    @property
    def zero_ps(self) -> int:
        """The time on the file's own clock at which the profile's clock is 0."""
        return 0

    def has_rows(self, table: str) -> bool | None:  # noqa: ARG002 (of the readers that know)
        """Whether a table of `tables` has a row, from less than reading it; None when only reading
        it shows.
        """
        return None

    def expect(self, tables: AbstractSet[str]) -> None:  # noqa: B027 (a hint)
        """All of ``tables`` will be read: one pass over the file is to give what it can."""

    def forget(self, table: str) -> None:  # noqa: B027 (a hint)
        """Nobody reads ``table`` again: free what only it needs."""

    def holds_stats(self, wanted: AbstractSet[str]) -> bool:  # noqa: ARG002
        """Whether `typed_stats` gives these without reading the file."""
        return False

    def typed_stats(
        self,
        wanted: AbstractSet[str],  # noqa: ARG002
        warnings: Warnings,  # noqa: ARG002
    ) -> Columns | None:
        """As `Profile.typed_stats`; None where only ``event_stats`` has them."""
        return None

    def stats_of(self, rows: AnyArray) -> Columns | None:  # noqa: ARG002
        """As `Profile.stats_of`; None where only ``event_stats`` has them."""
        return None

    def programs(self) -> Programs | None:
        """The compiled programs that the file holds; None where its format has none."""
        return None

    def plane_bytes(self, name: str) -> dict[int, bytes]:  # noqa: ARG002
        """By ``plane_id`` the bytes of the stat called ``name``."""
        return {}

    def type_bytes(self, name: str) -> dict[int, bytes]:  # noqa: ARG002
        """By ``type_id`` the bytes of the stat called ``name``."""
        return {}

    def type_children(self) -> dict[int, tuple[int, ...]]:
        """By ``type_id`` the kinds of events that it consists of."""
        return {}

    def process_groups(self) -> tuple[ProcessGroup, ...]:
        """The groups of processes that the file lists; none where it lists none."""
        return ()

    def is_grouped(self) -> bool | None:
        """Whether the steps of the events stand in the file; None where that is no question."""
        return None

    def step_links(self) -> tuple[Int64Array, int] | None:
        """As `Profile.step_links`; None where that is no question."""
        return None

    def messages(self) -> tuple[list[str], list[str]]:
        """What the profiler that wrote the file reported: errors, and warnings."""
        return [], []

    def runtime(self, profile: TableSource) -> Reader | None:  # noqa: ARG002  (for readers that can)
        """What reads ``profile``, which reads this file, with the steps into which the runtime's
        profiler groups events; None where they are those of ``steps``.
        """
        return None
