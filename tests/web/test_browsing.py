"""What the tests of the page stand on: they see what it does wrong, and leave nothing behind."""

import asyncio

from tests.web.browsing import SIZE
from tests.web.looking import address, open_view, screenshot

SMALL = "/session/graph/summary"
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
    found = {what for what, _ in page.watch.complaints}
    expected = {
        "console error: a line of this test",
        "dialog: a dialog of this test",
        f"404 for GET {server.url}/api/nosuch",
        "uncaught: thrown by this test",
    }
    assert expected <= found
    (rest,) = found - expected
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
