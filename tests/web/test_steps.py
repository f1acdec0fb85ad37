"""Steps: the chart, its table and the address say what the service says, and lead on."""

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
    box = canvas_of(page).bounding_box()
    width = box["width"] - 78 - 8
    canvas_of(page).click(position={"x": 78 + (place + 0.5) * width / steps, "y": 150})


def test_statistics_and_rows_are_those_of_the_service(page, server):
    told = breakdown(server, "slow_step")
    (variation,) = told["variation"]
    open_view(page, server, "/session/slow_step/steps")
    shown = page.locator("dl.facts").first
    assert facts(shown)["Steps"] == str(variation["steps"]) == "28"
    assert fact(shown, "Median") == almost(variation["median_ps"])
    assert fact(shown, "95th percentile") == almost(variation["p95_ps"])
    assert fact(shown, "Longest") == almost(variation["max_ps"])
    assert facts(shown)["Slow"] == f"{len(variation['slow'])} steps" == "4 steps"
    rows = rows_of(page, "Steps")
    assert [row["Step"] for row in rows] == [step["name"] for step in told["steps"]][: len(rows)]
    for row, step in zip(rows, told["steps"], strict=False):
        assert number_of(row["Time"]) == almost(step["wall_ps"])
        assert number_of(row["Host"]) == almost(step["host_compute_ps"])
        assert number_of(row["No event"]) == almost(step["unknown_ps"])
    screenshot(page, "steps_slow_step")


def test_steps_of_several_names_have_figures_of_their_own(page, server):
    told = breakdown(server, "tf_train_eval")
    open_view(page, server, "/session/tf_train_eval/steps")
    shown = facts(page.locator("dl.facts").first)
    assert shown == {"Steps": "12", "Slow": "none", "Warm up": "1 first step"}
    rows = rows_of(page, "Steps by name")
    assert [row["Name"] for row in rows] == ["train", "eval"]
    for row, variation in zip(rows, told["variation"], strict=True):
        assert int(row["Steps"]) == variation["steps"]
        assert number_of(row["Median"]) == almost(variation["median_ps"])
        assert int(row["Slow"]) == sum(not slow["is_first"] for slow in variation["slow"])
    label = canvas_of(page).get_attribute("aria-label")
    assert "train: median 373 µs, eval: median 511.7 µs" in label
    tells(detail(page), "The mean step of train")
    names = detail(page).locator(".parts-legend .grow").all_inner_texts()
    numbers = detail(page).locator(".parts-legend .number").all_inner_texts()[::2]
    mean = told["variation"][0]["mean_ps"]
    assert sum(map(number_of, numbers)) == almost(mean)
    assert len(names) == len(numbers)
    click_step(page, 0, 12)
    (first,) = told["variation"][0]["slow"]
    ratio = first["wall_ps"] / told["variation"][0]["median_ps"]
    tells(detail(page), f"first step, {ratio:.1f} times the median: +")
    assert detail(page).locator(".badge.warning").count() == 0
    screenshot(page, "steps_train_eval")


def test_a_step_that_is_cut_off_is_marked_and_left_out(page, server):
    told = breakdown(server, "torch_break")
    (variation,) = told["variation"]
    assert [step["is_cut_off"] for step in told["steps"]] == [False] * 4 + [True]
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
    found = page.get_by_text("Inferred: nothing is marked, each run of a function counts as one.")
    eventually(found.count, 1)
    screenshot(page, "steps_tf_functions")
    open_view(page, server, "/session/tf_functions/summary")
    eventually(found.count, 1)
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
    told = breakdown(server, "gpus")
    device = "/device:GPU:1"
    straggler = told["straggler"]
    assert straggler["name"] == device
    open_view(page, server, "/session/gpus/steps")
    assert f"Straggler: the other devices wait for {device}" in page.locator("#main").inner_text()
    picker = page.get_by_role("combobox", name="Device", exact=True)
    before = picker.input_value()
    picker.select_option(device)
    wait_for_params(page, device=device)
    steps = [step for step in told["steps"] if step["device"] == device]
    eventually(
        lambda: [number_of(row["Compute"]) for row in rows_of(page, "Steps")],
        [almost(step["compute_ps"]) for step in steps],
    )
    assert [row["Device"] for row in rows_of(page, "Devices")] == [
        one["device"] for one in told["variation"]
    ]
    page.go_back()
    wait_for_params(page, device=None)
    eventually(picker.input_value, before)
    screenshot(page, "steps_devices")
    expect_accessible(page)


def test_hosts_are_told_with_their_variation(page, server):
    told = breakdown(server, "tf2_multihost")
    open_view(page, server, "/session/tf2_multihost/steps")
    rows = rows_of(page, "Hosts")
    assert [row["Host"] for row in rows] == [one["host"] for one in told["variation"]]
    assert [number_of(row["Median"]) for row in rows] == [
        almost(one["median_ps"]) for one in told["variation"]
    ]
    assert [number_of(row["Varies by"]) for row in rows] == [
        almost(one["coefficient"]) for one in told["variation"]
    ]
    assert told["straggler"] is None
    assert "No host keeps the others waiting." in page.locator("#main").inner_text()


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
    told = api(server, "sessions/many_steps/tools/step_difference", step=first, last=last)
    assert told["step"]["examined"] == told["step"]["steps"] == last - first + 1
    tells(page.locator(".sentences"), told["sentences"][0].split(",")[0])
    assert "even choice" not in page.locator(".sentences").inner_text()


def test_very_many_steps_come_as_columns_and_pages(page, server):
    """No answer that the view asks for grows with the number of steps."""
    asked = []
    page.on("response", lambda one: asked.append(one) if "/tools/step_" in one.url else None)
    open_view(page, server, "/session/many_steps/steps", sort="-wall_ps")
    slowest = api(server, "sessions/many_steps/tools/step_envelope", sort="-wall_ps", limit=1)
    # The rows come after the table.
    eventually(lambda: rows_of(page, "Steps")[0]["Step"], slowest["rows"][0]["name"])
    first = rows_of(page, "Steps")[0]
    assert number_of(first["Time"]) == almost(slowest["rows"][0]["wall_ps"])
    page.get_by_role("columnheader", name="Begins at").get_by_role("button").click()
    wait_for_params(page, sort="-start_ps")
    eventually(lambda: rows_of(page, "Steps")[0]["Step"], "train 6399")
    assert not [one.url for one in asked if "step_breakdown" in one.url]
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
