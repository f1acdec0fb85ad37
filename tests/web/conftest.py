"""A real browser, a real server over the samples, and a page that may not complain.

The browser lives as long as a module of tests: Playwright's event loop counts as running in this
thread, and other tests have loops of their own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zlib import crc32

import pytest

# Before it is imported: what it asserts is told as in a test.
pytest.register_assert_rewrite("tests.web.looking")

from tests.service.server_process import ServerProcess, running_server  # noqa: E402
from tests.web.looking import SLOW_MS  # noqa: E402
from tests.web.samples import make_logdir  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
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
  window.fetch = async (...asked) => {
    await pause();
    const answer = await fetch(...asked);
    await pause();
    asked[1]?.signal?.throwIfAborted();
    return answer;
  };
})();"""


@dataclass(frozen=True)
class PageServer:
    """A running ``peakline serve``: ``url`` is its page, without a slash at the end."""

    process: ServerProcess
    logdir: Path
    token: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.process.http_port}"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """Every sample is a session of it (`tests.web.samples`); it is read-only."""
    logdir = make_logdir(tmp_path_factory.mktemp("page"))
    with running_server(logdir, "--read-only", "--access-log", "off") as process:
        yield PageServer(process, logdir)


@pytest.fixture(scope="session")
def writable_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """One that takes captures and uploads; it begins with two sessions."""
    logdir = make_logdir(tmp_path_factory.mktemp("writable"), "tf2_cnn", "leak_list")
    with running_server(logdir, "--access-log", "off") as process:
        yield PageServer(process, logdir)


@pytest.fixture(scope="session")
def empty_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """One that has no session yet, and is read-only."""
    logdir = tmp_path_factory.mktemp("empty")
    with running_server(logdir, "--read-only", "--access-log", "off") as process:
        yield PageServer(process, logdir)


@pytest.fixture(scope="session")
def guarded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """One that asks for a token, its `token`."""
    word = "a-t0ken-of-the-tests"
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text(word, encoding="utf-8")
    tokens.chmod(0o600)
    logdir = make_logdir(tmp_path_factory.mktemp("guarded"), "leak_list")
    with running_server(
        logdir, "--read-only", "--access-log", "off", "--token-file", tokens
    ) as process:
        yield PageServer(process, logdir, word)


@pytest.fixture
def serve() -> Iterator[Callable[..., PageServer]]:
    """Start a server of the test's own: ``serve(logdir, "--max-upload", 1000)``.

    Ask for it before ``page``: what ends last is still there for the page to be closed.
    """
    with ExitStack() as stack:

        def start(logdir: Path, *words: object, token: str = "") -> PageServer:
            running = running_server(logdir, "--access-log", "off", *words)
            return PageServer(stack.enter_context(running), logdir, token)

        yield start


@pytest.fixture(scope="session")
def browser_path() -> str:
    """Where a Chromium is; without one the test is skipped."""
    named = os.environ.get("PEAKLINE_BROWSER")
    found = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium is installed; PEAKLINE_BROWSER may name one")
    return found


@pytest.fixture(scope="module")
def browser(browser_path: str) -> Iterator[Browser]:
    """A running Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=browser_path, args=list(FLAGS))
        yield launched
        launched.close()


class Watch:
    """Collects what a page does that it should not do."""

    def __init__(self, page: Page) -> None:
        self.complaints: list[tuple[str, str]] = []
        """What, and the URL that it is about."""
        self._page = page
        page.on("console", self._said)
        page.on("pageerror", lambda error: self._note(f"uncaught: {error}"))
        page.on("request", self._asked)
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)

    def hear(self) -> None:
        """Wait for what the page has not told yet: events come a moment after their cause."""
        if not self._page.is_closed():
            self._page.evaluate("() => new Promise((resolve) => setTimeout(resolve, 50))")

    def violated(self, text: str) -> None:
        self._note(f"against the policy: {text}")

    def _note(self, what: str, url: str = "") -> None:
        self.complaints.append((what, url))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning", "assert"}:
            self._note(f"console {message.type}: {message.text}", message.location.get("url", ""))

    def _asked(self, request: Request) -> None:
        if request.is_navigation_request() or urlsplit(request.url).scheme in {"data", "blob"}:
            return
        if _origin(request.url) != _origin(request.frame.url):
            self._note(f"asks another origin: {request.url}")

    def _failed(self, request: Request) -> None:
        if request.failure != STOPPED:
            self._note(f"failed: {request.method} {request.url}: {request.failure}", request.url)

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            method = response.request.method
            self._note(f"{response.status} for {method} {response.url}", response.url)


def _slow_down(page: Page, seed: int) -> None:
    """Make a page behave as on a machine `SLOWDOWN` times slower, with a network between."""
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
    most = str(SLOWDOWN * LATENCY_MS)
    page.add_init_script(_DELAY.replace("SEED", str(seed)).replace("MOST_MS", most))


@pytest.fixture
def new_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Callable[..., Page]]:
    """Open a page in a context of its own: ``new_page(color_scheme="dark")``.

    At the end nothing may be left of it to complain about: no error or warning in the console, no
    uncaught error, nothing against the Content-Security-Policy, no request to another origin, and
    none that failed, except for URLs that hold one of the texts in ``page.allowed_failures``. Until
    then ``page.watch.complaints`` has what was seen.
    """
    opened: list[tuple[BrowserContext, Page, Watch]] = []

    def make(**options: Any) -> Page:
        chosen = {
            "viewport": SIZE,
            "locale": "en-US",
            "timezone_id": "UTC",
            "color_scheme": "light",
            "reduced_motion": "reduce",
        } | options
        context = browser.new_context(**chosen)
        context.set_default_timeout(SLOW_MS)
        page = context.new_page()
        page.allowed_failures = []
        page.watch = watch = Watch(page)
        page.expose_function("reportViolation", watch.violated)
        page.add_init_script(_LISTEN)
        if SLOWDOWN > 1:
            _slow_down(page, crc32(f"{SLOWDOWN} {request.node.nodeid} {len(opened)}".encode()))
        opened.append((context, page, watch))
        return page

    yield make
    complaints = []
    for context, page, watch in opened:
        watch.hear()
        complaints += [
            what
            for what, url in watch.complaints
            if not any(allowed in url for allowed in page.allowed_failures if url)
        ]
        context.close()
    assert complaints == []


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    """A page of 1400 by 900 points; see `new_page`."""
    return new_page()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
