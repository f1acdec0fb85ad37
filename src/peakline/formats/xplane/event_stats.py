"""The ``event_stats`` table: every stat of every event as text.

The text of a value is made once per distinct value of a kind; rows only get its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array
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
        distinct, inverse = np.unique(some, return_inverse=True)
        parts = [text_of(number).encode() for number in distinct.tolist()]
        ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        codes = texts.add(as_buffer(b"".join(parts)), Spans(ends[:-1], np.diff(ends)))
        coded.append(codes[inverse])
    return np.concatenate(coded)


def _pieces(rows: AnyArray) -> Iterator[AnyArray]:
    """``rows`` in pieces that do not take long."""
    for first in range(0, rows.size, _PIECE_ROWS):
        check_deadline()
        yield rows[first : first + _PIECE_ROWS]
