"""The timeline in the browser: opening it, where things lie on its canvas, what it tells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.web.looking import api, eventually, open_view, quote_part, settle

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page
    from tests.web.servers import PageServer

ROW_PX = 17
PIXELS = """([points]) => {
  const canvas = document.querySelector("canvas.tl-lanes"), ratio = devicePixelRatio;
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d", {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  return points.map(([x, y]) => {
    const [r, g, b, a] = context.getImageData(Math.floor(x * ratio), Math.floor(y * ratio), 1, 1)
      .data;
    return a ? `rgb(${r}, ${g}, ${b})` : "";
  });
}"""
"""The colors of points of the canvas; "" where nothing is drawn."""
COLORS = """async ([names]) => {
  const place = new URL("assets/js/views/timeline/colors.js", location.href);
  const {colorOf, cssColor} = await import(place);
  return names.map((name) => cssColor(colorOf(name)));
}"""
"""What events of some names are drawn in."""
_TOPS = """() => Object.fromEntries([...document.querySelectorAll(".tl-line")].map((label) =>
  [label.id.replace("tl-fold-", ""),
   new DOMMatrix(label.closest(".tl-label").style.transform).m42]))"""
# What the last picture was drawn of, once a change before this had its picture.
_SHOWN = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(() =>
    done(document.querySelector("canvas.tl-lanes").dataset.shown))))"""


def tool(server: PageServer, session: str, **query: object) -> Any:
    """What the service's tool answers."""
    return api(server, f"sessions/{quote_part(session)}/tools/timeline", **query)


def event_of(server: PageServer, session: str, event: object) -> Any:
    """All about an event."""
    return tool(server, session, view="event", event=event, with_step="false")["details"]


def found(server: PageServer, session: str, text: str, which: str = "first") -> Any:
    """The first or the last event whose name holds ``text``."""
    return tool(server, session, view="search", search=text)[which]


def open_timeline(page: Page, server: PageServer, session: str, **query: object) -> None:
    """Load it anew, until its first picture is whole."""
    open_view(page, server, f"/session/{quote_part(session)}/timeline", **query)
    page.wait_for_selector("canvas.tl-lanes[aria-busy=false]")


def loaded(page: Page) -> None:
    """Come back when what follows the first drawing is there: counters, steps, findings."""
    page.get_by_role("button", name=re.compile(r"^Steps( \(|:)")).wait_for()
    page.get_by_role("button", name=re.compile(r"^Findings( \(|:)")).wait_for()
    settle(page)


def canvas(page: Page) -> Locator:
    """The lanes."""
    return page.locator("canvas.tl-lanes")


def canvas_width(page: Page) -> int:
    """In CSS pixels."""
    return page.evaluate("document.querySelector('canvas.tl-lanes').clientWidth")


def line_tops(page: Page) -> dict[str, float]:
    """Where each line begins on the canvas, pixels, by its number."""
    return page.evaluate(_TOPS)


def shown(page: Page) -> tuple[int, int]:
    """The viewport that is drawn, in ps."""
    first, last = page.evaluate(_SHOWN).split()
    settle(page)
    return int(first), int(last)


def shows(page: Page, first: int, last: int) -> None:
    """Come back when this is drawn."""
    eventually(lambda: shown(page), (first, last))


def place_of(page: Page, event: Any) -> tuple[float, float]:
    """Where an event that is in view lies on the canvas, just below the upper edge of its row."""
    first, last = shown(page)
    scrolled = page.evaluate("document.querySelector('.tl-scroller').scrollTop")
    top = line_tops(page)[str(event["line"])] - scrolled
    middle = event["start_ps"] + event["duration_ps"] / 2
    return ((middle - first) / (last - first) * canvas_width(page)), top + event["row"] * ROW_PX + 1


def click_event(page: Page, event: Any) -> None:
    """Choose an event that is in view, as a reader does."""
    x, y = place_of(page, event)
    canvas(page).click(position={"x": x, "y": y + 5})


def facts(page: Page) -> dict[str, str]:
    """The chosen event's facts, by their names."""
    result = page.locator(".tl-body section[aria-label=Event] dl")
    return dict(
        result.evaluate(
            """(list) => [...list.querySelectorAll("dt")].map((term) =>
              [term.innerText, term.nextElementSibling.innerText])"""
        )
    )


def choose(page: Page, server: PageServer, session: str, text: str) -> Any:
    """Choose the first event whose name holds ``text``, by its address; wait for all about it."""
    event = found(server, session, text)
    open_timeline(page, server, session, event=event["event"], tab="event")
    page.get_by_role("heading", name=event["name"], exact=True).wait_for()
    page.locator("section[aria-label=Children]").wait_for()
    return event
