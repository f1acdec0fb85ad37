"""Small drawings of a notebook's views: memory over time, the times of steps, shares of a whole."""

from __future__ import annotations

from collections.abc import Sequence

from peakline.arrays import Int64Array
from peakline.document import limits
from peakline.figures.drawn import DrawnAllocator
from peakline.figures.look import ALARM, COLOURS
from peakline.figures.over_time import read_usage
from peakline.render.notebook.pieces import shown

_BUCKETS = 160
_WIDTH, _HEIGHT = 2400, 300


def memory_drawing(one: DrawnAllocator) -> str:
    """Memory in use over time, with a dot at the peak; empty where it cannot be drawn."""
    usage = read_usage(one, _BUCKETS)
    if usage is None:
        return ""
    start, end = int(usage.time_ps[0]), int(usage.time_ps[-1])
    top = max(int(usage.used.max()), 1)

    def place(time: int, used: int) -> tuple[int, int]:
        x = (time - start) * _WIDTH // (end - start)
        return x, _HEIGHT - max(used, 0) * _HEIGHT // top

    points = [
        place(time, used)
        for time, used in zip(usage.time_ps.tolist(), usage.used.tolist(), strict=True)
    ]
    path = f"M{points[0][0]} {points[0][1]}" + "".join(f"H{x}V{y}" for x, y in points[1:])
    x, y = place(one.peak.peak_time_ps, one.peak.peak_bytes)
    mark = f'<ellipse cx="{x}" cy="{y}" rx="28" ry="28" fill="{ALARM}"/>'
    return _drawing("memory in use over time", f"{_stroke(path, COLOURS[0])}{mark}")


def steps_drawing(times: Int64Array) -> str:
    """How long each step took, in order; of many the longest of each stretch. Empty for one."""
    import numpy as np

    if times.size < 2 or not times.any():
        return ""
    edges = np.linspace(0, times.size, min(times.size, _BUCKETS) + 1).astype(np.int64)
    highest = np.maximum.reduceat(times, edges[:-1])
    count, top = highest.size, int(highest.max())
    path = "".join(
        f"M{place * _WIDTH // count} {_HEIGHT}V{_HEIGHT - value * _HEIGHT // top}"
        f"H{(place * 10 + 8) * _WIDTH // (count * 10)}V{_HEIGHT}Z"
        for place, value in enumerate(highest.tolist())
    )
    return _drawing("time of each step", f'<path d="{path}" fill="{COLOURS[0]}"/>')


def shares_drawing(parts: Sequence[tuple[str, str, float]]) -> str:
    """Shares of a whole side by side, and a legend: of each its name, a text and the share. The
    eight largest have a colour.
    """
    bars, names, begin = [], [], 0.0
    for (label, text, share), colour in zip(parts, COLOURS, strict=False):
        if share < limits.LEAST_PART:
            continue
        x, width = round(begin * _WIDTH), round(share * _WIDTH)
        bars.append(f'<path d="M{x} 0H{x + width}V{_HEIGHT}H{x}Z" fill="{colour}"/>')
        square = f'<span style="color:{colour}">■</span>'
        names.append(f'<span style="white-space:nowrap">{square} {shown(label)} {text}</span>')
        begin += share
    if not bars:
        return ""
    picture = _drawing("where the time of a step goes", "".join(bars), width=480, height=14)
    return f'<div style="margin:4px 0">{picture}<div>{" ".join(names)}</div></div>'


def _stroke(path: str, colour: str) -> str:
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1" '
        'vector-effect="non-scaling-stroke"/>'
    )


def _drawing(label: str, content: str, *, width: int = 240, height: int = 36) -> str:
    return (
        f'<svg role="img" aria-label="{label}" width="{width}" height="{height}" '
        f'viewBox="-40 -40 {_WIDTH + 80} {_HEIGHT + 80}" preserveAspectRatio="none">{content}</svg>'
    )
