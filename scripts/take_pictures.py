"""Take the pictures of the page that the documentation shows, of real samples in tests/data.

    make pictures

Writes docs/images/NAME.png: every view, in Chromium. Look at them before they are committed;
nothing compares them.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from playwright.sync_api import sync_playwright  # noqa: E402
from tests.web.conftest import BROWSERS  # noqa: E402
from tests.web.looking import settle  # noqa: E402
from tests.web.samples import make_logdir  # noqa: E402
from tests.web.servers import thread_server  # noqa: E402

PICTURES = {
    "summary": "session/leak_list/summary",
    "memory": "session/tf2_cnn/memory?draw=stack",
    "memory_torch": "session/torch_snapshot/memory?draw=buffers",
    "timeline": "session/slow_step/timeline",
    "steps": "session/slow_step/steps?name=train%206",
    "graph": "session/jax_cpu/graph",
    "sessions": "",
    "compare": "compare?first=doubled_batch_healthy&second=doubled_batch",
}
"""The address of each picture; its name is the file's."""
_SESSIONS = (
    "doubled_batch doubled_batch_healthy eager_loop graph hlo_dump input_bound jax_captured"
    " jax_cpu leak_list memory_log oom_report recompiling saved_model slow_step tf2_cnn"
    " tf2_multihost torch_snapshot torch_trace"
)
_SIZE = (1200, 750)
"""Narrow, so that a page which shows the picture at half its width can still be read."""
_SIZES = {"memory": (1200, 940), "sessions": (1440, 720)}
"""Where that cuts off what the picture is for."""


def main() -> int:
    """Take all of them, or those that are named."""
    named = os.environ.get("PEAKLINE_BROWSER")
    program = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise SystemExit("no Chromium is installed; PEAKLINE_BROWSER may name one")
    images = ROOT / "docs/images"
    images.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        logdir = make_logdir(Path(scratch), *_SESSIONS.split())
        with thread_server(logdir, read_only=True) as server, sync_playwright() as playwright:
            running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            page = running.new_page(locale="en-US", timezone_id="UTC")
            for name in sys.argv[1:] or PICTURES:
                width, height = _SIZES.get(name, _SIZE)
                page.set_viewport_size({"width": width, "height": height})
                page.goto("about:blank")
                page.goto(f"{server.url}/#/{PICTURES[name]}")
                settle(page)
                page.wait_for_load_state("networkidle")
                page.screenshot(path=images / f"{name}.png", animations="disabled")
                print(f"docs/images/{name}.png")
            running.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
