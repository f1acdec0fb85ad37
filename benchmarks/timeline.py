"""The timeline of one profile: its index, and tiles of it, in the process and from a server.

    python benchmarks/timeline.py FILE [--tiles 300]

In the process, tiles are of all lines, their viewports random: lengths from a nanosecond to the
whole, evenly by their logarithm, anywhere in it. From a server that is warm they are asked over
HTTP in the binary format, of lengths that have the most in them: from a thousandth of the whole
to the whole. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from servers import free_port, server

import peakline
from peakline.timing.timeline import build_timeline, draw_tile
from peakline.timing.timeline.search import search
from peakline.trace.events import nesting_of, trace_of

WIDTHS = (500, 1000, 2000, 4000)
HTTP_WIDTH = 2000
"""What the page asks for a window of 1,250 pixels: it takes some more at both sides."""

_SHORTEST_PS = 1000
_QUESTION = "/api/sessions/big/tools/timeline?view="


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that ``work`` took, and what it returned."""
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def viewports(first: int, last: int, shortest: int, count: int) -> list[tuple[int, int]]:
    """Random begins and ends, in ps; lengths from ``shortest`` to the whole, by logarithm."""
    rng = np.random.default_rng(1)
    longest = max(last - first, 2 * shortest)
    spans = np.exp(rng.uniform(np.log(shortest), np.log(longest), count)).astype(np.int64)
    begins = [int(rng.integers(first, max(last - span, first + 1))) for span in spans.tolist()]
    return [(begin, begin + span) for begin, span in zip(begins, spans.tolist(), strict=True)]


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Median, 95th percentile and most, in milliseconds."""
    p50, p95, most = np.quantile(seconds, [0.5, 0.95, 1.0]).tolist()
    return {"p50_ms": 1000 * p50, "p95_ms": 1000 * p95, "max_ms": 1000 * most}


def in_process(path: Path, tiles: int) -> dict[str, Any]:
    """The index and its tiles."""
    with peakline.open(path) as profile:
        nesting_of(profile)  # imported
    with peakline.open(path) as profile:
        reading, trace = timed(lambda: trace_of(profile))
        nests, nesting = timed(lambda: nesting_of(profile))
        build_timeline(trace, nesting)  # imported
        building, timeline = timed(lambda: build_timeline(trace, nesting))
        first, last = trace.span()
        whole = draw_tile(timeline, first, last + 1, 1000)
        if int(whole.count.sum()) != trace.size:
            raise SystemExit("a tile of the whole does not hold all events")
        drawn = {}
        for width in WIDTHS:
            took, items = [], []
            for begin, end in viewports(first, last, _SHORTEST_PS, tiles):
                seconds, tile = timed(
                    lambda begin=begin, end=end, width=width: draw_tile(timeline, begin, end, width)
                )
                took.append(seconds)
                items.append(tile.items)
            seconds, tile = timed(lambda width=width: draw_tile(timeline, first, last + 1, width))
            drawn[str(width)] = quantiles(took) | {
                "max_items": max(items),
                "whole_ms": 1000 * seconds,
                "whole_items": tile.items,
            }
        looking, result = timed(
            lambda: search(timeline, "e", start_ps=first, end_ps=last + 1, width=1000)
        )
        return {
            "events": trace.size,
            "tracks": timeline.tracks,
            "read_s": reading,
            "nest_s": nests,
            "build_s": building,
            "index_bytes": timeline.nbytes,
            "search_s": looking,
            "search_hits": result.total,
            "tiles": drawn,
        }


def over_http(path: Path, tiles: int) -> dict[str, Any]:
    """Tiles that a server sends, the profile and its index being ready."""
    port = free_port()
    with tempfile.TemporaryDirectory(dir=path.parent) as logdir:
        folder = Path(logdir) / "plugins/profile/big"
        folder.mkdir(parents=True)
        os.link(path, folder / "host.xplane.pb")
        program = Path(sys.executable).with_name("peakline")
        command = [
            program, "serve", logdir, "--http-port", str(port), "--grpc-port", "0",
            "--access-log", "off",
        ]  # fmt: skip
        with server(command, f"http://127.0.0.1:{port}/healthz"):
            connection = http.client.HTTPConnection("127.0.0.1", port)

            def ask(question: str) -> bytes:
                connection.request("GET", _QUESTION + question)
                answer = connection.getresponse()
                content = answer.read()
                if answer.status != http.HTTPStatus.OK:
                    raise SystemExit(f"{question}: {content[:2000]!r}")
                return content

            whole = json.loads(ask("tile&width=10"))
            first, last = whole["start_ps"], whole["end_ps"]
            ask("lanes&format=bin")
            took, sizes = [], []
            for begin, end in viewports(first, last, max((last - first) // 1000, 1), tiles):
                question = f"tile&format=bin&start_ps={begin}&end_ps={end}&width={HTTP_WIDTH}"
                seconds, content = timed(lambda question=question: ask(question))
                took.append(seconds)
                sizes.append(len(content))
            connection.close()
    return {"width": HTTP_WIDTH, "tiles": tiles, "max_bytes": max(sizes)} | quantiles(took)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("file", type=Path, help="an XSpace")
    parser.add_argument("--tiles", type=int, default=300, help="tiles of each kind")
    wanted = parser.parse_args()
    result = {"file": wanted.file.name, "bytes": wanted.file.stat().st_size}
    result |= in_process(wanted.file, wanted.tiles)
    result |= {"http": over_http(wanted.file, wanted.tiles)}
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
