"""The timeline by keys and wheel: zoom, pan, neighbours, steps."""

import pytest
from tests.web.looking import api, eventually, params, wait_for_params
from tests.web.timelines import (
    canvas,
    canvas_width,
    choose,
    event_of,
    loaded,
    open_timeline,
    shown,
    shows,
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
