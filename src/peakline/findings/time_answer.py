"""The time answer of a profile: its steps, what their time went to, and what stands out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import Int64Array
from peakline.findings.catalogue import time_findings
from peakline.findings.ranking import priorities
from peakline.findings.recording_advice import (
    launched_before,
    to_explain_time,
    to_mark_steps,
    to_place_time,
    to_see_devices,
)
from peakline.findings.time_context import TimeContext
from peakline.shown import Brief, Shown, Tabular, several
from peakline.tables.once import once
from peakline.text import counted, time_text
from peakline.timing.launches.gaps import InputWaits
from peakline.timing.ops.host import host_executions
from peakline.timing.steps.facts import PARTS, StepFacts, step_facts_of
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity

if TYPE_CHECKING:
    import pyarrow as pa

    from peakline.findings.finding import Finding
    from peakline.tables import Profile
    from peakline.tables.columns import Columns
    from peakline.timing.programs.utilisation import Utilisation


_OPS = 3


@dataclass(frozen=True)
class TopOp:
    """An op with its self time in ps, and the ``share`` of it in that of all ops of its side."""

    side: str
    """``device`` or ``host``."""
    op: str
    op_type: str | None
    self_ps: int
    share: float
    is_input: bool
    """Whether it only prepares input, on threads beside the steps."""


@once
def top_ops(profile: Profile) -> tuple[TopOp, ...]:
    """The three ops with most self time, of the devices where they have any, else of the host.

    Raises InputError when the profile cannot be read.
    """
    if "op_stats" not in profile.tables or not profile.has_rows("op_stats"):
        return ()
    table = profile.columns("op_stats")
    side = table.names("side")
    device = np.flatnonzero(side.codes == side.code_of("device"))
    rows = device if device.size else np.arange(table.rows)
    own = table.array("self_ps")[rows]
    whole = max(int(own.sum()), 1)
    most = rows[np.argsort(-own, kind="stable")[:_OPS]]
    return tuple(
        TopOp(where, op, kind, self_ps, self_ps / whole, _is_input(profile, where, op, kind))
        for where, op, kind, self_ps in table.take(most).each("side", "op", "op_type", "self_ps")
    )


def _is_input(profile: Profile, side: str, op: str, op_type: str | None) -> bool:
    """Whether every execution of an op of the host is work of the input pipeline's own threads."""
    if side != "host":
        return False
    runs = host_executions(profile)
    wanted = np.array(
        [(key.name, key.op_type) == (op, op_type or "") for key in runs.keys], np.bool_
    )
    events = runs.event[wanted[runs.op]] if wanted.any() else runs.event[:0]
    return bool(events.size and (activity_of(profile)[events] == Activity.INPUT_WORK).all())


NO_STEPS = "no_steps"
"""The kind of the warning of a profile in which nothing says what a step is."""

UNMARKED = "nothing in this profile says what a step is"
PRINTED = "a printed table has neither events nor steps: peakline ops shows it"
NO_TIME = "no time in this file"
"""What is said of a profile that has no events at all: a heap, a graph, a memory log."""


UNEXPLAINED = 0.1
"""Where no event explains this share of the steps' time, it is said what would."""


@dataclass(frozen=True, repr=False)
class StepTimes(Brief):
    """How long steps take, over all steps of all devices; in ps.

    ``count`` is the number of steps times devices: the rows of ``step_breakdown``, over which the
    parts of the time are summed too, so that their means add up to ``mean_ps``.
    """

    count: int
    mean_ps: int
    deviation_ps: int
    min_ps: int
    median_ps: int
    p95_ps: int
    max_ps: int


@dataclass(frozen=True, eq=False, repr=False)
class TimeAnswer(Shown, Tabular):
    """What ``peakline steps`` says.

    ``steps`` are the steps with their parts; ``times`` is None without any. Where they have several
    names (train, eval), ``times``, parts and ``by_device`` are of those that take most time, and
    ``by_name`` has the times of each; steps that are cut off count in none. ``devices`` is the
    table ``device_time``, without rows where the profile has no device. ``findings`` stand in
    order of severity, then of what would be gained. ``nothing`` is one line for a profile without
    steps, `NO_TIME` or `PRINTED` for one without events. ``by_device`` are the times of each of
    several devices. ``to_record`` are lines that say how to record what is missing: steps, or what
    explains time in which no event runs. ``utilisation`` is what the compiled programs use of the
    devices, None where nothing says which ran. ``input_waits`` is how long training waits for
    input, None without steps.
    """

    steps: StepFacts
    times: StepTimes | None
    devices: Columns
    findings: tuple[Finding, ...]
    nothing: str = ""
    by_device: tuple[tuple[str, StepTimes], ...] = ()
    by_name: tuple[tuple[str, StepTimes], ...] = ()
    to_record: tuple[str, ...] = ()
    utilisation: Utilisation | None = None
    input_waits: InputWaits | None = None

    def __post_init__(self) -> None:
        several(self, "findings")

    def parts(self) -> list[tuple[str, str, int, float]]:
        """What the steps' time went to, most first: column, words, ps per step, share.

        The times are means over the rows of `times`; they add up to the mean step.
        """
        facts = self.steps.main
        count, before = max(facts.rows, 1), 0
        parts = []
        for name in sorted(PARTS, key=lambda name: -facts.total(name)):
            whole = facts.total(name)
            if whole:
                # What rounding leaves goes to the next part, so that nothing is lost.
                each = (before + whole) // count - before // count
                parts.append((name, PARTS[name], each, facts.share(name)))
            before += whole
        return parts

    def in_short(self) -> dict[str, object]:
        """``times``, ``times_by_name``, ``found_by``, ``parts``, ``devices`` and ``to_record`` of
        `as_json`: small with many steps.
        """
        return {
            "times": None if self.times is None else vars(self.times),
            "times_by_name": [{"name": name} | vars(times) for name, times in self.by_name],
            "found_by": self.steps.found_by,
            "parts": [
                {"part": name.removesuffix("_ps"), "per_step_ps": each, "share": share}
                for name, _, each, share in self.parts()
            ],
            "devices": self.devices.to_pylist(),
            "utilisation": None if self.utilisation is None else vars(self.utilisation),
            "to_record": list(self.to_record),
        }

    def as_json(self) -> dict[str, object]:
        """What ``peakline steps --json`` prints besides the profile and its warnings."""
        facts = self.steps
        slow = dict(zip(_keys(facts.table), facts.is_slow.tolist(), strict=True))
        every_row = [*facts.table.to_pylist(), *facts.cut_off.to_pylist()]
        every_row.sort(key=lambda row: row["start_ps"])
        short = self.in_short()
        return {
            "number_of_steps": facts.number_of_steps,
            **short,
            "input": None if self.input_waits is None else vars(self.input_waits),
            "times_by_device": [
                {"device": device} | vars(times) for device, times in self.by_device
            ],
            "steps": [
                {**row, "is_slow": slow.get((row["step_id"], row["device"]), False)}
                for row in every_row
            ],
            "findings": [finding.as_json() for finding in self.findings],
        }

    def to_arrow(self) -> pa.Table:
        """The steps: the rows of ``step_breakdown``."""
        return self.steps.to_arrow()

    def _headline(self) -> str:
        if self.times is None:
            parts = [self.nothing or "no steps"]
        else:
            many = " (median)" if self.times.count > 1 else ""
            steps = counted(self.steps.number_of_steps, "step")
            parts = [f"{steps} of {time_text(self.times.median_ps)}{many}"]
            parts += [f"{share:.0%} {label}" for _, label, _, share in self.parts()[:1]]
        if self.findings:
            parts.append(counted(len(self.findings), "finding"))
        return ", ".join(parts)


def _keys(table: Columns) -> list[tuple[int, str | None]]:
    """What each row of ``step_breakdown`` is known by."""
    steps = table.array("step_id").tolist()
    return list(zip(steps, table.names("device").to_list(), strict=True))


def answer_time(profile: Profile) -> TimeAnswer:
    """The steps of ``profile``, what their time went to, and what stands out.

    A profile without steps has an answer without them, which says so in ``nothing`` and is
    counted, as `NO_STEPS`, in ``profile.warnings`` where something ran at all. Raises InputError
    when the profile cannot be read.
    """
    answer = _answer(profile)
    if answer.nothing == UNMARKED and answer.devices.rows:
        profile.warn(NO_STEPS, answer.nothing, once=True)
    return answer


@once
def _answer(profile: Profile) -> TimeAnswer:

    facts = step_facts_of(profile)
    devices = profile.columns_or_empty("device_time")
    if not facts.rows:
        shows = ("device_time", "events", "op_runs")
        if not any(name in profile.tables and profile.has_rows(name) for name in shows):
            nothing = PRINTED if "printed_ops" in profile.tables else NO_TIME
            return TimeAnswer(facts, None, devices, (), nothing)
        result = _findings(TimeContext(profile, facts))
        missing = to_see_devices(profile), launched_before(profile)
        marks = tuple(filter(None, (*missing, to_mark_steps(profile), to_place_time(profile))))
        return TimeAnswer(facts, None, devices, result, UNMARKED, to_record=marks)
    main, context = facts.main, TimeContext(profile, facts)
    wall = main.part("wall_ps")
    lanes = enumerate(facts.devices if len(facts.devices) > 1 else ())
    by_device = tuple(
        (name, _times(wall[main.of_device(lane)]))
        for lane, name in lanes
        if main.of_device(lane).size
    )
    several = facts.populations if len(facts.populations) > 1 else ()
    by_name = tuple((name, _times(facts.only(name).part("wall_ps"))) for name in several)
    is_unexplained = main.share("unknown_ps", "idle_ps") >= UNEXPLAINED
    # Either is one line about the same setting.
    how = to_explain_time(profile) if is_unexplained else to_place_time(profile)
    return TimeAnswer(
        facts, _times(wall), devices, _findings(context),
        by_device=by_device, by_name=by_name,
        to_record=tuple(filter(None, (to_see_devices(profile), launched_before(profile), how))),
        utilisation=_utilisation(profile, main), input_waits=context.input_waits,
    )  # fmt: skip


def _utilisation(profile: Profile, facts: StepFacts) -> Utilisation | None:
    """What the steps use of the devices, where the profile holds the programs that ran."""
    if not profile.programs():
        return None
    # It loads all that counts the costs of programs.
    from peakline.timing.programs.utilisation import utilisation_of

    return utilisation_of(profile, facts)


def _findings(context: TimeContext) -> tuple[Finding, ...]:
    result = time_findings(context)
    return tuple(one.finding for one in priorities((), result))


def _times(wall: Int64Array) -> StepTimes:
    return StepTimes(
        wall.size,
        int(wall.sum()) // wall.size,
        round(float(wall.std())),
        int(wall.min()),
        round(float(np.median(wall))),
        int(np.sort(wall)[max(int(np.ceil(0.95 * wall.size)) - 1, 0)]),
        int(wall.max()),
    )
