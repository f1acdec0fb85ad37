"""Matching 10 million allocator activities on one core; prints the seconds as JSON.

    python benchmarks/lifetimes.py [--repeats 5]

The records are those of a busy allocator: buffers of a few hundred addresses that are used again
and again, some thousand live at a time, one allocator in three with ids instead of addresses.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np

from peakline.memory.lifetimes import ALLOCATION, match_lifetimes
from peakline.tables import Columns, Names
from peakline.tables.columns import Column

ACTIVITIES = 10_000_000
_LIVE = 4096
"""So many buffers live at a time."""


def activities(count: int, seed: int = 1) -> Columns:
    """``count`` records: a ring of ``_LIVE`` places, each freed just before it is used again."""
    rng = np.random.default_rng(seed)
    pairs = (count + _LIVE) // 2
    place = rng.permutation(_LIVE)[np.arange(pairs) % _LIVE].astype(np.int64)
    is_end = np.tile([True, False], pairs)
    # What a place held before its first use is no record.
    chosen = ~is_end
    chosen[2 * _LIVE :] = True
    place, is_end = np.repeat(place, 2)[chosen], is_end[chosen]
    allocator = (place % 3).astype(np.int32)
    by_id = allocator == 0
    data: dict[str, Column] = {
        "time_ps": np.arange(place.size, dtype=np.int64),
        "allocator": Names(allocator, ["a", "b", "c"]),
        "activity": Names((~is_end).astype(np.int32), ["deallocation", "allocation"]),
        "allocation_id": place,
        "address": (place * 256).astype(np.uint64),
    }
    return Columns(data, {"allocation_id": by_id, "address": ~by_id})


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    match_lifetimes(activities(10_000))  # imported
    events = activities(ACTIVITIES)
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = match_lifetimes(events)
        seconds.append(time.perf_counter() - begin)
    if int(((result.kind == ALLOCATION) & (result.end < 0)).sum()) != _LIVE:
        raise SystemExit("the buffers do not match")
    print(json.dumps({"seconds": seconds, "activities": events.rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
