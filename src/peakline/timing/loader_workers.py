"""Worker processes of a PyTorch ``DataLoader`` that are started anew for each pass over the data.

Without ``persistent_workers`` each iterator starts its workers when it is made
(``_MultiProcessingDataLoaderIter.__init__`` in torch/utils/data/dataloader.py) and ends them after
the last batch (``_shutdown_workers``); the first batch waits until a worker has begun.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.tables import Profile
from peakline.timing.frame_work import function_of_loop
from peakline.trace.events import Trace, nesting_of, trace_of
from peakline.trace.frames import Frame
from peakline.trace.intervals import covered, union

_LOADER = r"torch/utils/data/dataloader\.py\(\d+\): "
_MADE = re.compile(_LOADER + "__init__$")
_ENDED = re.compile(_LOADER + "_shutdown_workers$")
_NEXT = re.compile(_LOADER + "__next__$")
_START = re.compile(r"multiprocessing/process\.py\(\d+\): start$")
FEWEST = 2
"""So many iterators that start workers are one more than a run needs."""


@dataclass(frozen=True, eq=False)
class WorkerStarts:
    """``workers`` were started by ``iterators``, in ``function`` where a frame says it. Of
    ``wall_ps``, what is recorded, ``least_ps`` go to starting and ending them, ``most_ps`` also to
    the first batch of each, as many epochs have it.
    """

    iterators: int
    workers: int
    function: Frame | None
    wall_ps: int
    least_ps: int
    most_ps: int


def worker_starts_of(profile: Profile) -> WorkerStarts | None:
    """None where at most one iterator starts workers, or no frames of Python are recorded."""
    trace = trace_of(profile)
    starts = np.flatnonzero(_named(trace, _START))
    if not starts.size:
        return None
    around = nesting_of(profile).around(starts, _named(trace, _MADE))
    made, counts = np.unique(around[around >= 0], return_counts=True)
    if made.size < FEWEST:
        return None
    ends = np.flatnonzero(_named(trace, _ENDED))
    begin, end = trace.span()
    window = np.array([begin]), np.array([end])
    both = np.concatenate([made, ends])
    first = _first_after(trace, made, np.flatnonzero(_named(trace, _NEXT)))
    # Of all of them one iterator must start its workers.
    spare = 1 - 1 / made.size
    sums = [
        int(covered(union(trace.start[some], trace.end[some]), *window).sum())
        for some in (both, np.concatenate([both, first]))
    ]
    return WorkerStarts(
        made.size, int(counts.sum()), function_of_loop(profile, made), end - begin,
        round(spare * sums[0]), sums[1],
    )  # fmt: skip


def _first_after(trace: Trace, made: Int64Array, batches: Int64Array) -> Int64Array:
    """The first of ``batches`` that begins after each iterator was made."""
    if not batches.size:
        return batches
    order = batches[np.argsort(trace.start[batches], kind="stable")]
    at = np.searchsorted(trace.start[order], trace.end[made])
    result: Int64Array = order[at[at < order.size]]
    return result


def _named(trace: Trace, pattern: re.Pattern[str]) -> BoolArray:
    result: BoolArray = trace.name.per_row(pattern.search, np.bool_)
    return result
