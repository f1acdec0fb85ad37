"""What buffers are: the grouping that all analyses of memory share, and the history they read.

A *signature* is the allocator, op, region, element type and shape of a buffer. Shapes are spelled
in one way (``[32, 10]``), whatever the runtime writes. A buffer whose record has no shape is
known by the size that was requested instead, so that the nameless buffers of a runtime stay apart.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array, IntpArray
from peakline.deadline import check_deadline, checked
from peakline.kernels.key_numbers import number
from peakline.kernels.memory_layout import ALLOCATION, UNTRACKED_ALLOCATION
from peakline.memory.lifetimes import Lifetimes, match_lifetimes
from peakline.memory.usage import capacity_at, reported_bytes, was_there
from peakline.shown import Brief
from peakline.tables.columns import Columns, Names
from peakline.text import remembered, size_text, whole_number

if TYPE_CHECKING:
    from peakline.memory.peak.explained import Descriptions


_ROOM = 512
"""So many distinct keys have room at first."""


def number_keys(keys: Int64Array) -> tuple[Int32Array, Int64Array]:
    """Number the distinct rows of ``keys`` (three columns) in order of first appearance.

    Returns the number of every row, and the first row of each.
    """
    seed = secrets.randbits(64)
    numbers = np.empty(len(keys), np.int32)
    first = np.empty(_ROOM, np.int64)
    table = np.full(2 * _ROOM, -1, np.int64)
    at = np.zeros(2, np.int64)
    while not number(keys, numbers, table, first, at, seed):
        count = first.size
        table = np.full(8 * count, -1, np.int64)
        # Enter what is known again: its numbers are the same.
        known, unused = np.empty(count, np.int64), np.empty(count, np.int32)
        number(keys[first], unused, table, known, np.zeros(2, np.int64), seed)
        first = np.concatenate([first, np.empty(3 * count, np.int64)])
    return numbers, first[: at[1]]


_SHAPE = re.compile(r"\s*[\[(](.*)[\])]\s*", re.DOTALL)


@remembered(1 << 12)
def normal_shape(shape: str) -> str:
    """``shape`` with one blank after each comma: ``[32,10]`` and ``(32, 10,)`` are ``[32, 10]``.

    What is no list in brackets stays as it is.
    """
    result = _SHAPE.fullmatch(shape)
    if result is None or any(mark in result[1] for mark in "[]()"):
        return shape.strip()
    return f"[{', '.join(part for size in result[1].split(',') if (part := size.strip()))}]"


def dimensions(shape: str) -> tuple[int, ...] | None:
    """The sizes of ``shape``, or None where it is none or one of them is not known."""
    result = _SHAPE.fullmatch(shape)
    if result is None:
        return None
    parts = [whole_number(part.strip()) for part in result[1].split(",") if part.strip()]
    sizes = tuple(size for size in parts if size is not None and size >= 0)
    return sizes if len(sizes) == len(parts) else None


def scope_of(op: str) -> str:
    """The scope of an op's name: what stands before its last slash, else nothing."""
    return op.rpartition("/")[0]


@dataclass(frozen=True, repr=False)
class Signature(Brief):
    """One signature as a person reads it.

    ``bytes`` is what was requested for one buffer, None where the shape gives it. What a record
    did not say is the empty string.
    """

    allocator: str
    op: str
    region_type: str
    data_type: str
    shape: str
    bytes: int | None

    @property
    def scope(self) -> str:
        """The scope of the op's name."""
        return scope_of(self.op)

    @property
    def title(self) -> str:
        """``model/MatMul float [32, 10]``, in one line, as short as it is clear."""
        what = " ".join(part for part in (self.data_type, self.shape) if part)
        if self.bytes is not None:
            what = f"{what} of {size_text(self.bytes)}".strip()
        return f"{self.op or '(no op)'} {what}"

    def as_row(self) -> dict[str, object]:
        """The columns that every row of evidence about it has."""
        return {
            "op": self.op,
            "scope": self.scope,
            "region_type": self.region_type,
            "data_type": self.data_type,
            "shape": self.shape,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Signatures(Brief):
    """The signatures of a profile, and which of them each record has.

    ``codes`` is per record the number of its signature, -1 where it begins no buffer.
    ``allocator``, ``op``, ``region_type``, ``data_type`` and ``shape`` are per signature numbers of
    texts in the lists of the same name; ``size`` is what was requested for one buffer of it, -1
    where the shape gives it.
    """

    codes: Int32Array
    allocator: Int32Array
    op: Int32Array
    region_type: Int32Array
    data_type: Int32Array
    shape: Int32Array
    size: Int64Array
    allocators: tuple[str, ...]
    ops: tuple[str, ...]
    region_types: tuple[str, ...]
    data_types: tuple[str, ...]
    shapes: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.allocator.size)

    def __getitem__(self, number: int) -> Signature:
        size = int(self.size[number])
        return Signature(
            self.allocators[self.allocator[number]],
            self.ops[self.op[number]],
            self.region_types[self.region_type[number]],
            self.data_types[self.data_type[number]],
            self.shapes[self.shape[number]],
            None if size < 0 else size,
        )


@dataclass(frozen=True, eq=False, repr=False)
class History(Brief):
    """What all analyses of memory read: the records, matched, measured and named once.

    ``events`` is ``allocator_events`` in time order. Per record: ``allocated`` and ``requested``
    are the bytes of the buffer it begins (requested is never more; where it is not known it is
    the same), 0 where it begins none. ``reports`` says per allocator whether it reported its
    bytes in use. ``descriptions`` are what is known of buffers besides, where the format has it.
    """

    events: Columns
    lifetimes: Lifetimes
    signatures: Signatures
    allocated: Int64Array
    requested: Int64Array
    reports: BoolArray
    descriptions: Descriptions | None = None

    @property
    def rows(self) -> int:
        """The number of records."""
        return int(self.allocated.size)

    def rows_of(self, allocator: int) -> IntpArray:
        """The records of an allocator, by its number in ``lifetimes.allocators``."""
        return self._rows[allocator]

    def usage_rows(self, allocator: int) -> IntpArray:
        """The records of an allocator's memory over time: those that say how much is in use.

        Records that stand for buffers from before the profile are all of its first moment, and only
        their sum was ever in use: of those that lead, the line begins with the last.
        """
        rows = self.rows_of(allocator)
        rows = rows[self.measured[rows]]
        recorded = np.flatnonzero(~self.was_there[rows])
        leading = int(recorded[0]) if recorded.size else rows.size
        return rows[max(leading - 1, 0) :]

    @cached_property
    def _rows(self) -> list[IntpArray]:
        """The records of every allocator."""
        return split_by(self.lifetimes.allocator, len(self.lifetimes.allocators))

    @cached_property
    def used(self) -> Int64Array:
        """Bytes in use after each record, in its own allocator: reported, else live buffers.

        Where an allocator reports, a record without a report repeats what was known before it;
        before the first report that is 0.
        """
        used = np.empty(self.rows, np.int64)
        known = self.events.is_valid("in_use_bytes")
        begin = self.lifetimes.begin
        for reports, rows in zip(checked(self.reports.tolist()), self._rows, strict=True):
            if reports and known[rows].all():
                used[rows] = reported_bytes(self.events, rows)
                continue
            if reports:
                places = np.flatnonzero(known[rows])
                figures = np.concatenate([[0], reported_bytes(self.events, rows[places])])
                used[rows] = np.repeat(figures, np.diff(places, prepend=0, append=rows.size))
                continue
            change = np.where(self.lifetimes.kind[rows] == ALLOCATION, self.allocated[rows], 0)
            first = begin[rows]
            change -= np.where(first >= 0, self.allocated[first], 0)
            used[rows] = np.cumsum(change)
        return used

    @cached_property
    def was_there(self) -> BoolArray:
        """Which records begin a buffer that is from before the profile."""
        return was_there(self.events)

    @cached_property
    def measured(self) -> BoolArray:
        """Which records say how much is in use: those with a report where there are reports."""
        silent: BoolArray = ~self.reports[self.lifetimes.allocator]
        return silent | self.events.is_valid("in_use_bytes")

    @cached_property
    def capacities(self) -> tuple[int | None, ...]:
        """Per allocator the most it may take, as its last record with all figures says."""
        events = self.events
        known = events.is_valid("in_use_bytes") & events.is_valid("free_bytes")
        rows = np.flatnonzero(known | events.is_valid("capacity_bytes"))
        last = np.full(len(self.lifetimes.allocators), -1, np.int64)
        last[self.lifetimes.allocator[rows]] = rows  # of several, the last one stays
        return tuple(capacity_at(events, row) if row >= 0 else None for row in last.tolist())


def split_by(numbers: AnyArray, count: int) -> list[IntpArray]:
    """Per number from 0 to ``count`` - 1 the places in ``numbers`` that hold it, ascending."""
    if count == 1:
        return [np.arange(numbers.size)]
    # Sorting 16 bits is linear in time.
    order = np.argsort(numbers.astype(np.uint16) if count <= 2**16 else numbers, kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers, minlength=count))[:-1])


def read_history(events: Columns, lifetimes: Lifetimes | None = None) -> History:
    """Match, measure and name the records of ``allocator_events`` (in time order).

    ``lifetimes`` are those of `match_lifetimes` where they are known already.
    """
    result = match_lifetimes(events) if lifetimes is None else lifetimes
    begins = (result.kind == ALLOCATION) | (result.kind == UNTRACKED_ALLOCATION)
    allocated, requested = buffer_sizes(events, begins)
    reports = np.zeros(len(result.allocators), np.bool_)
    reports[result.allocator[events.is_valid("in_use_bytes")]] = True
    check_deadline()
    signatures = _name(events, result, np.flatnonzero(begins), requested)
    return History(events, result, signatures, allocated, requested, reports)


def buffer_sizes(events: Columns, chosen: BoolArray) -> tuple[Int64Array, Int64Array]:
    """What was allocated and what was requested, as the ``chosen`` records say; else 0.

    What was requested is never more; where it is not known it is the same.
    """
    known = chosen & events.is_valid("requested_bytes")
    requested = np.where(known, events.array("requested_bytes"), 0)
    known = chosen & events.is_valid("allocated_bytes")
    allocated = np.where(known, events.array("allocated_bytes"), requested)
    is_stated = (requested > 0) & (requested <= allocated)
    requested = np.where(is_stated, requested, allocated)
    return allocated.astype(np.int64, copy=False), requested.astype(np.int64, copy=False)


def _name(events: Columns, result: Lifetimes, rows: IntpArray, requested: Int64Array) -> Signatures:
    """The signatures of the buffers that begin at ``rows``."""
    op, op_of, ops = _texts(events.names("op"))
    region, region_of, regions = _texts(events.names("region_type"))
    data_type, type_of, types = _texts(events.names("data_type"))
    shape, shape_of, shapes = _texts(events.names("shape"), shapes=True)
    keys = np.empty((rows.size, 3), np.int64)
    owner = result.allocator[rows] * np.int64(len(ops)) + op_of[op[rows]]
    keys[:, 0] = owner * len(regions) + region_of[region[rows]]
    forms = shape_of[shape[rows]]
    keys[:, 1] = type_of[data_type[rows]] * np.int64(len(shapes)) + forms
    # Text 0 is the empty one: the size is part of the key where there is no shape.
    keys[:, 2] = np.where(forms == 0, requested[rows], -1)
    numbers, places = number_keys(keys)
    first = rows[places]
    codes = np.full(events.rows, -1, np.int32)
    codes[rows] = numbers
    shape_codes = shape_of[shape[first]]
    return Signatures(
        codes=codes,
        allocator=result.allocator[first],
        op=op_of[op[first]],
        region_type=region_of[region[first]],
        data_type=type_of[data_type[first]],
        shape=shape_codes,
        size=np.where(shape_codes == 0, requested[first], -1),
        allocators=result.allocators,
        ops=ops,
        region_types=regions,
        data_types=types,
        shapes=shapes,
    )


def _texts(names: Names, *, shapes: bool = False) -> tuple[Int32Array, Int32Array, tuple[str, ...]]:
    """The codes, the number of the text of every code, and the texts; text 0 is the empty one.

    A dictionary may repeat strings, and two spellings of one shape are one text. The last place
    of the numbers is that of the null code -1.
    """
    numbers = {"": 0}
    values: Sequence[str] = names.values
    of = np.zeros(len(values) + 1, np.int32)
    for code, value in enumerate(values):
        text = normal_shape(value) if shapes else value
        of[code] = numbers.setdefault(text, len(numbers))
    return names.codes, of, tuple(numbers)
