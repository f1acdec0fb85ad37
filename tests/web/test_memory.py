"""The memory view: pictures, rows, colours, programs, by mouse and by touch."""

import json
from itertools import pairwise

import pytest
from tests.waiting import until
from tests.web.looking import (
    address,
    api,
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
from tests.web.samples import HOSTILE, SAMPLES

from peakline.__main__ import main
from peakline.text import shares_text, size_text


def told_by_verb(capsys, session, *words):
    """What ``peakline memory --json`` says."""
    capsys.readouterr()
    assert main(["memory", str(SAMPLES[session][0]), "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_peak_is_shown_first_as_the_service_and_the_verb_tell_it(page, server, capsys):
    result, verb = live(server, "leak_list"), told_by_verb(capsys, "leak_list")["allocators"][0]
    assert result["bytes_in_use"] == verb["peak_bytes"]
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
    assert total == f"{result['rows_total']} rows, {size_text(verb['peak_bytes'])} together"


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
    result = live(server, "leak_list", at_ps=at)
    assert result["bytes_in_use"] == verb["in_use_bytes"]
    assert [cells[1] for cells in rows(page)] == [
        size_text(row["bytes"]) for row in result["rows"][: len(rows(page))]
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
    result = live(server, "leak_list", at_ps=600_000_000_000, search="matmul")
    chosen = result["rows"][2]
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
    assert fact(page, "In use") == size_text(result["bytes_in_use"])
    assert page.get_by_role("searchbox").input_value() == "matmul"
    assert (
        page.get_by_role("columnheader", name="Allocated").get_attribute("aria-sort") == "ascending"
    )
    assert (
        page.locator(".memory-live .total").inner_text().startswith(f"{result['rows_total']} rows")
    )
    assert page.locator(".memory-buffer h3").inner_text() == chosen["op"]
    assert page.locator(".memory-live .row.chosen").count() == 1


def test_keys_lead_through_moments_and_steps(page, server):
    result = live(server, "leak_list")
    steps = sorted(steps_of(server, "leak_list"), key=lambda step: step["start_ps"])
    open_view(page, server, view("leak_list"))
    drawn(page)
    chart(page).focus()
    page.keyboard.press("End")
    wait_for_params(page, at=result["end_ps"])
    page.keyboard.press("[")
    page.wait_for_function(f"() => !location.hash.includes('at={result['end_ps']}')")
    at = int(params(page)["at"])
    assert steps[-2]["start_ps"] <= at <= steps[-2]["end_ps"]
    page.keyboard.press("Home")
    wait_for_params(page, at=result["start_ps"])
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
    result = live(server, "leak_list", at_ps=400_000_000_000)
    assert fact(page, "In use") == size_text(result["bytes_in_use"])
    field.fill("soon")
    field.press("Enter")
    tells(page.get_by_role("alert"), "Write a time such as")
    outwait_timers(page)
    assert params(page)["at"] == "400000000000"


@pytest.mark.parametrize("session", ["oom_report", "jax_heap"])
def test_a_file_of_one_moment_has_no_axis_of_time(page, server, session):
    result = live(server, session)
    open_view(page, server, view(session))
    assert chart(page).count() == 0
    largest = max(result["allocators"], key=lambda one: one["peak_bytes"])
    assert page.locator(".memory-bars li").count() == len(result["allocators"])
    assert size_text(largest["peak_bytes"]) in page.locator(".memory-bars li").first.inner_text()
    assert len(rows(page)) > 5
    screenshot(page, f"memory_{session}")
    expect_accessible(page)


@pytest.mark.parametrize(
    "session", ["memory_log", "memory_log_bfc", "run_metadata", "torch_trace", "tf2_two_devices"]
)
def test_every_format_shows_its_peak(page, server, session, capsys):
    result = live(server, session)
    open_view(page, server, view(session))
    peaks = [one["peak_bytes"] for one in told_by_verb(capsys, session)["allocators"]]
    assert result["bytes_in_use"] == max(peaks)
    assert fact(page, "In use") == size_text(result["bytes_in_use"])
    begin, end = bounds(page)
    assert begin < result["start_ps"] <= result["end_ps"] < end
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


def span(page):
    """How much is in view, ps."""
    first, last = bounds(page)
    return last - first


def fingers(page, *moves):
    """Touch as a screen does: each of ``moves`` is a kind and places of fingers."""
    session = page.context.new_cdp_session(page)
    for kind, *places in moves:
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


@pytest.mark.parametrize(
    ("part", "query"),
    [
        (".memory-chart", {}),
        (".memory-chart", {"draw": "stack"}),
        (".memory-chart", {"draw": "buffers"}),
        (".address-map", {"map": "time"}),
    ],
)
def test_two_fingers_zoom_and_one_moves(page, server, part, query):
    open_view(page, server, view("leak_list"), **query)
    if "map" in query:
        tells(page.locator(".memory-addresses"), "blocks in")
    drawn(page)
    settle(page)
    canvas = page.locator(part)
    canvas.scroll_into_view_if_needed()
    box, before = canvas.bounding_box(), span(page)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    fingers(
        page,
        ("touchStart", (x - 50, y)),
        ("touchStart", (x - 50, y), (x + 50, y)),
        *(("touchMove", (x - apart, y), (x + apart, y)) for apart in (80, 120, 200)),
        ("touchEnd",),
    )
    until(lambda: before / span(page) > 2, "zoomed in")
    first, last = bounds(page)
    fingers(
        page,
        ("touchStart", (x, y)),
        *(("touchMove", (x + by, y)) for by in (30, 60, 90)),
        ("touchEnd",),
    )
    until(lambda: bounds(page)[0] < first and bounds(page)[1] < last, "earlier")


def test_one_finger_up_and_down_scrolls_the_page(page, server):
    page.set_viewport_size({"width": 390, "height": 700})
    open_view(page, server, view("leak_list"), map="time")
    drawn(page)
    tells(page.locator(".memory-addresses"), "blocks in")
    for part in (".memory-chart", ".memory-overview", ".address-map"):
        assert page.locator(part).evaluate("(one) => getComputedStyle(one).touchAction") == "pan-y"


def test_buttons_zoom(page, server):
    open_view(page, server, view("leak_list"))
    drawn(page)
    whole = span(page)
    zoom = page.get_by_role("group", name="Zoom", exact=True)
    zoom.get_by_role("button", name="Zoom in").click()
    eventually(lambda: span(page), pytest.approx(whole / 2, abs=2))
    zoom.get_by_role("button", name="Zoom out").click()
    eventually(lambda: span(page), whole)
    assert chart(page).is_visible()


def test_nothing_claims_to_be_by_program(page, server):
    open_view(page, server, view("leak_list"), draw="stack")
    drawn(page)
    by = page.get_by_label("Stacked by", exact=True)
    texts = by.locator("option").all_inner_texts()
    assert "by name of the step" in texts
    assert not [text for text in texts if "program" in text]
    by.select_option("program")
    tells(page.locator(".memory-modes"), "no record of memory says which XLA program")


@pytest.mark.parametrize("group", ["op", "scope", "region_type", "data_type", "shape", "step"])
def test_groups_are_those_of_the_service(page, server, group):
    result = live(server, "leak_list", group=group)
    open_view(page, server, view("leak_list"))
    page.locator(f".groups [data-group={group}]").click()
    wait_for_params(page, group=group)
    settle(page)
    # They are all that is in use, so the shares add up as printed.
    shares = shares_text([row["bytes"] for row in result["rows"]])
    expected = [
        [row["key"] or ("(no op)" if group == "op" else "(not recorded)"), size_text(row["bytes"]),
         "<0.1%" if share == "0.0%" and row["bytes"] else share, str(row["count"])]
        for row, share in zip(result["rows"], shares, strict=True)
    ]  # fmt: skip
    shown = [[cells[0].replace("\n", ""), *cells[1:]] for cells in rows(page)]
    assert len(shown) >= min(10, len(expected))
    assert shown == expected[: len(shown)]
    assert sum(row["bytes"] for row in result["rows"]) == result["bytes_in_use"]


def test_a_group_leads_to_its_buffers_and_back_undoes_it(page, server):
    open_view(page, server, view("leak_list"), group="op")
    page.locator(".memory-live .row", has_text="MatMul_1").first.click()
    op = wait_for_param(page, "op")
    settle(page)
    result = live(server, "leak_list", op=op)
    assert len(rows(page)) == result["rows_total"] > 0
    page.go_back()
    eventually(lambda: params(page), {"group": "op"})
    page.locator("[data-group=op][aria-pressed=true]").wait_for()
    settle(page)
    ops = live(server, "leak_list", group="op")["rows"]
    eventually(lambda: [cells[1] for cells in rows(page)], [size_text(one["bytes"]) for one in ops])


def test_search_and_sort_are_the_services(page, server):
    open_view(page, server, view("leak_list"))
    page.get_by_role("searchbox").fill("hidden")
    wait_for_params(page, q="hidden")
    page.get_by_role("button", name="Allocated").click()
    wait_for_params(page, sort="-start_ps")
    settle(page)
    result = live(server, "leak_list", search="hidden", sort="start_ps", descending="true")
    shown = rows(page)
    steps = {row["step_id"]: row["name"] for row in steps_of(server, "leak_list")}
    assert [cells[5] for cells in shown] == [
        steps[row["start_step"]] for row in result["rows"][: len(shown)]
    ]


def test_a_leak_leads_to_what_every_step_keeps(page, server):
    (finding,) = api(server, "sessions/leak_list/tools/memory_findings")["findings"]
    open_view(page, server, view("leak_list"))
    part = page.locator(".memory-findings .finding").first
    assert finding["title"] in part.locator("h3").inner_text()
    page.get_by_role("button", name="Show where it grows, from step train 0").click()
    state = wait_for_params(page, within=finding["evidence"]["op"], sort="start_ps")
    settle(page)
    chosen = live(server, "leak_list", at_ps=state["at"], within=state["within"])
    assert chosen["rows_total"] == finding["evidence"]["steps"] == 20
    assert page.locator(".memory-live .total").inner_text().startswith("20 rows")
    page.go_back()
    wait_for_params(page, within=None, sort=None)
    total = live(server, "leak_list")["rows_total"]
    tells(page.locator(".memory-live .total"), f"{total} rows")


def test_fragmentation_leads_to_its_moment(page, server):
    findings = api(server, "sessions/fragmentation/tools/memory_findings")["findings"]
    evidence = next(one["evidence"] for one in findings if one["kind"] == "fragmentation")
    open_view(page, server, view("fragmentation"))
    page.get_by_role("button", name="Show that moment").click()
    state = wait_for_params(page, at=evidence["time_ps"])
    settle(page)
    chosen = live(server, "fragmentation", at_ps=state["at"], within=evidence["op"])
    tells(page.locator(".memory-live .total"), f"{chosen['rows_total']} rows")
    assert chosen["rows_total"] >= evidence["pins"]
    assert page.locator(".memory-legend").get_by_text("% of 64.0 MiB").count() == 1


def test_a_buffer_shows_its_life(page, server):
    open_view(page, server, view("leak_list"))
    page.locator(".memory-live .row", has_text="ResourceApplyAdam_1").first.click()
    (row,) = live(server, "leak_list", record=int(wait_for_param(page, "buffer")))["rows"]
    assert fact(page, "Bytes", ".memory-buffer") == size_text(row["bytes"])
    assert fact(page, "Address", ".memory-buffer") == row["address"]
    page.get_by_role("button", name="Show its life").click()
    wait_for_param(page, "from")
    state = params(page)
    assert int(state["from"]) < row["start_ps"] < row["end_ps"] < int(state["to"])
    screenshot(page, "memory_buffer")
    page.get_by_role("button", name="Leave this buffer").click()
    wait_for_params(page, buffer=None)
    page.locator(".memory-buffer").wait_for(state="hidden")


def test_the_icicle_narrows_to_a_scope(page, server):
    result = live(server, "leak_list", scopes="true")
    open_view(page, server, view("leak_list"))
    page.locator(".scopes .part", has_text="gradient_tape").first.click()
    wait_for_params(page, within="gradient_tape")
    place = result["scopes"]["path"].index("gradient_tape")
    together = f"{size_text(result['scopes']['bytes'][place])} together"
    tells(page.locator(".memory-live .total"), together)


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


def test_names_of_strangers_stay_text(page, server):
    open_view(page, server, view(HOSTILE))
    assert page.locator(".memory-legend strong").inner_text() == HOSTILE
    page.locator(".memory-live .row", has_text=HOSTILE).first.click()
    tells(page.locator(".memory-buffer h3"), HOSTILE)
    assert page.locator("img:not([src='assets/icon.svg'])").count() == 0


def ask(server, session, **query):
    return api(server, f"sessions/{session}/tools/program_memory", **query)


def shown(page):
    """The part of the view, with its answer."""
    page.wait_for_selector(".program-chart[aria-busy='false']")
    return page.locator(".memory-programs")


@pytest.mark.parametrize("session", ["hlo_dump", "jax_cpu"])
def test_programs_are_shown_without_records(page, server, session):
    open_view(page, server, view(session))
    answer = ask(server, session)
    part = shown(page)
    tells(part, answer["program"], size_text(answer["peak_bytes"]))
    assert part.locator(".program-legend .name").all_inner_texts() == [
        layer["key"] if layer["kind"] == "group" else f"{layer['groups']} smaller"
        for layer in reversed(answer["layers"])
    ]
    assert part.get_by_role("grid").get_attribute("aria-rowcount") == str(len(answer["rows"]) + 1)


def colors_of(page):
    """By name the colors of the legend's layers, and by name those of the icicle's parts."""
    return page.evaluate(
        """() => {
          const color = (one) => getComputedStyle(one).backgroundColor;
          const layers = [...document.querySelectorAll(".program-legend li")].map((one) =>
            [one.querySelector(".name").textContent, color(one.querySelector(".swatch"))]);
          const parts = [...document.querySelectorAll(".memory-programs .icicle .part:not(.rest)")]
            .map((one) => [one.getAttribute("aria-label").split(": ")[0], color(one)]);
          return [Object.fromEntries(layers), parts];
        }"""
    )


@pytest.mark.parametrize("by", ["opcode", "scope", "source"])
def test_a_part_of_the_tree_has_the_color_of_its_layer(page, server, by):
    open_view(page, server, view("jax_cpu"), pby=by)
    shown(page)
    answer = ask(server, "jax_cpu", by=by)
    layers, parts = colors_of(page)
    assert len(set(layers.values())) == len(layers)
    tree = answer["tree"]
    above = dict(zip(tree["id"], tree["parent"], strict=True))
    label = dict(zip(tree["id"], tree["label"], strict=True))
    # What each drawn name may be, by the labels around it.
    keys = {}
    for one in tree["id"][1:]:
        path, at = [], one
        while above[at]:
            path.insert(0, label[at])
            at = above[at]
        keys.setdefault(label[one], set()).add("/".join(path) if by == "scope" else label[one])
    compared = 0
    for name, color in parts:
        of = {key for key in keys.get(name, ()) if key in layers}
        if len(of) == len(keys.get(name, ())) == 1:
            compared += 1
            assert color == layers[of.pop()], name
    assert compared > 1


def test_what_is_chosen_is_in_the_address_and_leads_to_the_graph(page, server):
    open_view(page, server, view("jax_cpu"))
    part = shown(page)
    part.get_by_label("Programs by").select_option("source")
    assert wait_for_params(page, pby="source")["pby"] == "source"
    answer = ask(server, "jax_cpu", by="source")
    page.wait_for_function(
        "(name) => document.querySelector('.program-legend').textContent.includes(name)",
        arg=answer["layers"][0]["key"],
    )
    first = max(answer["rows"], key=lambda row: row["bytes"])
    part.locator(".table .row a").first.click()
    page.wait_for_url("**/graph?**")
    result = params(page)
    assert result["graph"] == answer["program"]
    rows = {str(row["item"]) for row in answer["rows"] if row["bytes"] == first["bytes"]}
    assert result["item"] in rows


def test_a_part_of_the_icicle_names_its_instruction(page, server):
    open_view(page, server, view("hlo_dump"))
    part = shown(page)
    tree = ask(server, "hlo_dump")["tree"]
    leaf = next(n for n, parent in enumerate(tree["parent"]) if parent and parent != tree["id"][0])
    open_view(page, server, view("hlo_dump"), ppart=tree["id"][leaf])
    shown(page)
    tells(part.get_by_role("status"), tree["label"][leaf])


@pytest.mark.parametrize("session", ["hlo_dump", "jax_cpu"])
def test_a_node_of_the_graph_leads_to_its_value_and_back(page, server, session):
    answer = ask(server, session)
    row = next(row for row in reversed(answer["rows"]) if row["item"] is not None)
    open_view(page, server, f"/session/{session}/graph", graph=answer["program"], item=row["item"])
    page.get_by_label("Details").get_by_role("link", name="Its buffers in Memory").click()
    page.wait_for_url("**/memory?**")
    result = params(page)
    assert (result["program"], result["pitem"]) == (answer["program"], str(row["item"]))
    chosen = shown(page).locator(".table .row[aria-selected='true']")
    tells(chosen, row["instruction"])
    chosen.get_by_role("link").click()
    page.wait_for_url("**/graph?**")
    assert params(page)["item"] == str(row["item"])


def test_a_node_without_a_value_at_the_peak_has_no_such_link(page, server):
    live = {row["item"] for row in ask(server, "jax_cpu", limit=5000)["rows"]}
    name = ask(server, "jax_cpu")["program"]
    path = "sessions/jax_cpu/tools/graph_scopes"
    rows = api(server, path, view="search", graph=name, search="", limit=50)["rows"]
    other = next(row for row in rows if row["item"] not in live)
    open_view(page, server, "/session/jax_cpu/graph", graph=name, item=other["item"])
    panel = page.get_by_label("Details")
    tells(panel.locator("h2"), other["name"])
    assert panel.get_by_role("link", name="Its buffers in Memory").count() == 0


@pytest.mark.parametrize("width", [1440, 800, 390])
def test_everybody_can_use_programs(page, server, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_view(page, server, view("jax_cpu"))
    shown(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect_accessible_in_both_schemes(page, f"memory-programs-{width}")


_COLORS = """async (answer) => {
  const { bufferColors, neighboursOf } = await import("./assets/js/views/memory/buffer-colors.js");
  const colors = (one, wide) => bufferColors(one.record, neighboursOf(one, wide));
  const all = answer.buffers, keep = (column) => column.filter((_, place) => place % 2 === 0);
  return { whole: colors(all, answer.width), part: colors({ record: keep(all.record),
    first: keep(all.first), last: keep(all.last) }, answer.width) };
}"""


def test_without_ops_each_buffer_has_a_color_that_its_neighbours_have_not(page, server):
    open_view(page, server, view("torch_snapshot"), draw="buffers")
    drawn(page)
    tells(page.locator(".layer-legend"), "colored by buffer, since no op is recorded")
    answer = api(server, "sessions/torch_snapshot/tools/memory_polygons", width=200)
    columns = answer["buffers"]
    result = page.evaluate(_COLORS, answer)
    colors = result["whole"]
    for pixel in range(200):
        lives = [
            one for one in range(len(colors))
            if columns["first"][one] <= pixel < columns["last"][one]
        ]  # fmt: skip
        assert all(colors[one] != colors[other] for one, other in pairwise(lives))
    assert len(set(colors)) == 12
    # Most have the same color whatever is in view.
    same = [one == other for one, other in zip(colors[::2], result["part"], strict=True)]
    assert sum(same) > len(same) / 2
    open_view(page, server, view("leak_list"), draw="buffers")
    drawn(page)
    assert "colored by buffer" not in page.locator(".layer-legend").inner_text()
