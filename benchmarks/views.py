"""First pictures of the page's other views, in Chromium; where XProf has the view, beside it.

    python benchmarks/views.py --peers .venv-peers/bin/python --data bench-data

Measured is from the navigation to the picture, of a server that has answered nothing yet (cold),
and once more in another new browser (warm), the two programs taking turns. XProf draws graphs
with a script of another host, which the browser cannot reach here: its time ends when the text of
the graph has come, before it is laid out, and is of the neighbourhood of one instruction.

A child process drives the browser. Prints JSON: rows as `tables.figures` takes them.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from browser import TWO_FRAMES, browser, driven, missing
from inputs import LARGE, ROOT, SMALL, profile
from servers import rested_server

from peakline.schema import GraphDef
from programs import LABEL, SIZE, program

if TYPE_CHECKING:
    from playwright.sync_api import Page

NODES, SESSIONS = 200_000, 10_000
_LOOK_MS = 10
LONGEST_S = 60
_GRAPH = ".gv-stage[aria-busy=false] .gv-box"
_JAX = "tests/data/sessions/jax_cpu/plugins/profile"


@dataclass(frozen=True)
class View:
    """A view, and how it is opened: the address, and what is in the page once it is drawn."""

    make: Callable[[Path, Path], None]
    """Fills the log directory, the first path, from the folder of data, the second."""
    ours: tuple[str, str]
    theirs: tuple[str, str] | None = None


def _linked(name: str) -> Callable[[Path, Path], None]:
    def make(logdir: Path, data: Path) -> None:
        os.link(profile(data, name), _session(logdir) / "host.xplane.pb")

    return make


def _session(logdir: Path, name: str = "one") -> Path:
    place = logdir / "plugins/profile" / name
    place.mkdir(parents=True)
    return place


def _module(logdir: Path, _data: Path) -> None:
    """The real profile of a JAX training step, which holds its programs."""
    packed = next((ROOT / _JAX).glob("*/*.xplane.pb.gz"))
    (_session(logdir) / "host.xplane.pb").write_bytes(gzip.decompress(packed.read_bytes()))


def _program(logdir: Path, data: Path) -> None:
    """The program of 100 MB as a session of its own."""
    os.link(program(data, SIZE), _session(logdir) / "host.profile")


def _graph(logdir: Path, data: Path) -> None:
    """A GraphDef of 200,000 nodes in scopes of four levels, each node reading the two before."""
    path = data / f"graph_{NODES}.pb"
    if not path.exists():
        graph = GraphDef()
        names = [
            f"tower_{n // 50_000}/block_{n // 2_000}/layer_{n // 100}/op_{n}" for n in range(NODES)
        ]
        kinds = ("MatMul", "BiasAdd", "Relu", "AddV2", "Mul")
        for n, name in enumerate(names):
            graph.node.add(name=name, op=kinds[n % 5], input=names[max(n - 2, 0) : n])
        path.write_bytes(graph.SerializeToString())
    os.link(path, _session(logdir) / "host.profile")


def _sessions(logdir: Path, data: Path) -> None:
    small = profile(data, SMALL)
    for n in range(SESSIONS):
        os.link(small, _session(logdir, f"run_{n:05}") / "host.xplane.pb")


_XPROF_GRAPH = f"graph_viewer?run=one&tag=graph_viewer&module_name={LABEL}&node_name=dot.3"

VIEWS: Mapping[str, View] = {
    "graph of a program, real, 208 instructions": View(
        _module, ("session/one/graph", _GRAPH), (_XPROF_GRAPH, "#graph-container")
    ),
    f"graph of a program of {SIZE}": View(_program, ("session/one/graph", _GRAPH)),
    f"graph of {NODES:,} nodes": View(_graph, ("session/one/graph", _GRAPH)),
    f"first rows of {SESSIONS:,} sessions": View(
        _sessions, ("", "text=run_09999"), ("", "text=run_09999")
    ),
    f"first facts of {LARGE}": View(_linked(LARGE), ("session/one/summary", "#answer .sentence")),
    f"memory, layers by op, of {LARGE}": View(
        _linked(LARGE), ("session/one/memory?draw=stack", "canvas.memory-chart[aria-busy=false]")
    ),
}


def drive(side: str, port: int, view: str) -> dict[str, float]:
    """Seconds to the picture, cold and warm, each in a new browser.

    Runs in a process of its own; raises SystemExit where nothing is drawn within `LONGEST_S`.
    """
    shown = VIEWS[view].ours if side == "Peakline" else VIEWS[view].theirs
    if shown is None:
        raise SystemExit(f"{side} has no {view}")
    address, drawn = shown
    base = f"http://127.0.0.1:{port}"
    url = f"{base}/#/{address}" if side == "Peakline" else f"{base}/data/plugin/profile/{address}"
    result = {}
    for turn in ("cold", "warm"):
        with browser() as page:
            begin = time.perf_counter()
            page.goto(url, wait_until="commit")
            _wait(page, drawn)
            result[turn] = time.perf_counter() - begin
    return result


def _wait(page: Page, drawn: str) -> None:
    """Come back when a selector is in the page or in one of its frames, and drawn."""
    from playwright.sync_api import Error

    end = time.monotonic() + LONGEST_S
    while time.monotonic() < end:
        for frame in page.frames:
            # A frame may be taken away while it is searched.
            with contextlib.suppress(Error):
                if frame.locator(drawn).count():
                    frame.evaluate(TWO_FRAMES)
                    return
        page.wait_for_timeout(_LOOK_MS)
    raise SystemExit(f"no {drawn} within {LONGEST_S} s")


def measure(side: str, logdir: Path, peers: Path | None, view: str) -> dict[str, float]:
    """One repetition: a new server, a new browser."""
    with rested_server(side, logdir, peers) as port:
        result: dict[str, float] = driven(__file__, side, str(port), view)
    return result


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--peers", type=Path, help="Python that has XProf")
    parser.add_argument("--data", type=Path, default=ROOT / "bench-data", help="folder for data")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(VIEWS), choices=list(VIEWS))
    parser.add_argument("--drive", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        side, port, view = options.drive
        print(json.dumps(drive(side, int(port), view)))
        return 0
    if lacking := missing():
        raise SystemExit(lacking)
    options.data.mkdir(parents=True, exist_ok=True)
    rows = [row for view in options.only for row in _rows(view, options)]
    print(json.dumps(rows))
    return 0


def _rows(view: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of one view: cold and warm, of both programs where XProf has it."""
    sides = ["Peakline"]
    if VIEWS[view].theirs and options.peers:
        sides.append("XProf")
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    # A hard link needs the same file system: the directory lies beside the data.
    with tempfile.TemporaryDirectory(dir=options.data) as scratch:
        VIEWS[view].make(Path(scratch), options.data)
        # What is measured after this finds its modules and the file in the page cache.
        measure("Peakline", Path(scratch), options.peers, view)
        for number in range(options.repeats):
            for side in sides:
                print(f"measuring {view}: {side}, {number + 1}", file=sys.stderr, flush=True)
                runs[side].append(measure(side, Path(scratch), options.peers, view))
    return [
        {
            "what": f"{view}, {turn}",
            "program": side,
            "unit": "s",
            "runs": len(each),
            "median": statistics.median(run[turn] for run in each),
            "least": min(run[turn] for run in each),
            "most": max(run[turn] for run in each),
        }
        for side, each in runs.items()
        for turn in ("cold", "warm")
    ]


if __name__ == "__main__":
    sys.exit(main())
