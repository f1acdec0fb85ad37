"""What buffers are: the grouping that all analyses of memory share, and the history they read.

A *signature* is the allocator, op, region, element type and shape of a buffer. Shapes are spelled
in one way (``[32, 10]``), whatever the runtime writes. A buffer whose record tells no shape is
known by the size that was asked for instead, so that the nameless buffers of a runtime stay apart.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from peakline.analysis.lifetimes import (
    ALLOCATION,
    UNTRACKED_ALLOCATION,
    Lifetimes,
    match_lifetimes,
)
from peakline.analysis.signature_kernels import measure_buffers, number_keys, running_use
from peakline.profile.columns import Columns, Names

__all__ = [
    "History",
    "Signature",
    "Signatures",
    "dimensions",
    "normal_shape",
    "read_history",
    "scope_of",
]

_SHAPE = re.compile(r"\s*[\[(](.*)[\])]\s*", re.DOTALL)


def normal_shape(shape: str) -> str:
    """``shape`` with one blank after each comma: ``[32,10]`` and ``(32, 10,)`` are ``[32, 10]``.

    What is no list in brackets stays as it is.
    """
    found = _SHAPE.fullmatch(shape)
    if found is None or any(mark in found[1] for mark in "[]()"):
        return shape.strip()
    return f"[{', '.join(part for size in found[1].split(',') if (part := size.strip()))}]"


def dimensions(shape: str) -> tuple[int, ...] | None:
    """The sizes of ``shape``, or None where it is none or one of them is not known."""
    found = _SHAPE.fullmatch(shape)
    if found is None:
        return None
    parts = [part.strip() for part in found[1].split(",") if part.strip()]
    if not all(part.isdecimal() for part in parts):
        return None
    return tuple(int(part) for part in parts)


def scope_of(op: str) -> str:
    """The scope of an op's name: what stands before its last slash, else nothing."""
    return op.rpartition("/")[0]


@dataclass(frozen=True)
class Signature:
    """One signature as a person reads it.

    ``bytes`` is what one buffer was asked for with, None where the shape tells it. What a record
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
            what = f"{what} of {self.bytes} bytes".strip()
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


@dataclass(frozen=True, eq=False)
class Signatures:
    """The signatures of a profile, and which of them each record has.

    ``codes`` is per record the number of its signature, -1 where it begins no buffer.
    ``allocator``, ``op``, ``region_type``, ``data_type`` and ``shape`` are per signature numbers of
    texts in the lists of the same name; ``size`` is what one buffer of it was asked for with, -1
    where the shape tells it.
    """

    codes: npt.NDArray[np.int32]
    allocator: npt.NDArray[np.int32]
    op: npt.NDArray[np.int32]
    region_type: npt.NDArray[np.int32]
    data_type: npt.NDArray[np.int32]
    shape: npt.NDArray[np.int32]
    size: npt.NDArray[np.int64]
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


@dataclass(frozen=True, eq=False)
class History:
    """What all analyses of memory read: the records, matched, measured and named once.

    ``events`` is ``allocator_events`` in time order. Per record: ``allocated`` and ``requested``
    are the bytes of the buffer it begins (requested is never more; where it is not known it is
    the same), 0 where it begins none. ``reports`` says per allocator whether it reported its
    bytes in use.
    """

    events: Columns
    lifetimes: Lifetimes
    signatures: Signatures
    allocated: npt.NDArray[np.int64]
    requested: npt.NDArray[np.int64]
    reports: npt.NDArray[np.bool_]

    _rows: dict[int, npt.NDArray[np.int64]] = field(default_factory=dict, repr=False)

    @property
    def rows(self) -> int:
        """The number of records."""
        return int(self.allocated.size)

    def rows_of(self, allocator: int) -> npt.NDArray[np.int64]:
        """The records of an allocator, by its number in ``lifetimes.allocators``."""
        if allocator not in self._rows:
            self._rows[allocator] = np.flatnonzero(self.lifetimes.allocator == allocator)
        return self._rows[allocator]

    @cached_property
    def used(self) -> npt.NDArray[np.int64]:
        """Bytes in use after each record, in its own allocator: reported, else live buffers."""
        used = np.zeros(self.rows, np.int64)
        running_use(
            len(self.lifetimes.allocators),
            self.lifetimes.allocator,
            self.lifetimes.kind,
            self.lifetimes.begin,
            self.allocated,
            np.ascontiguousarray(self.events.array("in_use_bytes"), np.int64),
            self.events.is_valid("in_use_bytes"),
            np.ascontiguousarray(self.events.array("reserved_bytes"), np.int64),
            self.events.is_valid("reserved_bytes"),
            self.reports,
            used,
        )
        return used

    @cached_property
    def measured(self) -> npt.NDArray[np.bool_]:
        """Which records say how much is in use: those with a report where there are reports."""
        silent: npt.NDArray[np.bool_] = ~self.reports[self.lifetimes.allocator]
        return silent | self.events.is_valid("in_use_bytes")

    @cached_property
    def capacities(self) -> tuple[int | None, ...]:
        """Per allocator the most it may take, as its last record with all figures says."""
        told = self.events.is_valid("in_use_bytes") & self.events.is_valid("free_bytes")
        reserved = self.events.is_valid("reserved_bytes")
        found: list[int | None] = []
        for number in range(len(self.lifetimes.allocators)):
            row = _last(told & (self.lifetimes.allocator == number))
            if row < 0:
                found.append(None)
                continue
            size = int(
                self.events.array("in_use_bytes")[row] + self.events.array("free_bytes")[row]
            )
            if reserved[row]:
                size += int(self.events.array("reserved_bytes")[row])
            found.append(size)
        return tuple(found)


def _last(mask: npt.NDArray[np.bool_]) -> int:
    """The last true place of ``mask``, -1 where there is none."""
    place = int(mask[::-1].argmax()) if mask.size else 0
    return mask.size - 1 - place if mask.size and mask[mask.size - 1 - place] else -1


def read_history(events: Columns, lifetimes: Lifetimes | None = None) -> History:
    """Match, measure and name the records of ``allocator_events`` (in time order).

    ``lifetimes`` are those of `match_lifetimes` where they are known already.
    """
    found = match_lifetimes(events) if lifetimes is None else lifetimes
    allocated = np.zeros(events.rows, np.int64)
    requested = np.zeros(events.rows, np.int64)
    measure_buffers(
        found.kind,
        np.ascontiguousarray(events.array("allocated_bytes"), np.int64),
        events.is_valid("allocated_bytes"),
        np.ascontiguousarray(events.array("requested_bytes"), np.int64),
        events.is_valid("requested_bytes"),
        allocated,
        requested,
    )
    reports = np.zeros(len(found.allocators), np.bool_)
    reports[found.allocator[events.is_valid("in_use_bytes")]] = True
    signatures = _name(events, found, requested)
    return History(events, found, signatures, allocated, requested, reports)


def _name(events: Columns, found: Lifetimes, requested: npt.NDArray[np.int64]) -> Signatures:
    op, op_of, ops = _texts(events.names("op"))
    region, region_of, regions = _texts(events.names("region_type"))
    data_type, type_of, types = _texts(events.names("data_type"))
    shape, shape_of, shapes = _texts(events.names("shape"), shapes=True)
    rows = np.flatnonzero((found.kind == ALLOCATION) | (found.kind == UNTRACKED_ALLOCATION))
    owner = found.allocator[rows] * np.int64(len(ops)) + op_of[op[rows]]
    owner = owner * len(regions) + region_of[region[rows]]
    form = type_of[data_type[rows]] * np.int64(len(shapes)) + shape_of[shape[rows]]
    # Text 0 is the empty one: the size is part of the key where there is no shape.
    size = np.where(shape_of[shape[rows]] == 0, requested[rows], -1)
    numbers = np.empty(rows.size, np.int32)
    seed = np.uint64(secrets.randbits(64))
    first = rows[number_keys(owner, form, size, numbers, seed)]
    codes = np.full(events.rows, -1, np.int32)
    codes[rows] = numbers
    shape_codes = shape_of[shape[first]]
    return Signatures(
        codes=codes,
        allocator=found.allocator[first],
        op=op_of[op[first]],
        region_type=region_of[region[first]],
        data_type=type_of[data_type[first]],
        shape=shape_codes,
        size=np.where(shape_codes == 0, requested[first], -1),
        allocators=found.allocators,
        ops=ops,
        region_types=regions,
        data_types=types,
        shapes=shapes,
    )


def _texts(
    names: Names, *, shapes: bool = False
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], tuple[str, ...]]:
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
