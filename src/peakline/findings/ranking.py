"""Findings of memory and of time in one order: what is worth fixing first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.findings.memory_peak import Finding

__all__ = ["Priority", "memory_gain", "priorities", "time_gain"]

_SEVERITIES = ("error", "warning", "info")
_SAVED = ("saved_bytes", "kept_bytes", "wasted_bytes", "height_bytes")
"""What a finding of memory says would go; the first that it has."""


@dataclass(frozen=True)
class Priority:
    """A finding, what it is about (``memory`` or ``time``), and what fixing it promises.

    ``gain_share`` is the share of the run's time, or of the allocator's peak, that would go: 0 to
    1, and 0 where the finding promises nothing that can be counted.
    """

    about: str
    finding: Finding
    gain_share: float

    def as_json(self) -> dict[str, object]:
        """The finding with the two words more."""
        return {"about": self.about, "gain_share": self.gain_share, **self.finding.as_json()}


def priorities(memory: Iterable[Finding], time: Iterable[Finding]) -> list[Priority]:
    """All findings, errors before warnings before information, and then by what would be won."""
    found = [Priority("memory", finding, memory_gain(finding)) for finding in memory]
    found += [Priority("time", finding, time_gain(finding)) for finding in time]
    return sorted(found, key=lambda one: (_SEVERITIES.index(one.finding.severity), -one.gain_share))


def time_gain(finding: Finding) -> float:
    """The share of the run's time that would go."""
    return _number(finding, "gain_share")


def memory_gain(finding: Finding) -> float:
    """The share of the allocator's peak that would go, at most all of it."""
    peak = _number(finding, "peak_bytes")
    saved = next((_number(finding, name) for name in _SAVED if name in finding.evidence), 0.0)
    return min(max(saved / peak, 0.0), 1.0) if peak > 0 else 0.0


def _number(finding: Finding, name: str) -> float:
    value = finding.evidence.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
