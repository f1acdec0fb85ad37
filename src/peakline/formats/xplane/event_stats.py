"""The ``event_stats`` table: every stat of every event as text, or of a few events alone.

The text of a value is made once per distinct value of a kind; rows only get its code. For some
events the file is walked once, past the stats; of every block of events the place is noted, and
only their blocks are decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.deadline import check_deadline
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.line_parts import LinePart, Lookup, StatRows
from peakline.formats.xplane.line_reader import LineReader
from peakline.formats.xplane.outline import Outline, PlaneOutline
from peakline.kernels.line_layout import ALL_STATS, NO_STATS, NOT_WANTED, SOME_STATS
from peakline.tables.columns import Columns, Names
from peakline.wire import Damage, Interner, Spans, Union, as_buffer

_PIECE_ROWS = 1 << 17
_DOUBLE, _UINT64, _INT64, _STR, _BYTES, _REF = 2, 3, 4, 5, 6, 7


def read_stats(
    file: SourceFile, outline: Outline, *, columns: AbstractSet[str] | None = None
) -> tuple[Columns, dict[int, Damage]]:
    """The ``event_stats`` table, and the damage by plane.

    Without ``value`` among ``columns`` (None: all) no value is read.
    """
    with_values = columns is None or "value" in columns
    names, texts = Interner(), Interner()
    ids: list[Int64Array] = [np.zeros(0, np.int64)]
    name_codes: list[Int32Array] = [np.zeros(0, np.int32)]
    text_codes: list[Int32Array] = [np.zeros(0, np.int32)]
    first = 0
    damage: dict[int, Damage] = {}
    for plane in outline.with_lines:
        reader = LineReader(file, plane.lines, stats=ALL_STATS)
        for part in reader.parts():
            event, number, _, *value = part.stats
            ids.append(event + np.int64(first))
            first += part.ids.size
            name_codes.append(coded_names(number, names, plane))
            if with_values:
                text_codes.append(value_codes(part, plane, Union(*value), texts))
        damage[plane.index] = reader.damage
    data: dict[str, AnyArray | Names] = {
        "event_id": np.concatenate(ids),
        "name": Names(np.concatenate(name_codes), names.values),
    }
    if with_values:
        data["value"] = Names(np.concatenate(text_codes), texts.values)
    return Columns(data), damage


def read_typed_stats(
    file: SourceFile, outline: Outline, wanted: AbstractSet[str]
) -> tuple[Columns, dict[int, Damage]]:
    """The stats called ``wanted``, as `typed_columns`, and the damage by plane that was seen.

    A plane that knows none of the names is not read, unless events behind it are to be numbered.
    """
    parts: list[tuple[int, StatRows]] = []
    first = 0
    damage: dict[int, Damage] = {}
    roles = [
        {number: 0 for number, name in plane.stat_names.items() if name in wanted}
        for plane in outline.planes
    ]
    last = max((n for n, some in enumerate(roles) if some), default=-1)
    for plane, some in zip(outline.planes[: last + 1], roles, strict=False):
        if not len(plane.lines):
            continue
        which = SOME_STATS if some else NO_STATS
        reader = LineReader(file, plane.lines, stats=which, roles=Lookup(some, NOT_WANTED))
        for part in reader.parts():
            event, number, _, *value = (column.copy() for column in part.stats)
            if event.size:
                parts.append((first, StatRows(plane, event, number, Union(*value))))
            first += part.ids.size
        damage[plane.index] = reader.damage
    return typed_columns(file, parts), damage


def typed_columns(file: SourceFile, parts: Iterable[tuple[int, StatRows]]) -> Columns:
    """Stats with numbers as numbers; each part with the row of its plane's first event.

    Columns ``event_id``, ``name``, ``integer`` (of int64 and uint64, which wraps), ``real`` (of
    doubles) and ``text`` (of strings, references and bytes); what a stat is not is null.
    """
    names, texts = Interner(), Interner()
    made: dict[str, list[AnyArray]] = {
        key: [] for key in ("event_id", "name", "integer", "real", "text", "case")
    }
    for first, rows in parts:
        value = rows.value
        made["event_id"].append(rows.event.astype(np.int64) + first)
        made["name"].append(coded_names(rows.number, names, rows.plane))
        made["case"].append(value.case)
        is_number = (value.case == _INT64) | (value.case == _UINT64)
        is_real = value.case == _DOUBLE
        bits = value.bits.astype(np.int64, copy=False)
        made["integer"].append(np.where(is_number, bits, 0))
        made["real"].append(np.where(is_real, bits, 0).view(np.float64))
        text = np.full(value.case.size, -1, np.int32)
        is_text = np.flatnonzero(~(is_number | is_real) & (value.case != 0))
        text[is_text] = value_codes(file, rows.plane, value.take(is_text), texts)
        made["text"].append(text)
    case = np.concatenate([np.zeros(0, np.uint8), *made["case"]])
    data: dict[str, AnyArray | Names] = {
        "event_id": np.concatenate([np.zeros(0, np.int64), *made["event_id"]]),
        "name": Names(np.concatenate([np.zeros(0, np.int32), *made["name"]]), names.values),
        "integer": np.concatenate([np.zeros(0, np.int64), *made["integer"]]),
        "real": np.concatenate([np.zeros(0, np.float64), *made["real"]]),
        "text": Names(np.concatenate([np.zeros(0, np.int32), *made["text"]]), texts.values),
    }
    return Columns(data, {"integer": (case == _INT64) | (case == _UINT64), "real": case == _DOUBLE})


def coded_names(ids: AnyArray, names: Interner, plane: PlaneOutline) -> Int32Array:
    """The code of the name of each stat's metadata."""
    return _coded(ids, names, _name_in(plane))


def _name_in(plane: PlaneOutline) -> Callable[[int], str]:
    return lambda number: plane.stat_names.get(number, "")


def value_codes(
    source: SourceFile | LinePart, plane: PlaneOutline, value: Union, texts: Interner
) -> Int32Array:
    """The code of each value's text, -1 for a stat without a value; bytes only as their number.

    ``source`` has the texts, by their place in the file.
    """
    codes = np.full(value.case.size, -1, np.int32)
    spell: dict[int, Callable[[int], str]] = {
        _DOUBLE: lambda bits: repr(float(np.int64(bits).view(np.float64))),
        _UINT64: lambda bits: str(bits % 2**64),
        _INT64: str,
        _REF: _name_in(plane),
    }
    for case, text in spell.items():
        rows = np.flatnonzero(value.case == case)
        codes[rows] = _coded(value.bits[rows], texts, text)
    rows = np.flatnonzero(value.case == _BYTES)
    codes[rows] = _coded(value.length[rows], texts, lambda length: f"<{length} bytes>")
    rows = np.flatnonzero(value.case == _STR)
    at = value.bits[rows]
    if (at[1:] < at[:-1]).any():
        # Entries of a map may stand in the file in any order, and texts are read in the file's.
        rows = rows[np.argsort(at, kind="stable")]
    for some in _pieces(rows):
        spans = Spans(value.bits[some], value.length[some])
        added = [texts.add(*where) for where in source.pieces(spans)]
        codes[some] = np.concatenate(added)
    return codes


def _coded(numbers: AnyArray, texts: Interner, text_of: Callable[[int], str]) -> Int32Array:
    """The code of ``text_of`` each number."""
    coded = [np.zeros(0, np.int32)]
    for some in _pieces(numbers):
        values, inverse = _distinct(some)
        parts = [text_of(number).encode() for number in values.tolist()]
        ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        codes = texts.add(as_buffer(b"".join(parts)), Spans(ends[:-1], np.diff(ends)))
        coded.append(codes[inverse])
    return np.concatenate(coded)


def _distinct(numbers: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The values among ``numbers``, ascending, and the place of each number among these."""
    if numbers.size and numbers.min() >= 0 and (most := int(numbers.max())) <= numbers.size:
        # Ids of metadata are small: to mark those that are there is faster than to sort.
        is_there = np.zeros(most + 1, np.bool_)
        is_there[numbers] = True
        return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[numbers]
    return np.unique(numbers, return_inverse=True)


def _pieces(rows: AnyArray) -> Iterator[AnyArray]:
    """``rows`` in pieces that do not take long."""
    for first in range(0, rows.size, _PIECE_ROWS):
        check_deadline()
        yield rows[first : first + _PIECE_ROWS]


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
