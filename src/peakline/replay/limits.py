"""Which limits a program fits in: all of them, since fitting is not monotone in the limit.

A limit enters an allocator only where it decides something: how large the last region is, whether
a segment may be taken. A replay under one limit says how much smaller the limit could have been
with the same decisions, so limits are gone through downwards, each replay from the last moment
that it has in common with the one before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from peakline.replay.requests import MIB, NO_LIMIT

_PIECES = 64
"""Moments that are saved of one replay, ..."""
BEGINNING = 2000
"""To begin a replay, or to go on from a moment, is as much work as so many events."""
_SAVED_BYTES = 256 * MIB
"""... and what all of them may take; where it is more, every second one is given up."""


class Moment(Protocol):
    """A saved moment of a replay."""

    @property
    def least_limit(self) -> int:
        """Limits from here on to its own led to this moment."""

    @property
    def nbytes(self) -> int:
        """Its size."""


At = TypeVar("At", bound=Moment)


class Machine(Protocol[At]):
    """An allocator in the middle of a replay (`peakline.replay.bfc.BfcMachine`)."""

    @property
    def position(self) -> int:
        """The next event."""

    @property
    def slack(self) -> int:
        """So many bytes less of the limit would have led to the same decisions so far."""

    def advance(self, stop: int) -> int:
        """Do the events before ``stop``; returns the next one, less where a request failed."""

    def saved(self) -> At:
        """The moment, to go on from."""

    def restore(self, saved: At, limit: int) -> None:
        """Go on from a moment under a limit that led to it."""


@dataclass(frozen=True)
class Span:
    """Limits from ``low`` to ``high`` bytes (both included, multiples of the step) that do the
    same: the request ``fails_at`` (an event) fails, or none (-1).
    """

    low: int
    high: int
    fails_at: int


@dataclass(frozen=True)
class Scan:
    """All spans, the highest limits first; the first begins at `NO_LIMIT`.

    ``lowest`` is the least limit that was looked at, ``events`` how much work it was.
    ``is_whole`` says whether that is all, or the work became too much.
    """

    spans: tuple[Span, ...]
    lowest: int
    is_whole: bool
    events: int

    @property
    def smallest(self) -> int | None:
        """The smallest limit that fits."""
        return min((span.low for span in self.spans if span.fails_at < 0), default=None)

    @property
    def safe_from(self) -> int | None:
        """The limit from which on all fit."""
        result = None
        for span in self.spans:
            if span.fails_at >= 0:
                break
            result = span.low
        return result

    def ranges(self, step: int = MIB) -> tuple[tuple[int, int | None], ...]:
        """The limits that fit, ascending; the last range has no end."""
        result: list[tuple[int, int | None]] = []
        for span in self.spans:
            if span.fails_at >= 0:
                continue
            if result and span.high + step == result[-1][0]:
                result[-1] = (span.low, result[-1][1])
            else:
                result.append((span.low, None if span is self.spans[0] else span.high))
        return tuple(reversed(result))

    def fits(self, limit: int) -> bool | None:
        """Whether a limit fits; None where it was not looked at."""
        for span in self.spans:
            if span.low <= limit <= span.high:
                return span.fails_at < 0
        return None


def scan(
    begin: Callable[[int], Machine[At]],
    events: int,
    lowest: int,
    *,
    most_events: int,
    step: int = MIB,
) -> Scan:
    """Every multiple of ``step`` from `NO_LIMIT` down to ``lowest`` bytes, below which none fits.

    ``begin`` gives a machine before the first of ``events`` events under a limit. Ends where more
    work was done than ``most_events`` take. Raises as `check_deadline`.
    """
    lowest = max(-(-lowest // step) * step, step)
    limit = max(NO_LIMIT, lowest)
    spans: list[Span] = []
    saved: list[At] = []
    done = 0
    machine = begin(limit)
    while True:
        began = machine.position
        spacing = max((events - began) // _PIECES, 4096)
        while machine.position < events:
            stop = min(events, machine.position + spacing)
            if machine.advance(stop) < stop:
                break
            if machine.position < events:
                saved.append(machine.saved())
        done += machine.position - began + BEGINNING
        least = max(-(-(limit - machine.slack) // step) * step, lowest)
        fails_at = -1 if machine.position >= events else machine.position
        spans.append(Span(min(least, limit), limit, fails_at))
        limit = spans[-1].low - step
        if limit < lowest or done > most_events:
            return Scan(tuple(spans), spans[-1].low, limit < lowest, done)
        while saved and saved[-1].least_limit > limit:
            saved.pop()
        while sum(one.nbytes for one in saved) > _SAVED_BYTES and len(saved) > 1:
            del saved[-2::-2]
        if saved:
            machine.restore(saved[-1], limit)
        else:
            machine = begin(limit)
