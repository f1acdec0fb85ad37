"""The timeline: keys, picture, choice and states."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.waiting import until
from tests.web.looking import (
    api,
    eventually,
    expect_accessible,
    expect_accessible_in_both_schemes,
    load_again,
    open_view,
    params,
    screenshot,
    settle,
    tells,
    wait_for_params,
)
from tests.web.samples import HOSTILE, SAMPLES, THREADS
from tests.web.timelines import (
    COLORS,
    PIXELS,
    ROW_PX,
    canvas,
    canvas_width,
    choose,
    click_event,
    event_of,
    facts,
    found,
    line_tops,
    loaded,
    open_timeline,
    place_of,
    shown,
    shows,
    tool,
)

FOCUS = """() => document.activeElement.getAttribute("aria-label")
  || document.activeElement.textContent"""


def test_keys_zoom_at_the_pointer_and_pan(page, server):
    open_timeline(page, server, "slow_step")
    first, last = shown(page)
    width = canvas_width(page)
    canvas(page).hover(position={"x": width / 4, "y": 30})
    page.keyboard.press("w")
    begin, end = shown(page)
    assert end - begin == pytest.approx(0.8 * (last - first), rel=1e-6)
    assert ((first + (last - first) / 4) - begin) / (end - begin) == pytest.approx(0.25, abs=0.003)
    wait_for_params(page, **{"from": begin, "to": end})
    page.keyboard.press("d")
    assert shown(page)[0] - begin == pytest.approx(0.15 * (end - begin), rel=1e-3)
    page.keyboard.press("a")
    assert shown(page)[0] == pytest.approx(begin, abs=2)
    page.keyboard.press("0")
    shows(page, first, last)
    wait_for_params(page, **{"from": None, "to": None})


def test_the_wheel_scrolls_and_with_control_zooms(page, server):
    page.set_viewport_size({"width": 1000, "height": 600})
    open_timeline(page, server, "jax_cpu")
    canvas(page).hover(position={"x": 300, "y": 60})
    page.mouse.wheel(0, 120)
    page.wait_for_function("() => document.querySelector('.tl-scroller').scrollTop === 120")
    wait_for_params(page, y=120)
    first, last = shown(page)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    page.wait_for_function("() => location.hash.includes('from=')")
    begin, end = shown(page)
    assert end - begin < last - first


def test_arrows_go_to_neighbours_parents_and_children(page, server):
    event = choose(page, server, "slow_step", "EagerKernelExecute")
    details = event_of(server, "slow_step", event["event"])
    for key, expected in (
        ("ArrowUp", details["parents"][0]["event"]),
        ("ArrowDown", None),
        ("ArrowRight", "next"),
        ("ArrowLeft", "previous"),
    ):
        before = event_of(server, "slow_step", params(page)["event"])
        page.keyboard.press(key)
        if expected is None:
            page.wait_for_function(
                "(id) => !`${location.hash}&`.includes(`event=${id}&`)", arg=before["event"]
            )
            inner = event_of(server, "slow_step", params(page)["event"])
            assert inner["parents"][0]["event"] == before["event"]
        else:
            other = before[expected]["event"] if isinstance(expected, str) else expected
            wait_for_params(page, event=other)
        page.wait_for_function(
            "(id) => [...document.querySelectorAll('.tl-body dd')]"
            ".some((one) => one.textContent === id)",
            arg=params(page)["event"],
        )
    page.keyboard.press("Escape")
    wait_for_params(page, event=None)


def test_f_zooms_to_the_choice_and_m_marks_its_range(page, server):
    event = choose(page, server, "slow_step", "EagerKernelExecute")
    page.keyboard.press("0")
    page.keyboard.press("f")
    begin, end = shown(page)
    assert begin < event["start_ps"]
    assert event["start_ps"] + event["duration_ps"] < end
    assert end - begin == pytest.approx(2 * event["duration_ps"], rel=0.01)
    page.keyboard.press("m")
    until = event["start_ps"] + event["duration_ps"]
    wait_for_params(page, range=f"{event['start_ps']}_{until}", tab="range")


def test_steps_are_followed_by_keys_and_by_the_address(page, server):
    steps = api(server, "sessions/slow_step/tools/step_breakdown")["steps"]
    open_timeline(page, server, "slow_step", step=6)
    loaded(page)
    page.locator(".tl-stepper").filter(has_text="train 6").wait_for()
    for key, number in ((None, 6), ("]", 7), ("]", 8), ("[", 7)):
        if key:
            page.keyboard.press(key)
        wait_for_params(page, step=number)
        begin, end = shown(page)
        step = steps[number]
        assert begin < step["start_ps"] < step["end_ps"] < end
        assert end - begin == pytest.approx(1.08 * step["wall_ps"], rel=0.01)
    band = page.locator(".tl-band.steps canvas")
    eventually(lambda: band.get_attribute("aria-label"), f"{len(steps)} steps")


def test_the_steps_band_follows_a_click(page, server):
    step = api(server, "sessions/slow_step/tools/step_breakdown")["steps"][13]
    open_timeline(page, server, "slow_step")
    loaded(page)
    first, last = shown(page)
    band = page.locator(".tl-band.steps canvas")
    middle = (step["start_ps"] + step["end_ps"]) / 2
    x = (middle - first) / (last - first) * band.bounding_box()["width"]
    band.click(position={"x": x, "y": 8})
    wait_for_params(page, step=13)


def test_the_keyboard_reaches_everything_and_the_edge(page, server):
    open_timeline(page, server, "slow_step", tab="steps")
    loaded(page)
    edge = page.get_by_role("separator", name="Height of the part below")
    before = int(edge.get_attribute("aria-valuenow"))
    edge.focus()
    page.keyboard.press("ArrowUp")
    eventually(lambda: int(edge.get_attribute("aria-valuenow")), before + 24)
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("follow the previous and the next step").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    names = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        names.add(page.evaluate(FOCUS))
    assert {"Search events by name", "Memory", "Whole", "Event"} <= names


EDGES = """() => [...new Set(
  [".tl-band.counter canvas", ".tl-lanes", ".tl-band.axis canvas"].map((one) => {
    const {left, width} = document.querySelector(one).getBoundingClientRect();
    return `${Math.round(left)} ${Math.round(width)}`;
  }))]"""


def test_every_line_with_events_has_a_label_that_says_how_many(page, server):
    lanes = tool(server, "slow_step", view="lanes")
    open_timeline(page, server, "slow_step")
    for name, events, rows in zip(
        lanes["line_name"], lanes["line_events"], lanes["line_rows"], strict=True
    ):
        label = page.locator(".tl-line").filter(has=page.get_by_text(name, exact=True))
        row_word = "row" if rows == 1 else "rows"
        assert label.text_content().endswith(f"{name}{events:,} events, {rows} {row_word}")


@pytest.mark.parametrize("part", ["whole", "middle"])
def test_the_picture_is_the_tile(page, server, part):
    lanes = tool(server, "slow_step", view="lanes")
    first, last = lanes["start_ps"], lanes["end_ps"]
    if part == "middle":
        first, last = first + (last - first) * 23 // 100, first + (last - first) * 37 // 100
        open_timeline(page, server, "slow_step", colors="name", **{"from": first, "to": last})
    else:
        open_timeline(page, server, "slow_step", colors="name")
    loaded(page)  # the bands above take their room first
    shows(page, first, last)
    width = canvas_width(page)
    tile = tool(server, "slow_step", view="tile", start_ps=first, end_ps=last, width=width)
    tops = line_tops(page)
    points, names = [], []
    per_px = (last - first) / width
    for track, (line, row) in enumerate(zip(tile["track_line"], tile["track_row"], strict=True)):
        for item in range(tile["track_first"][track], tile["track_first"][track + 1]):
            begin, length = tile["begin_ps"][item], tile["duration_ps"][item]
            middle = (begin + length / 2) / per_px
            if tile["count"][item] == 1 and length > 6 * per_px and 0 < middle < width:
                points.append((middle, tops[str(line)] + row * ROW_PX + 1))
                names.append(lanes["names"][tile["name"][item]])
    assert len(points) > 50
    eventually(lambda: page.evaluate(PIXELS, [points]), page.evaluate(COLORS, [names]))
    # Where the second line has nothing, nothing is drawn but marks of steps.
    track = list(zip(tile["track_line"], tile["track_row"], strict=True)).index((1, 0))
    taken = [
        (tile["begin_ps"][item] / per_px, tile["duration_ps"][item] / per_px)
        for item in range(tile["track_first"][track], tile["track_first"][track + 1])
    ]
    quiet = [
        (x, tops["1"] + 1)
        for x in range(5, int(width) - 5)
        if not any(begin - 3 < x < begin + length + 3 for begin, length in taken)
    ]
    assert len(quiet) > 100
    assert len(set(page.evaluate(PIXELS, [quiet]))) <= 2


def test_memory_lies_on_the_same_axis_and_can_be_put_away(page, server):
    counter = tool(server, "leak_list", view="counter", width=1)
    open_timeline(page, server, "leak_list")
    loaded(page)
    chart = page.locator(".tl-band.counter")
    most = max(counter["high"]) / 2**20
    chart.filter(has_text=f"up to {most:.1f} MiB").wait_for()
    assert chart.count() == 1
    eventually(lambda: len(page.evaluate(EDGES)), 1)
    page.get_by_role("button", name="Memory", exact=True).click()
    chart.wait_for(state="hidden")
    wait_for_params(page, memory=0)
    open_timeline(page, server, "leak_list", memory=0)
    loaded(page)
    assert page.locator(".tl-counters").is_hidden()


def test_lines_and_planes_fold(page, server):
    open_timeline(page, server, "slow_step")
    lanes = tool(server, "slow_step", view="lanes")
    line = page.get_by_role("button", name=re.compile("^python"))
    before = line_tops(page)
    line.click()
    wait_for_params(page, folded=0)
    # One row is as high as the button of its menu has to be: 24 pixels with the gap.
    less = lanes["line_rows"][0] * ROW_PX + 5 - 24
    eventually(lambda: before["1"] - line_tops(page)["1"], less)
    eventually(lambda: line.get_attribute("aria-expanded"), "false")
    line.press("Enter")
    wait_for_params(page, folded=None)
    page.locator(".tl-plane").first.click()
    wait_for_params(page, folded="p0")
    eventually(page.locator(".tl-line").count, 0)


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
    result = facts(page)
    assert result["Event"] == str(event["event"])
    assert result["Line"] == f"{details['line_name']}, row {details['row']}"
    milliseconds = float(result["Duration"].removesuffix(" ms"))
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
            f"start_ps < {end} AND start_ps + duration_ps > {begin} "
            "AND line_id = (SELECT min(line_id) FROM events) GROUP BY name"  # the lane measured on
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
    result = api(server, "sessions/slow_step/tools/time_findings")["hosts"][0]["findings"]
    assert page.get_by_role("article").count() == len(result)
    assert result[0]["title"] in page.get_by_role("article").first.inner_text()
    page.get_by_role("button", name="train 6", exact=True).click()
    wait_for_params(page, step=6)
    expect_accessible(page)
    screenshot(page, "timeline-findings")


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
