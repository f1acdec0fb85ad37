"""Sessions laid beside one another step by step: a leak is a difference that grows."""

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
    settle,
    tells,
    wait_for_params,
)
from tests.web.samples import DATA, make_logdir

from peakline.text import size_text

MINUS = "\N{MINUS SIGN}"
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
    grid = part.get_by_role("grid", name="bfc_cpu_allocator_for_gpu by step")
    row = grid.locator(".row").nth(3)
    row.wait_for()
    cells = row.get_by_role("gridcell").all_inner_texts()
    delta = differences["low"][3]
    assert cells == ["4", size_text(before["low"][3]), size_text(after["low"][3]),
                     f"{'+' if delta > 0 else MINUS}{size_text(abs(delta))}"]  # fmt: skip


def test_what_changed_is_said_first(page, pair):
    (allocator,) = api(pair, "compare", **LEAK)["allocators"]
    peaks = [size_text(allocator[side]["peak_bytes"]) for side in ("before", "after")]
    open_view(page, pair, "/compare", **LEAK)
    glance = page.get_by_role("region", name="At a glance")
    tells(
        glance,
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
    told = [series(pair, LEAK[side])["allocators"][0]["end"] for side in ("first", "second")]
    open_view(page, pair, "/compare", **LEAK)
    chart = page.locator(CHART).first
    chart.press("End")
    chart.press("ArrowLeft")
    before, after = told[0][-2], told[1][-2]
    eventually(
        page.locator("#announcer").inner_text,
        f"step 19, Before: {size_text(before)}, After: {size_text(after)}, "
        f"Difference: +{size_text(after - before)}",
    )


def test_without_steps_time_is_what_aligns_them(page, pair):
    open_view(page, pair, "/compare", first="leak_list", second="oom_report")
    page.locator(CHART).first.wait_for()
    tells(memory_part(page), "oom_report has no steps: aligned by the time from the first")


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
