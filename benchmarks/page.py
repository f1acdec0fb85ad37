"""The page's timeline beside XProf's trace viewer, in Chromium, on one file in one run.

    python benchmarks/page.py --peers .venv-peers/bin/python bench-data/tf2_cnn_386MB.xplane.pb

Each repetition starts a server of its own, which has answered nothing yet, and a browser of its
own; the two sides take turns. The file is in the system's cache, and a server rests for five
seconds from when it is up, so that neither is measured while it still imports. Measured are

- the first view: from the navigation to the first events on the screen (XProf: to two pictures
  after its lines are listed, when its canvas is drawn; its fonts and charts come from hosts that
  the browser cannot reach here, which fails at once);
- zoom, until nothing more is drawn: from a key, the same for both, to the last call that draws on a
  canvas, once nothing was fetched or drawn for 1.5 s;
- ours, zoom to drawn: from a key to the picture in full detail, of random zooms and moves, after
  all that is loaded in the background has come;
- the memory of the browser after that: of the page's own process, and of all its processes (PSS).

A child process drives the browser. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from browser import TWO_FRAMES, browser, driven, memory, missing, version
from servers import rested_server

if TYPE_CHECKING:
    from playwright.sync_api import Frame, Page

SESSION = "big"
ZOOMS = 80
_FIGURES = (
    ("first_view_s", "first view of the trace, cold server", "s"),
    ("background_s", "all that is loaded in the background", "s"),
    ("page_bytes", "memory of the page's process", "bytes"),
    ("browser_bytes", "memory of all processes of the browser", "bytes"),
)

_POINTER = (800, 400)
_STILL_KEYS = "wwwwwwddwwwaasss"
_DRAWN = "canvas.tl-lanes[aria-busy=false]"
# In every frame, before its own scripts: when a canvas was last drawn on, when a key last came,
# and how many requests are open.
_WATCH = """(() => {
  window.watched = {drawn: 0, key: 0, open: 0};
  for (const name of ["clearRect", "fillRect", "fill", "stroke", "drawImage", "fillText"]) {
    const draw = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...all) {
      watched.drawn = performance.now();
      return draw.apply(this, all);
    };
  }
  addEventListener("keydown", () => { watched.key = performance.now(); }, true);
  const answer = window.fetch, send = XMLHttpRequest.prototype.send;
  window.fetch = async (...all) => {
    watched.open++;
    try { return await answer(...all); } finally { watched.open--; }
  };
  XMLHttpRequest.prototype.send = function (...all) {
    watched.open++;
    this.addEventListener("loadend", () => { watched.open--; });
    return send.apply(this, all);
  };
})()"""
_STILL_MS = 1500
"""Nothing is drawn and nothing is fetched for so long: the picture is final."""
_STILL = """(ms) => new Promise((done) => {
  const look = () => {
    const {drawn, key, open} = watched;
    if (open === 0 && performance.now() - Math.max(drawn, key) > ms) done(Math.max(drawn - key, 0));
    else setTimeout(look, 50);
  };
  look();
})"""
_ZOOM = """async ([keys]) => {
  const canvas = document.querySelector("canvas.tl-lanes");
  const frame = () => new Promise(requestAnimationFrame);
  const took = [], served = [], frames = [];
  for (const [key, share] of keys) {
    const box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new PointerEvent("pointermove",
      {clientX: box.left + share * box.width, clientY: box.top + 50, bubbles: true}));
    await frame();
    const before = canvas.dataset.shown;
    const questions = performance.getEntriesByType("resource").length;
    const begin = performance.now();
    canvas.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
    let last = begin, isBusy = true, turns = 0;
    do {
      await frame();
      const now = performance.now();
      frames.push(now - last);
      last = now;
      isBusy = canvas.getAttribute("aria-busy") === "true"
        || (canvas.dataset.shown === before && ++turns < 3);
    } while (isBusy && last - begin < 20000);
    if (canvas.dataset.shown === before) continue;
    took.push(last - begin);
    served.push(performance.getEntriesByType("resource").length > questions);
    performance.clearResourceTimings();
  }
  return {took, served, frames};
}"""


def drive(side: str, port: int, zooms: int) -> dict[str, Any]:
    """Open a browser on a running server; what was measured. Runs in a process of its own."""
    with browser() as page:
        page.add_init_script(_WATCH)
        base = f"http://127.0.0.1:{port}"
        begin = time.perf_counter()
        if side == "XProf":
            query = f"run={SESSION}&tag=trace_viewer@&host=host"
            page.goto(f"{base}/data/plugin/profile/trace_viewer@?{query}", wait_until="commit")
            inner = page.frame_locator("iframe")
            inner.get_by_text("tf_Compute", exact=False).first.wait_for(state="attached")
            frame = next(one for one in page.frames if "trace_viewer_index" in one.url)
            frame.evaluate(TWO_FRAMES)
            result: dict[str, Any] = {"first_view_s": time.perf_counter() - begin}
        else:
            page.goto(f"{base}/#/session/{SESSION}/timeline", wait_until="commit")
            page.wait_for_selector(_DRAWN)
            result = {"first_view_s": time.perf_counter() - begin}
            page.locator(".tl-stepper:not([hidden])").wait_for()
            result["background_s"] = time.perf_counter() - begin
            frame = page.main_frame
        result["still_ms"] = [] if zooms < ZOOMS else _zoom(page, frame)
        if side != "XProf":
            result |= page.evaluate(_ZOOM, [_keys(zooms)])
        result["page_bytes"], result["browser_bytes"] = memory()
        result["browser"] = version(page)
    return result


def _zoom(page: Page, frame: Frame) -> list[float]:
    """From each of some keys to the last that is drawn for it, in ms; the same keys for both."""
    frame.evaluate(_STILL, _STILL_MS)
    page.mouse.move(*_POINTER)
    page.mouse.down()
    page.mouse.up()
    took = []
    for key in _STILL_KEYS:
        frame.evaluate(_STILL, _STILL_MS)
        page.keyboard.press(key)
        took.append(float(frame.evaluate(_STILL, _STILL_MS)))
    return took


def _keys(count: int) -> list[tuple[str, float]]:
    """Keys and where the pointer is: from the whole to a few microseconds, sideways, and back."""
    rng = random.Random(7)  # noqa: S311 (no secret)
    keys: list[tuple[str, float]] = []
    while len(keys) < count:
        depth = rng.randrange(5, 40)
        keys += [("w", rng.random()) for _ in range(depth)]
        keys += [(rng.choice("ad"), rng.random()) for _ in range(rng.randrange(8))]
        keys += [("s", rng.random()) for _ in range(depth)]
    return keys[:count]


def measure(side: str, logdir: Path, peers: Path | None, zooms: int) -> dict[str, Any]:
    """One repetition: a new server, a new browser."""
    with rested_server(side, logdir, peers) as port:
        result: dict[str, Any] = driven(__file__, side, str(port), str(zooms))
    return result


def rows(program: str, runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per figure: medians over the repetitions; of zooms the quantiles of all together."""
    result: list[dict[str, Any]] = []

    def add(
        what: str, unit: str, median: float, least: float | None = None, most: float | None = None
    ) -> None:
        row = {"what": what, "program": program, "unit": unit, "runs": len(runs)}
        result.append(row | {"median": median, "least": least, "most": most})

    for key, what, unit in _FIGURES:
        if values := [run[key] for run in runs if key in run]:
            add(what, unit, statistics.median(values), min(values), max(values))
    took = [one for run in runs for one in run.get("took", [])]
    served = [
        one
        for run in runs
        for one, is_served in zip(run.get("took", []), run.get("served", []), strict=True)
        if is_served
    ]
    still = [one for run in runs for one in run["still_ms"]]
    frames = [one for run in runs for one in run.get("frames", [])]
    for what, values in (
        ("zoom, until nothing more is drawn", still),
        ("zoom to drawn", took),
        ("zoom to drawn by way of the server", served),
        ("a frame while zooming", frames),
    ):
        if values:
            add(f"{what}, median of {len(values)}", "ms", _quantile(values, 0.5))
            add(f"{what}, 95th percentile", "ms", _quantile(values, 0.95))
    return result


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("file", nargs="?", type=Path, help="an XSpace")
    parser.add_argument("--peers", type=Path, help="Python that has XProf; else Peakline alone")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--zooms", type=int, default=ZOOMS)
    parser.add_argument("--drive", nargs=3, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.drive:
        side, port, zooms = wanted.drive
        print(json.dumps(drive(side, int(port), int(zooms))))
        return 0
    if wanted.file is None:
        parser.error("a file is needed")
    if lacking := missing():
        raise SystemExit(lacking)
    sides = ["Peakline", *(["XProf"] if wanted.peers else [])]
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    # A hard link needs the same file system: the directory lies beside the file.
    with tempfile.TemporaryDirectory(dir=wanted.file.parent) as scratch:
        folder = Path(scratch) / "plugins/profile" / SESSION
        folder.mkdir(parents=True)
        os.link(wanted.file, folder / "host.xplane.pb")
        wanted.file.read_bytes()
        # What is measured after this finds its modules in the page cache.
        measure("Peakline", Path(scratch), None, 1)
        for number in range(wanted.repeats):
            for side in sides:
                print(f"measuring {side}, {number + 1}", file=sys.stderr, flush=True)
                runs[side].append(measure(side, Path(scratch), wanted.peers, wanted.zooms))
    result = {
        "file": wanted.file.name,
        "bytes": wanted.file.stat().st_size,
        "browser": runs["Peakline"][0]["browser"],
        "rows": [row for side, each in runs.items() for row in rows(side, each)],
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
