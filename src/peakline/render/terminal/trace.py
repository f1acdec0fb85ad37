"""A stretch of a trace on a person's screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.document.trace import NO_EVENTS
from peakline.render.terminal.layout import Indented, Line, Text, show
from peakline.render.terminal.screen import headed
from peakline.render.terminal.table import elided
from peakline.safe_text import one_line
from peakline.text import counted
from peakline.trace.steps import labels_of, step_phrase

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.render.terminal.layout import Shown
    from peakline.timing.timeline.excerpt import Excerpt, ExcerptLine
    from peakline.trace.events import Trace

_UNITS = (("s", 12), ("ms", 9), ("us", 6), ("ns", 3))
_STEPS = 10_000
"""Begins are distinct to this share of the stretch."""
_LEAST_NAME = 20
_DEEPEST = 40
"""Deeper events are not indented further."""


def span_text(picoseconds: int) -> str:
    """A duration in its own unit: ``1.204 s``, ``32.773 ms``, ``4.010 us``, ``15 ps``."""
    for unit, power in _UNITS:
        # What would be shown as 1000.000 of the smaller unit is one of this.
        if 2_000_000 * abs(picoseconds) >= 1_999_999 * 10**power:
            return f"{picoseconds / 10**power:.3f} {unit}"
    return f"{picoseconds} ps"


def print_excerpt(
    profile: Profile, trace: Trace, excerpt: Excerpt, step: int | None = None
) -> None:
    """Print the stretch (of the ``step`` of that id): which events are shown, then line by line."""
    if not trace.size:
        show([Text(f"{profile.path}: {NO_EVENTS}", hang=2)])
        return
    show(_parts(profile, trace, excerpt, step))


def _parts(profile: Profile, trace: Trace, excerpt: Excerpt, step: int | None) -> Iterator[Shown]:
    start, end = excerpt.start_ps, excerpt.end_ps
    digits = _digits(end - start)
    stretch = f"{_moment(start, digits)} to {_moment(end, digits)} ms ({span_text(end - start)})"
    if step is not None:
        labels = labels_of(profile.columns("steps", frozenset(("step_id", "name"))))
        stretch = f"{step_phrase(step, labels)}, {stretch}"
    if not excerpt.events:
        yield from headed(f"{stretch}: nothing ran", profile)
        return
    if excerpt.shown == excerpt.events:
        yield from headed(f"{stretch}: {counted(excerpt.events, 'event')}", profile)
    else:
        yield from headed(
            f"{stretch}: {excerpt.events:,} events, {excerpt.shown:,} shown, the longest of each "
            "line (more: --limit; closer: --from, --to, --line)",
            profile,
        )
    has_rows = True
    for part in excerpt.lines:
        # Lines of which nothing is shown stand together.
        if has_rows or part.rows:
            yield ""
        has_rows = bool(part.rows)
        yield from _line(trace, part, digits, end - start)


def _line(trace: Trace, part: ExcerptLine, digits: int, span: int) -> Iterator[Shown]:
    line = trace.lines[part.line]
    name = " ".join(text for text in (trace.planes[line.plane].name, line.name) if text)
    facts = f"{counted(part.events, 'event')}, busy {part.busy_ps / span:.1%}"
    if part.hidden:
        facts += f", {part.hidden:,} shorter not shown"
    yield Text(f"{name or '(unnamed line)'}: {facts}", "bold", 2)
    if part.rows:
        yield Indented(_Events(part, digits))


@dataclass(frozen=True)
class _Events:
    """The events of a line: begin, duration, self time and the name, which is nested."""

    part: ExcerptLine
    digits: int

    def lines(self, width: int | None) -> Iterator[Line]:
        """A line per event; names are cut to the width, and deep ones stand less far in."""
        begins = [_moment(row.start_ps, self.digits) for row in self.part.rows]
        wide = max(8, *map(len, begins))
        head = f"{'start ms':>{wide}}  {'duration':>11}  {'self':>11}  "
        yield [(f"{head}event", "bold")]
        room = None if width is None else max(width - len(head), _LEAST_NAME)
        deepest = _DEEPEST if room is None else min(_DEEPEST, max(room - _LEAST_NAME, 0) // 2)
        for begin, row, name in zip(
            begins, self.part.rows, self._names(room, deepest), strict=True
        ):
            length = span_text(row.end_ps - row.start_ps)
            own = "" if row.event < 0 else span_text(row.own_ps)
            style = "dim" if row.event < 0 else ""
            yield [(f"{begin:>{wide}}  {length:>11}  {own:>11}  {name}", style)]

    def _names(self, room: int | None, deepest: int) -> list[str]:
        result = []
        for row in self.part.rows:
            if row.event < 0:
                result.append("(gap)")
                continue
            before = "  " * min(row.depth, deepest)
            after = f"  (+{row.hidden:,} shorter)" if row.hidden else ""
            name = one_line(row.name or "(no name)")
            if room is not None:
                left = room - len(before)
                # The count goes before the name does.
                after = after if left - len(after) >= _LEAST_NAME // 2 else ""
                (name,) = elided([name], max(left - len(after), 3))
            result.append(f"{before}{name}{after}")
        return result

    def left_out(self, width: int | None) -> Sequence[str]:  # noqa: ARG002  (as a `Part`)
        """Nothing."""
        return ()


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
