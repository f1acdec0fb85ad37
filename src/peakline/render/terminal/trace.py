"""A stretch of a trace on a person's screen."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from peakline.render.terminal.memory import heading
from peakline.text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peakline.api import Profile
    from peakline.timing.timeline.excerpt import Excerpt, ExcerptLine
    from peakline.trace.events import Trace

_UNITS = (("s", 12), ("ms", 9), ("us", 6), ("ns", 3))
_STEPS = 10_000
"""Begins are distinct to this share of the stretch."""
_DEEPEST = 40
"""Deeper events are not indented further."""


def span_text(picoseconds: int) -> str:
    """A duration in its own unit: ``1.204 s``, ``32.773 ms``, ``4.010 us``, ``15 ps``."""
    for unit, power in _UNITS:
        # What would be shown as 1000.000 of the smaller unit is one of this.
        if 2_000_000 * abs(picoseconds) >= 1_999_999 * 10**power:
            return f"{picoseconds / 10**power:.3f} {unit}"
    return f"{picoseconds} ps"


def print_excerpt(profile: Profile, trace: Trace, excerpt: Excerpt) -> None:
    """Print the stretch: which events are shown, then line by line."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for text in _lines(profile, trace, excerpt):
        shown = text.rstrip()
        print(shown if width is None else shown[:width])


def _lines(profile: Profile, trace: Trace, excerpt: Excerpt) -> Iterator[str]:
    yield str(heading(profile))
    start, end = excerpt.start_ps, excerpt.end_ps
    digits = _digits(end - start)
    stretch = f"{_moment(start, digits)} to {_moment(end, digits)} ms ({span_text(end - start)})"
    if not excerpt.events:
        yield f"{stretch}: nothing ran"
        return
    if excerpt.shown == excerpt.events:
        yield f"{stretch}: {counted(excerpt.events, 'event')}"
    else:
        yield (
            f"{stretch}: {excerpt.events:,} events, {excerpt.shown:,} shown, the longest of each "
            "line (more: --limit; closer: --from, --to, --line)"
        )
    has_rows = True
    for part in excerpt.lines:
        # Lines of which nothing is shown stand together.
        if has_rows or part.rows:
            yield ""
        has_rows = bool(part.rows)
        yield from _line(trace, part, digits, end - start)


def _line(trace: Trace, part: ExcerptLine, digits: int, span: int) -> Iterator[str]:
    line = trace.lines[part.line]
    name = " ".join(text for text in (trace.planes[line.plane].name, line.name) if text)
    facts = f"{counted(part.events, 'event')}, busy {part.busy_ps / span:.1%}"
    if part.hidden:
        facts += f", {part.hidden:,} shorter not shown"
    yield one_line(f"{name or '(unnamed line)'}: {facts}")
    if not part.rows:
        return
    begins = [_moment(row.start_ps, digits) for row in part.rows]
    wide = max(8, *map(len, begins))
    yield f"  {'start ms':>{wide}}  {'duration':>11}  {'own':>11}  event"
    for begin, row in zip(begins, part.rows, strict=True):
        length = span_text(row.end_ps - row.start_ps)
        if row.event < 0:
            yield f"  {begin:>{wide}}  {length:>11}  {'':>11}  (gap)"
            continue
        own = span_text(row.own_ps)
        text = "  " * min(row.depth, _DEEPEST) + one_line(row.name or "(no name)")
        if row.hidden:
            text += f"  (+{row.hidden:,} shorter)"
        yield f"  {begin:>{wide}}  {length:>11}  {own:>11}  {text}"


def _digits(span: int) -> int:
    """Decimals of milliseconds with which begins in a stretch are distinct: 3 to 9."""
    step, digits = max(span // _STEPS, 1), 3
    while digits < 9 and 10 ** (9 - digits) > step:
        digits += 1
    return digits


def _moment(picoseconds: int, digits: int) -> str:
    """A time in milliseconds, exact to the picosecond before it is rounded."""
    unit = 10 ** (9 - digits)
    rounded = (abs(picoseconds) + unit // 2) // unit
    whole, rest = divmod(rounded, 10**digits)
    return f"{'-' if picoseconds < 0 else ''}{whole}.{rest:0{digits}}"
