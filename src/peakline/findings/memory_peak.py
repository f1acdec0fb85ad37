"""What deserves a person's attention, said only where the numbers carry it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from peakline.memory.peak import UNATTRIBUTED, AllocatorPeak

__all__ = ["Finding", "peak_findings"]


@dataclass(frozen=True)
class Finding:
    """One observation with its numbers.

    ``kind`` is a fixed word, ``severity`` is ``info``, ``warning`` or ``error``, ``title`` one
    line, ``evidence`` the numbers behind it, ``suggestion`` what to do about it. ``rows`` is the
    table behind the numbers, empty where there is none; all its rows have the same columns.
    """

    kind: str
    severity: str
    title: str
    evidence: Mapping[str, object]
    suggestion: str
    rows: tuple[Mapping[str, object], ...] = field(default=())

    def __post_init__(self) -> None:
        if len({tuple(row) for row in self.rows}) > 1:
            raise ValueError(f"{self.kind}: rows with different columns")

    @property
    def table(self) -> tuple[Mapping[str, object], ...]:
        """The evidence as rows of a table: ``rows``, or the numbers as the only row."""
        return self.rows or (self.evidence,)

    def as_json(self) -> dict[str, object]:
        """The shape of ``findings`` in ``peakline memory --json``: rows are part of evidence."""
        evidence = dict(self.evidence)
        if self.rows:
            evidence["rows"] = [dict(row) for row in self.rows]
        return {
            "kind": self.kind,
            "severity": self.severity,
            "title": self.title,
            "evidence": evidence,
            "suggestion": self.suggestion,
        }


NEAR_CAPACITY = 0.95
"""A peak of this share of the capacity or more leaves no room for a larger batch or a retry."""

FRAGMENTED = 0.5
"""Fragmentation from which a request for half of the allocator's free pool must fail."""

FRAGMENTED_LOAD = 0.5
"""Fragmentation matters only where the peak takes this share of the capacity or more: below,
the allocator can still extend its pool instead of reusing the pieces."""

FRAGMENTED_FREE = 0.05
"""... and where at least this share of the capacity is free, so that something is locked up."""


def peak_findings(peak: AllocatorPeak) -> list[Finding]:
    """What stands out about one allocator's peak; nothing for a healthy one."""
    found = (_accounting(peak), _near_capacity(peak), _fragmentation(peak))
    return [finding for finding in found if finding is not None]


def _accounting(peak: AllocatorPeak) -> Finding | None:
    """The live buffers and the memory from before the profile exceed what is in use."""
    rest = sum(buffer.bytes for buffer in peak.peak_buffers if buffer.op == UNATTRIBUTED)
    if rest >= 0:
        return None
    return Finding(
        "accounting",
        "warning",
        f"{_named(peak)}: the buffers at the peak exceed the memory in use by {-rest} bytes",
        {
            "allocator": peak.allocator,
            "peak_bytes": peak.peak_bytes,
            "unattributed_bytes": rest,
            "double_allocations": peak.double_allocations,
            "unmatched_deallocations": peak.unmatched_deallocations,
        },
        "Records of deallocations are missing or out of order; capture a shorter profile.",
    )


def _near_capacity(peak: AllocatorPeak) -> Finding | None:
    capacity = peak.capacity_bytes
    if not capacity or peak.peak_bytes < NEAR_CAPACITY * capacity:
        return None
    return Finding(
        "near_capacity",
        "warning",
        f"{_named(peak)}: the peak takes {peak.peak_bytes / capacity:.1%} of the capacity",
        {
            "allocator": peak.allocator,
            "peak_bytes": peak.peak_bytes,
            "capacity_bytes": capacity,
            "share": peak.peak_bytes / capacity,
        },
        "Reduce what is live at the peak (smaller batch, rematerialisation, lower precision).",
    )


def _fragmentation(peak: AllocatorPeak) -> Finding | None:
    capacity, fragmentation = peak.capacity_bytes, peak.fragmentation_at_peak
    if not capacity or fragmentation is None or fragmentation < FRAGMENTED:
        return None
    free = capacity - peak.peak_bytes
    if peak.peak_bytes < FRAGMENTED_LOAD * capacity or free < FRAGMENTED_FREE * capacity:
        return None
    return Finding(
        "fragmentation_at_peak",
        "warning",
        f"{_named(peak)}: {fragmentation:.0%} of the pool's free memory is in small pieces "
        "at the peak",
        {
            "allocator": peak.allocator,
            "fragmentation": fragmentation,
            "free_bytes": free,
            "capacity_bytes": capacity,
        },
        "Keep sizes and shapes constant from step to step, and free large buffers before "
        "allocating larger ones.",
    )


def _named(peak: AllocatorPeak) -> str:
    return peak.allocator or "(unnamed allocator)"
