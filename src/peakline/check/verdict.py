"""A limit, and what came of holding it against an allocator or a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from peakline.check.units import BYTES, SHARE, Unit
from peakline.shown import Brief, Several, Shown, headline_of
from peakline.text import allocator_text

ROWS = 10
"""So many rows show what is behind a limit that fails."""


@dataclass(frozen=True, repr=False)
class Limits(Brief):
    """What is allowed; None is no limit. Sizes are bytes, times ps, shares from 0 to 1.

    ``tolerance`` is by which share the figures of a baseline may be exceeded; without one what was
    learned from its runs counts (`peakline.check.allowance`). ``max_compile_ps`` is of the mean
    step. ``units`` are those in which a person wrote limits, by the name of the check.
    """

    max_peak_bytes: int | None = None
    max_growth_per_step_bytes: int | None = None
    max_fragmentation: float | None = None
    tolerance: float | None = None
    max_program_peak_bytes: int | None = None
    max_limit_bytes: int | None = None
    max_step_ps: int | None = None
    max_p95_step_ps: int | None = None
    max_input_wait: float | None = None
    max_compile: float | None = None
    max_compile_ps: int | None = None
    max_idle: float | None = None
    units: Mapping[str, Unit] = field(default_factory=dict)

    @property
    def has_time(self) -> bool:
        """Whether there is a limit on time."""
        return (
            self.max_step_ps, self.max_p95_step_ps, self.max_input_wait, self.max_compile,
            self.max_compile_ps, self.max_idle,
        ) != (None,) * 6  # fmt: skip

    def unit_of(self, name: str, measure: str = BYTES) -> Unit:
        """The unit of the limit on ``name``; where none was written, that of its measure."""
        usual = Unit(SHARE, "%", 0.01) if measure == SHARE else Unit(measure)
        unit = self.units.get(name, usual)
        return unit if unit.measure == measure else usual


_BYTES = Unit(BYTES)
_OF_TIME = frozenset({"step time", "p95 step time", "input wait", "compile", "idle"})


@dataclass(frozen=True, repr=False)
class Check(Shown):
    """One limit, held against one allocator, the compiled ``program`` it names, or the steps.

    ``name`` is ``peak``, ``growth per step``, ``fragmentation``, ``limit``, ``program peak``,
    ``step time``, ``p95 step time``, ``input wait``, ``compile``, ``idle``, or one of them (without
    fragmentation, limit and p95) with ``against the baseline`` behind. ``measured`` is None where
    it could not be measured; then the limit fails, but for what is not known of the baseline either
    (nothing is compared, and ``reason`` says so). ``reason`` is one line for a person; ``rows`` are
    what is behind a limit that fails: what is largest at the peak, the leaks, the groups that grew
    since the baseline, or the parts of a step. All rows of one check have the same columns.
    ``unit`` is that of ``measured`` and ``limit``; ``base`` is what the baseline has, for a person.
    ``rank`` is which one of a job it is of; empty for a single profile.
    """

    name: str
    allocator: str
    measured: float | None
    limit: float
    passed: bool
    reason: str
    rows: tuple[Mapping[str, object], ...] = ()
    program: str = ""
    unit: Unit = _BYTES
    base: str = ""
    rank: str = ""

    @property
    def is_of_time(self) -> bool:
        """Whether it is about the steps, not about memory."""
        return self.name.removesuffix(" against the baseline") in _OF_TIME

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
        return (
            "not known" if self.measured is None else self.unit.pair(self.measured, self.limit)[0]
        )

    @property
    def limit_text(self) -> str:
        """What is allowed, as a person reads it."""
        if self.measured is None:
            return self.unit.text(self.limit)
        return self.unit.pair(self.measured, self.limit)[1]

    def as_json(self) -> dict[str, object]:
        """One of ``checks`` in ``peakline check --json``."""
        left_out = {"unit", "base"} if self.rank else {"unit", "base", "rank"}
        own = {name: value for name, value in vars(self).items() if name not in left_out}
        return {**own, "measure": self.unit.measure, "rows": [dict(row) for row in self.rows]}

    def _headline(self) -> str:
        of = self.program or (self.allocator and allocator_text(self.allocator))
        of = " ".join(filter(None, (self.rank, of)))
        subject = f"{self.name} of {of}" if of else self.name
        return f"{self.verdict}, {subject}: {self.measured_text}, at most {self.limit_text}"


class Checks(Several[Check]):
    """A `Check` for each limit and what it is held against."""

    __slots__ = ()

    def _headline(self) -> str:
        failed = sum(not one.passed for one in self)
        said = f"{failed:,} of {len(self):,} failed" if failed else f"{len(self):,} passed"
        first = next((one for one in self if not one.passed), None)
        return f"{said}: {headline_of(first).partition(', ')[2]}" if first else said


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
