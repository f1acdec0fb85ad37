"""Searching and choosing in the timeline: what it tells, and that its links last."""

import re

import pytest
from tests.waiting import until
from tests.web.looking import (
    api,
    eventually,
    expect_accessible,
    load_again,
    params,
    screenshot,
    settle,
    wait_for_params,
)
from tests.web.timelines import (
    COLORS,
    PIXELS,
    canvas,
    click_event,
    event_of,
    facts,
    found,
    loaded,
    open_timeline,
    place_of,
    shown,
    tool,
)


def test_a_search_counts_shows_and_jumps(page, server):
    expected = tool(server, "slow_step", view="search", search="matmul")
    open_timeline(page, server, "slow_step", colors="name")
    page.keyboard.press("/")
    page.keyboard.type("MATMUL")
    page.locator(".tl-found").filter(
        has_text=f"{expected['total']} events, {expected['names_total']} names"
    ).wait_for()
    wait_for_params(page, q="MATMUL")
    page.locator(".tl-band.hits").wait_for()
    other = found(server, "slow_step", "train", "last")
    own = page.evaluate(COLORS, [["train"]])
    until(lambda: page.evaluate(PIXELS, [[place_of(page, other)]]) != own, "another color")
    page.keyboard.press("Enter")
    first = expected["first"]
    wait_for_params(page, event=first["event"])
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    open_timeline(page, server, "slow_step", q="matmul", event=first["event"])
    page.keyboard.press("n")
    following = tool(server, "slow_step", view="search", search="matmul", event=first["event"])[
        "next"
    ]
    wait_for_params(page, event=following["event"])
    page.keyboard.press("Shift+N")
    wait_for_params(page, event=first["event"])
    page.get_by_role("button", name="Matches").click()
    table = page.get_by_role("grid", name="Names that the search found")
    eventually(lambda: table.get_attribute("aria-rowcount"), str(expected["names_total"] + 1))
    expect_accessible(page)
    screenshot(page, "timeline-search")


def test_back_undoes_what_an_address_changed(page, server):
    open_timeline(page, server, "slow_step", q="matmul")
    page.locator(".tl-found").filter(has_text=re.compile("^196 events")).wait_for()
    page.evaluate("location.hash = location.hash.replace('matmul', 'train')")
    page.locator(".tl-found").filter(has_text=re.compile("^28 events")).wait_for()
    page.go_back()
    page.locator(".tl-found").filter(has_text=re.compile("^196 events")).wait_for()
    eventually(page.get_by_role("searchbox").input_value, "matmul")


def test_a_link_shows_somebody_else_the_same(page, other_page, server):
    for one in (page, other_page):
        one.set_viewport_size({"width": 1000, "height": 600})
    event = found(server, "slow_step", "EagerKernelExecute")
    open_timeline(
        page, server, "slow_step", event=event["event"], q="kernel", folded="1", tab="none"
    )
    loaded(page)
    page.locator("canvas.tl-lanes[aria-label*='; chosen: ']").wait_for()
    page.keyboard.press("m")
    for key in "ssss":
        page.keyboard.press(key)
    page.wait_for_function(
        "() => location.hash.includes('range=') && location.hash.includes('from=')"
    )
    canvas(page).hover(position={"x": 100, "y": 60})
    page.mouse.wheel(0, 34)
    wait_for_params(page, y=34)
    page.mouse.move(5, 5)
    settle(page)
    load_again(other_page, page.evaluate("location.href"))
    other_page.wait_for_selector("canvas.tl-lanes[aria-busy=false]")
    loaded(other_page)
    other_page.get_by_role("grid", name="Events in the range by name").wait_for()
    picture = "() => document.querySelector('canvas.tl-lanes').toDataURL()"
    until(lambda: other_page.evaluate(picture) == page.evaluate(picture), "the same picture")
    eventually(lambda: params(other_page), params(page))
    eventually(lambda: _wide(other_page.locator(".tl-range")), _wide(page.locator(".tl-range")))


def _wide(place):
    """Where it begins, and how large it is; how far the page is scrolled says no address."""
    box = place.bounding_box()
    return {key: box[key] for key in ("x", "width", "height")}


def test_a_click_tells_all_about_an_event(page, server):
    event = found(server, "slow_step", "train")
    details = event_of(server, "slow_step", event["event"])
    start, end = event["start_ps"], event["start_ps"] + event["duration_ps"]
    open_timeline(page, server, "slow_step", **{"from": start - 10**8, "to": end + 10**8})
    loaded(page)
    click_event(page, event)
    page.get_by_role("heading", name="train", exact=True).wait_for()
    page.locator("section[aria-label=Children]").wait_for()
    told = facts(page)
    assert told["Event"] == str(event["event"])
    assert told["Line"] == f"{details['line_name']}, row {details['row']}"
    milliseconds = float(told["Duration"].removesuffix(" ms"))
    assert milliseconds == pytest.approx(details["duration_ps"] / 1e9, rel=1e-6)
    children = page.locator("section[aria-label=Children] tbody tr")
    assert children.count() == len(details["children"]["names"])
    assert [cell.split("\t")[0] for cell in children.all_inner_texts()] == [
        child["name"] for child in details["children"]["names"]
    ]
    stats = page.locator("section[aria-label=Arguments] dt").all_inner_texts()
    assert stats == [stat["name"] for stat in details["stats"]]
    wait_for_params(page, event=event["event"], tab="event")
    memory = page.get_by_role("link", name="Memory at its start").get_attribute("href")
    assert f"at={event['start_ps']}" in memory
    expect_accessible(page)
    screenshot(page, "timeline-event")


def test_a_measured_range_says_how_long_it_is_and_what_is_in_it(page, server):
    open_timeline(page, server, "slow_step")
    loaded(page)
    box = canvas(page).bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 200, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 40, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_function("() => location.hash.includes('range=')")
    begin, end = map(int, params(page)["range"].split("_"))
    first, last = shown(page)
    assert end - begin == pytest.approx(100 / box["width"] * (last - first), rel=0.02)
    grid = page.get_by_role("grid", name="Events in the range by name")
    grid.wait_for()
    expected = api(
        server,
        "sessions/slow_step/sql",
        {
            "query": "SELECT name, count(*) AS n FROM events WHERE "  # noqa: S608  (two numbers)
            f"start_ps < {end} AND start_ps + duration_ps > {begin} GROUP BY name"
        },
    )
    eventually(lambda: grid.get_attribute("aria-rowcount"), str(len(expected) + 1))
    train = grid.get_by_role("row").filter(has=page.get_by_text("train", exact=True))
    count = next(row["n"] for row in expected if row["name"] == "train")
    assert train.locator("[role=gridcell]").nth(1).inner_text() == str(count)
    page.locator(".tl-range").wait_for()
    page.keyboard.press("Escape")
    wait_for_params(page, range=None)
    page.locator(".tl-range").wait_for(state="hidden")


def test_a_finding_leads_to_its_steps(page, server):
    open_timeline(page, server, "slow_step", tab="findings")
    loaded(page)
    page.get_by_role("article").first.wait_for()
    told = api(server, "sessions/slow_step/tools/time_findings")["hosts"][0]["findings"]
    assert page.get_by_role("article").count() == len(told)
    assert told[0]["title"] in page.get_by_role("article").first.inner_text()
    page.get_by_role("button", name="train 6", exact=True).click()
    wait_for_params(page, step=6)
    expect_accessible(page)
    screenshot(page, "timeline-findings")
