"""What is live in the memory view, grouped and searched, and the findings that lead to it."""

import pytest
from tests.web.looking import (
    api,
    eventually,
    open_view,
    params,
    screenshot,
    settle,
    tells,
    wait_for_params,
)
from tests.web.memories import drawn, fact, live, rows, steps_of, view, wait_for_param
from tests.web.samples import HOSTILE

from peakline.text import shares_text, size_text


@pytest.mark.parametrize("group", ["op", "scope", "region_type", "data_type", "shape", "step"])
def test_groups_are_those_of_the_service(page, server, group):
    told = live(server, "leak_list", group=group)
    open_view(page, server, view("leak_list"))
    page.locator(f".groups [data-group={group}]").click()
    wait_for_params(page, group=group)
    settle(page)
    # They are all that is in use, so the shares add up as printed.
    shares = shares_text([row["bytes"] for row in told["rows"]])
    expected = [
        [row["key"] or ("(no op)" if group == "op" else "(not recorded)"), size_text(row["bytes"]),
         "<0.1%" if share == "0.0%" and row["bytes"] else share, str(row["count"])]
        for row, share in zip(told["rows"], shares, strict=True)
    ]  # fmt: skip
    shown = [[cells[0].replace("\n", ""), *cells[1:]] for cells in rows(page)]
    assert len(shown) >= min(10, len(expected))
    assert shown == expected[: len(shown)]
    assert sum(row["bytes"] for row in told["rows"]) == told["bytes_in_use"]


def test_a_group_leads_to_its_buffers_and_back_undoes_it(page, server):
    open_view(page, server, view("leak_list"), group="op")
    page.locator(".memory-live .row", has_text="MatMul_1").first.click()
    op = wait_for_param(page, "op")
    settle(page)
    told = live(server, "leak_list", op=op)
    assert len(rows(page)) == told["rows_total"] > 0
    page.go_back()
    eventually(lambda: params(page), {"group": "op"})
    page.locator("[data-group=op][aria-pressed=true]").wait_for()
    settle(page)
    ops = live(server, "leak_list", group="op")["rows"]
    eventually(lambda: [cells[1] for cells in rows(page)], [size_text(one["bytes"]) for one in ops])


def test_search_and_sort_are_the_services(page, server):
    open_view(page, server, view("leak_list"))
    page.get_by_role("searchbox").fill("hidden")
    wait_for_params(page, q="hidden")
    page.get_by_role("button", name="Allocated").click()
    wait_for_params(page, sort="-start_ps")
    settle(page)
    told = live(server, "leak_list", search="hidden", sort="start_ps", descending="true")
    shown = rows(page)
    steps = {row["step_id"]: row["name"] for row in steps_of(server, "leak_list")}
    assert [cells[5] for cells in shown] == [
        steps[row["start_step"]] for row in told["rows"][: len(shown)]
    ]


def test_a_leak_leads_to_what_every_step_keeps(page, server):
    (finding,) = api(server, "sessions/leak_list/tools/memory_findings")["findings"]
    open_view(page, server, view("leak_list"))
    part = page.locator(".memory-findings .finding").first
    assert finding["title"] in part.locator("h3").inner_text()
    page.get_by_role("button", name="Show where it grows, from step train 0").click()
    state = wait_for_params(page, within=finding["evidence"]["op"], sort="start_ps")
    settle(page)
    kept = live(server, "leak_list", at_ps=state["at"], within=state["within"])
    assert kept["rows_total"] == finding["evidence"]["steps"] == 20
    assert page.locator(".memory-live .total").inner_text().startswith("20 rows")
    page.go_back()
    wait_for_params(page, within=None, sort=None)
    total = live(server, "leak_list")["rows_total"]
    tells(page.locator(".memory-live .total"), f"{total} rows")


def test_fragmentation_leads_to_its_moment(page, server):
    findings = api(server, "sessions/fragmentation/tools/memory_findings")["findings"]
    evidence = next(one["evidence"] for one in findings if one["kind"] == "fragmentation")
    open_view(page, server, view("fragmentation"))
    page.get_by_role("button", name="Show that moment").click()
    state = wait_for_params(page, at=evidence["time_ps"])
    settle(page)
    kept = live(server, "fragmentation", at_ps=state["at"], within=evidence["op"])
    tells(page.locator(".memory-live .total"), f"{kept['rows_total']} rows")
    assert kept["rows_total"] >= evidence["pins"]
    assert page.locator(".memory-legend").get_by_text("% of 64.0 MiB").count() == 1


def test_a_buffer_shows_its_life(page, server):
    open_view(page, server, view("leak_list"))
    page.locator(".memory-live .row", has_text="ResourceApplyAdam_1").first.click()
    (row,) = live(server, "leak_list", record=int(wait_for_param(page, "buffer")))["rows"]
    assert fact(page, "Bytes", ".memory-buffer") == size_text(row["bytes"])
    assert fact(page, "Address", ".memory-buffer") == row["address"]
    page.get_by_role("button", name="Show its life").click()
    wait_for_param(page, "from")
    state = params(page)
    assert int(state["from"]) < row["start_ps"] < row["end_ps"] < int(state["to"])
    screenshot(page, "memory_buffer")
    page.get_by_role("button", name="Leave this buffer").click()
    wait_for_params(page, buffer=None)
    page.locator(".memory-buffer").wait_for(state="hidden")


def test_the_icicle_narrows_to_a_scope(page, server):
    told = live(server, "leak_list", scopes="true")
    open_view(page, server, view("leak_list"))
    page.locator(".scopes .part", has_text="gradient_tape").first.click()
    wait_for_params(page, within="gradient_tape")
    place = told["scopes"]["path"].index("gradient_tape")
    together = f"{size_text(told['scopes']['bytes'][place])} together"
    tells(page.locator(".memory-live .total"), together)


def test_findings_that_fail_cost_nothing_else(page, server):
    page.allowed_failures.append("memory_findings")
    page.route(
        "**/memory_findings*", lambda route: route.fulfill(status=503, json={"detail": "no"})
    )
    open_view(page, server, view("leak_list"))
    assert page.locator(".memory-findings").get_by_role("alert").count() == 1
    assert len(rows(page)) > 5
    drawn(page)
    page.unroute("**/memory_findings*")
    page.get_by_role("button", name="Try again").click()
    page.locator(".memory-findings .finding").first.wait_for()


def test_names_of_strangers_stay_text(page, server):
    open_view(page, server, view(HOSTILE))
    assert page.locator(".memory-legend strong").inner_text() == HOSTILE
    page.locator(".memory-live .row", has_text=HOSTILE).first.click()
    tells(page.locator(".memory-buffer h3"), HOSTILE)
    assert page.locator("img:not([src='assets/icon.svg'])").count() == 0
