"""Replays of allocations, and searches for the limits that fit, on one core; prints JSON.

    python benchmarks/replay.py [--repeats 3]

Requests are log-uniform from 10 bytes to 3 MB, some hundred live at a time, none in a pattern: no
two decisions are alike, so that limits have little in common. Each measurement is a process of its
own; its memory is beyond what its imports take.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from peakline.kernels import caching_layout
from peakline.memory.fit.combined import most_work
from peakline.replay.bfc import BfcMachine, BfcSettings
from peakline.replay.limits import scan
from peakline.replay.requests import NO_LIMIT, Requests
from peakline.replay.torch_caching import CachingMachine
from peakline.replay.torch_events import CachingEvents
from peakline.replay.torch_settings import CachingSettings

MILLION = 1_000_000
_LIVE = 500


def requests(count: int, seed: int = 1) -> Requests:
    """``count`` events."""
    rng = np.random.default_rng(seed)
    buffers = np.arange(count // 2)
    size = (10 ** rng.uniform(1, 6.5, count // 2)).astype(np.int64)
    end = buffers + rng.exponential(_LIVE, count // 2)
    events = np.concatenate([buffers, ~buffers])
    order = np.argsort(np.concatenate([buffers, end]), kind="stable")
    return Requests(np.ascontiguousarray(events[order], np.int64), size)


def replay_bfc(made: Requests) -> Callable[[], object]:
    """One replay without a limit."""
    return lambda: BfcMachine(made, BfcSettings(), NO_LIMIT).advance(len(made))


def replay_pytorch(made: Requests) -> Callable[[], object]:
    """The same by PyTorch's rules."""
    is_free = made.events < 0
    events = CachingEvents.of(
        np.where(is_free, caching_layout.FREE, caching_layout.ALLOCATE),
        np.where(is_free, ~made.events, made.events),
        made.size,
        np.zeros(made.size.size, np.int64),
    )
    return lambda: CachingMachine(events, CachingSettings(), has_results=False).advance()


def search_bfc(made: Requests) -> Callable[[], object]:
    """All limits."""

    def search() -> None:
        result = scan(
            lambda limit: BfcMachine(made, BfcSettings(), limit),
            len(made),
            int(made.live_bytes(256).max()),
            most_events=most_work(len(made), is_first=True),
        )
        if not result.is_whole:
            print(f"limits below {result.lowest:,} bytes were not looked at", file=sys.stderr)

    return search


_WORK: dict[str, tuple[Callable[[Requests], Callable[[], object]], int]] = {
    "replay, best fit with coalescing": (replay_bfc, 10 * MILLION),
    "replay, PyTorch's caching allocator": (replay_pytorch, 10 * MILLION),
    "all limits, of a million": (search_bfc, MILLION),
    "all limits, of ten million": (search_bfc, 10 * MILLION),
}


def _one(name: str) -> None:
    """What one measurement takes, as JSON, without the making of the requests."""
    prepare, count = _WORK[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work = prepare(requests(count))
    begin = time.perf_counter()
    work()
    seconds = time.perf_counter() - begin
    most = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(json.dumps({"seconds": seconds, "bytes": most}))


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", choices=list(_WORK))
    options = parser.parse_args()
    if options.one:
        _one(options.one)
        return 0
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in _WORK}
    for _ in range(options.repeats):
        for name, result in rows.items():
            done = subprocess.run(
                [sys.executable, __file__, "--one", name], check=True, stdout=subprocess.PIPE
            )
            result.append(json.loads(done.stdout))
    measured = [
        {
            "what": name,
            "events": _WORK[name][1],
            "seconds": [one["seconds"] for one in result],
            "bytes": max(one["bytes"] for one in result),
        }
        for name, result in rows.items()
    ]
    print(json.dumps(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
