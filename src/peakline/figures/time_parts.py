"""What time went to: of every step, of every device, of input pipelines, of ops and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import AnyArray
from peakline.errors import NotFoundError
from peakline.figures.look import (
    COLOURS,
    Drawing,
    axis,
    drawing,
    duration_text,
    fit,
    level_bars,
    plain,
    row_axis,
    step_axis,
    step_bars,
    time_unit,
)
from peakline.suggest import there_is
from peakline.text import share_text, shares_text
from peakline.timing.device_time import device_times
from peakline.timing.input_pipeline import Stage, input_stages
from peakline.timing.kernels import kernel_reports
from peakline.timing.op_stats import op_times
from peakline.timing.step_breakdown import PARTS, StepTimes, step_times
from peakline.timing.steps.facts import PARTS as WORDS
from peakline.timing.steps.facts import step_facts_of
from peakline.timing.steps.variation import StepVariation, variation_of

if TYPE_CHECKING:
    from peakline.tables import Profile


_OPS = 20
_NAME = 48


@dataclass(frozen=True)
class _Bar:
    """One bar: picoseconds of all runs, and of the median, the 95th of 100 and the longest."""

    name: str
    more: str
    side: str
    total_ps: int
    occurrences: int
    spread_ps: tuple[int, int, int]


def op_stats(profile: Profile, *, side: str | None = None) -> Drawing | None:
    """The 20 ops with the most self time, on devices and on the host.

    Only those of one ``side``, ``device`` or ``host``, where it is named. None where no op ran.
    Raises InputError when the profile cannot be read.
    """
    times = op_times(profile)
    ops = times.ops if side is None else times.of(side)
    largest = sorted(ops, key=lambda op: -op.self_ps)[:_OPS]
    bars = [
        _Bar(
            op.op, op.op_type, op.side, op.self_ps, op.occurrences,
            (op.median_ps, op.p95_ps, op.max_ps),
        )
        for op in largest
    ]  # fmt: skip
    total = sum(op.self_ps for op in ops)
    return _drawn_ops(bars, total, len(ops), "Ops by self time", "ops", "Self time")


def kernels(profile: Profile) -> Drawing | None:
    """The 20 kernels of GPUs that took longest; None where the profile has none.

    Raises InputError when the profile cannot be read.
    """
    reports = kernel_reports(profile)
    bars = [
        _Bar(
            report.launch.name, report.launch.op, "tensor cores"
            if report.launch.uses_tensor_cores
            else "no tensor cores",
            report.total_ps, report.occurrences,
            (report.median_ps, report.p95_ps, report.longest_ps),
        )
        for report in reports[:_OPS]
    ]  # fmt: skip
    total = sum(report.total_ps for report in reports)
    return _drawn_ops(bars, total, len(reports), "GPU kernels by time", "kernels", "Time")


def _drawn_ops(
    bars: Sequence[_Bar], total_ps: int, count: int, title: str, things: str, label: str
) -> Drawing | None:
    if not bars or not total_ps:
        return None
    size, unit = time_unit(max(bar.total_ps for bar in bars))
    shown = sum(bar.total_ps for bar in bars)
    names = [plain(fit(bar.name or "(unnamed)", _NAME)) for bar in bars]
    traces = []
    for number, side in enumerate(dict.fromkeys(bar.side for bar in bars)):
        own = [place for place, bar in enumerate(bars) if bar.side == side]
        traces.append(
            level_bars(
                side,
                COLOURS[number],
                [bars[place].total_ps / size for place in own],
                own,
                customdata=[_op_hover(bars[place], total_ps) for place in own],
                hovertemplate=f"%{{customdata}}<extra>{side}</extra>",
            )
        )
    first = bars[0]
    return drawing(
        traces,
        title=title,
        subtitle=plain(
            f"{len(bars)} of {count} {things}, {share_text(shown, total_ps)} of the time", 400
        ),
        description=(
            f"Bars of the {len(bars)} {things} that took most time, of {count}; the first is "
            f"{first.name} with {share_text(first.total_ps, total_ps)}."
        ),
        height=180 + 22 * len(bars),
        bargap=0.2,
        xaxis=axis(f"{label} ({unit})", rangemode="tozero"),
        yaxis=row_axis("", names, ticks=""),
        showlegend=len(traces) > 1,
    )


def _op_hover(bar: _Bar, total_ps: int) -> str:
    median, p95, longest = (duration_text(ps) for ps in bar.spread_ps)
    name = plain(f"{bar.name} ({bar.more})" if bar.more else bar.name, 400)
    return (
        f"{name}<br>{duration_text(bar.total_ps)}, {share_text(bar.total_ps, total_ps)}"
        f"<br>{bar.occurrences} times: median {median}, p95 {p95}, longest {longest}"
    )


_BARS = 128
_NAMES = 3
"""So many names of steps have their median in the subtitle."""
_LOOKS = {
    "compute": (COLOURS[2], ""),
    "communication": (COLOURS[3], ""),
    "device_to_device": (COLOURS[1], "x"),
    "device_to_host": (COLOURS[1], "/"),
    "host_to_device": (COLOURS[1], ""),
    "input_wait": (COLOURS[6], ""),
    "compile": (COLOURS[4], ""),
    "launch": (COLOURS[5], ""),
    "host_compute": (COLOURS[0], ""),
    "idle": (COLOURS[7], ""),
    "unknown": (COLOURS[7], "/"),
}
"""Each part's colour and hatching, as on the page (``core/parts.js``)."""


def step_breakdown(profile: Profile, *, device: str | None = None) -> Drawing | None:
    """The time of every step, stacked by what it went to.

    A bar stands for one step, or for the mean of several in a row where there are more than 128.
    The device is the one whose steps took longest in all, where none is named; without a device
    the steps are those of the host. Medians are of each name of steps, without those cut off.

    None where the profile has no steps. Raises NotFoundError for a device that is not there,
    InputError when the profile cannot be read.
    """
    times = step_times(profile)
    if device is not None and device not in times.devices:
        raise NotFoundError(f"no device {device!r} with steps{there_is(device, times.devices)}")
    if not times.wall.any():
        return None
    if device is not None:
        number = times.devices.index(device)
    else:
        result = sorted(set(times.device.tolist()))
        number = max(result, key=lambda k: (int(times.wall[times.rows_of(k)].sum()), -k))
    own = times.devices[number] if number >= 0 else None
    by_name = [one for one in variation_of(step_facts_of(profile)) if one.device == own]
    return _draw(times, times.rows_of(number), own, _medians(by_name))


def _medians(by_name: list[StepVariation]) -> str:
    """The median of the steps of each name."""
    if len(by_name) == 1:
        return f"{duration_text(round(by_name[0].median_ps))} in the median step"
    return ", ".join(
        f"{duration_text(round(one.median_ps))} in the median {fit(one.name or 'step', 24)}"
        for one in by_name[:_NAMES]
    )


def _label(times: StepTimes, row: int) -> str:
    cut_off = " (cut off)" if times.is_cut_off[row] else ""
    return plain(fit(times.name[row] or "", 24) + cut_off)


def _draw(times: StepTimes, rows: AnyArray, device: str | None, medians: str) -> Drawing:
    together = -(-rows.size // _BARS)
    firsts = np.arange(0, rows.size, together)
    counts = np.diff(np.append(firsts, rows.size))
    parts = np.add.reduceat(times.parts[rows], firsts, axis=0) / counts[:, None]
    labels = [_label(times, int(rows[k])) for k in firsts.tolist()]
    size, unit = time_unit(float(parts.sum(axis=1).max()))
    whole = times.parts[rows].sum(axis=0)
    traces = [
        step_bars(
            WORDS[f"{part}_ps"],
            _LOOKS[part][0],
            np.round(parts[:, place] / size, 6),
            labels,
            f"%{{y:,.4~r}} {unit}, %{{text}}",
            _LOOKS[part][1],
        )
        for place, part in enumerate(PARTS)
        if whole[place]
    ]
    most = sorted(range(len(PARTS)), key=lambda place: -int(whole[place]))[:3]
    shares = shares_text(whole.tolist())
    lengths = ", ".join(
        f"{WORDS[f'{PARTS[place]}_ps']} {shares[place]}" for place in most if whole[place]
    )
    of = f"the mean of up to {together} steps" if together > 1 else "a step"
    where = device or "the host"
    return drawing(
        traces,
        title="What the time of a step went to",
        subtitle=plain(f"{where}: {medians}; {lengths}", 400),
        description=(
            f"Stacked bars of the time of {rows.size} steps of {where}, {medians}: {lengths}."
        ),
        barmode="stack",
        bargap=0.15,
        xaxis=step_axis(labels, of),
        yaxis=axis(f"Time ({unit})", rangemode="tozero"),
        showlegend=True,
    )


_DEVICES = 64
_ROW, _AROUND = 26, 220
_DEVICE_PARTS = (
    ("compute_ps", "compute", COLOURS[2]),
    ("communication_ps", "communication that computation does not hide", COLOURS[3]),
    ("copy_ps", "copies that neither hides", COLOURS[1]),
    ("idle_ps", "idle", COLOURS[7]),
)


def device_time(profile: Profile) -> Drawing | None:
    """A bar per device, from its first work to its last: computing, communicating, copying, idle.

    At most 64 devices are drawn, those that were idle longest.

    None where no device is recorded. Raises InputError when the profile cannot be read.
    """
    result = device_times(profile)
    if not result:
        return None
    idlest = sorted(range(len(result)), key=lambda k: (-result[k].idle_ps, k))[:_DEVICES]
    drawn = [result[k] for k in sorted(idlest)]
    labels = [plain(fit(one.device, 32)) for one in drawn]
    spans = [one.compute_ps + one.communication_ps + one.copy_ps + one.idle_ps for one in drawn]
    size, unit = time_unit(max(spans))
    traces = [
        level_bars(
            name,
            colour,
            [getattr(one, part) / size for one in drawn],
            # Two devices may be called the same.
            list(range(len(drawn))),
            text=labels,
            textposition="none",
            hovertemplate=f"%{{x:,.4~r}} {unit}, %{{text}}<extra>{name}</extra>",
        )
        for part, name, colour in _DEVICE_PARTS
    ]
    idle = share_text(sum(one.idle_ps for one in drawn), sum(spans) or 1)
    which = f"the {len(drawn)} idlest of {len(result)}" if len(drawn) < len(result) else "all"
    count = f"{len(result)} device{'s' if len(result) > 1 else ''}"
    return drawing(
        traces,
        title="How busy the devices were",
        subtitle=plain(f"{count}, idle for {idle} between their first and last work", 400),
        description=(
            f"Bars of the time of {count} ({which} drawn) with computation, communication, copies "
            f"and nothing to do: idle for {idle}."
        ),
        height=_AROUND + _ROW * len(drawn),
        barmode="stack",
        bargap=0.25,
        xaxis=axis(f"Time ({unit})", rangemode="tozero"),
        yaxis=row_axis("Device", labels),
        showlegend=True,
    )


_STAGES = 40
_STAGE_NAME = 60


def input_pipeline(profile: Profile) -> Drawing | None:
    """The stages of input pipelines from the consumer down, at most 40: how long the program waited
    for each, and how long it worked besides. None where there is no pipeline.

    Raises InputError when the profile cannot be read.
    """
    stages = input_stages(profile)
    shown = stages[:_STAGES]
    if not shown:
        return None
    blocking = [stage.blocking_ps for stage in shown]
    besides = [max(stage.self_ps - stage.blocking_ps, 0) for stage in shown]
    size, unit = time_unit(max(*blocking, *besides, 1))
    slow = [stage for stage in stages if stage.is_bottleneck]
    tips = [_hover_text(stage) for stage in shown]
    traces = [
        level_bars(
            name,
            COLOURS[number],
            [value / size for value in values],
            list(range(len(shown))),
            customdata=tips,
            hovertemplate="%{customdata}<extra></extra>",
        )
        for number, (name, values) in enumerate(
            (("the program waited", blocking), ("in the background", besides))
        )
    ]
    verdict = f"{slow[0].name}: {slow[0].why}" if slow else "no stage holds the program up"
    names = [plain(fit(stage.name, _STAGE_NAME)) for stage in shown]
    return drawing(
        traces,
        title="Stages of the input pipeline",
        subtitle=plain(verdict, 400),
        description=f"Bars of {len(shown)} of {len(stages)} stages; {verdict}.",
        height=180 + 26 * len(shown),
        bargap=0.2,
        barmode="stack",
        xaxis=axis(f"Self time ({unit})", rangemode="tozero"),
        yaxis=row_axis("", names, ticks=""),
    )


def _hover_text(stage: Stage) -> str:
    calls = stage.lengths
    return "<br>".join(
        (
            plain(stage.name, 200),
            (
                f"{calls.size} calls, {duration_text(int(calls.sum()))} in all, "
                f"longest {duration_text(int(calls[-1]))}"
            ),
            f"self time {duration_text(stage.self_ps)}",
            f"its consumer waited {duration_text(stage.wait_ps)}",
        )
    )
