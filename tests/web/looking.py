"""Looking at the page: open a view, ask the service for the same, check it, store a picture."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlencode

from tests.waiting import HANG_S

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page
    from tests.web.servers import PageServer

PICTURES = Path(__file__).parent.parent.parent / "build" / "screenshots"

_LOOK_S = 0.02
_LONGEST_LOOK_S = 0.2
# What an event is still to come of: a changed address, an opened part, the next picture.
_CAUGHT_UP = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(null)))))"""
_SETTLED = """() => {
  const main = document.getElementById("main");
  return main.childNodes.length > 0
    && !main.querySelector(".state.loading, [aria-busy='true'], progress:not([value])")
    && !document.querySelector("#answer:not([hidden]) .coming");
}"""
# First to where nothing is, so that the view begins anew also where it was shown before. Whoever
# listened before us, as the page does, knows of the change when we do.
_VISIT = """async (hash) => {
  for (const next of ["#/nowhere", hash]) {
    if (location.hash === next) continue;
    const changed = new Promise((done) => addEventListener("hashchange", done, {once: true}));
    location.hash = next;
    await changed;
  }
}"""
_AXE = """async (rules) => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  const found = await axe.run(document, {
    runOnly: rules ? {type: "rule", values: rules} : {type: "tag", values: tags},
    resultTypes: ["violations"],
  });
  return found.violations.map(({id, impact, help, nodes}) =>
    ({id, impact, help, nodes: nodes.map(({html, failureSummary}) => [html, failureSummary])}));
}"""
_OF_COLORS = ("color-contrast", "link-in-text-block")
"""The rules of axe, among those that are asked for, that look at colors."""
_LATER_MS = 400
"""Longer than the page waits before it changes the address: of two timers of a page, the one that
is due first comes first, however slow the page is.
"""


def address(path: str = "/", **query: object) -> str:
    """The fragment of an address: ``address("/session/leak_list/memory", at=5)``.

    Names in ``path`` are encoded by `quote_part`, where they need it; what is None in ``query`` is
    left out.
    """
    text = urlencode(
        {name: value for name, value in query.items() if value is not None}, quote_via=quote
    )
    return f"#{path}{'?' if text else ''}{text}"


def quote_part(text: str) -> str:
    """A name as one part of a path."""
    return quote(text, safe="")


def open_view(page: Page, server: PageServer, path: str = "/", **query: object) -> None:
    """Go to an address, and come back when the page shows what it will show.

    The view is made anew, in the document that is open: it is loaded only where another one is.
    """
    if page.is_stale or page.url.partition("#")[0] != f"{server.url}/":
        load_view(page, server, path, **query)
    else:
        page.evaluate(_VISIT, address(path, **query))
        settle(page)


def load_view(page: Page, server: PageServer, path: str = "/", **query: object) -> None:
    """Load the page at an address, and come back when it shows what it will show."""
    load_again(page, f"{server.url}/{address(path, **query)}")


def load_again(page: Page, url: str) -> None:
    """Load the page at a URL, also where it is open already; come back when it shows all."""
    if page.url.partition("#")[0] == url.partition("#")[0]:
        # To go to another fragment would load nothing.
        page.evaluate("(url) => history.replaceState(null, '', url)", url)
        page.reload()
    else:
        page.goto(url)
    page.is_stale = False
    settle(page)


def settle(page: Page) -> None:
    """Come back when nothing is being loaded any more.

    What an action loads has begun then only if the action says so at once: a click of a button
    does, while an address, a key pressed in a field or a timer comes a moment later. Of those wait
    for what comes of it: `eventually`, `tells`, `wait_for_params`, or ``wait_for`` of a locator.
    """
    page.evaluate(_CAUGHT_UP)
    page.wait_for_function(_SETTLED)


def outwait_timers(page: Page) -> None:
    """Come back when what the page does a moment later, such as to change the address, is done."""
    page.evaluate("(ms) => new Promise((done) => setTimeout(() => done(null), ms))", _LATER_MS)


def eventually(read: Callable[[], object], expected: object) -> None:
    """Read again and again until it is what is expected."""
    end, pause_s = time.monotonic() + HANG_S, _LOOK_S
    while (result := read()) != expected and time.monotonic() < end:
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_LOOK_S)
    assert result == expected


def tells(place: Locator, *texts: str) -> None:
    """Come back when a part of the page has all the texts in it."""
    end, pause_s = time.monotonic() + HANG_S, _LOOK_S
    while True:
        result = place.inner_text()
        missing = [text for text in texts if text not in result]
        if not missing or time.monotonic() > end:
            break
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_LOOK_S)
    assert missing == [], result


def params(page: Page) -> dict[str, str]:
    """The parameters of the address: what is shown is told to it a moment later."""
    query = page.evaluate("location.hash").partition("?")[2]
    return {name: values[0] for name, values in parse_qs(query).items()}


def wait_for_params(page: Page, **expected: object) -> dict[str, str]:
    """Come back when the address says so; ``None`` is a parameter that is not there."""
    wanted = {name: None if value is None else str(value) for name, value in expected.items()}
    eventually(lambda: {name: params(page).get(name) for name in wanted}, wanted)
    return params(page)


def api(server: PageServer, path: str, body: object = None, **query: object) -> Any:
    """What the service answers at ``/api/PATH``, JSON read; with ``body`` (JSON) it is posted.

    Names in ``path`` are encoded by `quote_part`, where they need it.
    """
    url = f"{server.url}/api/{path}{'?' if query else ''}{urlencode(query)}"
    headers = {"Authorization": f"Bearer {server.token}"} if server.token else {}
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, data, headers)  # noqa: S310  (our own server)
    with urllib.request.urlopen(request, timeout=HANG_S) as answer:  # noqa: S310
        return json.load(answer)


def expect_accessible(page: Page, rules: Sequence[str] | None = None) -> None:
    """Axe finds nothing serious in the page, by WCAG 2.2 A and AA or by these rules of axe."""
    # What is half scrolled out of the window is too small a target, to axe.
    page.evaluate("scrollTo(0, 0)")
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(axe_script())
    result = page.evaluate(_AXE, rules)
    serious = [one for one in result if one["impact"] in {"serious", "critical"}]
    assert serious == [], json.dumps(serious, indent=1)


def expect_accessible_in_both_schemes(page: Page, picture: str) -> None:
    """`expect_accessible` in light; in dark the same page for what colors change. Two pictures."""
    screenshot(page, f"{picture}_light")
    expect_accessible(page)
    page.emulate_media(color_scheme="dark")
    settle(page)
    screenshot(page, f"{picture}_dark")
    expect_accessible(page, _OF_COLORS)
    page.emulate_media(color_scheme="light")
    settle(page)


@cache
def axe_script() -> str:
    """Axe, as its package has it."""
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def screenshot(page: Page, name: str, part: Locator | None = None) -> None:
    """Store a picture of what is shown, or of a ``part``, where the environment asks for them."""
    if os.environ.get("PEAKLINE_SCREENSHOTS"):
        PICTURES.mkdir(parents=True, exist_ok=True)
        (part or page).screenshot(path=PICTURES / f"{name}.png")
