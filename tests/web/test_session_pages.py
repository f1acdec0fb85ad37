"""The list of some hundreds of sessions: it comes page by page, and the service searches it."""

import os
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.web.looking import (
    eventually,
    expect_accessible_in_both_schemes,
    open_view,
    params,
    settle,
    tells,
    wait_for_params,
)
from tests.web.samples import DATA

MANY = 450
PAGE = 100


@pytest.fixture(scope="module")
def many(run_server, tmp_path_factory):
    """A server of sessions that are links to one file."""
    logdir = tmp_path_factory.mktemp("many")
    for number in range(MANY):
        session = logdir / "plugins/profile" / f"run_{number}"
        session.mkdir(parents=True)
        (session / f"worker-{number % 9}.profile").symlink_to(DATA / "graph_def/frozen.pb")
        os.utime(session, (1_700_000_000 + number, 1_700_000_000 + number))
    with run_server(logdir, linked=(str(DATA),)) as server:
        yield server


def names(page):
    return page.locator(".table .row:not(.coming) [role=gridcell]:nth-child(2)").all_inner_texts()


def asked(page):
    """The questions for pages so far: offset and limit of each."""
    found = []
    for url in page.watch.requests:
        parts = urlsplit(url)
        if parts.path.endswith("/api/sessions"):
            query = parse_qs(parts.query)
            assert query["tools"] == ["false"]
            found.append((int(query.get("offset", ["0"])[0]), int(query["limit"][0])))
    return found


def scroll_to(page, place):
    page.evaluate("(top) => { document.querySelector('.table').scrollTop = top; }", 28 * place)


def test_the_first_page_comes_alone_and_others_when_they_are_scrolled_to(page, many):
    page.watch.requests.clear()
    open_view(page, many)
    tells(page.get_by_role("status").first, f"{MANY} sessions")
    assert asked(page) == [(0, PAGE)]
    assert page.get_by_role("grid").get_attribute("aria-rowcount") == str(MANY + 1)
    assert names(page)[:2] == ["run_449", "run_448"]
    scroll_to(page, 300)
    eventually(lambda: "run_149" in names(page), expected=True)
    assert (100, PAGE) not in asked(page)
    page.get_by_role("grid").press("End")
    eventually(lambda: names(page)[-1:], ["run_0"])


def test_only_rows_in_view_are_looked_into(page, many):
    page.watch.requests.clear()
    open_view(page, many)
    page.get_by_role("row").filter(has_text="run_449").get_by_role("link", name="SQL").wait_for()
    settle(page)
    assert 5 < len([url for url in page.watch.requests if "/api/sessions/run_" in url]) < 60


def test_the_service_searches_and_sorts(page, many):
    open_view(page, many)
    page.get_by_role("searchbox").fill("worker-4 run_2")
    matching = [k for k in range(MANY) if k % 9 == 4 and str(k).startswith("2")]
    tells(page.get_by_role("status").first, f"{len(matching)} of {MANY} sessions")
    eventually(lambda: names(page), [f"run_{k}" for k in reversed(matching)])
    page.get_by_role("button", name="Session", exact=True).click()
    eventually(lambda: names(page), [f"run_{k}" for k in matching])
    wait_for_params(page, q="worker-4 run_2", sort="name")
    open_view(page, many, **params(page))
    eventually(lambda: names(page), [f"run_{k}" for k in matching])
    page.get_by_role("searchbox").fill("nobody")
    page.get_by_text("No session matches.").wait_for()


def test_one_that_is_chosen_is_told_though_its_row_is_far_away(page, many):
    open_view(page, many, chosen="run_3")
    tells(page.get_by_role("region", name="Session run_3"), "worker-3")


@pytest.mark.parametrize("width", [1440, 800, 390])
def test_everybody_can_read_it_at_any_width(page, many, width):
    page.set_viewport_size({"width": width, "height": 900})
    try:
        open_view(page, many, q="run_12")
        expect_accessible_in_both_schemes(page, f"session_pages_{width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        page.set_viewport_size({"width": 1400, "height": 900})
