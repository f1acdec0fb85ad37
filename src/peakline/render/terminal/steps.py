"""The time answer as a person reads it: how long steps take, where it goes, which stand out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from peakline.findings.catalogue import kinds
from peakline.findings.kind import Column, heading_of
from peakline.render.document.model import Fact
from peakline.render.terminal.screen import drawn_facts, indented, plain_table, show
from peakline.render.terminal.time_parts import cut_middle, fits, fitted, profile_line
from peakline.text import counted, one_line, shares_text, time_text
from peakline.timing.step_facts import PARTS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.api import Profile
    from peakline.findings.finding import Finding
    from peakline.findings.time_answer import StepTimes, TimeAnswer
    from peakline.timing.step_facts import StepFacts

_STEPS, _LONGEST = 24, 10
_POPULATIONS = 8
"""So many steps are shown; of more, the longest."""
_NAME = 40
_DEVICES = 16
_EVIDENCE = 5
_LEAST = 0.005
"""A part of half a per cent of the time or more has a column of its own."""


def print_steps(profile: Profile, answer: TimeAnswer) -> None:
    """Print the time of the steps, its parts, the devices, the steps, and the findings."""
    parts: list[RenderableType] = [profile_line(profile, moment=not profile.duration_ps)]
    if answer.times is None:
        parts += ["", Text(one_line(": ".join((answer.nothing, *answer.to_record))))]
    else:
        parts += ["", *step_facts_part(answer)]
        of = f" in {answer.by_name[0][0]}" if answer.by_name else ""
        parts += ["", indented(Text(one_line(f"where it goes{of}"))), indented(_parts(answer))]
        parts += [indented(Text(line)) for line in answer.to_record]
        parts += _by_device(answer)
    parts += devices_part(answer)
    if answer.times is not None:
        parts += _steps(answer)
    for finding in answer.findings:
        parts += ["", *finding_part(finding)]
    show(parts)


def step_facts_part(answer: TimeAnswer) -> list[RenderableType]:
    """How many steps there are, how they were found, and how long they take."""
    times, facts = answer.times, answer.steps
    if times is None:
        return []
    where = f" on {counted(len(facts.devices), 'device')}" if facts.has_device else ""
    rows, _ = facts.slowest_lane()
    first, last = facts.label(int(rows[0])), facts.label(int(rows[-1]))
    named = f", {first} to {last}" if first != last else f", {first}"
    many = counted(facts.count, "step")
    if facts.is_apart:
        many, named = counted(facts.rows, "step"), ", which count them apart"
    elif answer.by_name:
        named = ", " + ", ".join(
            f"{facts.only(name).count} {name}" for name, _ in answer.by_name[:_POPULATIONS]
        )
    title = Text(one_line(f"{many}{where}{named}"), style="bold")
    parts: list[RenderableType] = [title]
    if facts.found_by in HOW_FOUND:
        parts.append(indented(Text(HOW_FOUND[facts.found_by])))
    if facts.cut_off.rows:
        parts.append(indented(Text(one_line(_cut_off(facts)))))
    if answer.by_name:
        several = answer.by_name[:_POPULATIONS]
        found = [(name, facts.only(name).count, times) for name, times in several]
        return [*parts, "", _lengths(("STEPS", "COUNT"), found)]
    if times.min_ps == times.max_ps:
        told = [Fact("step time", times.median_ps, "ps")]
    else:
        told = [
            Fact("step time", times.median_ps, "ps", " (median)"),
            Fact("from ... to", times.min_ps, "ps", f" ... {time_text(times.max_ps)}"),
            Fact("mean", times.mean_ps, "ps", f" ± {time_text(times.deviation_ps)}"),
        ]
        gaps = facts.part("gap_before_ps")[facts.number > 0]
        if gaps.any():
            mean, median = int(gaps.sum()) // gaps.size, round(float(np.median(gaps)))
            note = f" (median), {time_text(mean)} (mean)"
            told.append(Fact("between steps", median, "ps", note))
    return [*parts, drawn_facts(told)]


HOW_FOUND = {
    "function": "inferred: nothing is marked, each run of a function counts as one",
    "annotation": "by annotations without a number, once a turn of the loop",
    "device": "by the device's own line of steps",
}
"""What is said of steps that no mark with a number says."""
_LENGTHS = ("MEDIAN", "MEAN", "SHORTEST", "LONGEST")


def _lengths(heads: tuple[str, str], rows: Iterable[tuple[str, int, StepTimes]]) -> RenderableType:
    """The times of the steps of each name, or of each device: ``heads`` say of which."""
    told = [
        (
            name,
            f"{count:,}",
            *map(time_text, (times.median_ps, times.mean_ps, times.min_ps, times.max_ps)),
        )
        for name, count, times in rows
    ]
    columns = (*heads, *_LENGTHS)
    return fitted(columns, told, right=columns[1:])


def _cut_off(facts: StepFacts) -> str:
    """Which steps the record does not hold whole."""
    names = list(dict.fromkeys(name or "" for name in facts.cut_off.names("name").to_list()))
    which = names[0] if len(names) == 1 else f"{len(names)} steps"
    are = "is" if len(names) == 1 else "are"
    return f"{which} {are} cut off by the end of the record, and left out of these times"


def _parts(answer: TimeAnswer) -> RenderableType:
    parts = answer.parts()
    told = shares_text([answer.steps.main.total(name) for name, _, _, _ in parts])
    rows = [
        (words, time_text(each), text, _bar(share))
        for (_, words, each, share), text in zip(parts, told, strict=True)
        if text != "0.0%"
    ]
    head = "MEAN" if answer.steps.main.rows > 1 else "TIME"
    return plain_table(("", head, "SHARE", ""), rows, right=(head, "SHARE"))


def _by_device(answer: TimeAnswer) -> list[RenderableType]:
    """The times of each device, where they count steps of their own."""
    if not answer.steps.is_apart:
        return []
    rows = [(device, times.count, times) for device, times in answer.by_device[:_DEVICES]]
    return ["", _lengths(("DEVICE", "STEPS"), rows)]


def _bar(share: float) -> str:
    return "█" * round(share * 30)


_DEVICE_HEADS = {"copy_ps": "copies"}


def devices_part(answer: TimeAnswer) -> list[RenderableType]:
    """How busy each device is."""
    table = answer.devices.to_pylist()
    if not table:
        return []
    names = [
        name
        for name in ("compute_ps", "communication_ps", "copy_ps", "longest_idle_ps")
        if any(row[name] for row in table)
    ]
    rows = []
    for row in table[:_DEVICES]:
        span = max(row["end_ps"] - row["start_ps"], 1)
        lengths = (time_text(row[name]) for name in names)
        rows.append((row["device"], f"{row['busy_ps'] / span:.1%}", *lengths))
    columns = (
        "DEVICE",
        "BUSY",
        *(_DEVICE_HEADS.get(name, heading_of(name.removesuffix("_ps"))).upper() for name in names),
    )
    parts: list[RenderableType] = ["", fitted(columns, rows, right=columns[1:])]
    if len(table) > _DEVICES:
        parts.append(indented(Text(f"and {len(table) - _DEVICES} more devices (all with --json)")))
    return parts


def _steps(answer: TimeAnswer) -> list[RenderableType]:
    """A line per step, or the longest of many."""
    facts = answer.steps
    rows, wall = facts.slowest_lane()
    slow = set(facts.slow_rows().tolist())
    title = "the steps"
    if facts.devices[1:]:
        title += " of each device" if facts.is_apart else ", each on the device with the longest"
    shown = rows.tolist()
    if rows.size > _STEPS:
        shown = rows[(-wall).argsort(kind="stable")[:_LONGEST]].tolist()
        title = f"the {_LONGEST} longest of {rows.size:,} steps (all with --json)"
    names = [name for name in PARTS if facts.share(name) >= _LEAST]
    columns, told = _step_table(facts, shown, names, slow)
    while not fits(columns, told) and len(names) > 1:
        names.remove(min(names, key=facts.share))  # the smallest parts are for wide screens
        columns, told = _step_table(facts, shown, names, slow)
    texts = {"STEP", "DEVICE", ""}
    numbers = [column for column in columns if column not in texts]
    return ["", indented(Text(title)), fitted(columns, told, right=numbers)]


def _step_table(
    facts: StepFacts, rows: Sequence[int], names: Sequence[str], slow: set[int]
) -> tuple[list[str], list[list[str]]]:
    has_devices, is_marked = bool(facts.devices[1:]), not slow.isdisjoint(rows)
    columns = ["STEP", *(["DEVICE"] if has_devices else []), "AT", "TIME"]
    columns += [PARTS[name].upper() for name in names] + ([""] if is_marked else [])
    told = []
    usual = facts.usual_ps(np.array(rows, np.int64))
    for row, median in zip(rows, usual.tolist(), strict=True):
        cells = [_cut(facts.label(row))]
        if has_devices:
            cells.append(facts.devices[int(facts.device[row])])
        lengths = ("start_ps", "wall_ps", *names)
        cells += [time_text(int(facts.part(name)[row])) for name in lengths]
        if is_marked:
            times = facts.part("wall_ps")[row] / max(median, 1)
            cells.append(f"{times:.1f} x median" if row in slow else "")
        told.append(cells)
    return columns, told


def finding_part(finding: Finding) -> list[RenderableType]:
    """A finding of time: what it says, what to do, and the first rows behind it."""
    title = Text(one_line(f"{finding.severity}: {finding.title}"), style="bold yellow")
    parts: list[RenderableType] = [title, indented(Text(one_line(finding.suggestion)))]
    rows = finding.rows[:_EVIDENCE]
    if rows:
        parts.append(_evidence(rows, kinds()[finding.kind].columns))
    return parts


def _evidence(
    rows: Sequence[Mapping[str, object]], declared: Mapping[str, Column]
) -> RenderableType:
    def head_of(name: str) -> str:
        # Parts of a step are called as everywhere on this screen.
        return PARTS.get(name, heading_of(name, declared)).upper()

    named = [name for name in rows[0] if any(row[name] for row in rows)]
    numbers = [
        name
        for name in named
        if all(isinstance(row[name], int | float) and row[name] is not True for row in rows)
    ]
    # Long names come last, where cutting them costs least.
    texts = [name for name in named if name not in numbers]
    front = [name for name in texts if name in _SHORT]
    last = [name for name in texts if name not in front]
    # What a narrow terminal does without: all but the first name and the first two numbers.
    spare = [*numbers[2:], *last[1:]]
    while True:
        names = [*front, *numbers, *last]
        heads = [head_of(name) for name in names]
        told = [[_cell(name, row[name]) for name in names] for row in rows]
        short = [
            [
                _cut(cell, _NARROW) if name in last else cell
                for name, cell in zip(names, line, strict=True)
            ]
            for line in told
        ]
        if fits(heads, short) or not spare:
            return fitted(heads, told, right=[head_of(name) for name in numbers])
        gone = spare.pop()
        numbers, last = ([name for name in some if name != gone] for some in (numbers, last))


_NARROW = 32
_SHORT = ("step", "device", "occurrences")


def _cell(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int) and name.endswith("_ps"):
        return time_text(value)
    if isinstance(value, int | float):
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
    return _cut("" if value is None else str(value), 72)


def _cut(text: str, length: int = _NAME) -> str:
    return cut_middle(text, length)
