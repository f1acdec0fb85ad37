"""Allocations that do not last: how many, how large together, and which repeat within a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.deadline import check_deadline
from peakline.kernels.churn import count_churn
from peakline.kernels.memory_layout import CHURN_FIELDS
from peakline.memory.marks import Marks
from peakline.memory.signatures import History, Signature, Signatures, split_by
from peakline.shown import Brief

SHORT = 64
"""A buffer that is freed within this many records after its own is short-lived."""


@dataclass(frozen=True)
class SignatureChurn:
    """What was allocated of one signature in the profile. Sizes are bytes.

    ``same_step`` counts the allocations that were freed in the step that made them, ``short`` those
    freed within `SHORT` records; ``most_live`` is the most of them that lived at a time.
    """

    signature: Signature
    allocations: int
    bytes: int
    same_step: int
    short: int
    most_live: int


class ChurnRows(Sequence[SignatureChurn]):
    """The churn of many signatures, each row of it made when it is read.

    ``codes`` are the signatures' numbers among ``signatures`` and ``counts`` their figures, in the
    order of the rows, per row those of `SignatureChurn`.
    """

    def __init__(self, signatures: Signatures, codes: IntpArray, counts: Int64Array) -> None:
        self.signatures, self.codes, self.counts = signatures, codes, counts

    def __len__(self) -> int:
        return int(self.codes.size)

    @overload
    def __getitem__(self, place: int) -> SignatureChurn: ...
    @overload
    def __getitem__(self, place: slice) -> ChurnRows: ...
    def __getitem__(self, place: int | slice) -> SignatureChurn | ChurnRows:
        if isinstance(place, slice):
            return ChurnRows(self.signatures, self.codes[place], self.counts[place])
        signature = self.signatures[int(self.codes[place])]
        return SignatureChurn(signature, *self.counts[place].tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChurnRows) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def at_least(self, *, allocations: float = 0, size: float = 0) -> ChurnRows:
        """The rows with so many allocations, of so many bytes together."""
        chosen = np.flatnonzero((self.counts[:, 0] >= allocations) & (self.counts[:, 1] >= size))
        return ChurnRows(self.signatures, self.codes[chosen], self.counts[chosen])


@dataclass(frozen=True, repr=False)
class AllocatorChurn(Brief):
    """What one allocator allocated. Sizes are bytes.

    ``steps`` is how many steps the profile has (None without any; then ``same_step``
    is 0), ``signatures`` all of them, the one with most bytes first. Memory from before the profile
    was not allocated in it: it counts nowhere, and a signature of which there is no other has 0
    allocations.
    """

    allocator: str
    steps: int | None
    allocations: int
    bytes: int
    same_step: int
    short: int
    peak_bytes: int
    signatures: ChurnRows

    @property
    def bytes_per_step(self) -> float | None:
        """Bytes allocated in a step, None without steps."""
        return self.bytes / self.steps if self.steps else None

    @property
    def turnover(self) -> float | None:
        """How many times its peak the allocator hands out in a step."""
        per_step = self.bytes_per_step
        return None if per_step is None or not self.peak_bytes else per_step / self.peak_bytes


def find_churn(history: History, marks: tuple[Marks | None, ...]) -> tuple[AllocatorChurn, ...]:
    """The churn of every allocator, in the order of ``history.lifetimes.allocators``.

    ``marks`` are each allocator's steps.
    """
    signatures, lifetimes = history.signatures, history.lifetimes
    tables: dict[bytes, np.ndarray] = {}
    result = []
    codes_of = split_by(signatures.allocator, len(lifetimes.allocators))
    for number, name in enumerate(lifetimes.allocators):
        check_deadline()
        own = marks[number]
        starts = np.zeros(0, np.int64) if own is None else np.append(own.start, own.rows)
        key = starts.tobytes()
        # Allocators with the same steps are counted in one pass.
        if key not in tables:
            tables[key] = np.zeros((len(signatures), len(CHURN_FIELDS)), np.int64)
            count_churn(
                lifetimes.kind,
                lifetimes.begin,
                signatures.codes,
                history.allocated,
                history.was_there,
                starts,
                SHORT,
                tables[key],
                np.zeros(len(signatures), np.int64),
            )
        counts = tables[key]
        codes = codes_of[number]
        codes = codes[np.argsort(-counts[codes, 1], kind="stable")]
        totals = counts[codes].sum(axis=0).tolist()
        used = history.used[history.rows_of(number)]
        result.append(
            AllocatorChurn(
                name,
                None if own is None else len(own),
                allocations=totals[0],
                bytes=totals[1],
                same_step=totals[2],
                short=totals[3],
                peak_bytes=int(used.max(initial=0)),
                signatures=ChurnRows(signatures, codes, counts[codes]),
            )
        )
    return tuple(result)
