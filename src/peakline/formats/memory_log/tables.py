"""The tables of a memory log, made of its records when they are read, and its clock: picoseconds
since its first record, never backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.formats.memory_log.meaning import Meaning, read_meaning, steps_of
from peakline.formats.memory_log.records import Records
from peakline.formats.memory_log.tensors import data_types
from peakline.kernels import memory_log_layout as layout
from peakline.tables.columns import Column, Columns, Names
from peakline.tables.joins import summed
from peakline.tables.reader import Warnings

_MOST_NS = (2**63 - 1) // 1000
_DAY = 86_400 * 10**9
_YEAR = 366 * _DAY
"""A time of less than a year is counted from the beginning of its year, or if all of these are
less than a day, from midnight: the log did not say more, and the clock begins again."""


@dataclass(frozen=True, eq=False)
class Clock:
    """``time_ps`` per record, and what had to be done for it.

    ``missing`` records had no time and have that of the one before. ``behind`` had an earlier
    time than a record before them and have that one's. ``far`` lay further from the first than
    int64 holds (106 days) and have the largest time. ``numbered``: no record had a time, so the
    record's number stands for it.
    """

    time_ps: Int64Array
    missing: int
    behind: int
    far: int
    numbered: bool


def read_clock(time_ns: Int64Array) -> Clock:
    """The clock of records with these times (nanoseconds since the epoch, 0: not known).

    Times without a date or a year go on over midnight and new year, and where a log changes
    from one kind to another, the first of the new kind is taken for the time of the one before.
    """
    known = time_ns > 0
    if not known.any():
        return Clock(np.arange(time_ns.size, dtype=np.int64), time_ns.size, 0, 0, numbered=True)
    missing = int(time_ns.size - known.sum())
    times = _one_kind(time_ns[known] if missing else time_ns.astype(np.int64, copy=False))
    running = np.maximum.accumulate(times)
    behind = int((times < running).sum())
    if missing:
        # Each has the time of the one before it; those before the first, that of the first.
        running = running[np.maximum(np.cumsum(known) - 1, 0)]
    latest = running - running[0]
    far = int((latest > _MOST_NS).sum())
    np.minimum(latest, _MOST_NS, out=latest)
    latest *= 1000
    return Clock(latest, missing, behind, far, numbered=False)


def _one_kind(times: Int64Array) -> Int64Array:
    """All times on one clock, whatever they were counted from."""
    undated = times < _YEAR
    if not undated.any():
        return times
    joined = np.array(times, np.int64)
    rows = np.flatnonzero(undated)
    joined[rows] = _unwrapped(times[rows], _DAY if times[rows].max() < _DAY else _YEAR)
    changes = np.flatnonzero(undated[1:] != undated[:-1])
    if changes.size:
        before = changes[0]
        second = undated == undated[before + 1]
        joined[second] += joined[before] - joined[before + 1]
    return joined


def _unwrapped(times: Int64Array, turn: int) -> Int64Array:
    """Times of a clock that begins again after ``turn``: a step of half a turn goes around."""
    steps = np.diff(times)
    turns = np.cumsum((steps < -turn // 2).astype(np.int64) - (steps > turn // 2))
    unwrapped = times.copy()
    unwrapped[1:] += turns * turn
    return unwrapped


TABLES = frozenset(("allocator_events", "tensor_outputs", "steps", "log_records"))

_Made = tuple[Column, BoolArray | None]
_Makers = dict[str, Callable[[], _Made]]

_NAMED = 20
"""A warning names so many allocators."""
_MESSAGES = {
    number: "MemoryLog" + "".join(word.capitalize() for word in name.split("_"))
    for number, name in layout.KINDS.items()
}


class MemoryLogTables:
    """The tables of one memory log."""

    __retained__ = "_records _clock _meaning _names"

    def __init__(self, records: Records) -> None:
        self._records = records

    @cached_property
    def _clock(self) -> Clock:
        return read_clock(self._records.time_ns)

    @cached_property
    def _meaning(self) -> Meaning:
        return read_meaning(self._records)

    def duration_ps(self) -> int:
        """From the first record to the last."""
        time = self._clock.time_ps
        return int(time[-1]) if time.size else 0

    def read(self, table: str, columns: AbstractSet[str] | None) -> Columns:
        """One table of `TABLES`, with at least ``columns``."""
        if table == "steps":
            return steps_of(self._records, self._clock.time_ps)
        makers = {
            "allocator_events": self._events,
            "tensor_outputs": self._outputs,
            "log_records": self._everything,
        }[table]()
        data: dict[str, Column] = {}
        valid: dict[str, BoolArray] = {}
        for name, make in makers.items():
            if columns is None or name in columns:
                column, mask = make()
                data[name] = column if isinstance(column, Names) else _wide(column)
                if mask is not None:
                    valid[name] = mask
        return Columns(data, valid)

    def report(self, warnings: Warnings) -> None:
        """Count what was guessed."""
        self._report_times(warnings)
        warnings.add("untracked", *self._untracked())
        again = [
            f"{name} as {', '.join(self._label(name, life) for life in range(1, lives))}"
            for name, lives in zip(self._names, self._meaning.lives, strict=True)
            if lives > 1
        ]
        warnings.add(
            "id_restarted",
            "ids began anew, so another process or another allocator of that name logged too; "
            f"its buffers are shown apart: {_listed(again[:_NAMED], len(again))}",
            sum(lives - 1 for lives in self._meaning.lives),
        )
        warnings.add(
            "id_restarted_too_often",
            "allocations of an id that was in use too often to keep apart; where the earlier "
            "buffer is still live it is taken as ended",
            sum(self._meaning.crowded),
        )

    def _report_times(self, warnings: Warnings) -> None:
        clock = self._clock
        without = (
            "the log has no times: the number of a record stands for its time, 1 ps each"
            if clock.numbered
            else "records without a time, taken from the record before"
        )
        warnings.add("no_times", without, clock.missing)
        warnings.add(
            "times_out_of_order",
            "records logged after a later one, whose time is taken (several threads or processes "
            "write a log, which is read in the order in which it was written)",
            clock.behind,
        )
        warnings.add(
            "times_too_far",
            "records more than 106 days after the first, of no known time",
            clock.far,
        )

    def _untracked(self) -> tuple[str, int]:
        """What is said of allocations and deallocations without an id, and how many there are."""
        records = self._records
        rows = self._meaning.rows
        rows = rows[records.number[rows] <= 0]
        frees = np.isin(records.kind[rows], (layout.TENSOR_DEALLOCATION, layout.RAW_DEALLOCATION))
        codes, group = np.unique(records.allocator[rows], return_inverse=True)
        own, made = rows[~frees], group[~frees]
        sizes = summed(made, records.requested_bytes[own].astype(np.int64), codes.size)
        begun = np.bincount(made, minlength=codes.size)
        ended = np.bincount(group[frees], minlength=codes.size)
        lines = [
            f"{self._names[code] or '(unnamed allocator)'}: {begun[at]} allocations "
            f"({sizes[at]} bytes requested) and {ended[at]} deallocations"
            for at, code in enumerate(codes[:_NAMED].tolist())
        ]
        listed = _listed(lines, codes.size)
        return f"records without an id, whose buffers cannot be followed: {listed}", rows.size

    # Names and labels.

    @cached_property
    def _names(self) -> list[str]:
        return self._records.allocators or [""]

    @staticmethod
    def _label(name: str, life: int) -> str:
        return f"{name} ({life + 1})" if life else name

    def _allocator(self, rows: Int64Array) -> Names:
        """The allocator of ``rows``; its later lives have names of their own."""
        names, most = self._names, max(self._meaning.lives)
        codes = self._records.allocator[rows].astype(np.int32)
        later = self._meaning.life[rows].astype(np.int32) * len(names)
        return Names(
            np.where(codes < 0, -1, codes + later).astype(np.int32),
            [self._label(name, life) for life in range(most) for name in names],
        )

    def _text(self, rows: Int64Array, but: Iterable[int] = ()) -> Names:
        codes = self._records.op[rows].astype(np.int32)
        for kind in but:
            codes[self._records.kind[rows] == kind] = -1
        return Names(codes, self._records.texts)

    # What the tables have in common.

    def _common(self, rows: Int64Array) -> _Makers:
        """Columns that stand alike in several tables."""
        records = self._records
        described = cache(lambda: records.has(layout.HAS_BUFFER)[rows])
        kind = records.kind[rows]

        def requested() -> _Made:
            frees = np.isin(kind, (layout.TENSOR_DEALLOCATION, layout.RAW_DEALLOCATION))
            return records.requested_bytes[rows], described() & ~frees

        def number(name: str) -> Callable[[], _Made]:
            def make() -> _Made:
                values = getattr(records, name)[rows]
                return values, values != 0

            return make

        return {
            "sequence": lambda: (rows.astype(np.int64), None),
            "time_ps": lambda: (self._clock.time_ps[rows], None),
            "step_id": lambda: (records.step[rows], kind != layout.TENSOR_DEALLOCATION),
            "op": lambda: (self._text(rows, (layout.STEP,)), None),
            "data_type": lambda: (data_types(records.data_type[rows]), None),
            "shape": lambda: (Names(records.shape[rows].astype(np.int32), records.shapes), None),
            "requested_bytes": requested,
            "allocated_bytes": number("allocated_bytes"),
            "allocation_id": number("number"),
            "address": number("address"),
        }

    def _events(self) -> _Makers:
        records, meaning = self._records, self._meaning
        rows = meaning.rows
        kind = records.kind[rows]
        tracked = records.number[rows] > 0
        raw = np.isin(kind, (layout.RAW_ALLOCATION, layout.RAW_DEALLOCATION))
        frees = np.isin(kind, (layout.TENSOR_DEALLOCATION, layout.RAW_DEALLOCATION))
        regions = np.where(kind == layout.TENSOR_OUTPUT, 0, np.where(raw, 1, -1)).astype(np.int32)

        def allocator() -> _Made:
            # A buffer belongs to some allocator even where none is named.
            names = self._allocator(rows)
            return Names(np.maximum(names.codes, 0), names.values), None

        return self._common(rows) | {
            "allocator": allocator,
            "activity": lambda: (
                Names(frees.astype(np.int32), ["allocation", "deallocation"]),
                None,
            ),
            "allocation_id": lambda: (records.number[rows], tracked),
            # A deallocation never records the address: an allocation that has nothing else must
            # not look as if its end could be found.
            "address": lambda: (records.address[rows], tracked & (records.address[rows] != 0)),
            "region_type": lambda: (Names(regions, ["output", "raw"]), None),
            "deferred": lambda: (
                records.has(layout.DEFERRED)[rows],
                kind == layout.RAW_DEALLOCATION,
            ),
            "returned_sequence": lambda: _sequence(meaning.returned, rows),
        }

    def _outputs(self) -> _Makers:
        records = self._records
        rows = np.flatnonzero(records.kind == layout.TENSOR_OUTPUT)
        makers = self._common(rows) | {
            "output_index": lambda: (records.output_index[rows], None),
            "allocator": lambda: (self._allocator(rows), None),
            "has_single_reference": lambda: (records.has(layout.SINGLE_REFERENCE)[rows], None),
            "is_shared": lambda: (self._meaning.shared[rows], None),
        }
        # Never null here.
        makers["step_id"] = lambda: (records.step[rows], None)
        return makers

    def _everything(self) -> _Makers:
        records = self._records
        rows = np.arange(len(records), dtype=np.int64)
        kind = records.kind
        tensor = np.isin(kind, (layout.TENSOR_ALLOCATION, layout.TENSOR_OUTPUT)) & records.has(
            layout.HAS_BUFFER
        )
        code_of = np.zeros(max(_MESSAGES) + 1, np.int32)
        code_of[list(_MESSAGES)] = np.arange(len(_MESSAGES))

        return self._common(rows) | {
            "message": lambda: (Names(code_of[kind], list(_MESSAGES.values())), None),
            "time_ns": lambda: (records.time_ns, records.time_ns != 0),
            "thread": lambda: (records.thread, records.thread != 0),
            "handle": lambda: (
                self._text(rows, (number for number in _MESSAGES if number != layout.STEP)),
                None,
            ),
            "output_index": lambda: (records.output_index, kind == layout.TENSOR_OUTPUT),
            "allocator": lambda: (Names(records.allocator.astype(np.int32), self._names), None),
            "has_single_reference": lambda: (records.has(layout.SINGLE_REFERENCE), tensor),
            "deferred": lambda: (records.has(layout.DEFERRED), kind == layout.RAW_DEALLOCATION),
            "completes": lambda: _sequence(self._meaning.completes, rows),
        }


def _listed(first: list[str], count: int) -> str:
    """The ``first`` of ``count`` allocators, and how many more there are."""
    more = count - len(first)
    return "; ".join(first) + (f" and {more:,} more" if more else "")


def _sequence(places: AnyArray | None, rows: Int64Array) -> _Made:
    """The places of other records, of ``rows``; null where they are negative, or all None."""
    if places is None:
        return np.zeros(rows.size, np.int64), np.zeros(rows.size, np.bool_)
    return places[rows].astype(np.int64), places[rows] >= 0


def _wide(column: AnyArray) -> AnyArray:
    """The column in a type that tables have: the records' may be narrower."""
    return column.astype(np.int32) if column.dtype in (np.int8, np.int16) else column
