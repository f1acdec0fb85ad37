"""Where buffers lie under another limit or other settings, where the replay is proved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.memory.address_map import Blocks, Regions
from peakline.memory.fit.answer import history_of
from peakline.memory.fit.choice import replayed_of
from peakline.memory.fit.model import NoFit
from peakline.memory.fit.replayed import Outcome, Replayed
from peakline.replay.requests import MIB
from peakline.tables import Profile
from peakline.tables.once import once


@dataclass(frozen=True, eq=False)
class ReplayedMap:
    """The address space at the end of a replay, or when a request failed.

    ``settings`` are those of the replay, ``failed_row`` the record of the request that failed (-1:
    none did, or it has none), ``failed_bytes`` its bytes, rounded up (0: none failed).
    """

    regions: Regions
    blocks: Blocks
    limit: int
    settings: dict[str, object]
    failed_row: int
    failed_bytes: int
    outcome: Outcome


@once
def replayed_map(
    profile: Profile, number: int, limit: int | None, settings: tuple[tuple[str, str], ...]
) -> ReplayedMap | NoFit:
    """An allocator of `memory_records`, by its number, under a limit in bytes and settings.

    Without a limit it is the largest that fails, by which one sees why more is needed; where all
    fit, the smallest. NoFit where the recording cannot be replayed, or is not proved. Raises
    UsageError for settings that the model does not have.
    """
    history = history_of(profile)
    if history is None:
        return NoFit("", "the file has no records of an allocator")
    replayed = replayed_of(profile, history, number, settings)
    if isinstance(replayed, NoFit):
        return replayed
    if not replayed.stated.proved:
        return NoFit(history.lifetimes.allocators[number], replayed.stated.reason)
    outcome = replayed.under(_deciding(replayed) if limit is None else limit)
    return _map_of(replayed, outcome)


def _deciding(replayed: Replayed) -> int:
    """The largest limit that fails; where none is known, the smallest that fits."""
    limits = replayed.limits()
    safe = limits.safe_from
    if safe is not None and safe - MIB >= limits.searched_from:
        return safe - MIB
    return limits.smallest or replayed.live_peak


def _map_of(replayed: Replayed, outcome: Outcome) -> ReplayedMap:
    segments = outcome.segments[np.argsort(outcome.segments[:, 1], kind="stable")]
    regions = Regions(segments[:, 1], segments[:, 2])
    order = np.argsort(outcome.blocks[:, 1], kind="stable")
    _, address, size, in_use, buffer = outcome.blocks[order].T
    region, offset = regions.place(address)
    rows = [replayed.row_of(one) if one >= 0 else -1 for one in buffer.tolist()]
    states = tuple("in_use" if used else "free" for used in in_use.tolist())
    blocks = Blocks(region, offset, size, np.array(rows, np.intp), states)
    failed_row, failed_bytes = -1, 0
    if outcome.stopped_at >= 0:
        failed = replayed.buffer_of(outcome.stopped_at)
        failed_row = replayed.row_of(failed)
        wanted, granule = int(replayed.sizes[failed]), max(replayed.granule, 1)
        failed_bytes = -(-wanted // granule) * granule
    settings = replayed.settings.as_json()
    return ReplayedMap(
        regions, blocks, outcome.limit, dict(settings), failed_row, failed_bytes, outcome
    )
