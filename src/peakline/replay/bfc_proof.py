"""Whether a recording is of the best-fit allocator: its own replay, address by address.

How the allocator was set is not recorded, so the settings that can be known from addresses alone
are tried (growth or the whole limit at once, regions that merge or not), and those with which
the replay goes on longest are taken. Where a block went elsewhere than the rules say, it is put
where the recording says and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from peakline.arrays import Int64Array
from peakline.kernels.bfc_layout import RUNNING
from peakline.replay.bfc import BfcMachine, BfcSettings
from peakline.replay.requests import NO_LIMIT, Requests

_MOST_MISSES = 4096
"""Blocks that are put by hand; a recording with more is of another allocator, ..."""
_MOST_WORK = 1 << 28
"""... and chunks that are looked at for them."""


@dataclass(frozen=True, eq=False)
class BfcProof:
    """What the replay of a recording found.

    Of ``allocations`` with an address ``compared`` were looked at, ``equal`` of these went where
    the rules say, ``learned`` of them as the base of a region, which no rule gives. ``sizes_equal``
    had a chunk of the recorded size. ``stopped_at`` is the event at which the replay ended, -1 at
    the end. ``machine`` is the allocator then.
    """

    settings: BfcSettings
    limit: int | None
    allocations: int
    compared: int
    equal: int
    learned: int
    sizes_equal: int
    stopped_at: int
    machine: BfcMachine

    @property
    def is_same(self) -> bool:
        """All that could be compared is equal, and something was beside bases of regions."""
        return (
            self.stopped_at < 0
            and self.equal == self.sizes_equal == self.allocations
            and self.equal > self.learned
        )


def prove(
    requests: Requests, address: Int64Array, granted: Int64Array, limit: int | None
) -> BfcProof:
    """Replay what was recorded: per buffer its ``address`` (-1: not known) and the bytes of its
    chunk, 0 where they are not known. ``limit`` is the allocator's, None where it is not known.

    Raises as `check_deadline`.
    """
    first, *others = _possible(limit)
    longest = _machine(requests, first, limit, address, spare=0)
    longest.advance(len(requests))
    most = _agreement(longest, granted)
    for settings in others:
        if most >= (len(requests), requests.size.size):
            break
        machine = _machine(requests, settings, limit, address, spare=0)
        machine.advance(len(requests))
        if (agreement := _agreement(machine, granted)) > most:
            longest, most = machine, agreement
    misses = 0
    if longest.position < len(requests):
        longest = _machine(requests, longest.settings, limit, address, spare=_MOST_MISSES)
        misses = _go_on(longest)
    stopped = longest.position if longest.position < len(requests) else -1
    placed = longest.placed
    known = address >= 0
    known &= requests.size > 0
    reached = known & (placed >= 0)
    return BfcProof(
        settings=longest.settings,
        limit=limit,
        allocations=int(known.sum()),
        compared=int(reached.sum()),
        equal=int(reached.sum()) - misses,
        learned=longest.learned,
        sizes_equal=int((reached & ((granted <= 0) | (granted == longest.granted))).sum()),
        stopped_at=stopped,
        machine=longest,
    )


def _agreement(machine: BfcMachine, granted: Int64Array) -> tuple[int, int]:
    """How far a replay went, and how many chunks are not of another size than recorded."""
    same = (granted <= 0) | (machine.granted == granted) | (machine.placed < 0)
    return machine.position, int(same.sum())


def _possible(limit: int | None) -> Iterator[BfcSettings]:
    """The likelier first."""
    plain = BfcSettings()
    for settings in (plain, replace(plain, coalescing=True)):
        yield settings
        yield replace(settings, garbage_collection=True)
    if limit is not None:
        yield replace(plain, allow_growth=False)


def _machine(
    requests: Requests,
    settings: BfcSettings,
    limit: int | None,
    address: Int64Array,
    *,
    spare: int,
) -> BfcMachine:
    return BfcMachine(
        requests, settings, NO_LIMIT if limit is None else limit,
        recorded=np.ascontiguousarray(address), detailed=True, spare=spare,
    )  # fmt: skip


def _go_on(machine: BfcMachine) -> int:
    """Replay to the end, by hand where the rules say something else; how many were put so."""
    misses = work = 0
    end = len(machine.requests)
    while machine.advance(end) < end and machine.status != RUNNING:
        # A request that fails in the replay was served in the recording, too.
        work += machine.chunk_count
        if misses >= _MOST_MISSES or work > _MOST_WORK or not machine.place_as_recorded():
            break
        misses += 1
    return misses
