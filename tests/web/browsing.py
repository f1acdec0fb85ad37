"""A Chromium for all tests of a process, and tabs in it that stay open from test to test.

To open a tab and load the page costs a process, a hundred files and their compilation. What readers
do most, to go from one address to another, costs a tenth of that, and so tests do it as well. A
test that is about the loading loads (`tests.web.looking.load_view`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from zlib import crc32

from tests.waiting import HANG_S, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, Response

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No name but this machine's is ever found: what works here works offline.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
SIZE = {"width": 1400, "height": 900}
LOOK = {"color_scheme": "light", "reduced_motion": "reduce"}
SLOWDOWN = float(os.environ.get("PEAKLINE_BROWSER_SLOWDOWN", "0"))
"""How many times slower pages compute than this machine lets them; up to 1 they are left alone."""
LATENCY_MS = 30.0
"""The most that a slowdown of 1 adds to a question to the service, and again to its answer."""
STOPPED = "net::ERR_ABORTED"
"""What a request ends with that the page itself gives up, as it was overtaken by another."""

_LISTEN = """addEventListener("securitypolicyviolation", (event) => {
  reportViolation(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`
    + ` (${event.sourceFile}:${event.lineNumber})`);
});"""
# Questions and answers overtake each other, for every test always in the same way.
_DELAY = """(() => {
  const {fetch} = window;
  let state = SEED;
  const share = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const pause = () => new Promise((done) => setTimeout(done, share() * MOST_MS));
  window.delayFrom = (seed) => { state = seed; };
  window.delayed = 0;
  window.fetch = async (...asked) => {
    window.delayed += 1;
    try {
      await pause();
      const answer = await fetch(...asked);
      await pause();
      asked[1]?.signal?.throwIfAborted();
      return answer;
    } finally {
      window.delayed -= 1;
    }
  };
})();"""
# Whatever is due now is done: events, pictures, timers of no time. How many questions are delayed.
_TURN = """() => new Promise((done) => requestAnimationFrame(() =>
  requestAnimationFrame(() => setTimeout(() => done(globalThis.delayed ?? 0)))))"""
# To an address that shows nothing, which ends what was shown before.
_LEAVE = """async () => {
  if (location.hash === "#/nowhere") return;
  const gone = new Promise((done) => addEventListener("hashchange", done, {once: true}));
  location.hash = "#/nowhere";
  await gone;
}"""
# Back to what a new tab is; whether something of the test is still there.
_TIDY = """() => {
  localStorage.clear();
  sessionStorage.clear();
  document.activeElement?.blur();
  getSelection().empty();
  return document.querySelector("dialog") !== null
    || document.documentElement.dataset.theme !== undefined;
}"""


class Browsing:
    """A running Chromium without a window, at ``executable``, and its tabs.

    ``home`` is a folder that it may write to, in place of the home directory. Playwright's event
    loop counts as running in this thread, which would disturb other tests' loops: it does so only
    inside of `in_use`.
    """

    def __init__(self, executable: str, home: Path) -> None:
        from playwright.sync_api import sync_playwright

        self._executable, self._home = executable, home
        self._playwright = sync_playwright().start()
        self._loop = asyncio.get_running_loop()
        self._browser: Browser | None = None
        self._tabs: dict[int, Tab] = {}
        asyncio._set_running_loop(None)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """What is asked of the browser is asked in this block."""
        asyncio._set_running_loop(self._loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    def tab(self, number: int) -> Tab:
        """The tab of this number, which is opened unless it is open."""
        browser = self._running()
        if number in self._tabs and self._tabs[number].is_unusable:
            self._tabs.pop(number).close()
        if number not in self._tabs:
            self._tabs[number] = Tab(browser, number)
        return self._tabs[number]

    def close(self) -> None:
        """End the browser."""
        with self.in_use():
            if self._browser is not None:
                self._browser.close()
            self._playwright.stop()

    def _running(self) -> Browser:
        """The browser, which is started again should it have crashed: its tabs are gone then."""
        if self._browser is None or not self._browser.is_connected():
            self._tabs.clear()
            self._browser = self._playwright.chromium.launch(
                executable_path=self._executable,
                args=list(FLAGS),
                env={**os.environ, "HOME": str(self._home)},
                timeout=HANG_S * 1000,
            )
        return self._browser


class Tab:
    """A page in a context of its own, used by one test after the other between `begin` and `end`.

    ``page.watch`` has what the page did in this test, ``page.allowed_failures`` the texts of URLs
    that may fail. A test that changes the page's own objects sets ``page.is_stale``: the next one
    loads it anew.
    """

    def __init__(self, browser: Browser, number: int) -> None:
        self.number = number
        self._context = browser.new_context(
            viewport=SIZE, locale="en-US", timezone_id="UTC", **LOOK
        )
        self._context.set_default_timeout(HANG_S * 1000)
        self.page = self._context.new_page()
        self.page.watch = Watch(self.page)
        self.page.allowed_failures = []
        self.page.is_stale = False
        self.page.expose_function("reportViolation", self.page.watch.violated)
        self.page.add_init_script(_LISTEN)
        self.is_unusable = False
        if SLOWDOWN > 1:
            self._slow_down()

    def begin(self, name: str) -> None:
        """A test of this name begins."""
        self.page.allowed_failures.clear()
        self.page.watch.clear()
        if SLOWDOWN > 1:
            seed = crc32(f"{SLOWDOWN} {name}".encode())
            self.page.evaluate("(seed) => globalThis.delayFrom?.(seed)", seed)

    def end(self) -> list[str]:
        """A test ends: what the page did in it that it should not have done.

        Nothing of the test goes on afterwards: no view, no question to the service.
        """
        page = self.page
        if page.is_closed():
            self.is_unusable = True
        else:
            page.unroute_all()
            if page.url.startswith("http"):
                self._leave()
        return [
            what
            for what, url in page.watch.complaints
            if not any(allowed in url for allowed in page.allowed_failures if url)
        ]

    def close(self) -> None:
        """Close it, for good."""
        self._context.close()

    def _leave(self) -> None:
        page = self.page
        if urlsplit(page.url).path == "/":
            page.evaluate(_LEAVE)
        page.watch.hear()
        page.is_stale |= page.evaluate(_TIDY)
        page.mouse.move(0, 0)
        page.emulate_media(**LOOK)
        if page.viewport_size != SIZE:
            page.set_viewport_size(SIZE)

    def _slow_down(self) -> None:
        """Make the page behave as on a machine `SLOWDOWN` times slower, with a network between."""
        session = self._context.new_cdp_session(self.page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
        most = str(SLOWDOWN * LATENCY_MS)
        self.page.add_init_script(_DELAY.replace("SEED", "0").replace("MOST_MS", most))


class Watch:
    """Collects what a page does, and of that what it should not do."""

    def __init__(self, page: Page) -> None:
        self.complaints: list[tuple[str, str]] = []
        """What, and the URL that it is about."""
        self.requests: list[str] = []
        """The URLs of requests."""
        self._page = page
        self._running: set[Request] = set()
        page.on("console", self._console)
        page.on("dialog", self._dialog)
        page.on("pageerror", lambda error: self._note(f"uncaught: {error}"))
        page.on("request", self._request)
        page.on("requestfailed", self._failed)
        page.on("requestfinished", self._finished)
        page.on("response", self._response)

    def clear(self) -> None:
        """Forget what was collected."""
        self.complaints.clear()
        self.requests.clear()

    def hear(self) -> None:
        """Wait for the end of all requests, and for what comes of it: all of it is collected then.

        What happens in a page comes here in its order, so that an answer of the page is behind all
        that happened before.
        """
        until(self._is_quiet, "the end of a request, or the reading of its answer")

    def violated(self, text: str) -> None:
        self._note(f"against the policy: {text}")

    def _is_quiet(self) -> bool:
        return not self._page.evaluate(_TURN) and not self._running

    def _note(self, what: str, url: str = "") -> None:
        self.complaints.append((what, url))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning", "assert"}:
            self._note(f"console {message.type}: {message.text}", message.location.get("url", ""))

    def _dialog(self, dialog: Dialog) -> None:
        self._note(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)
        if request.is_navigation_request():
            self._running.clear()  # the document that made them is gone, and so are they
            return
        if urlsplit(request.url).scheme in {"data", "blob"}:
            return
        self._running.add(request)
        if _origin(request.url) != _origin(request.frame.url):
            self._note(f"asks another origin: {request.url}")

    def _finished(self, request: Request) -> None:
        self._running.discard(request)

    def _failed(self, request: Request) -> None:
        self._running.discard(request)
        if request.failure != STOPPED:
            self._note(f"failed: {request.method} {request.url}: {request.failure}", request.url)

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            method = response.request.method
            self._note(f"{response.status} for {method} {response.url}", response.url)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
