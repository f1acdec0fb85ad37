"""The timeline index of one profile; prints seconds, bytes and milliseconds per tile as JSON.

Usage: ``python benchmarks/timeline.py FILE [TILES]``. Tiles are of all lines, their viewports
random: lengths from a nanosecond to the whole, evenly by their logarithm, anywhere in it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import peakline
from peakline.analysis.timing.timeline import build_timeline, draw_tile
from peakline.analysis.timing.timeline.search import search
from peakline.analysis.timing.trace import nesting_of, trace_of

WIDTHS = (500, 1000, 2000, 4000)
_SHORTEST_PS = 1000


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that ``work`` took, and what it returned."""
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found


def main() -> int:
    """Command line."""
    path = sys.argv[1]
    tiles = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    with peakline.open(path) as profile:
        reading, trace = timed(lambda: trace_of(profile))
        nests, nesting = timed(lambda: nesting_of(profile))
        build_timeline(trace, nesting)  # compiled
        building, timeline = timed(lambda: build_timeline(trace, nesting))
        first, last = trace.span()
        whole = draw_tile(timeline, first, last + 1, 1000)
        if int(whole.count.sum()) != trace.size:
            raise SystemExit("a tile of the whole does not hold all events")
        rng = np.random.default_rng(1)
        drawn = {}
        for width in WIDTHS:
            spans = np.exp(
                rng.uniform(
                    np.log(_SHORTEST_PS), np.log(max(last - first, 2 * _SHORTEST_PS)), tiles
                )
            )
            took, items = [], []
            for span in spans.astype(np.int64).tolist():
                start = int(rng.integers(first, max(last - span, first + 1)))
                end = start + span
                seconds, tile = timed(lambda s=start, e=end, w=width: draw_tile(timeline, s, e, w))
                took.append(1000 * seconds)
                items.append(tile.items)
            seconds, tile = timed(lambda w=width: draw_tile(timeline, first, last + 1, w))
            p50, p95, most = np.quantile(took, [0.5, 0.95, 1.0]).tolist()
            drawn[width] = {
                "p50_ms": p50,
                "p95_ms": p95,
                "max_ms": most,
                "max_items": max(items),
                "whole_ms": 1000 * seconds,
                "whole_items": tile.items,
            }
        looking, found = timed(
            lambda: search(timeline, "e", start_ps=first, end_ps=last + 1, width=1000)
        )
        print(
            json.dumps(
                {
                    "events": trace.size,
                    "tracks": timeline.tracks,
                    "read_s": reading,
                    "nest_s": nests,
                    "build_s": building,
                    "index_bytes": timeline.nbytes,
                    "trace_bytes": sum(
                        a.nbytes for a in (trace.start, trace.end, trace.name.codes)
                    ),
                    "tiles": drawn,
                    "search_s": looking,
                    "search_hits": found.total,
                },
                indent=2,
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
