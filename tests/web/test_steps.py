"""The steps, and why one is slow."""

import json

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
    tells,
    wait_for_params,
)
from tests.web.samples import STEPS
from tests.web.shown import almost, fact, facts, number_of, rows_of


def breakdown(server, session, **query):
    return api(server, f"sessions/{session}/tools/step_breakdown", **query)


def detail(page):
    return page.locator("section.panel[aria-live]")


def zoom_of(page):
    """Which steps the address shows, by their places; nothing where it shows all."""
    return [float(place) for place in params(page).get("steps", "").split("-") if place]


def canvas_of(page):
    return page.locator("canvas.step-chart")


def click_step(page, place, steps):
    """Click the bar of a step; bars share the chart's width evenly, from 78 pixels on."""
    width = canvas_of(page).bounding_box()["width"] - 78 - 8
    canvas_of(page).click(position={"x": 78 + (place + 0.5) * width / steps, "y": 150})


def test_statistics_and_rows_are_those_of_the_service(page, server):
    result = breakdown(server, "slow_step")
    (variation,) = result["variation"]
    open_view(page, server, "/session/slow_step/steps")
    shown = page.locator("dl.facts").first
    assert facts(shown)["Steps"] == str(variation["steps"]) == "28"
    assert fact(shown, "Median") == almost(variation["median_ps"])
    assert fact(shown, "95th percentile") == almost(variation["p95_ps"])
    assert fact(shown, "Longest") == almost(variation["max_ps"])
    assert facts(shown)["Slow"] == f"{len(variation['slow'])} steps" == "4 steps"
    rows = rows_of(page, "Steps")
    assert [row["Step"] for row in rows] == [step["name"] for step in result["steps"]][: len(rows)]
    for row, step in zip(rows, result["steps"], strict=False):
        assert number_of(row["Time"]) == almost(step["wall_ps"])
        assert number_of(row["Host"]) == almost(step["host_compute_ps"])
        assert number_of(row["No event"]) == almost(step["unknown_ps"])
    screenshot(page, "steps_slow_step")


def test_steps_of_several_names_have_figures_of_their_own(page, server):
    result = breakdown(server, "tf_train_eval")
    open_view(page, server, "/session/tf_train_eval/steps")
    shown = facts(page.locator("dl.facts").first)
    assert shown == {"Steps": "12", "Slow": "none", "Warm up": "1 first step"}
    rows = rows_of(page, "Steps by name")
    assert [row["Name"] for row in rows] == ["train", "eval"]
    for row, variation in zip(rows, result["variation"], strict=True):
        assert int(row["Steps"]) == variation["steps"]
        assert number_of(row["Median"]) == almost(variation["median_ps"])
        assert int(row["Slow"]) == sum(not slow["is_first"] for slow in variation["slow"])
    label = canvas_of(page).get_attribute("aria-label")
    assert "train: median 373 µs, eval: median 511.7 µs" in label
    tells(detail(page), "The mean step of train")
    names = detail(page).locator(".parts-legend .grow").all_inner_texts()
    numbers = detail(page).locator(".parts-legend .number").all_inner_texts()[::2]
    mean = result["variation"][0]["mean_ps"]
    assert sum(map(number_of, numbers)) == almost(mean)
    assert len(names) == len(numbers)
    click_step(page, 0, 12)
    (first,) = result["variation"][0]["slow"]
    ratio = first["wall_ps"] / result["variation"][0]["median_ps"]
    tells(detail(page), f"first step, {ratio:.1f} times the median: +")
    assert detail(page).locator(".badge.warning").count() == 0
    screenshot(page, "steps_train_eval")


def test_a_step_that_is_cut_off_is_marked_and_left_out(page, server):
    result = breakdown(server, "torch_break")
    (variation,) = result["variation"]
    assert [step["is_cut_off"] for step in result["steps"]] == [False] * 4 + [True]
    open_view(page, server, "/session/torch_break/steps")
    shown = page.locator("dl.facts").first
    assert facts(shown)["Steps"] == "4"
    assert facts(shown)["Cut off, and left out"] == "1 step"
    assert fact(shown, "Median") == almost(variation["median_ps"])
    names = [row["Step"] for row in rows_of(page, "Steps")]
    assert [name.endswith("cut off") for name in names] == [False] * 4 + [True]
    click_step(page, 4, 5)
    tells(detail(page), "The record ends in the middle of it")
    screenshot(page, "steps_torch_break")


def test_inferred_steps_are_called_so(page, server):
    open_view(page, server, "/session/tf_functions/steps")
    result = page.get_by_text("Inferred: nothing is marked, each run of a function counts as one.")
    eventually(result.count, 1)
    screenshot(page, "steps_tf_functions")
    open_view(page, server, "/session/tf_functions/summary")
    eventually(result.count, 1)
    tells(page.locator("dl.facts").first, "inferred")
    screenshot(page, "summary_tf_functions")


def test_the_mean_step_is_the_mean_of_all(page, server):
    steps = breakdown(server, "input_bound")["steps"]
    open_view(page, server, "/session/input_bound/steps")
    names = detail(page).locator(".parts-legend .grow").all_inner_texts()
    numbers = detail(page).locator(".parts-legend .number").all_inner_texts()[::2]
    shown = dict(zip(names, map(number_of, numbers), strict=True))
    mean = sum(step["input_wait_ps"] for step in steps) / len(steps)
    assert shown["waiting for input"] == almost(mean)
    whole = sum(step["wall_ps"] for step in steps) / len(steps)
    assert sum(shown.values()) == almost(whole)


def test_a_click_chooses_a_step_in_chart_table_and_address(page, server):
    steps = breakdown(server, "slow_step")["steps"]
    open_view(page, server, "/session/slow_step/steps")
    click_step(page, 6, len(steps))
    eventually(detail(page).get_by_role("heading").inner_text, "train 6")
    wait_for_params(page, step=steps[6]["step_id"])
    assert page.get_by_role("row", selected=True).inner_text().startswith("train 6")
    assert "slow" in detail(page).inner_text()
    link = detail(page).get_by_role("link", name="In the timeline").get_attribute("href")
    air = round(steps[6]["wall_ps"] * 0.05)
    assert f"from={steps[6]['start_ps'] - air}&to={steps[6]['end_ps'] + air}" in link
    assert f"step={steps[6]['step_id']}" in link


def test_a_link_to_a_step_shows_it_again(page, other_page, server):
    steps = breakdown(server, "slow_step")["steps"]
    open_view(page, server, "/session/slow_step/steps")
    click_step(page, 13, len(steps))
    wait_for_params(page, step=steps[13]["step_id"])
    load_again(other_page, page.evaluate("location.href"))
    tells(detail(page), "train 13")
    eventually(detail(other_page).inner_text, detail(page).inner_text())


def test_keys_move_through_the_chart(page, server):
    open_view(page, server, "/session/slow_step/steps")
    canvas_of(page).focus()
    heading = detail(page).get_by_role("heading")
    page.keyboard.press("Home")
    eventually(heading.inner_text, "train 0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    eventually(heading.inner_text, "train 2")
    page.keyboard.press("ArrowLeft")
    eventually(heading.inner_text, "train 1")
    page.keyboard.press("End")
    eventually(heading.inner_text, "train 27")
    is_focused = "(canvas) => canvas === document.activeElement"
    assert canvas_of(page).evaluate(is_focused)
    page.keyboard.press("Tab")
    eventually(lambda: canvas_of(page).evaluate(is_focused), expected=False)


def test_bars_are_as_tall_as_the_steps_take(page, server):
    """The chart's own pixels: the colour of host compute against the service's numbers."""
    steps = breakdown(server, "input_bound")["steps"]
    open_view(page, server, "/session/input_bound/steps")
    read = """(steps) => {
          const canvas = document.querySelector("canvas.step-chart");
          const paint = canvas.getContext("2d");
          const ratio = canvas.width / canvas.clientWidth;
          const wide = (canvas.clientWidth - 78 - 8) / steps;
          const {data} = paint.getImageData(0, 0, canvas.width, canvas.height);
          return Array.from({length: steps}, (_, place) => {
            const x = Math.round((78 + (place + 0.5) * wide) * ratio);
            let count = 0;
            for (let y = 0; y < canvas.height; y++) {
              const at = 4 * (y * canvas.width + x);
              const [r, g, b] = data.slice(at, at + 3);
              if (Math.abs(r - 0x2f) + Math.abs(g - 0x6f) + Math.abs(b - 0xd0) < 12) count++;
            }
            return count / ratio;
          });
        }"""
    top = max(step["wall_ps"] for step in steps) * 1.06
    expected = [step["host_compute_ps"] / top * (260 - 20 - 24) for step in steps]
    # The median's dashed line, the grid and the edges of the parts take a pixel each.
    eventually(lambda: page.evaluate(read, len(steps)), pytest.approx(expected, abs=5))


def test_devices_can_be_chosen_and_the_slow_one_is_named(page, server):
    result = breakdown(server, "gpus")
    device = "/device:GPU:1"
    assert result["straggler"]["name"] == device
    open_view(page, server, "/session/gpus/steps")
    assert f"Straggler: the other devices wait for {device}" in page.locator("#main").inner_text()
    picker = page.get_by_role("combobox", name="Device", exact=True)
    before = picker.input_value()
    picker.select_option(device)
    wait_for_params(page, device=device)
    steps = [step for step in result["steps"] if step["device"] == device]
    eventually(
        lambda: [number_of(row["Compute"]) for row in rows_of(page, "Steps")],
        [almost(step["compute_ps"]) for step in steps],
    )
    assert [row["Device"] for row in rows_of(page, "Devices")] == [
        one["device"] for one in result["variation"]
    ]
    page.go_back()
    wait_for_params(page, device=None)
    eventually(picker.input_value, before)
    screenshot(page, "steps_devices")
    expect_accessible(page)


def test_hosts_are_told_with_their_variation(page, server):
    result = breakdown(server, "tf2_multihost")
    open_view(page, server, "/session/tf2_multihost/steps")
    rows = rows_of(page, "Hosts")
    assert [row["Host"] for row in rows] == [one["host"] for one in result["variation"]]
    assert [number_of(row["Median"]) for row in rows] == [
        almost(one["median_ps"]) for one in result["variation"]
    ]
    assert [number_of(row["Varies by"]) for row in rows] == [
        almost(one["coefficient"]) for one in result["variation"]
    ]
    assert result["straggler"] is None
    text = "no collectives are recorded: who waits for whom is not known"
    assert text in page.locator("#main").inner_text()


def test_findings_stand_beside_and_lead_to_steps(page, server):
    (host,) = api(server, "sessions/slow_step/tools/time_findings")["hosts"]
    open_view(page, server, "/session/slow_step/steps")
    shown = page.locator("article.finding")
    assert shown.count() == len(host["findings"]) == 1
    assert host["findings"][0]["title"] in shown.inner_text()
    name = host["findings"][0]["evidence"]["rows"][0]["step"]
    shown.get_by_role("link", name=f"Step {name} among the others").click()
    page.wait_for_function(
        "(name) => document.querySelector('section[aria-live] h2').textContent === name", arg=name
    )


def test_a_profile_without_steps_says_how_to_mark_them(page, server):
    open_view(page, server, "/session/memory_log/steps")
    assert "No steps are marked in this profile" in page.locator("#main").inner_text()
    screenshot(page, "steps_none")


def test_everybody_can_read_it(page, server):
    open_view(page, server, "/session/input_bound/steps")
    expect_accessible_in_both_schemes(page, "steps")


def test_zoom_is_in_the_address(page, other_page, server):
    open_view(page, server, "/session/slow_step/steps")
    canvas_of(page).focus()
    for key in "www":
        page.keyboard.press(key)
    steps, span = 28, 28 * 0.8**3
    begin = (steps - span) / 2
    eventually(lambda: zoom_of(page), pytest.approx([begin, begin + span], abs=0.01))
    page.keyboard.press("a")
    begin -= 0.15 * span
    eventually(lambda: zoom_of(page), pytest.approx([begin, begin + span], abs=0.01))
    load_again(other_page, page.evaluate("location.href"))
    # The picture itself: what the address says is all that it takes.
    canvas_of(page).evaluate("(canvas) => canvas.blur()")
    picture = "(canvas) => canvas.toDataURL()"
    until(
        lambda: canvas_of(page).evaluate(picture) == canvas_of(other_page).evaluate(picture),
        "the same picture",
    )
    mine = canvas_of(page).evaluate(picture)
    canvas_of(other_page).focus()
    other_page.keyboard.press("0")
    wait_for_params(other_page, steps=None)
    canvas_of(other_page).evaluate("(canvas) => canvas.blur()")
    until(lambda: canvas_of(other_page).evaluate(picture) != mine, "another picture")


def overview_of(page):
    return page.locator("canvas.steps-overview")


def test_the_strip_of_all_steps_chooses_those_that_the_chart_shows(page, other_page, server):
    open_view(page, server, "/session/many_steps/steps")
    strip = overview_of(page)
    assert "All 6,400 steps" in strip.get_attribute("aria-label")
    box = strip.bounding_box()
    left, wide = box["x"] + 78, box["width"] - 78 - 8
    y = box["y"] + 18
    page.mouse.move(left + 0.25 * wide, y)
    page.mouse.down()
    page.mouse.move(left + 0.4 * wide, y, steps=4)
    page.mouse.move(left + 0.5 * wide, y, steps=4)
    page.mouse.up()
    # A pixel of the strip is six steps.
    eventually(lambda: zoom_of(page), pytest.approx([0.25 * 6400, 0.5 * 6400], abs=15))
    begin, end = zoom_of(page)
    strip.focus()
    page.keyboard.press("w")
    span, middle = 0.8 * (end - begin), (begin + end) / 2
    shown = pytest.approx([middle - span / 2, middle + span / 2], abs=0.1)
    eventually(lambda: zoom_of(page), shown)
    load_again(other_page, page.evaluate("location.href"))
    strips = [
        one.evaluate("(canvas) => canvas.blur()") or one for one in (strip, overview_of(other_page))
    ]
    picture = "(canvas) => canvas.toDataURL()"
    until(lambda: strips[0].evaluate(picture) == strips[1].evaluate(picture), "the same strip")
    page.keyboard.press("0")
    strip.dblclick()
    eventually(lambda: zoom_of(page), [])


def test_a_range_of_the_strip_is_explained_exactly(page, server):
    open_view(page, server, "/session/many_steps/steps")
    box = overview_of(page).bounding_box()
    left, wide, y = box["x"] + 78, box["width"] - 78 - 8, box["y"] + 18
    page.keyboard.down("Shift")
    page.mouse.move(left + 0.1 * wide, y)
    page.mouse.down()
    page.mouse.move(left + 0.9 * wide, y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    eventually(lambda: "last" in params(page), expected=True)
    first, last = int(params(page)["step"]), int(params(page)["last"])
    assert (first, last) == pytest.approx((640, 5760), abs=15)
    result = api(server, "sessions/many_steps/tools/step_difference", step=first, last=last)
    assert result["step"]["examined"] == result["step"]["steps"] == last - first + 1
    tells(page.locator(".sentences"), result["sentences"][0].split(",")[0])
    assert "even choice" not in page.locator(".sentences").inner_text()


def test_very_many_steps_come_as_columns_and_pages(page, server):
    """No answer that the view asks for grows with the number of steps."""
    request = []
    page.on("response", lambda one: request.append(one) if "/tools/step_" in one.url else None)
    open_view(page, server, "/session/many_steps/steps", sort="-wall_ps")
    slowest = api(server, "sessions/many_steps/tools/step_envelope", sort="-wall_ps", limit=1)
    # The rows come after the table.
    eventually(lambda: rows_of(page, "Steps")[0]["Step"], slowest["rows"][0]["name"])
    assert number_of(rows_of(page, "Steps")[0]["Time"]) == almost(slowest["rows"][0]["wall_ps"])
    page.get_by_role("columnheader", name="Begins at").get_by_role("button").click()
    wait_for_params(page, sort="-start_ps")
    eventually(lambda: rows_of(page, "Steps")[0]["Step"], "train 6399")
    assert not [one.url for one in request if "step_breakdown" in one.url]
    canvas_of(page).focus()
    page.keyboard.press("End")
    eventually(detail(page).get_by_role("heading").inner_text, "train 6399")
    wait_for_params(page, step="6399")


def test_fingers_zoom_and_move_the_chart(page, server):
    open_view(page, server, "/session/slow_step/steps")
    box = canvas_of(page).bounding_box()
    y = box["y"] + 120
    finger = """([kind, id, x, y]) => document.querySelector("canvas.step-chart").dispatchEvent(
      new PointerEvent(kind, {pointerId: id, pointerType: "touch", clientX: x, clientY: y,
        bubbles: true, isPrimary: id === 1}))"""
    page.is_stale = True
    page.evaluate("HTMLElement.prototype.setPointerCapture = () => {}")
    at = box["x"] + 78 + (box["width"] - 86) / 2
    for move in (
        ("pointerdown", 1, at - 50), ("pointerdown", 2, at + 50),
        ("pointermove", 1, at - 100), ("pointermove", 2, at + 100),
        ("pointerup", 2, at + 100), ("pointerup", 1, at - 100),
    ):  # fmt: skip
        page.evaluate(finger, [*move, y])
    eventually(lambda: zoom_of(page), pytest.approx([7, 21], abs=0.3))


SLOW = 2499
"""A step of ``many_steps`` that waits for three elements."""


def difference(server, session, **query):
    return api(server, f"sessions/{session}/tools/step_difference", **query)


def why(page):
    return page.get_by_role("region", name="Why")


def sentences(page):
    return page.locator(".sentences")


def test_why_a_step_is_slow_takes_three_actions(page, server):
    """From the address of the session: Steps and ops, the slow step, and the answer is there."""
    result = difference(server, "many_steps", step=SLOW)
    open_view(page, server, "/session/many_steps")
    page.get_by_role("link", name="Steps and ops").first.click()
    page.locator("canvas.step-chart").wait_for()
    box = page.locator("canvas.step-chart").bounding_box()
    x = 78 + (SLOW + 0.5) / STEPS * (box["width"] - 78 - 8)
    page.locator("canvas.step-chart").click(position={"x": x, "y": 200})
    wait_for_params(page, step=str(SLOW))
    for sentence in result["sentences"]:
        tells(sentences(page), sentence)
    tells(sentences(page), "8.4 times the median step")
    tells(sentences(page), "in Iterator::Root::Prefetch (3 calls instead of 1)")
    tells(sentences(page), "slow")
    screenshot(page, "steps_why")


def test_rows_are_those_of_the_service(page, server):
    result = difference(server, "many_steps", step=SLOW)
    open_view(page, server, "/session/many_steps/steps", step=SLOW)
    rows = rows_of(page, "What differs")
    assert [row["Op or function"] for row in rows] == [op["title"] for op in result["ops"]]
    for row, op in zip(rows, result["ops"], strict=True):
        assert number_of(row["Takes"]) == almost(op["ps"])
        assert number_of(row["Instead of"]) == almost(op["usual_ps"])
    assert rows[0]["Calls"] == "3 instead of 1"
    shown = [bar.get_attribute("data-part") for bar in page.locator(".waterfall .part").all()]
    parts = sorted(result["parts"], key=lambda part: -abs(part["difference_ps"]))
    assert shown == [part["part"] for part in parts if part["difference_ps"]]


def test_a_row_leads_to_its_events_in_the_timeline(page, server):
    op = difference(server, "many_steps", step=SLOW)["ops"][0]
    open_view(page, server, "/session/many_steps/steps", step=SLOW)
    page.get_by_role("grid", name="What differs").get_by_role("row").nth(1).click()
    wait_for_params(page, work=f"input_wait host {op['name']}")
    links = page.locator(".event-lists .events").first.get_by_role("link")
    eventually(links.count, len(op["events"]))
    links.first.click()
    wait_for_params(page, event=str(op["events"][0]["event"]))
    tells(page.locator(".tl-head").first, op["name"])


def test_a_part_chooses_its_ops_by_the_keyboard(page, server):
    open_view(page, server, "/session/many_steps/steps", step=SLOW)
    part = page.locator('.waterfall [data-part="host_compute"]')
    part.focus()
    page.keyboard.press("Enter")
    wait_for_params(page, part_of="host_compute")
    eventually(
        lambda: {row["Part"].strip() for row in rows_of(page, "What differs")}, {"host compute"}
    )
    eventually(lambda: part.evaluate("(one) => one === document.activeElement"), expected=True)
    page.keyboard.press("Enter")
    wait_for_params(page, part_of=None)


def test_functions_take_the_place_of_ops(page, other_page, server):
    result = difference(server, "many_steps", step=SLOW)
    open_view(page, server, "/session/many_steps/steps", step=SLOW)
    page.get_by_role("button", name="By Python function").click()
    wait_for_params(page, why_by="function")
    titles = [one["title"] for one in result["frames"]]
    eventually(lambda: [r["Op or function"] for r in rows_of(page, "What differs")], titles)
    load_again(other_page, page.evaluate("location.href"))
    eventually(lambda: [r["Op or function"] for r in rows_of(other_page, "What differs")], titles)


def test_a_step_may_be_compared_with_another(page, server):
    open_view(page, server, "/session/many_steps/steps", step=SLOW)
    picker = page.get_by_label("compared with", exact=True)
    picker.select_option("the step before")
    wait_for_params(page, against=str(SLOW - 1))
    for sentence in difference(server, "many_steps", step=SLOW, against=SLOW - 1)["sentences"]:
        tells(sentences(page), sentence)
    picker.select_option("another step …")
    page.get_by_label("Compare with step").fill("999")
    page.keyboard.press("Enter")
    wait_for_params(page, against="999")
    tells(sentences(page), "about as long as train 999")
    page.go_back()
    wait_for_params(page, against=str(SLOW - 1))


def test_shift_and_arrows_choose_a_range(page, server):
    open_view(page, server, "/session/slow_step/steps", step=3)
    page.locator("canvas.step-chart").focus()
    for _ in range(4):
        page.keyboard.press("Shift+ArrowRight")
    wait_for_params(page, step="3", last="7")
    for sentence in difference(server, "slow_step", step=3, last=7)["sentences"]:
        tells(sentences(page), sentence)


def test_the_first_steps_raise_no_alarm(page, server):
    open_view(page, server, "/session/tf_train_eval/steps", step=0)
    tells(sentences(page), "one of the first steps of its name, which warm up")
    tells(sentences(page).locator(".badge"), "warm-up")
    assert sentences(page).locator(".badge.warning").count() == 0


def test_many_steps_are_an_envelope(page, server):
    """At a slow step's pixel the longest reaches the top, its parts are the mean of the pixel."""
    open_view(page, server, "/session/many_steps/steps")
    read = """(share) => {
          const canvas = document.querySelector("canvas.step-chart");
          const paint = canvas.getContext("2d");
          const ratio = canvas.width / canvas.clientWidth;
          const x = Math.floor((78 + share * (canvas.clientWidth - 78 - 8)) * ratio);
          const {data} = paint.getImageData(x, 0, 1, canvas.height);
          let blue = 0;
          for (let y = 0; y < canvas.height; y++) {
            const [r, g, b] = data.slice(4 * y, 4 * y + 3);
            if (Math.abs(r - 0x2f) + Math.abs(g - 0x6f) + Math.abs(b - 0xd0) < 12) blue++;
          }
          return blue / ratio;
        }"""
    # Most steps take a tenth of the longest, and so do the bars, slow step or not.
    eventually(lambda: 5 < page.evaluate(read, 0.3) < 40, expected=True)
    label = page.locator("canvas.step-chart").get_attribute("aria-label")
    assert f"Times of {STEPS} steps" in label
    tells(page.locator(".chart-legend"), "where several share a pixel")


def cell(page, row, share):
    """A place in the picture of all steps: its row, and how far along the steps."""
    box = page.locator("canvas.heat").bounding_box()
    return {"x": 190 + share * (box["width"] - 190 - 8), "y": row * 18 + 9}


def test_the_picture_of_every_step_leads_to_a_step_and_its_op(page, server):
    open_view(page, server, "/session/many_steps/steps")
    heat = page.locator("canvas.heat")
    eventually(lambda: "Iterator::Root::Prefetch" in (heat.get_attribute("aria-label") or ""),
               expected=True)  # fmt: skip
    page.get_by_role("button", name="Differs most").click()
    wait_for_params(page, heat_sort="variance")
    answer = api(server, "sessions/many_steps/tools/step_heat", sort="variance", limit=1)
    assert answer["rows"][0]["name"] == "Iterator::Root::Prefetch"
    top = "most: Iterator::Root::Prefetch"
    eventually(lambda: top in (heat.get_attribute("aria-label") or ""), expected=True)
    at = cell(page, 0, (SLOW + 0.5) / STEPS)
    heat.hover(position=at)
    tells(page.locator(".tip"), "90 µs in train 2499")
    heat.click(position=at)
    wait_for_params(page, step=str(SLOW), work="Iterator::Root::Prefetch")
    tells(page.locator(".event-lists"), "In this step")


def test_the_picture_is_moved_through_by_keys(page, server):
    open_view(page, server, "/session/slow_step/steps")
    heat = page.locator("canvas.heat")
    eventually(lambda: "Arrow keys move" in (heat.get_attribute("aria-label") or ""), expected=True)
    heat.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    result = api(server, "sessions/slow_step/tools/step_heat")["rows"][0]
    tells(page.locator("#announcer"), result["title"])
    page.keyboard.press("Enter")
    wait_for_params(page, step="3", work=result["name"])


def test_it_is_taken_along(page, server):
    open_view(page, server, "/session/many_steps/steps", step=SLOW)
    page.get_by_label("Export many steps step difference").click()
    with page.expect_download() as result:
        page.get_by_role("button", name="JSON").locator("visible=true").click()
    answer = difference(server, "many_steps", step=SLOW, device="")
    assert json.loads(result.value.path().read_text())["sentences"] == answer["sentences"]


def test_everybody_can_read_it_of_why(page, server):
    open_view(page, server, "/session/many_steps/steps", step=SLOW, work="Iterator::Root::Prefetch")
    tells(page.locator(".event-lists"), "In this step")
    expect_accessible_in_both_schemes(page, "steps_why")


@pytest.mark.parametrize("width", [800, 390])
def test_it_fits_narrow_screens(page, server, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_view(page, server, "/session/many_steps/steps", step=SLOW)
    tells(sentences(page), "8.4 times the median step")
    main = page.locator("#main")
    assert main.evaluate("(main) => main.scrollWidth <= main.clientWidth")
    expect_accessible(page)
    assert params(page)["step"] == str(SLOW)
