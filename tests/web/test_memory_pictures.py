"""The memory view's pictures: layers, buffers one by one, from A to B, the address map, trees."""

import random

import pytest
from tests.web.looking import (
    api,
    eventually,
    expect_accessible,
    expect_accessible_in_both_schemes,
    open_view,
    params,
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
    place_of,
    rows,
    view,
    wait_for_param,
)

from peakline.text import size_text

_LAY_OUT = """async (answer) => {
  const { layOut } = await import("./assets/js/views/memory/polygons.js");
  const { top, ...pieces } = layOut(answer);
  return { ...pieces, top: [...top] };
}"""


def tool(server, session, name, **query):
    """What the service answers."""
    return api(server, f"sessions/{session}/tools/{name}", **query)


def legend(page):
    """The layers of the picture, from the highest."""
    return page.locator(".layer-legend button .name").all_inner_texts()


def short(text):
    """A name as the legend has it."""
    return text if len(text) <= 34 else "…" + text[-33:]


def to_the_top(page):
    """Scroll up: of what is half under the page's header axe says that it is too small."""
    page.evaluate("() => scrollTo(0, 0)")


def test_layers_are_those_of_the_service(page, server):
    open_view(page, server, view("leak_list"))
    drawn(page)
    page.get_by_role("button", name="Stacked", exact=True).click()
    wait_for_params(page, draw="stack")
    drawn(page)
    first, last = bounds(page)
    width = round(chart(page).bounding_box()["width"] - LEFT - RIGHT)
    answer = tool(server, "leak_list", "memory_stack", start_ps=first, end_ps=last, width=width)
    expected = [one["key"] for one in answer["layers"] if one["kind"] == "group"][::-1]
    eventually(lambda: [name for name in legend(page) if not name.startswith(("all", "before"))],
               [short(name) for name in expected])  # fmt: skip
    assert "stacked by op" in chart(page).get_attribute("aria-label")
    page.get_by_label("Stacked by", exact=True).select_option("region_type")
    wait_for_params(page, by="region_type")
    drawn(page)
    eventually(lambda: legend(page), ["all others (1)", "temp", "output", "before the profile"])


def test_a_layer_is_taken_out_of_the_picture_and_the_address_says_so(page, server):
    open_view(page, server, view("leak_list"), draw="stack", by="region_type")
    drawn(page)
    page.locator(".layer-legend button", has_text="temp").click()
    wait_for_param(page, "off")
    out = page.locator(".layer-legend button[aria-pressed=false]")
    assert out.inner_text().startswith("temp")
    open_view(
        page, server, view("leak_list"), draw="stack", by="region_type", off=params(page)["off"]
    )
    drawn(page)
    assert out.inner_text().startswith("temp")
    out.click()
    wait_for_params(page, off=None)


def test_the_pointer_names_the_layer_and_its_bytes(page, server):
    answer = tool(server, "leak_list", "memory_stack", group="region_type", width=1)
    open_view(page, server, view("leak_list"), draw="stack", by="region_type")
    drawn(page)
    box, (x, _) = chart(page).bounding_box(), place_of(page, answer["top_ps"])
    # Just above the lowest line there is what was there before.
    page.mouse.move(x, box["y"] + box["height"] - 26 - 3)
    tells(page.locator(".tip"), "before the profile", "lowest moment of this pixel")


def test_polygons_never_overlap_and_add_up(page, server):
    """Against plain sums, of an answer and of random buffers."""
    open_view(page, server, "/")
    answers = [tool(server, "leak_list", "memory_polygons", width=50)]
    rng = random.Random(5)
    firsts = sorted(rng.randrange(40) for _ in range(200))
    buffers = {
        "first": firsts,
        "last": [one + 1 + rng.randrange(20) for one in firsts],
        "bytes": [rng.randrange(1, 1000) for _ in firsts],
    }
    answers.append({"below": [rng.randrange(50) for _ in range(60)], "buffers": buffers})
    for answer in answers:
        result = page.evaluate(_LAY_OUT, answer)
        columns = answer["buffers"]
        at = {}
        for buffer, first, last, y in zip(
            *(result[name] for name in ("buffer", "from", "to", "y")), strict=True
        ):
            for pixel in range(first, last):
                at.setdefault(pixel, []).append((y, buffer))
        for pixel, below in enumerate(answer["below"]):
            lives = [
                one for one in range(len(columns["bytes"]))
                if columns["first"][one] <= pixel < columns["last"][one]
            ]  # fmt: skip
            y, expected = below or 0, []
            for one in lives:
                expected.append((y, one))
                y += columns["bytes"][one]
            assert sorted(at.get(pixel, [])) == sorted(expected)
            assert result["top"][pixel] == y


def test_a_buffer_of_the_picture_is_chosen_in_the_table_and_the_other_way_round(page, server):
    open_view(page, server, view("leak_list"), draw="buffers")
    drawn(page)
    answer = tool(server, "leak_list", "memory_polygons", width=300)
    box = chart(page).bounding_box()
    x, _ = place_of(page, answer["at_ps"][270])
    # The lowest buffer above what was there before: a third up.
    y = box["y"] + box["height"] - 26 - (box["height"] - 54) * 0.4
    page.mouse.move(x, y)
    tells(page.locator(".tip"), "allocated at", "Click: choose it")
    name = page.locator(".tip strong").inner_text()
    page.mouse.click(x, y)
    record = int(wait_for_param(page, "buffer"))
    settle(page)
    assert page.locator(".memory-buffer h3").inner_text() == name
    assert page.locator(".memory-live .row.chosen").count() == 1
    page.locator(".memory-live .table .row", has_text="ResourceApplyAdam").first.click()
    page.wait_for_function("(was) => !location.hash.includes(`buffer=${was}`)", arg=record)
    settle(page)
    assert page.locator(".memory-live .row.chosen").count() == 1
    assert "buffer by buffer" in chart(page).get_attribute("aria-label")


def pointed(page):
    """What the picture has an outline around: a buffer's record, or a layer's group."""
    return chart(page).get_attribute("data-pointed")


def test_the_pointer_marks_a_layer_and_its_row_both_ways(page, server):
    open_view(page, server, view("leak_list"), draw="stack", group="op")
    drawn(page)
    layers = tool(server, "leak_list", "memory_stack", width=1)["layers"]
    number, key = next((one["number"], one["key"]) for one in layers if one["kind"] == "group")
    page.locator(f".layer-legend button[data-key='{number}']").hover()
    eventually(lambda: pointed(page), key)
    marked = page.locator(".memory-live .row.pointed")
    eventually(marked.count, 1)
    tells(marked, key.rpartition("/")[2][-8:])
    page.locator(".memory-live .table .row").nth(1).hover()
    eventually(marked.count, 1)
    other = tool(server, "leak_list", "live_memory", group="op", limit=2)["rows"][1]["key"]
    eventually(lambda: pointed(page), other)
    page.mouse.move(2, 2)
    eventually(lambda: pointed(page), "")
    # The arrow keys do as the pointer does.
    page.locator(".memory-live .table").focus()
    page.keyboard.press("ArrowDown")
    eventually(lambda: pointed(page), other)


def test_the_pointer_marks_a_buffer_and_its_row_both_ways(page, server):
    open_view(page, server, view("leak_list"), draw="buffers")
    drawn(page)
    rows_of = tool(server, "leak_list", "live_memory", limit=50)["rows"]
    page.locator(".memory-live .table .row").nth(2).hover()
    eventually(lambda: pointed(page), str(rows_of[2]["record"]))
    answer = tool(server, "leak_list", "live_memory", limit=0)
    box, (x, _) = chart(page).bounding_box(), place_of(page, answer["at_ps"])
    page.mouse.move(x, box["y"] + box["height"] - 26 - (box["height"] - 54) * 0.4)
    page.wait_for_function(
        "(was) => !['', was].includes(document.querySelector('.memory-chart').dataset.pointed)",
        arg=str(rows_of[2]["record"]),
    )
    place = [str(row["record"]) for row in rows_of].index(pointed(page))
    if place < 8:
        assert page.locator(".memory-live .row.pointed").count() == 1


def test_dragging_with_shift_shows_what_is_left_of_a_range(page, server):
    open_view(page, server, view("leak_list"))
    drawn(page)
    page.keyboard.down("Shift")
    page.mouse.move(*place_of(page, 300_000_000_000))
    page.mouse.down()
    page.mouse.move(*place_of(page, 500_000_000_000))
    page.mouse.move(*place_of(page, 700_000_000_000))
    page.mouse.up()
    page.keyboard.up("Shift")
    a, b = int(wait_for_param(page, "a")), int(wait_for_param(page, "b"))
    settle(page)
    answer = tool(server, "leak_list", "memory_between", start_ps=a, end_ps=b)
    tells(
        page.locator(".between-sentence"),
        f"allocated {size_text(answer['allocated']['bytes'])} in "
        f"{answer['allocated']['buffers']} buffers",
        f"{size_text(answer['live']['bytes'])} in {answer['live']['buffers']} buffers of it still",
    )
    shown = page.locator(".memory-between .table .row")
    assert shown.first.inner_text().split("\n")[0] == answer["rows"][0]["key"]
    parts = page.locator(".memory-between .icicle .part")
    assert parts.first.get_attribute("aria-label").startswith("bfc_cpu_allocator_for_gpu")
    page.get_by_label("The flame graph is of").select_option("allocated")
    wait_for_params(page, of="allocated")
    tells(parts.first, "bfc")
    size = size_text(answer["allocated"]["bytes"])
    page.wait_for_selector(f".memory-between .icicle .part[aria-label*='{size}']")
    chart(page).focus()
    page.keyboard.press("Escape")
    wait_for_params(page, a=None, b=None)
    assert not page.locator(".memory-between").is_visible()


def test_a_range_is_measured_by_keyboard(page, server):
    open_view(page, server, view("leak_list"), at=300_000_000_000)
    drawn(page)
    chart(page).focus()
    page.keyboard.press("m")
    page.keyboard.press("End")
    settle(page)
    page.keyboard.press("m")
    assert wait_for_param(page, "a") == "300000000000"
    settle(page)
    assert page.locator(".memory-between").is_visible()
    page.keyboard.press("3")
    wait_for_params(page, draw="buffers")


def test_the_icicle_is_by_scope_or_by_stack(page, server):
    open_view(page, server, view("torch_trace"))
    page.get_by_label("Icicle by").select_option("stack")
    wait_for_params(page, tree="stack")
    settle(page)
    answer = tool(server, "torch_trace", "live_memory", tree="stack", limit=0)
    labels = page.locator(".live-parts .icicle .part").all_inner_texts()
    assert answer["tree"]["label"][1] in labels
    open_view(page, server, view("leak_list"))
    assert page.get_by_label("Icicle by").locator("option").nth(1).get_attribute("disabled") == ""


@pytest.mark.parametrize(
    ("session", "query", "texts"),
    [
        ("leak_list", {"map": "time"}, ("blocks in", "regions")),
        (
            "torch_snapshot",
            {"map": "time"},
            ("12 stretches of segments in view, 12 taken and 6 returned",),
        ),
        ("leak_list", {"map": "moment"}, ("holes", "the largest")),
        (
            "oom_report",
            {"map": "listed"},
            ("35 blocks in 6 regions", "a request for 2.0 MiB of AddV2"),
        ),
        ("torch_snapshot", {"map": "replayed"}, ("under a limit of", "a request for")),
        ("memory_log", {"map": "replayed"}, ("There is no such map",)),
    ],
)
def test_the_address_map_says_what_it_shows(page, server, session, query, texts):
    open_view(page, server, view(session), **query)
    tells(page.locator(".memory-addresses"), *texts)
    to_the_top(page)
    expect_accessible(page)


def test_a_block_of_the_map_is_chosen_in_the_table(page, server):
    open_view(page, server, view("leak_list"), map="moment")
    tells(page.locator(".memory-addresses"), "holes")
    answer = tool(server, "leak_list", "address_map")
    page.get_by_text("The same as a table").click()
    table = page.locator(".memory-addresses .table")
    largest = max(answer["blocks"]["bytes"] + answer["holes"]["bytes"])
    assert size_text(largest) in table.locator(".row").first.inner_text()
    table.locator(".row", has_text="model/hidden/MatMul").first.click()
    wait_for_param(page, "buffer")
    settle(page)
    assert page.locator(".memory-buffer h3").inner_text() == "model/hidden/MatMul"
    assert page.locator(".memory-live .row.chosen").count() == 1


def test_a_replay_under_other_settings_is_in_the_address(page, server):
    open_view(page, server, view("torch_snapshot"), map="replayed")
    page.get_by_label("Limit of the replay").fill("1GiB")
    page.get_by_label("Settings of the replay").fill("expandable_segments=True")
    page.get_by_role("button", name="Replay", exact=True).click()
    wait_for_params(page, limit="1GiB", settings="expandable_segments=True")
    tells(
        page.locator(".memory-addresses"),
        "under a limit of 1.0 GiB",
        "expandable_segments=true",
        "all requests fit",
    )


def test_lifetimes_and_growth_are_those_of_the_service(page, server):
    open_view(page, server, view("leak_list"))
    page.get_by_role("heading", name="Lifetimes and growth").click()
    wait_for_params(page, lifetimes="true")
    settle(page)
    answer = tool(server, "leak_list", "memory_lifetimes")
    lives = page.get_by_role("region", name="Lifetimes").locator("g.bar")
    eventually(lives.count, len(answer["rows"]))
    assert size_text(answer["rows"][-1]["bytes"]) in lives.last.get_attribute("aria-label")
    growth = tool(server, "leak_list", "memory_findings")["growth"][0]
    steps = page.get_by_role("region", name="Growth").locator("g.bar")
    eventually(steps.count, len(growth["steps"]))
    # The line over them has the slope of the finding, and where it holds.
    (group,) = growth["groups"]
    assert page.get_by_role("region", name="Growth").locator(".slope-text").text_content() == (
        f"+{size_text(growth['bytes_per_step'])} a step, "
        f"from step {group['since_step']} to {group['until_step']}"
    )
    steps.nth(3).focus()
    page.keyboard.press("Enter")
    wait_for_param(page, "at")
    settle(page)
    to_the_top(page)
    expect_accessible(page)


def test_chart_list_and_icicle_are_on_one_screen(page, server):
    page.set_viewport_size({"width": 1440, "height": 900})
    open_view(page, server, view("leak_list"), draw="stack")
    drawn(page)
    for part in (".memory-chart", ".live-parts .icicle", ".live-parts .table .row >> nth=4"):
        box = page.locator(part).bounding_box()
        assert box["y"] + min(box["height"], 100) <= 900
    assert len(rows(page)) > 5


@pytest.mark.parametrize("width", [1440, 800, 390])
@pytest.mark.parametrize("draw", ["stack", "buffers"])
def test_everybody_can_use_the_pictures(page, server, draw, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_view(
        page, server, view("leak_list"), draw=draw, map="time", a=300_000_000_000, b=700_000_000_000
    )
    drawn(page)
    tells(page.locator(".memory-addresses"), "blocks in")
    to_the_top(page)
    expect_accessible_in_both_schemes(page, f"memory_{draw}_{width}")
