"""Compiled programs in the memory view: their layers, their peak, and the way to the graph."""

import pytest
from tests.web.looking import (
    api,
    expect_accessible_in_both_schemes,
    open_view,
    params,
    tells,
    wait_for_params,
)
from tests.web.memories import view

from peakline.text import size_text


def ask(server, session, **query):
    return api(server, f"sessions/{session}/tools/program_memory", **query)


def shown(page):
    """The part of the view, with its answer."""
    page.wait_for_selector(".program-chart[aria-busy='false']")
    return page.locator(".memory-programs")


@pytest.mark.parametrize("session", ["hlo_dump", "jax_cpu"])
def test_programs_are_shown_without_records(page, server, session):
    open_view(page, server, view(session))
    answer = ask(server, session)
    part = shown(page)
    tells(part, answer["program"], size_text(answer["peak_bytes"]))
    names = part.locator(".program-legend .name").all_inner_texts()
    assert names == [
        layer["key"] if layer["kind"] == "group" else f"{layer['groups']} smaller"
        for layer in reversed(answer["layers"])
    ]
    assert part.get_by_role("grid").get_attribute("aria-rowcount") == str(len(answer["rows"]) + 1)


def test_what_is_chosen_is_in_the_address_and_leads_to_the_graph(page, server):
    open_view(page, server, view("jax_cpu"))
    part = shown(page)
    part.get_by_label("Programs by").select_option("source")
    assert wait_for_params(page, pby="source")["pby"] == "source"
    answer = ask(server, "jax_cpu", by="source")
    page.wait_for_function(
        "(name) => document.querySelector('.program-legend').textContent.includes(name)",
        arg=answer["layers"][0]["key"],
    )
    first = max(answer["rows"], key=lambda row: row["bytes"])
    link = part.locator(".table .row a").first
    link.click()
    page.wait_for_url("**/graph?**")
    found = params(page)
    assert found["graph"] == answer["program"]
    rows = {str(row["item"]) for row in answer["rows"] if row["bytes"] == first["bytes"]}
    assert found["item"] in rows


def test_a_part_of_the_icicle_names_its_instruction(page, server):
    open_view(page, server, view("hlo_dump"))
    part = shown(page)
    tree = ask(server, "hlo_dump")["tree"]
    leaf = next(n for n, parent in enumerate(tree["parent"]) if parent and parent != tree["id"][0])
    open_view(page, server, view("hlo_dump"), ppart=tree["id"][leaf])
    shown(page)
    tells(part.get_by_role("status"), tree["label"][leaf])


@pytest.mark.parametrize("width", [1440, 800, 390])
def test_everybody_can_use_programs(page, server, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_view(page, server, view("jax_cpu"))
    shown(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect_accessible_in_both_schemes(page, f"memory-programs-{width}")
