"""The memory view by touch, and by its buttons: fingers zoom and move what is over time."""

import pytest
from tests.waiting import until
from tests.web.looking import eventually, open_view, settle, tells
from tests.web.memories import bounds, chart, drawn, view


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
