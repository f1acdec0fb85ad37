"""The timeline: its picture is the tile's, its numbers are the service's, and its links last."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.service.server_process import running_server
from tests.web.conftest import PageServer
from tests.web.looking import api, expect_accessible, open_view, quote_part, screenshot, settle
from tests.web.samples import HOSTILE, SAMPLES

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
COLORS = """async ([names]) => {
  const place = new URL("assets/js/views/timeline/colors.js", location.href);
  const {colorOf, cssColor} = await import(place);
  return names.map((name) => cssColor(colorOf(name)));
}"""
FRAMES = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(() => done(null))))"""
FOCUS = """() => document.activeElement.getAttribute("aria-label")
  || document.activeElement.textContent"""
TOPS = """() => Object.fromEntries([...document.querySelectorAll(".tl-line")].map((label) =>
  [label.id.replace("tl-fold-", ""), new DOMMatrix(label.style.transform).m42]))"""


def tool(server, session, **query):
    return api(server, f"sessions/{quote_part(session)}/tools/timeline", **query)


def event_of(server, session, event):
    return tool(server, session, view="event", event=event, with_step="false")["details"]


def state(page):
    """The parameters of the address."""
    query = urlsplit(page.url).fragment.partition("?")[2]
    return {name: values[0] for name, values in parse_qs(query).items()}


def wait_for_state(page, **expected):
    """Come back when the address says so; an address is told a moment later."""
    page.wait_for_function(
        """(expected) => {
          const found = new URLSearchParams(location.hash.split("?")[1] ?? "");
          return Object.entries(expected).every(([name, value]) => found.get(name) === value);
        }""",
        arg={name: None if value is None else str(value) for name, value in expected.items()},
    )


def open_timeline(page, server, session, **query):
    open_view(page, server, f"/session/{quote_part(session)}/timeline", **query)
    page.wait_for_selector("canvas.tl-lanes[aria-busy=false]")


def loaded(page):
    """Come back when what follows the first drawing is there: counters, steps."""
    page.get_by_role("button", name=re.compile(r"^Steps( \(|:)")).wait_for()
    settle(page)


def canvas(page):
    return page.locator("canvas.tl-lanes")


def shown(page):
    """The viewport that is drawn, in ps."""
    page.evaluate(FRAMES)
    settle(page)
    return tuple(map(int, canvas(page).get_attribute("data-shown").split()))


def place_of(page, event):
    """Where an event that is in view lies on the canvas, just below the upper edge of its row."""
    first, last = shown(page)
    width = page.evaluate("document.querySelector('canvas.tl-lanes').clientWidth")
    top = page.evaluate(TOPS)[str(event["line"])] - page.evaluate(
        "document.querySelector('.tl-scroller').scrollTop"
    )
    middle = event["start_ps"] + event["duration_ps"] / 2
    return (middle - first) / (last - first) * width, top + event["row"] * ROW_PX + 1


def click_event(page, event):
    x, y = place_of(page, event)
    canvas(page).click(position={"x": x, "y": y + 5})


def found(server, session, text, which="first"):
    return tool(server, session, view="search", search=text)[which]


def facts(page):
    """The chosen event's facts, by their names."""
    terms = page.locator(".tl-body section[aria-label=Event] dl")
    names = terms.locator("dt").all_inner_texts()
    return dict(zip(names, terms.locator("dd").all_inner_texts(), strict=True))


def choose(page, server, session, text):
    """Choose the first event whose name holds ``text``, by its address."""
    event = found(server, session, text)
    open_timeline(page, server, session, event=event["event"], tab="event")
    page.get_by_role("heading", name=event["name"], exact=True).wait_for()
    return event


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
        open_timeline(page, server, "slow_step", **{"from": first, "to": last})
    else:
        open_timeline(page, server, "slow_step")
    assert shown(page) == (first, last)
    width = page.evaluate("document.querySelector('canvas.tl-lanes').clientWidth")
    tile = tool(server, "slow_step", view="tile", start_ps=first, end_ps=last, width=width)
    tops = page.evaluate(TOPS)
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
    assert page.evaluate(PIXELS, [points]) == page.evaluate(COLORS, [names])
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


def test_keys_zoom_at_the_pointer_and_pan(page, server):
    open_timeline(page, server, "slow_step")
    first, last = shown(page)
    width = page.evaluate("document.querySelector('canvas.tl-lanes').clientWidth")
    canvas(page).hover(position={"x": width / 4, "y": 30})
    page.keyboard.press("w")
    begin, end = shown(page)
    assert end - begin == pytest.approx(0.8 * (last - first), rel=1e-6)
    kept = first + (last - first) / 4
    assert (kept - begin) / (end - begin) == pytest.approx(0.25, abs=0.003)
    wait_for_state(page, **{"from": begin, "to": end})
    page.keyboard.press("d")
    later = shown(page)
    assert later[0] - begin == pytest.approx(0.15 * (end - begin), rel=1e-3)
    page.keyboard.press("a")
    assert shown(page)[0] == pytest.approx(begin, abs=2)
    page.keyboard.press("0")
    assert shown(page) == (first, last)
    wait_for_state(page, **{"from": None, "to": None})


def test_the_wheel_scrolls_and_with_control_zooms(page, server):
    page.set_viewport_size({"width": 1000, "height": 600})
    open_timeline(page, server, "jax_cpu")
    canvas(page).hover(position={"x": 300, "y": 60})
    page.mouse.wheel(0, 120)
    page.wait_for_function("() => document.querySelector('.tl-scroller').scrollTop === 120")
    wait_for_state(page, y=120)
    first, last = shown(page)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    page.wait_for_function("() => location.hash.includes('from=')")
    begin, end = shown(page)
    assert end - begin < last - first


def test_a_click_tells_all_about_an_event(page, server):
    event = found(server, "slow_step", "train")
    details = event_of(server, "slow_step", event["event"])
    start, end = event["start_ps"], event["start_ps"] + event["duration_ps"]
    open_timeline(page, server, "slow_step", **{"from": start - 10**8, "to": end + 10**8})
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
    wait_for_state(page, event=event["event"], tab="event")
    memory = page.get_by_role("link", name="Memory at its start").get_attribute("href")
    assert f"at={event['start_ps']}" in memory
    expect_accessible(page)
    screenshot(page, "timeline-event")


def test_arrows_go_to_neighbours_parents_and_children(page, server):
    event = choose(page, server, "slow_step", "EagerKernelExecute")
    details = event_of(server, "slow_step", event["event"])
    for key, expected in (
        ("ArrowUp", details["parents"][0]["event"]),
        ("ArrowDown", None),
        ("ArrowRight", "next"),
        ("ArrowLeft", "previous"),
    ):
        before = event_of(server, "slow_step", state(page)["event"])
        page.keyboard.press(key)
        if expected is None:
            page.wait_for_function(f"() => !location.hash.includes('event={before['event']}&')")
            inner = event_of(server, "slow_step", state(page)["event"])
            assert inner["parents"][0]["event"] == before["event"]
        else:
            other = before[expected]["event"] if isinstance(expected, str) else expected
            wait_for_state(page, event=other)
        settle(page)
        page.wait_for_function(
            "(id) => [...document.querySelectorAll('.tl-body dd')]"
            ".some((one) => one.textContent === id)",
            arg=state(page)["event"],
        )
    page.keyboard.press("Escape")
    wait_for_state(page, event=None)


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
    wait_for_state(page, range=f"{event['start_ps']}_{until}", tab="range")


def test_a_search_counts_shows_and_jumps(page, server):
    expected = tool(server, "slow_step", view="search", search="matmul")
    open_timeline(page, server, "slow_step")
    page.keyboard.press("/")
    page.keyboard.type("MATMUL")
    status = page.locator(".tl-found")
    status.filter(
        has_text=f"{expected['total']} events, {expected['names_total']} names"
    ).wait_for()
    wait_for_state(page, q="MATMUL")
    assert page.locator(".tl-band.hits").is_visible()
    other = found(server, "slow_step", "train", "last")
    assert page.evaluate(PIXELS, [[place_of(page, other)]]) != page.evaluate(COLORS, [["train"]])
    page.keyboard.press("Enter")
    first = expected["first"]
    wait_for_state(page, event=first["event"])
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    open_timeline(page, server, "slow_step", q="matmul", event=first["event"])
    page.keyboard.press("n")
    following = tool(server, "slow_step", view="search", search="matmul", event=first["event"])[
        "next"
    ]
    wait_for_state(page, event=following["event"])
    page.keyboard.press("Shift+N")
    wait_for_state(page, event=first["event"])
    page.get_by_role("button", name="Matches").click()
    table = page.get_by_role("grid", name="Names that the search found")
    assert table.get_attribute("aria-rowcount") == str(expected["names_total"] + 1)
    expect_accessible(page)
    screenshot(page, "timeline-search")


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
    begin, end = map(int, state(page)["range"].split("_"))
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
    assert grid.get_attribute("aria-rowcount") == str(len(expected) + 1)
    train = grid.get_by_role("row").filter(has=page.get_by_text("train", exact=True))
    count = next(row["n"] for row in expected if row["name"] == "train")
    assert train.locator("[role=gridcell]").nth(1).inner_text() == str(count)
    assert page.locator(".tl-range").is_visible()
    page.keyboard.press("Escape")
    wait_for_state(page, range=None)
    assert page.locator(".tl-range").is_hidden()


def test_steps_are_followed_by_keys_and_by_the_address(page, server):
    steps = api(server, "sessions/slow_step/tools/step_breakdown")["steps"]
    open_timeline(page, server, "slow_step", step=6)
    loaded(page)
    page.locator(".tl-stepper").filter(has_text="train 6").wait_for()
    for key, number in ((None, 6), ("]", 7), ("]", 8), ("[", 7)):
        if key:
            page.keyboard.press(key)
        wait_for_state(page, step=number)
        begin, end = shown(page)
        step = steps[number]
        assert begin < step["start_ps"] < step["end_ps"] < end
        assert end - begin == pytest.approx(1.08 * step["wall_ps"], rel=0.01)
    label = page.locator(".tl-band.steps canvas").get_attribute("aria-label")
    assert label == f"{len(steps)} steps"


def test_the_steps_band_follows_a_click(page, server):
    step = api(server, "sessions/slow_step/tools/step_breakdown")["steps"][13]
    open_timeline(page, server, "slow_step")
    loaded(page)
    first, last = shown(page)
    band = page.locator(".tl-band.steps canvas")
    middle = (step["start_ps"] + step["end_ps"]) / 2
    x = (middle - first) / (last - first) * band.bounding_box()["width"]
    band.click(position={"x": x, "y": 8})
    wait_for_state(page, step=13)


def test_a_finding_leads_to_its_steps(page, server):
    open_timeline(page, server, "slow_step", tab="findings")
    loaded(page)
    page.get_by_role("article").wait_for()
    told = api(server, "sessions/slow_step/tools/time_findings")["hosts"][0]["findings"]
    assert page.get_by_role("article").count() == len(told)
    assert told[0]["title"] in page.get_by_role("article").first.inner_text()
    page.get_by_role("button", name="train 6", exact=True).click()
    wait_for_state(page, step=6)
    expect_accessible(page)
    screenshot(page, "timeline-findings")


def test_memory_lies_on_the_same_axis_and_can_be_put_away(page, server):
    counter = tool(server, "leak_list", view="counter", width=1)
    open_timeline(page, server, "leak_list")
    loaded(page)
    chart = page.locator(".tl-band.counter")
    assert chart.count() == 1
    most = max(counter["high"]) / 2**20
    chart.filter(has_text=f"up to {most:.1f} MiB").wait_for()
    widths = page.evaluate("""() => [".tl-band.counter canvas", ".tl-lanes", ".tl-band.axis canvas"]
      .map((one) => {
        const {left, width} = document.querySelector(one).getBoundingClientRect();
        return [Math.round(left), Math.round(width)];
      })""")
    assert widths[0] == widths[1] == widths[2]
    page.get_by_role("button", name="Memory", exact=True).click()
    assert chart.is_hidden()
    wait_for_state(page, memory=0)
    open_timeline(page, server, "leak_list", memory=0)
    loaded(page)
    assert page.locator(".tl-counters").is_hidden()


def test_lines_and_planes_fold(page, server):
    open_timeline(page, server, "slow_step")
    lanes = tool(server, "slow_step", view="lanes")
    line = page.get_by_role("button", name=re.compile("^python"))
    before = page.evaluate(TOPS)
    line.click()
    wait_for_state(page, folded=0)
    after = page.evaluate(TOPS)
    assert before["1"] - after["1"] == (lanes["line_rows"][0] - 1) * ROW_PX
    assert line.get_attribute("aria-expanded") == "false"
    line.press("Enter")
    wait_for_state(page, folded=None)
    page.locator(".tl-plane").first.click()
    wait_for_state(page, folded="p0")
    assert page.locator(".tl-line").count() == 0


def test_a_link_shows_somebody_else_the_same(page, new_page, server):
    small = {"width": 1000, "height": 600}
    page.set_viewport_size(small)
    event = found(server, "slow_step", "EagerKernelExecute")
    open_timeline(page, server, "slow_step", event=event["event"], q="kernel", folded="1")
    loaded(page)
    page.keyboard.press("m")
    for key in "ssss":
        page.keyboard.press(key)
    page.wait_for_function(
        "() => location.hash.includes('range=') && location.hash.includes('from=')"
    )
    canvas(page).hover(position={"x": 100, "y": 60})
    page.mouse.wheel(0, 34)
    wait_for_state(page, y=34)
    page.mouse.move(5, 5)
    settle(page)
    other = new_page(viewport=small)
    other.goto(page.url)
    other.wait_for_selector("canvas.tl-lanes[aria-busy=false]")
    loaded(other)
    other.get_by_role("grid", name="Events in the range by name").wait_for()
    picture = "() => document.querySelector('canvas.tl-lanes').toDataURL()"
    mine = page.evaluate(picture)
    other.wait_for_function(f"(mine) => ({picture})() === mine", arg=mine)
    assert state(other) == state(page)
    assert other.locator(".tl-range").bounding_box() == page.locator(".tl-range").bounding_box()


def test_back_undoes_what_an_address_changed(page, server):
    open_timeline(page, server, "slow_step", q="matmul")
    page.evaluate("location.hash = location.hash.replace('matmul', 'train')")
    page.locator(".tl-found").filter(has_text=re.compile("^28 events")).wait_for()
    page.go_back()
    page.locator(".tl-found").filter(has_text=re.compile("^196 events")).wait_for()
    assert page.get_by_role("searchbox").input_value() == "matmul"


def test_only_what_is_in_view_of_many_lines_is_asked_for(page, tmp_path):
    threads = 450
    events = [
        event
        for thread in range(threads)
        for event in (
            {
                "ph": "M",
                "name": "thread_name",
                "pid": 1,
                "tid": thread,
                "args": {"name": f"worker {thread}"},
            },
            {"ph": "X", "name": "work", "pid": 1, "tid": thread, "ts": thread, "dur": 50},
        )
    ]
    session = tmp_path / "plugins" / "profile" / "threads"
    session.mkdir(parents=True)
    (session / "host.profile").write_text(json.dumps({"traceEvents": events}))
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    with running_server(tmp_path, "--read-only", "--access-log", "off") as process:
        open_timeline(page, PageServer(process, tmp_path), "threads")
        page.locator(".tl-scroller").evaluate("(one) => { one.scrollTop = 5000; }")
        page.get_by_text("worker 230", exact=True).wait_for()
        with page.expect_response(re.compile("view=tile.*lines=")):
            for _ in range(6):
                page.keyboard.press("w")
        settle(page)
        loaded(page)
        page.get_by_role("button", name="Findings: none").wait_for()
        tiles = [parse_qs(urlsplit(url).query) for url in asked if "view=tile" in url]
        ranges = [tile["lines"][0].split("-") for tile in tiles if "lines" in tile]
        assert ranges
        first, last = map(int, ranges[-1])
        assert 0 < first < 230 < last < threads - 1
        page.goto("about:blank")  # before the server ends


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
    assert page.get_by_text("a disk broke").is_hidden()


def test_names_are_never_markup(page, server):
    open_timeline(page, server, HOSTILE, q="img", tab="event")
    loaded(page)
    page.keyboard.press("n")
    page.locator("section[aria-label=Event]").wait_for()
    assert page.locator("main img").count() == 0
    assert HOSTILE in page.locator(".tl-head h3").inner_text()
    expect_accessible(page)


def test_each_host_has_its_own_lanes(page, server):
    hosts = sorted(
        re.sub(r"\.xplane\.pb(\.gz)?$", "", place.name) for place in SAMPLES["tf2_multihost"]
    )
    for host in hosts:
        open_timeline(page, server, "tf2_multihost", host=host)
        lanes = tool(server, "tf2_multihost", view="lanes", host=host)
        label = canvas(page).get_attribute("aria-label")
        lines = sum(1 for count in lanes["line_events"] if count)
        assert label.startswith(f"Events of {lines} lines, from ")
        assert shown(page) == (lanes["start_ps"], lanes["end_ps"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 1000])
def test_it_is_accessible_in_every_look(new_page, server, scheme, width):
    page = new_page(color_scheme=scheme, viewport={"width": width, "height": width // 10 * 7})
    open_timeline(page, server, "slow_step")
    loaded(page)
    expect_accessible(page)
    screenshot(page, f"timeline-{scheme}-{width}")


def test_the_keyboard_reaches_everything_and_the_edge(page, server):
    open_timeline(page, server, "slow_step", tab="steps")
    loaded(page)
    edge = page.get_by_role("separator")
    before = int(edge.get_attribute("aria-valuenow"))
    edge.focus()
    page.keyboard.press("ArrowUp")
    assert int(edge.get_attribute("aria-valuenow")) == before + 24
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("follow the previous and the next step").wait_for()
    page.keyboard.press("Escape")
    names = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        names.add(page.evaluate(FOCUS))
    assert {"Search events by name", "Memory", "Whole", "Event"} <= names
