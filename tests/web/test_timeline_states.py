"""The timeline of several hosts, of many lines, of little, of what is damaged; in every look."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.web.looking import (
    expect_accessible,
    expect_accessible_in_both_schemes,
    open_view,
    screenshot,
    settle,
    tells,
)
from tests.web.samples import HOSTILE, SAMPLES, THREADS
from tests.web.timelines import canvas, loaded, open_timeline, shows, tool


def test_each_host_has_its_own_lanes(page, server):
    hosts = sorted(
        re.sub(r"\.xplane\.pb(\.gz)?$", "", place.name) for place in SAMPLES["tf2_multihost"]
    )
    for host in hosts:
        open_timeline(page, server, "tf2_multihost", host=host)
        lanes = tool(server, "tf2_multihost", view="lanes", host=host)
        lines = sum(1 for count in lanes["line_events"] if count)
        shows(page, lanes["start_ps"], lanes["end_ps"])
        label = canvas(page).get_attribute("aria-label")
        assert label.startswith(f"Events of {lines} lines, from ")


def test_only_what_is_in_view_of_many_lines_is_asked_for(page, server):
    open_timeline(page, server, "threads")
    page.locator(".tl-scroller").evaluate("(one) => { one.scrollTop = 5000; }")
    page.get_by_text("worker 230", exact=True).wait_for()
    with page.expect_response(re.compile("view=tile.*lines=")):
        for _ in range(6):
            page.keyboard.press("w")
    settle(page)
    loaded(page)
    tiles = [parse_qs(urlsplit(url).query) for url in page.watch.requests if "view=tile" in url]
    ranges = [tile["lines"][0].split("-") for tile in tiles if "lines" in tile]
    assert ranges
    first, last = map(int, ranges[-1])
    assert 0 < first < 230 < last < THREADS - 1


def test_a_profile_without_timed_events_says_so(page, server):
    open_view(page, server, "/session/memory_log/timeline")
    page.get_by_role("heading", name="No timed events").wait_for()
    link = page.locator("main").get_by_role("link", name="Memory")
    assert link.get_attribute("href") == "#/session/memory_log/memory"
    expect_accessible(page)
    screenshot(page, "timeline-nothing")


def test_a_damaged_profile_is_an_error_with_its_reason(page, server):
    page.allowed_failures.append("/damaged/")
    open_view(page, server, "/session/damaged/timeline")
    page.get_by_text("not a profile that Peakline reads").wait_for()
    screenshot(page, "timeline-damaged")


def test_a_picture_that_does_not_come_can_be_asked_for_again(page, server):
    open_timeline(page, server, "slow_step")
    loaded(page)
    page.allowed_failures.append("view=tile")
    page.route(
        "**/*view=tile*",
        lambda route: route.fulfill(
            status=500,
            content_type="application/problem+json",
            body=json.dumps({"code": "INTERNAL", "detail": "a disk broke"}),
        ),
    )
    for _ in range(12):
        page.keyboard.press("w")
    page.get_by_text("a disk broke").wait_for()
    screenshot(page, "timeline-failed")
    page.unroute("**/*view=tile*")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector("canvas.tl-lanes[aria-busy=false]")
    settle(page)
    page.get_by_text("a disk broke").wait_for(state="hidden")


def test_names_are_never_markup(page, server):
    open_timeline(page, server, HOSTILE, q="img", tab="event")
    loaded(page)
    page.keyboard.press("n")
    page.locator("section[aria-label=Event]").wait_for()
    tells(page.locator(".tl-head h3"), HOSTILE)
    assert page.locator("main img").count() == 0
    expect_accessible(page)


@pytest.mark.parametrize("width", [1400, 1000])
def test_it_is_accessible_in_every_look(page, server, width):
    page.set_viewport_size({"width": width, "height": width // 10 * 7})
    open_timeline(page, server, "slow_step")
    loaded(page)
    expect_accessible_in_both_schemes(page, f"timeline-{width}")
