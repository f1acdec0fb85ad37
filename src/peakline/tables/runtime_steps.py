"""A profile with the steps into which the runtime's own profiler groups events."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from peakline.tables.columns import Columns
from peakline.tables.reader import Reader, Warnings

if TYPE_CHECKING:
    from peakline.tables.profile import Profile

__all__ = ["RuntimeSteps"]


class RuntimeSteps:
    """A `Reader` of what ``profile`` has read: all but the steps is the same, and shared."""

    def __init__(self, profile: Profile, reader: Reader, steps: Columns) -> None:
        self._profile, self._reader, self._steps = profile, reader, steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def close(self) -> None:
        """Nothing: the file is the other profile's."""

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """One table; warnings are counted in the profile that reads."""
        del warnings
        if table == "steps":
            return self._steps
        found = self._profile.columns(table, columns)
        if table != "events" or (columns is not None and "step_id" not in columns):
            return found
        step, known = self._reader.runtime_step_of_events()
        return Columns({**found.data, "step_id": step}, {**found.valid, "step_id": known})
