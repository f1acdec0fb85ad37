"""Free memory in pieces, over time: the allocator's own figure, and what the addresses show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from peakline.arrays import Float64Array, Int64Array
from peakline.figures.drawn import DrawnAllocator, band_shapes, drawn_allocators, find_bands
from peakline.figures.look import (
    COLOURS,
    Drawing,
    axis,
    bytes_unit,
    drawing,
    duration_text,
    peak_mark,
    plain,
    step_line,
    time_unit,
)
from peakline.figures.over_time import places_to_draw
from peakline.text import size_text

if TYPE_CHECKING:
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.memory.fragmentation.holes import Fragmentation
    from peakline.tables import Profile

_BUCKETS = 400


def fragmentation(
    profile: Profile, *, allocator: str | None = None, answer: MemoryAnswer | None = None
) -> Drawing | None:
    """How much of the free memory of one allocator lies in pieces, over time.

    The upper part is the share of the free memory that is not in its largest piece: what the
    allocator reported, and what is made from the addresses of its buffers
    (`peakline.memory.fragmentation.holes`; a lower bound of what is free). The lower part is that
    free memory and its largest piece. The allocator is the one with the highest peak, of those that
    show anything, where none is named.

    None where nothing is reported and no buffer has an address, or all is of one time. Raises
    NotFoundError for an unknown allocator.
    """
    for chosen in drawn_allocators(profile, allocator, answer):
        drawn = _draw(chosen)
        if drawn is not None:
            return drawn
    return None


def reported_usage(chosen: DrawnAllocator) -> tuple[Int64Array, Float64Array]:
    """Times (picoseconds) and shares (0 to 1) as the allocator reported them, thinned."""
    history = chosen.history
    rows = history.rows_of(chosen.number)
    share = np.asarray(history.events.array("fragmentation")[rows], np.float64)
    is_reported = history.events.is_valid("fragmentation")[rows] & np.isfinite(share)
    time, share = history.events.array("time_ps")[rows][is_reported], share[is_reported]
    places = places_to_draw(time, share, _BUCKETS)
    return time[places], share[places]


def _draw(chosen: DrawnAllocator) -> Drawing | None:
    time, share = reported_usage(chosen)
    made = chosen.details.fragmentation
    all_times = chosen.history.events.array("time_ps")[chosen.history.rows_of(chosen.number)]
    start, end = int(all_times[0]), int(all_times[-1])
    has_pieces = made is not None and bool(made.free.any())
    if start == end or (not time.size and not has_pieces):
        return None
    unit, unit_name = time_unit(end - start)
    traces: list[dict[str, Any]] = []
    if time.size:
        hover = "%{y:.1f}%<extra>reported</extra>"
        name, y = "reported by the allocator", share * 100
        traces.append(step_line(name, COLOURS[0], time / unit, y, hovertemplate=hover))
    layout: dict[str, Any] = {}
    if made is not None and has_pieces:
        size, size_name = bytes_unit(int(made.free.max()))
        x = made.time_ps / unit
        pieces = np.where(made.free > 0, 100 * (1 - made.largest / np.maximum(made.free, 1)), 0)
        hover = "%{y:.1f}%<extra>from addresses</extra>"
        traces.append(step_line("made from addresses", COLOURS[1], x, pieces, hovertemplate=hover))
        for name, colour, value in (
            ("known free", COLOURS[4], made.free),
            ("largest free piece", COLOURS[2], made.largest),
        ):
            traces.append(
                step_line(
                    name,
                    colour,
                    x,
                    value / size,
                    yaxis="y2",
                    fill="tozeroy",
                    hovertemplate=f"%{{y:,.6~r}} {size_name}<extra>{name}</extra>",
                )
            )
        layout["yaxis2"] = axis(
            f"Free ({size_name})", domain=[0, 0.42], rangemode="tozero", anchor="x"
        )
    shapes, notes = band_shapes(find_bands(chosen), unit, (start, end))
    line, word = peak_mark(chosen.peak.peak_time_ps / unit, 0.47 if layout else 0)
    shapes.append(line)
    notes.append(word)
    room = (end - start) * 0.01
    return drawing(
        traces,
        title="Fragmentation of the free memory",
        subtitle=plain(_subtitle(chosen, made), 400),
        description=_description(chosen, made, time, share),
        height=500 if layout else 360,
        hovermode="x",
        xaxis=axis(
            f"Time since the profile's start ({unit_name})",
            range=[(start - room) / unit, (end + room) / unit],
            anchor="y2" if layout else "y",
        ),
        yaxis=axis("In pieces (%)", range=[-2, 102], domain=[0.52, 1] if layout else [0, 1]),
        shapes=shapes,
        annotations=notes,
        showlegend=True,
        **layout,
    )


def _subtitle(chosen: DrawnAllocator, made: Fragmentation | None) -> str:
    parts = [chosen.name]
    if chosen.peak.fragmentation_at_peak is not None:
        parts.append(f"{chosen.peak.fragmentation_at_peak:.1%} at the peak as reported")
    if made is not None and made.worst is not None and made.recoverable_bytes:
        parts.append(
            f"{size_text(made.recoverable_bytes)} of the pool needed only because of the pieces"
        )
    return "; ".join(parts)


def _description(
    chosen: DrawnAllocator, made: Fragmentation | None, time: Int64Array, share: Float64Array
) -> str:
    sentence = f"Lines over time of how much of the free memory of {chosen.name} lies in pieces."
    if time.size:
        worst = int(share.argmax())
        sentence += f" Reported: at most {share[worst]:.0%}, at {duration_text(int(time[worst]))}."
    if made is not None and made.free.any():
        last = int(made.free.argmax())
        sentence += (
            f" From addresses: at most {size_text(int(made.free[last]))} free, of which "
            f"{size_text(int(made.largest[last]))} in one piece."
        )
    return sentence
