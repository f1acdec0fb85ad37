"""The graph: scopes open in place, edges, search, paths, details, keys, the schedule."""

import pytest
from tests.web.looking import (
    api,
    eventually,
    expect_accessible,
    expect_accessible_in_both_schemes,
    load_view,
    open_view,
    params,
    screenshot,
    settle,
    wait_for_params,
)

BOX = ".gv-box"


def scopes(server, session, **query):
    return api(server, f"sessions/{session}/tools/graph_scopes", **query)


def box(page, item):
    return page.locator(f'{BOX}[data-item="{item}"]')


def shown(page):
    """The visible items by the picture."""
    return sorted(
        page.evaluate("""() => [...document.querySelectorAll(".gv-box")]
          .map((box) => Number(box.dataset.item))""")
    )


def item_of(answer, label):
    """The item of an answer with a label."""
    return answer["items"]["id"][answer["items"]["label"].index(label)]


def press_on(page, item, key):
    box(page, item).focus()
    page.keyboard.press(key)


@pytest.mark.parametrize("session", ["graph", "saved_model", "run_metadata", "jax_cpu", "hlo_dump"])
def test_the_first_picture_shows_what_the_service_says(page, server, session):
    answer = scopes(server, session)
    open_view(page, server, f"/session/{session}/graph")
    eventually(lambda: shown(page), sorted(answer["items"]["id"]))
    for item, label in zip(answer["items"]["id"], answer["items"]["label"], strict=True):
        assert box(page, item).get_attribute("aria-label").startswith(label)
    assert page.locator("#header nav a[aria-current]").inner_text() == "Graph"
    screenshot(page, f"graph_{session}")
    page.watch.hear()
    assert page.watch.complaints == []


def test_a_scope_opens_in_place_and_closes_again(page, server):
    answer = scopes(server, "run_metadata")
    conv = item_of(answer, "conv0")
    open_view(page, server, "/session/run_metadata/graph")
    box(page, conv).dispatch_event("click")
    wait_for_params(page, open=str(conv), item=str(conv))
    wanted = scopes(server, "run_metadata", opened=conv)
    eventually(lambda: shown(page), sorted(wanted["items"]["id"]))
    assert box(page, conv).get_attribute("aria-expanded") == "true"
    panel = page.get_by_label("Details")
    eventually(panel.locator("h2").inner_text, "conv0")
    panel.get_by_role("button", name="Close").click()
    wait_for_params(page, open="none")
    eventually(lambda: shown(page), sorted(answer["items"]["id"]))
    page.go_back()
    eventually(lambda: shown(page), sorted(wanted["items"]["id"]))


def test_a_copied_address_shows_the_same(page, server):
    answer = scopes(server, "saved_model", opened="none")
    rnn, head = item_of(answer, "rnn"), item_of(answer, "head")
    wanted = scopes(server, "saved_model", opened=f"{rnn},{head}")
    load_view(page, server, "/session/saved_model/graph", open=f"{rnn}.{head}", item=head)
    eventually(lambda: shown(page), sorted(wanted["items"]["id"]))
    assert box(page, head).get_attribute("aria-current") == "true"
    eventually(page.get_by_label("Details").locator("h2").inner_text, "head")


def test_search_lists_nodes_and_shows_the_chosen_one_in_its_scopes(page, server):
    result = scopes(server, "saved_model", view="search", search="matmul", limit=100)
    open_view(page, server, "/session/saved_model/graph")
    page.keyboard.press("/")
    page.keyboard.type("matmul")
    matches = page.locator(".gv-matches li")
    eventually(matches.count, len(result["rows"]))
    assert result["rows"][0]["name"] in matches.first.inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    item = result["rows"][0]["item"]
    wait_for_params(page, item=str(item), q="matmul")
    box(page, item).wait_for()
    eventually(page.get_by_label("Details").locator("h2").inner_text, result["rows"][0]["name"])


def test_neighbourhood_and_paths_show_only_that(page, server):
    row = scopes(server, "jax_cpu", view="search", search="add_any.0")["rows"][0]
    open_view(page, server, "/session/jax_cpu/graph", item=row["item"])
    panel = page.get_by_label("Details")
    panel.get_by_role("button", name="Nodes at most 2 edges away").click()
    around = scopes(server, "jax_cpu", view="around", item=row["item"], depth=2)
    eventually(lambda: shown(page), sorted(around["items"]["id"]))
    wait_for_params(page, only=f"around.{row['item']}.2")
    panel.get_by_role("button", name="Path to an input").click()
    path = scopes(server, "jax_cpu", view="path", item=row["item"])
    eventually(lambda: shown(page), sorted(path["items"]["id"]))
    panel.get_by_role("button", name="Path to an output").click()
    path = scopes(server, "jax_cpu", view="path", item=row["item"], to="outputs")
    eventually(lambda: shown(page), sorted(path["items"]["id"]))
    page.get_by_role("button", name="Whole graph").click()
    box(page, row["item"]).wait_for()
    assert "only" not in params(page)


def test_keys_go_along_edges_and_open_scopes(page, server):
    answer = scopes(server, "run_metadata")
    images = item_of(answer, "_arg_images_0_0")
    conv0, conv1 = item_of(answer, "conv0"), item_of(answer, "conv1")
    edges = answer["edges"]
    weights = {
        target: size
        for source, target, size in zip(
            edges["source"], edges["target"], edges["bytes"], strict=True
        )
        if source == images
    }
    open_view(page, server, "/session/run_metadata/graph")
    press_on(page, images, "ArrowDown")
    most = max(weights.values())
    assert weights[int(page.evaluate("document.activeElement.getAttribute('data-item')"))] == most
    press_on(page, conv1, "ArrowUp")
    assert page.evaluate("document.activeElement.getAttribute('data-item')") == str(conv0)
    page.keyboard.press("Enter")
    wait_for_params(page, open=str(conv0))
    inside = scopes(server, "run_metadata", opened=conv0)
    eventually(lambda: shown(page), sorted(inside["items"]["id"]))
    assert page.evaluate("document.activeElement.getAttribute('data-item')") == str(conv0)
    press_on(page, inside["items"]["id"][inside["items"]["parent"].index(conv0)], "Backspace")
    wait_for_params(page, open="none")
    eventually(lambda: shown(page), sorted(answer["items"]["id"]))


def test_a_fusion_shows_its_body_and_the_details_lead_on(page, server):
    rows = scopes(server, "jax_cpu", view="search", search="multiply_add_fusion", limit=200)["rows"]
    fusion = next(row for row in rows if row["op"] == "fusion" and row["time_ps"])
    result = scopes(server, "jax_cpu", view="item", item=fusion["item"])
    open_view(page, server, "/session/jax_cpu/graph", item=fusion["item"])
    panel = page.get_by_label("Details")
    eventually(panel.locator("h2").inner_text, fusion["name"])
    page.get_by_role("button", name=result["bodies"][0]["name"]).click()
    inner = scopes(server, "jax_cpu", view="around", item=fusion["item"])  # it is there
    assert fusion["item"] in inner["items"]["id"]
    page.locator(f'{BOX}[data-item="{fusion["item"]}"][aria-expanded="true"]').wait_for()
    link = panel.get_by_role("link", name="Its longest run in the timeline")
    assert f"event={result['events'][0]}" in link.get_attribute("href")
    link.click()
    page.wait_for_selector("#main.timeline")
    settle(page)
    assert params(page)["event"] == str(result["events"][0])


def test_the_schedule_has_every_instruction_and_its_peak(page, server):
    result = scopes(server, "jax_cpu", view="schedule", limit=1000)
    open_view(page, server, "/session/jax_cpu/graph", mode="schedule")
    grid = page.get_by_role("grid", name="Instructions in order")
    eventually(lambda: grid.get_attribute("aria-rowcount"), str(result["instructions"] + 1))
    curve = page.locator("canvas.gv-curve").get_attribute("aria-label")
    assert f"at place {result['peak']} of {result['instructions']}" in curve
    page.get_by_role("button", name="To the peak").click()
    peak = result["rows"][result["peak"]]
    wait_for_params(page, item=str(peak["item"]))
    eventually(page.get_by_label("Details").locator("h2").inner_text, peak["name"])
    page.get_by_role("button", name="Graph", exact=True).click()
    box(page, peak["item"]).wait_for()
    assert "mode" not in params(page)


def test_functions_are_graphs_of_their_own(page, server):
    listed = scopes(server, "graph", view="graphs")["graphs"]
    (name,) = [one["function"] for one in listed if one["function"]]
    answer = scopes(server, "graph", function=name)
    open_view(page, server, "/session/graph/graph", fn=name)
    eventually(lambda: shown(page), sorted(answer["items"]["id"]))


def test_a_call_opens_to_the_body_of_its_function(page, server):
    rows = scopes(server, "saved_model", view="search", search="squash", limit=100)["rows"]
    call = next(row["item"] for row in rows if row["op"].startswith("squash"))
    open_view(page, server, "/session/saved_model/graph", item=call)
    page.get_by_label("Details").get_by_role("button", name="Open", exact=True).click()
    page.locator(f'{BOX}[data-item="{call}"][aria-expanded="true"]').wait_for()
    opened = params(page)["open"].replace(".", ",")
    wanted = scopes(server, "saved_model", opened=opened, reveal=call)
    eventually(lambda: shown(page), sorted(wanted["items"]["id"]))
    items = wanted["items"]
    inside = {op for op, parent in zip(items["op"], items["parent"], strict=True) if parent == call}
    assert {"_Arg", "_Retval"} <= inside


def test_nothing_lies_below_the_note(page, server):
    open_view(page, server, "/session/run_metadata/graph")
    box(page, scopes(server, "run_metadata")["items"]["id"][0]).wait_for()
    note = page.locator(".gv-note").bounding_box()
    lowest = page.evaluate("""() => Math.max(...[...document.querySelectorAll(".gv-box")]
      .map((box) => box.getBoundingClientRect().bottom))""")
    assert lowest <= note["y"] + 1


def test_colors_say_what_they_mean(page, server):
    open_view(page, server, "/session/run_metadata/graph")
    legend = page.get_by_label("What the colors mean")
    legend.get_by_text("Time in run 0").wait_for()
    page.get_by_label("Colors", exact=True).select_option("category")
    legend.get_by_text("VarHandleOp", exact=True).wait_for()
    wait_for_params(page, color="category")
    page.get_by_label("Colors", exact=True).select_option("memory")
    legend.get_by_text("Live at the peak").wait_for()


@pytest.mark.parametrize("width", [1440, 800, 390])
def test_the_view_is_accessible_at_every_width(page, server, width):
    page.set_viewport_size({"width": width, "height": 900})
    answer = scopes(server, "run_metadata")
    open_view(page, server, "/session/run_metadata/graph", item=item_of(answer, "conv0"))
    page.locator(BOX).first.wait_for()
    expect_accessible_in_both_schemes(page, f"graph_{width}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    open_view(page, server, "/session/hlo_dump/graph", mode="schedule")
    page.locator("canvas.gv-curve").wait_for()
    expect_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.parametrize(
    ("session", "has_graph"),
    [("graph", True), ("jax_cpu", True), ("run_metadata", True), ("leak_list", False)],
)
def test_the_head_offers_a_graph_where_there_is_one(page, server, session, has_graph):
    open_view(page, server, f"/session/{session}/summary")
    names = page.locator("#header nav a").all_inner_texts()
    assert ("Graph" in names) is has_graph


def test_the_picture_is_requested_once_and_before_the_answer_bar(page, server):
    urls = []
    page.on("request", lambda request: urls.append(request.url))
    load_view(page, server, "/session/graph/graph")
    box(page, scopes(server, "graph")["items"]["id"][0]).wait_for()
    pictures = [at for at, url in enumerate(urls) if "view=scopes" in url]
    assert len(pictures) == 1
    assert [at for at, url in enumerate(urls) if "tools/headline" in url and at < pictures[0]] == []


def test_keys_choose_an_edge_say_what_it_is_and_go_to_its_other_end(page, server):
    answer = scopes(server, "run_metadata")
    conv0 = item_of(answer, "conv0")
    at = [one for one in rows_of_edges(answer) if conv0 in (one["source"], one["target"])]
    most = max(at, key=lambda one: one["bytes"])
    open_view(page, server, "/session/run_metadata/graph")
    press_on(page, conv0, "e")
    label = dict(zip(answer["items"]["id"], answer["items"]["label"], strict=True))
    text = f"Edge 1 of {len(at)}: {label[most['source']]} → {label[most['target']]}"
    eventually(lambda: page.locator("#announcer").inner_text().startswith(text), True)  # noqa: FBT003
    assert page.locator(".gv-edge.chosen").count() >= 1
    expect_accessible(page)
    page.keyboard.press("e")
    page.keyboard.press("Shift+E")
    eventually(lambda: page.locator("#announcer").inner_text().startswith(text), True)  # noqa: FBT003
    page.keyboard.press("Enter")
    other = most["target"] if most["source"] == conv0 else most["source"]
    focused = "document.activeElement.getAttribute('data-item')"
    eventually(lambda: page.evaluate(focused), str(other))
    assert page.locator(".gv-edge.chosen").count() == 0


def rows_of_edges(answer):
    columns = {name: values for name, values in answer["edges"].items() if name != "left_out"}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
