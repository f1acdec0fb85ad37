"""Looking at the page: open a view, ask the service for the same, check it, keep a picture."""

from __future__ import annotations

import json
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
    from tests.web.conftest import PageServer

__all__ = [
    "SLOW_MS",
    "address",
    "api",
    "eventually",
    "expect_accessible",
    "open_view",
    "params",
    "quote_part",
    "screenshot",
    "settle",
    "tells",
    "wait_for_params",
]

SLOW_MS = 180_000
"""What a view of a sample may take on a machine that does much else, and compiles for it first."""
PICTURES = Path(__file__).parent.parent.parent / "build" / "screenshots"

_LOOK_S = 0.02
# What an event is still to come of: a changed address, an opened part, the next picture.
_CAUGHT_UP = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(null)))))"""
_SETTLED = """() => {
  const main = document.getElementById("main");
  return main.childNodes.length > 0
    && !main.querySelector(".state.loading, [aria-busy='true'], progress:not([value])");
}"""
_AXE = """async (context) => {
  const found = await axe.run(context ?? document, {
    runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
    resultTypes: ["violations"],
  });
  return found.violations.map(({id, impact, help, nodes}) =>
    ({id, impact, help, nodes: nodes.map(({html, failureSummary}) => [html, failureSummary])}));
}"""


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
    """Load the page anew at an address, and come back when it shows what it will show."""
    page.goto("about:blank")  # an address that differs in its fragment alone loads nothing
    page.goto(f"{server.url}/{address(path, **query)}")
    settle(page)


def settle(page: Page) -> None:
    """Come back when nothing is being loaded any more.

    What an action loads has begun then only if the action says so at once: a click of a button
    does, while an address, a key pressed in a field or a timer comes a moment later. Of those wait
    for what comes of it: `eventually`, `tells`, `wait_for_params`, or ``wait_for`` of a locator.
    """
    page.evaluate(_CAUGHT_UP)
    page.wait_for_function(_SETTLED, timeout=SLOW_MS)


def eventually(read: Callable[[], object], expected: object) -> None:
    """Read again and again until it is what is expected."""
    end = time.monotonic() + SLOW_MS / 1000
    while (found := read()) != expected and time.monotonic() < end:
        time.sleep(_LOOK_S)
    assert found == expected


def tells(place: Locator, *texts: str) -> None:
    """Come back when a part of the page has all the texts in it."""
    end = time.monotonic() + SLOW_MS / 1000
    while True:
        found = place.inner_text()
        missing = [text for text in texts if text not in found]
        if not missing or time.monotonic() > end:
            break
        time.sleep(_LOOK_S)
    assert missing == [], found


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


def expect_accessible(page: Page, within: str | None = None, ignored: Sequence[str] = ()) -> None:
    """Axe finds nothing serious in the page, or ``within`` a selector, by WCAG 2.2 A and AA.

    ``ignored`` are rules of axe by their ids; the caller says why.
    """
    page.evaluate(axe_script())
    found = page.evaluate(_AXE, within)
    serious = [
        one
        for one in found
        if one["impact"] in {"serious", "critical"} and one["id"] not in ignored
    ]
    assert serious == [], json.dumps(serious, indent=1)


@cache
def axe_script() -> str:
    """Axe, as its package has it."""
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def screenshot(page: Page, name: str, part: Locator | None = None) -> Path:
    """Keep a picture of what is shown, or of a ``part``, to be looked at."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    place = PICTURES / f"{name}.png"
    (part or page).screenshot(path=place)
    return place
