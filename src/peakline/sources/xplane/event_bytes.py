"""Where the events of an XSpace lie, so that the stats of a few are read without those of all.

The file is walked once, past the stats; of every block of events the place is kept. A question
about some events then decodes their blocks alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from peakline import schema
from peakline.deadline import check_deadline
from peakline.profile.columns import Columns, Names
from peakline.sources.files import SourceFile
from peakline.sources.xplane.event_stats import coded_names, value_codes
from peakline.sources.xplane.outline import Outline, PlaneOutline
from peakline.wire import Interner, Plan, Spans, decode, stream

__all__ = ["EventBytes"]

_Array = npt.NDArray[Any]
_BLOCK_EVENTS = 256
_EVENTS_AT_ONCE = 1 << 14
"""How many events of a question are looked for between two looks at the deadline."""


@dataclass(frozen=True, eq=False)
class _Blocks:
    """The blocks of one plane: the row of the first event of each, and where its bytes lie.

    ``end_row`` is the row after the plane's last event. A block begins where the event before it
    ends, or with its line, and never reaches into the next line.
    """

    first_row: npt.NDArray[np.int64]
    bytes: Spans
    end_row: int


class EventBytes:
    """Finds the stats of events by their rows in the ``events`` table."""

    def __init__(self, file: SourceFile, outline: Outline) -> None:
        self._file, self._outline = file, outline
        self._planes: list[_Blocks] = []
        row = 0
        for plane in outline.planes:
            blocks = _blocks(file, plane, row)
            row = blocks.end_row
            self._planes.append(blocks)

    def stats_of(self, rows: _Array) -> Columns:
        """The stats of the events ``rows``: ``event_id`` (ascending), ``name``, ``value``.

        As in ``event_stats``. Rows named twice count once; those that no event has are left out.
        """
        rows = np.unique(np.asarray(rows, np.int64))
        names, texts = Interner(), Interner()
        parts: tuple[list[_Array], list[_Array], list[_Array]] = ([], [], [])
        first = 0
        for plane, blocks in zip(self._outline.planes, self._planes, strict=True):
            here = rows[np.searchsorted(rows, first) : np.searchsorted(rows, blocks.end_row)]
            first = blocks.end_row
            for at in range(0, here.size, _EVENTS_AT_ONCE):
                check_deadline()
                some = here[at : at + _EVENTS_AT_ONCE]
                decoded = decode(self._file.buffer, _stats_plan(), self._spans(blocks, some))
                stats = decoded["stats"]
                parts[0].append(some[stats.parent])
                parts[1].append(coded_names(stats.array("metadata_id"), names, plane))
                parts[2].append(value_codes(self._file, plane, stats.union("value"), texts))
        codes = [np.concatenate([np.zeros(0, np.int32), *part]) for part in parts[1:]]
        return Columns(
            {
                "event_id": np.concatenate([np.zeros(0, np.int64), *parts[0]]),
                "name": Names(codes[0], names.values),
                "value": Names(codes[1], texts.values),
            }
        )

    def _spans(self, blocks: _Blocks, rows: _Array) -> Spans:
        """Where the messages of events lie; ``rows`` are of the plane of ``blocks``."""
        block = np.searchsorted(blocks.first_row, rows, side="right") - 1
        used, place = np.unique(block, return_inverse=True)
        events = decode(self._file.buffer, _events_plan(), blocks.bytes.take(used))["events"]
        before = np.searchsorted(events.parent, np.arange(used.size))
        return events.spans("@span").take(before[place] + rows - blocks.first_row[block])


def _blocks(file: SourceFile, plane: PlaneOutline, row: int) -> _Blocks:
    """The blocks of a plane whose first event is ``row``."""
    firsts: list[_Array] = [np.zeros(0, np.int64)]
    begins: list[_Array] = [np.zeros(0, np.int64)]
    lines: list[_Array] = [np.zeros(0, np.int64)]
    last_line, last_end = -1, 0
    for part in stream(file.buffer, _events_plan(), plane.lines):
        events = part.tables["events"]
        if not events.rows:
            continue
        spans, line = events.spans("@span"), events.parent
        # The events of a part stand one behind the other; so do the parts.
        opens = np.concatenate([[line[0] != last_line], line[1:] != line[:-1]])
        number = np.arange(row, row + events.rows)
        sampled = np.flatnonzero(opens | (number % _BLOCK_EVENTS == 0))
        ends = spans.start.astype(np.int64) + spans.length
        before = np.where(sampled > 0, ends[sampled - 1], last_end)
        firsts.append(number[sampled])
        lines.append(line[sampled].astype(np.int64))
        begins.append(np.where(opens[sampled], plane.lines.start[lines[-1]], before))
        last_line, last_end, row = int(line[-1]), int(ends[-1]), row + events.rows
        file.release(part.position)
    first, begin, line = np.concatenate(firsts), np.concatenate(begins), np.concatenate(lines)
    stop = (plane.lines.start.astype(np.int64) + plane.lines.length)[line]
    goes_on = np.append(line[1:] == line[:-1], False)[: line.size]
    stop[:-1] = np.where(goes_on[:-1], begin[1:], stop[:-1])
    return _Blocks(first, Spans(begin, stop - begin), row)


@cache
def _events_plan() -> Plan:
    return Plan(schema.descriptor("tensorflow.profiler.XLine"), ("events.@span",))


@cache
def _stats_plan() -> Plan:
    event = schema.descriptor("tensorflow.profiler.XEvent")
    return Plan(event, ("stats.metadata_id", "stats.value"))
