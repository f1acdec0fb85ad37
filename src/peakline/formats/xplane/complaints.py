"""What reading an XSpace lost, and what its profiler itself reported, each counted once."""

from __future__ import annotations

from peakline.formats.xplane.passes import Passes
from peakline.tables.reader import Warnings

__all__ = ["Complaints"]


class Complaints:
    """Says what passes over a file have met."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self._told: set[int | str] = set()
        self._nameless: set[str] = set()

    def add_to(self, warnings: Warnings) -> None:
        """Count what has not been counted yet."""
        size = self._passes.file.buffer.size
        for where, damage in self._passes.damage.items():
            if where in self._told or not damage:
                continue
            self._told.add(where)
            places = damage.places
            if damage.missing_bytes:
                places -= 1
                self._told.add("truncated")
                warnings.add(
                    "truncated",
                    f"the file ends {damage.missing_bytes} bytes before its content does "
                    f"(cut at offset {size}); answered from what is whole",
                )
            if "truncated" in self._told and damage.first_offset + damage.skipped_bytes == size:
                # The event that the end of the file cuts in two.
                continue
            warnings.add(
                "damaged",
                f"first at offset {damage.first_offset}; {damage.skipped_bytes} bytes skipped",
                places,
            )
        for plane in self._passes.outline.planes if "truncated" in self._told else ():
            if len(plane.lines) and not plane.event_names and plane.name not in self._nameless:
                self._nameless.add(plane.name)
                warnings.add(
                    "names_lost",
                    f"{plane.name}: the names of its events stood behind the cut, so none is known",
                )
        self._passes.far.tell(warnings)
        if self._passes.repeated_ids and "repeated" not in self._told:
            self._told.add("repeated")
            warnings.add(
                "repeated_ids",
                "ids that several steps produce (a merged or repeated file): work belongs to the "
                "event with its id that began last before it, and to no step where that is open",
                self._passes.repeated_ids,
            )
        if "profiler" not in self._told:
            self._told.add("profiler")
            for kind, texts in (
                ("profiler_error", self._passes.outline.errors),
                ("profiler_warning", self._passes.outline.notes),
            ):
                for text in texts:
                    warnings.add(kind, " ".join(text.split()))
