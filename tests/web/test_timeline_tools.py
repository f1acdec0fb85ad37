"""The timeline's tools: steps, filters of lanes, measuring."""

import csv
import re
from dataclasses import replace

import pytest
from tests.jobs.kineto_traces import Clock
from tests.jobs.simulated import SCENARIOS
from tests.waiting import until
from tests.web.looking import (
    api,
    eventually,
    expect_accessible,
    expect_accessible_in_both_schemes,
    load_again,
    open_view,
    params,
    settle,
    tells,
    wait_for_params,
)
from tests.web.timelines import (
    PIXELS,
    canvas,
    event_of,
    facts,
    found,
    loaded,
    open_timeline,
    place_of,
    shown,
    tool,
)

from peakline.patterns import Pattern

ACTIVITY_COLORS = """async ([names]) => {
  const place = new URL("assets/js/views/timeline/activities.js", location.href);
  const {activityColor, activityOf} = await import(place);
  return names.map((name) => {
    const color = Number.parseInt(activityColor(activityOf(name)).slice(1), 16);
    return `rgb(${color >> 16}, ${(color >> 8) & 255}, ${color & 255})`;
  });
}"""


def chosen_is(page, event):
    """Come back when an event is chosen and all about it is shown."""
    wait_for_params(page, event=event["event"], tab="event")
    page.get_by_role("heading", name=event["name"], exact=True).wait_for()
    page.locator("section[aria-label=Children]").wait_for()


def drag(page, begin, end, *, shift=False):
    """Drag over the lanes, from one place of the canvas to another."""
    box = canvas(page).bounding_box()
    if shift:
        page.keyboard.down("Shift")
    page.mouse.move(box["x"] + begin[0], box["y"] + begin[1])
    page.mouse.down()
    page.mouse.move(box["x"] + end[0], box["y"] + end[1], steps=4)
    page.mouse.up()
    if shift:
        page.keyboard.up("Shift")


def test_a_link_by_name_chooses_the_event(page, server):
    meant = tool(server, "slow_step", view="find", search="train")
    open_timeline(page, server, "slow_step", find="train")
    chosen_is(page, meant["found"])
    assert "find" not in params(page)
    first, last = shown(page)
    event = meant["found"]
    assert first < event["start_ps"] < event["start_ps"] + event["duration_ps"] < last


def test_a_link_by_moment_chooses_the_event_that_begins_then(page, server):
    event = found(server, "slow_step", "MemoryAllocation")
    open_timeline(page, server, "slow_step", pick=event["start_ps"], at=event["start_ps"])
    chosen_is(page, event)
    _, y = place_of(page, event)
    assert 0 < y < canvas(page).bounding_box()["height"]


def test_a_link_to_what_is_not_there_says_so_and_chooses_nothing(page, server):
    open_timeline(page, server, "slow_step", find="no such op")
    body = page.locator(".tl-body")
    body.get_by_text("No event of this profile is called no such op.").wait_for()
    assert "event" not in params(page)


def test_a_link_of_a_step_chooses_the_event_that_marks_it(page, server):
    open_view(page, server, "/session/slow_step/steps", step=6)
    page.get_by_role("link", name="In the timeline").first.click()
    page.wait_for_selector("canvas.tl-lanes[aria-busy=false]")
    wait_for_params(page, step=6)
    page.wait_for_function("() => location.hash.includes('event=')")
    assert event_of(server, "slow_step", params(page)["event"])["name"] == "train"
    page.get_by_role("heading", name="train", exact=True).wait_for()


def test_events_have_the_color_of_what_goes_on_and_the_legend_dims_it(page, server):
    lanes = tool(server, "slow_step", view="lanes")
    event = found(server, "slow_step", "KernelAndDeviceFunc::Run", "last")
    start, end = event["start_ps"], event["start_ps"] + event["duration_ps"]
    open_timeline(page, server, "slow_step", **{"from": start - 10**6, "to": end + 10**6})
    loaded(page)
    does = event_of(server, "slow_step", event["event"])["activity"]
    assert does in lanes["activity_name"]
    color = page.evaluate(ACTIVITY_COLORS, [[does]])
    eventually(lambda: page.evaluate(PIXELS, [[place_of(page, event)]]), color)
    button = page.locator(".tl-legend button", has_text="other host work")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    wait_for_params(page, off=does)
    until(lambda: page.evaluate(PIXELS, [[place_of(page, event)]]) != color, "another color")
    page.locator(".tl-legend button", has_text="other host work").click()
    wait_for_params(page, off=None)
    page.get_by_role("combobox", name="Color by").select_option("name")
    wait_for_params(page, colors="name")
    until(lambda: page.evaluate(PIXELS, [[place_of(page, event)]]) != color, "another color")


def test_the_pointer_at_rest_tells_self_time_and_arguments(page, server):
    event = found(server, "slow_step", "train")
    details = event_of(server, "slow_step", event["event"])
    start, end = event["start_ps"], event["start_ps"] + event["duration_ps"]
    open_timeline(page, server, "slow_step", **{"from": start - 10**8, "to": end + 10**8})
    loaded(page)
    x, y = place_of(page, event)
    canvas(page).hover(position={"x": x, "y": y + 4})
    tip = page.locator(".tip")
    tip.filter(has_text="self").wait_for()
    result = tip.inner_text()
    assert "train" in result
    assert "markers" in result
    assert all(f"{stat['name']}: {stat['value']}" in result for stat in details["stats"])
    page.mouse.move(2, 2)
    tip.wait_for(state="hidden")


def test_the_column_of_labels_is_made_wider_by_keys(page, server):
    open_timeline(page, server, "slow_step")
    edge = page.get_by_role("separator", name="Width of the labels")
    before = page.evaluate("document.querySelector('.tl-labels').clientWidth")
    edge.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    eventually(
        lambda: page.evaluate("document.querySelector('.tl-labels').clientWidth"), before + 6 * 16
    )
    load_again(page, page.evaluate("location.href"))
    page.wait_for_selector("canvas.tl-lanes[aria-busy=false]")
    eventually(
        lambda: page.evaluate("document.querySelector('.tl-labels').clientWidth"), before + 6 * 16
    )
    page.evaluate("localStorage.removeItem('peakline.timeline.labels')")


def test_keys_follow_an_arrow_and_come_back(page, server):
    event = found(server, "slow_step", "MemoryAllocation")
    arrows = tool(server, "slow_step", view="arrows", event=event["event"])
    freed = arrows["to"][arrows["kind"].index("allocation")]
    open_timeline(page, server, "slow_step", event=event["event"])
    page.locator("section[aria-label=Arrows]").get_by_text("is freed at").wait_for()
    canvas(page).focus()
    page.keyboard.press(".")
    wait_for_params(page, event=freed["event"])
    page.locator("section[aria-label=Arrows]").get_by_text("allocation from").wait_for()
    page.keyboard.press(",")
    wait_for_params(page, event=event["event"])


def test_arrows_of_all_in_view_are_shown_where_they_are_few(page, server):
    lanes = tool(server, "slow_step", view="lanes")
    open_timeline(page, server, "slow_step")
    page.get_by_role("button", name="Arrows", exact=True).click()
    wait_for_params(page, arrows=1)
    total = tool(server, "slow_step", view="arrows")["total"]
    page.get_by_text(f"{total:,} arrows in view: zoom in to see them").wait_for()
    middle = found(server, "slow_step", "MemoryAllocation")["start_ps"]
    page.evaluate(
        "([from, to]) => { location.hash = location.hash + `&from=${from}&to=${to}`; }",
        [max(lanes["start_ps"], middle - 10**8), middle + 10**8],
    )
    page.get_by_text(re.compile(r"^\d+ arrows?$")).wait_for()


def test_an_area_over_lanes_is_added_up_by_the_service(page, server):
    open_timeline(page, server, "slow_step")
    loaded(page)
    drag(page, (150, 40), (260, 150), shift=True)
    page.wait_for_function("() => location.hash.includes('lanes=')")
    begin, end = map(int, params(page)["range"].split("_"))
    lines = params(page)["lanes"]
    area = tool(server, "slow_step", view="area", start_ps=begin, end_ps=end, lines=lines)
    grid = page.get_by_role("grid", name="Events in the range by name")
    eventually(lambda: grid.get_attribute("aria-rowcount"), str(len(area["name"]) + 1))
    first = grid.get_by_role("row").nth(1).locator("[role=gridcell]")
    assert first.nth(0).inner_text() == area["name"][0]
    assert first.nth(1).inner_text() == f"{area['count'][0]:,}"
    words = page.locator(".tl-says").inner_text()
    counts = [area["events"], area["names_total"], area["lines"]]
    assert [int(one.replace(",", "")) for one in re.findall(r"[\d,]+", words)[:3]] == counts
    tree = page.get_by_role("tree", name="How the events in the range nest, by name")
    roots = [
        name
        for name, parent in zip(area["frame_name"], area["frame_parent"], strict=True)
        if parent < 0
    ]
    tree.get_by_role("treeitem", name=re.compile(re.escape(roots[0]))).first.wait_for()
    page.get_by_role("combobox", name="Of which lines").select_option("all")
    wait_for_params(page, lanes=None)
    whole = tool(server, "slow_step", view="area", start_ps=begin, end_ps=end)
    eventually(lambda: grid.get_attribute("aria-rowcount"), str(len(whole["name"]) + 1))
    expect_accessible(page)


def test_the_button_select_measures_without_shift(page, server):
    open_timeline(page, server, "slow_step")
    page.get_by_role("button", name="Select", exact=True).click()
    drag(page, (150, 40), (260, 43))
    page.wait_for_function("() => location.hash.includes('range=')")
    assert "lanes" not in params(page)
    assert "from" not in params(page)


def names_of_lanes(page):
    """The lines that are shown, from the top."""
    settle(page)
    return page.locator(".tl-line").evaluate_all(
        "(all) => all.map((one) => one.title.split('\\n').at(0))"
    )


@pytest.mark.nightly
def test_lanes_are_pinned_moved_hidden_and_filtered(page, other_page, server):
    open_timeline(page, server, "slow_step")
    loaded(page)
    lines = tool(server, "slow_step", view="lanes")["line_name"]
    second = lines[1]

    def act(name, item):
        page.get_by_role("button", name=f"Arrange {name}", exact=True).click()
        page.get_by_role("menuitem", name=item, exact=True).click()

    act(second, "Pin to the top")
    wait_for_params(page, pin=1)
    eventually(lambda: names_of_lanes(page)[1:2], [lines[0]])
    page.get_by_role("button", name="Pinned").wait_for()
    act(second, "Unpin")
    wait_for_params(page, pin=None)
    act(second, "Move up")
    eventually(lambda: names_of_lanes(page)[:2], [second, lines[0]])
    act(lines[0], "Hide")
    wait_for_params(page, hide=0)
    until(lambda: lines[0] not in names_of_lanes(page), "the line is hidden")
    load_again(other_page, page.evaluate("location.href"))
    other_page.wait_for_selector("canvas.tl-lanes[aria-busy=false]")
    eventually(lambda: names_of_lanes(other_page), names_of_lanes(page))
    page.get_by_role("button", name="1 line hidden: show all").click()
    wait_for_params(page, hide=None, order=None)
    page.get_by_role("textbox", name="Show only lines whose name matches").fill("tf_*eigen")
    wait_for_params(page, only="tf_*eigen")
    wanted = [name for name in lines if re.search("tf_.*eigen", name.lower())]
    eventually(lambda: names_of_lanes(page), wanted)


def test_the_menu_of_a_lane_works_by_keys(page, server):
    open_timeline(page, server, "slow_step")
    line = tool(server, "slow_step", view="lanes")["line_name"][0]
    page.get_by_role("button", name=f"Arrange {line}", exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_role("menu").wait_for()
    expect_accessible(page)
    page.keyboard.press("Escape")
    page.get_by_role("menu").wait_for(state="hidden")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    wait_for_params(page, pin=0)


def test_an_event_that_is_hidden_is_shown_when_it_is_chosen(page, server):
    event = found(server, "slow_step", "train")
    open_timeline(page, server, "slow_step", hide=event["line"], event=event["event"])
    chosen_is(page, event)
    wait_for_params(page, hide=None)


def test_flags_are_in_the_address_alone(page, other_page, server):
    open_timeline(page, server, "slow_step")
    canvas(page).hover(position={"x": 300, "y": 80})
    page.keyboard.press("b")
    page.get_by_role("textbox", name="Note of flag 1").fill("slow | from here: 100%")
    page.wait_for_function("() => location.hash.includes('flags=') && /100/.test(location.hash)")
    load_again(other_page, page.evaluate("location.href"))
    other_page.wait_for_selector("canvas.tl-lanes[aria-busy=false]")
    other = other_page.get_by_role("textbox", name="Note of flag 1")
    eventually(other.input_value, "slow | from here: 100%")
    before = int(params(page)["flags"].split("_")[0])
    page.get_by_role("button", name=re.compile("flag 1 at .*: show it")).focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "([before]) => !location.hash.includes(`flags=${before}_`)", arg=[str(before)]
    )
    assert int(params(page)["flags"].split("_")[0]) > before
    expect_accessible(page)
    page.get_by_role("button", name="Remove flag 1").click()
    wait_for_params(page, flags=None)


def test_all_hosts_are_stacked_on_one_clock(page, server):
    hosts = ("localhost_47507", "localhost_56665")
    open_timeline(page, server, "tf2_multihost", host=hosts[0])
    page.get_by_role("button", name="All hosts").click()
    wait_for_params(page, hosts="all")
    page.get_by_text("All hosts on one clock:").wait_for()
    page.wait_for_selector("canvas.tl-lanes[aria-busy=false]")
    lanes = [tool(server, "tf2_multihost", view="lanes", host=host) for host in hosts]
    lines = sum(1 for one in lanes for count in one["line_events"] if count)
    until(
        lambda: canvas(page).get_attribute("aria-label").startswith(f"Events of {lines} lines"),
        "the lines of both hosts",
    )
    offset = clock_offset(page, hosts[1])
    event = tool(server, "tf2_multihost", view="find", search="matmul:MatMul", host=hosts[1])
    number = event["found"]["event"] + 2**32
    open_timeline(page, server, "tf2_multihost", hosts="all", event=number)
    page.get_by_role("heading", name="matmul:MatMul", exact=True).wait_for()
    link = page.get_by_role("link", name="Memory at its start").get_attribute("href")
    assert f"host={hosts[1]}" in link
    assert f"at={event['found']['start_ps']}" in link
    first, last = shown(page)
    assert first < event["found"]["start_ps"] + offset < last
    assert re.match(hosts[1], facts(page)["Plane"])


def test_chosen_ranks_are_stacked_on_the_clock_of_their_job(serve, page, tmp_path):
    folder = tmp_path / "plugins" / "profile" / "job"
    folder.mkdir(parents=True)
    scenario = SCENARIOS["drifting_healthy"](4, 6, seed=1)
    clocks = (Clock(3_000_000), Clock(-41_000_000, 40.0))
    scenario = replace(
        scenario, job=replace(scenario.job, per_host=2), clocks=clocks, names="rank{rank}.profile"
    )
    scenario.write(folder)
    server = serve(tmp_path)
    open_timeline(page, server, "job", hosts="rank0,rank3")
    page.get_by_text("2 hosts on one clock: where the ends of collectives match").wait_for()
    clocks = {
        one["host"]: one for one in api(server, "sessions/job/tools/job")["job"]["clocks"]["ranks"]
    }
    assert clocks["rank3"]["drift"]
    ends, own = [], []
    for place, rank in enumerate((0, 3)):
        last = tool(server, "job", view="search", search="ncclDev", host=f"rank{rank}")["last"]
        own.append(last["start_ps"] + last["duration_ps"])
        open_timeline(page, server, "job", hosts="rank0,rank3", event=last["event"] + place * 2**32)
        ends.append(facts(page)["Ends"])
        assert facts(page)["Plane"].startswith(f"rank {rank} ")
        clock = clocks[f"rank{rank}"]
        at = own[-1] + clock["offset_ps"] - clock["drift"] * (own[-1] - clock["at_ps"])
        assert seconds(ends[-1]) == pytest.approx(at / 1e12, abs=1e-9)
    assert abs(own[0] - own[1]) > 1e9
    # By their own clocks they are 45 ms apart, and by 1.2 ms more than at the begin.
    assert abs(seconds(ends[0]) - seconds(ends[1])) < 50e-6
    rows = api(server, "sessions/job/tools/collectives", sort="arrival")["rows"]
    mine = [row for row in rows if row["collective"] == rows[-1]["collective"]]
    event = tool(server, "job", view="search", search="ncclDev", host="rank0")["last"]["event"]
    open_timeline(page, server, "job", hosts="all", event=event)
    arrows = page.get_by_label("Arrows", exact=True).get_by_role("listitem")
    source = rows[-1]["rank"]
    assert len(mine) == 4
    texts = (
        [f"is waited for by rank {n}: ncclDev" for n in range(1, 4)]
        if source == 0
        else [f"collective from rank {source}: ncclDev"]
    )
    eventually(lambda: [one.partition("Kernel")[0] for one in arrows.all_inner_texts()
                        if "rank" in one], texts)  # fmt: skip
    open_timeline(page, server, "job", hosts="rank0,rank3")
    page.get_by_role("button", name="Choose hosts").click()
    page.get_by_label("Filter hosts").fill("rank 2")
    expect_accessible_in_both_schemes(page, "chosen_ranks")
    page.get_by_role("checkbox", name="rank 2").check()
    page.get_by_role("button", name="Show", exact=True).click()
    wait_for_params(page, hosts="rank0,rank2,rank3")
    page.get_by_role("button", name="Remove rank 0").click()
    wait_for_params(page, hosts="rank2,rank3")
    page.wait_for_selector("canvas.tl-lanes[aria-busy=false]")
    heading = page.get_by_role("button", name="rank 2", exact=True)
    heading.click()
    eventually(lambda: heading.get_attribute("aria-expanded"), "false")


def seconds(text):
    """A time as the page shows it."""
    number, unit = text.split(" ")
    return float(number) * {"s": 1, "ms": 1e-3}[unit]


def clock_offset(page, host):
    """Where the service puts a host's zero on the axis of all, in ps."""
    result = page.evaluate(
        "() => fetch('api/sessions/tf2_multihost/tools/step_breakdown').then((one) => one.json())"
    )
    return next(one["offset_ps"] for one in result["clocks"]["hosts"] if one["host"] == host)


def test_two_fingers_zoom_and_pan(page, server):
    open_timeline(page, server, "slow_step")
    first, last = shown(page)
    box = canvas(page).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + 60
    session = page.context.new_cdp_session(page)

    def touch(kind, *points):
        result = [{"x": px, "y": py, "id": number} for number, (px, py) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": result})

    touch("touchStart", (x - 50, y))
    touch("touchStart", (x - 50, y), (x + 50, y))
    for apart in (80, 120, 200):
        touch("touchMove", (x - apart, y), (x + apart, y))
    touch("touchEnd")
    until(lambda: (last - first) / (shown(page)[1] - shown(page)[0]) > 2, "zoomed in")
    begin, end = shown(page)
    touch("touchStart", (x - 50, y))
    touch("touchStart", (x - 50, y), (x + 50, y))
    for by in (40, 80, 120):
        touch("touchMove", (x - 50 + by, y), (x + 50 + by, y))
    touch("touchEnd")
    until(lambda: shown(page)[0] < begin and shown(page)[1] < end, "earlier")


@pytest.mark.parametrize("width", [1440, 800, 390])
def test_everything_at_once_is_accessible(page, server, width):
    page.set_viewport_size({"width": width, "height": 900})
    event = found(server, "slow_step", "train")
    start = event["start_ps"]
    for tab in ("event", "range", "notes"):
        open_timeline(
            page, server, "slow_step", event=event["event"], tab=tab, pin=1, arrows=1,
            range=f"{start}_{start + 10**10}", lanes="0-1", flags=f"{start}_begins",
            off="launch", only="t*",
        )  # fmt: skip
        loaded(page)
        expect_accessible_in_both_schemes(page, f"timeline_tools_{tab}_{width}")
        # Not of the page: its header has a test of its own.
        wide = page.evaluate("document.querySelector('main').scrollWidth")
        assert wide <= page.evaluate("document.querySelector('main').clientWidth")


def test_of_many_steps_the_band_reads_what_its_pixels_show(page, server):
    sizes = []
    page.on(
        "response", lambda one: sizes.append(len(one.body())) if "view=steps" in one.url else None
    )
    page.on("request", lambda one: sizes.append(10**9) if "step_breakdown" in one.url else None)
    steps = api(server, "sessions/many_steps/tools/step_breakdown")["steps"]
    open_timeline(page, server, "many_steps")
    loaded(page)
    band = page.locator(".tl-band.steps canvas")
    eventually(lambda: band.get_attribute("aria-label"), f"{len(steps):,} steps")
    assert sizes
    assert max(sizes) < 200_000
    page.keyboard.press("]")
    page.wait_for_function("() => location.hash.includes('step=')")
    page.keyboard.press("]")
    page.keyboard.press("]")
    page.keyboard.press("[")
    middle = next(
        place
        for place, step in enumerate(steps)
        if step["end_ps"] > (steps[0]["start_ps"] + steps[-1]["end_ps"]) / 2
    )
    wait_for_params(page, step=steps[middle + 1]["step_id"])
    begin, end = shown(page)
    step = steps[middle + 1]
    assert begin < step["start_ps"] < step["end_ps"] < end
    page.get_by_role("button", name="Steps (6,400)").click()
    page.get_by_text("the first 2,000 of 6,400 steps").wait_for()


def test_an_address_names_a_step_of_any_of_the_devices(page, server):
    steps = api(server, "sessions/gpus/tools/step_breakdown")["steps"]
    devices = sorted({one["device"] for one in steps})
    own = [one for one in steps if one["device"] == devices[2]]
    open_timeline(page, server, "gpus", step=f"{own[1]['step_id']}.2")
    loaded(page)
    begin, end = shown(page)
    assert begin < own[1]["start_ps"] < own[1]["end_ps"] < end
    page.keyboard.press("]")
    wait_for_params(page, step=f"{own[2]['step_id']}.2")


def test_steps_of_all_hosts_are_on_one_clock(page, server):
    rows = api(server, "sessions/tf2_multihost/tools/step_breakdown", host="")["steps"]
    hosts = sorted({one["host"] for one in rows})
    own = sorted((one for one in rows if one["host"] == hosts[1]), key=lambda one: one["start_ps"])
    open_timeline(page, server, "tf2_multihost", hosts="all", step=f"{own[3]['step_id']}.1")
    page.locator(".tl-stepper").filter(has_text="(").wait_for()
    begin, end = shown(page)
    assert begin < own[3]["start_ps"] < own[3]["end_ps"] < end
    page.keyboard.press("]")
    wait_for_params(page, step=f"{own[4]['step_id']}.1")
    band = page.locator(".tl-band.steps canvas")
    eventually(lambda: band.get_attribute("aria-label"), f"{len(rows)} steps of 2 devices")


@pytest.mark.parametrize("width", [1440, 800])
def test_a_chosen_event_stays_in_view_when_the_part_below_opens(page, server, width):
    page.set_viewport_size({"width": width, "height": 800})
    open_timeline(page, server, "tf2_cnn", q="MatMul")
    page.get_by_role("searchbox").press("Enter")
    page.wait_for_function("() => location.hash.includes('event=')")
    page.locator("section[aria-label=Children]").wait_for()
    result = api(server, "sessions/tf2_cnn/tools/timeline", view="search", search="MatMul")["first"]
    place = """([line, row]) => {
      const label = document.getElementById(`tl-fold-${line}`)?.closest(".tl-label");
      const scroller = document.querySelector(".tl-scroller");
      if (!label) return false;
      const height = 17 * (row + 1);
      const top = label.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
      return top + height > 0 && top + height <= scroller.clientHeight + 1;
    }"""
    eventually(lambda: page.evaluate(place, [result["line"], result["row"]]), expected=True)


def test_a_step_of_a_finding_is_followed(page, server):
    open_view(page, server, "/session/slow_step/timeline", tab="findings")
    loaded(page)
    page.locator(".finding").first.wait_for()
    page.locator(".finding button[title='follows the step']").first.click()
    page.wait_for_function("() => location.hash.includes('step=')")


def test_the_timeline_and_its_counters_are_exported(page, server, tmp_path):
    open_timeline(page, server, "slow_step")
    loaded(page)
    first, last = shown(page)
    lanes = tool(server, "slow_step", view="lanes")
    for name, columns in (
        ("slow step timeline", "plane,line,row,start_ps,duration_ps,events,name,activity,event"),
        ("slow step counters", "group,counter,start_ps,low,high,last"),
    ):
        saved = {}
        for kind in ("CSV", "PNG"):
            page.locator(f"summary[aria-label='Export {name}']").click()
            with page.expect_download() as download:
                page.locator("details.export[open]").get_by_role("button", name=kind).click()
            saved[kind] = tmp_path / f"{name}.{kind}"
            download.value.save_as(saved[kind])
        assert saved["PNG"].read_bytes().startswith(b"\x89PNG")
        with saved["CSV"].open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert ",".join(rows[0]) == columns
        assert all(first <= int(row["start_ps"]) <= last for row in rows)
        if "events" in rows[0]:
            assert sum(int(row["events"]) for row in rows) == lanes["events"]
        else:
            own = tool(server, "slow_step", view="counter", width=1)
            assert max(float(row["high"]) for row in rows) == max(own["high"])


def test_lines_are_filtered_by_an_expression(page, other_page, server):
    lines = tool(server, "slow_step", view="lanes")["line_name"]
    open_timeline(page, server, "slow_step")
    field = page.get_by_role("textbox", name="Show only lines whose name matches")
    for text, keep in (
        ("/eigen.-1[0-9]+$/", lambda name: "Eigen/-1" in name),
        ("-/^.{0,60}(eigen|python)/", lambda name: not re.search("eigen|python", name.lower())),
        ("python | /eigen.-1/", lambda name: re.search("python|eigen.-1", name.lower())),
    ):
        wanted = [name for name in lines if keep(name)]
        assert 0 < len(wanted) < len(lines), text
        field.fill(text)
        wait_for_params(page, only=text)
        eventually(lambda: names_of_lanes(page), wanted)
    load_again(other_page, page.evaluate("location.href"))
    other_page.wait_for_selector("canvas.tl-lanes[aria-busy=false]")
    eventually(lambda: names_of_lanes(other_page), names_of_lanes(page))
    # What would take a backtracking engine for ever.
    field.fill("/(((.+)+)+)+(x+x+)+!/")
    eventually(lambda: names_of_lanes(page), [])
    field.fill("/python(/")
    tells(page.locator(".tl-bar .bad"), "no expression: a ( without its )")
    assert field.get_attribute("aria-invalid") == "true"
    expect_accessible(page)
    field.fill("/python/")
    page.locator(".tl-bar .bad").wait_for(state="hidden")


MATCHES = """async ([pairs]) => {
  const place = new URL("assets/js/core/expression.js", location.href);
  const { expression } = await import(place);
  return pairs.map(([source, text]) => {
    try { return expression(source)(text); } catch (error) { return error.message; }
  });
}"""


def test_expressions_are_those_of_re2(page, server):
    """Pairs of expressions and texts, against the service's own engine."""
    open_view(page, server, "/session/slow_step/summary")
    sources = [
        "a", "^a", "a$", "stream #[0-9]+$", "(a+)+$", "(?:ab|c){2,3}x", "[^a-c]$", r"\d{2}",
        r"\s\w+", "a.*b|c", "x?y*z+", "[]a]", r"[\d-]x", "^$", "", "tf_.*eigen", "a{0}b",
        "(a|b)*?c", "a{2,}", r"\.", "[a-]x", r"\W\D\S",
    ]  # fmt: skip
    texts = [
        "", "a", "ab", "Stream #12", "stream #x", "aaaaaaab", "ababx", "ccx", "abcab", "xyz", "zz",
        "TF_xx_Eigen", "-x", "]", "5x", "b c", "a.b", "aa",
    ]  # fmt: skip
    pairs = [(source, text) for source in sources for text in texts]
    expected = [bool(Pattern(f"(?i){source}").is_in([text])[0]) for source, text in pairs]
    assert page.evaluate(MATCHES, [pairs]) == expected
    bad = [
        "(", "a)", "[a", "*a", r"\1", "(?=a)", "a{200}", "(((a{100}){100}){100})", "\\", "a" * 201,
    ]  # fmt: skip
    for result in page.evaluate(MATCHES, [[(one, "a") for one in bad]]):
        assert isinstance(result, str)
        assert "\n" not in result
