"""Beside the table of ops: the icicle of their time, the roofline, memory, and one step's ops."""

from pathlib import Path
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
    tells,
    wait_for_params,
)
from tests.web.shown import almost, number_of, rows_of


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
    found = op_time(server, "gpus", plane=plane)
    open_view(page, server, "/session/gpus/steps", part="ops")
    page.get_by_label("On", exact=True).select_option(plane)
    wait_for_params(page, plane=plane)
    rows = [(op["op"], str(op["occurrences"])) for op in found["ops"]]
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
    found = op_time(server, "slow_step", step="train 6")
    open_view(page, server, "/session/slow_step/steps", part="ops")
    page.get_by_label("Only step").fill("train 6")
    page.keyboard.press("Enter")
    wait_for_params(page, step="train 6")
    eventually(
        lambda: [(row["Op"], row["Runs"]) for row in rows_of(page, "Ops")][:5],
        [(op["op"], str(op["occurrences"])) for op in found["ops"][:5]],
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


def test_everybody_can_read_it(page, server):
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
