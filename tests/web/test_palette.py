"""Ctrl-K: anything by its name, with the keyboard alone."""

from tests.web.looking import (
    eventually,
    expect_accessible_in_both_schemes,
    open_view,
    outwait_timers,
    tells,
    wait_for_params,
)


def opened(page, text):
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Go to")
    field.fill(text)
    return field, page.get_by_role("listbox", name="Places")


def options(page, group):
    return page.get_by_role("option").filter(
        has=page.locator(".group").get_by_text(group, exact=True)
    )


def test_an_op_a_buffer_and_a_step_are_found_by_name(page, server):
    open_view(page, server, "/session/leak_list/summary")
    field, places = opened(page, "MatMul_1")
    tells(places, "Op", "Buffer", "gradient_tape/model/head/MatMul/MatMul_1")
    expect_accessible_in_both_schemes(page, "palette")
    options(page, "Buffer").first.click()
    wait_for_params(page, allocator="bfc_cpu_allocator_for_gpu", buffer=579)
    field, places = opened(page, "train 15")
    tells(places, "Step")
    eventually(lambda: options(page, "Step").count(), 1)
    field.press("Enter")
    wait_for_params(page, name="train 15")


def test_the_arrows_choose_and_enter_goes(page, server):
    open_view(page, server, "/session/leak_list/summary")
    field, places = opened(page, "")
    tells(places, "Summary", "Memory", "Timeline", "SQL")
    for _ in range(2):
        field.press("ArrowDown")
    assert places.get_by_role("option", selected=True).locator(".name").inner_text() == "Timeline"
    field.press("Enter")
    eventually(lambda: "/timeline" in page.evaluate("location.hash"), expected=True)
    assert page.get_by_role("dialog").count() == 0


def test_sessions_are_found_from_the_list(page, server):
    open_view(page, server)
    page.get_by_role("button", name="Go to").click()
    page.get_by_role("combobox", name="Go to").fill("two_devices")
    tells(page.get_by_role("listbox"), "Session", "tf2_two_devices")
    page.keyboard.press("Enter")
    eventually(
        lambda: page.evaluate("location.hash").startswith("#/session/tf2_two_devices/summary"),
        expected=True,
    )


def test_what_is_nowhere_is_said_to_be_so(page, server):
    open_view(page, server, "/session/leak_list/summary")
    opened(page, "it's % nowhere")
    tells(page.get_by_role("dialog"), "Nothing has that in its name.")
    page.keyboard.press("Escape")
    eventually(page.get_by_role("dialog").count, 0)


def test_the_summary_is_requested_once_whatever_is_typed(page, server):
    open_view(page, server, "/session/leak_list/sql")
    urls = []
    page.on("request", lambda request: urls.append(request.url))
    field, places = opened(page, "growth")
    for text in ("memory", "grow", "leak"):
        field.fill(text)
        outwait_timers(page)
    assert sum("/tools/live_memory" in url for url in urls) >= 3
    tells(places, "Finding")
    assert sum("/tools/summary" in url for url in urls) == 1
    field.press("Escape")
