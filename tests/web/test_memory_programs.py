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
    assert part.locator(".program-legend .name").all_inner_texts() == [
        layer["key"] if layer["kind"] == "group" else f"{layer['groups']} smaller"
        for layer in reversed(answer["layers"])
    ]
    assert part.get_by_role("grid").get_attribute("aria-rowcount") == str(len(answer["rows"]) + 1)


def colors_of(page):
    """By name the colors of the legend's layers, and by name those of the icicle's parts."""
    return page.evaluate(
        """() => {
          const color = (one) => getComputedStyle(one).backgroundColor;
          const layers = [...document.querySelectorAll(".program-legend li")].map((one) =>
            [one.querySelector(".name").textContent, color(one.querySelector(".swatch"))]);
          const parts = [...document.querySelectorAll(".memory-programs .icicle .part:not(.rest)")]
            .map((one) => [one.getAttribute("aria-label").split(": ")[0], color(one)]);
          return [Object.fromEntries(layers), parts];
        }"""
    )


@pytest.mark.parametrize("by", ["opcode", "scope", "source"])
def test_a_part_of_the_tree_has_the_color_of_its_layer(page, server, by):
    open_view(page, server, view("jax_cpu"), pby=by)
    shown(page)
    answer = ask(server, "jax_cpu", by=by)
    layers, parts = colors_of(page)
    assert len(set(layers.values())) == len(layers)
    tree = answer["tree"]
    above = dict(zip(tree["id"], tree["parent"], strict=True))
    label = dict(zip(tree["id"], tree["label"], strict=True))
    # What each drawn name may be, by the labels around it.
    keys = {}
    for one in tree["id"][1:]:
        path, at = [], one
        while above[at]:
            path.insert(0, label[at])
            at = above[at]
        keys.setdefault(label[one], set()).add("/".join(path) if by == "scope" else label[one])
    compared = 0
    for name, color in parts:
        of = {key for key in keys.get(name, ()) if key in layers}
        if len(of) == len(keys.get(name, ())) == 1:
            compared += 1
            assert color == layers[of.pop()], name
    assert compared > 1


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
    part.locator(".table .row a").first.click()
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


@pytest.mark.parametrize("session", ["hlo_dump", "jax_cpu"])
def test_a_node_of_the_graph_leads_to_its_value_and_back(page, server, session):
    answer = ask(server, session)
    row = next(row for row in reversed(answer["rows"]) if row["item"] is not None)
    open_view(page, server, f"/session/{session}/graph", graph=answer["program"], item=row["item"])
    page.get_by_label("Details").get_by_role("link", name="Its buffers in Memory").click()
    page.wait_for_url("**/memory?**")
    found = params(page)
    assert (found["program"], found["pitem"]) == (answer["program"], str(row["item"]))
    chosen = shown(page).locator(".table .row[aria-selected='true']")
    tells(chosen, row["instruction"])
    chosen.get_by_role("link").click()
    page.wait_for_url("**/graph?**")
    assert params(page)["item"] == str(row["item"])


def test_a_node_without_a_value_at_the_peak_has_no_such_link(page, server):
    live = {row["item"] for row in ask(server, "jax_cpu", limit=5000)["rows"]}
    name = ask(server, "jax_cpu")["program"]
    path = "sessions/jax_cpu/tools/graph_scopes"
    rows = api(server, path, view="search", graph=name, search="", limit=50)["rows"]
    other = next(row for row in rows if row["item"] not in live)
    open_view(page, server, "/session/jax_cpu/graph", graph=name, item=other["item"])
    panel = page.get_by_label("Details")
    tells(panel.locator("h2"), other["name"])
    assert panel.get_by_role("link", name="Its buffers in Memory").count() == 0


@pytest.mark.parametrize("width", [1440, 800, 390])
def test_everybody_can_use_programs(page, server, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_view(page, server, view("jax_cpu"))
    shown(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect_accessible_in_both_schemes(page, f"memory-programs-{width}")
