"""Which ops, and which kernels of GPUs, took most of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.figures.look import COLOURS, Drawing, axis, drawing, level_bars, row_axis
from peakline.figures.text import duration_text, fit, plain, share_text, time_unit
from peakline.timing.kernels import kernel_reports
from peakline.timing.op_stats import op_times

if TYPE_CHECKING:
    from peakline.tables import Profile

_BARS = 20
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
    largest = sorted(ops, key=lambda op: -op.self_ps)[:_BARS]
    bars = [
        _Bar(
            op.op, op.op_type, op.side, op.self_ps, op.occurrences,
            (op.median_ps, op.p95_ps, op.max_ps),
        )
        for op in largest
    ]  # fmt: skip
    total = sum(op.self_ps for op in ops)
    return _draw(bars, total, len(ops), "Ops by self time", "ops", "Self time")


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
        for report in reports[:_BARS]
    ]  # fmt: skip
    total = sum(report.total_ps for report in reports)
    return _draw(bars, total, len(reports), "GPU kernels by time", "kernels", "Time")


def _draw(
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
                customdata=[_hover_text(bars[place], total_ps) for place in own],
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


def _hover_text(bar: _Bar, total_ps: int) -> str:
    median, p95, longest = (duration_text(ps) for ps in bar.spread_ps)
    name = plain(f"{bar.name} ({bar.more})" if bar.more else bar.name, 400)
    return (
        f"{name}<br>{duration_text(bar.total_ps)}, {share_text(bar.total_ps, total_ps)}"
        f"<br>{bar.occurrences} times: median {median}, p95 {p95}, longest {longest}"
    )
