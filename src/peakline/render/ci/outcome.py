"""What every report of a check says: the checks, whose they are, and where to point at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from peakline.check.verdict import Check
from peakline.render.document.check import name_of
from peakline.text import one_line


@dataclass(frozen=True)
class Outcome:
    """The ``checks`` of a profile at ``path``. ``names`` are those of the allocators on screens;
    ``places`` are file and line to point at, for each check, None where there is none.
    """

    path: str
    checks: Sequence[Check]
    names: Mapping[str, str] = field(default_factory=dict)
    places: Sequence[tuple[str, int] | None] = ()

    def of(self, check: Check) -> str:
        """The allocator or program of a check, or the steps."""
        return one_line(name_of(check, self.names))

    def located(self) -> list[tuple[Check, tuple[str, int] | None]]:
        """Every check with its place."""
        places = [*self.places, *[None] * (len(self.checks) - len(self.places))]
        return list(zip(self.checks, places, strict=True))


def rule_of(check: Check) -> str:
    """The name of a check as a word: ``step-time``, ``peak-against-the-baseline``."""
    return check.name.replace(" ", "-")
