"""The answer bar: what is said first of a session, on each of its views."""

from tests.web.looking import (
    api,
    eventually,
    expect_accessible_in_both_schemes,
    open_view,
    params,
    tells,
    wait_for_params,
)

ABOUT = ("memory", "time", "savings")


def sentences(server, session, **query):
    return [
        one
        for about in ABOUT
        for one in api(server, f"sessions/{session}/tools/headline", about=about, **query)[
            "sentences"
        ]
    ]


def bar(page):
    return page.get_by_role("region", name="In short")


def test_the_summary_begins_with_all_sentences(page, server):
    expected = sentences(server, "leak_list")
    assert [one["kind"] for one in expected] == ["peak", "steps", "slow_step", "saving"]
    open_view(page, server, "/session/leak_list/summary")
    shown = bar(page).locator(".sentence").all_inner_texts()
    assert [text.lower() for text in shown] == [f"{one['text']}.".lower() for one in expected]
    expect_accessible_in_both_schemes(page, "answer")


def test_each_noun_leads_to_what_it_names(page, server):
    peak = sentences(server, "leak_list")[0]["phrases"]
    open_view(page, server, "/session/leak_list/summary")
    bar(page).get_by_role("link", name=peak[1]["text"], exact=True).click()
    wait_for_params(page, **peak[1]["params"])
    assert "/memory" in page.evaluate("location.hash")
    # On this view it is one line, which opens.
    bar(page).get_by_role("button", name="All of the answer").click()
    bar(page).get_by_role("link", name="train 15").click()
    wait_for_params(page, name="train 15")
    assert "/steps" in page.evaluate("location.hash")
    assert bar(page).get_by_role("button", name="Less of the answer").is_visible()


def test_three_actions_lead_to_the_op_with_most_of_the_peak_and_to_its_event(page, server):
    """The op is in the first sentence: its buffers, one of them, the event that allocated it."""
    op = sentences(server, "leak_list")[0]["phrases"][-1]["text"]
    open_view(page, server, "/session/leak_list/summary")
    tells(bar(page), f"45% of it {op}")
    bar(page).get_by_role("link", name=op, exact=True).click()
    wait_for_params(page, op=op)
    page.locator(".memory-live .row", has_text="MatMul").first.click()
    page.locator(".memory-buffer").get_by_role("link", name="in the timeline").click()
    tells(page.locator(".tl-head").first, "MemoryAllocation")


def test_a_click_into_the_pictures_chooses_the_moment_and_the_step(page, server):
    found = api(server, "sessions/leak_list/tools/headline", about="memory")["picture"]
    open_view(page, server, "/session/leak_list/summary")
    memory, steps = bar(page).get_by_role("img").all()
    box = memory.bounding_box()
    memory.click(position={"x": box["width"] * 0.5, "y": 20})
    eventually(lambda: "at" in params(page), expected=True)
    at, middle = int(params(page)["at"]), (found["start_ps"] + found["end_ps"]) / 2
    assert abs(at - middle) < (found["end_ps"] - found["start_ps"]) / 100
    open_view(page, server, "/session/leak_list/summary")
    box = steps.bounding_box()
    # The slow one is the 16th of 20.
    steps.click(position={"x": box["width"] * 15.5 / 20, "y": 20})
    wait_for_params(page, name="train 15")


def test_nothing_stands_out_is_not_said_beside_a_saving_of_half_the_peak(page, server):
    open_view(page, server, "/session/memory_log/summary")
    tells(page.locator("main .fixes"), "Worth a look", "(51% less)")
    assert "Nothing stands out" not in page.locator("main").inner_text()


def test_a_failure_is_said_first(page, server):
    open_view(page, server, "/session/oom_report/summary")
    first = bar(page).locator(".sentence").first
    assert first.inner_text().endswith("ran out of memory: 2.0 MiB requested by AddV2.")


def test_the_bar_of_a_graph_leads_to_it(page, server):
    open_view(page, server, "/session/graph/summary")
    tells(bar(page), "GraphDef of 70 nodes and 1 function.")
    bar(page).get_by_role("link", name="70 nodes").click()
    page.wait_for_url("**/graph*")


def test_the_bar_is_of_the_host_that_is_shown(page, server):
    hosts = api(server, "sessions/tf2_multihost")["hosts"]
    for host in hosts:
        open_view(page, server, "/session/tf2_multihost/summary", host=host)
        expected = sentences(server, "tf2_multihost", host=host)[0]["text"]
        eventually(
            lambda: bar(page).locator(".sentence").first.inner_text().lower(),
            f"{expected}.".lower(),
        )


def test_it_fits_a_narrow_window(page, server):
    for width in (800, 390):
        page.set_viewport_size({"width": width, "height": 800})
        open_view(page, server, "/session/leak_list/summary")
        box = bar(page).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
