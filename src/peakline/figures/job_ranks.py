"""The ranks of a job side by side: what a mean step of each goes to, and what each holds at its
peak.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from peakline.arrays import Float64Array, IntpArray
from peakline.figures.look import (
    COLOURS,
    Drawing,
    axis,
    bytes_unit,
    drawing,
    duration_text,
    fit,
    level_bars,
    plain,
    row_axis,
    time_unit,
)
from peakline.jobs.answer import JobAnswer
from peakline.jobs.members import Member
from peakline.text import size_text

_RANKS = 32
_ROW, _AROUND = 22, 200
_OTHER = "not known"


def rank_times(answer: JobAnswer) -> Drawing | None:
    """A bar per rank, how long its mean step lasts: its own work, waiting for the last rank to come
    and transfers. At most 32 are drawn, those that work longest. None without steps.
    """
    times = answer.times
    waiting, transfer = np.nan_to_num(times.waiting), np.nan_to_num(times.transfer)
    own = times.step - waiting - transfer
    chosen = _most(own, np.flatnonzero(np.isfinite(times.step)))
    if not chosen.size:
        return None
    size, unit = time_unit(float(times.step[chosen].max()))
    names = [_name(answer.job.members[k]) for k in chosen.tolist()]
    parts = {
        "own work": (COLOURS[2], own),
        "waiting for the last rank": (COLOURS[6], waiting),
        "transfers": (COLOURS[3], transfer),
    }
    longest = int(chosen[np.argmax(own[chosen])])
    said = (
        f"{duration_text(round(answer.replay.recorded_ps))} in the mean step; most own work: "
        f"{answer.job.members[longest].title}, {duration_text(round(float(own[longest])))}"
    )
    return _drawn(
        {name: (colour, values[chosen] / size) for name, (colour, values) in parts.items()},
        names, unit, "Time", "What the mean step of each rank goes to",
        _of(chosen.size, len(answer.job.members), said),
    )  # fmt: skip


def rank_peaks(answer: JobAnswer) -> Drawing | None:
    """A bar per rank, its peak, by what it is for where the ranks say so. At most 32 are drawn, the
    fullest. None where no memory is recorded.
    """
    memory = answer.memory
    if not memory.members:
        return None
    chosen = _most(memory.peaks.astype(np.float64), np.arange(memory.peaks.size))
    size, unit = bytes_unit(float(memory.peaks.max()))
    peaks = memory.peaks[chosen] / size
    parts = {
        one.name or _OTHER: (COLOURS[k % len(COLOURS)], np.nan_to_num(one.sizes[chosen]) / size)
        for k, one in enumerate(memory.categories)
    }
    rest = peaks - sum((values for _, values in parts.values()), np.zeros(chosen.size))
    if (rest > 0).any():
        parts["peak" if not parts else "no category"] = (COLOURS[0 if not parts else 7], rest)
    fullest = memory.members[memory.fullest]
    said = f"largest peak: {fullest.title}, {size_text(int(memory.peaks.max()))}"
    names = [_name(memory.members[k]) for k in chosen.tolist()]
    return _drawn(
        parts, names, unit, "Memory", "The peak of each rank",
        _of(chosen.size, len(memory.members), said),
    )  # fmt: skip


def _most(values: Float64Array, known: IntpArray) -> IntpArray:
    """The places of those with most, in their order."""
    order = known[np.argsort(-values[known], kind="stable")][:_RANKS]
    return np.sort(order)


def _name(member: Member) -> str:
    return plain(fit(member.title, 32))


def _of(drawn: int, every: int, said: str) -> str:
    return said if drawn == every else f"{drawn} of {every} ranks, those with most; {said}"


def _drawn(
    parts: Mapping[str, tuple[str, Float64Array]],
    names: Sequence[str],
    unit: str,
    label: str,
    title: str,
    said: str,
) -> Drawing:
    traces = [
        level_bars(
            name,
            colour,
            values,
            list(range(len(names))),
            text=names,
            textposition="none",
            hovertemplate=f"%{{x:,.4~r}} {unit}, %{{text}}<extra>{name}</extra>",
        )
        for name, (colour, values) in parts.items()
        if values.any()
    ]
    return drawing(
        traces,
        title=title,
        subtitle=plain(said, 400),
        description=f"Stacked bars, one for each of {len(names)} ranks; {said}.",
        height=_AROUND + _ROW * len(names),
        barmode="stack",
        bargap=0.2,
        xaxis=axis(f"{label} ({unit})", rangemode="tozero"),
        yaxis=row_axis("", names, ticks=""),
        showlegend=len(traces) > 1,
    )
