"""The page's timeline beside XProf's trace viewer, in Chromium, on one file in one run.

    python benchmarks/page.py --peers .venv-peers/bin --data bench-data/tf2_cnn_390MB.xplane.pb

Each repetition starts a server of its own, which has answered nothing yet, and a browser of its
own; the two sides take turns. The file is in the system's cache, and a server rests for `_REST_S`
from when it is up, so that neither is measured while it still imports. Measured are

- the first view: from the navigation to the first events on the screen (XProf: to two pictures
  after its lines are listed, when its canvas is drawn; its fonts and charts come from hosts that
  the browser cannot reach here, which fails at once);
- ours, zoom to drawn: from a key to the picture in full detail, of random zooms and moves, after
  all that is loaded in the background has come;
- the memory of the browser after that: of the page's own process, and of all its processes (PSS).

A child process drives the browser. Prints one JSON document, and rows of a Markdown table to
standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

SESSION = "big"
ZOOMS = 80
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_REST_S = 5.0
_READY_S = 120.0
_LONG_MS = 600_000
_LIMITS = {"first_view_s": 4.0, "zoom_p95_ms": 100.0, "page_bytes": 400 * 2**20}

_DRAWN = "canvas.tl-lanes[aria-busy=false]"
_TWO_FRAMES = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(done)))"""
_ZOOM = """async ([keys]) => {
  const canvas = document.querySelector("canvas.tl-lanes");
  const frame = () => new Promise(requestAnimationFrame);
  const took = [], asked = [], frames = [];
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
    asked.push(performance.getEntriesByType("resource").length > questions);
    performance.clearResourceTimings();
  }
  return {took, asked, frames};
}"""


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def server(command: Sequence[str | Path], ready: str) -> Iterator[None]:
    """Run a server until the block ends; `_REST_S` after ``ready``, a URL, is answered."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [str(word) for word in command], stdout=log, stderr=subprocess.STDOUT
        )
        try:
            end = time.monotonic() + _READY_S
            while True:
                try:
                    urllib.request.urlopen(ready, timeout=10).read()  # noqa: S310 (our own server)
                    break
                except (urllib.error.URLError, OSError):
                    if process.poll() is not None or time.monotonic() > end:
                        log.seek(0)
                        told = log.read()[-2000:].decode(errors="replace")
                        raise SystemExit(f"{command[0]} did not start: {told}") from None
                    time.sleep(0.1)
            time.sleep(_REST_S)
            yield
        finally:
            process.terminate()
            process.wait(60)


def drive(side: str, port: int, zooms: int) -> dict[str, Any]:
    """Open a browser on a running server; what was measured. Runs in a process of its own."""
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    browser = os.environ.get("PEAKLINE_BROWSER") or browser
    if browser is None:
        raise SystemExit("no Chromium is installed; PEAKLINE_BROWSER may name one")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser, args=list(_FLAGS))
        page = running.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(_LONG_MS)
        page.goto("about:blank")
        base = f"http://127.0.0.1:{port}"
        begin = time.perf_counter()
        if side == "xprof":
            query = f"run={SESSION}&tag=trace_viewer@&host=host"
            page.goto(f"{base}/data/plugin/profile/trace_viewer@?{query}", wait_until="commit")
            inner = page.frame_locator("iframe")
            inner.get_by_text("tf_Compute", exact=False).first.wait_for(state="attached")
            frame = next(one for one in page.frames if "trace_viewer_index" in one.url)
            frame.evaluate(_TWO_FRAMES)
            found: dict[str, Any] = {"first_view_s": time.perf_counter() - begin}
        else:
            page.goto(f"{base}/#/session/{SESSION}/timeline", wait_until="commit")
            page.wait_for_selector(_DRAWN)
            found = {"first_view_s": time.perf_counter() - begin}
            page.locator(".tl-stepper:not([hidden])").wait_for()
            found["background_s"] = time.perf_counter() - begin
            found |= page.evaluate(_ZOOM, [_keys(zooms)])
        found["page_bytes"], found["browser_bytes"] = _memory()
        running.close()
    return found


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


def _memory() -> tuple[int, int]:
    """PSS of the largest renderer, and of all processes of the browser, in bytes."""
    largest, total = 0, 0
    for place in Path("/proc").glob("[0-9]*"):
        try:
            # A process of Chromium's may have its words in one.
            command = (place / "cmdline").read_bytes()
            if b"chrom" not in command.split(b"\0")[0] or not _is_ours(place):
                continue
            rollup = (place / "smaps_rollup").read_text()
        except OSError:
            continue  # it ended meanwhile
        size = int(next(line for line in rollup.splitlines() if line.startswith("Pss:")).split()[1])
        total += size * 1024
        if b"--type=renderer" in command:
            largest = max(largest, size * 1024)
    return largest, total


def _is_ours(place: Path) -> bool:
    """Whether a process descends from this one."""
    number, own = int(place.name), os.getpid()
    while number > 1:
        if number == own:
            return True
        status = Path(f"/proc/{number}/stat").read_text()
        number = int(status.rpartition(")")[2].split()[1])
    return False


def measure(side: str, logdir: Path, peers: Path, zooms: int) -> dict[str, Any]:
    """One repetition: a new server, a new browser."""
    port = free_port()
    if side == "xprof":
        command: list[str | Path] = [peers / "xprof", "--logdir", logdir, "--port", str(port)]
        ready = f"http://127.0.0.1:{port}/data/plugin/profile/runs"
    else:
        peakline = Path(sys.executable).with_name("peakline")
        command = [peakline, "serve", logdir, "--http-port", str(port), "--grpc-port", "0"]
        ready = f"http://127.0.0.1:{port}/api/tools"
    with server(command, ready):
        child = subprocess.run(
            [sys.executable, __file__, "--drive", side, str(port), str(zooms)],
            capture_output=True,
            text=True,
            timeout=_LONG_MS / 1000 * 2,
            check=False,
        )
    # XProf writes what it has read beside the file; the next repetition shall not find it.
    for place in logdir.rglob("*"):
        if place.is_file() and not place.name.endswith("host.xplane.pb"):
            place.unlink()
    if child.returncode:
        raise SystemExit(f"{side}: {child.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(child.stdout)
    return told


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the repetitions; of zooms the quantiles of all together."""
    told: dict[str, Any] = {"runs": len(runs)}
    for key in ("first_view_s", "background_s", "page_bytes", "browser_bytes"):
        values = [run[key] for run in runs if key in run]
        if values:
            told[key] = statistics.median(values)
            told[f"{key}_each"] = values
    took = [one for run in runs for one in run.get("took", [])]
    if took:
        asked = [
            one
            for run in runs
            for one, is_asked in zip(run["took"], run["asked"], strict=True)
            if is_asked
        ]
        told["zooms"], told["zooms_asked"] = len(took), len(asked)
        told["zoom_p50_ms"], told["zoom_p95_ms"] = _quantile(took, 0.5), _quantile(took, 0.95)
        told["zoom_asked_p95_ms"] = _quantile(asked, 0.95) if asked else None
        frames = [one for run in runs for one in run["frames"]]
        told["frame_p50_ms"], told["frame_p95_ms"] = _quantile(frames, 0.5), _quantile(frames, 0.95)
    return told


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def rows(found: dict[str, dict[str, Any]]) -> list[str]:
    """Rows of a Markdown table: what, who, runs, median, least, most."""
    names = {"peakline": "Peakline", "xprof": "XProf"}
    lines = [
        "| what | program | runs | median | least | most |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for side, told in found.items():
        each = told["first_view_s_each"]
        lines.append(
            f"| first view of the trace, cold server | {names[side]} | {told['runs']} | "
            f"{told['first_view_s']:.2f} s | {min(each):.2f} s | {max(each):.2f} s |"
        )
        sizes = told["page_bytes_each"]
        lines.append(
            f"| memory of the page's process | {names[side]} | {told['runs']} | "
            f"{told['page_bytes'] / 2**20:.0f} MiB | {min(sizes) / 2**20:.0f} MiB | "
            f"{max(sizes) / 2**20:.0f} MiB |"
        )
    ours = found["peakline"]
    lines.append(
        f"| zoom to drawn, 95 of 100 ({ours['zooms']} zooms) | Peakline | {ours['runs']} | "
        f"{ours['zoom_p95_ms']:.0f} ms | | |"
    )
    for name, most in _LIMITS.items():
        lines.append(
            f"| limit {name} {most:g} | {'kept' if ours[name] < most else '**not kept**'} | | | | |"
        )
    return lines


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, help="the directory that has xprof's command")
    parser.add_argument("--data", type=Path, help="an XSpace")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--zooms", type=int, default=ZOOMS)
    parser.add_argument("--drive", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.drive:
        side, port, zooms = arguments.drive
        print(json.dumps(drive(side, int(port), int(zooms))))
        return 0
    if arguments.data is None:
        parser.error("--data is needed")
    sides = ["peakline", *(["xprof"] if arguments.peers else [])]
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    # A hard link needs the same file system: the directory lies beside the file.
    with tempfile.TemporaryDirectory(dir=arguments.data.parent) as scratch:
        folder = Path(scratch) / "plugins/profile" / SESSION
        folder.mkdir(parents=True)
        os.link(arguments.data, folder / "host.xplane.pb")
        arguments.data.read_bytes()
        for _ in range(arguments.runs):
            for side in sides:
                peers = arguments.peers or Path()
                runs[side].append(measure(side, Path(scratch), peers, arguments.zooms))
    found = {side: summary(each) for side, each in runs.items()}
    found_on = {"file": arguments.data.name, "load_before": os.getloadavg()[0]}
    print(json.dumps({"what": found_on, **found}, indent=2))
    print("\n".join(rows(found)), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
