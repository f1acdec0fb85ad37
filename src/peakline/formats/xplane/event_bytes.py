"""Where the events of an XSpace lie, so that the stats of a few are read without those of all.

The file is walked once, past the stats; of every block of events the place is noted. A question
about some events then decodes their blocks alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.deadline import check_deadline
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.event_stats import coded_names, value_codes
from peakline.formats.xplane.line_parts import LinePart
from peakline.formats.xplane.line_reader import LineReader
from peakline.formats.xplane.outline import Outline, PlaneOutline
from peakline.kernels.line_layout import ALL_STATS
from peakline.tables.columns import Columns, Names
from peakline.wire import Interner, Spans, Union

_BLOCK_EVENTS = 256
_EVENTS_AT_ONCE = 1 << 14
"""How many events of a question are looked for between two looks at the deadline."""


@dataclass(frozen=True, eq=False)
class _Blocks:
    """The blocks of one plane: the row of the first event of each, and where its bytes lie.

    ``end_row`` is the row after the plane's last event. A block begins with an event, and ends with
    its line at the latest.
    """

    first_row: Int64Array
    bytes: Spans
    end_row: int


class EventBytes:
    """Finds the stats of events by their rows in the ``events`` table."""

    __retained__ = "_file _outline _planes"

    def __init__(self, file: SourceFile, outline: Outline) -> None:
        self._file, self._outline = file, outline
        self._planes: list[_Blocks] = []
        row = 0
        for plane in outline.planes:
            blocks = _blocks(file, plane, row)
            row = blocks.end_row
            self._planes.append(blocks)

    def stats_of(self, rows: Int64Array) -> Columns:
        """The stats of the events ``rows``: ``event_id`` (ascending), ``name``, ``value``.

        As in ``event_stats``. Rows named twice count once; those that no event has are left out.
        """
        rows = np.unique(np.asarray(rows, np.int64))
        names, texts = Interner(), Interner()
        parts: tuple[list[AnyArray], list[AnyArray], list[AnyArray]] = ([], [], [])
        first = 0
        for plane, blocks in zip(self._outline.planes, self._planes, strict=True):
            here = rows[np.searchsorted(rows, first) : np.searchsorted(rows, blocks.end_row)]
            first = blocks.end_row
            for at in range(0, here.size, _EVENTS_AT_ONCE):
                check_deadline()
                some = here[at : at + _EVENTS_AT_ONCE]
                for part, event, wanted in self._parts(blocks, some):
                    _, number, _, *value = (column[wanted] for column in part.stats)
                    parts[0].append(event)
                    parts[1].append(coded_names(number, names, plane))
                    parts[2].append(value_codes(part, plane, Union(*value), texts))
        codes = [np.concatenate([np.zeros(0, np.int32), *part]) for part in parts[1:]]
        return Columns(
            {
                "event_id": np.concatenate([np.zeros(0, np.int64), *parts[0]]),
                "name": Names(codes[0], names.values),
                "value": Names(codes[1], texts.values),
            }
        )

    def _parts(
        self, blocks: _Blocks, rows: Int64Array
    ) -> Iterator[tuple[LinePart, AnyArray, BoolArray]]:
        """The parts that the events ``rows`` of the plane of ``blocks`` lie in; the row of every
        stat's event, where it is one of them, and which of the part's stats these are.
        """
        block = np.unique(np.searchsorted(blocks.first_row, rows, side="right") - 1)
        last, row = -1, 0
        for part in LineReader(self._file, blocks.bytes.take(block), stats=ALL_STATS).parts():
            if part.line != last:
                last, row = part.line, int(blocks.first_row[block[part.line]])
            event = part.stats[0].astype(np.int64) + row
            wanted = np.isin(event, rows)
            row += part.ids.size
            yield part, event[wanted], wanted


def _blocks(file: SourceFile, plane: PlaneOutline, row: int) -> _Blocks:
    """The blocks of a plane whose first event is ``row``."""
    firsts: list[Int64Array] = [np.zeros(0, np.int64)]
    begins: list[Int64Array] = [np.zeros(0, np.int64)]
    lines: list[Int64Array] = [np.zeros(0, np.int64)]
    last_line = -1
    for part in LineReader(file, plane.lines, begins=True).parts():
        number = np.arange(row, row + part.ids.size)
        opens = number % _BLOCK_EVENTS == 0
        opens[0] |= part.line != last_line
        firsts.append(number[opens])
        begins.append(part.begins[opens])
        lines.append(np.full(firsts[-1].size, part.line))
        last_line, row = part.line, row + part.ids.size
    first, begin, line = np.concatenate(firsts), np.concatenate(begins), np.concatenate(lines)
    stop = (plane.lines.start.astype(np.int64) + plane.lines.length)[line]
    goes_on = np.append(line[1:] == line[:-1], False)[: line.size]
    stop[:-1] = np.where(goes_on[:-1], begin[1:], stop[:-1])
    return _Blocks(first, Spans(begin, stop - begin), row)
