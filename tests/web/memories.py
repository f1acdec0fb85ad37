"""The memory view in the browser: its address, its chart, its rows."""

import re

from tests.web.looking import api, params, quote_part

LEFT, RIGHT = 84, 14
"""Pixels of the chart left and right of where time is."""


def view(name):
    """Its address."""
    return f"/session/{quote_part(name)}/memory"


def live(server, session, **query):
    """What the service's tool answers."""
    return api(server, f"sessions/{quote_part(session)}/tools/live_memory", **query)


def steps_of(server, session):
    """The steps, as SQL has them."""
    query = {"query": "select step_id, name, start_ps, end_ps from steps"}
    return api(server, f"sessions/{session}/sql", query)


def wait_for_param(page, name):
    """Come back when the address has it, which comes a moment later; what it says."""
    page.wait_for_function(
        "(name) => new URLSearchParams(location.hash.split('?')[1]).has(name)", arg=name
    )
    return params(page)[name]


def fact(page, name, part=".memory-live > .stack"):
    """What is told of the moment, or in another ``part``, under a name."""
    result = page.locator(f"{part} dl.facts > div").filter(has=page.get_by_text(name, exact=True))
    return result.locator("dd").inner_text()


def rows(page):
    """The texts of the rows in view, a list of cells each."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".memory-live .table .row")].map((row) =>
          [...row.children].map((cell) => cell.innerText))"""
    )


def chart(page):
    """Memory over time."""
    return page.locator(".memory-chart")


def drawn(page):
    """The viewport of the picture, which has to be as fine as the screen."""
    page.wait_for_selector(".memory-chart[aria-busy='false']")
    return [int(part) for part in re.findall(r"-?\d+", chart(page).get_attribute("data-drawn"))][:2]


def bounds(page):
    """The viewport of the picture as it was drawn last, ps."""
    page.wait_for_selector(".memory-chart[data-drawn]")
    begin, end = re.fullmatch(r"(-?\d+)-(-?\d+)", chart(page).get_attribute("data-drawn")).groups()
    return int(begin), int(end)


def place_of(page, time_ps):
    """Where a time is on the screen."""
    box, (begin, end) = chart(page).bounding_box(), bounds(page)
    share = (time_ps - begin) / (end - begin)
    return box["x"] + LEFT + share * (box["width"] - LEFT - RIGHT), box["y"] + 150
