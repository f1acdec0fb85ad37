"""Comparing two sessions, and their steps."""

import gzip
import re
from itertools import pairwise

import pytest
from tests.web.looking import (
    api,
    eventually,
    expect_accessible,
    expect_accessible_in_both_schemes,
    open_view,
    screenshot,
    settle,
    tells,
    wait_for_params,
)
from tests.web.samples import DATA, HOSTILE, make_logdir

from peakline.text import size_text

MINUS = "\N{MINUS SIGN}"
PAIR = {"first": "doubled_batch_healthy", "second": "doubled_batch"}


def region(page, name):
    return page.get_by_role("region", name=name, exact=True)


def facts(part):
    """The facts of a part of the page: what is told of each name."""
    result = part.evaluate(
        """(part) => [...part.querySelectorAll("dl.facts > div")].map((one) =>
          one.innerText.split("\\n"))"""
    )
    return {name: values for name, *values in result}


def rows(page, table):
    """The cells of the rows of a table, by its label."""
    grid = page.get_by_role("grid", name=table, exact=True)
    return grid.evaluate(
        """(grid) => [...grid.querySelectorAll(".row")].map((row) =>
          [...row.children].map((cell) => cell.innerText))"""
    )


def pick(page, side, name):
    """Choose a session by its name, with the keyboard alone."""
    page.get_by_role("button", name=re.compile(f"^{side}: ")).press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Search sessions").fill(name)
    dialog.get_by_role("option", name=name, selected=True).wait_for()
    page.keyboard.press("Enter")
    dialog.wait_for(state="hidden")


def signed(size):
    return f"{MINUS if size < 0 else '+'}{size_text(abs(size))}"


def test_the_peaks_and_what_makes_them_are_those_of_the_service(page, server):
    (allocator,) = api(server, "compare", **PAIR)["allocators"]
    open_view(page, server, "/compare", **PAIR)
    before, after = allocator["before"]["peak_bytes"], allocator["after"]["peak_bytes"]
    result = facts(region(page, "Memory"))["Peak"]
    share = f"+{100 * (after - before) / before:.1f}%"
    assert result == [
        f"{size_text(before)} → {size_text(after)}",
        f"{signed(after - before)} ({share})",
    ]
    largest = sorted(allocator["groups"], key=lambda group: -abs(group["delta_bytes"]))
    shown = rows(page, "What changed at the peak")
    assert len(shown) == len(largest)
    for cells, group in zip(shown, largest, strict=True):
        assert cells[0] == group["op"]
        assert cells[1].strip() == signed(group["delta_bytes"])
        assert cells[2:4] == [size_text(group["before_bytes"]), size_text(group["after_bytes"])]
        assert cells[5:] == [group["region_type"], group["data_type"], group["shape"]]
    assert shown[0][4] == "same op, [192, 1024] -> [384, 1024]"
    assert all(f"Note: {note}." in page.inner_text("main") for note in allocator["notes"])
    chart = page.get_by_role("figure", name=re.compile("Memory in use"))
    chart.wait_for()
    label = chart.get_attribute("aria-label")
    assert f"Before: at most {size_text(before)}" in label
    assert f"After: at most {size_text(after)}" in label
    expect_accessible_in_both_schemes(page, "compare")


def test_the_time_is_that_of_the_service(page, server):
    result = api(server, "compare", **PAIR)["time"]
    open_view(page, server, "/compare", **PAIR)
    part = region(page, "Time")
    before, after = result["before"]["times"]["median_ps"], result["after"]["times"]["median_ps"]
    assert [
        float(number) for number in re.findall(r"[\d.]+", facts(part)["Median step"][0])
    ] == pytest.approx([before / 1e9, after / 1e9], rel=0.005)
    assert facts(part)["Steps"] == ["12 → 12", "no change"]
    ops = sorted(result["ops"], key=lambda op: -abs(op["delta_ps"]))
    shown = rows(page, "Ops whose self time differs")
    assert [cells[0] for cells in shown] == [op["op"] for op in ops]
    for cells, op in zip(shown, ops, strict=True):
        sign, number = cells[1].strip()[0], float(re.search(r"[\d.]+", cells[1])[0])
        assert (sign == "+") == (op["delta_ps"] > 0)
        unit = {"ms": 1e9, "µs": 1e6}[cells[1].split()[-1]]
        assert number * unit == pytest.approx(abs(op["delta_ps"]), rel=0.001)
    assert len(rows(page, "Parts of a mean step")) == len(result["parts"])


def test_ops_lead_to_their_buffers_and_their_times(page, server):
    open_view(page, server, "/compare", **PAIR)
    grid = page.get_by_role("grid", name="What changed at the peak", exact=True)
    href = grid.get_by_role("link", name="model/hidden/MatMul").first.get_attribute("href")
    assert href.startswith("#/session/doubled_batch/memory?")
    assert "q=model%2Fhidden%2FMatMul" in href
    ops = page.get_by_role("grid", name="Ops whose self time differs", exact=True)
    assert all(
        "/steps?part=ops&q=" in link.get_attribute("href") for link in ops.get_by_role("link").all()
    )


def test_new_and_gone_findings_are_told_with_their_evidence(page, server):
    result = api(server, "compare", first="doubled_batch_healthy", second="leak_list")
    news = result["findings"]["new"] + result["time"]["findings"]["new"]
    assert [finding["kind"] for finding in news] == ["leak"]
    open_view(page, server, "/compare", first="doubled_batch_healthy", second="leak_list")
    part = region(page, "Findings")
    assert part.get_by_role("heading", name="New: 1 finding").is_visible()
    assert news[0]["title"] in part.inner_text()
    link = part.get_by_role("link").first.get_attribute("href")
    assert link.startswith("#/session/leak_list/memory?")
    page.get_by_role("button", name="Swap before and after").click()
    part.get_by_role("heading", name="Gone: 1 finding").wait_for()
    wait_for_params(page, first="leak_list", second="doubled_batch_healthy")
    page.go_back()
    part.get_by_role("heading", name="New: 1 finding").wait_for()


def test_worse_findings_are_shown(page, server):
    pair = {"first": "busy_pipeline", "second": "input_bound"}
    answer = api(server, "compare", **pair)
    (worse,) = answer["findings"]["worse"] + answer["time"]["findings"]["worse"]
    open_view(page, server, "/compare", **pair)
    part = region(page, "Findings")
    assert part.get_by_role("heading", name="Worse: 1 finding").is_visible()
    assert worse["title"] in part.inner_text()


def test_a_session_and_itself_do_not_differ(page, server):
    open_view(page, server, "/compare", first="tf2_cnn", second="tf2_cnn")
    assert page.get_by_role("heading", name="Nothing changed").is_visible()
    assert page.get_by_text("The same findings before and after, or none.").is_visible()


def test_sessions_are_chosen_and_their_hosts(page, server):
    open_view(page, server, "/compare")
    assert page.get_by_text("Choose two sessions").is_visible()
    screenshot(page, "compare_nothing")
    pick(page, "Before", "tf2_multihost")
    pick(page, "After", "tf2_multihost")
    host = page.get_by_label("Host of After")
    host.wait_for()
    page.get_by_role("heading", name="Nothing changed").wait_for()
    host.select_option("localhost_56665")
    wait_for_params(page, second_host="localhost_56665")
    settle(page)
    request = {"first": "tf2_multihost", "second": "tf2_multihost"}
    result = api(
        server, "compare", **request, first_host="localhost_47507", second_host="localhost_56665"
    )
    before, after = (result["allocators"][0][side]["peak_bytes"] for side in ("before", "after"))
    expected = f"{size_text(before)} → {size_text(after)}"
    eventually(lambda: facts(region(page, "Memory"))["Peak"][0], expected)


def test_what_only_one_of_the_two_tells_is_told_as_that(page, server):
    open_view(page, server, "/compare", first="jax_cpu", second="oom_report")
    assert "(only after)" in region(page, "Memory").inner_text()
    screenshot(page, "compare_unlike")
    expect_accessible(page)
    open_view(page, server, "/compare", first="memory_log", second="memory_log_bfc")
    assert "Neither profile has steps or ops." in region(page, "Time").inner_text()


def test_hostile_names_are_text(page, server):
    open_view(page, server, "/compare", first="leak_list", second=HOSTILE)
    assert HOSTILE in region(page, "Memory").inner_text()
    assert page.locator("img[src=x]").count() == 0


def test_a_session_that_is_not_there_is_an_error_with_what_to_do(page, server):
    page.allowed_failures += ["/api/sessions/nosuch", "/api/compare"]
    open_view(page, server, "/compare", first="nosuch", second="leak_list")
    alert = page.get_by_role("alert")
    assert "Not found" in alert.inner_text()
    assert "nosuch" in alert.inner_text()
    screenshot(page, "compare_not_found")
    pick(page, "Before", "leak_list")
    page.get_by_role("heading", name="Nothing changed").wait_for()


def test_the_difference_is_copied_as_markdown(page, server):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_view(page, server, "/compare", **PAIR)
    page.get_by_role("button", name="Copy as Markdown").click()
    # The button says so for a moment only.
    eventually(page.locator("#announcer").inner_text, "copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("### What changed")
    assert "18.2 MiB | 23.5 MiB" in copied
    page.context.clear_permissions()


LEAK = {"first": "leak_list_healthy", "second": "leak_list"}
CHART = "figure.courses .step-chart"


@pytest.fixture(scope="module")
def pair(run_server, tmp_path_factory):
    """A server of a leak and the same program without, and of others."""
    names = ("leak_list", "doubled_batch", "tf2_cnn", "oom_report")
    logdir = make_logdir(tmp_path_factory.mktemp("pair"), *names)
    healthy = logdir / "plugins/profile/leak_list_healthy"
    healthy.mkdir()
    packed = (DATA / "programs/leak_list_healthy.xplane.pb.gz").read_bytes()
    (healthy / "vm.xplane.pb").write_bytes(gzip.decompress(packed))
    with run_server(logdir) as server:
        yield server


def series(server, name):
    return api(server, f"sessions/{name}/tools/step_series")["series"]


def memory_part(page):
    return page.get_by_role("region", name="Memory", exact=True)


def test_a_leak_is_a_difference_that_grows(page, pair):
    before, after = (series(pair, LEAK[side])["allocators"][0] for side in ("first", "second"))
    differences = {
        of: [one - other for one, other in zip(after[of], before[of], strict=True)]
        for of in ("end", "low")
    }
    assert sum(one < other for one, other in pairwise(differences["low"])) > 10
    assert differences["end"][-1] > 10 * differences["end"][0]
    open_view(page, pair, "/compare", **LEAK)
    page.locator(CHART).first.wait_for()
    part = memory_part(page)
    for of, measure in (("end", "at the end of each step"), ("low", "least in each step")):
        part.get_by_label("What of each step").select_option(measure)
        first, last = (f"+{size_text(differences[of][place])}" for place in (0, -1))
        if differences[of][0] == 0:
            first = "0 B"
        tells(part, f"After less Before: {first} at step 1, {last} at step 20.")
    wait_for_params(page, of="low")
    part.get_by_text("As a table").first.click()
    row = part.get_by_role("grid", name="bfc_cpu_allocator_for_gpu by step").locator(".row").nth(3)
    row.wait_for()
    cells = row.get_by_role("gridcell").all_inner_texts()
    delta = differences["low"][3]
    assert cells == ["4", size_text(before["low"][3]), size_text(after["low"][3]),
                     f"{'+' if delta > 0 else MINUS}{size_text(abs(delta))}"]  # fmt: skip


def test_what_changed_is_said_first(page, pair):
    (allocator,) = api(pair, "compare", **LEAK)["allocators"]
    peaks = [size_text(allocator[side]["peak_bytes"]) for side in ("before", "after")]
    open_view(page, pair, "/compare", **LEAK)
    tells(
        page.get_by_role("region", name="At a glance"),
        f"The memory peak of bfc_cpu_allocator_for_gpu is higher: {peaks[0]} -> {peaks[1]}, +",
        "most of it model/hidden/MatMul",
        "with every step 768.0 KiB more of model/hidden/MatMul stay in memory than before",
        "Step times differ no more than chance makes them.",
    )


def test_three_actions_lead_from_the_list_to_what_changed(page, pair):
    open_view(page, pair, sort="name", q="leak")
    page.get_by_label("Compare leak_list_healthy").check()
    page.get_by_label("Compare leak_list", exact=True).check()
    page.get_by_role("link", name="Compare the two").click()
    tells(page.locator("#main"), "stay in memory than before")
    wait_for_params(page, **LEAK)


def test_a_session_is_compared_with_another_by_the_keyboard(page, pair):
    open_view(page, pair, "/session/leak_list_healthy/summary")
    page.get_by_role("button", name="Compare with …").press("Enter")
    dialog = page.get_by_role("dialog", name="Compare leak_list_healthy with")
    dialog.get_by_role("option", name="doubled_batch").wait_for()
    assert dialog.get_by_role("option", name="leak_list_healthy").count() == 0
    expect_accessible(page)
    page.keyboard.type("leak")
    tells(dialog, "1 of 5 sessions")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("#/compare.*first=leak_list_healthy&second=leak_list"))
    page.locator(CHART).first.wait_for()
    settle(page)


def test_more_sessions_are_added_and_removed(page, pair):
    open_view(page, pair, "/compare", **LEAK)
    page.get_by_role("button", name="Add a session …").click()
    page.get_by_role("option", name="doubled_batch").click()
    wait_for_params(page, **{"with": "doubled_batch"})
    page.locator(CHART).first.wait_for()
    tells(memory_part(page), "After less Before", "doubled_batch less Before")
    page.get_by_role("button", name="Compare without doubled_batch").click()
    wait_for_params(page, **{"with": None})
    page.locator(CHART).first.wait_for()
    eventually(lambda: "doubled_batch" in memory_part(page).inner_text(), expected=False)


def test_the_chart_is_read_by_the_arrow_keys(page, pair):
    result = [series(pair, LEAK[side])["allocators"][0]["end"] for side in ("first", "second")]
    open_view(page, pair, "/compare", **LEAK)
    chart = page.locator(CHART).first
    chart.press("End")
    chart.press("ArrowLeft")
    before, after = result[0][-2], result[1][-2]
    eventually(
        page.locator("#announcer").inner_text,
        f"step 19, Before: {size_text(before)}, After: {size_text(after)}, "
        f"Difference: +{size_text(after - before)}",
    )


def test_without_steps_time_is_what_aligns_them(page, pair):
    open_view(page, pair, "/compare", first="leak_list", second="oom_report")
    page.locator(CHART).first.wait_for()
    tells(memory_part(page), "Without steps: oom_report; aligned by the time from the first")


@pytest.mark.parametrize("width", [1440, 800, 390])
def test_everybody_can_read_it_at_any_width(page, pair, width):
    page.set_viewport_size({"width": width, "height": 900})
    try:
        open_view(page, pair, "/compare", **LEAK, **{"with": "doubled_batch,tf2_cnn"})
        page.locator(CHART).first.wait_for()
        expect_accessible_in_both_schemes(page, f"compare_steps_{width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        page.set_viewport_size({"width": 1400, "height": 900})


def test_the_rows_of_the_chart_are_exported(page, pair):
    open_view(page, pair, "/compare", **LEAK)
    page.locator(CHART).first.wait_for()
    part = memory_part(page)
    part.get_by_label("Export comparison bfc cpu allocator for gpu").click()
    with page.expect_download() as coming:
        part.get_by_role("button", name="CSV").click()
    header, *lines = coming.value.path().read_text().splitlines()
    assert header.startswith("step,Before value bytes,Before least bytes,Before most bytes,After")
    first = series(pair, "leak_list_healthy")["allocators"][0]
    assert lines[0].startswith(f"step 1,{first['end'][0]},{first['low'][0]},{first['high'][0]},")
    assert len(lines) == 20
