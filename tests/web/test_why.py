"""Why a step is slow: said at once, by part, op and event, and the picture of every step."""

import json

import pytest
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
from tests.web.shown import almost, number_of, rows_of

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
    told = difference(server, "many_steps", step=SLOW)
    open_view(page, server, "/session/many_steps")
    page.get_by_role("link", name="Steps and ops").first.click()
    page.locator("canvas.step-chart").wait_for()
    box = page.locator("canvas.step-chart").bounding_box()
    x = 78 + (SLOW + 0.5) / STEPS * (box["width"] - 78 - 8)
    page.locator("canvas.step-chart").click(position={"x": x, "y": 200})
    wait_for_params(page, step=str(SLOW))
    for sentence in told["sentences"]:
        tells(sentences(page), sentence)
    tells(sentences(page), "8.4 times the median step")
    tells(sentences(page), "in Iterator::Root::Prefetch (3 calls instead of 1)")
    tells(sentences(page), "slow")
    screenshot(page, "steps_why")


def test_rows_are_those_of_the_service(page, server):
    told = difference(server, "many_steps", step=SLOW)
    open_view(page, server, "/session/many_steps/steps", step=SLOW)
    rows = rows_of(page, "What differs")
    assert [row["Op or function"] for row in rows] == [op["title"] for op in told["ops"]]
    for row, op in zip(rows, told["ops"], strict=True):
        assert number_of(row["Takes"]) == almost(op["ps"])
        assert number_of(row["Instead of"]) == almost(op["usual_ps"])
    assert rows[0]["Calls"] == "3 instead of 1"
    shown = [bar.get_attribute("data-part") for bar in page.locator(".waterfall .part").all()]
    parts = sorted(told["parts"], key=lambda part: -abs(part["difference_ps"]))
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
    told = difference(server, "many_steps", step=SLOW)
    open_view(page, server, "/session/many_steps/steps", step=SLOW)
    page.get_by_role("button", name="By Python function").click()
    wait_for_params(page, why_by="function")
    titles = [one["title"] for one in told["frames"]]
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
    told = api(server, "sessions/slow_step/tools/step_heat")["rows"][0]
    tells(page.locator("#announcer"), told["title"])
    page.keyboard.press("Enter")
    wait_for_params(page, step="3", work=told["name"])


def test_it_is_taken_along(page, server):
    open_view(page, server, "/session/many_steps/steps", step=SLOW)
    page.get_by_label("Export many steps step difference").click()
    with page.expect_download() as found:
        page.get_by_role("button", name="JSON").locator("visible=true").click()
    told = difference(server, "many_steps", step=SLOW, device="")
    assert json.loads(found.value.path().read_text())["sentences"] == told["sentences"]


def test_everybody_can_read_it(page, server):
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
