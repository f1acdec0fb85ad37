"""What is said of steps: how many there are, how long they take, where it goes, which are slow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from peakline.document.model import Column, Fact, Row, Table, columns_of
from peakline.document.profile import answer_document
from peakline.document.wording import HOW_FOUND
from peakline.findings.kind import heading_of
from peakline.findings.step_difference import title_of
from peakline.findings.time_answer import StepTimes, TimeAnswer, answer_time
from peakline.tables import Profile
from peakline.text import counted, number_text, shares_text, short_time_text, size_text, time_text
from peakline.timing.steps.difference import StepDifference
from peakline.timing.steps.facts import PARTS, StepFacts
from peakline.timing.steps.variation import Straggler

_STEPS, _LONGEST = 24, 10
"""So many steps are shown; of more, the longest."""
_POPULATIONS = 8
_DEVICES = 16
_LEAST, _MUCH = 0.005, 0.1
"""A part of half a per cent of the time or more has a column of its own; where a screen has no room
for all, one with a tenth stays longer than the begin of a step.
"""


@dataclass(frozen=True)
class StepsPart:
    """How many steps there are (``title``), how they were found (``notes``), and their times: facts
    of one population, a table of several.
    """

    title: str
    notes: Sequence[str]
    times: Sequence[Fact] | Table


def steps_part(answer: TimeAnswer, times: StepTimes) -> StepsPart:
    """The head of the answer about steps that have ``times``."""
    facts = answer.steps
    notes = [HOW_FOUND[facts.found_by]] if facts.found_by in HOW_FOUND else []
    notes += [_cut_off(facts)] if facts.cut_off.rows else []
    shown: Sequence[Fact] | Table = _times(facts, times)
    if answer.by_name:
        several = answer.by_name[:_POPULATIONS]
        shown = _lengths(("steps", "count"), ((n, facts.only(n).count, t) for n, t in several))
    return StepsPart(_title(answer, facts), notes, shown)


def _title(answer: TimeAnswer, facts: StepFacts) -> str:
    where = f" on {counted(len(facts.devices), 'device')}" if facts.has_device else ""
    if facts.is_apart:
        return f"{counted(facts.rows, 'step')}{where}, which count them apart"
    rows, _ = facts.slowest_lane()
    first, last = facts.label(int(rows[0])), facts.label(int(rows[-1]))
    named = f"{first} to {last}" if first != last else first
    if answer.by_name:
        names = [name for name, _ in answer.by_name[:_POPULATIONS]]
        named = ", ".join(f"{facts.only(name).count} {name}" for name in names)
    return f"{counted(facts.count, 'step')}{where}, {named}"


def _cut_off(facts: StepFacts) -> str:
    """Which steps the record does not hold whole."""
    names = list(dict.fromkeys(name or "" for name in facts.cut_off.names("name").to_list()))
    which = f"{names[0]} is" if len(names) == 1 else f"{len(names)} steps are"
    return f"{which} cut off by the end of the record, and left out of these times"


def _times(facts: StepFacts, times: StepTimes) -> list[Fact]:
    if times.min_ps == times.max_ps:
        return [Fact("step time", times.median_ps, "ps")]
    shown = [
        Fact("step time", times.median_ps, "ps", " (median)"),
        Fact("from ... to", times.min_ps, "ps", f" ... {time_text(times.max_ps)}"),
        Fact("mean", times.mean_ps, "ps", f" ± {time_text(times.deviation_ps)}"),
    ]
    gaps = facts.part("gap_before_ps")[facts.number > 0]
    if gaps.any():
        note = f" (median), {time_text(int(gaps.sum()) // gaps.size)} (mean)"
        shown.append(Fact("between steps", round(float(np.median(gaps))), "ps", note))
    return shown


def utilisation_facts(answer: TimeAnswer) -> list[Fact]:
    """What the steps use of the devices; nothing where no compiled program is known to have run."""
    use = answer.utilisation
    if use is None:
        return []
    many = f" of {use.chips} x {use.chip}" if use.chips > 1 else f" of {use.chip}"
    least = "at least " if use.is_least else ""
    mfu = "" if use.flops_share is None else f", {_share(use.flops_share)} of the peak{many} (MFU)"
    hbm = "" if use.bytes_share is None else f", {_share(use.bytes_share)} of the peak{many}"
    return [
        Fact("flops", f"{least}{number_text(use.flops)} a step",
             note=f", {number_text(use.flops_per_s)} flop/s{mfu}"),
        Fact("bytes", f"{least}{size_text(use.bytes_accessed)} a step",
             note=f" read and written, {size_text(use.bytes_per_s)}/s{hbm}"),
    ]  # fmt: skip


def _share(share: float) -> str:
    """A share of a peak; what is above it comes from caches, or the peak is not the chip's."""
    return f"{share:.1%}" if share <= 1 else f"{share:.1%}, above it: caches count too,"


def _lengths(heads: tuple[str, str], rows: Iterable[tuple[str, int, StepTimes]]) -> Table:
    """The times of the steps of each name, or of each device: ``heads`` say of which."""
    cells = [
        (name, count, times.median_ps, times.mean_ps, times.min_ps, times.max_ps)
        for name, count, times in rows
    ]
    lengths = columns_of(median="ps", mean="ps", shortest="ps", longest="ps")
    return Table("", (Column(heads[0]), Column(heads[1], "count"), *lengths), cells)


def parts_table(answer: TimeAnswer) -> Table:
    """What the mean step's time goes to."""
    parts, main = answer.parts(), answer.steps.main
    shares = shares_text([main.total(name) for name, _, _, _ in parts])
    rows = [
        (label, each, text, share)
        for (_, label, each, share), text in zip(parts, shares, strict=True)
        if text != "0.0%"
    ]
    of = f" in {answer.by_name[0][0]}" if answer.by_name else ""
    mean = Column("mean" if main.rows > 1 else "time", "ps")
    return Table(
        f"where it goes{of}", (Column(""), mean, Column("share", "figure"), Column("", "bar")), rows
    )


def by_device_table(answer: TimeAnswer) -> Table:
    """The times of each device, where they count steps of their own."""
    result = answer.by_device[:_DEVICES] if answer.steps.is_apart else ()
    return _lengths(("device", "steps"), ((device, t.count, t) for device, t in result))


def devices_table(answer: TimeAnswer) -> Table:
    """How busy each device is."""
    table = answer.devices.to_pylist()
    names = [
        name
        for name in ("compute_ps", "communication_ps", "copy_ps", "longest_idle_ps")
        if any(row[name] for row in table)
    ]
    labels = {"copy_ps": "copies"}
    columns = (
        Column("device"),
        Column("busy", "figure"),
        *(Column(labels.get(n, heading_of(n.removesuffix("_ps"))).lower(), "ps") for n in names),
    )
    rows = [
        (
            row["device"],
            f"{row['busy_ps'] / max(row['end_ps'] - row['start_ps'], 1):.1%}",
            *(row[name] for name in names),
        )
        for row in table[:_DEVICES]
    ]
    return Table("", columns, rows, (len(table) - _DEVICES,) if table[_DEVICES:] else ())


def steps_tables(facts: StepFacts) -> list[Table]:
    """A row per step, or the longest of many; then the same with fewer and fewer columns, for a
    screen that has no room for all: without small parts of the time, the begin, then larger ones.
    """
    rows, wall = facts.slowest_lane()
    title = "the steps"
    if facts.devices[1:]:
        title += " of each device" if facts.is_apart else ", each on the device with the longest"
    shown = rows
    if rows.size > _STEPS:
        shown = rows[(-wall).argsort(kind="stable")[:_LONGEST]]
        title = f"the {_LONGEST} longest of {rows.size:,} steps (all with --json)"
    slow = set(facts.slow_rows().tolist())
    usual = facts.usual_ps(shown).tolist()
    names = [name for name in PARTS if facts.share(name) >= _LEAST]
    columns = (
        *columns_of("step", "device", at="ps", time="ps"),
        *(Column(PARTS[name], "ps") for name in names),
        Column("", "remark"),
    )
    cells: list[Row] = []
    for row, median in zip(shown.tolist(), usual, strict=True):
        lengths = (int(facts.part(name)[row]) for name in ("start_ps", "wall_ps", *names))
        times = facts.part("wall_ps")[row] / max(median, 1)
        device = facts.devices[int(facts.device[row])] if facts.devices[1:] else ""
        remark = f"{times:.1f} x median" if row in slow else ""
        cells.append((facts.label(row), device, *lengths, remark))
    table = Table(title, columns, cells).without_empty()
    result = [table]
    less = sorted(names, key=facts.share)[:-1]
    leave = [PARTS[name] for name in less]
    leave.insert(sum(facts.share(name) < _MUCH for name in less), "at")
    for label in leave:
        table = table.only([n for n, one in enumerate(table.columns) if one.label != label])
        result.append(table)
    return result


def steps_document(profile: Profile) -> dict[str, object]:
    """What ``peakline steps --json`` prints for ``profile``."""
    return answer_document(profile, answer_time(profile).as_json())


_OPS = 12


def difference_tables(difference: StepDifference) -> list[Table]:
    """The parts of both steps, then the ops that differ most; without those that do not differ."""
    times = {"this_step": "run_ps", "median_step": "run_ps", "difference": "figure"}
    if not difference.usual.is_median:
        times = {"this_step": "run_ps", "the_other": "run_ps", "difference": "figure"}
    parts: list[Row] = [
        (one.ps.value, one.ps.usual, _signed(one.ps.difference), PARTS[f"{one.part}_ps"])
        for one in sorted(difference.parts, key=lambda one: -abs(one.ps.difference))
        if one.ps.value or one.ps.usual
    ]
    ops: list[Row] = [
        (
            one.ps.value,
            one.ps.usual,
            _signed(one.ps.difference),
            PARTS[f"{one.part}_ps"],
            title_of(one.name),
        )
        for one in difference.ops[:_OPS]
        if one.ps.difference
    ]
    result = [Table("its time, part by part", columns_of(**times, part=""), parts)]
    if ops:
        columns = columns_of(**times, part="", op="name")
        result.append(Table(f"the ops that differ most, at most {_OPS}", columns, ops))
    return result


def _signed(ps: int) -> str:
    return f"{'+' if ps > 0 else '-' if ps < 0 else ''}{short_time_text(abs(ps))}"


def straggler_text(straggler: Straggler | None, devices: int, *, communicates: bool) -> str:
    """Whom the others wait for, of ``devices`` that have steps; ``communicates`` says whether any
    collective was seen in these.

    >>> straggler_text(None, 8, communicates=True)
    'no device keeps the others waiting'
    """
    if straggler is None:
        if devices < 2:
            return "fewer than two devices have steps: which one the others wait for is not known"
        if not communicates:
            said = "no collectives are recorded: whether"
            return f"{said} a device keeps the others waiting is not known"
        return "no device keeps the others waiting"
    how = (
        "it is in collectives for the shortest time"
        if straggler.evidence == "communication"
        else "its computation ends last"
    )
    return (
        f"straggler: the other devices wait for {straggler.name}: {straggler.share:.0%} of the "
        f"step time ({time_text(straggler.behind_ps)} in the median step); {how} in "
        f"{straggler.often:.0%} of {straggler.steps:,} common steps"
    )
