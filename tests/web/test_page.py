"""The page as a whole: modules, answers, palette, widths."""

import asyncio
import hashlib
import os
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from tests.waiting import until
from tests.web.browsing import SIZE
from tests.web.looking import (
    address,
    api,
    eventually,
    expect_accessible,
    expect_accessible_in_both_schemes,
    load_view,
    open_view,
    outwait_timers,
    params,
    screenshot,
    settle,
    tells,
    wait_for_params,
)
from tests.web.samples import make_logdir

from peakline import web
from peakline.web import page_files

SMALL = "/session/graph/summary"
"""A view that shows little, where it does not matter what is shown."""
MODULES = [path for path in page_files() if path.endswith(".js")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_loads(page, server, scheme):
    page.emulate_media(color_scheme=scheme)
    load_view(page, server)
    screenshot(page, f"page_{scheme}")
    assert page.title().endswith("Peakline")
    expect_accessible(page)


def test_every_module_loads(page, server):
    """Those of the page's edition: under another address a module would be a second one, which
    begins anew in the document of the first.
    """
    open_view(page, server, SMALL)
    page.is_stale = True
    loaded = page.evaluate(
        """async (paths) => {
          const edition = new URL("..", document.querySelector("script[src$='/js/main.js']").src);
          const names = paths.map((path) => path.replace("/assets/", ""));
          return (await Promise.all(names.map((name) => import(new URL(name, edition))))).length;
        }""",
        MODULES,
    )
    assert loaded == len(MODULES)


def test_what_turns_the_direction_of_a_name_is_spelled(page, server):
    """As the command line spells it: a name must not look like another one."""
    open_view(page, server, SMALL)
    page.is_stale = True
    result = page.evaluate(
        """async () => {
          const {h} = await import("/assets/js/core/dom.js");
          const {contextOf} = await import("/assets/js/core/canvas.js");
          const one = h("p", {title: "a\\u202eb", value: "a\\u202eb"}, "x\\u2066y\\u2069");
          const context = contextOf(document.createElement("canvas"));
          const again = contextOf(context.canvas);
          return [one.textContent, one.title, one.getAttribute("value"), again === context];
        }"""
    )
    assert result == [r"x\u2066y\u2069", r"a\u202eb", "a\u202eb", True]


def test_the_policy_holds_in_the_browser(page, server):
    """What an attacker would try is refused, and seen by these tests."""
    open_view(page, server, SMALL)
    page.is_stale = True
    outcome = page.evaluate(
        """async () => {
          const tried = {};
          const attempt = async (name, act) => {
            try { await act(); tried[name] = "done"; } catch (error) { tried[name] = error.name; }
          };
          await attempt("markup", () => { document.body.innerHTML = "<b>x</b>"; });
          await attempt("script", () => { document.createElement("script").src = "/x.js"; });
          await attempt("outside", () => fetch("http://127.0.0.2:9/"));
          return tried;
        }"""
    )
    assert outcome == {"markup": "TypeError", "script": "TypeError", "outside": "TypeError"}

    def seen():
        page.watch.hear()
        result = [what for what, _ in page.watch.complaints]
        return [
            sum(f"against the policy: {rule}" in what for what in result)
            for rule in ("require-trusted-types-for", "connect-src")
        ]

    eventually(seen, [2, 1])
    page.watch.hear()  # the console's lines about them, too
    page.watch.complaints.clear()  # they were asked for


def test_an_address_that_names_nothing_says_so(page, server):
    open_view(page, server, "/nosuch")
    assert "There is no such page" in page.locator("#main").inner_text()
    screenshot(page, "no_such_page")
    expect_accessible(page)


def test_a_session_that_is_not_there_is_an_error_with_its_reason(page, server):
    page.allowed_failures.append("/api/sessions/nosuch")
    open_view(page, server, "/session/nosuch/memory")
    error = page.locator("#main .state.error")
    assert "no session 'nosuch'" in error.inner_text()
    screenshot(page, "no_such_session")
    expect_accessible(page)


def test_a_server_that_ended_is_told(page, server):
    open_view(page, server, "/session/leak_list/summary")
    page.route("**/api/**", lambda route: route.abort("connectionrefused"))
    page.allowed_failures.append("/api/")
    page.goto(f"{server.url}/#/session/leak_list/sql")
    tells(page.locator("#main.sql .state.error").first, "is it still running?")
    screenshot(page, "no_server")


def test_the_page_asks_for_the_token_and_keeps_it(serve, page, tmp_path):
    word = "a-t0ken-of-the-tests"
    tokens = tmp_path / "tokens"
    tokens.write_text(word, encoding="utf-8")
    tokens.chmod(0o600)
    logdir = make_logdir(tmp_path / "logs", "leak_list")
    guarded_server = serve(logdir, token_file=str(tokens), read_only=True, token=word)
    page.allowed_failures.append("/api/")
    page.goto(f"{guarded_server.url}/")
    field = page.locator("dialog input")
    field.wait_for()
    screenshot(page, "token")
    expect_accessible(page)
    field.fill(guarded_server.token)
    field.press("Enter")
    page.locator("dialog").wait_for(state="detached")
    tells(page.locator("#main"), "leak_list")
    settle(page)
    assert api(guarded_server, "sessions")[0]["session_id"] == "leak_list"
    page.reload()
    settle(page)
    assert page.locator("dialog").count() == 0


def test_help_is_a_key_away(page, server):
    open_view(page, server, SMALL)
    page.keyboard.press("?")
    dialog = page.locator("dialog[open]")
    tells(dialog, "Keys")
    screenshot(page, "help")
    expect_accessible(page)
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")


def test_light_and_dark_can_be_switched(page, server):
    open_view(page, server, SMALL)
    background = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(background)
    page.get_by_role("button", name="Light or dark").click()
    until(lambda: page.evaluate(background) != before, "another color")
    after = page.evaluate(background)
    page.reload()
    settle(page)
    assert page.evaluate(background) == after


def test_the_keyboard_reaches_the_content_at_once(page, server):
    load_view(page, server, SMALL)
    page.keyboard.press("Tab")
    eventually(lambda: page.evaluate("document.activeElement.textContent"), "To the content")
    screenshot(page, "skip_link")
    address = page.evaluate("location.hash")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.evaluate("location.hash") == address


def test_the_keyboard_reaches_the_table_of_a_view(page, server):
    for path, name in (
        ("/", "Sessions"),
        ("/session/leak_list/memory", "Buffers"),
        ("/session/slow_step/steps", "Steps"),
    ):
        load_view(page, server, path)
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        link = page.get_by_role("link", name="To the table")
        eventually(lambda: page.evaluate("document.activeElement.id"), "to-table")
        assert link.bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        focused = "[document.activeElement.role, document.activeElement.ariaLabel]"
        role, label = page.evaluate(focused)
        assert role == "grid"
        assert label.startswith(name)
    # Where there is no table there is no link to one.
    load_view(page, server, SMALL)
    page.keyboard.press("Tab")
    assert not page.get_by_role("link", name="To the table").is_visible()


WRONGS = """() => {
  console.error("a line of this test");
  fetch("api/nosuch").then((answer) => answer.text());
  setTimeout(() => { throw new Error("thrown by this test"); });
  alert("a dialog of this test");
}"""
LEAVINGS = """(hash) => {
  localStorage.setItem("left", "x");
  sessionStorage.setItem("left", "x");
  document.body.append(document.createElement("dialog"));
  location.hash = hash;
}"""


def test_what_a_page_should_not_do_is_collected(page, server):
    open_view(page, server, SMALL)
    page.evaluate(WRONGS)
    page.watch.hear()
    result = {what for what, _ in page.watch.complaints}
    expected = {
        "console error: a line of this test",
        "dialog: a dialog of this test",
        f"404 for GET {server.url}/api/nosuch",
        "uncaught: thrown by this test",
    }
    assert expected <= result
    (rest,) = result - expected
    assert rest.startswith("console error: Failed to load resource")
    page.watch.complaints.clear()


def test_failures_that_are_expected_are_no_complaints(tabs, server):
    tab = tabs.tab(1)
    tab.begin("this test")
    open_view(tab.page, server, SMALL)
    tab.page.allowed_failures.append("api/nosuch")
    for path in ("api/nosuch", "api/neither"):
        # Whoever does not read an answer holds its request open.
        tab.page.evaluate("async (path) => (await fetch(path)).text()", path)
    assert sorted(what.split()[0] for what in tab.end()) == ["404", "console"]


def test_nothing_of_a_test_is_left_for_the_next(tabs, server):
    tab, page = tabs.tab(1), tabs.tab(1).page
    tab.begin("this test")
    open_view(page, server, SMALL)
    page.route("**/api/**", lambda route: route.abort())
    page.allowed_failures.append("/api/")
    page.set_viewport_size({"width": 700, "height": 500})
    page.emulate_media(color_scheme="dark")
    page.evaluate(LEAVINGS, address("/session/leak_list/sql"))
    assert tab.end() == []
    assert page.is_stale
    tab.begin("the next test")
    open_view(page, server, SMALL)
    state = """() => [localStorage.length, sessionStorage.length, innerWidth,
      matchMedia("(prefers-color-scheme: dark)").matches, document.querySelector("dialog")]"""
    assert page.evaluate(state) == [0, 0, SIZE["width"], False, None]
    assert page.locator("#main .state.error").count() == 0
    assert tab.end() == []
    assert not page.is_stale


def test_other_loops_run_while_no_page_is_used(browsing):
    for _ in range(2):
        with browsing.in_use():
            assert browsing.tab(0).page.evaluate("6 * 7") == 42
        assert asyncio.run(asyncio.sleep(0, "slept")) == "slept"


def test_pictures_are_stored_where_they_are_asked_for(page, server, monkeypatch, tmp_path):
    monkeypatch.setattr("tests.web.looking.PICTURES", tmp_path)
    open_view(page, server, SMALL)
    for value, expected in (("", []), ("1", ["small.png"])):
        monkeypatch.setenv("PEAKLINE_SCREENSHOTS", value)
        screenshot(page, "small")
        assert [place.name for place in tmp_path.iterdir()] == expected


TESTS = Path(__file__).parents[1] / "page"
LEAST = (20, 19)
"""The first that takes a file for a module by what is in it."""


@pytest.fixture(scope="module")
def node():
    result = shutil.which("node")
    if result is None:
        pytest.skip("Node is not installed; make test brings it")
    said = subprocess.run([result, "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, re.findall(r"\d+", said)))[:2] < LEAST:
        pytest.skip(f"Node is too old: {said}")
    return result


def test_the_modules_do_what_their_tests_say(node):
    files = sorted(map(str, TESTS.glob("*.test.js")))
    assert files
    static = Path(web.__file__).parent / "static"
    run = subprocess.run(
        [node, "--test", "--test-reporter=tap", *files],
        env={**os.environ, "PEAKLINE_PAGE_MODULES": str(static / "js")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    (count,) = re.findall(r"^# pass (\d+)$", run.stdout, re.MULTILINE)
    assert int(count) >= len(files)


VENDOR = Path(str(files("peakline"))) / "web" / "static" / "vendor"
FIRST = "// @ts-nocheck\n"


def test_every_folder_has_a_licence_and_says_where_it_is_from():
    folders = [place for place in VENDOR.iterdir() if place.is_dir()]
    assert [place.name for place in folders] == ["dagre"]
    for place in folders:
        assert "Permission is hereby granted" in (place / "LICENSE.txt").read_text("utf-8")
        result = (place / "README.txt").read_text("utf-8")
        assert re.search(r"^package +@dagrejs/dagre \d+\.\d+\.\d+ ", result, re.MULTILINE)
        assert re.search(r"^licence +MIT ", result, re.MULTILINE)


def test_dagre_is_the_file_of_its_package_with_one_line_before_it():
    result = (VENDOR / "dagre" / "README.txt").read_text("utf-8")
    text = (VENDOR / "dagre" / "dagre.js").read_text("utf-8")
    assert text.startswith(FIRST)
    digest = hashlib.sha256(text.removeprefix(FIRST).encode()).hexdigest()
    assert re.search(rf"^sha256 +{digest} ", result, re.MULTILINE)


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
    result = api(server, "sessions/leak_list/tools/headline", about="memory")["picture"]
    open_view(page, server, "/session/leak_list/summary")
    memory, steps = bar(page).get_by_role("img").all()
    box = memory.bounding_box()
    memory.click(position={"x": box["width"] * 0.5, "y": 20})
    eventually(lambda: "at" in params(page), expected=True)
    at, middle = int(params(page)["at"]), (result["start_ps"] + result["end_ps"]) / 2
    assert abs(at - middle) < (result["end_ps"] - result["start_ps"]) / 100
    open_view(page, server, "/session/leak_list/summary")
    box = steps.bounding_box()
    # The slow one is the 16th of 20.
    steps.click(position={"x": box["width"] * 15.5 / 20, "y": 20})
    wait_for_params(page, name="train 15")


def test_nothing_stands_out_is_not_said_beside_a_saving_of_half_the_peak(page, server):
    open_view(page, server, "/session/memory_log/summary")
    tells(page.locator("main .fixes"), "Fix first", "16.3 MiB instead of 33.0 MiB")
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


def opened(page, text):
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Go to")
    field.fill(text)
    return field, page.get_by_role("listbox", name="Places")


def options(page, group):
    return page.get_by_role("option").filter(
        has=page.locator(".group").get_by_text(group, exact=True)
    )


def test_an_op_a_buffer_and_a_step_are_found_by_name(page, server):
    open_view(page, server, "/session/leak_list/summary")
    field, places = opened(page, "MatMul_1")
    tells(places, "Op", "Buffer", "gradient_tape/model/head/MatMul/MatMul_1")
    expect_accessible_in_both_schemes(page, "palette")
    options(page, "Buffer").first.click()
    wait_for_params(page, allocator="bfc_cpu_allocator_for_gpu", buffer=579)
    field, places = opened(page, "train 15")
    tells(places, "Step")
    eventually(lambda: options(page, "Step").count(), 1)
    field.press("Enter")
    wait_for_params(page, name="train 15")


def test_the_arrows_choose_and_enter_goes(page, server):
    open_view(page, server, "/session/leak_list/summary")
    field, places = opened(page, "")
    tells(places, "Summary", "Memory", "Timeline", "SQL")
    for _ in range(2):
        field.press("ArrowDown")
    assert places.get_by_role("option", selected=True).locator(".name").inner_text() == "Timeline"
    field.press("Enter")
    eventually(lambda: "/timeline" in page.evaluate("location.hash"), expected=True)
    assert page.get_by_role("dialog").count() == 0


def test_sessions_are_found_from_the_list(page, server):
    open_view(page, server)
    page.get_by_role("button", name="Go to").click()
    page.get_by_role("combobox", name="Go to").fill("two_devices")
    tells(page.get_by_role("listbox"), "Session", "tf2_two_devices")
    page.keyboard.press("Enter")
    eventually(
        lambda: page.evaluate("location.hash").startswith("#/session/tf2_two_devices/summary"),
        expected=True,
    )


def test_what_is_nowhere_is_said_to_be_so(page, server):
    open_view(page, server, "/session/leak_list/summary")
    opened(page, "it's % nowhere")
    tells(page.get_by_role("dialog"), "Nothing has that in its name.")
    page.keyboard.press("Escape")
    eventually(page.get_by_role("dialog").count, 0)


def test_the_summary_is_requested_once_whatever_is_typed(page, server):
    open_view(page, server, "/session/leak_list/sql")
    urls = []
    page.on("request", lambda request: urls.append(request.url))
    field, places = opened(page, "growth")
    for text in ("memory", "grow", "leak"):
        field.fill(text)
        outwait_timers(page)
    assert sum("/tools/live_memory" in url for url in urls) >= 3
    tells(places, "Finding")
    assert sum("/tools/summary" in url for url in urls) == 1
    field.press("Escape")


HEIGHTS = {1440: 900, 800: 1000, 390: 844}
"""The height of the window, by its width."""

NARROWEST = min(HEIGHTS)

PAIR = {"first": "doubled_batch_healthy", "second": "doubled_batch"}
VIEWS = {
    "sessions": ("/", {}),
    "compare": ("/compare", PAIR),
    "summary": ("/session/fragmentation/summary", {}),
    "job": ("/session/tf2_multihost/job", {}),
    "summary_graph": ("/session/hlo_dump/summary", {}),
    "memory_line": ("/session/leak_list/memory", {}),
    "memory_stack": ("/session/leak_list/memory", {"draw": "stack"}),
    "memory_buffers": ("/session/leak_list/memory", {"draw": "buffers"}),
    "memory_report": ("/session/oom_report/memory", {}),
    "timeline": ("/session/tf2_cnn/timeline", {}),
    "timeline_filter": ("/session/tf2_cnn/timeline", {"only": "tf_*"}),
    "steps": ("/session/slow_step/steps", {"step": 6}),
    "ops": ("/session/tf2_cnn/steps", {"part": "ops"}),
    "modules": ("/session/torch_break/steps", {"part": "modules"}),
    "shapes": ("/session/torch_trace/steps", {"part": "shapes"}),
    "kernels": ("/session/kernels/steps", {"part": "kernels"}),
    "input": ("/session/input_bound/steps", {"part": "input"}),
    "critical": ("/session/input_bound/steps", {"part": "critical"}),
    "graph": ("/session/run_metadata/graph", {}),
    "schedule": ("/session/hlo_dump/graph", {"mode": "schedule"}),
    "sql": ("/session/tf2_cnn/sql", {"query": "select name, count(*) n from events group by 1"}),
}

# Controls that a reader at this width cannot reach: out of the window, or cut by what is around
# them, where nothing scrolls sideways. What lies in a picture moves with it; a name that ends in an
# ellipsis is not cut.
_OUT_OF_REACH = """() => {
  const controls = "a[href], button, input, select, textarea, summary, "
    + "[role=button], [role=link], [role=textbox], [role=checkbox], [role=tab]";
  const reaches = (one, {left, right}) => one.left >= left - 1 && one.right <= right + 1;
  const isOut = (control) => {
    const box = control.getBoundingClientRect();
    if (!control.checkVisibility({visibilityProperty: true}) || !box.width || !box.height
        || control.matches(".skip") || control.ownerSVGElement) return false;
    let at = control;
    while ((at = at.parentElement) && at !== document.body) {
      const {overflowX, textOverflow} = getComputedStyle(at);
      if (/auto|scroll/.test(overflowX) || textOverflow === "ellipsis") return false;
      if (/hidden|clip/.test(overflowX) && !reaches(box, at.getBoundingClientRect())) return true;
    }
    return !reaches(box, {left: 0, right: innerWidth});
  };
  return [...document.querySelectorAll(controls)].filter(isOut)
    .map((one) => `${one.tagName} ${one.className}: ${one.ariaLabel ?? one.textContent}`);
}"""
_SIDEWAYS_PX = "() => Math.max(document.documentElement.scrollWidth - innerWidth, 0)"


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_fits_every_width(page, server, name):
    path, query = VIEWS[name]
    open_view(page, server, path, **query)
    for width, height in HEIGHTS.items():
        page.set_viewport_size({"width": width, "height": height})
        settle(page)
        eventually(lambda: page.evaluate(_SIDEWAYS_PX), 0)
        eventually(lambda: page.evaluate(_OUT_OF_REACH), [])
        if width == NARROWEST:
            expect_accessible_in_both_schemes(page, f"widths_{name}_{width}")
        else:
            screenshot(page, f"widths_{name}_{width}")


def test_the_bar_of_the_timeline_wraps_on_a_phone(page, server):
    """The filter of lines and what it says are seen without scrolling sideways."""
    page.set_viewport_size({"width": 390, "height": 844})
    open_view(page, server, "/session/tf2_cnn/timeline", only="nothing like it")
    for control in (page.get_by_label("Show only lines"), page.get_by_text("hidden: show all")):
        control.wait_for()
        box = control.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    assert page.locator(".tl-bar").evaluate("(bar) => bar.scrollWidth <= bar.clientWidth")
