"""What is read of a profile by what the profile itself is made of."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from collections.abc import Set as AbstractSet
from typing import Protocol, TypeVar

from peakline.tables.columns import Columns

Made = TypeVar("Made")


class TableSource(Protocol):
    """The part of `peakline.tables.profile.Profile` that rules of formats, columns that are made
    of others, and queries need.
    """

    @property
    def tables(self) -> list[str]:
        """Names of the tables there are, sorted."""

    def columns(self, name: str, wanted: AbstractSet[str] | None = None) -> Columns:
        """A table; at least the ``wanted`` columns of it."""

    def typed_stats(self, wanted: AbstractSet[str]) -> Columns:
        """The stats of events that are called so."""

    def made_once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What ``make`` returned when it was first called for ``key``."""

    def check_open(self) -> None:
        """Raise UsageError when the profile is closed."""
