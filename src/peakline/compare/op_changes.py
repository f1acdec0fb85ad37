"""Which ops take more or less time than in another profile.

Ops are matched by name. Of those left, by the name without the numbers that distinguish
occurrences or compilations (``dense_1/MatMul_2`` is ``dense/MatMul``, ``fusion.12`` is
``fusion``); where several have such a name, all of them together are one row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from peakline import timing
from peakline.compare.matching import keyed, stem_of
from peakline.shown import Brief
from peakline.tables.joins import summed
from peakline.timing.ops.names import IDLE
from peakline.trace.events import trace_of

if TYPE_CHECKING:
    from peakline.tables import Profile
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
    runs: int


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
        told = []
        if self.change == RENAMED:
            told.append(f"renamed from {self.was}")
        if self.change == SEVERAL:
            told.append(f"{self.before_ops:,} -> {self.after_ops:,} ops of that name and a number")
        if abs(self.after_runs - self.before_runs) > _RUNS * max(self.before_runs, self.after_runs):
            told.append(f"{_runs(self.before_runs)} -> {_runs(self.after_runs)} runs")
        return ", ".join(told)

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
    found = {}
    for side, runs in zip(
        SIDES, (timing.framework_executions(profile), timing.host_executions(profile)), strict=True
    ):
        at = start[runs.event]
        inside = np.flatnonzero((at >= begin_ps) & (at < end_ps)) if steps else slice(None)
        found[side] = _by_name(runs, inside)
    return SelfTimes(found, steps)


def _by_name(runs: Executions, inside: np.ndarray | slice) -> dict[str, OpOwn]:
    op, count = runs.op[inside], len(runs.keys)
    own = summed(op, runs.own_ps[inside], count).tolist()
    often = np.bincount(op, minlength=count).tolist()
    found: dict[str, OpOwn] = {}
    for key, own_ps, ran in zip(runs.keys, own, often, strict=True):
        if ran and key.name != IDLE:
            known = found.get(key.name, OpOwn(key.name, key.op_type, 0, 0))
            found[key.name] = OpOwn(
                key.name, known.op_type, known.own_ps + own_ps, known.runs + ran
            )
    return found


def op_changes(before: SelfTimes, after: SelfTimes) -> tuple[OpChange, ...]:
    """The ops whose self time differs by what `MATTERS`, the largest difference first.

    Per step where both have steps, else over the whole profiles.
    """
    by_step = bool(before.steps and after.steps)
    each = (before.steps, after.steps) if by_step else (1, 1)
    found = []
    for side in SIDES:
        least = MATTERS * max(before.total(side) / each[0], after.total(side) / each[1])
        pairs = _pairs(before.sides[side], after.sides[side])
        changes = (_change(side, ours, theirs, each) for ours, theirs in pairs)
        found += [one for one in changes if abs(one.delta_ps) >= max(least, 1)]
    return tuple(sorted(found, key=lambda one: (-abs(one.delta_ps), one.side, one.op)))


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
    told = other or one
    if told is None:
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
        _stem(told.op) if is_several else told.op,
        told.op_type,
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
