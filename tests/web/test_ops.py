"""The ops: table and pictures."""

from pathlib import Path
from urllib.parse import unquote_plus
from xml.etree import ElementTree as ET

import pytest
from tests.web.looking import (
    api,
    eventually,
    expect_accessible,
    expect_accessible_in_both_schemes,
    load_again,
    open_view,
    params,
    screenshot,
    settle,
    tells,
    wait_for_params,
)
from tests.web.shown import almost, fact, facts, number_of, rows_of


def breakdown(server, session, **query):
    return api(server, f"sessions/{session}/tools/step_breakdown", **query)


def sql(server, session, query):
    return api(server, f"sessions/{session}/sql", {"query": query})


def test_kernels_are_those_of_the_service(page, server):
    result = sql(server, "kernels", "select * from kernels order by total_ps desc")
    open_view(page, server, "/session/kernels/steps", part="kernels")
    rows = rows_of(page, "Kernels")
    assert len(rows) == len(result) == 23
    assert [number_of(row["Total"]) for row in rows] == [almost(one["total_ps"]) for one in result]
    assert sorted((row["Kernel"], row["Runs"], row["Grid"]) for row in rows) == sorted(
        (one["kernel"], f"{one['occurrences']:,}", one["grid"]) for one in result
    )
    could = [
        one for one in result if one["could_use_tensor_cores"] and not one["uses_tensor_cores"]
    ]
    assert [row["Tensor cores"] for row in rows].count("could be used") == len(could) == 5
    share = sum(one["total_ps"] for one in could) / sum(one["total_ps"] for one in result)
    words = page.locator("#main").inner_text()
    assert number_of(words[: words.index("% of the kernels' time") + 1].split()[-1]) == almost(
        share
    )
    name = result[0]["kernel"]
    page.get_by_label("Search").fill(name.upper())
    wait_for_params(page, q=name.upper())
    expected = {
        one["kernel"]
        for one in result
        if name.lower() in one["kernel"].lower() or name.lower() in (one["op"] or "").lower()
    }
    eventually(lambda: {row["Kernel"] for row in rows_of(page, "Kernels")}, expected)
    screenshot(page, "kernels")
    expect_accessible(page)


def test_modules_and_shapes_are_those_of_the_tables(page, server):
    modules = sql(server, "torch_trace", "select * from module_time order by self_ps desc")
    open_view(page, server, "/session/torch_trace/steps", part="modules")
    rows = rows_of(page, "Modules")
    names = [one["module"] or "(no module)" for one in modules]
    assert [row["Module"] for row in rows] == names
    assert [number_of(row["Self time"]) for row in rows] == [
        almost(one["self_ps"]) for one in modules
    ]
    page.get_by_label("Search").fill(names[0].lower())
    wait_for_params(page, q=names[0].lower())
    fitting = [name for name in names if names[0].lower() in name.lower()]
    eventually(lambda: [row["Module"] for row in rows_of(page, "Modules")], fitting)
    expect_accessible(page)
    shapes = sql(server, "torch_trace", "select * from shape_time order by self_ps desc")
    open_view(page, server, "/session/torch_trace/steps", part="shapes")
    first = rows_of(page, "Ops by the shapes of their inputs")[0]
    assert (first["Op"], first["Shapes of inputs"]) == (shapes[0]["op"], shapes[0]["input_shape"])
    assert f"{len(shapes)} rows" in page.locator("#main").inner_text()


def test_functions_are_those_of_the_table(page, server):
    functions = sql(server, "torch_trace", "select * from function_time order by self_ps desc")
    open_view(page, server, "/session/torch_trace/steps", part="functions")
    rows = rows_of(page, "Functions")
    assert [(row["Function"], row["File and line"], row["Runs"]) for row in rows] == [
        (one["function"], f"{one['file']}:{one['line']}", str(one["occurrences"]))
        for one in functions
    ]
    assert [(number_of(row["Self time"]), number_of(row["Total"])) for row in rows] == [
        (almost(one["self_ps"]), almost(one["total_ps"])) for one in functions
    ]
    page.get_by_label("Search").fill(f":{functions[1]['line']}")
    eventually(
        lambda: [row["Function"] for row in rows_of(page, "Functions")], [functions[1]["function"]]
    )
    screenshot(page, "functions")
    expect_accessible(page)


def test_what_to_record_for_modules_is_said(page, server):
    open_view(page, server, "/session/torch_break/steps", part="modules")
    assert "with_stack=True" in page.locator("#main").inner_text()


def test_runs_of_a_device_s_op_are_not_those_of_the_host(page, server):
    """The op is called as the kernel is, and the histogram has the device's runs alone."""
    (op,) = (one for one in sql(server, "gpus", "from op_stats") if one["op"] == "gemm")
    assert op["side"] == "device"
    open_view(page, server, "/session/gpus/steps", part="ops", op="gemm")
    bars = page.locator(".histogram rect title").all_text_contents()
    assert sum(number_of(text.split(" run")[0]) for text in bars) == op["occurrences"] == 36
    assert len(bars) == 2


def test_shares_of_the_host_and_of_devices_stand_apart(page, server):
    ops = sql(server, "kernels", "select * from op_stats order by self_ps desc")
    whole = {side: sum(one["self_ps"] for one in ops if one["side"] == side)
             for side in ("device", "host")}  # fmt: skip
    assert all(whole.values())
    open_view(page, server, "/session/kernels/steps", part="ops")
    shown = rows_of(page, "Ops")
    assert {row["Side"] for row in shown} == {"device", "host"}
    known = {(one["side"], one["op"], one["op_type"] or ""): one for one in ops}
    for row in shown:
        one = known[row["Side"], row["Op"], row["Type"]]
        share = one["self_ps"] / whole[one["side"]]
        cells = {side: row[f"Share of {side}"] for side in whole}
        assert number_of(cells.pop(one["side"])) == almost(share)
        assert set(cells.values()) == {""}
    op = ops[0]
    open_view(page, server, "/session/kernels/steps", part="ops", op=op["op"], side_of=op["side"])
    share = facts(page.locator(".detail"))[f"Share of {op['side']}"]
    assert number_of(share) == almost(op["self_ps"] / whole[op["side"]])
    screenshot(page, "ops_of_both_sides")


def test_ops_are_those_of_the_service(page, server):
    result = sql(server, "tf2_cnn", "select * from op_stats order by self_ps desc")
    open_view(page, server, "/session/tf2_cnn/steps", part="ops")
    rows = rows_of(page, "Ops")
    assert len(rows) > 15
    whole = sum(row["self_ps"] for row in result)
    for row, op in zip(rows, result, strict=False):
        assert (row["Op"], row["Runs"]) == (op["op"], f"{op['occurrences']:,}")
        assert number_of(row["Self time"]) == almost(op["self_ps"])
        assert number_of(row["Share"]) == almost(op["self_ps"] / whole)
        assert number_of(row["95th perc."]) == almost(op["p95_ps"])
    assert f"{len(result)} ops" in page.locator("#main").inner_text()
    screenshot(page, "ops_tf2_cnn")


def test_the_share_of_ops_agrees_with_framework_op_stats(page, server):
    """XProf's tool, another way to the same: self time by op, IDLE left out."""
    tables = api(server, "sessions/tf2_cnn/tools/framework_op_stats")
    columns = [column["id"] for column in tables[1]["cols"]]
    cells = [[cell["v"] for cell in row["c"]] for row in tables[1]["rows"]]
    own = {row[columns.index("operation")]: row[columns.index("total_self_time")] for row in cells}
    open_view(page, server, "/session/tf2_cnn/steps", part="ops")
    rows = rows_of(page, "Ops")
    assert rows
    for row in rows:
        assert number_of(row["Self time"]) == almost(own[row["Op"]] * 1e6)


def test_search_and_sort_of_ops_are_in_the_address(page, other_page, server):
    result = sql(
        server,
        "tf2_cnn",
        "select op, max_ps from op_stats where op ilike '%relu%' or op_type ilike '%relu%' "
        "order by max_ps desc",
    )
    open_view(page, server, "/session/tf2_cnn/steps", part="ops")
    page.get_by_label("Search").fill("RELU")
    page.get_by_role("button", name="Longest").click()
    wait_for_params(page, q="RELU", sort="-max_ps")
    load_again(other_page, page.evaluate("location.href"))
    for one in (page, other_page):
        settle(one)
        expected = [op["op"] for op in result]
        eventually(lambda one=one: [row["Op"] for row in rows_of(one, "Ops")], expected)
    tells(other_page.locator("#main"), f"{len(result)} ops")


def test_an_op_shows_its_runs(page, server):
    op = "sequential_1/conv2d_1/Relu"
    (result,) = (one for one in sql(server, "tf2_cnn", "from op_stats") if one["op"] == op)
    open_view(page, server, "/session/tf2_cnn/steps", part="ops", op=op)
    shown = page.get_by_role("complementary", name="The chosen op")
    assert shown.get_by_role("heading", name=op).is_visible()
    assert fact(shown, "Median") == almost(result["median_ps"])
    assert fact(shown, "Longest") == almost(result["max_ps"])
    assert fact(shown, "Mean") == almost(result["total_ps"] / result["occurrences"])
    bars = shown.locator(".histogram rect title").all_text_contents()
    assert sum(number_of(text.split(" run")[0]) for text in bars) == result["occurrences"]
    timeline = shown.get_by_role("link", name="Show in the timeline").get_attribute("href")
    assert f"q={op}" in unquote_plus(timeline)
    shown.get_by_role("link", name="Its runs in SQL").click()
    page.get_by_role("heading", name=f"{result['occurrences']} rows").wait_for()
    screenshot(page, "op_runs_in_sql")


def test_choosing_an_op_puts_it_into_the_address(page, server):
    open_view(page, server, "/session/tf2_cnn/steps", part="ops")
    page.get_by_role("grid", name="Ops").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    second = rows_of(page, "Ops")[1]["Op"]
    page.get_by_role("complementary").get_by_role("heading", name=second, exact=True).wait_for()
    wait_for_params(page, op=second)


def test_stages_of_the_input_pipeline(page, server):
    result = sql(server, "input_bound", "select * from input_pipeline order by wait_ps desc")
    steps = breakdown(server, "input_bound")["steps"]
    open_view(page, server, "/session/input_bound/steps", part="input")
    rows = rows_of(page, "Stages of the input pipeline")
    assert [number_of(row["Waited for"]) for row in rows] == [
        almost(stage["wait_ps"]) for stage in result
    ]
    held = [row["Stage"] for row in rows if "holds the pipeline up" in row["Stage"]]
    assert len(held) == 1
    assert "Map" in held[0]
    # The finding's words and its share: what lies between the steps counts too.
    late = steps[2:]
    between = sum(step["gap_before_ps"] for step in late)
    (host,) = api(server, "sessions/input_bound/tools/time_findings")["hosts"]
    (finding,) = (one for one in host["findings"] if one["kind"] == "input_bound")
    shown = page.locator("dl.panel.facts")
    assert fact(shown, "Training waits for input") == almost(finding["evidence"]["share"])
    waits = sum(step["input_wait_ps"] for step in late)
    assert host["input"]["within_ps"] == waits
    assert 0 <= host["input"]["between_ps"] <= between
    words = facts(shown)
    assert number_of(words["Within the steps"].split(",")[0]) == almost(
        waits / host["input"]["whole_ps"]
    )
    assert number_of(words["Between the steps"].split(",")[0]) == almost(
        host["input"]["between_ps"] / host["input"]["whole_ps"]
    )
    screenshot(page, "input_pipeline")


@pytest.mark.parametrize("session", ["run_metadata", "input_bound"])
def test_the_critical_path_is_the_service_s(page, server, session):
    result = api(server, f"sessions/{session}/tools/critical_path")
    open_view(page, server, f"/session/{session}/steps", part="critical")
    shown = page.locator("dl.panel.facts")
    assert facts(shown)["Step"] == result["step_name"]
    assert fact(shown, "Explained") == almost(result["explained"])
    assert fact(shown, "Takes") == almost(result["end_ps"] - result["start_ps"])
    rows = rows_of(page, "Pieces of the critical path, in order of time")
    assert [row["Piece"] for row in rows] == [one["op"] for one in result["segments"]][: len(rows)]
    first = result["segments"][0]
    link = page.get_by_role("grid").first.get_by_role("link").first.get_attribute("href")
    assert f"event={first['event']}" in link
    ops = rows_of(page, "What is on the path")
    assert [number_of(row["Takes"]) for row in ops] == [
        almost(op["own_ps"]) for op in result["ops"][: len(ops)]
    ]
    screenshot(page, f"critical_{session}")


def test_the_critical_path_of_another_step(page, server):
    steps = breakdown(server, "input_bound")["steps"]
    open_view(page, server, "/session/input_bound/steps", part="critical")
    page.get_by_label("Step", exact=True).select_option(index=4)
    wait_for_params(page, step=steps[3]["step_id"])
    page.wait_for_function(
        "(name) => document.querySelector('dl.panel.facts dd')?.textContent === name",
        arg=steps[3]["name"],
    )
    result = api(server, "sessions/input_bound/tools/critical_path", step=steps[3]["step_id"])
    assert facts(page.locator("dl.panel.facts"))["Pieces"] == f"{len(result['segments']):,}"
    page.go_back()
    page.locator("dl.panel.facts dd").first.filter(has_not_text=steps[3]["name"]).wait_for()


def test_a_profile_without_kernels_says_so(page, server):
    open_view(page, server, "/session/tf2_cnn/steps", part="kernels")
    assert "No GPU kernels in this profile" in page.locator("#main").inner_text()


@pytest.mark.parametrize("part", ["ops", "kernels", "input", "critical"])
def test_everybody_can_read_it(page, server, part):
    open_view(page, server, "/session/input_bound/steps", part=part)
    if part == "ops":
        page.get_by_role("gridcell").first.click()
        chosen = page.get_by_role("complementary", name="The chosen op")
        chosen.locator(".histogram rect").first.wait_for(state="attached")
        settle(page)
    expect_accessible_in_both_schemes(page, f"steps_{part}")


def op_time(server, session, **query):
    return api(server, f"sessions/{session}/tools/op_time", **query)


def part(page, label):
    return page.locator(".icicle .part", has_text=label).first


def test_a_scope_of_the_icicle_filters_the_table(page, other_page, server):
    ops = op_time(server, "slow_step")["ops"]
    open_view(page, server, "/session/slow_step/steps", part="ops")
    own = [op for op in ops if op["op"].startswith("gradient_tape/")]
    text = part(page, "gradient_tape").get_attribute("aria-label")
    assert number_of(text.split(": ")[1].split(",")[0]) == almost(sum(o["self_ps"] for o in own))
    part(page, "gradient_tape").click()
    names = {op["op"] for op in own}
    eventually(lambda: {row["Op"] for row in rows_of(page, "Ops")} <= names, expected=True)
    tells(page.locator("#main"), f"{len(own)} ops")
    eventually(lambda: "gradient_tape" in params(page).get("within", ""), expected=True)
    load_again(other_page, page.evaluate("location.href"))
    tells(other_page.locator("#main"), f"{len(own)} ops")
    part(page, "all ops").click()
    wait_for_params(page, within=None)
    tells(page.locator("#main"), f"{len(ops)} ops")
    screenshot(page, "ops_icicle")


def test_types_take_the_place_of_scopes(page, server):
    ops = op_time(server, "slow_step")["ops"]
    whole = sum(op["self_ps"] for op in ops if op["op_type"] == "MatMul")
    open_view(page, server, "/session/slow_step/steps", part="ops")
    page.get_by_role("button", name="By type").click()
    wait_for_params(page, tree="type")
    eventually(
        lambda: number_of(
            (part(page, "MatMul").get_attribute("aria-label") or "x: 0")
            .split(": ")[1]
            .split(",")[0]
        ),
        almost(whole),
    )


def test_an_op_of_the_icicle_is_chosen_by_the_keyboard(page, server):
    (first, *_) = op_time(server, "slow_step")["ops"]
    open_view(page, server, "/session/slow_step/steps", part="ops", tree="op")
    page.locator(".icicle").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    wait_for_params(page, op=first["op"])
    tells(page.locator(".detail"), first["op"])


def test_the_icicle_marks_the_op_that_the_table_chooses(page, other_page, server):
    ops = op_time(server, "slow_step")["ops"]
    open_view(page, server, "/session/slow_step/steps", part="ops", tree="op")
    marked = page.locator(".icicle .part.marked")
    for place, op in enumerate(ops[:2]):
        page.get_by_role("grid", name="Ops").locator(".row").nth(place).click()
        wait_for_params(page, op=op["op"])
        eventually(lambda op=op: (marked.get_attribute("aria-label") or "").startswith(op["op"]),
                   expected=True)  # fmt: skip
        assert marked.get_attribute("aria-current") == "true"
    load_again(other_page, page.evaluate("location.href"))
    again = other_page.locator(".icicle .part.marked")
    eventually(lambda: again.get_attribute("aria-label"), marked.get_attribute("aria-label"))


def test_only_the_ops_of_one_device(page, other_page, server):
    whole = op_time(server, "gpus")
    assert len(whole["planes"]) > 1
    plane = "/device:GPU:1"
    result = op_time(server, "gpus", plane=plane)
    open_view(page, server, "/session/gpus/steps", part="ops")
    page.get_by_label("On", exact=True).select_option(plane)
    wait_for_params(page, plane=plane)
    rows = [(op["op"], str(op["occurrences"])) for op in result["ops"]]
    eventually(lambda: [(row["Op"], row["Runs"]) for row in rows_of(page, "Ops")], rows)
    load_again(other_page, page.evaluate("location.href"))
    eventually(lambda: [(row["Op"], row["Runs"]) for row in rows_of(other_page, "Ops")], rows)
    page.get_by_label("On", exact=True).select_option("")
    wait_for_params(page, plane=None)
    eventually(lambda: len(rows_of(page, "Ops")), len(whole["ops"]))
    screenshot(page, "ops_of_one_device")


def test_memory_stands_in_the_row(page, server):
    ops = op_time(server, "busy_pipeline")["ops"]
    open_view(page, server, "/session/busy_pipeline/steps", part="ops")
    for row, op in zip(rows_of(page, "Ops"), ops, strict=False):
        assert row["Op"] == op["op"]
        if op["allocated_bytes"] is not None:
            # Sizes have one decimal.
            for name, key in (
                ("Allocated", "allocated_bytes"),
                ("Live at most", "peak_live_bytes"),
            ):
                assert number_of(row[name]) == pytest.approx(op[key], rel=0.05)


def test_only_the_ops_of_one_step(page, server):
    result = op_time(server, "slow_step", step="train 6")
    open_view(page, server, "/session/slow_step/steps", part="ops")
    page.get_by_label("Only step").fill("train 6")
    page.keyboard.press("Enter")
    wait_for_params(page, step="train 6")
    eventually(
        lambda: [(row["Op"], row["Runs"]) for row in rows_of(page, "Ops")][:5],
        [(op["op"], str(op["occurrences"])) for op in result["ops"][:5]],
    )
    page.get_by_label("to", exact=True).fill("train 9")
    page.keyboard.press("Enter")
    wait_for_params(page, last="train 9")
    tells(page.locator("#main"), "what begins in 4 steps")
    page.get_by_role("button", name="All steps").click()
    wait_for_params(page, step=None, last=None)


def test_a_step_that_is_not_there_is_said(page, server):
    page.allowed_failures.append("step=nothing")
    open_view(page, server, "/session/slow_step/steps", part="ops", step="nothing")
    tells(page.locator("#main"), "no step 'nothing'")
    page.get_by_role("button", name="All steps").click()
    eventually(lambda: len(rows_of(page, "Ops")) > 5, expected=True)


def test_the_roofline_has_the_ops_of_known_cost(page, server):
    ops = [op for op in op_time(server, "recompiling")["ops"] if op["flops"]]
    open_view(page, server, "/session/recompiling/steps", part="ops")
    canvas = page.locator("canvas.roofline")
    tells(page.locator("#main"), f"{len(ops)} ops of known cost")
    assert ops[0]["op"] in canvas.get_attribute("aria-label")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    tells(page.locator("#announcer"), "FLOP per byte")
    page.keyboard.press("Enter")
    wait_for_params(page, op=ops[0]["op"])
    screenshot(page, "ops_roofline")


def test_why_there_is_no_roofline_is_said(page, server):
    open_view(page, server, "/session/slow_step/steps", part="ops")
    tells(page.locator("#main"), "No roofline: no op's operations and bytes are known")


def test_everybody_can_read_it_of_op_pictures(page, server):
    open_view(page, server, "/session/recompiling/steps", part="ops")
    tells(page.locator("#main"), "of known cost")
    expect_accessible_in_both_schemes(page, "ops_pictures")


@pytest.mark.parametrize("width", [800, 390])
def test_it_fits_narrow_screens(page, server, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_view(page, server, "/session/recompiling/steps", part="ops")
    tells(page.locator("#main"), "of known cost")
    main = page.locator("#main")
    assert main.evaluate("(main) => main.scrollWidth <= main.clientWidth")
    expect_accessible(page)


def test_an_icicle_is_taken_along_as_a_picture(page, server):
    open_view(page, server, "/session/slow_step/steps", part="ops")
    shown = page.locator(".op-pictures .icicle .part")
    shown.first.wait_for()
    labels = [label for label in shown.all_inner_texts() if label]
    menu = page.locator(".op-pictures .export").first
    for ending in ("SVG", "PNG"):
        menu.locator("summary").click()
        with page.expect_download() as coming:
            menu.get_by_role("button", name=ending).click()
        content = Path(coming.value.path()).read_bytes()
        if ending == "PNG":
            assert content.startswith(b"\x89PNG")
            assert int.from_bytes(content[16:20]) > 300
            continue
        drawing = ET.fromstring(content)  # noqa: S314, our own
        assert len(drawing.findall(".//{*}rect")) == shown.count()
        texts = [text.text for text in drawing.findall(".//{*}text") if text.text]
        assert sorted(texts) == sorted(labels)
