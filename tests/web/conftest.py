"""A real browser, a real server over the samples, and a page that may not complain."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# Before it is imported: what it asserts is explained as in a test.
pytest.register_assert_rewrite("tests.web.looking")

from tests.sweeps import choice  # noqa: E402
from tests.waiting import HANG_S  # noqa: E402
from tests.web.browsing import Browsing, Tab  # noqa: E402
from tests.web.samples import make_logdir  # noqa: E402
from tests.web.servers import PageServer, process_server, thread_server  # noqa: E402

from peakline.service.background import WarmUp  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Remember of each test whether it failed: what it leaves of a page is not to be used."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """Every sample is a session of it (`tests.web.samples`); it is read-only."""
    logdir = make_logdir(tmp_path_factory.mktemp("page"))
    with process_server(logdir, "--read-only") as running:
        yield running


@pytest.fixture(scope="session")
def run_server() -> Callable[..., AbstractContextManager[PageServer]]:
    """`thread_server`, once all is imported that a server imports while it answers.

    pytest parses what is imported, to explain assertions, and Python 3.11 cannot parse in two
    threads at a time (its parser counts the depth of both together).
    """
    warm_up = WarmUp(lambda: None)
    warm_up.start()
    assert warm_up.wait(HANG_S)
    return thread_server


@pytest.fixture
def serve(
    run_server: Callable[..., AbstractContextManager[PageServer]],
) -> Iterator[Callable[..., PageServer]]:
    """Start a server of the test's own: ``serve(logdir, max_upload_bytes=1000)``.

    Ask for it before ``page``: what ends last is still there for the page to be left.
    """
    with ExitStack() as stack:
        yield lambda *logdirs, **settings: stack.enter_context(run_server(*logdirs, **settings))


@pytest.fixture(scope="session")
def browser_path() -> str:
    """Where a Chromium is; without one the test is skipped."""
    named = os.environ.get("PEAKLINE_BROWSER")
    result = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    if result is None:
        pytest.skip("no Chromium is installed; PEAKLINE_BROWSER may name one")
    return result


@pytest.fixture(scope="session")
def browsing(browser_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browsing]:
    """The browser of this process."""
    running = Browsing(browser_path, tmp_path_factory.mktemp("home"))
    yield running
    running.close()


@pytest.fixture
def tabs(browsing: Browsing) -> Iterator[Browsing]:
    """The browser, while a test uses it."""
    with browsing.in_use():
        yield browsing


@pytest.fixture
def page(tabs: Browsing, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page of 1400 by 900 points.

    At the end nothing may be left of it to complain about: no error or warning in the console, no
    uncaught error, nothing against the Content-Security-Policy, no request to another origin, and
    none that failed, except for URLs that hold one of the texts in ``page.allowed_failures``. Until
    then ``page.watch.complaints`` has what was seen.
    """
    yield from _used(tabs.tab(0), request.node)


@pytest.fixture
def other_page(tabs: Browsing, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page as ``page`` is, of somebody else: nothing of its browser is shared with that one."""
    yield from _used(tabs.tab(1), request.node)


def _used(tab: Tab, test: pytest.Item) -> Iterator[Page]:
    tab.begin(f"{test.nodeid} {tab.number}")
    yield tab.page
    if test.stash.get(FAILED, False):
        tab.is_unusable = True
        for complaint in tab.page.watch.complaints:
            print("the page:", *complaint)  # noqa: T201  (pytest shows it with the failure)
        return
    try:
        complaints = tab.end()
    except BaseException:
        tab.is_unusable = True
        raise
    tab.is_unusable = bool(complaints)
    assert complaints == []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the scenarios in a browser those that are not chosen are marked ``nightly``."""
    folder = Path(__file__).parent
    chosen = choice()["page"]
    for item in items:
        if item.path.parent == folder and "browser_path" in getattr(item, "fixturenames", ()):
            names = {f"{item.path.stem}::{one}" for one in (item.originalname, item.name)}
            if not names & chosen.keys():
                item.add_marker(pytest.mark.nightly)
