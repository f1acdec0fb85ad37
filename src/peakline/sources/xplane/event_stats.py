"""The ``event_stats`` table: every stat of every event as text.

The text of a value is made once per distinct value of a kind; rows only get its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from peakline import schema
from peakline.deadline import check_deadline
from peakline.profile.columns import Columns, Names
from peakline.sources.files import SourceFile
from peakline.sources.xplane.outline import Outline, PlaneOutline
from peakline.sources.xplane.stat_rows import StatRows
from peakline.wire import Damage, Interner, Plan, Spans, Union, as_buffer, decode

__all__ = ["coded_names", "read_stats", "read_typed_stats", "typed_columns", "value_codes"]

_Array = npt.NDArray[Any]
_PIECE_ROWS = 1 << 17
_DOUBLE, _UINT64, _INT64, _STR, _BYTES, _REF = 2, 3, 4, 5, 6, 7


def read_stats(
    file: SourceFile, outline: Outline, *, columns: AbstractSet[str] | None = None
) -> tuple[Columns, dict[int, Damage]]:
    """The ``event_stats`` table, and the damage by plane.

    Without ``value`` among ``columns`` (None: all) no value is read.
    """
    with_values = columns is None or "value" in columns
    paths = ["events.@", "events.stats.metadata_id"]
    if with_values:
        paths.append("events.stats.value")
    plan = Plan(schema.descriptor("tensorflow.profiler.XLine"), paths)
    names, texts = Interner(), Interner()
    ids: list[_Array] = []
    name_codes: list[_Array] = []
    text_codes: list[_Array] = []
    first = 0
    damage: dict[int, Damage] = {}
    for plane in outline.planes:
        got = decode(file.buffer, plan, plane.lines)
        stats = got["events.stats"]
        ids.append(stats.parent.astype(np.int64) + first)
        first += got["events"].rows
        damage[plane.index] = got.damage
        name_codes.append(coded_names(stats.array("metadata_id"), names, plane))
        if with_values:
            text_codes.append(value_codes(file, plane, stats.union("value"), texts))
    data: dict[str, _Array | Names] = {
        "event_id": np.concatenate([np.zeros(0, np.int64), *ids]),
        "name": Names(np.concatenate([np.zeros(0, np.int32), *name_codes]), names.values),
    }
    if with_values:
        codes = np.concatenate([np.zeros(0, np.int32), *text_codes])
        data["value"] = Names(codes, texts.values)
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
    ids = [
        sorted(number for number, name in plane.stat_names.items() if name in wanted)
        for plane in outline.planes
    ]
    last = max((n for n, some in enumerate(ids) if some), default=-1)
    for plane, some in zip(outline.planes[: last + 1], ids, strict=False):
        paths = ["events.@"]
        if some:
            paths += ["events.stats.metadata_id", "events.stats.value"]
        keep = {"events.stats.metadata_id": some} if some else {}
        plan = Plan(schema.descriptor("tensorflow.profiler.XLine"), paths, keep=keep)
        got = decode(file.buffer, plan, plane.lines)
        damage[plane.index] = got.damage
        if some:
            stats = got["events.stats"]
            number = np.array(some, np.int64)[stats.array("metadata_id")]
            parts.append((first, StatRows(plane, stats.parent, number, stats.union("value"))))
        first += got["events"].rows
    return typed_columns(file, parts), damage


def typed_columns(file: SourceFile, parts: Iterable[tuple[int, StatRows]]) -> Columns:
    """Stats with numbers as numbers; each part with the row of its plane's first event.

    Columns ``event_id``, ``name``, ``integer`` (of int64 and uint64, which wraps), ``real`` (of
    doubles) and ``text`` (of strings, references and bytes); what a stat is not is null.
    """
    names, texts = Interner(), Interner()
    made: dict[str, list[_Array]] = {
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
    data: dict[str, _Array | Names] = {
        "event_id": np.concatenate([np.zeros(0, np.int64), *made["event_id"]]),
        "name": Names(np.concatenate([np.zeros(0, np.int32), *made["name"]]), names.values),
        "integer": np.concatenate([np.zeros(0, np.int64), *made["integer"]]),
        "real": np.concatenate([np.zeros(0, np.float64), *made["real"]]),
        "text": Names(np.concatenate([np.zeros(0, np.int32), *made["text"]]), texts.values),
    }
    return Columns(data, {"integer": (case == _INT64) | (case == _UINT64), "real": case == _DOUBLE})


def coded_names(ids: _Array, names: Interner, plane: PlaneOutline) -> npt.NDArray[np.int32]:
    """The code of the name of each stat's metadata."""
    return _coded(ids, names, _name_in(plane))


def _name_in(plane: PlaneOutline) -> Callable[[int], str]:
    return lambda number: plane.stat_names.get(number, "")


def value_codes(
    file: SourceFile, plane: PlaneOutline, value: Union, texts: Interner
) -> npt.NDArray[np.int32]:
    """The code of each value's text, -1 for a stat without a value; bytes only as their number."""
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
    for some in _pieces(rows):
        codes[some] = texts.add(file.buffer, Spans(value.bits[some], value.length[some]))
    return codes


def _coded(
    numbers: _Array, texts: Interner, text_of: Callable[[int], str]
) -> npt.NDArray[np.int32]:
    """The code of ``text_of`` each number."""
    coded = [np.zeros(0, np.int32)]
    for some in _pieces(numbers):
        distinct, inverse = np.unique(some, return_inverse=True)
        codes = _add_all(texts, (text_of(number).encode() for number in distinct.tolist()))
        coded.append(codes[inverse])
    return np.concatenate(coded)


def _pieces(rows: _Array) -> Iterator[_Array]:
    """``rows`` in pieces that do not take long."""
    for first in range(0, rows.size, _PIECE_ROWS):
        check_deadline()
        yield rows[first : first + _PIECE_ROWS]


def _add_all(texts: Interner, strings: Iterable[bytes]) -> npt.NDArray[np.int32]:
    parts = list(strings)
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    return texts.add(as_buffer(b"".join(parts)), Spans(np.cumsum(lengths) - lengths, lengths))
