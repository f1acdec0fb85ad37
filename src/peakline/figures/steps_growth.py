"""What steps do to memory: what each leaves in it, and what an allocator hands out in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from peakline.arrays import Float64Array, Int64Array
from peakline.figures.drawn import DrawnAllocator, drawn_allocators
from peakline.figures.look import (
    ALARM,
    COLOURS,
    INK,
    QUIET,
    Drawing,
    axis,
    bytes_unit,
    drawing,
    fit,
    level_mark,
    plain,
    step_axis,
    step_bars,
)
from peakline.findings.finding import Finding
from peakline.memory.growth.pattern import CACHE, LEAK, SAWTOOTH, STEP_UP
from peakline.memory.growth.series import AllocatorGrowth, GroupGrowth
from peakline.text import size_text

if TYPE_CHECKING:
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.tables import Profile


_BARS = 128


def churn(
    profile: Profile, *, allocator: str | None = None, answer: MemoryAnswer | None = None
) -> Drawing | None:
    """Bytes that one allocator allocated in each step, and how much of it the step gave back.

    A bar stands for one step, or for the mean of several in a row where there are more than 128.
    The line is the peak of memory in use. The allocator is the one with the highest peak, of those
    with steps, where none is named.

    None where the profile has fewer than two steps, or nothing is allocated in them. Raises
    NotFoundError for an unknown allocator.
    """
    for chosen in drawn_allocators(profile, allocator, answer):
        growth = chosen.details.growth
        if growth is None:
            continue
        given_back, retained = handed_out(chosen, growth)
        if not (given_back.any() or retained.any()):
            continue
        return _draw(chosen, growth, given_back, retained)
    return None


def handed_out(chosen: DrawnAllocator, growth: AllocatorGrowth) -> tuple[Int64Array, Int64Array]:
    """Bytes allocated between one mark and the next: those freed before the next, and the rest."""
    history = chosen.history
    rows = history.rows_of(chosen.number)
    bounds = np.append(growth.marks.start, growth.marks.rows)
    size = history.allocated[rows]
    ends = history.lifetimes.end[rows]
    place = np.searchsorted(bounds, rows, "right")
    next_mark = np.append(bounds, history.rows)[np.minimum(place, bounds.size)]
    same = (ends >= 0) & (ends < next_mark)
    cuts = np.searchsorted(rows, bounds)
    back, retained = (
        np.diff(np.append(0, np.cumsum(part))[cuts])
        for part in (np.where(same, size, 0), np.where(same, 0, size))
    )
    return back, retained


def _draw(
    chosen: DrawnAllocator, growth: AllocatorGrowth, given_back: Int64Array, retained: Int64Array
) -> Drawing:
    steps = given_back.size
    together = -(-steps // _BARS)
    firsts = np.arange(0, steps, together)
    counts = np.diff(np.append(firsts, steps)) * growth.stride
    back, rest = (np.add.reduceat(part, firsts) / counts for part in (given_back, retained))
    peak = growth.peak_bytes
    size, unit = bytes_unit(max(float((back + rest).max()), peak))
    labels = [plain(fit(growth.marks.label(k), 24)) for k in firsts.tolist()]
    mean = float((given_back + retained).sum()) / (steps * growth.stride)
    times = f", {mean / peak:.1f} times the peak" if mean >= 0.1 * peak > 0 else ""
    of = "the mean of a step" if together * growth.stride > 1 else "a step"
    traces = [
        step_bars(name, colour, value / size, labels, f"%{{y:,.6~r}} {unit}, from step %{{text}}")
        for name, colour, value in (
            ("freed in the same step", COLOURS[4], back),
            ("live beyond the step", COLOURS[0], rest),
        )
    ]
    line, word = level_mark(f"peak in use {size_text(peak)}", ALARM, peak / size, "dot")
    return drawing(
        traces,
        title="Allocated in every step",
        subtitle=plain(f"{chosen.name}: {size_text(mean)} in a step on average{times}", 400),
        description=(
            f"Bars of the bytes that {chosen.name} hands out in each of {steps * growth.stride} "
            f"steps, {size_text(mean)} on average; the peak of memory in use is {size_text(peak)}."
        ),
        barmode="stack",
        bargap=0.15,
        xaxis=step_axis(labels, of),
        yaxis=axis(f"Allocated ({unit})", rangemode="tozero"),
        shapes=[line],
        annotations=[word],
        showlegend=True,
    )


_GROUPS = 7
_STEPS = 256
_TICKS = 12
_FLAT = 0.3
"""What grows has a part of the figure of its own where it takes less than this share of all."""
_REDS = (ALARM, "#A63603", "#FDAE6B", "#7F2704", "#FDD0A2", "#E6550D", "#FD8D3C")
_ORDER = (LEAK, CACHE, STEP_UP, SAWTOOTH, "")
_WORDS = {LEAK: "leak", CACHE: "cache", STEP_UP: "rose once", SAWTOOTH: "sawtooth"}


def growth_per_step(
    profile: Profile, *, allocator: str | None = None, answer: MemoryAnswer | None = None
) -> Drawing | None:
    """Bytes left at each step's end in one allocator, stacked by signature, and all in use.

    The allocator is the one that leaks most, else the one with the highest peak, where none is
    named. What the findings call a leak comes first and is drawn red; then what grows otherwise by
    them, then what holds most. The gap up to the line is memory that no signature explains: from
    before the profile, or allocated beyond what was requested. At most 256 steps are drawn, the
    last one among them.

    None where the profile has fewer than two steps, or no step leaves anything. Raises
    NotFoundError for an unknown allocator.
    """
    result = [
        (chosen, chosen.details.growth, next((f for f in chosen.findings if f.kind == LEAK), None))
        for chosen in drawn_allocators(profile, allocator, answer)
        if chosen.details.growth is not None
    ]
    if not result:
        return None
    chosen, growth, leak = max(result, key=lambda one: _rate(one[2]))
    steps = len(growth.marks)
    stride = -(-steps // _STEPS)
    retained = np.arange(steps - 1, -1, -stride)[::-1]
    kinds = _kinds(chosen)

    def kind_of(group: GroupGrowth) -> str:
        return kinds.get(_key(group.signature.as_row(), group.signature.bytes), "")

    groups = sorted(
        (group for group in growth.groups if group.series.any()),
        key=lambda group: (
            _ORDER.index(kind_of(group)),
            -int(group.series.max()),
            group.signature.title,
        ),
    )
    if not groups and not growth.total.any():
        return None
    leading, others = groups[:_GROUPS], groups[_GROUPS:]
    size, unit = bytes_unit(int(growth.total.max(initial=0)))
    labels = [plain(fit(growth.marks.label(k), 24)) for k in retained.tolist()]
    x = retained * growth.stride
    growing = [group for group in leading if kind_of(group)]
    own_part = bool(growing) and _most(growing) < _FLAT * int(growth.total.max())
    areas = _areas([(group, kind_of(group)) for group in leading], others, retained)
    traces = [_area(name, colour, x, y / size, unit) for name, colour, y in areas]
    traces.append(
        {
            "type": "scatter",
            "mode": "lines+markers" if retained.size <= 40 else "lines",
            "name": "all in use at the step's end",
            "x": x,
            "y": growth.total[retained] / size,
            "text": labels,
            "line": {"color": INK, "width": 2},
            "marker": {"size": 5},
            "hovertemplate": f"%{{y:,.6~r}} {unit} in use after step %{{text}}<extra></extra>",
        }
    )
    layout: dict[str, Any] = {}
    if own_part:
        fine, fine_unit = bytes_unit(_most(growing))
        for name, colour, y in areas[: len(growing)]:
            traces.append(
                _area(name, colour, x, y / fine, fine_unit)
                | {"yaxis": "y2", "stackgroup": "growing", "showlegend": False}
            )
        layout["yaxis2"] = axis(
            f"What grows ({fine_unit})", domain=[0.62, 1], rangemode="tozero", anchor="x"
        )
    every = -(-retained.size // _TICKS)
    period = growth.marks.found_by == "period"
    return drawing(
        traces,
        title="Left in memory at each step's end",
        subtitle=plain(_subtitle(chosen.name, growth, leak), 400),
        description=_description(chosen.name, growth, leak),
        height=(560 if own_part else 400) + 19 * len(areas),
        hovermode="x unified",
        xaxis=axis(
            "Repetition" if period else "Step",
            tickvals=x[::every].tolist(),
            ticktext=labels[::every],
        ),
        yaxis=axis(
            f"All ({unit})" if own_part else f"Left ({unit})",
            rangemode="tozero",
            domain=[0, 0.52] if own_part else [0, 1],
        ),
        showlegend=True,
        **layout,
    )


def _areas(
    leading: list[tuple[GroupGrowth, str]], others: list[GroupGrowth], retained: Int64Array
) -> list[tuple[str, str, Int64Array]]:
    """Name, colour and bytes of every area, from the bottom up."""
    reds, colours = iter(_REDS), iter(COLOURS)
    areas = [
        (_name(group, kind), next(reds if kind == LEAK else colours), group.series[retained])
        for group, kind in leading
    ]
    if others:
        series = np.sum([group.series for group in others], axis=0)[retained]
        areas.append((f"({len(others):,} more)", QUIET, series))
    return areas


def _most(groups: list[GroupGrowth]) -> int:
    """The most that the groups leave together."""
    return int(np.sum([group.series for group in groups], axis=0).max())


def _rate(leak: Finding | None) -> float:
    rate = leak.evidence["bytes_per_step"] if leak is not None else 0
    return rate if isinstance(rate, int) else 0


def _kinds(chosen: DrawnAllocator) -> dict[tuple[object, ...], str]:
    """What the findings say about a signature: what they do not report is not marked either."""
    return {
        _key(row, row["buffer_bytes"]): finding.kind
        for finding in reversed(chosen.findings)
        if finding.kind in _WORDS
        for row in finding.rows
    }


def _key(row: Mapping[str, object], size: object) -> tuple[object, ...]:
    return (row["op"], row["region_type"], row["data_type"], row["shape"], size)


def _name(group: GroupGrowth, kind: str) -> str:
    title = plain(fit(group.signature.title, 56))
    return f"<b>{_WORDS[kind]}:</b> {title}" if kind else title


def _area(name: str, colour: str, x: Int64Array, y: Float64Array, unit: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "stackgroup": "left",
        "x": x,
        "y": y,
        "line": {"width": 0.5, "color": colour},
        "fillcolor": colour,
        "hovertemplate": f"%{{y:,.6~r}} {unit}",
    }


def _subtitle(name: str, growth: AllocatorGrowth, leak: Finding | None) -> str:
    sentence = f"{name}, {growth.marks.detail}"
    if leak is not None:
        sentence += f"; {size_text(_rate(leak))} more with every step"
        left = leak.evidence["steps_left"]
        if isinstance(left, int):
            sentence += f", room for about {left:,} more steps"
    return sentence


def _description(name: str, growth: AllocatorGrowth, leak: Finding | None) -> str:
    first, last = size_text(int(growth.total[0])), size_text(int(growth.total[-1]))
    sentence = (
        f"Stacked areas of the bytes that each of {len(growth.marks)} steps leaves in {name}, by "
        f"signature, and a line of all memory in use: {first} after the first, {last} after the "
        "last. "
    )
    return sentence + ("No leak was found." if leak is None else f"{leak.title}.")
