"""The timeline's steps: as many as there are pixels, followed one by one however many there are."""

import csv

import pytest
from tests.web.looking import api, eventually, open_view, wait_for_params
from tests.web.timelines import loaded, open_timeline, shown, tool


def test_of_many_steps_the_band_reads_what_its_pixels_show(page, server):
    sizes = []
    page.on(
        "response",
        lambda one: sizes.append(len(one.body())) if "view=steps" in one.url else None,
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
    found = api(server, "sessions/tf2_cnn/tools/timeline", view="search", search="MatMul")["first"]
    place = """([line, row]) => {
      const label = document.getElementById(`tl-fold-${line}`)?.closest(".tl-label");
      const scroller = document.querySelector(".tl-scroller");
      if (!label) return false;
      const height = 17 * (row + 1);
      const top = label.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
      return top + height > 0 && top + height <= scroller.clientHeight + 1;
    }"""
    eventually(lambda: page.evaluate(place, [found["line"], found["row"]]), expected=True)


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
