"""Findings of memory and of time in one order: what is worth fixing first.

Errors come before warnings, and those before information. Of the same severity the one comes first
that gains most. What is gained by less *time* is the share of the run's time that would go. Memory
is worth nothing by itself: what a finding would save is a gain only where it is *scarce*, on an
allocator whose peak comes near its capacity or of which an allocation failed, and then it is the
share of the capacity. On a device that is far from full, no saving of memory outranks one of time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from peakline.findings.catalogue import kinds
from peakline.findings.finding import SEVERITIES, Finding
from peakline.shown import Brief, Several, Shown, Tabular, table_of

if TYPE_CHECKING:
    import pyarrow as pa

    from peakline.findings.finding import Finding


@dataclass(frozen=True, repr=False)
class Priority(Brief):
    """A finding, what it is about (``memory`` or ``time``), and what fixing it promises.

    ``gain_share`` is the share of the run's time, or of a scarce allocator's capacity, that would
    go: 0 to 1, and 0 where the finding promises nothing that counts.
    """

    about: str
    finding: Finding
    gain_share: float

    def as_json(self) -> dict[str, object]:
        """The finding with the two words more."""
        return {"about": self.about, "gain_share": self.gain_share, **self.finding.as_json()}


class Findings(Shown, Tabular, Sequence["Finding"]):
    """Findings of memory and time, what is worth fixing first in front: a sequence of `Finding`.

    ``priorities`` has for each what it is about and what fixing it promises.
    """

    def __init__(self, priorities: Iterable[Priority]) -> None:
        self.priorities = Several(priorities)

    def __len__(self) -> int:
        return len(self.priorities)

    @overload
    def __getitem__(self, place: int) -> Finding: ...
    @overload
    def __getitem__(self, place: slice) -> Findings: ...
    def __getitem__(self, place: int | slice) -> Finding | Findings:
        if isinstance(place, slice):
            return Findings(self.priorities[place])
        return self.priorities[place].finding

    def to_arrow(self) -> pa.Table:
        """A row for each: ``about`` (memory or time), ``gain_share`` (0 to 1), ``kind``,
        ``severity``, ``title``, ``evidence`` (JSON) and ``suggestion``.
        """
        return table_of([one.as_json() for one in self.priorities])

    def _headline(self) -> str:
        counts = Counter(one.severity for one in self)
        return ", ".join(f"{counts[one]} {one}" for one in SEVERITIES if counts[one]) or "none"


def priorities(memory: Iterable[Finding], time: Iterable[Finding]) -> list[Priority]:
    """All findings, errors before warnings before information, and then by what would be gained."""
    memory = tuple(memory)
    scarce = _scarce(memory)
    result = [Priority("memory", finding, _memory_gain(finding, scarce)) for finding in memory]
    result += [Priority("time", finding, _saved(finding)) for finding in time]
    return sorted(result, key=lambda one: (SEVERITIES.index(one.finding.severity), -one.gain_share))


def _scarce(memory: Iterable[Finding]) -> dict[object, float]:
    """The capacity of each allocator of which a finding says that it was reached.

    Where a report of a failed allocation does not say the limit, it is 0.
    """
    result: dict[object, float] = {}
    for finding in memory:
        kind = kinds().get(finding.kind)
        if kind is not None and kind.limit:
            name, limit = finding.evidence.get("allocator"), _number(finding, kind.limit)
            result[name] = max(limit, result.get(name, 0.0))
    return result


def _memory_gain(finding: Finding, scarce: Mapping[object, float]) -> float:
    """The share of the capacity that would go; of the peak where the capacity is not known."""
    name = finding.evidence.get("allocator")
    if name not in scarce:
        return 0.0
    whole = scarce[name] or _number(finding, "peak_bytes")
    return min(max(_saved(finding) / whole, 0.0), 1.0) if whole > 0 else 0.0


def _saved(finding: Finding) -> float:
    """What the finding says would go."""
    kind = kinds().get(finding.kind)
    return _number(finding, kind.saves) if kind is not None else 0.0


def _number(finding: Finding, name: str) -> float:
    value = finding.evidence.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


WORSE = 1.25
"""A finding is worse when what it says would go is so many times as much, ..."""
AT_LEAST = 0.05
"""... of the time at least this share more."""


def is_worse(before: Finding, after: Finding) -> bool:
    """Whether ``after``, of the same kind and about the same, says more is lost than ``before``."""
    if SEVERITIES.index(after.severity) != SEVERITIES.index(before.severity):
        return SEVERITIES.index(after.severity) < SEVERITIES.index(before.severity)
    kind = kinds().get(after.kind)
    old, new = (one.evidence.get(kind.saves if kind else "") for one in (before, after))
    if not isinstance(old, int | float) or not isinstance(new, int | float):
        return False
    if kind is not None and kind.about == "time" and new - old < AT_LEAST:
        return False
    return new > WORSE * old
