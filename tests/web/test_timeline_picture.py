"""The timeline's picture is the tile's: lines, events, memory, steps, each where it belongs."""

import re

import pytest
from tests.web.looking import eventually, wait_for_params
from tests.web.timelines import (
    COLORS,
    PIXELS,
    ROW_PX,
    canvas_width,
    line_tops,
    loaded,
    open_timeline,
    shows,
    tool,
)

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
