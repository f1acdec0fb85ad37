"""Chromium for the measurements: where it is, how it is started, what it takes in memory."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

LONG_MS = 600_000
"""Nothing that is measured takes longer, or it fails."""
TWO_FRAMES = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(done)))"""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def missing() -> str | None:
    """What there must be and is not, in words."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    if _browser() is None:
        return "no Chromium is installed; PEAKLINE_BROWSER may name one"
    return None


def _browser() -> str | None:
    result = next(filter(None, map(shutil.which, _BROWSERS)), None)
    return os.environ.get("PEAKLINE_BROWSER") or result


@contextlib.contextmanager
def browser() -> Iterator[Page]:
    """An empty page of a new browser, which reaches no other host than this machine."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=_browser(), args=list(_FLAGS))
        page = running.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(LONG_MS)
        page.goto("about:blank")
        yield page
        running.close()


def version(page: Page) -> str:
    """The browser of a page, with its version."""
    running = page.context.browser
    return f"Chromium {running.version}" if running else "Chromium"


def driven(program: str, *words: str) -> Any:
    """What a program printed as JSON that drives a browser in a process of its own.

    Raises SystemExit with the last it wrote where it fails.
    """
    command = [sys.executable, program, "--drive", *words]
    limit_s = LONG_MS / 1000 * 2
    child = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    if child.returncode:
        raise SystemExit(f"{' '.join(words)}: {child.stderr[-2000:]}")
    return json.loads(child.stdout)


def memory() -> tuple[int, int]:
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
