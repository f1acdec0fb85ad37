"""What deserves a person's attention, said only where the numbers carry it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peakline.shown import Shown, Tabular, table_of

if TYPE_CHECKING:
    import pyarrow as pa

SEVERITIES = ("error", "warning", "info")
"""The gravest first."""


@dataclass(frozen=True, repr=False)
class Finding(Shown, Tabular):
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

    def title_with(self, names: Mapping[str, str]) -> str:
        """The title with the allocator's name as screens show it, by its name in the file."""
        recorded = str(self.evidence.get("allocator", ""))
        if recorded in names and self.title.startswith(f"{recorded}:"):
            return names[recorded] + self.title.removeprefix(recorded)
        return self.title

    def is_at_least(self, severity: str) -> bool:
        """Whether it is as grave as ``severity``, or graver."""
        return SEVERITIES.index(self.severity) <= SEVERITIES.index(severity)

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

    def to_arrow(self) -> pa.Table:
        """`table` as a pyarrow.Table."""
        return table_of(self.table)

    def _headline(self) -> str:
        return f"{self.severity}, {self.title}"
