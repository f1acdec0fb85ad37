"""The stats of events that say which op an event belongs to, read once for all who need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.tables import Columns, Profile
from peakline.tables.joins import positions
from peakline.tables.once import once
from peakline.trace.events import DEVICE, trace_of

MEMORY_EVENTS = frozenset(("MemoryAllocation", "MemoryDeallocation"))
_PIECE = 1 << 16
_WANTED = frozenset(
    (
        "tf_op", "hlo_op", "program_id", "kernel_details", "is_eager", "equation", "flops",
        "bytes_accessed", "correlation_id", "_ipl_stage_id", "_ipl_stage_cat",
        "device_offset_ps", "device_duration_ps",
    )
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Stat:
    """One stat: the rows of ``events`` that have it, ascending, each once, and their values.

    ``text`` are codes of ``texts`` (-1: no text), ``integer`` numbers (0: no number).
    """

    row: Int64Array
    text: Int32Array
    integer: Int64Array
    texts: list[str]

    def at(self, rows: AnyArray) -> tuple[Int64Array, BoolArray]:
        """For each of ``rows`` where its value stands, and whether it has one."""
        place = positions(self.row, rows)
        return place, place >= 0

    def texts_at(self, rows: Int64Array) -> Int32Array:
        """The code of the text of each of ``rows``; -1 for none, and for an empty one."""
        codes = np.append(self.text, np.int32(-1))[positions(self.row, rows)]
        empty = np.array([not text for text in self.texts] + [True])
        return np.where(empty[codes], np.int32(-1), codes)

    def integers_at(self, rows: Int64Array) -> Int64Array:
        """The number of each of ``rows``, 0 for none."""
        return np.append(self.integer, 0)[positions(self.row, rows)]


class OpStatColumns:
    """The stats by name; of a stat that an event has several times the last counts."""

    __retained__ = "_parts _texts"

    def __init__(self, stats: Columns) -> None:
        names = stats.names("name")
        self._parts: dict[str, Stat] = {}
        self._texts = list(stats.names("text").values)
        rows, text = stats.array("event_id"), stats.names("text").codes
        integer = stats.array("integer")
        for code, name in enumerate(names.values):
            here = np.flatnonzero(names.codes == code)
            own = rows[here]
            last = np.ones(own.size, np.bool_)
            last[:-1] = own[1:] != own[:-1]
            here = here[last]
            self._parts[name] = Stat(
                rows[here].astype(np.int64), text[here], integer[here], self._texts
            )

    def __getitem__(self, name: str) -> Stat:
        none = np.zeros(0, np.int64)
        return self._parts.get(name) or Stat(none, np.zeros(0, np.int32), none, self._texts)


def op_stats_of(profile: Profile, *, whole: bool = False) -> OpStatColumns:
    """The stats of the profile's events that name ops, read once.

    TensorFlow on a CPU names the op (``tf_op``) of millions of memory events and of nothing else:
    only ``whole`` surely has these. Raises InputError when the profile cannot be read.
    """
    read = _read_so_far(profile)
    whole = whole or profile.holds_stats(_WANTED)
    if True not in read and (whole or not (read or _only_memory_names_ops(profile))):
        read[True] = OpStatColumns(profile.typed_stats(_WANTED))
    elif not read:
        read[False] = OpStatColumns(profile.typed_stats(_WANTED - {"tf_op"}))
    return read.get(True) or read[False]


def stat_texts(
    profile: Profile, names: Sequence[str], rows: Int64Array
) -> tuple[list[str], list[Int32Array]]:
    """The texts of the stats ``names`` of the events ``rows`` (of ``events``, each once): the
    texts, and for each name the code of every row's, -1 for none.
    """
    if not names:
        return [], []
    if _WANTED.issuperset(names):
        columns = [op_stats_of(profile)[name] for name in names]
        return columns[0].texts, [column.texts_at(rows) for column in columns]
    table = profile.columns_or_empty("event_stats")
    called, values = table.names("name"), table.names("value")
    order = np.argsort(rows, kind="stable")
    codes = []
    for name in names:
        mine = np.flatnonzero(called.codes == called.code_of(name))
        at = positions(rows[order], table.array("event_id")[mine])
        column = np.full(rows.size, -1, np.int32)
        column[order[at[at >= 0]]] = values.codes[mine[at >= 0]]
        codes.append(column)
    return list(values.values), codes


@once
def _read_so_far(_: Profile) -> dict[bool, OpStatColumns]:
    return {}


def _only_memory_names_ops(profile: Profile) -> bool:
    """Whether, of a host alone, only events of memory say which op they were for.

    Events of one name are traced at one place: the first and the last of each name are looked at.
    Calls of a driver (``correlation_id``) say it or not, so that a few prove nothing.
    """
    trace = trace_of(profile)
    names = trace.name.values
    on_device = any(True for _ in trace.lines_on(DEVICE))
    if trace.source != "events" or MEMORY_EVENTS.isdisjoint(names) or on_device:
        return False
    codes = trace.name.codes
    other = np.array([*(name not in MEMORY_EVENTS for name in names), False], np.bool_)
    last = codes.size - 1 - _first_of_each(codes[::-1], other)
    some = np.concatenate([_first_of_each(codes, other), last])
    stats = profile.stats_of(np.unique(trace.rows(some)))
    return frozenset(("tf_op", "correlation_id")).isdisjoint(stats.names("name").values)


def _first_of_each(codes: Int32Array, wanted: BoolArray) -> Int64Array:
    """Where each code that is ``wanted`` stands first; reads no further than to the last of these.

    The last entry of ``wanted`` is for -1.
    """
    missing, result = wanted.copy(), [np.zeros(0, np.int64)]
    for start in range(0, codes.size, _PIECE):
        piece = codes[start : start + _PIECE]
        new = np.flatnonzero(missing[piece])
        if new.size:
            result.append(start + new[np.unique(piece[new], return_index=True)[1]])
            missing[piece[new]] = False
            if not missing.any():
                break
    return np.concatenate(result)
