"""What changed in time between two profiles: steps, what their time goes to, ops, findings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from peakline import timing
from peakline.arrays import AnyArray, Int64Array
from peakline.compare.matching import keyed, stem_of
from peakline.compare.memory import without, worse
from peakline.findings.finding import Finding
from peakline.findings.time_answer import StepTimes, answer_time
from peakline.shown import Brief
from peakline.tables import Profile
from peakline.tables.joins import summed
from peakline.text import counted
from peakline.timing.ops.names import IDLE
from peakline.timing.steps.facts import FEWEST_STEPS, PARTS, StepFacts
from peakline.trace.events import trace_of

if TYPE_CHECKING:
    from peakline.timing.ops.host import Executions


SIDES = ("device", "host")
NEW, GONE, RENAMED, SEVERAL, TIME = "new", "gone", "renamed", "several", "time"
MATTERS = 0.01
"""A difference counts from this share of all self time of the side on, in the profile with more."""
_COMPILED = re.compile(r"\.\d+(?=$|/)")
_RUNS = 0.1
"""From this share on an op runs more or less often: less is which of them fell into the steps."""


@dataclass(frozen=True)
class OpOwn:
    """The self time of an op in ps, and how often it ran."""

    op: str
    op_type: str
    own_ps: int
    runs: float


@dataclass(frozen=True, repr=False)
class SelfTimes(Brief):
    """The ops of each of `SIDES` by name, from the begin of the first step to the end of the last.

    ``steps`` is how many steps that are; 0 where no steps are known, and all that ran counts.
    """

    sides: Mapping[str, Mapping[str, OpOwn]]
    steps: int

    def total(self, side: str) -> int:
        """The self time of all ops of a side, in ps."""
        return sum(op.own_ps for op in self.sides[side].values())


@dataclass(frozen=True, repr=False)
class OpChange(Brief):
    """One op, or several of one name but for numbers, in two profiles.

    Times are self time in ps, per step where both profiles have steps, else of the whole profile;
    so are ``before_runs`` and ``after_runs``. ``op`` is the name in the later profile, or in the
    earlier one where it is gone; ``was`` the earlier one where it differs, else empty. ``change``
    is ``new``, ``gone``, ``renamed``, ``several`` (``op`` is what the names of ``before_ops`` and
    ``after_ops`` ops have in common) or ``time``.
    """

    side: str
    op: str
    op_type: str
    was: str
    change: str
    before_ps: int
    after_ps: int
    before_runs: float
    after_runs: float
    before_ops: int
    after_ops: int

    @property
    def delta_ps(self) -> int:
        """After less before."""
        return self.after_ps - self.before_ps

    @property
    def text(self) -> str:
        """What happened to it besides its time, in a few words; empty where nothing did."""
        if self.change in {NEW, GONE}:
            return self.change
        words = []
        if self.change == RENAMED:
            words.append(f"renamed from {self.was}")
        if self.change == SEVERAL:
            words.append(f"{self.before_ops:,} -> {self.after_ops:,} ops of that name and a number")
        if abs(self.after_runs - self.before_runs) > _RUNS * max(self.before_runs, self.after_runs):
            words.append(f"{_runs(self.before_runs)} -> {_runs(self.after_runs)} runs")
        return ", ".join(words)

    def as_json(self) -> dict[str, object]:
        """One of ``ops`` in ``peakline diff --json``."""
        return {
            "side": self.side,
            "op": self.op,
            "op_type": self.op_type or None,
            "change": self.change,
            "was": self.was or None,
            "before_ps": self.before_ps,
            "after_ps": self.after_ps,
            "delta_ps": self.delta_ps,
            "before_runs": self.before_runs,
            "after_runs": self.after_runs,
            "before_ops": self.before_ops,
            "after_ops": self.after_ops,
            "text": self.text,
        }


def self_times(profile: Profile, steps: int, begin_ps: int, end_ps: int) -> SelfTimes:
    """What ran from ``begin_ps`` to ``end_ps``, in which there are ``steps`` steps (0: all counts).

    Raises InputError when the profile cannot be read.
    """
    start = trace_of(profile).start
    if not start.size:
        return SelfTimes({side: {} for side in SIDES}, 0)
    result = {}
    for side, runs in zip(
        SIDES, (timing.framework_executions(profile), timing.host_executions(profile)), strict=True
    ):
        at = start[runs.event]
        inside = np.flatnonzero((at >= begin_ps) & (at < end_ps)) if steps else slice(None)
        result[side] = _by_name(runs, inside)
    return SelfTimes(result, steps)


def _by_name(runs: Executions, inside: np.ndarray | slice) -> dict[str, OpOwn]:
    op, count = runs.op[inside], len(runs.keys)
    own = summed(op, runs.own_ps[inside], count).tolist()
    often = np.bincount(op, minlength=count).tolist()
    result: dict[str, OpOwn] = {}
    for key, own_ps, ran in zip(runs.keys, own, often, strict=True):
        if ran and key.name != IDLE:
            known = result.get(key.name, OpOwn(key.name, key.op_type, 0, 0))
            result[key.name] = OpOwn(
                key.name, known.op_type, known.own_ps + own_ps, known.runs + ran
            )
    return result


def op_changes(before: SelfTimes, after: SelfTimes) -> tuple[OpChange, ...]:
    """The ops whose self time differs by what `MATTERS`, the largest difference first.

    Per step where both have steps, else over the whole profiles.
    """
    by_step = bool(before.steps and after.steps)
    each = (before.steps, after.steps) if by_step else (1, 1)
    result = []
    for side in SIDES:
        least = MATTERS * max(before.total(side) / each[0], after.total(side) / each[1])
        pairs = _pairs(before.sides[side], after.sides[side])
        changes = (_change(side, ours, theirs, each) for ours, theirs in pairs)
        result += [one for one in changes if abs(one.delta_ps) >= max(least, 1)]
    return tuple(sorted(result, key=lambda one: (-abs(one.delta_ps), one.side, one.op)))


def _stem(op: str) -> str:
    return _COMPILED.sub("", stem_of(op))


def _pairs(
    before: Mapping[str, OpOwn], after: Mapping[str, OpOwn]
) -> list[tuple[list[OpOwn], list[OpOwn]]]:
    """The same ops on either side; every op is in exactly one pair."""
    pairs = [([before[name]], [after[name]]) for name in before.keys() & after.keys()]
    left = (op for name, op in before.items() if name not in after)
    right = (op for name, op in after.items() if name not in before)
    ours, theirs = (keyed(ops, lambda op: _stem(op.op)) for ops in (left, right))
    for stem in ours.keys() | theirs.keys():
        one, other = ours.get(stem, []), theirs.get(stem, [])
        if one and other:
            pairs.append((one, other))
        else:
            pairs += [([op], []) for op in one] + [([], [op]) for op in other]
    return pairs


def _change(side: str, before: list[OpOwn], after: list[OpOwn], each: tuple[int, int]) -> OpChange:
    one, other = before[0] if before else None, after[0] if after else None
    result = other or one
    if result is None:
        raise ValueError("a pair of nothing")
    is_several = len(before) > 1 or len(after) > 1
    change, was = TIME, ""
    if one is None or other is None:
        change = NEW if one is None else GONE
    elif is_several:
        change = SEVERAL
    elif one.op != other.op:
        change, was = RENAMED, one.op
    return OpChange(
        side,
        _stem(result.op) if is_several else result.op,
        result.op_type,
        was,
        change,
        round(sum(op.own_ps for op in before) / each[0]),
        round(sum(op.own_ps for op in after) / each[1]),
        sum(op.runs for op in before) / each[0],
        sum(op.runs for op in after) / each[1],
        len(before),
        len(after),
    )


def _runs(runs: float) -> str:
    return f"{runs:,.0f}" if runs >= 10 or float(runs).is_integer() else f"{runs:.1f}"


_CHANCE = 0.05
"""From this probability on, chance alone may well have made the steps differ as they do."""
_NAMES = ("op", "stage", "device", "host")
"""What a finding can be about."""


@dataclass(frozen=True, eq=False, repr=False)
class TimeState(Brief):
    """What is compared of one profile. Times are picoseconds.

    ``steps`` counts the steps (0: there are none), ``times`` is None without any. Where they
    have several names, times, parts and what lies between are of those that take most time.
    ``walls`` has the time of each of these, on the device that took longest. ``between_ps`` is the
    median of what lies between them. ``parts`` are the columns of ``step_breakdown`` as means over
    its rows, in its order; they add up to the mean step. ``ops`` is the self time of every op.
    ``nothing`` says why there are no steps, ``name`` what those that are compared are called.
    """

    steps: int
    times: StepTimes | None
    walls: Int64Array
    between_ps: int
    parts: Mapping[str, int]
    ops: SelfTimes
    findings: tuple[Finding, ...]
    has_device: bool
    nothing: str = ""
    is_inferred: bool = False
    """Whether nothing marked the steps: they are runs of functions."""
    name: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the profile has nothing about time."""
        return not self.steps and not any(self.ops.sides.values())

    def as_json(self) -> dict[str, object]:
        """One of ``before`` and ``after`` of ``time`` in ``peakline diff --json``."""
        return {
            "steps": self.steps,
            "times": None if self.times is None else vars(self.times),
            "between_steps_ps": self.between_ps if self.steps > 1 else None,
            "own_ps": {side: self.ops.total(side) for side in SIDES},
        }


@dataclass(frozen=True, repr=False)
class PartChange(Brief):
    """A part of a step's time, in ps per step: the column of ``step_breakdown``, and in words."""

    part: str
    words: str
    before_ps: int
    after_ps: int

    @property
    def delta_ps(self) -> int:
        """After less before."""
        return self.after_ps - self.before_ps

    def as_json(self) -> dict[str, object]:
        """One of ``parts`` in ``peakline diff --json``."""
        return {
            "part": self.part.removesuffix("_ps"),
            "before_ps": self.before_ps,
            "after_ps": self.after_ps,
            "delta_ps": self.delta_ps,
        }


@dataclass(frozen=True, eq=False, repr=False)
class TimeDiff(Brief):
    """What changed between two profiles.

    ``chance`` is how likely chance alone makes the step times differ as much (two-sided
    Mann-Whitney U test, 0 to 1), None with too few steps. ``parts`` are those that differ, the
    largest difference first: together they make that of the mean step. ``ops`` are those whose own
    time differs by what matters, per step where ``by_step``, else over the whole profiles. A
    finding is new or gone by its kind and what it is about, ``worse_findings`` are of both and say
    that more is lost. ``notes`` are one line each.
    """

    before: TimeState
    after: TimeState
    chance: float | None
    parts: tuple[PartChange, ...]
    ops: tuple[OpChange, ...]
    new_findings: tuple[Finding, ...]
    gone_findings: tuple[Finding, ...]
    worse_findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def by_step(self) -> bool:
        """Whether ops are compared per step."""
        return bool(self.before.ops.steps and self.after.ops.steps)

    @property
    def is_chance(self) -> bool:
        """Whether the step times differ no more than chance makes them."""
        return self.chance is not None and self.chance >= _CHANCE

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        return (
            self.before.times == self.after.times
            and self.before.between_ps == self.after.between_ps
            and not (self.parts or self.ops or self.worse_findings)
            and not (self.new_findings or self.gone_findings)
        )

    def others_ps(self, side: str) -> tuple[int, int]:
        """The self time of the ops of a side that are not in ``ops``, before and after."""
        listed = [one for one in self.ops if one.side == side]
        steps = (self.before.ops.steps, self.after.ops.steps) if self.by_step else (1, 1)
        return (
            round(self.before.ops.total(side) / steps[0]) - sum(one.before_ps for one in listed),
            round(self.after.ops.total(side) / steps[1]) - sum(one.after_ps for one in listed),
        )

    def as_json(self) -> dict[str, object]:
        """``time`` in ``peakline diff --json``."""
        others = {side: self.others_ps(side) for side in SIDES}
        return {
            "before": self.before.as_json(),
            "after": self.after.as_json(),
            "chance": self.chance,
            "is_chance": self.is_chance,
            "parts": [one.as_json() for one in self.parts],
            "ops_per": "step" if self.by_step else "profile",
            "ops": [one.as_json() for one in self.ops],
            "other_ops": {
                side: {"before_ps": one, "after_ps": other, "delta_ps": other - one}
                for side, (one, other) in others.items()
            },
            "findings": {
                "new": [finding.as_json() for finding in self.new_findings],
                "gone": [finding.as_json() for finding in self.gone_findings],
                "worse": [finding.as_json() for finding in self.worse_findings],
            },
            "notes": list(self.notes),
        }


def ops_in_steps(profile: Profile, steps: StepFacts) -> SelfTimes:
    """What ran from the begin of the first of the ``steps`` to the end of the last; all that ran
    where there are none. Raises InputError when the profile cannot be read.
    """
    begin = int(steps.part("start_ps").min()) if steps.rows else 0
    end = int(steps.part("end_ps").max()) if steps.rows else 0
    # Devices that count steps of their own make them side by side.
    return self_times(profile, steps.count, begin, end)


def time_state(profile: Profile) -> TimeState:
    """What is compared of ``profile``; raises InputError when it cannot be read."""
    answer = answer_time(profile)
    every, facts = answer.steps, answer.steps.main
    gaps = facts.part("gap_before_ps")[facts.number > 0]
    return TimeState(
        every.number_of_steps,
        answer.times,
        facts.slowest_lane()[1],
        round(float(np.median(gaps))) if gaps.size else 0,
        {name: each for name, _, each, _ in answer.parts()},
        ops_in_steps(profile, every),
        answer.findings,
        facts.has_device or answer.devices.rows > 0,
        answer.nothing,
        facts.is_inferred,
        every.populations[0] if every.rows else "",
    )


def compare_time(before: TimeState, after: TimeState) -> TimeDiff | None:
    """What changed from ``before`` to ``after``; None where neither has anything about time."""
    if before.is_empty and after.is_empty:
        return None
    chance = chance_of(before.walls, after.walls)
    parts: tuple[PartChange, ...] = ()
    if before.steps and after.steps:
        result = (
            PartChange(name, words, before.parts.get(name, 0), after.parts.get(name, 0))
            for name, words in PARTS.items()
        )
        parts = tuple(
            sorted((one for one in result if one.delta_ps), key=lambda p: -abs(p.delta_ps))
        )
    ops = () if before.is_empty or after.is_empty else op_changes(before.ops, after.ops)
    return TimeDiff(
        before,
        after,
        chance,
        parts,
        ops,
        without(after.findings, map(_key, before.findings), _key),
        without(before.findings, map(_key, after.findings), _key),
        worse(before.findings, after.findings, _key, _key),
        tuple(_notes(before, after, chance)),
    )


def _notes(before: TimeState, after: TimeState, chance: float | None) -> Iterable[str]:
    sides = (("earlier", before), ("later", after))
    for name, state in sides:
        if state.is_empty:
            yield f"the {name} profile has nothing about time"
    if before.is_empty or after.is_empty:
        return
    for name, state in sides:
        if not state.steps and (before.steps or after.steps):
            yield f"nothing in the {name} profile records what a step is"
        if state.is_inferred:
            yield f"the steps of the {name} profile are inferred: nothing is marked"
    if not (before.steps and after.steps):
        yield "ops are compared over the whole profiles, which may be of different lengths"
    elif before.times != after.times:
        if before.name != after.name:
            yield f"the steps of most time are compared: {before.name} before, {after.name} after"
        if chance is None:
            yield (
                f"{counted(before.walls.size, 'step')} before, {after.walls.size:,} after: fewer "
                f"than {FEWEST_STEPS} do not show whether steps differ by chance"
            )
        elif chance >= _CHANCE:
            yield (
                "the step times differ no more than chance makes them "
                f"(Mann-Whitney U test, p = {chance:.2f})"
            )
    if before.has_device != after.has_device:
        name = "later" if after.has_device else "earlier"
        yield f"only the {name} profile has a device"


def _key(finding: Finding) -> tuple[str, ...]:
    about = (finding.evidence.get(name) for name in _NAMES)
    return finding.kind, *(stem_of(name) if isinstance(name, str) else "" for name in about)


def chance_of(one: AnyArray, other: AnyArray) -> float | None:
    """The p-value of the two-sided Mann-Whitney U test, by its normal approximation.

    With the corrections for continuity and for ties (Mann and Whitney 1947; Lehmann 1975, 1.2).
    None where either has fewer than `FEWEST_STEPS` values.
    """
    if min(one.size, other.size) < FEWEST_STEPS:
        return None
    count = one.size + other.size
    _, place, often = np.unique(
        np.concatenate([one, other]), return_inverse=True, return_counts=True
    )
    rank = (np.cumsum(often) - (often - 1) / 2)[place]
    above = float(rank[: one.size].sum()) - one.size * (one.size + 1) / 2
    ties = float((often.astype(np.float64) ** 3 - often).sum())
    variance = one.size * other.size / 12 * (count + 1 - ties / (count * (count - 1)))
    apart = max(abs(above - one.size * other.size / 2) - 0.5, 0.0)
    return math.erfc(apart / math.sqrt(2 * variance)) if variance > 0 else 1.0
