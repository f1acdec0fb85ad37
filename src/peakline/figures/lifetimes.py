"""The largest buffers as bars over time: which of them live together, and across the peak.

Only those are drawn that are worth a bar of their own: the largest, at the peak and elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from peakline.arrays import IntpArray
from peakline.figures.drawn import (
    DrawnAllocator,
    band_shapes,
    drawn_allocators,
    find_bands,
    step_name,
)
from peakline.figures.look import (
    COLOURS,
    INK,
    Drawing,
    axis,
    drawing,
    duration_text,
    fit,
    form_text,
    level_bars,
    peak_mark,
    plain,
    points,
    time_unit,
)
from peakline.kernels.memory_layout import ALLOCATION, DEALLOCATION
from peakline.memory.peak.explained import BEFORE_PROFILE
from peakline.memory.signatures import Signature
from peakline.text import size_text

if TYPE_CHECKING:
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.tables import Profile


def largest_buffers(
    profile: Profile, *, allocator: str | None = None, answer: MemoryAnswer | None = None
) -> Drawing | None:
    """The lives of the largest buffers of one allocator as bars, and when the peak was.

    The allocator is the one with the highest peak where none is named. Drawn are the 40 largest
    buffers that are live at the peak, and the 20 largest others, at most two of them alike.
    Triangles stand for what was there before the profile, and for what is still there at its end.
    Where the buffers at the peak live for a small part of the profile, the figure opens on the time
    around the peak, and the others are the largest of that time.

    None where the profile has no records, no buffer can be followed, or all is of one time. Raises
    NotFoundError for an unknown allocator.
    """
    result = drawn_allocators(profile, allocator, answer)
    if not result:
        return None
    wanted = result[0]
    times = wanted.history.events.array("time_ps")[wanted.history.rows_of(wanted.number)]
    start, end = int(times[0]), int(times[-1])
    bars = largest_bars(wanted) if start < end else ()
    if not bars:
        return None
    window = window_of(bars, start, end)
    if window != (start, end):
        bars = largest_bars(wanted, window)
    span = window[1] - window[0]
    unit, unit_name = time_unit(span)
    shapes, notes = band_shapes(find_bands(wanted, window), unit, window)
    peak = wanted.peak
    line, name = peak_mark(peak.peak_time_ps / unit)
    shapes.append(line)
    notes.append(name)
    traces: list[dict[str, Any]] = [
        _bars(wanted, bars, (start, end), unit, at_peak=at_peak) for at_peak in (True, False)
    ]
    traces += [
        _ends(
            bars, "there before the profile", "triangle-left", start / unit, lambda b: b.start_ps
        ),
        _ends(bars, "live at the profile's end", "triangle-right", end / unit, lambda b: b.end_ps),
    ]
    room = span * 0.015
    held = sum(bar.bytes for bar in bars if bar.at_peak)
    count = sum(bar.at_peak for bar in bars)
    subtitle = (
        f"{wanted.name}: {count} live at the peak, {size_text(held)} of "
        f"{size_text(peak.peak_bytes)}, and {len(bars) - count} others"
    )
    if window != (start, end):
        subtitle += f"; only the time around the peak, of {duration_text(end - start)}"
    return drawing(
        [trace for trace in traces if trace["y"]],
        title="Lives of the largest buffers",
        subtitle=plain(subtitle, 400),
        description=(
            f"Bars over time, one per buffer, of the {len(bars)} largest buffers of {wanted.name}. "
            f"{count} of them live at the peak, at {duration_text(peak.peak_time_ps)}. Largest: "
            + "; ".join(_label(bar) for bar in sorted(bars, key=lambda bar: -bar.bytes)[:5])
            + "."
        ),
        height=max(180 + 15 * len(bars), 320),
        barmode="overlay",
        bargap=0.25,
        xaxis=axis(
            f"Time since the profile's start ({unit_name})",
            range=[(window[0] - room) / unit, (window[1] + room) / unit],
        ),
        yaxis=axis(
            "Buffer",
            tickvals=list(range(len(bars))),
            ticktext=[plain(_label(bar)) for bar in bars],
            tickfont={"size": 10},
            range=[len(bars) - 0.5, -0.5],
            showgrid=False,
        ),
        shapes=shapes,
        annotations=notes,
        showlegend=True,
    )


def _label(bar: Bar) -> str:
    return f"{fit(bar.signature.op or '(no op)', 36)}  {size_text(bar.bytes)}"


def _bars(
    wanted: DrawnAllocator,
    bars: tuple[Bar, ...],
    span: tuple[int, int],
    unit: int,
    *,
    at_peak: bool,
) -> dict[str, Any]:
    places = [k for k, bar in enumerate(bars) if bar.at_peak == at_peak]
    lives = ((bars[k].start_ps, bars[k].end_ps) for k in places)
    spans = [(span[0] if a is None else a, span[1] if b is None else b) for a, b in lives]
    colour = COLOURS[0] if at_peak else COLOURS[4]
    return level_bars(
        "live at the peak" if at_peak else "not live at the peak",
        colour,
        [(end - start) / unit for start, end in spans],
        places,
        base=[start / unit for start, _ in spans],
        # The line keeps a short life visible.
        marker={"color": colour, "line": {"color": colour, "width": 1}},
        customdata=[_text(bars[k], wanted.step_names) for k in places],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _ends(bars: tuple[Bar, ...], name: str, symbol: str, x: float, bound: Any) -> dict[str, Any]:
    places = [k for k, bar in enumerate(bars) if bound(bar) is None]
    marker = {"symbol": symbol, "size": 9, "color": INK}
    return points(name, [x] * len(places), places, marker, hoverinfo="skip")


def _text(bar: Bar, names: dict[int, str]) -> str:
    lines = [plain(bar.signature.op or "(no op)")]
    signature = bar.signature
    form = form_text(signature.region_type, signature.data_type, signature.shape)
    if form:
        lines.append(plain(form))
    lines.append(f"<b>{size_text(bar.bytes)}</b> ({bar.bytes:,} bytes)")
    begun = "before the profile" if bar.start_ps is None else duration_text(bar.start_ps)
    ended = "after its end" if bar.end_ps is None else duration_text(bar.end_ps)
    lines.append(f"from {begun} to {ended}")
    if bar.start_ps is not None and bar.end_ps is not None:
        lines.append(f"lives {duration_text(bar.end_ps - bar.start_ps)}")
    step = step_name(bar.step, names)
    if step:
        lines.append(plain(f"made in step {step}"))
    return "<br>".join(lines)


AT_PEAK = 40
"""So many buffers that are live at the peak are drawn, ..."""
OTHERS = 20
"""... and so many others, ..."""
EACH = 2
"""... of them at most this many of one signature: an op of every step would fill the figure."""

WORTH = 0.001
"""... and none that takes less than this share of the peak, but for the `FEW` largest."""
FEW = 8
NARROW = 0.1


@dataclass(frozen=True)
class Bar:
    """The life of one buffer. Times are picoseconds, sizes the bytes allocated.

    ``start_ps`` is None for a buffer from before the profile, ``end_ps`` for one that lives to its
    end. ``step`` is the one of its allocation; ``at_peak`` says whether it is live at the peak.
    """

    signature: Signature
    bytes: int
    start_ps: int | None
    end_ps: int | None
    step: int | None
    at_peak: bool


def window_of(bars: tuple[Bar, ...], start_ps: int, end_ps: int) -> tuple[int, int]:
    """The time around the peak in which its ``bars`` can be distinguished, else all of it.

    In a long profile most buffers live for a thousandth of it. Where those that take less than
    `NARROW` of the time have half of the bytes at the peak or more, the window is their time and
    half as much on either side.
    """
    least = NARROW * (end_ps - start_ps)
    own = [bar for bar in bars if bar.at_peak]
    short: list[tuple[int, int, int]] = [
        (bar.bytes, bar.start_ps, bar.end_ps)
        for bar in own
        if bar.start_ps is not None and bar.end_ps is not None and bar.end_ps - bar.start_ps < least
    ]
    if 2 * sum(size for size, _, _ in short) < sum(bar.bytes for bar in own) or not short:
        return start_ps, end_ps
    first, last = min(begin for _, begin, _ in short), max(end for _, _, end in short)
    around = (last - first) // 2 + 1
    if last - first >= least:
        return start_ps, end_ps
    return max(first - around, start_ps), min(last + around, end_ps)


def largest_bars(wanted: DrawnAllocator, window: tuple[int, int] | None = None) -> tuple[Bar, ...]:
    """The `AT_PEAK` largest buffers live at the peak and the `OTHERS` largest others, by start.

    Only others that live in ``window`` (picoseconds), where one is given. Of equal size the one
    that lives longer is larger. A deallocation of what was not allocated
    inside the profile is the end of a buffer from before it, as in the table ``buffers``.
    """
    history = wanted.history
    events, lifetimes = history.events, history.lifetimes
    rows = history.rows_of(wanted.number)
    kind = lifetimes.kind[rows]
    older = (kind == DEALLOCATION) & (lifetimes.begin[rows] < 0)
    recorded = np.where(events.is_valid("allocated_bytes"), events.array("allocated_bytes"), 0)
    size = np.where(older, recorded[rows], np.where(kind == ALLOCATION, history.allocated[rows], 0))
    retained = size > 0
    rows, older, size = rows[retained], older[retained], size[retained]
    if not rows.size:
        return ()
    time = events.array("time_ps")
    end = np.where(older, rows, lifetimes.end[rows])
    begin_ps = np.where(older, time[0], time[rows])
    life = np.where(end < 0, time[-1], time[np.maximum(end, 0)]) - begin_ps
    at = wanted.peak_row
    lives = (older | (rows <= at)) & ((end < 0) | (end > at))
    code = np.where(older, len(history.signatures), history.signatures.codes[rows])

    def largest(places: IntpArray, most: int) -> list[int]:
        if places.size > most:
            # Only what is as large as the last one that is taken has to be put in order.
            least = np.partition(size[places], places.size - most)[places.size - most]
            places = places[size[places] >= least]
        order = np.lexsort((rows[places], -life[places], -size[places]))
        result: list[int] = places[order[:most]].tolist()
        return result

    chosen = largest(np.flatnonzero(lives), AT_PEAK)
    seen = ~lives
    if window is not None:
        seen &= (begin_ps <= window[1]) & (begin_ps + life >= window[0])
    others = np.flatnonzero(seen)
    most = np.zeros(len(history.signatures) + 1, np.int64)
    np.maximum.at(most, code[others], size[others])
    leading = [k for k in np.argsort(-most, kind="stable")[:OTHERS].tolist() if most[k]]
    picked = [k for one in leading for k in largest(others[code[others] == one], EACH)]
    chosen += largest(np.array(picked, np.intp), OTHERS)
    chosen = [
        place
        for rank, place in enumerate(sorted(chosen, key=lambda k: (-int(size[k]), int(rows[k]))))
        if rank < FEW or size[place] >= WORTH * wanted.peak.peak_bytes
    ]
    was_there = older | (events.array("is_before") & events.is_valid("is_before"))[rows]
    has_step = events.is_valid("step_id")[rows]
    before = Signature(wanted.peak.allocator, BEFORE_PROFILE, "", "", "", None)
    bars = [
        Bar(
            before if older[k] else history.signatures[int(code[k])],
            int(size[k]),
            None if was_there[k] else int(time[rows[k]]),
            None if end[k] < 0 else int(time[end[k]]),
            int(events.array("step_id")[rows[k]]) if has_step[k] and not was_there[k] else None,
            bool(lives[k]),
        )
        for k in sorted(chosen, key=lambda k: (not was_there[k], int(rows[k])))
    ]
    return tuple(bars)
