"""A limit, and what came of holding it against an allocator or a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from peakline.shown import Brief, Shown
from peakline.text import allocator_text, size_text

ROWS = 10
"""So many rows show what is behind a limit that fails."""


@dataclass(frozen=True, repr=False)
class Limits(Brief):
    """What is allowed; None is no limit. Sizes are bytes.

    ``max_fragmentation`` is from 0 to 1. ``tolerance`` is by which share the figures of a baseline
    may be exceeded.
    """

    max_peak_bytes: int | None = None
    max_growth_per_step_bytes: int | None = None
    max_fragmentation: float | None = None
    tolerance: float = 0.05
    max_program_peak_bytes: int | None = None
    max_limit_bytes: int | None = None


@dataclass(frozen=True, repr=False)
class Check(Shown):
    """One limit, held against one allocator, or against the compiled ``program`` it names.

    ``name`` is ``peak``, ``growth per step``, ``fragmentation``, ``limit``, ``program peak``, or
    one of them (without fragmentation and limit) with ``against the baseline`` behind. ``measured``
    is None where it could not be measured; then the limit fails, but for what is not known of the
    baseline either (nothing is compared, and ``reason`` says so). ``reason`` is one line for a
    person; ``rows`` are what is behind a limit that fails: what is largest at the peak, the leaks,
    or the groups that grew since the baseline. All rows of one check have the same columns.
    """

    name: str
    allocator: str
    measured: float | None
    limit: float
    passed: bool
    reason: str
    rows: tuple[Mapping[str, object], ...] = ()
    program: str = ""

    @property
    def is_of_program(self) -> bool:
        """Whether it is about what compiled programs need, not about an allocator."""
        return self.name.startswith("program")

    @property
    def verdict(self) -> str:
        """``pass``, ``fail`` or ``not compared``."""
        if not self.passed:
            return "fail"
        return "not compared" if self.measured is None else "pass"

    @property
    def measured_text(self) -> str:
        """What was measured, as a person reads it."""
        return "not known" if self.measured is None else self._text(self.measured)

    @property
    def limit_text(self) -> str:
        """What is allowed, as a person reads it."""
        return self._text(self.limit)

    def _text(self, value: float) -> str:
        return f"{value:.1%}" if self.name == "fragmentation" else size_text(value)

    def as_json(self) -> dict[str, object]:
        """One of ``checks`` in ``peakline check --json``."""
        return {**vars(self), "rows": [dict(row) for row in self.rows]}

    def _headline(self) -> str:
        of = self.program or allocator_text(self.allocator)
        return (
            f"{self.verdict}, {self.name} of {of}: {self.measured_text}, at most {self.limit_text}"
        )


def held(
    name: str,
    allocator: str,
    measured: float,
    limit: float,
    reason: str,
    rows: tuple[Mapping[str, object], ...] = (),
) -> Check:
    """The check of what was measured; its rows only where the limit fails."""
    passed = measured <= limit
    return Check(name, allocator, measured, limit, passed, reason, () if passed else rows)


def unmeasured(name: str, allocator: str, limit: float, why: str) -> Check:
    """A limit that fails because nothing could be measured."""
    reason = f"cannot be measured: {why}"
    return Check(name, allocator, measured=None, limit=limit, passed=False, reason=reason)
