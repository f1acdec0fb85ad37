"""Allocations that do not last: how many, how large together, and which repeat within a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.analysis.churn_kernels import CHURN_FIELDS, count_churn
from peakline.analysis.marks import Marks
from peakline.analysis.signatures import History, Signature

__all__ = ["SHORT", "AllocatorChurn", "SignatureChurn", "find_churn"]

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


@dataclass(frozen=True)
class AllocatorChurn:
    """What one allocator handed out. Sizes are bytes.

    ``steps`` is how many steps the profile has (None where nothing tells them; then ``same_step``
    is 0), ``signatures`` all of them, the one with most bytes first.
    """

    allocator: str
    steps: int | None
    allocations: int
    bytes: int
    same_step: int
    short: int
    peak_bytes: int
    signatures: tuple[SignatureChurn, ...]

    @property
    def bytes_per_step(self) -> float | None:
        """Bytes handed out in a step, None where nothing tells steps."""
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
    found = []
    for number, name in enumerate(lifetimes.allocators):
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
                starts,
                SHORT,
                tables[key],
                np.zeros(len(signatures), np.int64),
            )
        counts = tables[key]
        codes = np.flatnonzero(signatures.allocator == number)
        codes = codes[np.argsort(-counts[codes, 1], kind="stable")]
        rows = tuple(
            SignatureChurn(signatures[code], *counts[code].tolist()) for code in codes.tolist()
        )
        totals = counts[codes].sum(axis=0).tolist()
        used = history.used[history.rows_of(number)]
        found.append(
            AllocatorChurn(
                name,
                None if own is None else len(own),
                allocations=totals[0],
                bytes=totals[1],
                same_step=totals[2],
                short=totals[3],
                peak_bytes=int(used.max(initial=0)),
                signatures=rows,
            )
        )
    return tuple(found)
