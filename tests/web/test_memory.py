"""The memory view: its numbers are those of the service and of the command line, at any moment."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.web.looking import (
    SLOW_MS,
    address,
    api,
    expect_accessible,
    open_view,
    quote_part,
    screenshot,
    settle,
)
from tests.web.samples import HOSTILE, SAMPLES

from peakline.cli.main import main
from peakline.text import size_text

LEFT, RIGHT = 84, 14
"""Pixels of the chart left and right of where time is."""


def view(name):
    return f"/session/{quote_part(name)}/memory"


def live(server, session, **query):
    return api(server, f"sessions/{quote_part(session)}/tools/live_memory", **query)


def told_by_verb(capsys, session, *words):
    """What ``peakline memory --json`` says."""
    capsys.readouterr()
    assert main(["memory", str(SAMPLES[session][0]), "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def params(page):
    """What the address says of the view, once it has settled: changes come a moment later."""
    settle(page)
    page.wait_for_timeout(300)
    return {
        name: values[0]
        for name, values in parse_qs(urlsplit(page.url).fragment.partition("?")[2]).items()
    }


def fact(page, name, part=".memory-live > .stack"):
    found = page.locator(f"{part} dl.facts > div").filter(has=page.get_by_text(name, exact=True))
    return found.locator("dd").inner_text()


def rows(page):
    """The texts of the rows in view, a list of cells each."""
    found = page.locator(".memory-live .table .row")
    return [row.get_by_role("gridcell").all_inner_texts() for row in found.all()]


def chart(page):
    return page.locator(".memory-chart")


def drawn(page):
    """The viewport of the picture, which has to be as fine as the screen."""
    page.wait_for_selector(".memory-chart[aria-busy='false']", timeout=SLOW_MS)
    return [int(part) for part in re.findall(r"-?\d+", chart(page).get_attribute("data-drawn"))][:2]


def place_of(page, time_ps):
    """Where a time is on the screen."""
    box, (begin, end) = chart(page).bounding_box(), bounds(page)
    share = (time_ps - begin) / (end - begin)
    return box["x"] + LEFT + share * (box["width"] - LEFT - RIGHT), box["y"] + 150


def bounds(page):
    text = (
        page.wait_for_selector(".memory-chart[data-drawn]"),
        chart(page).get_attribute("data-drawn"),
    )[1]
    begin, end = re.fullmatch(r"(-?\d+)-(-?\d+)", text).groups()
    return int(begin), int(end)


def test_the_peak_is_shown_first_as_the_service_and_the_verb_tell_it(page, server, capsys):
    told, verb = live(server, "leak_list"), told_by_verb(capsys, "leak_list")["allocators"][0]
    assert told["bytes_in_use"] == verb["peak_bytes"]
    open_view(page, server, view("leak_list"))
    assert fact(page, "In use") == size_text(verb["peak_bytes"])
    assert fact(page, "To the peak") == "this is the peak"
    assert fact(page, "Step") == "train 17"
    shown = [(cells[0].replace("\n", ""), cells[1]) for cells in rows(page)]
    expected = [(one["op"], size_text(one["bytes"])) for one in verb["peak_buffers"]]
    assert len(shown) >= 14
    assert sorted(shown) == sorted(expected[: len(shown)])
    total = page.locator(".memory-live .total").inner_text()
    assert total == f"{told['rows_total']} rows, {size_text(verb['peak_bytes'])} together"


def test_a_click_shows_what_was_live_then(page, server, capsys):
    open_view(page, server, view("leak_list"))
    drawn(page)
    page.mouse.click(*place_of(page, 400_000_000_000))
    page.wait_for_url("**at=*")
    at = int(params(page)["at"])
    begin, end = bounds(page)
    pixel = (end - begin) / (chart(page).bounding_box()["width"] - LEFT - RIGHT)
    assert abs(at - 400_000_000_000) <= pixel
    (verb,) = told_by_verb(capsys, "leak_list", "--at", f"{at}ps")["at"]["allocators"]
    assert fact(page, "In use") == size_text(verb["in_use_bytes"])
    told = live(server, "leak_list", at_ps=at)
    assert told["bytes_in_use"] == verb["in_use_bytes"]
    assert [cells[1] for cells in rows(page)] == [
        size_text(row["bytes"]) for row in told["rows"][: len(rows(page))]
    ]


def test_a_click_takes_the_highest_moment_under_the_pointer(page, server):
    peak = live(server, "tf2_cnn")["allocators"][0]
    open_view(page, server, view("tf2_cnn"))
    drawn(page)
    page.mouse.click(*place_of(page, peak["peak_time_ps"]))
    page.wait_for_url("**at=*")
    settle(page)
    assert fact(page, "To the peak") == "this is the peak"
    assert fact(page, "In use") == size_text(peak["peak_bytes"])


def test_the_pointer_is_told_what_the_service_knows_of_its_pixel(page, server):
    peak = live(server, "leak_list")["allocators"][0]
    open_view(page, server, view("leak_list"))
    drawn(page)
    page.mouse.move(*place_of(page, peak["peak_time_ps"]))
    tip = page.locator(".tip")
    tip.wait_for()
    assert size_text(peak["peak_bytes"]) in tip.inner_text()
    assert "in step train 17" in tip.inner_text()


def test_zoom_and_pan_are_in_the_address_and_drawn_exactly(page, server):
    open_view(page, server, view("leak_list"))
    begin, end = bounds(page)
    chart(page).focus()
    page.mouse.move(*place_of(page, 500_000_000_000))
    page.mouse.wheel(0, -600)
    page.wait_for_url("**from=*")
    state = params(page)
    first, last = int(state["from"]), int(state["to"])
    assert begin < first < 500_000_000_000 < last < end
    assert bounds(page) == (first, last)
    page.keyboard.press("d")
    page.wait_for_function(f"() => !location.hash.includes('from={first}&')")
    moved = params(page)
    assert int(moved["to"]) - int(moved["from"]) == pytest.approx(last - first, abs=2)
    assert int(moved["from"]) > first
    page.keyboard.press("0")
    page.wait_for_function("() => !location.hash.includes('from=')")
    assert bounds(page) == (begin, end)


def test_a_link_shows_a_colleague_the_same(page, server):
    told = live(server, "leak_list", at_ps=600_000_000_000, search="matmul")
    chosen = told["rows"][2]
    open_view(
        page,
        server,
        view("leak_list"),
        **{"from": 400_000_000_000, "to": 700_000_000_000, "at": 600_000_000_000},
        q="matmul",
        sort="start_ps",
        buffer=chosen["record"],
    )
    assert bounds(page) == (400_000_000_000, 700_000_000_000)
    assert fact(page, "In use") == size_text(told["bytes_in_use"])
    assert page.get_by_role("searchbox").input_value() == "matmul"
    assert (
        page.get_by_role("columnheader", name="Allocated").get_attribute("aria-sort") == "ascending"
    )
    assert page.locator(".memory-live .total").inner_text().startswith(f"{told['rows_total']} rows")
    assert page.locator(".memory-buffer h3").inner_text() == chosen["op"]
    assert page.locator(".memory-live .row.chosen").count() == 1


@pytest.mark.parametrize("group", ["op", "scope", "region_type", "data_type", "shape", "step"])
def test_groups_are_those_of_the_service(page, server, group):
    told = live(server, "leak_list", group=group)
    open_view(page, server, view("leak_list"))
    page.locator(f".groups [data-group={group}]").click()
    page.wait_for_url(f"**group={group}*")
    settle(page)
    expected = [
        [row["key"] or "(not told)", size_text(row["bytes"]), f"{100 * row['share']:.1f}%",
         str(row["count"])]
        for row in told["rows"]
    ]  # fmt: skip
    assert [[cells[0].replace("\n", ""), *cells[1:]] for cells in rows(page)] == expected
    assert sum(row["bytes"] for row in told["rows"]) == told["bytes_in_use"]


def test_a_group_leads_to_its_buffers_and_back_undoes_it(page, server):
    open_view(page, server, view("leak_list"), group="op")
    page.locator(".memory-live .row", has_text="MatMul_1").first.click()
    page.wait_for_url("**op=*")
    op = params(page)["op"]
    told = live(server, "leak_list", op=op)
    assert len(rows(page)) == told["rows_total"] > 0
    page.go_back()
    settle(page)
    assert params(page) == {"group": "op"}
    assert page.locator("[data-group=op]").get_attribute("aria-pressed") == "true"


def test_search_and_sort_are_the_services(page, server):
    open_view(page, server, view("leak_list"))
    page.get_by_role("searchbox").fill("hidden")
    page.wait_for_url("**q=hidden*")
    page.get_by_role("button", name="Allocated").click()
    page.wait_for_url("**sort=-start_ps*")
    settle(page)
    told = live(server, "leak_list", search="hidden", sort="start_ps", descending="true")
    shown = rows(page)
    steps = {row["step_id"]: row["name"] for row in steps_of(server, "leak_list")}
    assert [cells[5] for cells in shown] == [
        steps[row["start_step"]] for row in told["rows"][: len(shown)]
    ]


def steps_of(server, session):
    query = {"query": "select step_id, name, start_ps, end_ps from steps"}
    return api(server, f"sessions/{session}/sql", query)


def test_a_leak_leads_to_what_every_step_keeps(page, server):
    (finding,) = api(server, "sessions/leak_list/tools/memory_findings")["findings"]
    open_view(page, server, view("leak_list"))
    part = page.locator(".memory-findings .finding").first
    assert finding["title"] in part.locator("h3").inner_text()
    page.get_by_role("button", name="Show where it grows, from step train 0").click()
    settle(page)
    state = params(page)
    assert state["within"] == finding["evidence"]["op"]
    assert state["sort"] == "start_ps"
    kept = live(server, "leak_list", at_ps=state["at"], within=state["within"])
    assert kept["rows_total"] == finding["evidence"]["steps"] == 20
    assert page.locator(".memory-live .total").inner_text().startswith("20 rows")
    page.go_back()
    settle(page)
    assert "within" not in params(page)


def test_fragmentation_leads_to_its_moment(page, server):
    findings = api(server, "sessions/fragmentation/tools/memory_findings")["findings"]
    evidence = next(one["evidence"] for one in findings if one["kind"] == "fragmentation")
    open_view(page, server, view("fragmentation"))
    page.get_by_role("button", name="Show that moment").click()
    settle(page)
    state = params(page)
    assert int(state["at"]) == evidence["time_ps"]
    kept = live(server, "fragmentation", at_ps=state["at"], within=evidence["op"])
    assert len(rows(page)) == kept["rows_total"] >= evidence["pins"]
    assert page.get_by_text("capacity, 64.0 MiB").count() == 1


def test_a_buffer_shows_its_life(page, server):
    open_view(page, server, view("leak_list"))
    page.locator(".memory-live .row", has_text="ResourceApplyAdam_1").first.click()
    page.wait_for_url("**buffer=*")
    record = int(params(page)["buffer"])
    (row,) = live(server, "leak_list", record=record)["rows"]
    assert fact(page, "Bytes", ".memory-buffer") == size_text(row["bytes"])
    assert fact(page, "Address", ".memory-buffer") == row["address"]
    page.get_by_role("button", name="Show its life").click()
    page.wait_for_url("**from=*")
    state = params(page)
    assert int(state["from"]) < row["start_ps"] < row["end_ps"] < int(state["to"])
    screenshot(page, "memory_buffer")
    page.get_by_role("button", name="Leave this buffer").click()
    page.wait_for_function("() => !location.hash.includes('buffer=')")
    assert page.locator(".memory-buffer").is_hidden()


def test_keys_lead_through_moments_and_steps(page, server):
    told = live(server, "leak_list")
    steps = sorted(steps_of(server, "leak_list"), key=lambda step: step["start_ps"])
    open_view(page, server, view("leak_list"))
    drawn(page)
    chart(page).focus()
    page.keyboard.press("End")
    page.wait_for_url("**at=*")
    assert int(params(page)["at"]) == told["end_ps"]
    page.keyboard.press("[")
    page.wait_for_function(f"() => !location.hash.includes('at={told['end_ps']}')")
    at = int(params(page)["at"])
    assert steps[-2]["start_ps"] <= at <= steps[-2]["end_ps"]
    page.keyboard.press("Home")
    page.wait_for_function(f"() => location.hash.includes('at={told['start_ps']}')")
    page.keyboard.press("p")
    page.wait_for_function("() => !location.hash.includes('at=')")
    settle(page)
    assert fact(page, "To the peak") == "this is the peak"
    page.keyboard.press("f")
    page.wait_for_url("**fit=true*")
    assert page.get_by_role("button", name="Fit height").get_attribute("aria-pressed") == "true"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"


def test_a_moment_can_be_typed(page, server):
    open_view(page, server, view("leak_list"))
    field = page.get_by_label("The moment, such as 12.5 ms")
    field.fill("400 ms")
    field.press("Enter")
    page.wait_for_url("**at=400000000000*")
    settle(page)
    told = live(server, "leak_list", at_ps=400_000_000_000)
    assert fact(page, "In use") == size_text(told["bytes_in_use"])
    field.fill("soon")
    field.press("Enter")
    assert "Write a time such as" in page.get_by_role("alert").inner_text()
    assert params(page)["at"] == "400000000000"


def test_the_icicle_narrows_to_a_scope(page, server):
    told = live(server, "leak_list", scopes="true")
    open_view(page, server, view("leak_list"))
    page.locator(".icicle-plot .slice", has_text="gradient_tape").first.click()
    page.wait_for_url("**within=*")
    assert params(page)["within"] == "gradient_tape"
    place = told["scopes"]["path"].index("gradient_tape")
    assert (
        f"{size_text(told['scopes']['bytes'][place])} together"
        in page.locator(".memory-live .total").inner_text()
    )


@pytest.mark.parametrize("session", ["oom_report", "jax_heap"])
def test_a_file_of_one_moment_has_no_axis_of_time(page, server, session):
    told = live(server, session)
    open_view(page, server, view(session))
    assert chart(page).count() == 0
    largest = max(told["allocators"], key=lambda one: one["peak_bytes"])
    assert page.locator(".memory-bars li").count() == len(told["allocators"])
    assert size_text(largest["peak_bytes"]) in page.locator(".memory-bars li").first.inner_text()
    assert len(rows(page)) > 5
    screenshot(page, f"memory_{session}")
    expect_accessible(page)


@pytest.mark.parametrize(
    "session", ["memory_log", "memory_log_bfc", "run_metadata", "torch_trace", "tf2_two_devices"]
)
def test_every_format_shows_its_peak(page, server, session, capsys):
    told = live(server, session)
    open_view(page, server, view(session))
    peaks = [one["peak_bytes"] for one in told_by_verb(capsys, session)["allocators"]]
    assert told["bytes_in_use"] == max(peaks)
    assert fact(page, "In use") == size_text(told["bytes_in_use"])
    begin, end = bounds(page)
    assert begin < told["start_ps"] <= told["end_ps"] < end
    screenshot(page, f"memory_{session}")


def test_a_profile_without_memory_says_what_to_record(page, server):
    open_view(page, server, view("jax_cpu"))
    assert page.get_by_role("heading", name="This profile tells nothing about memory").count() == 1
    screenshot(page, "memory_nothing")
    expect_accessible(page)


def test_a_damaged_profile_says_why(page, server):
    page.allowed_failures.append("/damaged/")
    open_view(page, server, view("damaged"))
    assert page.get_by_role("alert").count() == 1
    assert page.get_by_role("button", name="Try again").count() == 1


def test_findings_that_fail_cost_nothing_else(page, server):
    page.allowed_failures.append("memory_findings")
    page.route(
        "**/memory_findings*", lambda route: route.fulfill(status=503, json={"detail": "no"})
    )
    open_view(page, server, view("leak_list"))
    assert page.locator(".memory-findings").get_by_role("alert").count() == 1
    assert len(rows(page)) > 5
    drawn(page)
    page.unroute("**/memory_findings*")
    page.get_by_role("button", name="Try again").click()
    page.locator(".memory-findings .finding").first.wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_view_can_be_used_by_everybody(new_page, server, scheme):
    page = new_page(color_scheme=scheme)
    open_view(page, server, view("fragmentation"), group="buffer")
    for summary in page.locator(".memory-findings details.section > summary").all():
        summary.click()
    drawn(page)
    screenshot(page, f"memory_{scheme}")
    expect_accessible(page)


def test_names_of_strangers_stay_text(page, server):
    open_view(page, server, view(HOSTILE))
    assert page.locator(".memory-legend strong").inner_text() == HOSTILE
    page.locator(".memory-live .row", has_text=HOSTILE).first.click()
    page.locator(".memory-buffer").wait_for()
    assert HOSTILE in page.locator(".memory-buffer h3").inner_text()
    assert page.locator("img:not([src='assets/icon.svg'])").count() == 0


def test_the_viewport_goes_along_to_the_timeline(page, server):
    state = {"from": 400_000_000_000, "to": 700_000_000_000, "at": 600_000_000_000}
    open_view(page, server, view("leak_list"), q="x", **state)
    link = page.get_by_role("link", name="Timeline", exact=True).get_attribute("href")
    assert link == address("/session/leak_list/timeline", **state)
