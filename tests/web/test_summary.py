"""The summary: its numbers are the service's, its findings lead to their evidence."""

import pytest
from tests.web.looking import (
    api,
    eventually,
    expect_accessible,
    expect_accessible_in_both_schemes,
    open_view,
    screenshot,
    wait_for_params,
)
from tests.web.shown import almost, fact, facts, number_of, rows_of


def summary(server, session, **query):
    return api(server, f"sessions/{session}/tools/summary", **query)


def panel(page, heading):
    return page.locator("section.panel").filter(
        has=page.get_by_role("heading", name=heading, exact=True)
    )


def test_the_facts_are_those_of_the_service(page, server):
    result = summary(server, "input_bound")
    open_view(page, server, "/session/input_bound/summary")
    shown = page.locator(".panel > dl.facts")
    assert facts(shown)["Format"] == result["profile"]["format"] == "xplane"
    assert facts(shown)["Steps"] == f"{result['time']['steps']} steps" == "16 steps"
    assert fact(shown, "Recorded") == almost(result["profile"]["duration_ps"])
    assert fact(shown, "Median step") == almost(result["time"]["times"]["median_ps"])
    assert fact(shown, "Largest peak") == almost(result["memory"]["allocators"][0]["peak_bytes"])
    screenshot(page, "summary_facts")


def test_the_parts_of_a_step_add_up_to_the_mean(page, server):
    result = summary(server, "input_bound")["time"]
    open_view(page, server, "/session/input_bound/summary")
    legend = panel(page, "Where a step's time goes").locator(".parts-legend li")
    numbers = legend.locator(".number").all_inner_texts()
    times, shares = numbers[::2], numbers[1::2]
    assert [number_of(text) for text in times] == [
        almost(part["per_step_ps"]) for part in result["parts"]
    ]
    for text, part in zip(shares, result["parts"], strict=True):
        assert abs(number_of(text) - part["share"]) < 0.001
    # Rounded each by itself they would come to 99.9.
    assert round(sum(map(number_of, shares)), 9) == 1
    assert sum(map(number_of, times)) == almost(result["times"]["mean_ps"])
    words = legend.locator(".grow").all_inner_texts()
    assert words == ["host compute", "waiting for input", "no event recorded", "launching work"]


def test_what_to_fix_first_leads_to_its_evidence(page, server):
    (finding,) = summary(server, "input_bound")["first"]
    open_view(page, server, "/session/input_bound/summary")
    shown = page.locator("article.finding")
    assert finding["title"] in shown.get_by_role("heading").inner_text()
    assert finding["suggestion"] in shown.inner_text()
    shown.get_by_text("The numbers behind it").click()
    stages = rows_of(page, "Rows of evidence")
    assert [row["Stage"] for row in stages] == [row["stage"] for row in finding["evidence"]["rows"]]
    assert number_of(facts(shown)["Input wait"]) == almost(finding["evidence"]["input_wait_ps"])
    shown.get_by_role("link", name="Stages of the input pipeline").click()
    page.get_by_text("holds the pipeline up").first.wait_for()
    wait_for_params(page, part="input")


def test_the_peak_leads_to_its_moment_in_memory(page, server):
    (allocator,) = summary(server, "leak_list")["memory"]["allocators"]
    open_view(page, server, "/session/leak_list/summary")
    peak = panel(page, "Memory peaks").locator("li")
    size, _, when = peak.locator(".number").inner_text().partition(" at ")
    assert number_of(size) == almost(allocator["peak_bytes"])
    assert number_of(when) == almost(allocator["peak_time_ps"])
    href = peak.get_by_role("link").get_attribute("href")
    assert f"allocator={allocator['allocator']}" in href
    assert f"at={allocator['peak_time_ps']}" in href


def test_the_top_ops_are_those_of_the_service(page, server):
    ops = summary(server, "tf2_cnn")["time"]["top_ops"]
    open_view(page, server, "/session/tf2_cnn/summary")
    part = panel(page, "Ops with the most self time")
    assert part.locator(".name").all_inner_texts() == [op["op"] for op in ops]
    shown = [text.split(", ") for text in part.locator(".number").all_inner_texts()]
    assert [(number_of(own), number_of(share)) for own, share in shown] == [
        (almost(op["self_ps"]), almost(op["share"])) for op in ops
    ]
    part.get_by_role("link", name=ops[0]["op"], exact=True).click()
    detail = page.get_by_role("complementary", name="The chosen op")
    detail.get_by_role("heading", name=ops[0]["op"], exact=True).wait_for()


def test_further_findings_are_folded_and_are_the_rest(page, server):
    """All findings of memory and time, but for the first three."""
    session = "fragmentation"
    result = summary(server, session)
    everything = [
        *api(server, f"sessions/{session}/tools/memory_findings")["findings"],
        *api(server, f"sessions/{session}/tools/time_findings")["hosts"][0]["findings"],
    ]
    open_view(page, server, f"/session/{session}/summary")
    shown = page.locator("article.finding")
    assert shown.count() == len(result["first"])
    more = page.get_by_text("further finding")
    assert more.count() == (1 if result["further_findings"] else 0)
    if more.count():
        more.click()
    eventually(shown.count, len(everything))
    assert len(everything) == len(result["first"]) + result["further_findings"]


@pytest.mark.parametrize(
    ("session", "words"),
    [
        ("jax_cpu", "No memory events"),
        ("threads", "This profile has nothing about memory."),
        ("jax_heap", "This file does not record what ran."),
        ("graph", "Open the graph"),
        ("leak_list", "Fix first"),
    ],
)
def test_what_is_missing_is_said_once(page, server, session, words):
    open_view(page, server, f"/session/{session}/summary")
    text = page.locator("#main").inner_text()
    assert text.count(words) == 1
    assert "no memory events" not in text
    screenshot(page, f"summary_missing_{session}")


@pytest.mark.parametrize("session", ["graph", "saved_model", "hlo_dump"])
def test_a_file_of_graphs_says_what_they_are(page, server, session):
    result = api(server, f"sessions/{session}/tools/graph_scopes", view="overview")
    open_view(page, server, f"/session/{session}/summary")
    panel_of = page.get_by_label("Graph", exact=True)
    shown = facts(panel_of.locator("dl.facts"))
    if result["program"]:
        assert shown["Instructions"] == str(result["program"]["instructions"])
    else:
        assert (shown["Nodes"], shown["Edges"]) == (str(result["nodes"]), str(result["edges"]))
        assert result["broken_total"] == 0
        assert "finds no broken rule" in panel_of.inner_text()
    assert result["ops"][0]["text"] in panel_of.inner_text()
    assert "Nothing to judge" not in page.locator("#main").inner_text()
    expect_accessible(page)
    panel_of.get_by_role("link", name="Open the graph").click()
    page.locator(".gv-box").first.wait_for()


def test_a_damaged_profile_is_an_error_that_names_the_file(page, server):
    page.allowed_failures.append("/api/sessions/damaged/")
    open_view(page, server, "/session/damaged/summary")
    error = page.locator(".state.error")
    assert "host.xplane.pb" in error.inner_text()
    assert error.get_by_role("button", name="Try again").is_visible()
    screenshot(page, "summary_error")


@pytest.mark.parametrize("session", ["input_bound", "tf2_multihost", "oom_report"])
def test_everybody_can_read_it(page, server, session):
    open_view(page, server, f"/session/{session}/summary")
    page.get_by_text("The numbers behind it").first.click()
    page.locator("details[open] dl").first.wait_for()
    expect_accessible_in_both_schemes(page, f"summary_{session}")


def test_a_narrow_window_needs_no_sideways_scrolling(page, server):
    page.set_viewport_size({"width": 600, "height": 800})
    open_view(page, server, "/session/slow_step/summary")
    assert page.evaluate("document.documentElement.scrollWidth") <= 600
    screenshot(page, "summary_narrow")
