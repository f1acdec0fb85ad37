"""Limits on the time of steps, and the same figures against a baseline.

The figures are those that ``peakline steps`` shows: of the steps that take most time, where they
have several names. What a profile cannot answer fails, and says what to record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from peakline.check.allowance import Allowance
from peakline.check.units import PS, SHARE, Unit
from peakline.check.verdict import ROWS, Check, Limits, held, unmeasured
from peakline.compare.time import NEW, SIDES, OpOwn, SelfTimes, op_changes, ops_in_steps
from peakline.findings.time_answer import NO_TIME, TimeAnswer
from peakline.safe_text import cut_middle
from peakline.tables import Profile
from peakline.text import counted, time_text
from peakline.trace.distribution import deviation, median_error

_NAME = 60
_OPS = 40
"""So many of each side a baseline holds."""
STEP, P95 = "step time", "p95 step time"
INPUT, COMPILE, IDLE = "input wait", "compile", "idle"
AGAINST = " against the baseline"
_COMPARED = {STEP: PS, INPUT: SHARE, COMPILE: SHARE, IDLE: SHARE}
_LONGER = {
    STEP: "the median step takes",
    P95: "95% of the steps take at most",
    INPUT: "of the steps' time is spent waiting for input:",
    COMPILE: "of the steps' time is compilation:",
    IDLE: "of the steps' time the device is idle, cause unknown:",
}
_NO_DEVICE = "nothing of a device is in this profile; record on one, with its tracer on"
_AFTER = "work_after_steps"
_WAIT = (
    "the steps only launch their work: wait for the result in each while recording "
    "(jax.block_until_ready)"
)
_RECORD = (
    "record the job with jax.profiler, tf.profiler.experimental or torch.profiler, its steps marked"
)


@dataclass(frozen=True)
class TimeState:
    """The figures of a profile's time; ``unknown`` says in one line why there are none.

    Times are ps, shares 0 to 1. ``compile_ps`` is that of the mean step. ``idle`` is None without a
    device. ``parts`` are what the mean step's time goes to: label, ps, share. ``spread_ps`` is the
    standard deviation of the steps, by their median absolute deviation, so that a few slow steps do
    not make it; None with one step. ``ops`` is the self time of the ops in them.
    """

    steps: int = 0
    step_ps: int | None = None
    p95_ps: int | None = None
    input_wait: float | None = None
    compile: float | None = None
    compile_ps: int | None = None
    idle: float | None = None
    parts: tuple[tuple[str, int, float], ...] = ()
    unknown: str = ""
    spread_ps: int | None = None
    ops: SelfTimes | None = None

    def figures(self) -> dict[str, float]:
        """What a baseline has of it, by the name of its check; nothing without steps."""
        result = {
            STEP: self.step_ps, INPUT: self.input_wait, COMPILE: self.compile, IDLE: self.idle
        }  # fmt: skip
        return {name: value for name, value in result.items() if value is not None}

    def as_json(self) -> dict[str, object]:
        """``time`` of ``peakline check --json``."""
        return {
            "steps": self.steps,
            "step_time_ps": self.step_ps,
            "p95_step_time_ps": self.p95_ps,
            "input_wait": self.input_wait,
            "compile": self.compile,
            "compile_ps": self.compile_ps,
            "idle": self.idle,
            "step_spread_ps": self.spread_ps,
            "parts": [
                {"part": label, "per_step_ps": each, "share": share}
                for label, each, share in self.parts
            ],
            "ops": _ops_json(self.ops),
        }


def _ops_json(ops: SelfTimes | None) -> list[dict[str, object]]:
    """Those with the most self time of each side, per step."""
    if ops is None or not ops.steps:
        return []
    return [
        {
            "side": side,
            "op": op.op,
            "op_type": op.op_type,
            "per_step_ps": op.own_ps // ops.steps,
            "runs_per_step": op.runs / ops.steps,
        }
        for side, known in ops.sides.items()
        for op in sorted(known.values(), key=lambda op: (-op.own_ps, op.op))[:_OPS]
    ]


def read_ops(rows: Sequence[Mapping[str, object]]) -> SelfTimes | None:
    """The ops of a document, None without any. Raises ValueError for what is none."""
    sides: dict[str, dict[str, OpOwn]] = {side: {} for side in SIDES}
    for row in rows:
        side, op, kind = row.get("side"), row.get("op"), row.get("op_type")
        each, runs = row.get("per_step_ps"), row.get("runs_per_step")
        if side not in sides or not isinstance(op, str) or not isinstance(each, int):
            raise ValueError("an op has no side, op and per_step_ps")
        ran = round(runs) if isinstance(runs, int | float) else 1
        sides[str(side)][op] = OpOwn(op, kind if isinstance(kind, str) else "", each, ran)
    return SelfTimes(sides, 1) if rows else None


def time_state_of(answer: TimeAnswer, profile: Profile | None = None) -> TimeState:
    """The figures of a time answer; of its ``profile``, where that is given, also the ops, which a
    baseline is compared with.
    """
    times, facts = answer.times, answer.steps
    if times is None:
        how = answer.to_record or ((_RECORD,) if answer.nothing == NO_TIME else ())
        return TimeState(unknown=": ".join((answer.nothing, *how[:1])))
    # Steps that end before their work hold any limit.
    if any(one.kind == _AFTER and one.severity == "warning" for one in answer.findings):
        return TimeState(unknown=_WAIT)
    parts = answer.parts()
    each = {name: time for name, _, time, _ in parts}
    main = facts.main
    return TimeState(
        facts.number_of_steps,
        times.median_ps,
        times.p95_ps,
        main.share("input_wait_ps"),
        main.share("compile_ps"),
        each.get("compile_ps", 0),
        main.share("idle_ps") if facts.has_device else None,
        tuple((label, time, share) for _, label, time, share in parts),
        spread_ps=round(deviation(main.part("wall_ps"))) if main.rows > 1 else None,
        ops=None if profile is None else ops_in_steps(profile, facts),
    )


def time_limits(state: TimeState, limits: Limits) -> list[Check]:
    """The limits on time; none without any."""
    wanted: list[tuple[str, float | None, float | None, str]] = [
        (STEP, limits.max_step_ps, state.step_ps, PS),
        (P95, limits.max_p95_step_ps, state.p95_ps, PS),
        (INPUT, limits.max_input_wait, state.input_wait, SHARE),
        (COMPILE, limits.max_compile, state.compile, SHARE),
        (COMPILE, limits.max_compile_ps, state.compile_ps, PS),
        (IDLE, limits.max_idle, state.idle, SHARE),
    ]
    return [
        _limit(state, name, limit, measured, limits.unit_of(name, measure))
        for name, limit, measured, measure in wanted
        if limit is not None
    ]


def _limit(state: TimeState, name: str, limit: float, measured: float | None, unit: Unit) -> Check:
    if measured is None:
        why = state.unknown or _NO_DEVICE
        return replace(unmeasured(name, "", limit, why), unit=unit)
    is_text, limit_text = unit.pair(measured, limit)
    if unit.measure == PS and name == COMPILE:
        reason = f"{is_text} of the mean step is compilation, {limit_text} allowed"
    elif unit.measure == PS:
        reason = f"{_LONGER[name]} {is_text}, {limit_text} allowed"
    else:
        reason = f"{is_text} {_LONGER[name]} {limit_text} allowed".replace(":", ",")
    if name in {STEP, P95} and measured > limit and state.parts:
        label, _, share = state.parts[0]
        reason += f"; most of it {label}, {share:.1%}"
    return replace(held(name, "", measured, limit, reason, _rows(state)), unit=unit)


def _rows(state: TimeState) -> tuple[Mapping[str, object], ...]:
    """What the mean step's time goes to."""
    return tuple(
        {"part": label, "per_step_ps": each, "share": share}
        for label, each, share in state.parts[:ROWS]
    )


def time_baseline(before: TimeState, after: TimeState, allowance: Allowance) -> list[Check]:
    """Every figure of the baseline's time against what it may be; none where it has none.

    A figure that only the profile has is not compared.
    """
    now, result = after.figures(), []
    for name, base in before.figures().items():
        measure = _COMPARED[name]
        error = _error(before, after) if name == STEP else 0.0
        may = allowance.of((name, ""), measure, base, error)
        unit = Unit(measure, "%", 0.01) if measure == SHARE else Unit(measure)
        measured = now.get(name)
        if measured is None:
            why = after.unknown or _NO_DEVICE
            result.append(replace(unmeasured(name + AGAINST, "", may.limit, why), unit=unit))
            continue
        is_text, limit_text = unit.pair(measured, may.limit)
        base_text = unit.text(may.base)
        if may.spread is not None:
            spread = f"{may.spread:.1%}" if measure == SHARE else time_text(round(may.spread))
            base_text += f" ± {spread}"
        base_text += f" ({counted(may.runs, 'run')})"
        reason = f"{name} {is_text}, baseline {base_text}, {limit_text} allowed"
        if measured > may.limit:
            reason += _changed(before, after)
            reason += _grown(before, after) if name == STEP else ""
        check = held(name + AGAINST, "", measured, may.limit, reason, _rows(after))
        result.append(replace(check, unit=unit, base=base_text))
    return result


def _error(before: TimeState, after: TimeState) -> float:
    """The standard error of the difference of the two medians; 0 where one has a single step."""
    if before.spread_ps is None or after.spread_ps is None:
        return 0.0
    errors = (median_error(one.spread_ps or 0, max(one.steps, 1)) for one in (before, after))
    return math.hypot(*errors)


def _grown(before: TimeState, after: TimeState) -> str:
    """Which op takes most more than before; empty where the baseline has no ops, or none does."""
    if before.ops is None or after.ops is None:
        return ""
    # What a document leaves out is less than what it lists.
    known, steps = before.ops.sides, max(before.ops.steps, 1)
    least = {s: min((op.own_ps for op in known[s].values()), default=0) // steps for s in SIDES}
    changes = [
        one
        for one in op_changes(before.ops, after.ops)
        if one.delta_ps > (least[one.side] if one.change == NEW else 0)
    ]
    if not changes:
        return ""
    # What a device does explains its steps; what the host does, those of the host alone.
    device = [one for one in changes if one.side == "device"]
    most = (device or changes)[0]
    was = "was not there" if most.change == NEW else f"took {time_text(most.before_ps)}"
    return f"; {cut_middle(most.op, _NAME)} takes {time_text(most.after_ps)} of a step, {was}"


def _changed(before: TimeState, after: TimeState) -> str:
    """Which part of the mean step grew most; empty where the baseline has no parts."""
    known = {label: each for label, each, _ in before.parts}
    grown = [(each - known.get(label, 0), label) for label, each, _ in after.parts]
    if not known or not grown or max(grown)[0] <= 0:
        return ""
    more, label = max(grown)
    return f"; {label} takes {time_text(more)} more in the mean step"
