"""Which segments hold free memory that cannot be returned, since blocks in them are in use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.memory.fit.replayed import Outcome


@dataclass(frozen=True)
class HeldSegment:
    """``free_bytes`` of its ``bytes`` are free; ``live_bytes`` in ``blocks`` blocks are not, the
    largest of which has the buffer ``largest`` (-1: not known).
    """

    address: int
    bytes: int
    free_bytes: int
    live_bytes: int
    blocks: int
    largest: int


def held_segments(outcome: Outcome, most: int) -> tuple[HeldSegment, ...]:
    """The segments, or regions, with most free memory behind blocks in use when a replay ended, at
    most so many. Those that are wholly free are held by nothing.
    """
    number, address, size = outcome.segments.T
    live = outcome.blocks[outcome.blocks[:, 3] > 0]
    live = live[np.isin(live[:, 0], number)]
    # The largest last, so that it is what stays of several.
    live = live[np.argsort(live[:, 2], kind="stable")]
    order = np.argsort(number)
    place = order[np.searchsorted(number[order], live[:, 0])]
    used, blocks = np.zeros((2, number.size), np.int64)
    largest = np.full(number.size, -1, np.int64)
    np.add.at(used, place, live[:, 2])
    np.add.at(blocks, place, 1)
    largest[place] = live[:, 4]
    rows = np.flatnonzero((blocks > 0) & (size > used))
    rows = rows[np.argsort((used - size)[rows], kind="stable")][:most]
    columns = (address, size, size - used, used, blocks, largest)
    return tuple(
        HeldSegment(*row)
        for row in zip(*(column[rows].tolist() for column in columns), strict=True)
    )
