"""The memory view: its numbers are those of the service and of the command line, at any moment."""

import json

import pytest
from tests.web.looking import (
    address,
    eventually,
    expect_accessible,
    expect_accessible_in_both_schemes,
    open_view,
    outwait_timers,
    params,
    screenshot,
    settle,
    tells,
    wait_for_params,
)
from tests.web.memories import (
    LEFT,
    RIGHT,
    bounds,
    chart,
    drawn,
    fact,
    live,
    place_of,
    rows,
    steps_of,
    view,
    wait_for_param,
)
from tests.web.samples import SAMPLES

from peakline.__main__ import main
from peakline.text import size_text


def told_by_verb(capsys, session, *words):
    """What ``peakline memory --json`` says."""
    capsys.readouterr()
    assert main(["memory", str(SAMPLES[session][0]), "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_peak_is_shown_first_as_the_service_and_the_verb_tell_it(page, server, capsys):
    told, verb = live(server, "leak_list"), told_by_verb(capsys, "leak_list")["allocators"][0]
    assert told["bytes_in_use"] == verb["peak_bytes"]
    open_view(page, server, view("leak_list"))
    assert fact(page, "In use") == size_text(verb["peak_bytes"])
    assert fact(page, "To the peak") == "this is the peak"
    assert fact(page, "Step") == "train 17"
    shown = [(cells[0].replace("\n", ""), cells[1]) for cells in rows(page)]
    expected = [(one["op"], size_text(one["bytes"])) for one in verb["peak_buffers"]]
    assert len(shown) >= 10
    assert set(shown) <= set(expected)
    assert [size for _, size in shown] == [size for _, size in expected[: len(shown)]]
    total = page.locator(".memory-live .total").inner_text()
    assert total == f"{told['rows_total']} rows, {size_text(verb['peak_bytes'])} together"


def test_a_click_shows_what_was_live_then(page, server, capsys):
    open_view(page, server, view("leak_list"))
    drawn(page)
    page.mouse.click(*place_of(page, 400_000_000_000))
    at = int(wait_for_param(page, "at"))
    settle(page)
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
    wait_for_param(page, "at")
    settle(page)
    assert fact(page, "To the peak") == "this is the peak"
    assert fact(page, "In use") == size_text(peak["peak_bytes"])


def test_the_pointer_is_told_what_the_service_knows_of_its_pixel(page, server):
    peak = live(server, "leak_list")["allocators"][0]
    open_view(page, server, view("leak_list"))
    drawn(page)
    page.mouse.move(*place_of(page, peak["peak_time_ps"]))
    tells(page.locator(".tip"), size_text(peak["peak_bytes"]), "in step train 17")


def test_zoom_and_pan_are_in_the_address_and_drawn_exactly(page, server):
    open_view(page, server, view("leak_list"))
    begin, end = bounds(page)
    chart(page).focus()
    page.mouse.move(*place_of(page, 500_000_000_000))
    page.mouse.wheel(0, -600)
    wait_for_param(page, "from")
    state = params(page)
    first, last = int(state["from"]), int(state["to"])
    assert begin < first < 500_000_000_000 < last < end
    eventually(lambda: bounds(page), (first, last))
    page.keyboard.press("d")
    page.wait_for_function(f"() => !location.hash.includes('from={first}&')")
    moved = params(page)
    assert int(moved["to"]) - int(moved["from"]) == pytest.approx(last - first, abs=2)
    assert int(moved["from"]) > first
    page.keyboard.press("0")
    wait_for_params(page, **{"from": None, "to": None})
    eventually(lambda: bounds(page), (begin, end))


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
    eventually(lambda: bounds(page), (400_000_000_000, 700_000_000_000))
    assert fact(page, "In use") == size_text(told["bytes_in_use"])
    assert page.get_by_role("searchbox").input_value() == "matmul"
    assert (
        page.get_by_role("columnheader", name="Allocated").get_attribute("aria-sort") == "ascending"
    )
    assert page.locator(".memory-live .total").inner_text().startswith(f"{told['rows_total']} rows")
    assert page.locator(".memory-buffer h3").inner_text() == chosen["op"]
    assert page.locator(".memory-live .row.chosen").count() == 1


def test_keys_lead_through_moments_and_steps(page, server):
    told = live(server, "leak_list")
    steps = sorted(steps_of(server, "leak_list"), key=lambda step: step["start_ps"])
    open_view(page, server, view("leak_list"))
    drawn(page)
    chart(page).focus()
    page.keyboard.press("End")
    wait_for_params(page, at=told["end_ps"])
    page.keyboard.press("[")
    page.wait_for_function(f"() => !location.hash.includes('at={told['end_ps']}')")
    at = int(params(page)["at"])
    assert steps[-2]["start_ps"] <= at <= steps[-2]["end_ps"]
    page.keyboard.press("Home")
    wait_for_params(page, at=told["start_ps"])
    page.keyboard.press("p")
    wait_for_params(page, at=None)
    settle(page)
    assert fact(page, "To the peak") == "this is the peak"
    page.keyboard.press("f")
    wait_for_params(page, fit="true")
    assert page.get_by_role("button", name="Fit height").get_attribute("aria-pressed") == "true"
    page.keyboard.press("/")
    eventually(lambda: page.evaluate("document.activeElement.type"), "search")


def test_a_moment_can_be_typed(page, server):
    open_view(page, server, view("leak_list"))
    field = page.get_by_label("The moment, such as 12.5 ms")
    field.fill("400 ms")
    field.press("Enter")
    wait_for_params(page, at=400_000_000_000)
    settle(page)
    told = live(server, "leak_list", at_ps=400_000_000_000)
    assert fact(page, "In use") == size_text(told["bytes_in_use"])
    field.fill("soon")
    field.press("Enter")
    tells(page.get_by_role("alert"), "Write a time such as")
    outwait_timers(page)
    assert params(page)["at"] == "400000000000"


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
    open_view(page, server, view("graph"))
    assert page.get_by_role("heading", name="This profile has nothing about memory").count() == 1
    screenshot(page, "memory_nothing")
    expect_accessible(page)


def test_a_damaged_profile_says_why(page, server):
    page.allowed_failures.append("/damaged/")
    open_view(page, server, view("damaged"))
    assert page.get_by_role("alert").count() == 1
    assert page.get_by_role("button", name="Try again").count() == 1


def test_the_view_can_be_used_by_everybody(page, server):
    open_view(page, server, view("fragmentation"), group="buffer")
    for summary in page.locator(".memory-findings details.section > summary").all():
        summary.click()
    eventually(page.locator(".memory-findings details.section[open] > summary:only-child").count, 0)
    drawn(page)
    expect_accessible_in_both_schemes(page, "memory")


def test_the_viewport_goes_along_to_the_timeline(page, server):
    state = {"from": 400_000_000_000, "to": 700_000_000_000, "at": 600_000_000_000}
    open_view(page, server, view("leak_list"), q="x", **state)
    link = page.get_by_role("link", name="Timeline", exact=True).get_attribute("href")
    assert link == address("/session/leak_list/timeline", **state)
